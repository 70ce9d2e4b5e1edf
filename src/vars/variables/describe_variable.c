/* src/vars/variables/describe_variable.c - describes a variable in one line of text. */
#include "vars/vars.h"

static uint32_t node_of(const ditto_variable *v, uint32_t copy)
{
    return v->copy_node[copy] != DTI_OWN_NODE
               ? v->copy_node[copy]
               : dti_team_replica(v->team, v->copy[copy].owner)->pu.memory_node;
}

/* Describes the copies in the order of their owners. The array of copies is not in that order after a
 * split. */
static void add_copies(const ditto_variable *v, struct dti_text *text)
{
    uint32_t copies = 0, described = 0;
    for (uint32_t i = 0; i < v->num_replicas; i++)
        copies += dti_owns_copy(v, i);
    dti_text_add(text, ", %u cop%s on NUMA node", copies, copies == 1 ? "y" : "ies");
    for (uint32_t i = 0; i < v->num_replicas; i++)
        if (dti_owns_copy(v, i) && described++ < 16)
            dti_text_add(text, " %u", node_of(v, (uint32_t)(dti_copy_of(v, i) - v->copy)));
    if (copies > 16)
        dti_text_add(text, " ...");
}

ditto_status ditto_variable_describe(const ditto_variable *v, char *buffer, size_t capacity, size_t *length)
{
    static const char *const aggregations[] = { [DITTO_AGGREGATE_NONE] = "NONE",
                                                [DITTO_AGGREGATE_SUM] = "SUM",
                                                [DITTO_AGGREGATE_MEAN] = "MEAN",
                                                [DITTO_AGGREGATE_ONLY_FIRST_REPLICA] = "ONLY_FIRST_REPLICA" };
    static const char *const partitioners[] = { "", "FIXED", "MIN_SIZE", "MAX_SIZE", "BY_REPLICA" };
    struct dti_text text = { buffer, capacity, 0 };
    char spec[DTI_SPEC_TEXT_BYTES];
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    if (capacity > 0)
        DTI_TRY(dti_not_null(buffer, "buffer"));
    dti_spec_text(&v->spec, spec);
    dti_text_add(&text, "%s: %s, %s, %s%s", v->name, spec, v->central ? "central" : v->kind->name,
                 aggregations[v->aggregation], v->trainable ? ", trainable" : "");
    if (v->concurrency == DITTO_CONCURRENCY_HOGWILD)
        dti_text_add(&text, ", without locks (HOGWILD)");
    if (v->concurrency == DITTO_CONCURRENCY_FREE_READS)
        dti_text_add(&text, ", with FREE_READS");
    if (v->optimizer_slot || v->pieces > 1) {
        if (v->slicing != NULL)
            dti_text_add(&text, ", %u slices of dimension %u, %u cop%s", v->pieces, v->order.axis, v->copies,
                         v->copies == 1 ? "y" : "ies");
        else if (v->optimizer_slot)
            dti_text_add(&text, ", an optimizer's: in %u part%s", v->pieces, v->pieces == 1 ? "" : "s");
        else
            dti_text_add(&text, ", %u shard%s", v->pieces, v->pieces == 1 ? "" : "s");
        dti_text_add(&text, " on NUMA node");
        for (uint32_t c = 0; c < v->copies && c < 16; c++)
            dti_text_add(&text, " %u", node_of(v, c));
        if (v->copies > 16)
            dti_text_add(&text, " ...");
    } else
        add_copies(v, &text);
    if (v->partitioner.kind != DITTO_PARTITION_DEFAULT && v->pieces == 1 && v->slicing == NULL)
        dti_text_add(&text, "; not used: the partitioner %s, which gives one shard",
                     partitioners[v->partitioner.kind]);
    if (v->wants_copies && v->central)
        dti_text_add(&text, "; not used: COPIES_PER_REPLICA, because central storage keeps one copy");
    if (v->wants_copies && v->shard != NULL)
        dti_text_add(&text, "; not used: COPIES_PER_REPLICA, because parameters exist once");
    if (length != NULL)
        *length = text.length;
    return DITTO_OK;
}
