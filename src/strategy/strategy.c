/* src/strategy/strategy.c - creates and destroys strategies. */
#include "strategy/strategy.h"
#include "base/numbers/checksum.h"
#include "replicas/jobs/team_life.h"
#include "replicas/machine/numa_node.h"
#include "replicas/machine/topology.h"
#include "replicas/placement/placement.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/hosts/hosts.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_MS 600000u
/* Collectives of 1024 replicas need half of it. */
#define LEAST_STACK_BYTES ((size_t)128 << 10)

static ditto_status check_enum(int value, int most, const char *field)
{
    if (value < 0 || value > most)
        return DTI_FAIL(DITTO_ERR_RANGE, "%s = %d is not a value of its enum", field, value);
    return DITTO_OK;
}

static ditto_status timeout_of(const ditto_strategy_options *o, uint32_t *timeout_ms)
{
    int64_t value = o->timeout_ms != 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (o->timeout_ms == 0)
        DTI_TRY(dti_environment_number("DITTO_TIMEOUT_MS", 1, DITTO_FOREVER,
                                       "milliseconds (the largest number means for ever)", &value));
    *timeout_ms = (uint32_t)value;
    return DITTO_OK;
}

/* Sets the option `pin` from the environment, unless it is given. */
static ditto_status read_pin(ditto_strategy_options *o)
{
    static const char *const names[] = {
        [DITTO_PIN_DEFAULT] = "default", [DITTO_PIN_PU] = "pu", [DITTO_PIN_NONE] = "none"
    };
    int pin = DITTO_PIN_DEFAULT;
    DTI_TRY(dti_environment_word("DITTO_PIN", names, DITTO_PIN_NONE + 1, &pin));
    o->pin = o->pin != DITTO_PIN_DEFAULT ? o->pin : (ditto_pin)pin;
    return DITTO_OK;
}

static ditto_status check(const struct dti_strategy_kind *kind, const ditto_strategy_options *o)
{
    if ((o->has_parameter_node != 0 || o->parameter_node != 0) && !kind->is_central)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "parameter_node is set, but only central storage uses it: a strategy of kind \"%s\" "
                        "keeps its variables with its replicas",
                        kind->name);
    if (o->parameter_node != 0 && o->has_parameter_node == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "parameter_node is %u, but has_parameter_node is 0: set both",
                        o->parameter_node);
    const char *of_workers = o->replicas_per_worker != 0 ? "replicas_per_worker"
                             : o->parameter_nodes != NULL || o->num_parameter_nodes != 0 ? "parameter_nodes"
                                                                                         : NULL;
    if (of_workers != NULL && !kind->has_workers)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "%s is set, but only DITTO_PARAMETER_SERVER uses it, and this strategy is of kind \"%s\"",
            of_workers, kind->name);
    DTI_TRY(check_enum((int)o->caller, DITTO_CALLER_WAITS, "caller"));
    DTI_TRY(check_enum((int)o->pin, DITTO_PIN_NONE, "pin"));
    DTI_TRY(check_enum((int)o->helpers, DITTO_SWITCH_OFF, "helpers"));
    DTI_TRY(check_enum((int)o->part, DITTO_SWITCH_OFF, "part"));
    DTI_TRY(check_enum((int)o->run_agreement, DITTO_SWITCH_OFF, "run_agreement"));
    if (o->stack_bytes != 0 && o->stack_bytes < LEAST_STACK_BYTES)
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "stack_bytes = %zu is less than %zu: collectives need a part of it; 0 means the system's default",
            o->stack_bytes, LEAST_STACK_BYTES);
    DTI_TRY(check_enum((int)o->floating, DITTO_FLOATING_CALLER, "floating"));
    DTI_TRY(check_enum((int)o->implementation, DITTO_IMPLEMENTATION_HIERARCHICAL, "implementation"));
    return check_enum((int)o->memory, DITTO_MEMORY_STRICT, "memory");
}

/* Returns how many CPUs this process may use at a time, or 0 if only the number of its PUs limits it. Other
 * processes have their share of the quota, and of the PUs if there are fewer PUs than processes. */
