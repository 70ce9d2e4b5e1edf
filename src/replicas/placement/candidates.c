/* src/replicas/placement/candidates.c - see candidates.h. */
#include "replicas/placement/candidates.h"
#include "base/errors/status.h"
#include "replicas/machine/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static ditto_status allocate(struct dti_candidates *out, size_t candidates, size_t listed)
{
    /* + 1, so that the sizes are never 0. */
    *out = (struct dti_candidates){ .candidate = calloc(candidates + 1, sizeof *out->candidate),
                                    .pu = calloc(listed + 1, sizeof *out->pu) };
    if (out->candidate != NULL && out->pu != NULL)
        return DITTO_OK;
    dti_candidates_free(out);
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu candidates of %zu PUs", candidates, listed);
}

void dti_candidates_free(struct dti_candidates *candidates)
{
    free(candidates->candidate);
    free(candidates->pu);
    *candidates = (struct dti_candidates){ 0 };
}

/* Makes a candidate of the elements s->listed .. end - 1 of s->pu. */
static void close_candidate(struct dti_candidates *s, uint32_t end, uint32_t tier)
{
    s->candidate[s->count++] = (struct dti_candidate){
        .first = s->listed, .count = end - s->listed, .leader = s->pu[s->listed], .tier = tier
    };
    s->listed = end;
    s->tiers = tier >= s->tiers ? tier + 1 : s->tiers;
}

/* Returns the tier of a candidate that has the elements s->listed .. end - 1 of s->pu. */
static uint32_t tier_of(const ditto_topology *t, const struct dti_candidates *s, uint32_t end)
{
    uint32_t slowest = 0;
    for (uint32_t i = s->listed; i < end; i++)
        if (t->pus[s->pu[i]].faster_kinds > slowest)
            slowest = t->pus[s->pu[i]].faster_kinds;
    return t->pus[s->pu[s->listed]].is.smt * t->kinds + slowest;
}

#define ANY_DOMAIN UINT32_MAX

/* Makes candidates of `size` PUs each of the PUs of a domain that are in no candidate yet, in order, with SMT
 * siblings last. With ANY_DOMAIN it takes what is left over of all domains, and the candidates are in the
 * last tier. `covered` [PUs] is workspace that is false at first. */
static void list_in_order(const ditto_topology *t, uint32_t domain, uint64_t size, int64_t pus_per_core,
                          bool *covered, struct dti_candidates *s)
{
    uint32_t end = s->listed, last_tier = s->tiers;
    for (uint32_t i = 0; i < s->listed; i++)
        covered[s->pu[i]] = true;
    for (uint32_t smt = 0; smt < pus_per_core; smt++)
        for (uint32_t i = 0; i < t->counts.pus; i++) {
            if (covered[i] || t->pus[i].is.mesh[3] != smt ||
                (domain != ANY_DOMAIN && t->pus[i].domain != domain))
                continue;
            s->pu[end++] = i;
            if (end - s->listed == size)
                close_candidate(s, end, domain == ANY_DOMAIN ? last_tier : tier_of(t, s, end));
        }
}

/* Orders candidates by their leaders. Candidates with the same leader keep their order. */
static int in_order(const void *left, const void *right)
{
    const struct dti_candidate *a = left, *b = right;
    if (a->leader != b->leader)
        return a->leader < b->leader ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* -- boxes -- */

struct boxes {
    const ditto_topology *t;
    const int64_t *shape, *stride;

    /* The mesh, which has one PU per core if SMT siblings are left out. */
    int64_t mesh[DITTO_MESH_RANK];
    uint64_t size; /* PUs of a box */
};

static int by_coordinates(const void *left, const void *right)
{
    const struct dti_pu *a = left, *b = right;
    for (int d = 0; d < DITTO_MESH_RANK; d++)
        if (a->is.mesh[d] != b->is.mesh[d])
            return a->is.mesh[d] < b->is.mesh[d] ? -1 : 1;
    return 0;
}

static ditto_status check_boxes(struct boxes *b, bool no_smt)
{
    static const char *const of[DITTO_MESH_RANK] = { "packages", "NUMA nodes of a package", "cores of a node",
                                                     "PUs of a core" };
    b->size = 1;
    for (int d = 0; d < DITTO_MESH_RANK; d++) {
        int64_t reach, shape = b->shape[d], stride = b->stride[d];
        b->mesh[d] = d == DITTO_MESH_RANK - 1 && no_smt ? 1 : b->t->counts.mesh[d];
        if (shape < 1 || stride < 1)
            return DTI_FAIL(DITTO_ERR_RANGE, "%s[%d] = %" PRId64 ": it must be at least 1",
                            shape < 1 ? "shape" : "stride", d, shape < 1 ? shape : stride);
        if (__builtin_mul_overflow(shape, stride, &reach) || reach > b->mesh[d])
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "shape[%d] x stride[%d] = %" PRId64 " x %" PRId64 " %s, but the mesh has %" PRId64
                            ": make their product at most that",
                            d, d, shape, stride, of[d], b->mesh[d]);
        /* The product cannot overflow, because each factor is at most DTI_MAX_PUS. */
        b->size *= (uint64_t)shape;
    }
    return DITTO_OK;
}

