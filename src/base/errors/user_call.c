/* src/base/errors/user_call.c - see user_call.h. */
#include "base/errors/user_call.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#ifndef __arm__

/* Writes one line, with one system call, so that the lines of several replicas do not mix. */
static void say(const char *function, const char *how, const char *advice)
{
    char line[400], replica[32] = "";
    if (dti_this_thread()->replica >= 0)
        snprintf(replica, sizeof replica, " on replica %d", (int)dti_this_thread()->replica);
    snprintf(line, sizeof line, "ditto: %s%s was left by %s: %s\n", function, replica, how, advice);
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        return; /* there is no other way to report it */
}

/* The personality routine of frames with DTI_GUARD. The unwinder calls it for each exception that reaches
 * such a frame, first to search for a handler. The result _URC_FATAL_PHASE1_ERROR ends the search, and the
 * C++ library then calls std::terminate. The unwinding of pthread_exit and pthread_cancel cannot be stopped,
 * and does not search for a handler first. */
_Unwind_Reason_Code dti_guard_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context);
__attribute__((used)) _Unwind_Reason_Code dti_guard_personality(int version, _Unwind_Action actions,
                                                                _Unwind_Exception_Class class,
                                                                struct _Unwind_Exception *exception,
                                                                struct _Unwind_Context *context)
{
    const char *function = (const char *)_Unwind_GetLanguageSpecificData(context);
    (void)version, (void)class, (void)exception;
    if ((actions & _UA_FORCE_UNWIND) != 0) {
        while (dti_function_is_given_up())
            pause();
        say(function, "pthread_exit or pthread_cancel",
            "return from it instead; the process ends, because others would wait for this thread for ever");
        abort();
    }
    say(function, "an exception",
        "catch it inside and return an error; the process ends, because others would wait for this thread "
        "for ever");
    return _URC_FATAL_PHASE1_ERROR;
}

#endif

/* Only data within this many bytes of the frame is examined. The limit saves reading the bounds of the stack,
 * because most data is farther away. */
#define LARGEST_DISTANCE ((uintptr_t)1 << 30)

/* The bounds of the calling thread's stack. `high` is 0 until they have been read. Both are 1 if they cannot
 * be read. */
static _Thread_local uintptr_t low, high;

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *start;
    size_t size;
    low = high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &start, &size) == 0) {
        low = (uintptr_t)start;
        high = low + size;
    }
    pthread_attr_destroy(&attributes);
}

bool dti_is_below_frame(const void *frame, const void *data)
{
    uintptr_t frame_address = (uintptr_t)frame, at = (uintptr_t)data;
    if (at >= frame_address || frame_address - at > LARGEST_DISTANCE) /* stacks grow downwards */
        return false;
    if (high == 0)
        find_bounds();
    return frame_address >= low && frame_address < high && at >= low;
}
