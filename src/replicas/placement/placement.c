/* src/replicas/placement/placement.c - chooses the candidate of each replica, tier by tier (fast kinds of
 * cores first, SMT siblings last), and spread over nodes or compact. It uses no thread and no system call.
 *
 * Candidates are used tier by tier. The first tiers start on the first PUs of cores, those of the fastest
 * kind before those of the next one, and the next tiers on SMT siblings. In an irregular mesh the last tier
 * has the PUs that are left over. If all candidates are used and sharing is allowed, the same order is used
 * again. Within a tier SPREAD takes one candidate of each domain in turn, and COMPACT takes all candidates of
 * a domain before the next domain (topology.h). With both policies replica ids then follow the order of the
 * mesh, so the order of reduction, and with it every bit of the result, does not depend on the policy. */
#include "replicas/placement/placement.h"
#include "base/errors/status.h"
#include "base/types/types.h"
#include "replicas/placement/candidates.h"

#include <stdlib.h>
#include <string.h>

/* -- choosing -- */

struct choice {
    const ditto_topology *t;
    const struct dti_candidates *candidates;
    uint32_t *taken;   /* [candidates->count] how many replicas each has */
    uint32_t *cursors; /* [t->domains] workspace */
};

static uint32_t domain_of(const struct choice *c, uint32_t candidate)
{
    return c->t->pus[c->candidates->candidate[candidate].leader].domain;
}

/* Returns the next candidate of a domain and tier, from *cursor on, or candidates->count if there is none.
 * Moves *cursor behind it. */
static uint32_t next_in_domain(const struct choice *c, uint32_t domain, uint32_t tier, uint32_t *cursor)
{
    uint32_t count = c->candidates->count;
    while (*cursor < count &&
           !(domain_of(c, *cursor) == domain && c->candidates->candidate[*cursor].tier == tier))
        ++*cursor;
    return *cursor < count ? (*cursor)++ : count;
}

/* Makes one pass over a tier, which places at most one more replica on each of its candidates. Returns how
 * many were placed. */
static uint32_t fill_tier(const struct choice *c, ditto_placement_policy policy, uint32_t tier, uint32_t left)
{
    uint32_t placed = 0, count = c->candidates->count;
    memset(c->cursors, 0, c->t->domains * sizeof *c->cursors);
    for (bool progress = true; progress && placed < left;) {
        progress = false;
        for (uint32_t domain = 0; domain < c->t->domains && placed < left; domain++) {
            uint32_t candidate;
            /* SPREAD takes one candidate of the domain, COMPACT takes all of them. */
            do {
                candidate = next_in_domain(c, domain, tier, &c->cursors[domain]);
                if (candidate == count)
                    break;
                c->taken[candidate]++;
                placed++;
                progress = true;
            } while (policy == DITTO_PLACEMENT_COMPACT && placed < left);
        }
    }
    return placed;
}

/* -- the placement -- */

static bool allocate(ditto_placement *p, const ditto_topology *t, uint32_t replicas, size_t listed)
{
    p->blocks = calloc(replicas + 1u, sizeof *p->blocks); /* + 1, so that the size is never 0 */
    p->list = calloc(listed + 1, sizeof *p->list);
    p->pus = calloc(t->counts.pus, sizeof *p->pus);
    p->sharers = calloc(t->counts.pus, sizeof *p->sharers);
    return p->blocks != NULL && p->list != NULL && p->pus != NULL && p->sharers != NULL;
}

static void free_grouping(struct dti_replica_grouping *grouping)
{
    free(grouping->first);
    free(grouping->member);
}

void dti_placement_destroy(ditto_placement *placement)
{
    if (placement == NULL)
        return;
    for (int level = 0; level < DTI_NUM_LEVELS; level++)
        free_grouping(&placement->level[level]);
    free(placement->blocks);
    free(placement->list);
    free(placement->pus);
    free(placement->sharers);
    free(placement);
}

/* Returns the number of the leader by which replicas are grouped. */
static uint32_t key_of(const ditto_placement *p, int level, uint32_t replica)
{
    const struct dti_pu *pu = dti_placement_leader(p, replica);
    return level == DTI_LEVEL_LLC ? pu->is.llc : level == DTI_LEVEL_NODE ? pu->domain : pu->is.mesh[0];
}

