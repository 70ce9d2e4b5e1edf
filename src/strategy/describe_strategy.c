/* src/strategy/describe_strategy.c - describes a strategy: where its replicas were placed, and where the
 * system reports that they are. */
#include "base/text/environment.h"
#include "base/waiting/run_delay.h"
#include "replicas/helpers/crew.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/limits.h"
#include "replicas/placement/placement.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"
#include "sync/hosts/hosts.h"
#include "vars/vars.h"

#include <stdio.h>

/* Less waiting for PUs than this, or than 1 of so many nanoseconds, is normal: a few short threads of the
 * system run everywhere. */
#define LEAST_DELAY_NS    20000000u
#define LEAST_DELAY_SHARE 10

/* Returns the number of threads of other strategies on a PU. */
static uint32_t foreign_threads_on(const struct dti_team *team, const ditto_placed_device *placed)
{
    uint32_t bound = dti_team_options(team)->pin ? dti_load_on(placed->pu.number) : 0;
    uint32_t own_threads = dti_team_threads_on(team, placed->pu.number);
    return bound > own_threads ? bound - own_threads : 0;
}

/* Returns the PU on which a thread of the strategy ran last. The thread number is -1 for the calling thread,
 * which dti_cross_enter has bound as in a run. Returns -1 if threads are not bound, or it is not known. */
static int32_t pu_of_thread(const struct dti_team *team, int32_t tid)
{
    return dti_team_options(team)->pin ? dti_thread_pu(tid >= 0 ? tid : 0) : -1;
}

/* Fills in the information about a replica. The caller has the turn, so the replica is parked or pauses, and
 * the strategy is not destroyed meanwhile. */
static ditto_status inspect_replica(const ditto_strategy *strategy, uint32_t index, ditto_replica_info *out)
{
    const struct dti_team *team = strategy->base.team;
    ditto_placed_device placed = { 0 };
    DTI_TRY(DTI_OWN(ditto_placement_get(strategy->placement, index, 0, &placed)));
    const struct dti_replica *r = dti_team_replica(team, index);
    struct dti_arena_report memory = dti_arena_inspect(r->arena);
    dti_remote_memory_inspect(r->remote_memory, &memory);
    *out = (ditto_replica_info){ .planned = placed,
                                 .num_devices = r->crew->devices,
                                 .thread_id = r->tid,
                                 .cpu = pu_of_thread(team, r->tid),
                                 .memory_node = memory.first_page_node,
                                 .binding = dti_arena_binding(r->arena),
                                 .arena_bytes = memory.mapped_bytes,
                                 .remote_pages = memory.remote_pages };
    out->planned.replica = r->id; /* and not its place in the placement of this host */
    for (uint32_t d = 0; d < r->pus; d++) {
        DTI_TRY(DTI_OWN(ditto_placement_get(strategy->placement, index, d, &placed)));
        uint32_t foreign_threads = foreign_threads_on(team, &placed);
        out->num_foreign_threads = foreign_threads > out->num_foreign_threads ? foreign_threads
                                                                              : out->num_foreign_threads;
    }
    return DITTO_OK;
}

static ditto_status inspect_device(const ditto_strategy *strategy, uint32_t index, uint32_t device,
                                   ditto_replica_info *out)
{
    const struct dti_team *team = strategy->base.team;
    ditto_placed_device placed;
    const struct dti_replica *r = dti_team_replica(team, index);
    if (device >= r->crew->devices)
        return DTI_FAIL(DITTO_ERR_RANGE, "logical device %u does not exist: replica %u has %u", device, r->id,
                        r->crew->devices);
    DTI_TRY(DTI_OWN(ditto_placement_get(strategy->placement, index, device, &placed)));
    placed.replica = r->id;
    const struct dti_device *d = &r->crew->device[device];
    *out = (ditto_replica_info){ .planned = placed,
                                 .num_devices = r->crew->devices,
                                 .num_foreign_threads = foreign_threads_on(team, &placed),
                                 .thread_id = d->tid,
                                 .cpu = pu_of_thread(team, d->tid),
                                 .memory_node = -1 };
    return DITTO_OK;
}

/* Returns the number of threads of a replica that are not bound to their PUs any more. The kernel moves them
 * if the cpuset changes or a PU goes offline, and other programs may move them (taskset -p). */
static uint32_t moved_threads(const ditto_strategy *strategy, uint32_t replica)
{
    const struct dti_replica *r = dti_team_replica(strategy->base.team, replica);
    uint32_t count = 0;
    for (uint32_t d = 0; d < r->crew->devices && dti_team_options(strategy->base.team)->pin; d++) {
        struct dti_mask own;
        dti_mask_clear(&own);
        dti_mask_add(&own, r->crew->device[d].pu.number);
        count += !dti_thread_is_bound_to(d > 0         ? r->crew->device[d].tid
                                         : r->tid >= 0 ? r->tid
                                                       : 0,
                                         d > 0 ? &own : &r->mask);
    }
    return count;
}

