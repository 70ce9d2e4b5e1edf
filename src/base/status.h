/* src/base/status.h - writing the calling thread's error record. */
#ifndef DTI_STATUS_H
#define DTI_STATUS_H

#include "base/companion.h"
#include <ditto/status.h>

#include "base/usage.h"

/* -- Any thread; each writes its own record only -- */

/* Fill the record and return `status`, so that `return DTI_FAIL(...)` is one line. errno is kept as it is. */
#define DTI_FAIL(status, ...) (dti_fail((status), 0, __VA_ARGS__), dti_same(status))
/* The same when a system call failed: keeps its errno and adds its text to the message. */
#define DTI_FAIL_ERRNO(status, error_number, ...) (dti_fail((status), (error_number), __VA_ARGS__), dti_same(status))
static inline ditto_status dti_same(ditto_status status) /* so that a reader, and an analyser, sees what is returned */
{
    return status;
}
DTI_COMPANION void dti_fail(ditto_status status, int error_number, const char *format, ...) DITTO_PRINTF(3, 4);

#define DTI_TRY(call) DITTO_TRY(call) /* forwards the status: the message was written where the cause is known */

/* Says which public function the thread is in, for ditto_error.function, and counts the call while calls are counted.
 * First line of each function in api_*.c. */
#define DTI_ENTER()                                                                         \
    do {                                                                                    \
        static struct dti_usage usage_;                                                     \
        dti_public_function = __func__;                                                     \
        if (__builtin_expect(atomic_load_explicit(&dti_usage_on, memory_order_relaxed), 0)) \
            dti_usage_count(&usage_, __func__);                                             \
    } while (0)
extern DTI_COMPANION _Thread_local const char *dti_public_function;

/* Counts the failures that this thread has recorded: tells a fresh record from an old one. */
extern _Thread_local uint32_t dti_error_serial;

/* The replica whose function this thread runs, -1: none. Set by src/replicas alone. */
extern _Thread_local int32_t dti_error_replica;

DTI_COMPANION const ditto_error *dti_error_get(void);
DTI_COMPANION void dti_error_set(const ditto_error *error); /* take over another thread's record */
void dti_error_set_user(int32_t code);                      /* the code of a DITTO_ERR_USER just recorded */

#endif
