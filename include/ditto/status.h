/* include/ditto/status.h - what every call returns, and the message that explains an error. */
#ifndef DITTO_STATUS_H
#define DITTO_STATUS_H

#include <ditto/api.h>

DITTO_BEGIN

/** @defgroup ditto_status_group Statuses and errors
 *
 *  A call returns DITTO_OK (0), a positive status that is not an error, or an error (negative). Outputs are
 *  set only on DITTO_OK, unless a function says otherwise. errno is left unchanged.
 *
 *  The message of an error is written once, where its cause is known, into the record of the calling thread.
 *  It says what was asked for, what was found, and what to do. The library never prints or exits. The only
 *  exception is described below, under "Functions of the program".
 *  @{ */

/** Every status with its name, value and sentence. The enum and the texts are made from this one list, so
 *  they always agree. */
#define DITTO_STATUS_LIST(X)                                                                 \
    X(DITTO_OK, 0, "done")                                                                   \
    X(DITTO_END_OF_INPUT, 1, "the input has no more batches")                                \
    X(DITTO_PENDING, 2, "not finished yet")                                                  \
    X(DITTO_ERR_INVALID, -1, "an argument makes no sense")                                   \
    X(DITTO_ERR_RANGE, -2, "a number is outside its documented range")                       \
    X(DITTO_ERR_SHAPE, -3, "dimensions do not fit")                                          \
    X(DITTO_ERR_CONTEXT, -4, "called in the wrong context, on the wrong thread or strategy") \
    X(DITTO_ERR_DIVERGED, -5, "replicas called different things")                            \
    X(DITTO_ERR_PEER_STOPPED, -6, "another replica failed")                                  \
    X(DITTO_ERR_TIMED_OUT, -7, "a replica did not arrive in time")                           \
    X(DITTO_ERR_POISONED, -8, "a replica never returned: only destroy is allowed")           \
    X(DITTO_ERR_BUSY, -9, "still in use")                                                    \
    X(DITTO_ERR_CLOSED, -10, "already closed")                                               \
    X(DITTO_ERR_FORKED, -11, "created before fork, and not usable in the child process")     \
    X(DITTO_ERR_UNSUPPORTED, -12, "not supported")                                           \
    X(DITTO_ERR_NOT_FOUND, -13, "no such file or name")                                      \
    X(DITTO_ERR_IO, -14, "a file or device failed")                                          \
    X(DITTO_ERR_CORRUPT, -15, "data fails its check")                                        \
    X(DITTO_ERR_NO_MEMORY, -16, "memory could not be allocated")                             \
    X(DITTO_ERR_SYSTEM, -17, "the operating system refused")                                 \
    X(DITTO_ERR_USER, -18, "the caller's own function failed")                               \
    X(DITTO_ERR_LOST, -19, "a host of the cluster is gone")                                  \
    X(DITTO_ERR_CANCELLED, -20, "cancelled")

/** What a call returns. The members are those of DITTO_STATUS_LIST. */
typedef enum ditto_status {
#define DITTO_STATUS_MEMBER(name, value, sentence) name = value,
    DITTO_STATUS_LIST(DITTO_STATUS_MEMBER)
#undef DITTO_STATUS_MEMBER
} ditto_status;

/** The last error of a thread. */
typedef struct ditto_error {
    ditto_status status; /**< the error; DITTO_OK if nothing has failed yet */
    int32_t replica;     /**< id of the replica that failed; -1 if none did */

    /** errno of the system call that failed, or 0 if none did. With DITTO_ERR_NO_MEMORY it is never 0. It is
     *  then the error of the kernel, or ENOMEM. */
    int32_t system_errno;

    int32_t user_code; /**< with DITTO_ERR_USER: the code given to ditto_fail, or 0 */

    /** The public function that failed: the innermost one that the program had called. For example:
     *   - "ditto_all_reduce" if a replica's function calls ditto_all_reduce, which fails,
     *   - "ditto_fail" if a replica's function returns `ditto_fail(self, 7, "...")`,
     *   - "ditto_strategy_run" if a replica's function returns DITTO_ERR_IO of its own. */
    const char *function;

    /** One line, without a newline. After an error it is empty only if ditto_fail was given an empty text.
     *  "..." marks where a long text was cut. */
    char message[512];
} ditto_error;

/** Returns the calling thread's last error. If ditto_strategy_run has failed, this is the error of the
 *  replica that failed first. A call that succeeds does not change it.
 *
 *  @return the error, never NULL. If nothing has failed yet, its status is DITTO_OK and its message is empty
 *  @par Ownership
 *  The record belongs to the library. It is valid on this thread, and unchanged until the thread's next call
 *  of ditto that fails, or of ditto_fail. */
DITTO_API const ditto_error *ditto_last_error(void);

/** Returns the name of a status, for example "DITTO_ERR_RANGE".
 *
 *  @param status  the status
 *  @return a constant string; "unknown status" if status is not a value of the enum
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API const char *ditto_status_name(ditto_status status);

/** Calls a function, and returns its status from the surrounding function unless it is DITTO_OK. */
#define DITTO_TRY(call)                          \
    do {                                         \
        ditto_status ditto_try_status_ = (call); \
        if (ditto_try_status_ != DITTO_OK)       \
            return ditto_try_status_;            \
    } while (0)

/** @} */

/** @defgroup ditto_user_functions Functions of the program
 *
 *  A function of the program that ditto calls must be left by returning from it. Otherwise locks would not be
 *  released, and other threads would wait for ever. This holds for every function pointer that is given to
 *  ditto, in options too.
 *
 *  If a C++ exception leaves such a function, the process ends, even if the program has a handler around its
 *  call of ditto. One line on stderr names the function, and std::terminate is called. If pthread_exit or
 *  pthread_cancel unwinds the function, abort is called after this line. A longjmp out of the function is not
 *  detected, and its behaviour is undefined.
 *
 *  No function of ditto is a cancellation point. A thread that pthread_cancel shall end is ended at its first
 *  cancellation point after the call. This also holds for the functions of the program that a run calls, and
 *  for all others that are called outside replica context, unless they enable cancellation themselves; but on
 *  the default replica, outside of runs, a function that a call with `self` calls may be ended as by abort. A
 *  thread that calls ditto must not have the cancellation type PTHREAD_CANCEL_ASYNCHRONOUS.
 *
 *  A function that returns a status returns DITTO_OK or an error. A positive status means:
 *   - ditto_replica_fn: no replica is stopped, and the run returns the status (ditto_strategy_run).
 *   - ditto_device_fn and ditto_range_fn: the same as DITTO_OK.
 *   - ditto_generator.next and ditto_reduce_fn: DITTO_END_OF_INPUT ends the rows. Every other positive status
 *     is the error DITTO_ERR_USER.
 *   - All others: the error DITTO_ERR_USER. */

DITTO_END
#endif
