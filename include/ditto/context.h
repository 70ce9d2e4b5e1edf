/* include/ditto/context.h - which strategy and which context a thread is in. */
#ifndef DITTO_CONTEXT_H
#define DITTO_CONTEXT_H

#include <ditto/strategy.h>

DITTO_BEGIN

/** @defgroup ditto_contexts Contexts
 *
 *  A thread is in cross-replica context in a strategy's scope (also one of ditto_set_default), in a merge
 *  function, and in a function given to ditto_strategy_value_from_function. It is in replica context inside a
 *  function that a run calls, and in update context inside the function of an update. Functions on logical
 *  devices, and functions of datasets that an iterator calls, are in none of these contexts. Other functions
 *  that are called on the caller's thread, such as ditto_variable_options.initialize, are in the caller's
 *  context. Outside of all these a thread is in the replica context of the default strategy. That strategy
 *  has one replica, with id 0, which is the thread itself. Code that is written for replica context therefore
 *  also runs without a strategy.
 *
 *  Except for ditto_set_default, the functions may be called in any context.
 *  @{ */

/** Returns the strategy that the calling thread is in: that of its run or scope, else the one given to
 *  ditto_set_default, else the default strategy.
 *
 *  @return the strategy; ownership does not change. NULL if the default strategy could not be created, for
 *          example because memory was refused; ditto_last_error() has the reason */
DITTO_API ditto_strategy *ditto_get_strategy(void);

/** Returns whether ditto_get_strategy returns another strategy than the default strategy.
 *
 *  @return not 0 if it does */
DITTO_API int ditto_has_strategy(void);

/** Returns whether the calling thread is in cross-replica context.
 *
 *  @return not 0 if it is */
DITTO_API int ditto_in_cross_replica_context(void);

/** Returns the replica of the calling thread.
 *
 *  @return `self` inside a function that a run calls; the replica of the default strategy in its replica
 *          context, which is valid on this thread until the thread ends; NULL elsewhere, and if that replica
 *          could not be created (ditto_last_error() then has the reason) */
DITTO_API ditto_replica *ditto_get_replica_context(void);

/** Returns the replica whose copy the function of an update works on.
 *
 *  @return the id of the replica; -1 outside of the functions of updates */
DITTO_API int32_t ditto_get_update_replica(void);

/** Enters a scope of a strategy on this thread. It lasts until the next call of this function or the end of
 *  the thread, and is not left with ditto_strategy_scope_leave.
 *
 *  @param strategy  the strategy; NULL only ends the scope of the last call
 *  @retval DITTO_OK             the strategy is current, or none is
 *  @retval DITTO_ERR_CONTEXT    called inside a scope of ditto_strategy_scope_enter, or in a function of the
 *                               program that ditto calls in a context of a strategy
 *  @retval DITTO_ERR_POISONED   the strategy is poisoned
 *  @retval DITTO_ERR_FORKED     the strategy was created before fork, in the parent process
 *  @retval DITTO_ERR_SYSTEM     the thread could not be pinned, or its PUs could not be read. No strategy is
 *                               current
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for a scope. No strategy is current
 *  @par Cost
 *  That of ditto_strategy_scope_enter. */
DITTO_API DITTO_NODISCARD ditto_status ditto_set_default(ditto_strategy *strategy);

/** @} */

DITTO_END
#endif
