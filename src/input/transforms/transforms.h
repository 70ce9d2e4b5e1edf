/* src/input/transforms/transforms.h - makes datasets from datasets. api_transform.c has checked the
 * arguments. */
#ifndef DTI_TRANSFORMS_H
#define DTI_TRANSFORMS_H

#include <ditto/transform.h>

#include <stdbool.h>

ditto_status dti_map_create(ditto_dataset *input, ditto_map_fn function, void *user,
                            const ditto_map_options *options, ditto_dataset **out);
ditto_status dti_filter_create(ditto_dataset *input, ditto_filter_fn function, void *user,
                               ditto_dataset **out);
ditto_status dti_shuffle_create(ditto_dataset *input, const ditto_shuffle_options *options,
                                ditto_dataset **out);
ditto_status dti_repeat_create(ditto_dataset *input, uint64_t count, ditto_dataset **out);
ditto_status dti_skip_take_create(ditto_dataset *input, uint64_t skip, uint64_t take, ditto_dataset **out);
ditto_status dti_batch_create(ditto_dataset *input, uint64_t rows, bool drop_remainder, ditto_dataset **out);
ditto_status dti_unbatch_create(ditto_dataset *input, ditto_dataset **out);
ditto_status dti_prefetch_create(ditto_dataset *input, uint64_t batches, ditto_dataset **out);

/* Keeps the blocks of `block` rows whose number mod `shards` is `shard`. */
ditto_status dti_shard_create(ditto_dataset *input, uint64_t shards, uint64_t shard, uint64_t block,
                              ditto_dataset **out);
ditto_status dti_zip_create(ditto_dataset *const *input, uint32_t inputs, ditto_dataset **out);

/* `cycle` inputs at a time take turns and give `block` rows each. With a cycle of 1 and a block of UINT64_MAX
 * the inputs come one after the other. */
ditto_status dti_join_create(ditto_dataset *const *input, uint32_t inputs, uint32_t cycle, uint64_t block,
                             ditto_dataset **out);

#endif
