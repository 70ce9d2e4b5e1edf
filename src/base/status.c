/* src/base/status.c - one error record per thread. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

_Thread_local const char *dti_public_function = "";
_Thread_local int32_t dti_error_replica = -1;
_Thread_local uint32_t dti_error_serial;
static _Thread_local ditto_error last_error = { .replica = -1, .function = "" };

void dti_fail(ditto_status status, int error_number, const char *format, ...)
{
    int kept_errno = errno;
    va_list arguments;
    dti_error_serial++;
    last_error.status = status;
    last_error.replica = dti_error_replica;
    /* An allocation that failed without a system call of ours: malloc's refusals are all ENOMEM. */
    last_error.system_errno = status == DITTO_ERR_NO_MEMORY && error_number == 0 ? ENOMEM : error_number;
    last_error.user_code = 0;
    last_error.function = dti_public_function;
    va_start(arguments, format);
    int length = vsnprintf(last_error.message, sizeof last_error.message, format, arguments);
    va_end(arguments);
    if (error_number != 0 && length >= 0 && (size_t)length < sizeof last_error.message) {
        char text[128]; /* strerror's own buffer is shared by all threads */
        snprintf(last_error.message + length, sizeof last_error.message - (size_t)length, ": %s",
                 strerror_r(error_number, text, sizeof text));
    }
    errno = kept_errno;
}

const ditto_error *dti_error_get(void)
{
    return &last_error;
}

void dti_error_set(const ditto_error *error)
{
    dti_error_serial++;
    last_error = *error;
}

ditto_status dti_own(ditto_status status)
{
    if (status < 0)
        last_error.function = dti_public_function;
    return status;
}

void dti_error_set_user(int32_t code)
{
    last_error.user_code = code;
}

const ditto_error *ditto_last_error(void)
{
    return &last_error;
}

static const struct {
    ditto_status status;
    const char *name, *sentence;
} texts[] = {
#define ROW(name, value, sentence) { name, #name, sentence },
    DITTO_STATUS_LIST(ROW)
#undef ROW
};

const char *ditto_status_name(ditto_status status)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return texts[i].name;
    return "unknown status";
}

const char *ditto_status_sentence(ditto_status status)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return texts[i].sentence;
    return "unknown status";
}

const char *ditto_version(void)
{
    return STRING(DITTO_VERSION_MAJOR) "." STRING(DITTO_VERSION_MINOR) "." STRING(DITTO_VERSION_PATCH);
}
