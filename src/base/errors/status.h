/* src/base/errors/status.h - writes the error record of the calling thread.
 *
 * Every function here may be called by any thread. Each thread has its own record. */
#ifndef DTI_STATUS_H
#define DTI_STATUS_H

#include <ditto/status.h>

#include "base/observe.h"
#include "base/platform.h"

#include <pthread.h>
#include <stdarg.h>

/* Writes the error record and evaluates to `status`, so that `return DTI_FAIL(...)` is one line. errno does
 * not change. */
#define DTI_FAIL(status, ...) (dti_fail((status), 0, __VA_ARGS__), dti_status_same(status))

/* The same for a system call that failed. It records the errno and adds its text to the message. */
#define DTI_FAIL_ERRNO(status, error_number, ...) \
    (dti_fail((status), (error_number), __VA_ARGS__), dti_status_same(status))

/* Returns `status`. It shows static analysers which value DTI_FAIL has. */
static inline ditto_status dti_status_same(ditto_status status)
{
    return status;
}
DTI_COMPANION void dti_fail(ditto_status status, int error_number, const char *format, ...)
    DITTO_PRINTF(3, 4);

void dti_vfail(ditto_status status, int error_number, const char *format, va_list arguments)
    DITTO_PRINTF(3, 0);

/* Returns from the calling function if `call` fails. The message has been written where the cause is
 * known. */
#define DTI_TRY(call) DITTO_TRY(call)

/* The same for a check of one item among several. The message then begins with the name of the item, as in
 * DTI_TRY_OF(check(&arguments[k]), "arguments[%u]", k). */
#define DTI_TRY_OF(call, ...)                                 \
    do {                                                      \
        ditto_status dti_try_status_ = (call);                \
        if (__builtin_expect(dti_try_status_ != DITTO_OK, 0)) \
            return dti_where(dti_try_status_, __VA_ARGS__);   \
    } while (0)

/* Puts the formatted text before the message of the last failure, and returns `status`. */
ditto_status dti_where(ditto_status status, const char *format, ...) DITTO_PRINTF(2, 3);

/* What the library keeps of a thread. The members of src/replicas are here too, because each further
 * thread-local variable would cost a call in every function that uses it. */
struct dti_thread {
    /* The public function that the thread is in, for ditto_error.function. It is the innermost one that the
     * user's code has called. On a thread that is in no public function it is the last one, or "". A thread
     * that works for a call on another thread (a replica, a helper) takes the caller's name with
     * dti_public_enter while it does so. */
    const char *function;

    /* The replica whose function this thread runs, or for which it records an error, or -1. */
    int32_t replica;

    /* Counts the records that this thread has written, which distinguishes a new record from an old one. */
    uint32_t errors;

    /* The members below belong to src/replicas (context.h). */

    struct dti_frame *frame; /* the top frame; NULL outside every scope and run */

    /* The replica of the default strategy, for a thread that is in no scope and no run, and its handle.
     * src/strategy creates it when the thread first asks for it. */
    struct dti_replica *plain_replica;
    const struct ditto_replica *plain_self;
};

/* Returns the state of the calling thread. In a shared library each access to a thread-local variable is a
 * call, and compilers do not combine several of them. They combine calls of this function, because it is
 * const. */
DTI_COMPANION struct dti_thread *dti_this_thread(void) __attribute__((const, nothrow));

/* Returns the name of the outer function, for dti_public_leave. */
static inline const char *dti_public_enter(const char *name)
{
    const char *outer = dti_this_thread()->function;
    dti_this_thread()->function = name;
    return outer;
}
static inline void dti_public_leave(const char *const *outer)
{
    dti_this_thread()->function = *outer;
}

/* The calling thread is not cancelled until the end of the block, because a thread that pthread_cancel ends
 * inside the library would leave locks held, here or in hwloc, and files open. A request waits, and takes
 * effect at the thread's next cancellation point after the block. Functions of the user that are called in
 * the block have cancellation disabled too. */
#define DTI_UNCANCELLED() \
    __attribute__((cleanup(dti_cancel_restore), unused)) int cancel_state_ = dti_cancel_disable()
static inline int dti_cancel_disable(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static inline void dti_cancel_restore(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* Stands at the beginning of each function in api_*.c that can fail with a message. It sets the name that
 * errors report. The name stays when the function has returned. To restore the former name would cost too
 * much in each call, and only a caller inside the library would notice the difference. DTI_OWN restores it
 * for such a caller, and DTI_GUARD restores it after a call of the user's function. */
#define DTI_ENTER()      \
    DTI_ENTER_QUICKLY(); \
    DTI_UNCANCELLED()

/* The same for functions that take `self`, and for others that a loop calls for each item, which have no time
 * for two more calls. What they do outside a run contains no cancellation point, except in blocks with
 * DTI_UNCANCELLED and in functions of the user, for example of ditto_parallel_for on the default replica. In
 * a run cancellation is disabled, unless the user's function has enabled it. Where a function of the user is
 * ended, the frame of DTI_GUARD ends the process. */
#define DTI_ENTER_QUICKLY() (dti_this_thread()->function = __func__)

/* Calls a public function from inside the library, and evaluates to its status. If it fails, the record names
 * the public function that the user called, and not the inner one. */
#define DTI_OWN(call)                                            \
    __extension__({                                              \
        const char *own_function_ = dti_this_thread()->function; \
        ditto_status own_status_ = (call);                       \
        dti_this_thread()->function = own_function_;             \
        dti_own(own_status_);                                    \
    })

/* If `status` is an error, makes this thread's record name the public function that the user called. The
 * failure may have been recorded by another call, or copied from another thread. Returns `status`. */
DTI_COMPANION ditto_status dti_own(ditto_status status);

/* Returns true if this thread has written a record since `errors` of its struct dti_thread was serial_before,
 * and the last one has this status. A function of the user may return an error without a record. */
bool dti_wrote_record(ditto_status status, uint32_t serial_before);

/* Returns the record of this thread. */
const ditto_error *dti_error_get(void);

/* Replaces the record of this thread by the record of another thread. */
DTI_COMPANION void dti_error_set(const ditto_error *error);

/* Returns true if it is the number of an error. Numbers of other processes may be anything. */
bool dti_status_is_error(int32_t status);

/* Sets the user's code in the record of a DITTO_ERR_USER that was just written. */
void dti_error_set_user(int32_t code);

#endif