static const char *binding_name(ditto_binding binding)
{
    static const char *const names[] = { "unknown", "bound", "preferred", "first-touch" };
    return names[binding <= DITTO_BINDING_FIRST_TOUCH ? binding : DITTO_BINDING_UNKNOWN];
}

/* Writes the PUs of a replica, for example "0-7,64-71". */
static void write_pus(const ditto_strategy *strategy, uint32_t replica, char *buffer, size_t size)
{
    struct dti_text text = { buffer, size, 0 };
    struct dti_number_list list = { .text = &text, .first = 1 };
    for (uint32_t d = 0; d < ditto_placement_num_devices(strategy->placement, replica); d++)
        dti_number_list_add(&list, dti_placement_pu(strategy->placement, replica, d)->is.number);
    dti_number_list_end(&list);
    dti_number_list_fit(&text);
}

/* If other threads have used the PUs of a replica, of other programs or of this one, writes for which
 * share of the time its threads could have run, but waited for their PUs. The thread that calls run is
 * left out, because it also worked elsewhere. */
static void describe_foreign_load(const ditto_strategy *strategy, uint32_t replica, struct dti_text *text)
{
    const struct dti_replica *r = dti_team_replica(strategy->base.team, replica);
    uint64_t ran_ns = 0, delayed_ns = 0;
    if (r->tid >= 0)
        dti_run_delay_add(r->tid, &ran_ns, &delayed_ns);
    for (uint32_t d = 1; d < r->crew->devices; d++)
        dti_run_delay_add(r->crew->device[d].tid, &ran_ns, &delayed_ns);
    if (delayed_ns >= LEAST_DELAY_NS && delayed_ns >= (ran_ns + delayed_ns) / LEAST_DELAY_SHARE)
        dti_text_add(text, ", waited %.0f %% of its time for PUs that other threads used%s",
                     100 * (double)delayed_ns / (double)(ran_ns + delayed_ns),
                     dti_team_options(strategy->base.team)->pin
                         ? ": give it other PUs, or do not pin threads (DITTO_PIN_NONE)"
                         : "");
}

static void describe_replica(const ditto_strategy *strategy, uint32_t index, const ditto_replica_info *i,
                             struct dti_text *text)
{
    bool pin = dti_team_options(strategy->base.team)->pin;
    char thread[24] = "caller", cpu[24], node[24] = "unknown", pus[32], shared[96] = "", misplaced[96] = "";
    const ditto_pu *pu = &i->planned.pu;
    uint32_t own_threads = dti_team_threads_on(strategy->base.team, pu->number);
    if (i->thread_id >= 0)
        snprintf(thread, sizeof thread, "%d", (int)i->thread_id);
    snprintf(cpu, sizeof cpu, "%s", pin ? "unknown" : "not bound");
    if (i->cpu >= 0)
        snprintf(cpu, sizeof cpu, "%d", (int)i->cpu);
    if (i->memory_node >= 0)
        snprintf(node, sizeof node, "%d", (int)i->memory_node);
    if (own_threads > 1)
        snprintf(shared, sizeof shared, ", PU shared by %u threads", own_threads);
    else if (i->num_foreign_threads > 0)
        snprintf(shared, sizeof shared, ", PU shared with %u thread%s of other strategies",
                 i->num_foreign_threads, i->num_foreign_threads == 1 ? "" : "s");
    uint32_t moved = moved_threads(strategy, index);
    if (moved > 0)
        snprintf(misplaced, sizeof misplaced,
                 ", %u thread%s moved from %s since creation (cpuset, taskset -p)", moved,
                 moved == 1 ? "" : "s", moved == 1 ? "its PU" : "their PUs");
    write_pus(strategy, index, pus, sizeof pus);
    dti_text_add(text, "%7u  %7u  %4d  %9s  %9s  %8s  %7u  %s on node %s, %llu pages on other nodes%s%s",
                 i->planned.replica, pu->package, pu->numa_node == DITTO_NO_NODE ? -1 : (int)pu->numa_node,
                 pus, cpu, thread, i->num_devices, binding_name(i->binding), node,
                 (unsigned long long)i->remote_pages, shared, misplaced);
    if (own_threads <= 1 && i->num_foreign_threads == 0)
        describe_foreign_load(strategy, index, text);
    dti_text_add(text, "\n");
}

/* Writes which PUs are of which kind of cores, if there are several kinds. */
static void describe_kinds(const ditto_placement *p, struct dti_text *text)
{
    uint32_t kinds = 0, used = 0;
    for (uint32_t i = 0; i < p->num_pus; i++)
        kinds = p->pus[i].faster_kinds >= kinds ? p->pus[i].faster_kinds + 1 : kinds;
    if (kinds < 2)
        return;
    dti_text_add(text, "the cores are of %u kinds, the fastest first: PUs ", kinds);
    for (uint32_t kind = 0; kind < kinds; kind++) {
        struct dti_mask pus;
        bool is_used = false;
        dti_mask_clear(&pus);
        for (uint32_t i = 0; i < p->num_pus; i++)
            if (p->pus[i].faster_kinds == kind) {
                dti_mask_add(&pus, p->pus[i].is.number);
                is_used |= p->sharers[i] > 0;
            }
        used += is_used;
        dti_text_add(text, "%s", kind > 0 ? "; " : "");
        dti_mask_write(&pus, text);
    }
    if (used > 1)
        dti_text_add(text,
                     ". Replicas are on %u of them, and wait for the slowest; fastest_kinds leaves slow "
                     "ones out",
                     used);
    dti_text_add(text, "\n");
}

