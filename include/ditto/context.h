/* include/ditto/context.h - which strategy and which context a thread is in. */
#ifndef DITTO_CONTEXT_H
#define DITTO_CONTEXT_H

#include <ditto/strategy.h>
#include <ditto/variable.h>

DITTO_BEGIN

/** @defgroup ditto_contexts Contexts
 *
 *  A thread is in cross-replica context in a strategy's scope, in a merge function, and in a function that a
 *  cross-replica call calls, such as ditto_variable_options.initialize. It is in replica context inside a
 *  function that a run calls, and in update context inside the function of an update. Functions on logical
 *  devices and functions of a dataset are in none of these contexts. Outside of all these it is in the
 *  replica context of the default strategy. That strategy has one replica, with id 0, which does everything
 *  as a plain thread does. Code that is written for replica context therefore also runs without a strategy.
 *
 *  Except for ditto_set_default, the functions may be called in any context.
 *  @{ */

/** Returns the strategy that the calling thread is in: that of its run or scope, else the one given to
 *  ditto_set_default, else the default strategy.
 *
 *  @return the strategy; ownership does not change. NULL if there is no memory for the default strategy; the
 *          reason is in ditto_last_error() */
DITTO_API ditto_strategy *ditto_get_strategy(void);

/** Returns whether ditto_get_strategy returns another strategy than the default strategy.
 *
 *  @return not 0 if it does */
DITTO_API int ditto_has_strategy(void);

/** Returns whether the calling thread is in cross-replica context: in a scope, after ditto_set_default, in a
 *  merge function, or in a function that a cross-replica call calls.
 *
 *  @return not 0 if it is */
DITTO_API int ditto_in_cross_replica_context(void);

/** Returns the replica of the calling thread.
 *
 *  @return `self` inside a run; the replica of the default strategy outside of all scopes, runs and updates;
 *          NULL in cross-replica context, in update context, in functions on logical devices and in functions
 *          of a dataset */
DITTO_API ditto_replica *ditto_get_replica_context(void);

/** Returns the replica whose copy the function of an update works on.
 *
 *  @return the id of the replica; -1 outside of updates (not DITTO_NO_REPLICA, because the id is signed) */
DITTO_API int32_t ditto_get_update_replica(void);

/** Makes a strategy current on this thread until it is replaced or cleared. It acts like a scope that is
 *  never left.
 *
 *  @param strategy  the strategy; NULL clears it
 *  @retval DITTO_OK            the strategy is current, or none is
 *  @retval DITTO_ERR_CONTEXT   called inside a scope or a run
 *  @retval DITTO_ERR_POISONED  a replica never returned from an earlier run of the strategy
 *  @retval DITTO_ERR_FORKED    the strategy was created before fork, in the parent process */
DITTO_API DITTO_NODISCARD ditto_status ditto_set_default(ditto_strategy *strategy);

/** Returns whether a variable belongs to a strategy. It makes no difference whether a scope was entered when
 *  the variable was created.
 *
 *  @param strategy  the strategy
 *  @param variable  the variable
 *  @return not 0 if it does */
DITTO_API int ditto_strategy_created_in_scope(const ditto_strategy *strategy, const ditto_variable *variable);

/** @} */

DITTO_END
#endif
