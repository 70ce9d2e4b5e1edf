/* src/strategy/strategy_placement.c - places the replicas of a strategy on this machine as its options
 * say. */
#include "replicas/placement/placement.h"
#include "strategy/strategy.h"

/* Computes the placement options. The user says in one of three ways where replicas are: by num_replicas and
 * span, by placement_options, or by a placement, for which the options are not used. */
static ditto_status read_options(const ditto_strategy_options *o, ditto_placement_options *out)
{
    bool is_short = o->num_replicas != 0 || o->span != DITTO_SPAN_DEFAULT;
    if (is_short + (o->placement_options != NULL) + (o->placement != NULL) > 1)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "%s and %s are both set: each says where the replicas are, so set one of num_replicas "
            "(with span), placement_options (which has both) and placement",
            is_short ? o->num_replicas != 0 ? "num_replicas" : "span" : "placement_options",
            o->placement != NULL ? "placement" : "placement_options");
    DTI_TRY(dti_options_copy(out, sizeof *out, o->placement_options, "ditto_placement_options"));
    if (is_short) {
        out->num_replicas = o->num_replicas;
        out->span = o->span;
    }
    return DITTO_OK;
}

/* Returns true if the options leave open how many replicas there are. */
static bool leaves_number_open(const ditto_placement_options *o)
{
    return o->num_replicas == 0 && o->num_pus == 0 && o->span == DITTO_SPAN_DEFAULT && o->shape == NULL &&
           o->stride == NULL;
}

static ditto_status make_placement(const ditto_placement *given, ditto_placement_options *o,
                                   const ditto_topology *machine_topology, ditto_placement **out)
{
    if (given != NULL)
        return dti_placement_move(given, machine_topology, out);
    if (leaves_number_open(o))
        o->num_replicas = dti_topology_default_num_replicas(machine_topology);
    /* If there are more replicas than sets of PUs for them, replicas share PUs. Listed PUs are shared only if
     * the flag says so. */
    if (o->num_pus == 0)
        o->flags |= DITTO_PLACEMENT_SHARE;
    return dti_placement_make(machine_topology, o, out);
}

ditto_status dti_strategy_make_placement(const struct dti_strategy_kind *kind,
                                         const ditto_strategy_options *o, ditto_topology **topology,
                                         ditto_placement **out)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_placement_options placing;
    DTI_TRY(read_options(o, &placing));
    if (kind->has_one_replica && o->placement == NULL && leaves_number_open(&placing))
        placing.num_replicas = 1;
    bool gives_pus = o->placement != NULL || placing.num_pus != 0;
    if (gives_pus && o->fastest_kinds != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "fastest_kinds and %s are both set: the PUs are given, so leave fastest_kinds 0",
                        o->placement != NULL ? "placement" : "placement_options.pus");
    options.fastest_kinds = o->fastest_kinds;
    options.part = o->part == DITTO_SWITCH_OFF || gives_pus ? DITTO_SWITCH_OFF : DITTO_SWITCH_ON;
    DTI_TRY(dti_topology_read(&options, dti_context_saved_mask(), topology));
    ditto_status status = make_placement(o->placement, &placing, *topology, out);
    if (status == DITTO_OK && kind->has_one_replica && ditto_placement_num_replicas(*out) != 1) {
        status = DTI_FAIL(DITTO_ERR_INVALID, "a strategy of kind \"%s\" has one replica: the options give %u",
                          kind->name, ditto_placement_num_replicas(*out));
        dti_placement_destroy(*out);
        *out = NULL;
    }
    return status;
}
