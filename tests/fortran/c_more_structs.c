/* tests/fortran/c_more_structs.c - the C structs of datasets, optimizers and checkpoints, for comparison with
 * the Fortran modules. */
#include <ditto.h>
#include <ditto/checkpoint.h>

void c_sizes_of_more(size_t *bytes);
int c_input_options_are(const ditto_input_options *o);
int c_optimizer_options_are(const ditto_optimizer_options *o);
int c_csv_is(const ditto_csv_component *c, const ditto_csv_options *o);
void c_fill_batch(ditto_batch *b);

/* In the order of input_sizes, optimizer_sizes and checkpoint_sizes. */
void c_sizes_of_more(size_t *bytes)
{
    const size_t found[] = { sizeof(ditto_input_options),
                             sizeof(ditto_csv_component),
                             sizeof(ditto_csv_options),
                             sizeof(ditto_batch),
                             sizeof(ditto_files),
                             sizeof(ditto_text_options),
                             sizeof(ditto_fixed_options),
                             sizeof(ditto_tfrecord_options),
                             sizeof(ditto_shuffle_options),
                             sizeof(ditto_map_options),
                             sizeof(ditto_element_spec),
                             sizeof(ditto_optimizer_options),
                             sizeof(ditto_apply_options),
                             sizeof(ditto_checkpoint_data),
                             sizeof(ditto_checkpoint_options),
                             sizeof(ditto_restore_options),
                             sizeof(ditto_restore_status),
                             sizeof(ditto_checkpointer_options),
                             sizeof(ditto_checkpoint_properties),
                             sizeof(ditto_checkpoint_entry) };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        bytes[i] = found[i];
}

/* The Fortran test gives each component a value of its own, from 1 on in the order of components. */
int c_input_options_are(const ditto_input_options *o)
{
    return o->struct_size == 1 && o->global_batch == 2 && o->buffer == 3 && o->num_producers == 4 &&
           (int)o->partial == 5 && o->pass == 6 && o->num_pipelines == 7 && (int)o->shard == 8 &&
           (int)o->replication == 9 && o->flags == 10 && o->max_bytes == 11 && o->state != NULL &&
           o->state_bytes == 12;
}

int c_optimizer_options_are(const ditto_optimizer_options *o)
{
    return o->struct_size == 1 && o->name != NULL && (int)o->rule == 2 && (int)o->op == 3 &&
           o->learning_rate == 4 && o->has_learning_rate == 5 && o->momentum == 6 && o->nesterov == 7 &&
           o->beta1 == 8 && o->has_beta1 == 9 && o->beta2 == 10 && o->has_beta2 == 11 && o->epsilon == 12 &&
           o->has_epsilon == 13 && o->weight_decay == 14 && o->clip_norm == 15 && o->function == NULL &&
           o->user != NULL && o->num_slots == 16 && o->rate_factors != NULL && o->weight_decays == NULL &&
           o->accumulate == 17 && o->max_staleness == 18 && o->has_max_staleness == 19;
}

int c_csv_is(const ditto_csv_component *c, const ditto_csv_options *o)
{
    return c->first_column == 1 && c->num_columns == 2 && (int)c->dtype == 3 && c->text_bytes == 4 &&
           (int)c->missing == 5 && c->missing_value == 6 && o->struct_size == 1 && o->num_columns == 2 &&
           o->skip_lines == 3 && o->delimiter == ';' && o->no_quotes == 4 && (int)o->compression == 5;
}

void c_fill_batch(ditto_batch *b)
{
    *b = (ditto_batch){ .rows = 1, .step = 2, .num_components = 3 };
    b->component[0] = (ditto_tensor){ .dtype = DITTO_F64, .rank = 2, .shape = { 5, 6 }, .device = 7 };
    b->component[15].rank = 4;
}