/* Returns true if a box starts at the PU. In each dimension, blocks have shape * stride coordinates, and
 * boxes start at the first `stride` coordinates of each complete block. */
static bool is_origin(const struct boxes *b, const ditto_pu *pu)
{
    for (int d = 0; d < DITTO_MESH_RANK; d++) {
        int64_t block_size = b->shape[d] * b->stride[d], coordinate = pu->mesh[d];
        if (coordinate >= b->mesh[d] / block_size * block_size || coordinate % block_size >= b->stride[d])
            return false;
    }
    return true;
}

/* Lists the box that starts at `origin`. The first PUs of cores come before their siblings. Returns false if
 * the mesh has no PU at one of the coordinates. */
static bool list_box(const struct boxes *b, const ditto_pu *origin, uint32_t *pu)
{
    uint32_t listed = 0;
    struct dti_pu wanted = { 0 };
    for (int64_t s = 0; s < b->shape[3]; s++)
        for (int64_t p = 0; p < b->shape[0]; p++)
            for (int64_t n = 0; n < b->shape[1]; n++)
                for (int64_t c = 0; c < b->shape[2]; c++) {
                    const int64_t increment[DITTO_MESH_RANK] = { p, n, c, s };
                    for (int d = 0; d < DITTO_MESH_RANK; d++)
                        wanted.is.mesh[d] = origin->mesh[d] + (uint32_t)(increment[d] * b->stride[d]);
                    const struct dti_pu *found = bsearch(&wanted, b->t->pus, b->t->counts.pus, sizeof wanted,
                                                         by_coordinates);
                    if (found == NULL)
                        return false;
                    pu[listed++] = (uint32_t)(found - b->t->pus);
                }
    return true;
}

ditto_status dti_candidates_by_shape(const ditto_topology *t, const int64_t shape[DITTO_MESH_RANK],
                                     const int64_t stride[DITTO_MESH_RANK], bool no_smt,
                                     struct dti_candidates *out)
{
    struct boxes b = { .t = t, .shape = shape, .stride = stride };
    DTI_TRY(check_boxes(&b, no_smt));
    DTI_TRY(allocate(out, t->counts.pus, t->counts.pus));
    bool *covered = calloc(t->counts.pus, sizeof *covered);
    if (covered == NULL) {
        dti_candidates_free(out);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u PUs", t->counts.pus);
    }
    for (uint32_t i = 0; i < t->counts.pus; i++) {
        uint32_t end = out->listed + (uint32_t)b.size;
        if (b.size <= t->counts.pus - out->listed && is_origin(&b, &t->pus[i].is) &&
            list_box(&b, &t->pus[i].is, out->pu + out->listed))
            close_candidate(out, end, tier_of(t, out, end));
    }
    if (!t->counts.regular)
        list_in_order(t, ANY_DOMAIN, b.size, b.mesh[DITTO_MESH_RANK - 1], covered, out);
    free(covered);
    qsort(out->candidate, out->count, sizeof *out->candidate, in_order);
    return DITTO_OK;
}

/* -- numbers of PUs -- */

ditto_status dti_candidates_by_size(const ditto_topology *t, uint32_t size, bool no_smt,
                                    struct dti_candidates *out)
{
    uint32_t usable = no_smt ? t->counts.cores : t->counts.pus;
    if (size > usable)
        return DTI_FAIL(DITTO_ERR_RANGE, "pus_per_replica = %u, but there are %u PUs%s: ask for at most that",
                        size, usable, no_smt ? " without SMT siblings" : " that this process may use");
    DTI_TRY(allocate(out, t->counts.pus, t->counts.pus));
    bool *covered = calloc(t->counts.pus, sizeof *covered);
    if (covered == NULL) {
        dti_candidates_free(out);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u PUs", t->counts.pus);
    }
    for (uint32_t domain = 0; domain <= t->domains; domain++)
        list_in_order(t, domain < t->domains ? domain : ANY_DOMAIN, size, no_smt ? 1 : t->counts.mesh[3],
                      covered, out);
    free(covered);
    qsort(out->candidate, out->count, sizeof *out->candidate, in_order);
    return DITTO_OK;
}

/* -- names -- */

/* Returns the number of the part that contains a PU, among the parts that `span` names. The result is below
 * the number of PUs. */
static uint32_t part_of(const ditto_topology *t, ditto_span span, uint32_t index, uint32_t core)
{
    const struct dti_pu *pu = &t->pus[index];
    switch (span) {
    case DITTO_SPAN_CORE:
        return core;
    case DITTO_SPAN_LLC:
        return pu->is.llc;
    case DITTO_SPAN_NUMA_NODE:
        return pu->domain;
    case DITTO_SPAN_PACKAGE:
        return pu->is.mesh[0];
    case DITTO_SPAN_MACHINE:
        return 0;
    default:
        return index;
    }
}