static double cpu_quota(const ditto_topology_counts *machine)
{
    double quota = machine->cpu_quota / machine->num_parts;
    double pus = machine->part_is_shared ? (double)machine->divided_pus / machine->num_parts : 0;
    return quota == 0 || (pus != 0 && pus < quota) ? pus : quota;
}

static ditto_status make_team(const ditto_strategy *strategy, const ditto_strategy_options *o,
                              struct dti_team **out)
{
    const ditto_topology_counts *machine = &strategy->machine;
    const struct dti_hosts *hosts = strategy->hosts;
    struct dti_team_options options = {
        .placement = strategy->workers != NULL ? strategy->workers->servers : strategy->placement,
        .pus = machine->pus,
        .cpu_quota = cpu_quota(machine),
        .caller_waits = o->caller == DITTO_CALLER_WAITS,
        .pin = o->pin != DITTO_PIN_NONE,
        .strict_memory = o->memory == DITTO_MEMORY_STRICT,
        .helpers = o->helpers != DITTO_SWITCH_OFF,
        .timeout_ms = o->timeout_ms,
        .run_timeout_ms = o->run_timeout_ms != 0 ? o->run_timeout_ms : DITTO_FOREVER,
        .stack_bytes = o->stack_bytes,
        .thread_start = o->thread_start,
        .thread_stop = o->thread_stop,
        .thread_user = o->thread_user,
        .plain = dti_is_default(strategy),
        .idle = strategy->workers != NULL,
        .host_floating = o->floating == DITTO_FLOATING_CALLER,
    };
    if (hosts != NULL) {
        options.first_replica = hosts->first;
        options.all_replicas = dti_ranges_replicas(&hosts->ranges);
    }
    DTI_TRY(dti_waiting_read(o, &options));
    DTI_TRY(timeout_of(o, &options.timeout_ms));
    return dti_team_create(&options, out);
}

static ditto_status make_sync(struct dti_team *team, const ditto_strategy_options *o, struct dti_hosts *hosts)
{
    struct dti_frame frame;
    struct dti_sync_options options = {
        .kernels = o->kernels, .tuning = o->tuning, .order_blocks = o->order_blocks, .hosts = hosts
    };
    if (o->order_blocks > dti_team_all_replicas(team))
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "order_blocks = %u, but the strategy has %u replicas: a block has at least one, so give "
            "at most %u",
            o->order_blocks, dti_team_all_replicas(team), dti_team_all_replicas(team));
    options.defaults.implementation = o->implementation;
    options.defaults.bytes_per_pack = o->bytes_per_pack;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_sync_create(team, &options);
    dti_cross_leave(team, &frame);
    return status;
}

/* Frees a strategy that has no team, or no longer has one. */
static void release(ditto_strategy *strategy)
{
    dti_workers_free(strategy->workers);
    dti_hosts_free(strategy->hosts);
    dti_placement_destroy(strategy->placement);
    free(strategy->merging);
    free(strategy->node);
    free(strategy);
}

/* Returns the node of the thread that made the strategy. If there is only one replica, or the node is not
 * known or has no memory, returns the node of replica 0. */
static uint32_t default_node(const ditto_strategy *strategy)
{
    const struct dti_team *team = strategy->base.team;
    bool usable = strategy->caller_node >= 0 && dti_node_has_memory((uint32_t)strategy->caller_node);
    return dti_team_num_replicas(team) > 1 && usable ? (uint32_t)strategy->caller_node
                                                     : dti_team_replica(team, 0)->pu.memory_node;
}

