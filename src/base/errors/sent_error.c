/* src/base/errors/sent_error.c - writes and reads errors as bytes. See sent_error.h. */
#include "base/errors/sent_error.h"
#include "base/errors/status.h"

#include <string.h>

struct sent_error {
    int32_t replica, system_errno, user_code, unused;
    char message[sizeof((ditto_error *)0)->message];
};

void dti_bytes_put_status(struct dti_bytes *to, ditto_status status)
{
    int64_t number = status; /* negative if it is an error */
    dti_bytes_put(to, &number, sizeof number);
    if (status >= 0)
        return;
    const ditto_error *error = dti_error_get();
    struct sent_error sent = { .replica = error->replica,
                               .system_errno = error->system_errno,
                               .user_code = error->user_code };
    memcpy(sent.message, error->message, sizeof sent.message);
    dti_bytes_put(to, &sent, sizeof sent);
}

ditto_status dti_bytes_get_status(struct dti_bytes_reader *from, uint32_t host, const char *name)
{
    int64_t number = 0;
    struct sent_error sent = { .replica = -1 };
    dti_bytes_get(from, &number, sizeof number);
    if (number < 0)
        dti_bytes_get(from, &sent, sizeof sent);
    DTI_TRY(dti_bytes_reader_status(from));
    ditto_error error = { .status = (ditto_status)number,
                          .function = dti_public_function,
                          .replica = sent.replica,
                          .system_errno = sent.system_errno,
                          .user_code = sent.user_code };
    if (number >= 0)
        return error.status;
    memcpy(error.message, sent.message, sizeof error.message);
    error.message[sizeof error.message - 1] = '\0';
    dti_error_set(&error);
    return dti_where(error.status, "host %u (%s)", host, name);
}
