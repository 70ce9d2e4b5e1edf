/* src/strategy/default.c - the default strategy, which applies to a thread that has entered no other. Its
 * only replica is the thread itself.
 *
 * There is one default strategy in the process. It owns variables and values, and has one turn for the cross
 * calls of all threads. Each thread that asks for its replica gets its own team, so that the collectives of
 * threads do not wait for each other. The team is destroyed when the thread ends. Replica calls that access
 * the variables, which all threads share, take the turn (DTI_USE_OWN_VARIABLE). */
#include "replicas/jobs/team_life.h"
#include "replicas/machine/topology.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"
#include "sync/sync.h"

#include <errno.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ditto_strategy *the_default;
static pthread_once_t once = PTHREAD_ONCE_INIT, watching = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static bool has_key;
static _Atomic uint32_t threads; /* the number of threads that have a replica */

const struct dti_strategy_kind dti_default_strategy_kind = { .kind = DITTO_DEFAULT_STRATEGY,
                                                             .name = "default",
                                                             .has_one_replica = true };

bool dti_is_default(const ditto_strategy *strategy)
{
    return strategy->kind == &dti_default_strategy_kind;
}

/* A fork waits until no other thread is making the default strategy, because the lock would stay locked in
 * the child. */
static void hold_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void free_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    /* A fork calls the handlers that were registered last first. It must take this file's lock before
     * hwloc's, as dti_default_strategy does, so the handlers for hwloc are registered first. */
    dti_topology_watch_forks();
    pthread_atfork(hold_lock, free_lock, free_lock);
}

/* Destroys a default strategy that was made before a fork. A new one takes its place in the child. */
static void destroy_forked(void)
{
    if (the_default != NULL && dti_team_forked(the_default->base.team)) {
        (void)dti_strategy_destroy(the_default);
        the_default = NULL;
    }
}

ditto_status dti_default_strategy(ditto_strategy **out)
{
    /* hwloc changes errno, and so does opening files that do not exist. */
    int kept_errno = errno;
    ditto_strategy_options options = { .pin = DITTO_PIN_NONE, .helpers = DITTO_SWITCH_OFF };
    pthread_once(&watching, watch_forks);
    pthread_mutex_lock(&lock);
    destroy_forked();
    ditto_status status = the_default != NULL
                              ? DITTO_OK
                              : dti_strategy_create(&dti_default_strategy_kind, &options, &the_default);
    if (status == DITTO_OK)
        *out = the_default;
    pthread_mutex_unlock(&lock);
    errno = kept_errno;
    return status;
}

/* -- a thread's own replica -- */

static void end_thread(void *team)
{
    dti_merge_forget_plain();
    dti_this_thread()->plain_replica = NULL;
    dti_this_thread()->plain_self = NULL;
    (void)dti_team_close(team); /* succeeds: only this thread can make calls on it */
    dti_sync_destroy(team);
    (void)dti_team_destroy(team);
    /* relaxed: end_process reads only the number. */
    atomic_fetch_sub_explicit(&threads, 1, memory_order_relaxed);
}

/* Frees the default strategy at exit, so that leak checkers report nothing. If other threads still use it, it
 * stays. */
__attribute__((destructor)) static void end_process(void)
{
    if (dti_this_thread()->plain_replica != NULL &&
        !dti_team_forked(dti_this_thread()->plain_replica->team)) {
        if (has_key)
            pthread_setspecific(at_thread_end, NULL);
        end_thread(dti_this_thread()->plain_replica->team);
    }
    if (atomic_load_explicit(&threads, memory_order_relaxed) != 0 || pthread_mutex_trylock(&lock) != 0)
        return;
    if (the_default != NULL && dti_strategy_destroy(the_default) == DITTO_OK)
        the_default = NULL;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_end, end_thread) == 0;
}

static ditto_status make_replica(ditto_strategy *strategy)
{
    struct dti_team *team;
    struct dti_frame frame;
    DTI_TRY(dti_team_create(dti_team_options(strategy->base.team), &team));
    atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    dti_team_set_strategy(team, strategy);
    ditto_status status = dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY);
    if (status == DITTO_OK) {
        status = dti_sync_create(team, &(struct dti_sync_options){ .kernels = DITTO_KERNELS_DEFAULT });
        dti_cross_leave(team, &frame);
    }
    if (status != DITTO_OK) {
        ditto_error kept = *dti_error_get();
        end_thread(team);
        dti_error_set(&kept);
        return status;
    }
    dti_this_thread()->plain_replica = dti_team_replica(team, 0);
    dti_this_thread()->plain_self = dti_replica_handle(dti_this_thread()->plain_replica);
    if (has_key)
        pthread_setspecific(at_thread_end, team);
    return DITTO_OK;
}

struct dti_replica *dti_default_replica(void)
{
    if (dti_this_thread()->plain_replica != NULL && !dti_team_forked(dti_this_thread()->plain_replica->team))
        return dti_this_thread()->plain_replica;
    pthread_once(&once, make_key);
    dti_this_thread()->plain_replica = NULL; /* a replica that was made before a fork is not freed */
    dti_this_thread()->plain_self = NULL;
    ditto_strategy *strategy;
    if (dti_default_strategy(&strategy) != DITTO_OK || make_replica(strategy) != DITTO_OK)
        return NULL;
    return dti_this_thread()->plain_replica;
}