/* Makes the groups, in the order of their first replicas. Returns false if there is no memory. */
static bool make_grouping(const ditto_placement *p, int level, struct dti_replica_grouping *out)
{
    out->first = calloc(p->replicas + 1u, sizeof *out->first);
    out->member = calloc(p->replicas + 1u, sizeof *out->member);
    bool *seen = calloc(p->replicas + 1u, sizeof *seen);
    bool done = out->first != NULL && out->member != NULL && seen != NULL;
    uint32_t used = 0;
    for (uint32_t i = 0; i < p->replicas && done; i++) {
        if (seen[i])
            continue;
        uint32_t wanted = key_of(p, level, i);
        for (uint32_t k = i; k < p->replicas; k++)
            if (!seen[k] && key_of(p, level, k) == wanted) {
                seen[k] = true;
                out->member[used++] = k;
            }
        out->first[++out->groups] = used;
    }
    free(seen);
    return done;
}

/* Numbers the replicas in the order of their candidates. Replicas that share a candidate have neighbouring
 * ids. */
static void number_replicas(const ditto_topology *t, const struct dti_candidates *candidates,
                            const uint32_t *taken, ditto_placement *p)
{
    uint32_t listed = 0;
    p->num_pus = t->counts.pus;
    p->machine_pus = t->counts.machine_pus;
    p->machine_nodes = t->counts.machine_nodes;
    memcpy(p->pus, t->pus, t->counts.pus * sizeof *p->pus);
    for (uint32_t s = 0; s < candidates->count; s++)
        for (uint32_t copy = 0; copy < taken[s]; copy++) {
            const struct dti_candidate *candidate = &candidates->candidate[s];
            p->blocks[p->replicas++] = (struct dti_pu_block){ listed, candidate->count };
            for (uint32_t k = 0; k < candidate->count; k++) {
                uint32_t pu = candidates->pu[candidate->first + k];
                p->list[listed++] = pu;
                p->shared |= ++p->sharers[pu] > 1;
            }
        }
}

static ditto_status make(const ditto_topology *t, const struct dti_candidates *candidates,
                         const uint32_t *taken, ditto_placement **out)
{
    ditto_placement *p = calloc(1, sizeof *p);
    uint32_t replicas = 0;
    size_t listed = 0;
    for (uint32_t s = 0; s < candidates->count; s++) {
        replicas += taken[s];
        listed += (size_t)taken[s] * candidates->candidate[s].count;
    }
    bool done = p != NULL && allocate(p, t, replicas, listed);
    if (done) {
        number_replicas(t, candidates, taken, p);
        for (int level = 0; level < DTI_NUM_LEVELS; level++)
            done = done && make_grouping(p, level, &p->level[level]);
    }
    if (!done) {
        dti_placement_destroy(p);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u replicas on %zu PUs", replicas, listed);
    }
    *out = p;
    return DITTO_OK;
}

