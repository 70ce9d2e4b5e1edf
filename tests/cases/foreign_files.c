/* tests/cases/foreign_files.c - files that other programs write. Some could be read. Of the others, the
 * message does not say what is wrong with them. */
#include "cases.h"

#include <string.h>
#include <unistd.h>

#define NPY(dtype, order, shape) \
    "\x93NUMPY\1\0\x76\0{'descr': " dtype ", 'fortran_order': " order ", 'shape': " shape ", }"

static const struct sample {
    const char *what, *bytes;
    size_t length; /* 0: that of the text */
    ditto_dtype second_column;
    const char *message; /* what the message should have; NULL: the file should be read */
} samples[] = {
    { "pandas.csv", "1,True\n2,False\n", 0, DITTO_BOOL, NULL },
    { "r.csv", "1,TRUE\n2,FALSE\n", 0, DITTO_BOOL, NULL },
    { "pandas_integers.csv", "1,31.0\n2,40.0\n", 0, DITTO_I64, NULL },
    { "pandas_nan.csv", "1,0.5\n2,nan\n", 0, DITTO_F64, NULL },
    { "r_missing.csv", "1,0.5\n2,NA\n", 0, DITTO_F64, NULL },
    { "utf16.csv",
      "\xff\xfe"
      "1\0,\0"
      "2\0\n",
      10, DITTO_F64, "UTF-16" },
    { "old_mac.csv", "1,2\r3,4\r", 0, DITTO_F64, "carriage return" },
    { "preallocated.csv", "1,2\n\0\0\0\0", 8, DITTO_F64, "NUL" },
    { "packed.csv", "\x1f\x8b\b\0\0\0\0\0\0\3", 10, DITTO_F64, "gzip" },
    { "packed.tfrecord", "\x1f\x8b\b\0\0\0\0\0\0\3\0\0\0\0\0\0", 16, 0, "gzip" },
    { "zlib.tfrecord", "x\x9c\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 0, "zlib" },
    { "page.tfrecord", "<!DOCTYPE html><html><head><title>Virus scan", 0, 0, "not a TFRecord file" },
    { "lfs.tfrecord", "version https://git-lfs.github.com/spec/v1\n", 0, 0, "not a TFRecord file" },
    { "numpy2.npy", NPY("'|u1'", "False", "(np.int64(2), np.int64(3))"), 0, 0, NULL },
    { "fortran_column.npy", NPY("'|u1'", "True", "(6, 1)"), 0, 0, NULL },
    { "fortran_row.npy", NPY("'|u1'", "True", "(1, 6)"), 0, 0, NULL },
    { "ml_dtypes.npy", NPY("'<V2'", "False", "(2,)"), 0, 0, "bf16" },
    { "struct.npy", NPY("[('x', '<f4'), ('y', '<f4')]", "False", "(2,)"), 0, 0, "'<f4')]: ditto" },
    { "archive.npz.npy", "PK\3\4\24\0\0\0\b\0", 10, 0, ".npz" },
};

static ditto_status ignore(const ditto_tensor *row, void *unused)
{
    (void)row, (void)unused;
    return DITTO_OK;
}

static ditto_status open_file(const struct sample *s, const char *path, ditto_dataset **out)
{
    ditto_files files = { .names = &path, .num_names = 1 };
    ditto_csv_component columns[] = { { 0, 1, DITTO_F64, 0, 0, 0 }, { 1, 1, s->second_column, 0, 0, 0 } };
    columns[1].missing = DITTO_CSV_MISSING_VALUE;
    if (strstr(s->what, ".csv") != NULL)
        return ditto_dataset_from_csv(&files, columns, 2, NULL, out);
    if (strstr(s->what, ".tfrecord") != NULL)
        return ditto_dataset_from_tfrecord(&files, NULL, out);
    return ditto_dataset_from_npy(&path, 1, out);
}

/* Writes the sample to a file. The header of .npy is filled up to 128 bytes, and 6 bytes of data follow. */
static void write_sample(const struct sample *s, const char *path)
{
    char npy[135];
    size_t length = s->length != 0 ? s->length : strlen(s->bytes);
    FILE *file = fopen(path, "w");
    const char *bytes = s->bytes;
    if (s->length == 0 && strstr(s->what, ".npy") != NULL) {
        length = (size_t)snprintf(npy + 10, sizeof npy - 10, "%-117s\nabcdef", bytes + 10) + 10;
        bytes = memcpy(npy, bytes, 10);
    }
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
        exit(NOT_TRIED);
}

int main(void)
{
    char path[] = "/tmp/ditto-case-XXXXXX";
    int wrong = 0;
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        ditto_dataset *dataset;
        write_sample(s, path);
        ditto_status status = open_file(s, path, &dataset);
        if (status == DITTO_OK) {
            status = ditto_dataset_reduce(dataset, ignore, NULL, 0);
            MUST(ditto_dataset_destroy(dataset));
        }
        int right = s->message == NULL
                        ? status == DITTO_OK
                        : status < 0 && strstr(ditto_last_error()->message, s->message) != NULL;
        wrong += !right;
        printf("%s, %s: %s\n", right ? "right" : "wrong", s->what,
               status < 0 ? ditto_last_error()->message : "is read");
    }
    unlink(path);
    return wrong == 0 ? RIGHT : WRONG;
}
