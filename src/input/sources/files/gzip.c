/* src/input/sources/files/gzip.c - reads gzip files with zlib. */
#include "input/sources/files/gzip.h"
#include "base/errors/status.h"
#include "input/dataset.h"
#include "input/sources/files/signature.h"

#ifdef DTI_HAVE_ZLIB
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PIECE_BYTES ((size_t)64 << 10) /* the most bytes of one read, and of the output of one inflate */

struct dti_gzip {
    struct dti_files *files;
    const _Atomic uint32_t *closing;
    uint32_t file;
    bool ended;   /* the rest of the contents is in `unpacked` */
    bool between; /* a member has ended, and no byte after it was unpacked */

    /* The number of compressed bytes that were read. The last stream.avail_in of them are not used yet. */
    uint64_t read;
    uint64_t at;         /* offset in the contents of the next byte */
    size_t used, filled; /* unpacked[used, filled) are the bytes from `at` on */
    z_stream stream;
    unsigned char packed[PIECE_BYTES], unpacked[PIECE_BYTES];
};

ditto_status dti_gzip_check(void)
{
    return DITTO_OK;
}

ditto_status dti_gzip_open(struct dti_files *files, const _Atomic uint32_t *closing, struct dti_gzip **out)
{
    struct dti_gzip *g = calloc(1, sizeof *g);
    if (g == NULL || inflateInit2(&g->stream, 15 + 16) != Z_OK) { /* windows of any size, only gzip */
        free(g);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read a compressed file");
    }
    g->files = files;
    g->closing = closing;
    *out = g;
    return DITTO_OK;
}

void dti_gzip_close(struct dti_gzip *g)
{
    if (g != NULL)
        inflateEnd(&g->stream);
    free(g);
}

void dti_gzip_start(struct dti_gzip *g, uint32_t file)
{
    inflateReset(&g->stream);
    g->stream.avail_in = 0;
    g->file = file;
    g->ended = g->between = false;
    g->read = g->at = 0;
    g->used = g->filled = 0;
}

uint64_t dti_gzip_offset(const struct dti_gzip *g)
{
    return g->at;
}

static ditto_status refuse(const struct dti_gzip *g, const char *what)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: %s at offset %llu of the file, %llu of its contents",
                    g->files->file[g->file].name, what, (unsigned long long)(g->read - g->stream.avail_in),
                    (unsigned long long)(g->at + (g->filled - g->used)));
}

/* Reads compressed bytes. On success there is a byte to unpack, or `ended` is set because the file ends after
 * a member. */
static ditto_status read_piece(struct dti_gzip *g)
{
    size_t got;
    DTI_TRY(dti_closing_check(g->closing));
    DTI_TRY(dti_files_read(g->files, g->file, g->read, g->packed, PIECE_BYTES, &got));
    g->read += got;
    g->stream.next_in = g->packed;
    g->stream.avail_in = (uInt)got;
    if (got > 0)
        return DITTO_OK;
    if (!g->between)
        return refuse(g, g->read == 0 ? "an empty file is not a gzip file: it ends"
                                      : "the gzip stream is cut off");
    g->ended = true;
    return DITTO_OK;
}

/* Unpacks up to PIECE_BYTES of the contents to `unpacked`, which is empty. It may still be empty then. */
static ditto_status unpack(struct dti_gzip *g)
{
    if (g->stream.avail_in == 0)
        DTI_TRY(read_piece(g));
    if (g->ended)
        return DITTO_OK;
    if (g->between) /* the bytes that follow must be another member */
        inflateReset(&g->stream);
    bool after_member = g->between;
    g->between = false;
    g->used = g->filled = 0;
    g->stream.next_out = g->unpacked;
    g->stream.avail_out = (uInt)PIECE_BYTES;
    int result = inflate(&g->stream, Z_NO_FLUSH);
    g->filled = PIECE_BYTES - g->stream.avail_out;
    g->between = result == Z_STREAM_END;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR)
        return DITTO_OK; /* Z_BUF_ERROR means that it needs the next piece */
    if (result == Z_MEM_ERROR)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read a compressed file");
    if (g->stream.total_in <= 2 && !after_member) { /* zlib has not even accepted the first two bytes */
        const char *format = dti_signature_of_file(g->files, g->file);
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: there is no gzip stream at offset 0%s%s",
                        g->files->file[g->file].name, format != NULL ? ": the file is " : "",
                        format != NULL ? format : "");
    }
    return refuse(g, after_member ? "the data after the gzip stream is not another gzip stream,"
                                  : "the gzip stream is damaged");
}

ditto_status dti_gzip_read(struct dti_gzip *g, void *to, size_t bytes, size_t *got)
{
    for (*got = 0; *got < bytes;) {
        if (g->used == g->filled && g->ended)
            break;
        if (g->used == g->filled)
            DTI_TRY(unpack(g));
        size_t step = g->filled - g->used < bytes - *got ? g->filled - g->used : bytes - *got;
        memcpy((char *)to + *got, g->unpacked + g->used, step);
        g->used += step;
        g->at += step;
        *got += step;
    }
    return DITTO_OK;
}

#else

ditto_status dti_gzip_check(void)
{
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "compressed files: ditto was built without zlib");
}
ditto_status dti_gzip_open(struct dti_files *files, const _Atomic uint32_t *closing, struct dti_gzip **out)
{
    (void)files, (void)closing, (void)out;
    return dti_gzip_check();
}
void dti_gzip_close(struct dti_gzip *gzip)
{
    (void)gzip;
}
void dti_gzip_start(struct dti_gzip *gzip, uint32_t file)
{
    (void)gzip, (void)file;
}
ditto_status dti_gzip_read(struct dti_gzip *gzip, void *to, size_t bytes, size_t *got)
{
    (void)gzip, (void)to, (void)bytes, (void)got;
    return dti_gzip_check();
}
uint64_t dti_gzip_offset(const struct dti_gzip *gzip)
{
    (void)gzip;
    return 0;
}
#endif
