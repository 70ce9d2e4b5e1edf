/* src/replicas/machine/mesh.c - the order of PUs and their coordinates.
 *
 * A domain is the set of PUs that one NUMA node and one package have in common. The domains are put into a
 * chain. Each domain is followed by the nearest one of its package that is not in the chain yet, or by the
 * nearest one of all if the package has no more. Neighbours in the chain get neighbouring replica ids, so
 * that the tree of a reduction combines near replicas first.
 *
 * Within a domain, faster kinds of cores come first. The first PU of each set of PUs in a domain, on which
 * the leader of a replica runs, is therefore one of the fastest, and boxes of the mesh rarely mix kinds. */
#include "replicas/machine/topology.h"

#include <stdlib.h>
#include <string.h>

struct domain {
    uint32_t package, node, locality;
    uint32_t chain_index; /* the position in the chain */
};

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_hardware(const void *left, const void *right)
{
    const struct dti_raw_pu *a = left, *b = right;
    int order = compare(a->pu.is.package, b->pu.is.package);
    return order != 0 ? order : compare(a->locality, b->locality);
}

static int by_mesh(const void *left, const void *right)
{
    const struct dti_raw_pu *a = left, *b = right;
    int order = compare(a->pu.domain, b->pu.domain);
    order = order != 0 ? order : compare(a->pu.faster_kinds, b->pu.faster_kinds);
    order = order != 0 ? order : compare(a->llc, b->llc);
    order = order != 0 ? order : compare(a->pu.is.core, b->pu.is.core);
    return order != 0 ? order : compare(a->pu.is.number, b->pu.is.number);
}

static uint32_t apart(const ditto_topology *t, const struct domain *a, const struct domain *b)
{
    if (a->node == DITTO_NO_NODE || b->node == DITTO_NO_NODE)
        return 0;
    return t->apart[(size_t)a->node * t->counts.machine_nodes + b->node];
}

/* Sets the position of each domain in the chain. `taken` [count] is workspace. */
static void chain(const ditto_topology *t, struct domain *domain, uint32_t count, bool *taken)
{
    uint32_t last = 0;
    memset(taken, 0, count * sizeof *taken);
    for (uint32_t chain_index = 0; chain_index < count; chain_index++) {
        uint32_t best = chain_index == 0 ? 0 : UINT32_MAX;
        bool best_is_near = false; /* best is in the same package as last */
        for (uint32_t i = 0; i < count && chain_index > 0; i++) {
            bool same_package = domain[i].package == domain[last].package;
            if (taken[i] || (best_is_near && !same_package))
                continue;
            if (best == UINT32_MAX || (same_package && !best_is_near) ||
                apart(t, &domain[last], &domain[i]) < apart(t, &domain[last], &domain[best]))
                best = i;
            best_is_near |= same_package;
        }
        taken[best] = true;
        domain[best].chain_index = chain_index;
        last = best;
    }
}

/* Finds the domains and puts them into a chain. The domain of each PU becomes its position in the chain.
 * Returns false if there is no memory. */
static bool find_domains(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count)
{
    struct domain *domain = malloc(count * sizeof *domain);
    bool *taken = malloc(count * sizeof *taken);
    uint32_t domains = 0;
    if (domain != NULL && taken != NULL) {
        qsort(raw, count, sizeof *raw, by_hardware);
        for (uint32_t i = 0; i < count; i++) {
            if (i == 0 || by_hardware(&raw[i - 1], &raw[i]) != 0)
                domain[domains++] = (struct domain){ raw[i].pu.is.package, raw[i].node, raw[i].locality, 0 };
            raw[i].pu.domain = domains - 1;
        }
        chain(t, domain, domains, taken);
        for (uint32_t i = 0; i < count; i++)
            raw[i].pu.domain = domain[raw[i].pu.domain].chain_index;
    }
    t->domains = domains;
    free(domain);
    free(taken);
    return domains > 0;
}

/* Sets the coordinates of a PU from those of the PU before it, or NULL for the first PU. If a coordinate
 * changes, the coordinates below it start from 0. */
static void number_next(struct dti_raw_pu *raw, const struct dti_raw_pu *before)
{
    ditto_pu *pu = &raw->pu.is;
    memset(pu->mesh, 0, sizeof pu->mesh);
    if (before == NULL)
        return;
    const ditto_pu *last = &before->pu.is;
    if (pu->package != last->package) {
        pu->mesh[0] = last->mesh[0] + 1;
    } else if (raw->pu.domain != before->pu.domain) {
        pu->mesh[0] = last->mesh[0];
        pu->mesh[1] = last->mesh[1] + 1;
    } else {
        bool same_core = pu->core == last->core;
        memcpy(pu->mesh, last->mesh, 2 * sizeof pu->mesh[0]);
        pu->mesh[2] = last->mesh[2] + !same_core;
        pu->mesh[3] = same_core ? last->mesh[3] + 1 : 0;
    }
}

/* Sets the rank of each PU in its core, also for a core that has PUs in two domains. Counts the cores.
 * `num_siblings` [largest index of a core + 1] is workspace that is zero. */
static void rank_siblings(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count, uint32_t *num_siblings)
{
    t->counts.cores = 0;
    for (uint32_t i = 0; i < count; i++) {
        ditto_pu *pu = &raw[i].pu.is;
        pu->smt = num_siblings[pu->core]++;
        t->counts.cores += pu->smt == 0;
    }
}

/* Numbers the last-level caches in the order in which they appear. A cache that is wider than a domain keeps
 * its number when it appears again. */
static void number_caches(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count)
{
    t->counts.llcs = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i;
        while (k > 0 && raw[k - 1].llc != raw[i].llc)
            k--;
        raw[i].pu.is.llc = k > 0 ? raw[k - 1].pu.is.llc : t->counts.llcs++;
    }
}

bool dti_mesh_order(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count)
{
    ditto_topology_counts *c = &t->counts;
    if (!find_domains(t, raw, count))
        return false;
    qsort(raw, count, sizeof *raw, by_mesh);
    number_caches(t, raw, count);
    uint32_t cores = 0;
    for (uint32_t i = 0; i < count; i++)
        cores = raw[i].pu.is.core >= cores ? raw[i].pu.is.core + 1 : cores;
    uint32_t *num_siblings = calloc(cores + 1u, sizeof *num_siblings);
    if (num_siblings == NULL)
        return false;
    rank_siblings(t, raw, count, num_siblings);
    free(num_siblings);
    c->pus = count;
    memset(c->mesh, 0, sizeof c->mesh);
    uint64_t full = 1;
    for (uint32_t i = 0; i < count; i++) {
        number_next(&raw[i], i > 0 ? &raw[i - 1] : NULL);
        for (int d = 0; d < DITTO_MESH_RANK; d++)
            if (raw[i].pu.is.mesh[d] >= c->mesh[d])
                c->mesh[d] = raw[i].pu.is.mesh[d] + 1;
        t->pus[i] = raw[i].pu;
    }
    /* The product cannot overflow, because each factor is at most count, and the loop ends when the product
     * exceeds count. */
    for (int d = 0; d < DITTO_MESH_RANK && full <= count; d++)
        full *= c->mesh[d];
    c->packages = c->mesh[0];
    c->regular = full == count;
    return true;
}
