/* src/base/types/options.c - checks of option structs of any version, of pointers and of flags. */
#include "base/errors/status.h"
#include "base/types/types.h"

#include <string.h>

/* No option struct of any version is larger. A larger struct_size was never set. */
#define MOST_BYTES 4096

static ditto_status read_size(const void *given, const char *type_name, size_t *bytes)
{
    memcpy(bytes, given, sizeof *bytes);
    if (*bytes < sizeof *bytes || *bytes > MOST_BYTES)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s.struct_size is %zu: start from its INIT macro, which sets the size", type_name,
                        *bytes);
    return DITTO_OK;
}

ditto_status dti_options_copy(void *known, size_t known_bytes, const void *given, const char *type_name)
{
    size_t given_bytes = known_bytes;
    memset(known, 0, known_bytes);
    if (given != NULL) {
        DTI_TRY(read_size(given, type_name, &given_bytes));
        for (size_t i = known_bytes; i < given_bytes; i++)
            if (((const unsigned char *)given)[i] != 0)
                return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                                "%s has %zu bytes of which this version knows %zu, and byte %zu is set: "
                                "leave newer fields zero or link a newer ditto",
                                type_name, given_bytes, known_bytes, i);
        memcpy(known, given, given_bytes < known_bytes ? given_bytes : known_bytes);
    }
    memcpy(known, &known_bytes, sizeof known_bytes);
    return DITTO_OK;
}

ditto_status dti_result_check(const void *out, const char *type_name)
{
    size_t bytes;
    DTI_TRY(dti_not_null(out, "out"));
    return read_size(out, type_name, &bytes);
}

void dti_result_store(void *out, const void *found, size_t found_bytes)
{
    size_t bytes;
    memcpy(&bytes, out, sizeof bytes);
    memset(out, 0, bytes);
    memcpy(out, found, bytes < found_bytes ? bytes : found_bytes);
    memcpy(out, &bytes, sizeof bytes);
}

ditto_status dti_fail_null(const char *name)
{
    return DTI_FAIL(DITTO_ERR_INVALID, "%s is NULL", name);
}

ditto_status dti_flags_check(uint32_t flags, uint32_t known, const char *field_name)
{
    if ((flags & ~known) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s has the unknown bit 0x%x: this version knows 0x%x", field_name,
                        flags & ~known, known);
    return DITTO_OK;
}
