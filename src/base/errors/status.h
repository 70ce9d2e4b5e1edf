/* src/base/errors/status.h - writing the calling thread's error record. */
#ifndef DTI_STATUS_H
#define DTI_STATUS_H

#include "base/platform.h"
#include <ditto/status.h>

#include "base/observe.h"

#include <stdarg.h>

/* -- Any thread; each writes its own record only -- */

/* Fill the record and return `status`, so that `return DTI_FAIL(...)` is one line. errno is kept as it is. */
#define DTI_FAIL(status, ...) (dti_fail((status), 0, __VA_ARGS__), dti_status_same(status))
/* The same when a system call failed: keeps its errno and adds its text to the message. */
#define DTI_FAIL_ERRNO(status, error_number, ...) \
    (dti_fail((status), (error_number), __VA_ARGS__), dti_status_same(status))
static inline ditto_status dti_status_same(
    ditto_status status) /* so that a reader, and an analyser, sees what is returned */
{
    return status;
}
DTI_COMPANION void dti_fail(ditto_status status, int error_number, const char *format, ...)
    DITTO_PRINTF(3, 4);

void dti_vfail(ditto_status status, int error_number, const char *format, va_list arguments)
    DITTO_PRINTF(3, 0);

#define DTI_TRY(call) \
    DITTO_TRY(call) /* forwards the status: the message was written where the cause is known */

/* The same for a check of one thing of several. The message then begins with the thing that was checked, as
 * in DTI_TRY_OF(check(&arguments[k]), "arguments[%u]", k). */
#define DTI_TRY_OF(call, ...)                                 \
    do {                                                      \
        ditto_status dti_try_status_ = (call);                \
        if (__builtin_expect(dti_try_status_ != DITTO_OK, 0)) \
            return dti_where(dti_try_status_, __VA_ARGS__);   \
    } while (0)
ditto_status dti_where(ditto_status status, const char *format, ...) DITTO_PRINTF(2, 3);

/* The public function that the thread is in, for ditto_error.function: the innermost one that the user's
 * code called. On a thread that is in none it is the last one, or "". A thread that works for a call on another thread (a
 * replica, a helper) takes the caller's name with dti_public_enter for as long as it does. */
extern DTI_COMPANION _Thread_local const char *dti_public_function;

/* Returns the name of the outer function, for dti_public_leave. */
static inline const char *dti_public_enter(const char *name)
{
    const char *outer = dti_public_function;
    dti_public_function = name;
    return outer;
}
static inline void dti_public_leave(const char *const *outer)
{
    dti_public_function = *outer;
}

/* The first line of each function in api_*.c: errors name the function. If calls are counted, this one is. The
 * name stays when the function has returned, because putting the former one back would cost each call more than
 * it is worth: only a caller inside the library would notice. DTI_OWN puts it back, and DTI_GUARD does around a
 * call of the user's function. */
#define DTI_ENTER()                 \
    static struct dti_usage usage_; \
    dti_public_call(__func__, &usage_)
static inline void dti_public_call(const char *name, struct dti_usage *usage)
{
    if (__builtin_expect(atomic_load_explicit(&dti_usage_on, memory_order_relaxed), 0))
        dti_usage_count(usage, name);
    dti_public_function = name;
}

/* The status of a public function that the library itself calls. The record of its failure names the function
 * that the user called, which is the one that the thread is in. */
#define DTI_OWN(call)                                    \
    __extension__({                                      \
        const char *own_function_ = dti_public_function; \
        ditto_status own_status_ = (call);               \
        dti_public_function = own_function_;             \
        dti_own(own_status_);                            \
    })
/* The same of a failure that was recorded before, on another thread or by another call. */
DTI_COMPANION ditto_status dti_own(ditto_status status);

/* Counts the failures that this thread has recorded: tells a fresh record from an old one. */
extern _Thread_local uint32_t dti_error_serial;

/* The replica whose function this thread runs, -1: none. Set by src/replicas alone. */
extern _Thread_local int32_t dti_error_replica;

DTI_COMPANION const ditto_error *dti_error_get(void);
DTI_COMPANION void dti_error_set(const ditto_error *error); /* take over another thread's record */
void dti_error_set_user(int32_t code);                      /* the code of a DITTO_ERR_USER just recorded */

#endif
