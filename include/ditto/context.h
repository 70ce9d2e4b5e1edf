/* include/ditto/context.h - which strategy and which context a thread is in.
 *
 * A thread is in cross-replica context in a strategy's scope, in replica context inside a function that a run calls,
 * and in update context inside the function of an update. In none of these it is in the replica context of the *default
 * strategy*: of one replica, id 0, which does everything as one plain thread does. So code that is written for replica
 * context runs without a strategy too. */
#ifndef DITTO_CONTEXT_H
#define DITTO_CONTEXT_H

#include <ditto/strategy.h>
#include <ditto/variable.h>

DITTO_BEGIN

/* Any context. */

/** The strategy that the calling thread is in: of its run or scope, else the one of ditto_set_default, else the default
 *  strategy. The library's own; NULL, with the reason in ditto_last_error, when the default strategy could not be made
 *  (no memory). */
DITTO_API ditto_strategy *ditto_get_strategy(void);
/** Not 0 when that is not the default strategy. */
DITTO_API int ditto_has_strategy(void);
/** Not 0 in cross-replica context: in a scope, after ditto_set_default, in a merge function. */
DITTO_API int ditto_in_cross_replica_context(void);
/** The calling thread's replica: `self` inside a run; that of the default strategy outside of everything; NULL in
 *  cross-replica and update context. */
DITTO_API ditto_replica *ditto_get_replica_context(void);
/** The replica whose copy an update's function works on; -1 outside of updates. */
DITTO_API int32_t ditto_get_update_replica(void);

/** Makes a strategy current on this thread until it is replaced or cleared: a scope without an end.
 *  @param strategy  NULL: clears it
 *  @retval DITTO_ERR_CONTEXT  inside any scope or run */
DITTO_API DITTO_NODISCARD ditto_status ditto_set_default(ditto_strategy *strategy);

/** Not 0 when the variable is one of the strategy's. */
DITTO_API int ditto_strategy_created_in_scope(const ditto_strategy *strategy, const ditto_variable *variable);

DITTO_END
#endif
