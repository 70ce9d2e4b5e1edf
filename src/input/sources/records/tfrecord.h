/* src/input/sources/records/tfrecord.h - records of TFRecord files: a length, its checksum, data, their checksum. What plain and compressed files
 * have in common.
 * Source  tensorflow/core/lib/io/record_writer.h: the framing; checksum.h: how checksums are masked. */
#ifndef DTI_TFRECORD_H
#define DTI_TFRECORD_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

#define DTI_TFRECORD_HEADER_BYTES 12 /* length u64, its checksum u32 */
#define DTI_TFRECORD_FOOTER_BYTES 4  /* checksum of the data */

struct dti_tfrecord {
    ditto_dataset base; /* first */
    struct dti_files files;
    ditto_tfrecord_options options;
};

/* Which record: for messages. */
struct dti_record {
    uint32_t file;
    uint64_t number, offset; /* from 1; of its header in the file, or in the contents of a compressed one */
};

/* The header of a record: how long its data are. CORRUPT: its checksum is wrong, or it says more than max_bytes. */
ditto_status dti_record_check_header(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                     const char *header, uint64_t *length);
/* CORRUPT: the checksum is wrong, and the options do not trust the file. */
ditto_status dti_record_check_data(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                   const char *data, size_t length, const char *footer);
/* Writes the error that the file ended in this record, at `end`: CORRUPT, or IO where it had been longer. `in`: "header", "data",
 * "footer". */
ditto_status dti_record_fail_cut(const struct dti_tfrecord *tfrecord, struct dti_record record,
                                 const char *in, uint64_t end, bool shorter);

/* How files are gone through: plain ones from header to header, a row being a place; compressed ones from front to back, a row holding
 * its record. */
extern const struct dti_dataset_kind dti_tfrecord_plain_kind, dti_tfrecord_packed_kind;
void dti_tfrecord_digest(const ditto_dataset *dataset, struct dti_bytes *to);
void dti_tfrecord_free(ditto_dataset *dataset);

#endif
