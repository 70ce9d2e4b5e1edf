/* src/base/options.h - one rule for every option struct. */
#ifndef DTI_OPTIONS_H
#define DTI_OPTIONS_H

#include "base/companion.h"
#include <ditto/status.h>

/* Copies a caller's option struct (first field: size_t struct_size) into the library's own, of `known_bytes`.
 * NULL gives all defaults; a shorter struct is padded with zeros; a longer one must be zero where we know no field.
 *   DITTO_ERR_INVALID      struct_size was never set (an INIT macro was forgotten)
 *   DITTO_ERR_UNSUPPORTED  the tail that this version does not know is not zero: the caller asks for something newer */
DTI_COMPANION ditto_status dti_options_copy(void *known, size_t known_bytes, const void *given, const char *type_name);

/* DITTO_ERR_INVALID when a pointer that is needed is NULL; `name` is the parameter's. */
DTI_COMPANION ditto_status dti_fail_null(const char *name);
static inline ditto_status dti_not_null(const void *pointer, const char *name)
{
    return __builtin_expect(pointer != NULL, 1) ? DITTO_OK : dti_fail_null(name);
}

/* DITTO_ERR_INVALID when `flags` has a bit outside `known`: refused, never ignored. */
ditto_status dti_flags_check(uint32_t flags, uint32_t known, const char *field_name);

#endif
