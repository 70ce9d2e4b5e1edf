/* src/input/sources/files/signature.c - the signatures of formats. */
#include "input/sources/files/signature.h"
#include "base/errors/status.h"

#include <ctype.h>
#include <string.h>

#define UNPACK     "unpack it before it is read"
#define HTML       "an HTML page, as a failed download leaves it: download the file again"
#define OTHER_TEXT "text in UTF-16 or UTF-32: convert it to UTF-8, for example with iconv"

static const struct {
    const char *bytes;
    size_t length;
    bool in_text; /* also looked for in sources of text, because no text begins with these bytes */
    const char *what;
} signatures[] = {
#define BYTES(literal) literal, sizeof(literal) - 1
    { BYTES("\x1f\x8b\b"), true,
      "a gzip file: set the option `compression` of a source of text, CSV or TFRecord, or " UNPACK },
    { BYTES("x\x01"), false, "compressed by zlib: " UNPACK },
    { BYTES("x\x9c"), false, "compressed by zlib: " UNPACK },
    { BYTES("x\xda"), false, "compressed by zlib: " UNPACK },
    { BYTES("BZh91AY&SY"), false, "compressed by bzip2: " UNPACK },
    { BYTES("\xfd"
            "7zXZ"),
      true, "compressed by xz: " UNPACK },
    { BYTES("(\xb5/\xfd"), true, "compressed by zstd: " UNPACK },
    { BYTES("PK\3\4"), true, "a zip archive, as .npz and .xlsx are: unpack it, and read the files in it" },
    { BYTES("\xff\xfe"), true, OTHER_TEXT },
    { BYTES("\xfe\xff"), true, OTHER_TEXT },
    { BYTES("\x93NUMPY"), true, "a .npy file: read it with ditto_dataset_from_npy" },
    { BYTES("\x89HDF\r\n"), true,
      "an HDF5 file: write its data in a format that ditto_dataset_from_... reads" },
    { BYTES("PAR1\x15"), false,
      "a Parquet file: write its data in a format that ditto_dataset_from_... reads" },
    { BYTES("version https://git-lfs"), true,
      "a Git LFS pointer in the place of the file: get the file with `git lfs pull`" },
    { BYTES("<!DOCTYPE html"), false, HTML },
    { BYTES("<!doctype html"), false, HTML },
    { BYTES("<html"), false, HTML },
#undef BYTES
};

/* Returns true for ASCII text in UTF-16 without a byte order mark: every second byte is 0, and the others are
 * characters. Four of them are enough, because eight such bytes are no length of a TFRecord. */
static bool is_wide(const char *bytes, size_t length)
{
    size_t pairs = (length < 16 ? length : 16) / 2, zero = bytes[0] == '\0' ? 0 : 1;
    for (size_t i = 0; i < pairs; i++) {
        unsigned char character = (unsigned char)bytes[2 * i + (1 - zero)];
        if (bytes[2 * i + zero] != '\0' || character > '~' || (character < ' ' && !isspace(character)))
            return false;
    }
    return pairs >= 4;
}

const char *dti_signature_find(const char *bytes, size_t length, bool in_text)
{
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++)
        if (length >= signatures[i].length && memcmp(bytes, signatures[i].bytes, signatures[i].length) == 0 &&
            (signatures[i].in_text || !in_text))
            return signatures[i].what;
    return length > 0 && is_wide(bytes, length) ? OTHER_TEXT : NULL;
}

const char *dti_signature_of_file(struct dti_files *files, uint32_t file)
{
    char bytes[DTI_SIGNATURE_BYTES];
    size_t got;
    ditto_error error = *dti_error_get();
    ditto_status status = dti_files_read(files, file, 0, bytes, sizeof bytes, &got);
    dti_error_set(&error);
    return status == DITTO_OK ? dti_signature_find(bytes, got, false) : NULL;
}
