/* src/input/sources/records/tfrecord.h - records of TFRecord files, plain and compressed. A record consists
 * of a length, its checksum, the data, and their checksum.
 * Source  tensorflow/core/lib/io/record_writer.h for the framing, checksum.h for the masking of checksums. */
#ifndef DTI_TFRECORD_H
#define DTI_TFRECORD_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

#define DTI_TFRECORD_HEADER_BYTES 12 /* length as u64, its checksum as u32 */
#define DTI_TFRECORD_FOOTER_BYTES 4  /* checksum of the data */

struct dti_tfrecord {
    ditto_dataset base; /* first */
    struct dti_files files;
    ditto_tfrecord_options options;
};

/* Identifies a record in messages. */
struct dti_record {
    uint32_t file;
    uint64_t number; /* in the file, from 1 */

    /* The offset of its header in the file, or in the contents of a compressed file. */
    uint64_t offset;
};

/* Sets *length to the number of data bytes that the header states. Returns DITTO_ERR_CORRUPT if its
 * checksum is wrong or the length exceeds max_bytes. */
ditto_status dti_record_check_header(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                     const char *header, uint64_t *length);

/* Returns DITTO_ERR_CORRUPT if the checksum is wrong and the options do not trust the file. */
ditto_status dti_record_check_data(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                   const char *data, size_t length, const char *footer);

/* Records the error that the file ends at offset `end`, inside this record, and returns DITTO_ERR_CORRUPT.
 * `in` is "header", "data" or "footer". */
ditto_status dti_record_fail_cut(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                 const char *in, uint64_t end);

/* For plain files the cursor goes from header to header, and a row is a position in the file. Compressed
 * files are read from front to back, and a row holds its record. */
extern const struct dti_dataset_kind dti_tfrecord_plain_kind, dti_tfrecord_packed_kind;
void dti_tfrecord_digest(const ditto_dataset *dataset, struct dti_bytes *to);
void dti_tfrecord_free(ditto_dataset *dataset);

#endif
