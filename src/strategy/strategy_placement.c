/* src/strategy/strategy_placement.c - places the replicas of a strategy on this machine as its options
 * say. */
#include "replicas/placement/placement.h"
#include "strategy/strategy.h"

/* Computes the placement options. The user says in one of three ways where replicas are: by num_replicas with
 * span or pus_per_replica, by placement_options, or by a placement, for which the options are not used. */
static ditto_status read_options(const ditto_strategy_options *o, ditto_placement_options *out)
{
    const char *of_short = o->num_replicas != 0            ? "num_replicas"
                           : o->span != DITTO_SPAN_DEFAULT ? "span"
                           : o->pus_per_replica != 0       ? "pus_per_replica"
                                                           : NULL;
    if ((of_short != NULL) + (o->placement_options != NULL) + (o->placement != NULL) > 1)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "%s and %s are both set: each says where the replicas are, so set one of num_replicas "
            "(with span or pus_per_replica), placement_options (which has all three) and placement",
            of_short != NULL ? of_short : "placement_options",
            o->placement != NULL ? "placement" : "placement_options");
    DTI_TRY(dti_options_copy(out, sizeof *out, o->placement_options, "ditto_placement_options"));
    if (of_short != NULL) {
        out->num_replicas = o->num_replicas;
        out->span = o->span;
        out->pus_per_replica = o->pus_per_replica;
    }
    return DITTO_OK;
}

/* Returns true if the options leave open which PUs a replica spans. */
static bool leaves_pus_open(const ditto_placement_options *o)
{
    return o->num_pus == 0 && o->span == DITTO_SPAN_DEFAULT && o->shape == NULL && o->stride == NULL &&
           o->pus_per_replica == 0;
}

static ditto_status make_placement(const ditto_placement *given, ditto_placement_options *o,
                                   const ditto_topology *machine_topology, ditto_placement **out)
{
    if (given != NULL)
        return dti_placement_move(given, machine_topology, out);
    if (o->num_replicas == 0 && leaves_pus_open(o))
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
    int64_t variable = 0;
    DTI_TRY(read_options(o, &placing));
    if (kind != &dti_default_strategy_kind)
        DTI_TRY(
            dti_environment_number("DITTO_PUS_PER_REPLICA", 1, DTI_MAX_PUS, "a number of PUs", &variable));
    bool is_open = o->placement == NULL && leaves_pus_open(&placing);
    if (is_open)
        placing.pus_per_replica = (uint32_t)variable;
    if (kind->has_one_replica && placing.num_replicas == 0 && (is_open || placing.pus_per_replica != 0))
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
    if (status != DITTO_OK && is_open && variable != 0)
        return dti_where(status, "with the environment variable DITTO_PUS_PER_REPLICA");
    if (status == DITTO_OK && kind->has_one_replica && ditto_placement_num_replicas(*out) != 1) {
        status = DTI_FAIL(DITTO_ERR_INVALID, "a strategy of kind \"%s\" has one replica: the options give %u",
                          kind->name, ditto_placement_num_replicas(*out));
        dti_placement_destroy(*out);
        *out = NULL;
    }
    return status;
}