/* Stores the nodes that hold variables in strategy->node. */
static ditto_status list_nodes(ditto_strategy *strategy, const struct dti_storage *storage)
{
    uint32_t n = storage->parameters ? storage->num_nodes : strategy->base.num_replicas, count = 0;
    strategy->node = malloc(n * sizeof *strategy->node);
    if (strategy->node == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the NUMA nodes of %u replicas", n);
    for (uint32_t i = 0; i < n && !dti_is_default(strategy); i++) {
        uint32_t node = storage->parameters ? storage->nodes[i]
                        : storage->central  ? storage->node
                                            : dti_placement_leader(strategy->placement, i)->is.memory_node;
        uint32_t k = 0;
        while (k < count && strategy->node[k] != node)
            k++;
        strategy->node[k] = node;
        count += k == count;
    }
    strategy->num_nodes = count;
    return DITTO_OK;
}

/* Decides where variables are stored, and makes the list of variables. */
static ditto_status make_variables(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    struct dti_storage storage = { .central = strategy->kind->is_central,
                                   .parameters = strategy->kind->has_workers };
    if (storage.parameters) {
        storage.nodes = strategy->workers->node;
        storage.num_nodes = strategy->workers->num_nodes;
        storage.num_writers = strategy->workers->count * strategy->workers->replicas;
    }
    if (storage.central) {
        storage.node = o->has_parameter_node ? o->parameter_node : default_node(strategy);
        if (!dti_node_has_memory(storage.node))
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "parameter_node %u is not a NUMA node whose memory this process may use",
                            storage.node);
    }
    DTI_TRY(list_nodes(strategy, &storage));
    return dti_vars_create(strategy->base.team, &storage);
}

/* Makes all parts of the strategy except the team, which exists already. If there are workers, `o` are the
 * options of the parameter servers. */
static ditto_status allocate_parts(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    struct dti_team *team = strategy->base.team;
    uint32_t n = dti_team_num_replicas(team);
    dti_team_set_strategy(team, strategy);
    strategy->base.num_replicas = n;
    DTI_TRY(dti_values_make(team, &strategy->base.values));
    DTI_TRY(make_sync(team, o, strategy->hosts));
    strategy->merging = aligned_alloc(DTI_CACHE_LINE, n * sizeof *strategy->merging);
    if (strategy->merging == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the values of %u replicas", n);
    memset(strategy->merging, 0, n * sizeof *strategy->merging);
    return make_variables(strategy, o);
}

/* Learns which replicas the other hosts have. `status` says whether this host has failed so far. All hosts
 * then return its error. */
static ditto_status join_hosts(ditto_strategy *strategy, const ditto_strategy_options *o, ditto_status status)
{
    struct dti_hosts_request request = { .order_blocks = o->order_blocks,
                                         .agrees = o->run_agreement != DITTO_SWITCH_OFF };
    if (status == DITTO_OK && strategy->kind->kind != DITTO_MIRRORED)
        status = DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                          "a strategy of kind \"%s\" has one home, and cannot span %u hosts: leave "
                          "options->cluster NULL, or create a strategy of kind DITTO_MIRRORED",
                          strategy->kind->name, o->cluster->wire.num_hosts);
    if (status == DITTO_OK)
        status = timeout_of(o, &request.timeout_ms);
    else
        request.timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS; /* to tell the others */
    request.replicas = status == DITTO_OK ? strategy->placement->replicas : 0;
    request.options = dti_hash_word((uint64_t)strategy->kind->kind, o->bytes_per_pack);
    request.options = dti_hash_word(request.options, (uint64_t)o->implementation);
    return dti_hosts_make(o->cluster, &request, status, &strategy->hosts);
}

static ditto_strategy *allocate(const struct dti_strategy_kind *kind)
{
    ditto_strategy *strategy = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *strategy);
    if (strategy == NULL)
        return NULL;
    memset(strategy, 0, sizeof *strategy);
    strategy->kind = kind;
    strategy->caller_node = dti_node_of_caller();
    return strategy;
}

/* Makes the team of the strategy, everything that belongs to it, and the workers if there are any. */
static ditto_status make_teams(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    ditto_strategy_options own = strategy->workers != NULL ? dti_server_options(o) : *o;
    DTI_TRY(make_team(strategy, &own, &strategy->base.team));
    DTI_TRY(allocate_parts(strategy, &own));
    return strategy->workers != NULL ? dti_workers_make(strategy, o) : DITTO_OK;
}

