/* src/input/sources/files/file_row.h - rows that are positions in files. Many of them are read with few
 * system calls. */
#ifndef DTI_FILE_ROW_H
#define DTI_FILE_ROW_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

/* A row has the words that dti_file_row_put writes. */
#define DTI_FILE_ROW_WORDS 3
struct dti_file_row {
    uint64_t offset;
    uint32_t file, bytes;

    /* The number of the line or record in its file, from 1. It is for messages. */
    uint64_t number;
};
static inline void dti_file_row_put(uint64_t *row, struct dti_file_row file_row)
{
    row[0] = file_row.offset;
    row[1] = (uint64_t)file_row.file << 32 | file_row.bytes;
    row[2] = file_row.number;
}
static inline struct dti_file_row dti_file_row_get(const uint64_t *row)
{
    return (struct dti_file_row){ row[0], (uint32_t)(row[1] >> 32), (uint32_t)row[1], row[2] };
}

/* Reads a row of a state, which another program may have saved, or which is damaged. Returns
 * DITTO_ERR_CORRUPT if the row is in no file of the list, at an offset that no file has, or longer than
 * `most_bytes`. */
ditto_status dti_file_row_load(const struct dti_files *files, uint64_t most_bytes, uint64_t *row,
                               struct dti_bytes_reader *from);

/* Fails with DITTO_ERR_CORRUPT and a message that describes the row. For rows that a source cannot have. */
ditto_status dti_file_row_refuse(const struct dti_files *files, struct dti_file_row file_row);

/* Parses the bytes of one row and writes row `index` of the destination. */
typedef ditto_status dti_file_row_parse(const ditto_dataset *dataset, struct dti_file_row file_row,
                                        const char *bytes, size_t index, void *const *destination,
                                        void *scratch);

/* Reads rows and parses one after the other. One system call reads rows that lie close together in a file.
 * The parser may also read `after` bytes behind each row. `what` is "line" or "record", for messages. */
ditto_status dti_file_rows_fill(const ditto_dataset *dataset, struct dti_files *files,
                                struct dti_reader *reader, struct dti_rows rows, size_t count, size_t after,
                                const char *what, dti_file_row_parse *parse, void *const *destination,
                                void *scratch);

/* Writes "data.csv:7" for lines, and "data.tfrecord: record 7 at offset 1234" for others. */
void dti_file_row_where(const struct dti_files *files, struct dti_file_row file_row, const char *what,
                        struct dti_text *text);

#endif