/* Writes limits and settings of the process that a user may not expect. */
static void describe_limits(const ditto_strategy *strategy, struct dti_text *text)
{
    ditto_limits limits;
    dti_limits_read("", dti_context_saved_mask(), &limits);
    const ditto_topology_counts *m = &strategy->machine;
    describe_kinds(strategy->placement, text);
    if (m->affinity_pus < m->cpuset_pus) {
        const char *variable = dti_openmp_binding();
        dti_text_add(text, "the affinity of the creating thread leaves out %u of the cpuset's %u PUs: %s%s\n",
                     m->cpuset_pus - m->affinity_pus, m->cpuset_pus,
                     variable != NULL ? variable : "taskset, numactl, a launcher or the program has set it",
                     variable != NULL
                         ? " lets OpenMP bind the thread of main; unset it for this program, unless "
                           "taskset, numactl or a launcher has set the affinity"
                         : "");
    }
    if (m->num_parts > 1)
        dti_text_add(text, "this process has part %u/%u of the PUs (%s)%s; DITTO_PART=off gives it all\n",
                     m->part, m->num_parts, m->part_source,
                     m->part_is_shared ? ", which other processes may use too" : "");
    if (strategy->machine.cpu_quota > 0)
        dti_text_add(text, "the process's control groups grant %.2f CPUs\n", strategy->machine.cpu_quota);
    if (limits.memory_policy > DITTO_NUMA_POLICY_DEFAULT && limits.memory_policy != DITTO_NUMA_POLICY_LOCAL)
        dti_text_add(text,
                     "the calling thread has a memory policy (numactl?) for nodes %s: ditto's memory does "
                     "not follow it\n",
                     limits.policy_nodes);
    if (limits.mbind_errno != 0)
        dti_text_add(text, "mbind is refused: pages are placed by first touch%s\n",
                     limits.numa_balancing > 0 ? ", and numa_balancing may move them" : "");
    char unknown[160];
    for (size_t at = 0; dti_unknown_variable(&at, unknown, sizeof unknown);)
        dti_text_add(text, "%s\n", unknown);
}

static ditto_status write_table(const ditto_strategy *strategy, struct dti_text *text)
{
    if (strategy->workers != NULL) {
        dti_workers_describe(strategy, text);
        describe_limits(strategy, text);
        return DITTO_OK;
    }
    const struct dti_team *team = strategy->base.team;
    const ditto_topology_counts *m = &strategy->machine;
    dti_text_add(text, "%s strategy, %u replica%s on %u package%s, %u NUMA node%s, %u core%s, %u PU%s%s\n",
                 strategy->kind->name, dti_team_num_replicas(team),
                 dti_team_num_replicas(team) == 1 ? "" : "s", m->packages, m->packages == 1 ? "" : "s",
                 m->numa_nodes, m->numa_nodes == 1 ? "" : "s", m->cores, m->cores == 1 ? "" : "s", m->pus,
                 m->pus == 1 ? "" : "s",
                 dti_team_is_oversubscribed(team)
                     ? "; threads share PUs, or exceed the CPU quota: waiting threads yield"
                     : "");
    if (dti_vars_storage(team)->central)
        dti_text_add(text, "variables have one copy, on NUMA node %u\n", dti_vars_storage(team)->node);
    if (dti_team_tree(team)->blocks > 1)
        dti_text_add(text, "replicas are combined in %u blocks (order_blocks)\n",
                     dti_team_tree(team)->blocks);
    if (strategy->hosts != NULL)
        dti_hosts_describe(strategy->hosts, dti_team_tree(team), text);
    dti_waiting_describe(team, text);
    if (dti_team_num_replicas(team) > 1)
        dti_tuning_describe(&dti_team_sync(team)->tuning.given, text);
    dti_sync_describe_groupings(team, text);
    describe_limits(strategy, text);
    dti_text_add(text, "replica  package  node        PUs    runs on    thread  devices  memory\n");
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++) {
        ditto_replica_info info;
        DTI_TRY(inspect_replica(strategy, i, &info));
        describe_replica(strategy, i, &info, text);
    }
    dti_input_describe(team, text);
    return DITTO_OK;
}

ditto_status dti_strategy_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                               ditto_replica_info *out)
{
    struct dti_frame frame;
    uint32_t index;
    if (strategy->workers != NULL)
        return dti_workers_info(strategy, replica, device, out);
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_team_index(strategy->base.team, replica, &index);
    if (status == DITTO_OK)
        status = device == 0 ? inspect_replica(strategy, index, out)
                             : inspect_device(strategy, index, device, out);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}

ditto_status dti_strategy_describe(ditto_strategy *strategy, struct dti_text *text)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_PINNED));
    ditto_status status = write_table(strategy, text);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}