/* Makes a candidate of part number `wanted`, whose PUs are among first .. last. The first PUs of cores come
 * before their siblings. */
static void list_part(const ditto_topology *t, const uint32_t *part, uint32_t wanted, uint32_t first,
                      uint32_t last, uint32_t pus_per_core, struct dti_candidates *s)
{
    uint32_t end = s->listed;
    for (uint32_t smt = 0; smt < pus_per_core; smt++)
        for (uint32_t i = first; i <= last; i++)
            if (part[i] == wanted && t->pus[i].is.mesh[3] == smt)
                s->pu[end++] = i;
    if (end > s->listed)
        close_candidate(s, end, tier_of(t, s, end));
}

ditto_status dti_candidates_by_name(const ditto_topology *t, ditto_span span, bool no_smt,
                                    struct dti_candidates *out)
{
    uint32_t pus = t->counts.pus, core = 0, parts = 0;
    DTI_TRY(allocate(out, pus, pus));
    uint32_t *part = calloc(3 * (size_t)pus, sizeof *part);
    if (part == NULL) {
        dti_candidates_free(out);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u PUs", pus);
    }
    uint32_t *first = part + pus, *last = first + pus; /* the first and the last PU of each part */
    for (uint32_t i = 0; i < pus; i++) {
        core += i > 0 && t->pus[i].is.mesh[3] == 0;
        part[i] = part_of(t, span, i, core);
        if (part[i] >= parts) { /* parts appear in the order of their numbers */
            parts = part[i] + 1;
            first[part[i]] = i;
        }
        last[part[i]] = i;
    }
    for (uint32_t k = 0; k < parts; k++)
        list_part(t, part, k, first[k], last[k], no_smt ? 1 : t->counts.mesh[3], out);
    free(part);
    qsort(out->candidate, out->count, sizeof *out->candidate, in_order);
    return DITTO_OK;
}

/* -- lists -- */

#define NO_INDEX UINT32_MAX

/* Makes a candidate of each set. Checks that this process may use its PUs and, unless `share` is true, that
 * no PU is given twice. */
static ditto_status list_sets(const ditto_topology *t, const uint32_t *pus, const uint32_t *set_sizes,
                              uint32_t sets, bool share, const uint32_t *index_of, bool *taken,
                              struct dti_candidates *s)
{
    uint32_t given = 0; /* an index into pus */
    for (uint32_t set = 0; set < sets; set++) {
        uint32_t size = set_sizes != NULL ? set_sizes[set] : 1, end = s->listed;
        for (uint32_t k = 0; k < size; k++, given++) {
            uint32_t index = pus[given] < DTI_MAX_PUS ? index_of[pus[given]] : NO_INDEX;
            if (index == NO_INDEX)
                return DTI_FAIL(
                    DITTO_ERR_RANGE,
                    "pus[%u] asks for PU %u, which does not exist or which this process may not use (it may "
                    "use %u PUs, the first is %u): widen the affinity or cpuset, or choose another",
                    given, pus[given], t->counts.pus, t->pus[0].is.number);
            if (taken[index] && !share)
                return DTI_FAIL(
                    DITTO_ERR_RANGE,
                    "pus[%u] names PU %u again: set DITTO_PLACEMENT_SHARE if replicas shall share", given,
                    pus[given]);
            taken[index] = true;
            s->pu[end++] = index;
        }
        close_candidate(s, end, 0);
    }
    return DITTO_OK;
}

ditto_status dti_candidates_by_list(const ditto_topology *t, const uint32_t *pus, const uint32_t *set_sizes,
                                    uint32_t sets, bool share, struct dti_candidates *out)
{
    size_t listed = 0;
    for (uint32_t i = 0; i < sets; i++)
        listed += set_sizes != NULL ? set_sizes[i] : 1;
    DTI_TRY(allocate(out, sets, listed));
    uint32_t *index_of = malloc(DTI_MAX_PUS * sizeof *index_of);
    bool *taken = calloc(t->counts.pus, sizeof *taken);
    ditto_status status = DITTO_OK;
    if (index_of == NULL || taken == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u PUs", t->counts.pus);
    if (status == DITTO_OK) {
        memset(index_of, 0xff, DTI_MAX_PUS * sizeof *index_of); /* NO_INDEX */
        for (uint32_t i = 0; i < t->counts.pus; i++)
            index_of[t->pus[i].is.number] = i;
        status = list_sets(t, pus, set_sizes, sets, share, index_of, taken, out);
    }
    free(index_of);
    free(taken);
    if (status != DITTO_OK) {
        dti_candidates_free(out);
        return status;
    }
    qsort(out->candidate, out->count, sizeof *out->candidate, in_order);
    return DITTO_OK;
}
