/* src/strategy/parameter_server.c - strategies of kind DITTO_PARAMETER_SERVER.
 *
 * Such a strategy consists of several teams. Its own team are the parameter servers: one thread for each
 * parameter node, which allocates the shards on its node, and sleeps otherwise. Each worker is a mirrored
 * strategy with its replicas. The coordinator (src/coordinator) executes functions on the workers. */
#include "replicas/machine/numa_node.h"
#include "replicas/placement/placement.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

/* Of the text about the queue, and of that about a worker, whose function may have a long name. */
#define DIAGNOSIS_BYTES 256u

/* -- the plan -- */

static ditto_status check(const ditto_strategy_options *o, const ditto_placement *placement)
{
    uint32_t n = placement->replicas, each = o->replicas_per_worker;
    if (o->caller == DITTO_CALLER_IS_REPLICA_0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "caller is DITTO_CALLER_IS_REPLICA_0, but workers have threads of their own: leave it 0");
    if (each > n || (each != 0 && n % each != 0))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "replicas_per_worker = %u does not divide the number of replicas, %u", each, n);
    if (o->num_parameter_nodes != 0 && o->parameter_nodes == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_parameter_nodes is %u, but parameter_nodes is NULL",
                        o->num_parameter_nodes);
    if (o->parameter_nodes != NULL && o->num_parameter_nodes == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "parameter_nodes is set, but num_parameter_nodes is 0: say how many nodes there are");
    for (uint32_t i = 0; i < o->num_parameter_nodes; i++) {
        if (!dti_node_has_memory(o->parameter_nodes[i]))
            return DTI_FAIL(
                DITTO_ERR_RANGE,
                "parameter_nodes[%u] is %u, which is not a NUMA node whose memory this process may "
                "use",
                i, o->parameter_nodes[i]);
        for (uint32_t k = 0; k < i; k++)
            if (o->parameter_nodes[k] == o->parameter_nodes[i])
                return DTI_FAIL(DITTO_ERR_INVALID, "parameter_nodes lists node %u twice, at %u and %u",
                                o->parameter_nodes[i], k, i);
    }
    return DITTO_OK;
}

/* Adds a node to the list unless it is there. */
static void add_node(struct dti_workers *w, uint32_t node)
{
    uint32_t k = 0;
    while (k < w->num_nodes && w->node[k] != node)
        k++;
    if (k == w->num_nodes)
        w->node[w->num_nodes++] = node;
}

/* Places one server on each parameter node that has PUs which the process may use, on all of them. If no
 * parameter node has any, places one server on all PUs. */
static ditto_status place_servers(const ditto_topology *topology, struct dti_workers *w)
{
    uint32_t listed = 0, sets = 0, most = topology->counts.pus;
    uint32_t *pus = calloc(most + 1, sizeof *pus), *size = calloc(w->num_nodes + 1, sizeof *size);
    for (uint32_t k = 0; pus != NULL && size != NULL && k <= w->num_nodes; k++) {
        bool all = k == w->num_nodes; /* after all nodes: only if none of them has PUs */
        for (uint32_t i = 0; i < most && (!all || sets == 0); i++)
            if (all || topology->pus[i].is.memory_node == w->node[k]) {
                pus[listed++] = topology->pus[i].is.number;
                size[sets]++;
            }
        sets += size[sets] != 0;
        if (all)
            break;
    }
    ditto_status status = pus == NULL || size == NULL
                              ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the parameter servers' PUs")
                              : dti_placement_from_sets(topology, pus, size, sets, false, &w->servers);
    free(pus);
    free(size);
    return status;
}

/* Makes the placement of worker number `index` of its replicas in the placement of all. */
static ditto_status place_worker(const ditto_topology *topology, const ditto_placement *all,
                                 struct dti_workers *w, uint32_t index)
{
    uint32_t first = index * w->replicas, listed = 0;
    for (uint32_t i = first; i < first + w->replicas; i++)
        listed += all->blocks[i].count;
    uint32_t *pus = calloc(listed, sizeof *pus), *size = calloc(w->replicas, sizeof *size);
    if (pus == NULL || size == NULL) {
        free(pus);
        free(size);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the PUs of worker %u", index);
    }
    listed = 0;
    for (uint32_t i = 0; i < w->replicas; i++) {
        size[i] = all->blocks[first + i].count;
        for (uint32_t d = 0; d < size[i]; d++)
            pus[listed++] = dti_placement_pu(all, first + i, d)->is.number;
    }
    ditto_status status = dti_placement_from_sets(topology, pus, size, w->replicas, true, &w->placed[index]);
    free(pus);
    free(size);
    return status;
}

