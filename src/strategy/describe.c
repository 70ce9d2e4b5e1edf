/* src/strategy/describe.c - what a strategy tells of itself: places as planned and as read back. */
#include "strategy/strategy.h"

#include <stdio.h>

/* With the team's turn taken: nobody destroys it meanwhile. */
static ditto_status look_at(const ditto_strategy *strategy, uint32_t replica, ditto_replica_info *out)
{
    const struct dti_team *team = strategy->base.team;
    if (replica >= team->n)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u: the strategy has %u", replica, team->n);
    const struct dti_replica *r = &team->replica[replica];
    struct dti_arena_report memory = dti_arena_inspect(r->arena);
    uint32_t sharers = 0;
    for (uint32_t i = 0; i < team->n; i++)
        sharers += team->replica[i].pu.os == r->pu.os;
    *out = (ditto_replica_info){ .place = { .replica = replica,
                                            .package = r->pu.package,
                                            .numa_node = r->pu.node_os,
                                            .core = r->pu.core,
                                            .pu = r->pu.os,
                                            .sharers = sharers },
                                 .thread_id = r->tid,
                                 .cpu = r->cpu,
                                 .memory_node = memory.first_page_node,
                                 .binding = dti_arena_binding(r->arena),
                                 .arena_bytes = memory.mapped_bytes,
                                 .pages_elsewhere = memory.pages_elsewhere };
    return DITTO_OK;
}

static const char *binding_name(ditto_binding binding)
{
    static const char *const names[] = { "unknown", "bound", "preferred", "first-touch" };
    return names[binding <= DITTO_BINDING_FIRST_TOUCH ? binding : DITTO_BINDING_UNKNOWN];
}

static void describe_replica(const ditto_replica_info *i, struct dti_text *text)
{
    char thread[24] = "caller", cpu[24] = "not bound", node[24] = "unknown";
    if (i->thread_id >= 0)
        snprintf(thread, sizeof thread, "%d", (int)i->thread_id);
    if (i->cpu >= 0)
        snprintf(cpu, sizeof cpu, "%d", (int)i->cpu);
    if (i->memory_node >= 0)
        snprintf(node, sizeof node, "%d", (int)i->memory_node);
    dti_text_add(text, "%7u  %7u  %4u  %4u  %9s  %8s  %s on node %s, %llu pages elsewhere%s\n", i->place.replica,
                 i->place.package, i->place.numa_node, i->place.pu, cpu, thread, binding_name(i->binding), node,
                 (unsigned long long)i->pages_elsewhere, i->place.sharers > 1 ? ", shared PU" : "");
}

static ditto_status write_table(const ditto_strategy *strategy, struct dti_text *text)
{
    const struct dti_team *team = strategy->base.team;
    const ditto_topology_counts *m = &strategy->machine;
    dti_text_add(text, "mirrored strategy, %u replica%s on %u package%s, %u NUMA node%s, %u core%s, %u PU%s%s\n",
                 team->n, team->n == 1 ? "" : "s", m->packages, m->packages == 1 ? "" : "s", m->numa_nodes,
                 m->numa_nodes == 1 ? "" : "s", m->cores, m->cores == 1 ? "" : "s", m->pus, m->pus == 1 ? "" : "s",
                 team->crowded ? "; more threads than PUs: waiting threads yield" : "");
    if (m->cpu_quota > 0)
        dti_text_add(text, "the process's control groups grant %.2f CPUs\n", m->cpu_quota);
    dti_text_add(text, "replica  package  node    PU  runs on    thread  memory\n");
    for (uint32_t i = 0; i < team->n; i++) {
        ditto_replica_info info;
        DTI_TRY(look_at(strategy, i, &info));
        describe_replica(&info, text);
    }
    return DITTO_OK;
}

ditto_status dti_strategy_info(ditto_strategy *strategy, uint32_t replica, ditto_replica_info *out)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_WHERE_IT_IS));
    ditto_status status = look_at(strategy, replica, out);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}

ditto_status dti_strategy_describe(ditto_strategy *strategy, struct dti_text *text)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_WHERE_IT_IS));
    ditto_status status = write_table(strategy, text);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}
