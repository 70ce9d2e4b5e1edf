/* src/replicas/placement.c - which PU each replica gets. Pure: no thread, no system call.
 *
 * A candidate PU has a tier: 0 the first PU of a core, 1 its SMT sibling, and so on; when all are taken, they are shared
 * round robin. Tiers are filled one after the other, so that SMT siblings come last and sharing comes after them.
 * Within a tier SPREAD takes nodes in turn, COMPACT one after the other. The places are then sorted node by node: ids, and
 * with them the order of reduction, follow the mesh, whatever the policy. */
#include "replicas/placement.h"
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Per PU of the topology, how many replicas it has. */
struct tally {
    uint32_t *replicas_on; /* [counts.pus] */
    uint32_t wanted;
};

static uint32_t default_replicas(const ditto_topology_counts *counts)
{
    uint32_t replicas = counts->cores;
    if (counts->cpu_quota > 0 && ceil(counts->cpu_quota) < replicas)
        replicas = (uint32_t)ceil(counts->cpu_quota);
    return replicas < DITTO_MAX_REPLICAS ? replicas : DITTO_MAX_REPLICAS;
}

/* The next free PU of `node` in `tier`, from *cursor on; counts.pus when there is none. */
static uint32_t next_in_node(const ditto_topology *t, uint32_t node, uint32_t tier, uint32_t *cursor)
{
    while (*cursor < t->counts.pus && !(t->pus[*cursor].node == node && t->pus[*cursor].smt == tier))
        ++*cursor;
    return *cursor < t->counts.pus ? (*cursor)++ : t->counts.pus;
}

/* One pass over a tier: at most one replica more on each of its PUs. Returns how many were placed. */
static uint32_t fill_tier(const ditto_topology *t, ditto_policy policy, uint32_t tier, uint32_t left,
                          struct tally *tally, uint32_t *cursors)
{
    uint32_t placed = 0, nodes = t->counts.numa_nodes;
    memset(cursors, 0, nodes * sizeof *cursors);
    for (bool progress = true; progress && placed < left;) {
        progress = false;
        for (uint32_t node = 0; node < nodes && placed < left; node++) {
            uint32_t pu;
            do { /* SPREAD: one from each node in turn; COMPACT: all of a node */
                pu = next_in_node(t, node, tier, &cursors[node]);
                if (pu == t->counts.pus)
                    break;
                tally->replicas_on[pu]++;
                placed++;
                progress = true;
            } while (policy == DITTO_COMPACT && placed < left);
        }
    }
    return placed;
}

static ditto_status by_policy(const ditto_topology *t, ditto_policy policy, struct tally *tally)
{
    uint32_t *cursors = malloc(t->counts.numa_nodes * sizeof *cursors);
    uint32_t tiers = 0, left = tally->wanted;
    if (cursors == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to place %u replicas", left);
    for (uint32_t i = 0; i < t->counts.pus; i++)
        tiers = t->pus[i].smt >= tiers ? t->pus[i].smt + 1 : tiers;
    while (left > 0) /* a second round over the tiers shares PUs */
        for (uint32_t tier = 0; tier < tiers && left > 0; tier++)
            left -= fill_tier(t, policy, tier, left, tally, cursors);
    free(cursors);
    return DITTO_OK;
}

static ditto_status by_list(const ditto_topology *t, const ditto_placement_options *options, struct tally *tally)
{
    for (uint32_t i = 0; i < options->num_pus; i++) {
        uint32_t pu = 0;
        while (pu < t->counts.pus && t->pus[pu].os != options->pus[i])
            pu++;
        if (pu == t->counts.pus)
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "pus[%u] asks for PU %u, which this process may not use (it has %u PUs, the first is %u): "
                            "widen the affinity or cpuset, or choose another",
                            i, options->pus[i], t->counts.pus, t->pus[0].os);
        if (tally->replicas_on[pu]++ > 0 && (options->flags & DITTO_PLACEMENT_SHARE) == 0)
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "pus[%u] names PU %u again: set DITTO_PLACEMENT_SHARE if replicas shall share", i,
                            options->pus[i]);
    }
    return DITTO_OK;
}

/* Ids node by node, in the order of the mesh; replicas that share a PU have neighbouring ids. */
static ditto_status number_replicas(const ditto_topology *t, const struct tally *tally, ditto_placement **out)
{
    ditto_placement *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->blocks = calloc(tally->wanted, sizeof *p->blocks);
        p->pus = calloc(tally->wanted, sizeof *p->pus);
    }
    if (p == NULL || p->blocks == NULL || p->pus == NULL) {
        ditto_placement_destroy(p);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u places", tally->wanted);
    }
    for (uint32_t pu = 0; pu < t->counts.pus; pu++) {
        p->shared |= tally->replicas_on[pu] > 1;
        for (uint32_t k = 0; k < tally->replicas_on[pu]; k++) {
            p->blocks[p->replicas++] = (struct dti_block){ .first = p->listed, .count = 1 };
            p->pus[p->listed++] = t->pus[pu];
        }
    }
    *out = p;
    return DITTO_OK;
}

static ditto_status check(const ditto_placement_options *o, uint32_t wanted)
{
    DTI_TRY(dti_flags_check(o->flags, DITTO_PLACEMENT_SHARE, "flags"));
    if (o->policy != DITTO_SPREAD && o->policy != DITTO_COMPACT)
        return DTI_FAIL(DITTO_ERR_RANGE, "%d is not a policy: DITTO_SPREAD or DITTO_COMPACT", (int)o->policy);
    if (wanted > DITTO_MAX_REPLICAS)
        return DTI_FAIL(DITTO_ERR_RANGE, "%u replicas: a strategy has at most %u", wanted, DITTO_MAX_REPLICAS);
    if (o->num_pus > 0 && o->pus == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_pus is %u but pus is NULL", o->num_pus);
    if (o->num_pus > 0 && o->replicas > 0 && o->replicas != o->num_pus)
        return DTI_FAIL(DITTO_ERR_INVALID, "replicas is %u but pus has %u entries: leave one of them 0", o->replicas,
                        o->num_pus);
    return DITTO_OK;
}

ditto_status dti_placement_make(const ditto_topology *topology, const ditto_placement_options *o, ditto_placement **out)
{
    struct tally tally = { .wanted = o->num_pus > 0    ? o->num_pus
                                     : o->replicas > 0 ? o->replicas
                                                       : default_replicas(&topology->counts) };
    DTI_TRY(check(o, tally.wanted));
    tally.replicas_on = calloc(topology->counts.pus, sizeof *tally.replicas_on);
    if (tally.replicas_on == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to place %u replicas", tally.wanted);
    ditto_status status = o->num_pus > 0 ? by_list(topology, o, &tally) : by_policy(topology, o->policy, &tally);
    if (status == DITTO_OK)
        status = number_replicas(topology, &tally, out);
    free(tally.replicas_on);
    return status;
}

const struct dti_pu *dti_placement_leader(const ditto_placement *placement, uint32_t replica)
{
    return &placement->pus[placement->blocks[replica].first];
}
