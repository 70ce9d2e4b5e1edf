/* src/replicas/team/team_access.c - what other modules may ask of a team, and keep on it. See team.h. */
#include "replicas/machine/affinity.h"
#include "replicas/machine/limits.h"
#include "replicas/memory/arena.h"
#include "replicas/team/team_state.h"

uint32_t dti_team_first_replica(const struct dti_team *team)
{
    return team->first;
}

uint32_t dti_team_all_replicas(const struct dti_team *team)
{
    return team->all;
}

ditto_status dti_team_index(const struct dti_team *team, uint32_t id, uint32_t *index)
{
    if (id >= team->all)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u does not exist: the strategy has %u", id, team->all);
    if (id < team->first || id - team->first >= team->n)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u is on another host: this one has replicas %u to %u", id,
                        team->first, team->first + team->n - 1);
    *index = id - team->first;
    return DITTO_OK;
}

ditto_status dti_team_check_one_host(const struct dti_team *team, const char *what)
{
    if (team->all == team->n)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s does not work on a strategy over several hosts yet", what);
}

uint32_t dti_team_num_replicas(const struct dti_team *team)
{
    return team->n;
}

struct dti_replica *dti_team_replica(const struct dti_team *team, uint32_t index)
{
    return &team->replica[index];
}

const struct dti_team_options *dti_team_options(const struct dti_team *team)
{
    return &team->options;
}

bool dti_team_is_oversubscribed(const struct dti_team *team)
{
    return team->oversubscribed;
}

struct dti_wait_queue *dti_team_wait_queue(struct dti_team *team)
{
    return &team->wait_queue;
}

struct dti_gate *dti_team_gate(struct dti_team *team)
{
    return &team->gate;
}

bool dti_team_has_replica(const struct dti_team *team, const void *replica)
{
    return (uintptr_t)replica >= (uintptr_t)team->replica &&
           (uintptr_t)replica < (uintptr_t)(team->replica + team->n);
}

bool dti_team_forked(const struct dti_team *team)
{
    return dti_process_differs(team->process);
}

bool dti_team_any_returned(const struct dti_team *team)
{
    return atomic_load_explicit(&team->returned, memory_order_acquire) != 0;
}

uint32_t dti_team_pauses(const struct dti_team *team)
{
    return team->pauses;
}

void dti_team_scope_entered(struct dti_team *team)
{
    /* relaxed: see dti_team_scope_left. */
    atomic_fetch_add_explicit(&team->scopes, 1, memory_order_relaxed);
}

void dti_team_scope_left(struct dti_team *team)
{
    /* release: the partner is the acquire in dti_team_has_scopes. The thread that destroys the strategy
     * then sees what the calls in the scope did. The team must not be used after this, because another
     * thread may now destroy it. */
    atomic_fetch_sub_explicit(&team->scopes, 1, memory_order_release);
}

bool dti_team_has_scopes(const struct dti_team *team)
{
    /* acquire: the partner is the release in dti_team_scope_left. */
    return atomic_load_explicit(&team->scopes, memory_order_acquire) != 0;
}

ditto_strategy *dti_team_strategy(const struct dti_team *team)
{
    return team->strategy;
}

void dti_team_set_strategy(struct dti_team *team, ditto_strategy *strategy)
{
    team->strategy = strategy;
}

struct dti_sync *dti_team_sync(const struct dti_team *team)
{
    return team->sync;
}

void dti_team_set_sync(struct dti_team *team, struct dti_sync *sync)
{
    team->sync = sync;
}

struct dti_registry *dti_team_variables(const struct dti_team *team)
{
    return team->variables;
}

void dti_team_set_variables(struct dti_team *team, struct dti_registry *variables)
{
    team->variables = variables;
}

uint32_t dti_team_number_producer(struct dti_team *team)
{
    return team->producers++;
}

/* -- threads -- */

/* How long a thread of a strategy with DITTO_WAIT_ACTIVE polls before it sleeps. */
#define ACTIVE_NS 10000000000u

struct dti_wait_policy dti_team_wait_policy(const struct dti_team *team, uint32_t pu, uint32_t *epoch)
{
    const struct dti_team_options *o = &team->options;
    /* The epoch is read first, so that the caller notices every later change. */
    *epoch = dti_load_epoch();
    bool oversubscribed = team->oversubscribed ||
                          dti_load_is_oversubscribed(o->pin ? pu : DTI_NO_PU, o->pus, o->cpu_quota);
    if (o->has_spin_us)
        return (struct dti_wait_policy){ .is_fixed = true,
                                         .spin_ns = oversubscribed ? 0 : (uint64_t)o->spin_us * 1000u,
                                         .yield_ns = oversubscribed ? team->yield_ns : 0 };
    if (o->wait == DITTO_WAIT_PASSIVE)
        return (struct dti_wait_policy){ .spin_ns = oversubscribed ? 0 : DTI_SPIN_LEAST_NS };
    if (o->wait == DITTO_WAIT_ACTIVE)
        return (struct dti_wait_policy){ .is_fixed = true,
                                         .spin_ns = oversubscribed ? 0 : ACTIVE_NS,
                                         .yield_ns = oversubscribed ? ACTIVE_NS : 0 };
    if (oversubscribed)
        return (struct dti_wait_policy){ .yield_ns = team->yield_ns };
    return dti_wait_policy_adapting();
}

ditto_status dti_team_bind_thread(const struct dti_team *team, const struct dti_mask *mask)
{
    if (!team->options.pin)
        return DITTO_OK;
    DTI_TRY(dti_pin_to(mask));
    dti_policy_drop();
    return DITTO_OK;
}

/* -- replicas -- */

uint64_t dti_team_run_number(const struct dti_team *team)
{
    /* relaxed: the poster wrote it itself, and a replica in a run has acquired it already */
    return atomic_load_explicit(&team->run, memory_order_relaxed);
}

ditto_replica *dti_replica_handle(const struct dti_replica *r)
{
    uintptr_t runs = (uintptr_t)1 << DTI_HANDLE_RUN_BITS, run = dti_team_run_number(r->team) % runs;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is compared, and never dereferenced */
    return (ditto_replica *)((r->team->number * runs + run) << DTI_HANDLE_ID_BITS | r->index);
}

bool dti_team_owns_handle(const struct dti_team *team, const ditto_replica *self, uint32_t *replica)
{
    *replica = (uintptr_t)self % (1u << DTI_HANDLE_ID_BITS);
    return (uintptr_t)self >> (DTI_HANDLE_ID_BITS + DTI_HANDLE_RUN_BITS) == team->number;
}

ditto_status dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out)
{
    return dti_arena_alloc(r->arena, bytes, alignment, out);
}
