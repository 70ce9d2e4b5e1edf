/* src/replicas/placement/candidates.h - lists the sets of PUs that a replica can get on a machine. Pure. */
#ifndef DTI_CANDIDATES_H
#define DTI_CANDIDATES_H

#include <ditto/placement.h>

#include <stdbool.h>

/* The PUs for one replica, as a range of the list of PUs. The leader's PU is the first. */
struct dti_candidate {
    uint32_t first, count;

    /* Index into the topology's PUs. It equals pu[first]. */
    uint32_t leader;

    /* Candidates of lower tiers are used first. In the first tiers, one for each kind of cores, the leader is
     * the first PU of a core. In the next ones it is an SMT sibling, and so on. A candidate is as slow as the
     * slowest of its cores. Candidates made of left-over PUs are in the last tier. Candidates made of given
     * sets are all in tier 0. */
    uint32_t tier;
};

struct dti_candidates {
    /* [count] In the order of their leaders in the mesh. */
    struct dti_candidate *candidate;

    /* [listed] Indices into the topology's PUs. */
    uint32_t *pu;
    uint32_t count, listed, tiers;
};

/* The next four functions list all candidates, without a limit on their number. The caller frees *out with
 * dti_candidates_free. If they fail, there is nothing to free. */

/* Lists boxes of the mesh. With `no_smt` the mesh has one PU per core.
 *   DITTO_ERR_RANGE      shape or stride is below 1, or a box does not fit into the mesh
 *   DITTO_ERR_NO_MEMORY */
ditto_status dti_candidates_by_shape(const ditto_topology *topology, const int64_t shape[DITTO_MESH_RANK],
                                     const int64_t stride[DITTO_MESH_RANK], bool no_smt,
                                     struct dti_candidates *out);

/* Lists sets of `size` PUs, at least 1. The PUs of each domain are cut into such sets in order, with SMT
 * siblings last, and then what is left over of all domains. With `no_smt` there are no siblings.
 *   DITTO_ERR_RANGE      there are fewer PUs
 *   DITTO_ERR_NO_MEMORY */
ditto_status dti_candidates_by_size(const ditto_topology *topology, uint32_t size, bool no_smt,
                                    struct dti_candidates *out);

/* Lists the parts of the machine that `span` names, which must not be DITTO_SPAN_DEFAULT.
 *   DITTO_ERR_NO_MEMORY */
ditto_status dti_candidates_by_name(const ditto_topology *topology, ditto_span span, bool no_smt,
                                    struct dti_candidates *out);

/* Lists given sets. `pus` has the operating-system numbers of all sets, one set after the other. Set i has
 * set_sizes[i] of them, or one if set_sizes is NULL. If `share` is true, a PU may be given more than once.
 *   DITTO_ERR_RANGE      a PU does not exist, this process may not use it, or it is given twice without
 *                        `share`
 *   DITTO_ERR_NO_MEMORY */
ditto_status dti_candidates_by_list(const ditto_topology *topology, const uint32_t *pus,
                                    const uint32_t *set_sizes, uint32_t sets, bool share,
                                    struct dti_candidates *out);
void dti_candidates_free(struct dti_candidates *candidates);

#endif