ditto_status dti_workers_plan(ditto_strategy *strategy, const ditto_strategy_options *o,
                              const ditto_topology *topology)
{
    const ditto_placement *placement = strategy->placement;
    DTI_TRY(check(o, placement));
    struct dti_workers *w = calloc(1, sizeof *w);
    if (w == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a parameter server strategy");
    strategy->workers = w;
    w->replicas = o->replicas_per_worker != 0 ? o->replicas_per_worker : 1;
    w->limit_ms = o->run_timeout_ms != 0 ? o->run_timeout_ms : DITTO_FOREVER;
    w->count = placement->replicas / w->replicas;
    w->strategy = calloc(w->count, sizeof(ditto_strategy *));
    w->placed = calloc(w->count, sizeof(ditto_placement *));
    w->node = calloc(placement->replicas + o->num_parameter_nodes, sizeof *w->node);
    w->diagnosis_bytes = DIAGNOSIS_BYTES * ((size_t)w->count + 1);
    w->diagnosis = calloc(w->diagnosis_bytes, 1);
    if (w->strategy == NULL || w->placed == NULL || w->node == NULL || w->diagnosis == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u workers", w->count);
    for (uint32_t i = 0; i < o->num_parameter_nodes; i++)
        add_node(w, o->parameter_nodes[i]);
    for (uint32_t i = 0; o->num_parameter_nodes == 0 && i < placement->replicas; i++)
        add_node(w, dti_placement_leader(placement, i)->is.memory_node);
    for (uint32_t i = 0; i < w->count; i++)
        DTI_TRY(place_worker(topology, placement, w, i));
    return place_servers(topology, w);
}

void dti_workers_free(struct dti_workers *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; w->placed != NULL && i < w->count; i++)
        dti_placement_destroy(w->placed[i]);
    dti_placement_destroy(w->servers);
    free(w->placed);
    free(w->strategy);
    free(w->node);
    free(w->diagnosis);
    free(w);
}

/* -- the teams -- */

ditto_strategy_options dti_server_options(const ditto_strategy_options *o)
{
    ditto_strategy_options servers = DITTO_STRATEGY_OPTIONS_INIT;
    servers.caller = DITTO_CALLER_WAITS;
    servers.pin = o->pin;
    servers.helpers = DITTO_SWITCH_OFF;
    servers.stack_bytes = o->stack_bytes;
    servers.memory = o->memory;
    servers.timeout_ms = o->timeout_ms;
    servers.kernels = o->kernels;
    servers.wait = DITTO_WAIT_PASSIVE;
    return servers;
}

static ditto_status make_worker(ditto_strategy *strategy, const ditto_strategy_options *o, uint32_t index)
{
    ditto_strategy_options own = *o;
    struct dti_workers *w = strategy->workers;
    ditto_placement *placement = w->placed[index];
    w->placed[index] = NULL;
    own.caller = DITTO_CALLER_IS_REPLICA_0; /* the thread that the coordinator starts for the worker */
    own.run_timeout_ms = 0;                 /* the coordinator retires workers that are late */
    DTI_TRY(dti_strategy_create_placed(&dti_mirrored_strategy, &own, &strategy->machine, placement,
                                       &w->strategy[index]));
    dti_team_set_servers(w->strategy[index]->base.team, strategy->base.team, index * w->replicas);
    return DITTO_OK;
}

ditto_status dti_workers_make(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    for (uint32_t i = 0; i < strategy->workers->count; i++)
        DTI_TRY_OF(make_worker(strategy, o, i), "worker %u", i);
    return DITTO_OK;
}

/* No coordinator exists. If a worker is still in use, its function never returned. Then its strategy stays in
 * memory, where the late function may use it. */
ditto_status dti_workers_destroy(ditto_strategy *strategy)
{
    struct dti_workers *w = strategy->workers;
    uint32_t lost = 0, last = 0;
    for (uint32_t i = 0; w->strategy != NULL && i < w->count; i++) {
        if (w->strategy[i] == NULL)
            continue;
        if (dti_strategy_destroy(w->strategy[i]) == DITTO_OK) {
            w->strategy[i] = NULL;
            continue;
        }
        lost++;
        last = i;
    }
    if (lost == 0)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_POISONED,
        "destroyed, but %u worker%s (number %u%s) never returned from a function: the threads still "
        "run, and the memory of the strategy is not freed",
        lost, lost == 1 ? "" : "s", last, lost == 1 ? "" : " is the last of them");
}