/* Places `wanted` replicas on the candidates, as the policy says. */
static ditto_status assign_candidates(const ditto_topology *t, const ditto_placement_options *o,
                                      const struct dti_candidates *candidates, uint32_t wanted,
                                      ditto_placement **out)
{
    struct choice c = { t, candidates, calloc(candidates->count + 1u, sizeof *c.taken),
                        calloc(t->domains, sizeof *c.cursors) };
    ditto_status status = DITTO_OK;
    if (c.taken == NULL || c.cursors == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to place %u replicas", wanted);
    /* From the second round over the tiers on, replicas share candidates. */
    for (uint32_t left = wanted; left > 0 && status == DITTO_OK;)
        for (uint32_t tier = 0; tier < candidates->tiers && left > 0; tier++)
            left -= fill_tier(&c, o->policy, tier, left);
    if (status == DITTO_OK)
        status = make(t, candidates, c.taken, out);
    free(c.taken);
    free(c.cursors);
    return status;
}

/* -- options -- */

static ditto_status check_number(uint32_t wanted)
{
    if (wanted > DITTO_MAX_REPLICAS)
        return DTI_FAIL(DITTO_ERR_RANGE, "%u replicas: a strategy has at most %u", wanted,
                        DITTO_MAX_REPLICAS);
    return DITTO_OK;
}

static ditto_status check_rank(const int64_t *values, uint32_t rank, const char *name)
{
    if (values == NULL && rank != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s_rank is %u but %s is NULL", name, rank, name);
    if (values != NULL && rank != DITTO_MESH_RANK)
        return DTI_FAIL(DITTO_ERR_SHAPE,
                        "%s has %u dimension%s: the mesh has %d, [packages, NUMA nodes, cores, PUs], and "
                        "%s_rank must say so",
                        name, rank, rank == 1 ? "" : "s", DITTO_MESH_RANK, name);
    return DITTO_OK;
}

static ditto_status check(const ditto_placement_options *o)
{
    bool has_shape = o->shape != NULL || o->stride != NULL;
    DTI_TRY(dti_flags_check(o->flags, DITTO_PLACEMENT_SHARE | DITTO_PLACEMENT_NO_SMT, "flags"));
    if ((int)o->policy < DITTO_PLACEMENT_DEFAULT || o->policy > DITTO_PLACEMENT_COMPACT)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "%d is not a policy: use DITTO_PLACEMENT_SPREAD or DITTO_PLACEMENT_COMPACT",
                        (int)o->policy);
    if ((int)o->span < DITTO_SPAN_DEFAULT || o->span > DITTO_SPAN_MACHINE)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "span = %d is not a value of its enum: use DITTO_SPAN_PU to DITTO_SPAN_MACHINE",
                        (int)o->span);
    DTI_TRY(check_rank(o->shape, o->shape_rank, "shape"));
    DTI_TRY(check_rank(o->stride, o->stride_rank, "stride"));
    if (o->num_pus > 0 && o->pus == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_pus is %u but pus is NULL", o->num_pus);
    if (o->num_pus == 0 && o->pus != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "pus is set but num_pus is 0: set it to the number of entries");
    if ((o->num_pus > 0) + (o->span != DITTO_SPAN_DEFAULT) + has_shape + (o->pus_per_replica > 0) > 1)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "more than one of pus, span, pus_per_replica and shape (or stride) is set: choose one");
    if (o->num_pus > 0 && (o->flags & DITTO_PLACEMENT_NO_SMT) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "DITTO_PLACEMENT_NO_SMT with pus: leave the siblings out of the list");
    if (o->num_pus == 0 && o->set_sizes != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "set_sizes is set but there are no pus");
    return check_number(o->num_replicas);
}

static ditto_status by_list(const ditto_topology *t, const ditto_placement_options *o, ditto_placement **out)
{
    uint64_t listed = 0;
    if (o->set_sizes == NULL && o->num_replicas > 0 && o->num_replicas != o->num_pus)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_replicas is %u but pus has %u entries: leave one of them 0",
                        o->num_replicas, o->num_pus);
    if (o->set_sizes != NULL && o->num_replicas == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "set_sizes is set but num_replicas is 0: set it to the number of sets");
    for (uint32_t i = 0; i < o->num_replicas && o->set_sizes != NULL; i++) {
        listed += o->set_sizes[i];
        if (o->set_sizes[i] == 0)
            return DTI_FAIL(DITTO_ERR_RANGE, "set_sizes[%u] is 0: each replica needs a PU", i);
    }
    if (o->set_sizes != NULL && listed != o->num_pus)
        return DTI_FAIL(DITTO_ERR_INVALID, "set_sizes add up to %llu, but pus has %u entries",
                        (unsigned long long)listed, o->num_pus);
    return dti_placement_from_sets(t, o->pus, o->set_sizes,
                                   o->set_sizes != NULL ? o->num_replicas : o->num_pus,
                                   (o->flags & DITTO_PLACEMENT_SHARE) != 0, out);
}

ditto_status dti_placement_from_sets(const ditto_topology *t, const uint32_t *pus, const uint32_t *set_sizes,
                                     uint32_t sets, bool share, ditto_placement **out)
{
    struct dti_candidates candidates;
    DTI_TRY(check_number(sets));
    DTI_TRY(dti_candidates_by_list(t, pus, set_sizes, sets, share, &candidates));
    uint32_t *once = calloc(sets + 1u, sizeof *once);
    for (uint32_t i = 0; i < sets && once != NULL; i++)
        once[i] = 1;
    ditto_status status = once != NULL ? make(t, &candidates, once, out)
                                       : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u sets", sets);
    free(once);
    dti_candidates_free(&candidates);
    return status;
}

