/* tests/cases/forge.h - takes three steps over a dataset, saves the state, and replaces numbers in it. Then
 * it continues from this state, whose hash is right, as from one that somebody else has made. */
#ifndef FORGE_H
#define FORGE_H

#include "base/numbers/checksum.h"
#include "base/types/bytes.h"
#include "cases.h"

#include <unistd.h>

enum { HEAD_BYTES = 16, HASH_BYTES = 8 }; /* before and after the numbers of a state */

/* A number is counted from 0, or backwards from -1, the last one. */
struct forgery {
    long at;
    uint64_t value;
};

static inline ditto_status take_batches(ditto_replica *self, void *user)
{
    ditto_iterator *iterator = *(ditto_iterator **)user;
    ditto_batch batch;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_next(self, iterator, &batch));
    return DITTO_OK;
}

static inline struct dti_bytes forge(const char *state, size_t bytes, const struct forgery *forgery,
                                     int count)
{
    struct dti_bytes_reader all = { state + HEAD_BYTES, state + bytes - HASH_BYTES, false }, from = all;
    struct dti_bytes to = { 0 };
    long numbers = 0;
    for (; all.at < all.end; numbers++)
        dti_bytes_get_u64(&all);
    dti_bytes_put(&to, state, HEAD_BYTES);
    for (long i = 0; i < numbers; i++) {
        uint64_t number = dti_bytes_get_u64(&from);
        for (int k = 0; k < count; k++)
            if (forgery[k].at == i || forgery[k].at == i - numbers)
                number = forgery[k].value;
        dti_bytes_put_u64(&to, number);
    }
    uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to.data, to.length);
    dti_bytes_put(&to, &hash, sizeof hash);
    return to;
}

/* Returns RIGHT if the forged state is refused as damaged. Ends the program after 8 seconds. */
static inline int continue_forged(ditto_dataset *rows, const struct forgery *forgery, int count)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator *iterator;
    void *state;
    options.num_replicas = 2;
    options.timeout_ms = 2000;
    input.global_batch = 4;
    MUST(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    MUST(ditto_strategy_iterate(strategy, rows, &input, &iterator));
    MUST(ditto_strategy_run(strategy, take_batches, &iterator));
    sleep_ms(50); /* so that the state has rows that are chosen and not taken */
    MUST(ditto_iterator_save(iterator, &state, &input.state_bytes));
    MUST(ditto_iterator_destroy(iterator));
    struct dti_bytes forged = forge(state, input.state_bytes, forgery, count);
    input.state = forged.data;
    input.state_bytes = forged.length;
    alarm(8);
    ditto_status status = told("iterate", ditto_strategy_iterate(strategy, rows, &input, &iterator));
    if (status == DITTO_OK) {
        status = told("run", ditto_strategy_run(strategy, take_batches, &iterator));
        MUST(ditto_iterator_destroy(iterator));
    }
    ditto_state_free(state);
    dti_bytes_free(&forged);
    MUST(ditto_strategy_destroy(strategy));
    return status == DITTO_ERR_CORRUPT ? RIGHT : WRONG;
}

#endif
