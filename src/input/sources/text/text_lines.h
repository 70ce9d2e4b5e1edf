/* src/input/sources/text/text_lines.h - the part that sources of text lines and of CSV rows share. A CSV row
 * may span several lines. A cursor finds where rows begin and end, by looking for line ends and quotes. The
 * rows of plain files are parsed when batches are filled. Compressed files cannot be read at a position, so
 * the cursor parses their rows, and each row holds its values. */
#ifndef DTI_TEXT_LINES_H
#define DTI_TEXT_LINES_H

#include "input/sources/files/file_row.h"
#include "input/sources/files/window.h"

/* The most bytes of a row that a cursor accepts, unless most_bytes is larger. A longer row may have no
 * end. */
#define DTI_TEXT_LINE_MOST_BYTES ((uint64_t)16 << 20)

/* The dataset of such a kind begins with this struct. */
struct dti_text_lines {
    /* The first member. dti_text_lines_finish sets its row_words, files and holds. */
    ditto_dataset base;
    struct dti_files files; /* from dti_files_create */
    bool packed;            /* the files are compressed */
    dti_file_row_parse *parse;

    /* The lines to skip at the start of each file. Quotes in them do not count. */
    uint64_t skip_lines;

    /* The most bytes of a row without its line end, below 2^31. If it is below DTI_TEXT_LINE_MOST_BYTES, the
     * cursor accepts longer rows, and the kind's parser checks it. */
    uint64_t most_bytes;
    const char *row_word; /* for a row in messages: "line" or "row" */

    /* True if a line end in quotes does not end the row. */
    bool quotes;

    /* True if lines that are empty or have only spaces and tabs are not rows. */
    bool passes_blank;

    /* A line that contains the delimiter is not blank. */
    char delimiter;
};

/* The cursor of such a kind. */
struct dti_text_lines_cursor {
    struct dti_cursor base; /* first */
    const struct dti_text_lines *lines;
    struct dti_window window;
    uint64_t line; /* number of the next line in its file, from 1 */
};

/* Makes the list of files of a dataset whose other members are set, and finds its first row. Returns
 * DITTO_ERR_INVALID if none of the files has a row, DITTO_ERR_CORRUPT if the first row is too long, or a file
 * is not text, DITTO_ERR_UNSUPPORTED if the library was built without zlib, and errors of reading. */
ditto_status dti_text_lines_finish(struct dti_text_lines *lines, const ditto_files *files,
                                   ditto_compression compression);

/* If `status` is DITTO_ERR_CORRUPT, adds to its message what is unusual in the bytes of the row that could
 * not be read, or in its file, if anything is. Returns `status`. */
ditto_status dti_text_lines_explain(const ditto_dataset *dataset, uint32_t file, const char *row,
                                    size_t bytes, ditto_status status);

/* The functions of the kind's table. A kind with its own digest or free function calls these too. */
ditto_status dti_text_lines_open(struct dti_cursor *cursor, const struct dti_pass *pass);
ditto_status dti_text_lines_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
void dti_text_lines_close(struct dti_cursor *cursor);
ditto_status dti_text_lines_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_text_lines_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);
ditto_status dti_text_lines_fill(const ditto_dataset *dataset, struct dti_reader *reader,
                                 struct dti_rows rows, size_t count, void *const *destination);
ditto_status dti_text_lines_save_row(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
ditto_status dti_text_lines_load_row(const ditto_dataset *dataset, uint64_t *row,
                                     struct dti_bytes_reader *from);
void dti_text_lines_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);
void dti_text_lines_digest(const ditto_dataset *dataset, struct dti_bytes *to);
void dti_text_lines_free(ditto_dataset *dataset);

#endif
