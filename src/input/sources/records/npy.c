/* src/input/sources/records/npy.c - rows of arrays in .npy files, one file per component. Files are read
 * and not mapped. If a file becomes shorter, reading returns an error. With a mapping the process would
 * get SIGBUS. */
#include "base/errors/status.h"
#include "base/types/convert.h"
#include "base/types/types.h"
#include "input/sources/counted.h"
#include "input/sources/files/signature.h"
#include "input/sources/records/npy_header.h"
#include "input/sources/sources.h"

#include <stdlib.h>
#include <string.h>

struct npy_dataset {
    struct dti_counted counted; /* first */
    struct dti_files files;     /* [components] */
    struct {
        uint64_t data_offset;
        bool swap;
    } array[DITTO_MAX_COMPONENTS];
};

/* -- reading -- */

/* Reads one component of `count` rows directly to its destination. Neighbouring rows are read together. */
static ditto_status fill_component(struct npy_dataset *n, uint32_t k, struct dti_rows rows, size_t count,
                                   char *destination)
{
    const struct dti_row_component_spec *spec = &n->counted.base.component[k];
    for (size_t i = 0, run; i < count; i += run) {
        uint64_t first = rows.word[i * rows.stride];
        for (run = 1; i + run < count && rows.word[(i + run) * rows.stride] == first + run;)
            run++;
        DTI_TRY(dti_files_read_all(&n->files, k, n->array[k].data_offset + first * spec->bytes,
                                   destination + i * spec->bytes, run * spec->bytes, "row", first));
        dti_elements_arrange(destination + i * spec->bytes, run * spec->bytes, spec->dtype, n->array[k].swap);
    }
    return DITTO_OK;
}

static ditto_status fill_npy(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                             size_t count, void *const *destination)
{
    (void)reader;
    for (uint32_t k = 0; k < dataset->components; k++)
        if (dataset->component[k].bytes > 0)
            /* The cast is safe because only descriptors change, and a lock protects them. */
            DTI_TRY(fill_component((struct npy_dataset *)dataset, k, rows, count, destination[k]));
    return DITTO_OK;
}

static void where_npy(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    const struct npy_dataset *n = (const struct npy_dataset *)dataset;
    dti_text_add(text, "row %llu of %s%s", (unsigned long long)*row, n->files.file[0].name,
                 n->files.count > 1 ? " and the files of the other components" : "");
}

/* -- making -- */

static void digest_npy(const ditto_dataset *dataset, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, ((const struct npy_dataset *)dataset)->counted.rows);
}

static void free_npy(ditto_dataset *dataset)
{
    dti_files_free(&((struct npy_dataset *)dataset)->files);
}

static const struct dti_dataset_kind npy_kind = {
    .name = "npy",
    .cursor_bytes = sizeof(struct dti_counted_cursor),
    .open = dti_counted_open,
    .next = dti_counted_next,
    .save = dti_counted_save,
    .restore = dti_counted_restore,
    .fill = fill_npy,
    .where = where_npy,
    .load_row = dti_counted_load_row,
    .digest = digest_npy,
    .free = free_npy,
};

/* Reads and parses the header of file k. `text` is a buffer of DTI_NPY_HEADER_BYTES for the header text. */
static ditto_status read_header(struct dti_files *files, uint32_t k, char *text, struct dti_npy_header *out)
{
    const char *name = files->file[k].name;
    char reason[192] = "";
    struct dti_text why = { reason, sizeof reason, 0 };
    size_t got, start, end;
    DTI_TRY(dti_files_read(files, k, 0, text, DTI_NPY_PREFIX_BYTES, &got));
    ditto_status status = dti_npy_measure(text, got, &start, &end, &why);
    if (status != DITTO_OK) {
        const char *format = dti_signature_of_file(files, k);
        return DTI_FAIL(status, "%s: %s%s%s", name, reason, format != NULL ? ": it is " : "",
                        format != NULL ? format : "");
    }
    DTI_TRY(dti_files_read(files, k, start, text, end - start, &got));
    if (got < end - start)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: the file ends at offset %zu, in its header of %zu bytes",
                        name, start + got, end - start);
    status = dti_npy_parse(text, got, out, &why);
    if (status != DITTO_OK)
        return DTI_FAIL(status, "%s: %s (the header is at offset %zu)", name, reason, start);
    out->data_offset = end;
    return DITTO_OK;
}

