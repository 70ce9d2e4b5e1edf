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

/** Returns the replica of the calling thread.
 *
 *  @return `self` inside a function that a run calls; the replica of the default strategy in its replica
 *          context, which is valid on this thread until the thread ends; NULL elsewhere, and if that replica
 *          could not be created (ditto_last_error() then has the reason): a process has memory for at most
 *          4093 replicas and threads that call this function outside of runs */
DITTO_API ditto_replica *ditto_get_replica_context(void);

/** The contexts. Each thread is in exactly one. */
typedef enum ditto_context_kind {
    DITTO_CONTEXT_REPLICA = 1,       /**< replica context */
    DITTO_CONTEXT_CROSS_REPLICA = 2, /**< cross-replica context */
    DITTO_CONTEXT_UPDATE = 3,        /**< update context */
    DITTO_CONTEXT_NONE = 4,          /**< none of these */
} ditto_context_kind;

/** The context of a thread. */
typedef struct ditto_context {
    size_t struct_size;      /**< set by DITTO_CONTEXT_INIT */
    ditto_context_kind kind; /**< the context */
    int has_strategy;        /**< not 0 if ditto_get_strategy returns another than the default strategy */

    /** In update context the id of the replica whose copy the function works on, otherwise
     *  DITTO_NO_REPLICA. */
    uint32_t update_replica;
} ditto_context;

/** Initial value of ditto_context. */
#define DITTO_CONTEXT_INIT DITTO_OPTIONS_INIT(ditto_context)

/** Says in which context the calling thread is.
 *
 *  @param out  [out] start from DITTO_CONTEXT_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or struct_size is not set */
DITTO_API DITTO_NODISCARD ditto_status ditto_get_context(ditto_context *out);

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
