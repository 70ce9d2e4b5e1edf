/* src/base/errors/status.c - one error record per thread. */
#include "base/errors/status.h"
#include "base/text/text.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

/* In one cache line, because each call reads and writes several members. */
static _Thread_local alignas(DTI_CACHE_LINE) struct dti_thread thread = { .function = "", .replica = -1 };
static _Thread_local ditto_error last_error = { .replica = -1, .function = "" };

struct dti_thread *dti_this_thread(void)
{
    return &thread;
}

void dti_vfail(ditto_status status, int error_number, const char *format, va_list arguments)
{
    int kept_errno = errno;
    char reason[128] = "", text[120]; /* all threads share the buffer of strerror */
    /* The new message is built in a copy, because the arguments may refer to the record. A caller that adds
     * words to the message of an error passes that message as an argument. */
    char message[sizeof last_error.message];
    if (error_number != 0)
        snprintf(reason, sizeof reason, ": %s", strerror_r(error_number, text, sizeof text));
    dti_this_thread()->errors++;
    last_error.status = status;
    last_error.replica = dti_this_thread()->replica;
    /* If an allocation failed without a system call of the library, the errno is that of malloc. */
    last_error.system_errno = status == DITTO_ERR_NO_MEMORY && error_number == 0 ? ENOMEM : error_number;
    last_error.user_code = 0;
    last_error.function = dti_this_thread()->function;
    dti_format(message, sizeof message - strlen(reason), format, arguments);
    memcpy(message + strlen(message), reason, strlen(reason) + 1); /* dti_format left space for it */
    memcpy(last_error.message, message, strlen(message) + 1);
    errno = kept_errno;
}

void dti_fail(ditto_status status, int error_number, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    dti_vfail(status, error_number, format, arguments);
    va_end(arguments);
}

ditto_status dti_where(ditto_status status, const char *format, ...)
{
    char where[80];
    va_list arguments;
    ditto_error error = last_error;
    va_start(arguments, format);
    dti_format(where, sizeof where, format, arguments);
    va_end(arguments);
    dti_fail(status, 0, "%s: %s", where, error.message);
    last_error.replica = error.replica;
    last_error.system_errno = error.system_errno;
    last_error.user_code = error.user_code;
    last_error.function = error.function;
    return status;
}

const ditto_error *dti_error_get(void)
{
    return &last_error;
}

bool dti_wrote_record(ditto_status status, uint32_t serial_before)
{
    return dti_this_thread()->errors != serial_before && last_error.status == status;
}

void dti_error_set(const ditto_error *error)
{
    dti_this_thread()->errors++;
    last_error = *error;
}

ditto_status dti_own(ditto_status status)
{
    if (status < 0)
        last_error.function = dti_this_thread()->function;
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
    const char *name;
} texts[] = {
#define ROW(name, value, sentence) { name, #name },
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

bool dti_status_is_error(int32_t status)
{
    size_t i = 0;
    while (i < sizeof texts / sizeof texts[0] && (int32_t)texts[i].status != status)
        i++;
    return status < 0 && i < sizeof texts / sizeof texts[0];
}

const char *ditto_version(void)
{
    return STRING(DITTO_VERSION_MAJOR) "." STRING(DITTO_VERSION_MINOR) "." STRING(DITTO_VERSION_PATCH);
}
