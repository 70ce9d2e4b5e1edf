/* src/input/sources/text/text_lines.h - sources whose rows are lines of text files, or rows of CSV files, which may span lines: what both share.
 * The sequencer finds where rows begin and end, and looks for line ends and quotes only; what is in a row is the producers'. */
#ifndef DTI_TEXT_LINES_H
#define DTI_TEXT_LINES_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

#define DTI_TEXT_LINE_MOST_BYTES \
    ((uint64_t)16                \
     << 20) /* that a row may have before it is given up as endless, where no more was asked for */

struct dti_text_lines {     /* a kind's own begins with it */
    ditto_dataset base;     /* first; dti_text_lines_finish sets its row_words and files */
    struct dti_files files; /* dti_files_create */
    uint64_t skip_lines;    /* at the start of each file: lines, whatever quotes are in them */
    uint64_t
        most_bytes; /* of a row, without its end; below 2^31. Up to DTI_TEXT_LINE_MOST_BYTES it is the producers' to see to it */
    const char *row; /* what a row is called in messages */
    bool quotes,
        passes_blank; /* a line end in quotes does not end the row; lines of spaces and tabs are no rows */
    char delimiter;   /* makes no line blank */
};

/* Components are set: the rest of a kind's constructor. INVALID: there is no row in any of the files. CORRUPT: the first is endless. */
ditto_status dti_text_lines_finish(struct dti_text_lines *lines);
/* The files, to read from: datasets are constant, but which of their files are open is not. */
struct dti_files *dti_text_lines_files(const ditto_dataset *dataset);

/* The half of a kind's table that chooses, and where and free. */
ditto_status dti_text_lines_open(const ditto_dataset *dataset, const struct dti_pass *pass,
                                 struct dti_cursor **out);
ditto_status dti_text_lines_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
void dti_text_lines_close(struct dti_cursor *cursor);
ditto_status dti_text_lines_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_text_lines_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);
void dti_text_lines_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);
void dti_text_lines_digest(const ditto_dataset *dataset,
                           struct dti_bytes *to); /* a kind's own calls it first */
void dti_text_lines_free(ditto_dataset *dataset);

#endif
