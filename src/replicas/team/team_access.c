/* src/replicas/team/team_access.c - what other modules may ask of a team, and keep on it (team.h). */
#include "replicas/team/team_private.h"

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

bool dti_team_is_stopped(const struct dti_team *team)
{
    return dti_stopped(&team->stop);
}

bool dti_team_any_returned(const struct dti_team *team)
{
    return atomic_load_explicit(&team->returned, memory_order_acquire) != 0;
}

uint32_t dti_team_pauses(const struct dti_team *team)
{
    return team->pauses;
}

bool dti_team_is_poisoned(const struct dti_team *team)
{
    return atomic_load_explicit(&team->poisoned, memory_order_relaxed);
}

void dti_team_poison(struct dti_team *team)
{
    atomic_store_explicit(&team->poisoned, true, memory_order_relaxed);
}

void dti_team_clear_poison(struct dti_team *team)
{
    atomic_store_explicit(&team->poisoned, false, memory_order_relaxed);
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

void dti_team_set_in_use(struct dti_team *team, bool (*is_in_use)(const void *argument), const void *argument)
{
    bool taken = dti_team_take_turn(team);
    team->is_in_use = is_in_use;
    team->in_use_argument = argument;
    dti_team_give_turn(team, taken);
}

ditto_status dti_team_check_unused(const struct dti_team *team, const char *what, const char *name)
{
    if (dti_team_forked(team) || team->is_in_use == NULL || !team->is_in_use(team->in_use_argument))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_BUSY,
        "functions of workers may be using the %s \"%s\": wait for them (ditto_coordinator_join), or "
        "destroy the coordinator first",
        what, name);
}

ditto_status dti_team_check_in_step(const struct dti_team *team)
{
    if (!team->options.idle)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "a strategy of kind DITTO_PARAMETER_SERVER has no replicas that work in step: schedule a "
                    "function (ditto_coordinator_schedule), and use the replicas of its worker there");
}

struct dti_team *dti_team_servers(const struct dti_team *team)
{
    return team->servers;
}

void dti_team_set_servers(struct dti_team *team, struct dti_team *servers)
{
    team->servers = servers;
}

struct dti_registry *dti_team_variables(const struct dti_team *team)
{
    return team->variables;
}

void dti_team_set_variables(struct dti_team *team, struct dti_registry *variables)
{
    team->variables = variables;
}

void dti_team_set_stop_report(struct dti_team *team, void (*report)(void *argument, const ditto_error *error),
                              void *argument)
{
    team->stop_report = report;
    team->stop_report_argument = argument;
}

struct dti_deadline dti_team_run_deadline(const struct dti_team *team)
{
    return (struct dti_deadline){ .timeout_ms = team->options.run_timeout_ms,
                                  .at_ns = team->run_deadline_ns };
}

void dti_team_set_poster_work(struct dti_team *team, void (*work)(void *argument), void *argument)
{
    team->poster_work = work;
    team->poster_argument = argument;
}

uint32_t dti_team_number_producer(struct dti_team *team)
{
    return team->producers++;
}

void dti_team_enter_gate(struct dti_team *team, struct dti_gate **held)
{
    (void)dti_team_hold(team, &team->gate, held);
}

bool dti_deadline_is_of_run(const struct dti_replica *replica, const struct dti_deadline *deadline)
{
    uint64_t of_run = replica->team->run_deadline_ns;
    return of_run != DTI_NEVER && deadline->at_ns == of_run;
}