/* Checks that the array has rows and that the file has all of them. */
static ditto_status check_array(const struct dti_file *file, const struct dti_npy_header *header)
{
    const ditto_tensor *spec = &header->spec;
    char description[DTI_SPEC_TEXT_BYTES];
    dti_spec_text(spec, description);
    if (spec->rank == 0 || spec->shape[0] == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is %s: %s", file->name, description,
                        spec->rank == 0 ? "rows are an array's first dimension"
                                        : "it has no rows to iterate");
    uint32_t long_dimensions = 0;
    for (uint32_t i = 0; i < spec->rank; i++)
        long_dimensions += spec->shape[i] != 1;
    if (header->fortran && long_dimensions > 1) /* a row or a column has one order only */
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "%s is %s in Fortran order, so its rows are not contiguous: save "
                        "numpy.ascontiguousarray of it",
                        file->name, description);
    size_t bytes = ditto_tensor_bytes(spec);
    if (file->bytes < header->data_offset || file->bytes - header->data_offset < bytes)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is %s, %zu bytes from offset %zu on, but ends at offset %llu",
                        file->name, description, bytes, header->data_offset, (unsigned long long)file->bytes);
    return DITTO_OK;
}

static ditto_status add_array(struct npy_dataset *n, uint32_t k, char *text)
{
    struct dti_npy_header header;
    const struct dti_file *file = &n->files.file[k];
    DTI_TRY(read_header(&n->files, k, text, &header));
    DTI_TRY(check_array(file, &header));
    uint64_t rows = header.spec.shape[0];
    if (k > 0 && rows != n->counted.rows)
        return DTI_FAIL(DITTO_ERR_SHAPE, "%s has %llu rows, but %s has %llu", file->name,
                        (unsigned long long)rows, n->files.file[0].name, (unsigned long long)n->counted.rows);
    n->counted.rows = rows;
    n->array[k].data_offset = header.data_offset;
    n->array[k].swap = header.swap;
    ditto_tensor row = { .dtype = header.spec.dtype, .rank = header.spec.rank - 1 };
    memcpy(row.shape, &header.spec.shape[1], row.rank * sizeof row.shape[0]);
    return dti_dataset_set_component(&n->counted.base, k, &row);
}

static ditto_status prepare(struct npy_dataset *n, const char *const *names, uint32_t components)
{
    n->counted.base.row_words = 1;
    n->counted.base.components = components;
    n->counted.base.files = 1; /* a row needs all files, so they count as one */
    n->counted.base.by_file = true;
    DTI_TRY(dti_files_create(&n->files, &(ditto_files){ .names = names, .num_names = components }));
    char *text = malloc(DTI_NPY_HEADER_BYTES);
    if (text == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the header of an .npy file");
    ditto_status status = DITTO_OK;
    for (uint32_t k = 0; k < components && status == DITTO_OK; k++)
        status = add_array(n, k, text);
    free(text);
    return status;
}

ditto_status dti_npy_create(const char *const *names, uint32_t components, ditto_dataset **out)
{
    for (uint32_t k = 0; k < components; k++)
        if (names[k] == NULL || names[k][0] == '\0')
            return DTI_FAIL(DITTO_ERR_INVALID, "names[%u] is NULL or empty", k);
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct npy_dataset), &npy_kind, NULL, 0, &base));
    struct npy_dataset *n = (struct npy_dataset *)base;
    return dti_dataset_out(base, prepare(n, names, components), out);
}