/* -- reports -- */

void dti_workers_describe(const ditto_strategy *strategy, struct dti_text *text)
{
    const struct dti_workers *w = strategy->workers;
    dti_text_add(text, "parameter server strategy, %u worker%s of %u replica%s, parameters on NUMA node%s",
                 w->count, w->count == 1 ? "" : "s", w->replicas, w->replicas == 1 ? "" : "s",
                 w->num_nodes == 1 ? "" : "s");
    for (uint32_t k = 0; k < w->num_nodes; k++)
        dti_text_add(text, " %u", w->node[k]);
    dti_text_add(text, "\nworker  replica  package  node   PU  threads on it\n");
    for (uint32_t i = 0; i < strategy->placement->replicas; i++) {
        ditto_placed_device placed;
        if (ditto_placement_get(strategy->placement, i, 0, &placed) != DITTO_OK)
            continue;
        dti_text_add(text, "%6u  %7u  %7u  %4d  %3u  %13u\n", i / w->replicas, i, placed.pu.package,
                     placed.pu.numa_node == DITTO_NO_NODE ? -1 : (int)placed.pu.numa_node, placed.pu.number,
                     placed.num_sharers);
    }
}

const char *dti_workers_diagnose(struct dti_workers *w)
{
    struct dti_text text = { w->diagnosis, w->diagnosis_bytes, 0 };
    /* acquire: pairs with the thread that creates the coordinator. */
    const struct ditto_coordinator *c = atomic_load_explicit(&w->coordinator, memory_order_acquire);
    if (c != NULL)
        atomic_load_explicit(&w->diagnose, memory_order_relaxed)(c, &text);
    else
        dti_text_add(&text, "%u workers without a coordinator\n", w->count);
    return w->diagnosis;
}

/* Takes the turns first, and then looks for functions. A worker has its team's turn for a moment before the
 * clock of a function begins, so a function that is scheduled later begins after the turns are given back. */
ditto_status dti_workers_take_turns(const ditto_strategy *strategy, bool *taken)
{
    const struct dti_workers *w = strategy->workers;
    uint32_t i = 0;
    while (i < w->count && dti_team_try_turn(dti_team_of(w->strategy[i]), &taken[i]))
        i++;
    if (i == w->count && dti_team_check_unused(dti_team_of(strategy), "strategy", "") == DITTO_OK)
        return DITTO_OK;
    while (i-- > 0)
        dti_team_give_turn(dti_team_of(w->strategy[i]), taken[i]);
    return DTI_FAIL(DITTO_ERR_BUSY,
                    "functions are in the queue of the coordinator or being executed: wait for "
                    "them (ditto_coordinator_join)");
}

void dti_workers_give_turns(const ditto_strategy *strategy, const bool *taken)
{
    const struct dti_workers *w = strategy->workers;
    for (uint32_t i = 0; i < w->count; i++)
        dti_team_give_turn(dti_team_of(w->strategy[i]), taken[i]);
}

ditto_status dti_workers_info(const ditto_strategy *strategy, uint32_t replica, uint32_t device,
                              ditto_replica_info *out)
{
    ditto_placed_device placed;
    if (replica >= strategy->placement->replicas)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u does not exist: the strategy has %u", replica,
                        strategy->placement->replicas);
    DTI_TRY(DTI_OWN(ditto_placement_get(strategy->placement, replica, device, &placed)));
    *out = (ditto_replica_info){ .planned = placed,
                                 .num_devices = ditto_placement_num_devices(strategy->placement, replica),
                                 .thread_id = -1,
                                 .cpu = -1,
                                 .memory_node = -1 };
    return DITTO_OK;
}
