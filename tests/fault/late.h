/* tests/fault/late.h - waits that tests of late replicas share, so that no test depends on the speed of the
 * machine. */
#ifndef LATE_H
#define LATE_H

#include "replicas/team/stopping.h"
#include "replicas/team/team_state.h"
#include "support/support.h"

#include <stdatomic.h>

/* Some functions must begin before the time limit of their run passes. Their tests begin with a short limit.
 * When a function has not begun in time, its test tries again with twice the limit, up to this one. */
enum { LONGEST_LIMIT_MS = 60000 };

/* For a function that sets *begun to 1, and then does not return before the test lets it. Waits until the
 * function has begun, or until the replica has returned from the run without calling it. Returns true if the
 * function has begun. */
static inline bool has_begun(const ditto_strategy *strategy, uint32_t replica, _Atomic int *begun)
{
    const struct dti_team *team = dti_team_of(strategy);
    while (atomic_load(begun) == 0 && !dti_team_has_left(team, replica))
        sleep_ms(1);
    return atomic_load(begun) != 0;
}

/* Waits until all replicas have returned from the last run. Returns false if they have not after two
 * minutes. */
static inline bool await_all_returned(const ditto_strategy *strategy)
{
    for (int i = 0; i < 12000; i++, sleep_ms(10))
        if (dti_team_all_returned(dti_team_of(strategy)))
            return true;
    return false;
}

/* For a test whose other threads have been joined. Returns true if this process has at most `most` threads. A
 * sanitizer may have started one thread of its own. */
static inline bool has_threads(long most)
{
    return count_threads() <= most + SANITIZED;
}

/* For threads that are never joined. Waits until at most `most` threads are left. Returns false if there are
 * more after two minutes. */
static inline bool await_threads(long most)
{
    for (int i = 0; i < 12000; i++, sleep_ms(10))
        if (has_threads(most))
            return true;
    return false;
}

#endif