/* Returns how many replicas there are if the options do not say it. */
static uint32_t default_number(const ditto_topology *t, const ditto_placement_options *o,
                               const struct dti_candidates *candidates)
{
    uint32_t without_siblings = 0, on_first_pus = 0;
    if (o->pus_per_replica == 0)
        return o->span != DITTO_SPAN_DEFAULT ? candidates->count : 1;
    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct dti_candidate *c = &candidates->candidate[i];
        on_first_pus += t->pus[c->leader].is.smt == 0;
        without_siblings += t->pus[candidates->pu[c->first + c->count - 1]].is.smt == 0;
    }
    return dti_topology_limit_replicas(t, without_siblings > 0 ? without_siblings : on_first_pus,
                                       o->pus_per_replica);
}

ditto_status dti_placement_make(const ditto_topology *t, const ditto_placement_options *o,
                                ditto_placement **out)
{
    static const int64_t ones[DITTO_MESH_RANK] = { 1, 1, 1, 1 };
    bool no_smt = (o->flags & DITTO_PLACEMENT_NO_SMT) != 0, share = (o->flags & DITTO_PLACEMENT_SHARE) != 0;
    struct dti_candidates candidates;
    DTI_TRY(check(o));
    if (o->num_pus > 0)
        return by_list(t, o, out);
    if (o->span != DITTO_SPAN_DEFAULT)
        DTI_TRY(dti_candidates_by_name(t, o->span, no_smt, &candidates));
    else if (o->pus_per_replica > 0)
        DTI_TRY(dti_candidates_by_size(t, o->pus_per_replica, no_smt, &candidates));
    else
        DTI_TRY(dti_candidates_by_shape(t, o->shape != NULL ? o->shape : ones,
                                        o->stride != NULL ? o->stride : ones, no_smt, &candidates));
    uint32_t wanted = o->num_replicas > 0 ? o->num_replicas : default_number(t, o, &candidates);
    ditto_status status = check_number(wanted);
    if (status == DITTO_OK && (candidates.count == 0 || (wanted > candidates.count && !share)))
        status = DTI_FAIL(
            DITTO_ERR_RANGE,
            "%u replicas: this machine has PUs for at most %u of that shape, span or size; ask for "
            "fewer, make them smaller, or set DITTO_PLACEMENT_SHARE",
            wanted, candidates.count);
    if (status == DITTO_OK)
        status = assign_candidates(t, o, &candidates, wanted, out);
    dti_candidates_free(&candidates);
    return status;
}

/* -- reading -- */

const struct dti_pu *dti_placement_pu(const ditto_placement *p, uint32_t replica, uint32_t device)
{
    return &p->pus[p->list[p->blocks[replica].first + device]];
}

static ditto_status check_same(const ditto_placement *p, const ditto_topology *t)
{
    if (p->machine_pus != t->counts.machine_pus || p->machine_nodes != t->counts.machine_nodes)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the placement was made for another machine, of %u PUs and %u NUMA nodes; this one "
                        "has %u and %u: create it on this machine's topology",
                        p->machine_pus, p->machine_nodes, t->counts.machine_pus, t->counts.machine_nodes);
    for (uint32_t i = 0; i < p->num_pus; i++) {
        const struct dti_pu *found = p->sharers[i] > 0 ? dti_topology_find(t, p->pus[i].is.number) : NULL;
        if (found != NULL && !dti_pu_same(found, &p->pus[i]))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the placement was made for another machine, whose PU %u is on package %u, NUMA "
                            "node %u, core %u; on this machine it is on package %u, node %u, core %u: create "
                            "the placement on this machine's topology",
                            p->pus[i].is.number, p->pus[i].package_os, p->pus[i].is.numa_node,
                            p->pus[i].core_os, found->package_os, found->is.numa_node, found->core_os);
    }
    return DITTO_OK;
}

ditto_status dti_placement_move(const ditto_placement *p, const ditto_topology *t, ditto_placement **out)
{
    uint32_t listed = p->blocks[p->replicas - 1].first + p->blocks[p->replicas - 1].count;
    DTI_TRY(check_same(p, t));
    uint32_t *pus = malloc(listed * sizeof *pus), *sizes = malloc(p->replicas * sizeof *sizes);
    ditto_status status = pus != NULL && sizes != NULL
                              ? DITTO_OK
                              : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u replicas", p->replicas);
    if (status == DITTO_OK) {
        for (uint32_t i = 0; i < listed; i++)
            pus[i] = p->pus[p->list[i]].is.number;
        for (uint32_t i = 0; i < p->replicas; i++)
            sizes[i] = p->blocks[i].count;
        status = dti_placement_from_sets(t, pus, sizes, p->replicas, p->shared, out);
    }
    free(pus);
    free(sizes);
    return status;
}