/* Frees a strategy that could not be made. Nobody else knows it, so nothing can fail. */
static void give_up(ditto_strategy *strategy)
{
    ditto_error kept = *dti_error_get();
    struct dti_team *team = strategy->base.team;
    if (strategy->workers != NULL)
        (void)dti_workers_destroy(strategy);
    if (team != NULL) {
        (void)dti_team_close(team);
        dti_sync_destroy(team);
        dti_team_destroy(team);
    }
    release(strategy);
    dti_error_set(&kept);
}

/* Makes the rest of a strategy whose replicas are placed, or ends the attempt if `status` is an error. */
static ditto_status finish(ditto_strategy *strategy, const ditto_strategy_options *o, ditto_status status,
                           ditto_strategy **out)
{
    if (status == DITTO_OK)
        status = make_teams(strategy, o);
    if (strategy->hosts != NULL) {
        /* Another host may be told of the end of this call, make a run, and fail, before this one returns. */
        if (strategy->base.team != NULL)
            dti_hosts_attach(strategy->hosts, strategy->base.team);
        status = dti_hosts_agree(strategy->hosts, "ditto_strategy_create", status);
    }
    if (status == DITTO_OK)
        *out = strategy;
    else
        give_up(strategy);
    return status;
}

ditto_status dti_strategy_create(const struct dti_strategy_kind *kind, const ditto_strategy_options *given,
                                 ditto_strategy **out)
{
    ditto_topology *topology = NULL;
    ditto_strategy_options options = *given, *o = &options;
    ditto_strategy *strategy = allocate(kind);
    if (strategy == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a strategy");
    ditto_status status = check(kind, o);
    /* The replica of the default strategy is the thread itself: no variable binds it or gives it PUs. */
    if (status == DITTO_OK && kind != &dti_default_strategy_kind)
        status = read_pin(o);
    if (status == DITTO_OK)
        status = dti_strategy_make_placement(kind, o, &topology, &strategy->placement);
    if (topology != NULL)
        strategy->machine = topology->counts;
    if (o->cluster != NULL && o->cluster->wire.num_hosts > 1)
        status = join_hosts(strategy, o, status);
    if (status == DITTO_OK && kind->has_workers)
        status = dti_workers_plan(strategy, o, topology);
    dti_topology_destroy(topology);
    return finish(strategy, o, status, out);
}

ditto_status dti_strategy_create_placed(const struct dti_strategy_kind *kind, const ditto_strategy_options *o,
                                        const ditto_topology_counts *machine, ditto_placement *placement,
                                        ditto_strategy **out)
{
    ditto_strategy *strategy = allocate(kind);
    if (strategy == NULL) {
        dti_placement_destroy(placement);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a strategy");
    }
    strategy->machine = *machine;
    strategy->placement = placement;
    return finish(strategy, o, DITTO_OK, out);
}

/* Strategies that were destroyed and stay in memory, with all objects that were made with them. Either they
 * were poisoned, and a replica that never returned may use any of these, or a call that continues in a child
 * process may. The list keeps them reachable for leak checkers. */
static _Atomic(ditto_strategy *) left;

static void keep(ditto_strategy *strategy)
{
    /* relaxed, also below: no thread reads the strategies in the list. */
    strategy->next_left = atomic_load_explicit(&left, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&left, &strategy->next_left, strategy, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* a failed exchange has set next_left to the head */
}

/* Frees the team and the strategy. */
static ditto_status end(ditto_strategy *strategy)
{
    struct dti_team *team = strategy->base.team;
    dti_sync_destroy(team);
    ditto_status status = dti_team_destroy(team);
    release(strategy);
    return status;
}

/* Destroys a strategy in a forked child process. Locks may be held by threads that do not exist in the child.
 * Lists can be walked, although another thread may have been changing them during the fork. */
static ditto_status destroy_in_child(ditto_strategy *strategy)
{
    struct dti_team *team = strategy->base.team;
    dti_scope_forget(team);
    if (!dti_context_is_of(team)) {
        if (strategy->workers != NULL)
            (void)dti_workers_destroy(strategy);
        return end(strategy);
    }
    /* The thread is in a function that a call on the strategy executes, or in a scope inside such a function.
     * The function may return to the call. Later calls compare the contexts of the thread with their own
     * team, and ask whether these belong to a parent process. The team and its objects therefore stay as they
     * are. */
    dti_team_uncount(team);
    keep(strategy);
    return DITTO_OK;
}

static ditto_status fail_entered(const struct dti_team *team)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    return DTI_FAIL(DITTO_ERR_CONTEXT, "the strategy's scope is still entered %s",
                    top == NULL || top->team != team
                        ? "on another thread, or outside the scope that this one is in: leave it there first"
                    : top->standing ? "as this thread's default: ditto_set_default(NULL) ends it"
                                    : "on this thread: leave it first (ditto_strategy_scope_leave)");
}

/* Makes sure that no call uses the strategy, and that no later call can enter it. If that is not possible, it
 * returns DITTO_ERR_BUSY or DITTO_ERR_CONTEXT and changes nothing. */
static ditto_status close(ditto_strategy *strategy)
{
    struct dti_team *team = strategy->base.team;
    DTI_TRY(dti_team_close(team));
    /* dti_team_has_scopes is an acquire, so everything that was done in scopes that have been left happens
     * before this. Entering a scope is a call that enters the team's gate. The gate is closed, so no scope
     * can be entered from here on. */
    if (!dti_team_has_scopes(team))
        return DITTO_OK;
    ditto_status status = fail_entered(team);
    dti_team_reopen(team);
    return status;
}

/* Called when all replicas of a poisoned run have returned after all, so that the strategy can be freed as
 * usual. */
static void unpoison(ditto_strategy *strategy)
{
    dti_team_clear_poison(strategy->base.team);
    /* The poisoned run did not drop these, because its replicas could still use them. */
    for (uint32_t level = 0; level < DTI_LEVELS; level++) {
        dti_value_drop(strategy->merged[level]);
        strategy->merged[level] = NULL;
    }
}

ditto_status dti_strategy_destroy(ditto_strategy *strategy)
{
    struct dti_team *team = strategy->base.team;
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return destroy_in_child(strategy);
    if (dti_team_has_turn(team))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "called inside a run of the strategy (in a merge function): "
                                           "destroy it after the run has returned");
    ditto_status others = DITTO_OK;
    bool has_workers = strategy->workers != NULL;
    if (strategy->hosts != NULL)
        DTI_TRY(dti_cluster_check_thread(strategy->hosts->cluster));
    if (has_workers && atomic_load(&strategy->workers->coordinator) != NULL)
        return DTI_FAIL(DITTO_ERR_BUSY, "the strategy has a coordinator: destroy that first");
    DTI_TRY(close(strategy));
    /* A coordinator may have been created since the first look. Creating one enters the gate, which is shut
     * now. */
    if (has_workers && atomic_load(&strategy->workers->coordinator) != NULL) {
        dti_team_reopen(team);
        return DTI_FAIL(DITTO_ERR_BUSY, "the strategy has a coordinator: destroy that first");
    }
    /* The other hosts may still need this one in a call that they made before. */
    if (strategy->hosts != NULL && !strategy->hosts->cluster->is_poisoned)
        others = dti_hosts_agree(strategy->hosts, "ditto_strategy_destroy", DITTO_OK);
    /* If a worker never returned, its function may still use the parameters. */
    ditto_status workers = has_workers ? dti_workers_destroy(strategy) : DITTO_OK;
    if (workers != DITTO_OK) {
        dti_team_poison(team);
        others = workers;
    }
    ditto_error kept = *dti_error_get();
    if (!has_workers && dti_team_is_poisoned(team) && dti_team_all_returned(team))
        unpoison(strategy);
    ditto_status status;
    if (!dti_team_is_poisoned(team)) {
        status = end(strategy);
    } else {
        dti_hosts_leave(strategy->hosts);
        keep(strategy);
        status = dti_team_destroy(team);
    }
    if (others == DITTO_OK || (status != DITTO_OK && !has_workers))
        return status;
    dti_error_set(&kept);
    return others;
}
