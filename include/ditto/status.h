/* include/ditto/status.h - what every call returns, and the one message that explains it.
 *
 * A call returns DITTO_OK (0), news (> 0: nothing went wrong) or an error (< 0). Outputs are set only on DITTO_OK;
 * errno is left as it was. An error's message is written once, where the cause is known, into the calling thread's
 * record: what was asked, what was found, what to do. The library itself never prints or exits, but for one case.
 *
 * A function of yours that ditto calls is left by returning from it. If a C++ exception leaves it, the process ends:
 * one line on stderr says which function it was, and std::terminate is called, also where the program has a handler
 * around its call of ditto. If pthread_exit or pthread_cancel unwinds it, the line is followed by abort. Otherwise
 * locks would stay taken, and other threads would wait for ever. This holds for the functions of runs and steps, of
 * merge_call, of updates, of an optimizer's own rule, of logical devices and ditto_parallel_for, for combine of
 * ditto_all_reduce_with, initialize of variables, the function of ditto_strategy_value_from_function, those of maps,
 * filters, generators and ditto_dataset_reduce, those that make datasets, thread_start and thread_stop, and drop of
 * a queue. A longjmp out of such a function is not noticed, and undefined. */
#ifndef DITTO_STATUS_H
#define DITTO_STATUS_H

#include <ditto/api.h>

DITTO_BEGIN

/** Every status: name, value, sentence. One list makes the enum and the texts, so that they cannot drift apart. */
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
    X(DITTO_ERR_TIMED_OUT, -7, "a replica did not come in time")                             \
    X(DITTO_ERR_POISONED, -8, "a replica never returned: only destroy is allowed")           \
    X(DITTO_ERR_BUSY, -9, "in use by another thread")                                        \
    X(DITTO_ERR_CLOSED, -10, "already closed")                                               \
    X(DITTO_ERR_FORKED, -11, "made before fork: dead in the child process")                  \
    X(DITTO_ERR_UNSUPPORTED, -12, "not supported")                                           \
    X(DITTO_ERR_NOT_FOUND, -13, "no such file or name")                                      \
    X(DITTO_ERR_IO, -14, "a file or device failed")                                          \
    X(DITTO_ERR_CORRUPT, -15, "data fails its check")                                        \
    X(DITTO_ERR_NO_MEMORY, -16, "memory refused")                                            \
    X(DITTO_ERR_SYSTEM, -17, "the operating system refused")                                 \
    X(DITTO_ERR_USER, -18, "the caller's own function failed")

typedef enum ditto_status {
#define DITTO_STATUS_MEMBER(name, value, sentence) name = value,
    DITTO_STATUS_LIST(DITTO_STATUS_MEMBER)
#undef DITTO_STATUS_MEMBER
} ditto_status;

/** One thread's last error. */
typedef struct ditto_error {
    ditto_status status;
    int32_t replica; /**< id of the replica that it happened on, -1: on none */

    /** errno of the system call that failed, or 0 if none did. With DITTO_ERR_NO_MEMORY never 0: what the kernel said, or
     *  ENOMEM. */
    int32_t system_errno;

    int32_t user_code; /**< with DITTO_ERR_USER: the code given to ditto_fail */
    /** The public function that was called and failed. Of a function that a replica or a device ran: the
     *  one that it called itself, or, if it returned an error without a message of its own, the one that
     *  it was given to. */
    const char *function;
    char message
        [512]; /**< one line, no newline; never empty in an error. "..." stands where a long text was cut */
} ditto_error;

/** The calling thread's last error; after ditto_strategy_run, the error of the replica that failed first.
 *  @return never NULL; status DITTO_OK and an empty message when nothing has failed yet. Owned by the library, valid on
 *          this thread until its next call into ditto. A call that succeeds leaves it alone. */
DITTO_API const ditto_error *ditto_last_error(void);

/** "DITTO_ERR_RANGE" and the like; "unknown status" for a number that is none. Any thread, constant strings. */
DITTO_API const char *ditto_status_name(ditto_status status);
/** The sentence of DITTO_STATUS_LIST. Any thread, constant strings. */
DITTO_API const char *ditto_status_sentence(ditto_status status);

/** In a function that returns ditto_status: pass on anything but DITTO_OK. */
#define DITTO_TRY(call)                          \
    do {                                         \
        ditto_status ditto_try_status_ = (call); \
        if (ditto_try_status_ != DITTO_OK)       \
            return ditto_try_status_;            \
    } while (0)

DITTO_END
#endif
