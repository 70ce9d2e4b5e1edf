/* src/input/sources/records/tfrecord.c - checks records of TFRecord files, and makes datasets of them. */
#include "input/sources/records/tfrecord.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "input/sources/files/file_row.h"
#include "input/sources/files/gzip.h"
#include "input/sources/files/signature.h"
#include "input/sources/sources.h"

#include <string.h>

#define DEFAULT_MAX_BYTES 65536

/* A row has the number of data bytes of its record in 32 bits. The limit leaves space for header and
 * footer. */
#define MOST_BYTES (((uint64_t)1 << 32) - 64 - 1)

/* -- records -- */

static uint32_t u32_at(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Records an error "data.tfrecord: record 7 at offset 1234: " and the text `what`. If the length of the first
 * record is wrong, the file may be of another format. */
static ditto_status fail(const struct dti_tfrecord *t, struct dti_record record, const char *what,
                         bool has_length)
{
    bool packed = t->options.compression == DITTO_COMPRESSION_GZIP, other = !has_length && record.number == 1;
    /* The cast is safe because only descriptors change, and a lock protects them. */
    struct dti_files *files = (struct dti_files *)&t->files;
    const char *format = other && !packed ? dti_signature_of_file(files, record.file) : NULL;
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: record %llu at offset %llu%s: %s%s%s",
                    files->file[record.file].name, (unsigned long long)record.number,
                    (unsigned long long)record.offset, packed ? " of the contents" : "", what,
                    !other           ? ""
                    : format != NULL ? ": it is not a TFRecord file, but "
                                     : ": it is not a TFRecord file, or a damaged one",
                    format != NULL ? format : "");
}

ditto_status dti_record_check_header(const struct dti_tfrecord *t, struct dti_record record,
                                     const char *header, uint64_t *length)
{
    char what[96];
    uint32_t found = u32_at(header + 8), computed = dti_crc32c_masked(dti_crc32c(header, 8));
    struct dti_text text = { what, sizeof what, 0 };
    *length = u32_at(header) | (uint64_t)u32_at(header + 4) << 32;
    if (found == computed && *length <= t->options.max_bytes)
        return DITTO_OK;
    if (found != computed)
        dti_text_add(&text, "the checksum of its length is %08x, but should be %08x", found, computed);
    else
        dti_text_add(&text, "it has %llu bytes, max_bytes is %llu", (unsigned long long)*length,
                     (unsigned long long)t->options.max_bytes);
    return fail(t, record, what, found == computed);
}

ditto_status dti_record_check_data(const struct dti_tfrecord *t, struct dti_record record, const char *data,
                                   size_t length, const char *footer)
{
    char what[96];
    uint32_t found = u32_at(footer), computed;
    if (t->options.trust || found == (computed = dti_crc32c_masked(dti_crc32c(data, length))))
        return DITTO_OK;
    dti_text_add(&(struct dti_text){ what, sizeof what, 0 },
                 "the checksum of its data is %08x, but should be %08x", found, computed);
    return fail(t, record, what, true);
}

ditto_status dti_record_fail_cut(const struct dti_tfrecord *t, struct dti_record record, const char *in,
                                 uint64_t end)
{
    char what[128];
    dti_text_add(&(struct dti_text){ what, sizeof what, 0 }, "%s in its %s, at offset %llu",
                 t->options.compression == DITTO_COMPRESSION_GZIP ? "the contents end" : "the file ends", in,
                 (unsigned long long)end);
    return fail(t, record, what, strcmp(in, "header") != 0);
}

/* -- making -- */

void dti_tfrecord_digest(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct dti_tfrecord *t = (const struct dti_tfrecord *)dataset;
    dti_bytes_put_u64(to, t->options.max_bytes);
    dti_bytes_put_u64(to, t->options.trust != 0);
    dti_bytes_put_u64(to, t->files.count);
}

void dti_tfrecord_free(ditto_dataset *dataset)
{
    dti_files_free(&((struct dti_tfrecord *)dataset)->files);
}

static ditto_status prepare(struct dti_tfrecord *t, const ditto_files *files)
{
    bool packed = t->options.compression == DITTO_COMPRESSION_GZIP;
    t->base.row_words = packed ? 1 : DTI_FILE_ROW_WORDS;
    t->base.holds = packed;
    t->base.components = 2;
    DTI_TRY(dti_files_create(&t->files, files));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t->files.count; i++)
        bytes |= t->files.file[i].bytes;
    if (bytes == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s%s: there are no records to iterate", t->files.file[0].name,
                        t->files.count > 1 ? " and all other files" : "");
    t->base.files = t->files.count;
    t->base.by_file = true;
    DTI_TRY(dti_dataset_set_component(
        &t->base, 0,
        &(ditto_tensor){ .dtype = DITTO_U8, .rank = 1, .shape = { (size_t)t->options.max_bytes } }));
    return dti_dataset_set_component(&t->base, 1, &(ditto_tensor){ .dtype = DITTO_I64 });
}

ditto_status dti_tfrecord_create(const ditto_files *files, const ditto_tfrecord_options *options,
                                 ditto_dataset **out)
{
    bool packed = options->compression == DITTO_COMPRESSION_GZIP;
    if (options->max_bytes > MOST_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "max_bytes = %llu: at most %llu",
                        (unsigned long long)options->max_bytes, (unsigned long long)MOST_BYTES);
    if (packed)
        DTI_TRY(dti_gzip_check());
    const struct dti_dataset_kind *kind = packed ? &dti_tfrecord_packed_kind : &dti_tfrecord_plain_kind;
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct dti_tfrecord), kind, NULL, 0, &base));
    struct dti_tfrecord *t = (struct dti_tfrecord *)base;
    t->options = *options;
    if (t->options.max_bytes == 0)
        t->options.max_bytes = DEFAULT_MAX_BYTES;
    return dti_dataset_out(base, prepare(t, files), out);
}
