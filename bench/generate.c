/* bench/generate.c - generate: ns of a position of a language model (examples/language_model) with random
 * weights, whose replicas are the ranks of the axis "tensor". With a batch, a position of each text. Only the
 * first positions are measured, so there is hardly any attention in them.
 *
 * Bound: the time in which the same replicas read the weights once. The peer has the same loops with OpenMP
 * (peers/generate_openmp.c). The figures are medians of interleaved batches of GENERATED_POSITIONS positions.
 * What ditto should reach with a batch of 1: the time of the peer, and from 110M on 0.9 of the bound. */
#include "alone.h"
#include "harness.h"
#include "language_model.h"
#include "samples.h"

#include "../examples/language_model/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 15 };
enum { DITTO, SWEEP, PEER, COLUMNS };

/* A model that is measured. */
struct case_of_model {
    const struct generation *g;
    ditto_strategy *strategy;
    struct weights weights;
    bool sweeps;    /* the batch only reads the weights */
    double seconds; /* of the batch */
    struct rounds rounds;
    struct alone_counts counts;
};

/* Reads an array in several streams, of which the processor fetches each ahead. With one stream, reading took
 * twice as long as the dot products do. */
static void read_all(const char *data, size_t bytes)
{
    enum { STREAMS = 8, WORDS = 8 /* of a cache line */ };
    uint64_t sum[WORDS] = { 0 };
    size_t apart = bytes / STREAMS / 64 * 64;
    for (size_t at = 0; at < apart; at += 64)
        for (size_t s = 0; s < STREAMS; s++) {
            const uint64_t *word = (const uint64_t *)(const void *)(data + s * apart + at);
            for (size_t k = 0; k < WORDS; k++)
                sum[k] += word[k];
        }
    for (size_t k = 0; k < WORDS; k++)
        __asm__ volatile("" : : "r"(sum[k])); /* the sums are needed */
}

/* Reads what a replica has of the weights. */
static ditto_status sweep(ditto_replica *self, const struct weights *w)
{
    for (int p = EMBEDDING + 1; p < PARAMETERS; p++) {
        ditto_tensor slice;
        DITTO_TRY(ditto_local_slice(self, w->array[p], &slice, NULL));
        read_all(slice.data, ditto_tensor_bytes(&slice));
    }
    return DITTO_OK;
}

static struct candidate find_best(const struct transformer *t, const float *logit)
{
    struct candidate best = { -INFINITY, 0 };
    for (uint32_t w = 0; w < t->words; w++)
        if (logit[w] > best.value)
            best = (struct candidate){ logit[w], (int32_t)(t->first_word + w) };
    return best;
}

/* Computes a position of each text, and the likeliest token after each. */
static ditto_status generate(struct transformer *t, uint32_t position, uint32_t batch, float *logits)
{
    struct candidate all[DITTO_MAX_REPLICAS * MOST_BATCH], best[MOST_BATCH];
    struct row row[MOST_BATCH] = { 0 };
    uint32_t which[MOST_BATCH];
    for (uint32_t b = 0; b < batch; b++) {
        row[b] = (struct row){ b, position, (int32_t)(position * 7 + b) };
        which[b] = b;
    }
    DITTO_TRY(transformer_forward(t, row, batch));
    transformer_logits(t, which, batch, logits);
    for (uint32_t b = 0; b < batch; b++)
        all[(size_t)t->tensor.rank * batch + b] = find_best(t, logits + (size_t)b * t->words);
    return transformer_best(t, all, batch, best);
}

static ditto_status run_batch(ditto_replica *self, void *argument)
{
    struct case_of_model *c = argument;
    struct transformer t;
    uint32_t batch = c->g->batch;
    void *logits;
    DITTO_TRY(transformer_begin(&t, self, &c->weights, batch, GENERATED_POSITIONS, batch, false));
    DITTO_TRY(ditto_alloc(self, (size_t)batch * t.words * sizeof(float), 128, &logits));
    memset(logits, 0, (size_t)batch * t.words * sizeof(float));
    DITTO_TRY(ditto_barrier(self, NULL));
    double begin = now_seconds();
    for (uint32_t position = 0; position < GENERATED_POSITIONS; position++)
        DITTO_TRY(c->sweeps ? sweep(self, &c->weights) : generate(&t, position, batch, logits));
    DITTO_TRY(ditto_barrier(self, NULL));
    if (ditto_replica_id(self) == 0)
        c->seconds = now_seconds() - begin;
    DITTO_TRY(ditto_free(self, logits));
    return transformer_end(&t);
}

static double batch_ns(struct case_of_model *c, bool sweeps)
{
    c->sweeps = sweeps;
    must(ditto_strategy_run(c->strategy, run_batch, c));
    return c->seconds * 1e9 / GENERATED_POSITIONS;
}

static void measure_case(struct case_of_model *c, int number, const struct contender *peer)
{
    rounds_begin(&c->rounds, COLUMNS, SAMPLES);
    while (rounds_next(&c->rounds)) {
        alone_start(&c->counts);
        double ns = batch_ns(c, false);
        alone_stop(&c->counts, GENERATED_POSITIONS);
        rounds_put(&c->rounds, DITTO, ns);
        rounds_put(&c->rounds, SWEEP, batch_ns(c, true));
        double seconds = peer != NULL ? function_peer_seconds(peer, number, GENERATED_POSITIONS) : -1;
        if (seconds > 0)
            rounds_put(&c->rounds, PEER, seconds * 1e9 / GENERATED_POSITIONS);
        else
            rounds_drop(&c->rounds, PEER);
    }
}

static void print_rows(const struct case_of_model *c, uint32_t replicas, bool csv)
{
    for (uint32_t mode = 0; mode < c->rounds.modes.count; mode++) {
        double ns = rounds_figures(&c->rounds, DITTO, mode).median,
               bound = rounds_figures(&c->rounds, SWEEP, mode).median,
               peer = rounds_figures(&c->rounds, PEER, mode).median;
        if (csv) {
            char name[64];
            snprintf(name, sizeof name, "generate %s x%u", c->g->name, c->g->batch);
            alone_csv(&(struct alone_row){ .bench = name,
                                           .algorithm = "ditto",
                                           .replicas = replicas,
                                           .reps = GENERATED_POSITIONS,
                                           .rounds = &c->rounds,
                                           .column = DITTO,
                                           .mode = mode,
                                           .bound_ns = bound,
                                           .peer_ratio = peer / ns,
                                           .peer = peer > 0 ? "libgomp" : NULL,
                                           .counts = &c->counts });
            continue;
        }
        printf("%-14s %3u %5s x%u %8.3f ms; %.1f tokens/s; reading the weights %.3f ms: %.2f;", "generate",
               replicas, c->g->name, c->g->batch, ns * 1e-6, c->g->batch * 1e9 / ns, bound * 1e-6,
               bound / ns);
        if (peer > 0)
            printf(" libgomp %.3f ms: %.3f;", peer * 1e-6, ns / peer);
        alone_end_row(&c->rounds, DITTO, mode, &c->counts);
    }
}

void bench_generate(uint32_t replicas, bool csv)
{
    static struct contender peers[MOST_CONTENDERS];
    uint32_t count = function_peers_open(peers, BENCH_GENERATE, replicas);
    for (int i = 0; i < GENERATIONS; i++) {
        static struct case_of_model c;
        const struct generation *g = &generations[i];
        if (replicas > g->shape.kv_heads)
            continue;
        memset(&c, 0, sizeof c);
        c.g = g;
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        options.num_replicas = replicas;
        must(ditto_strategy_create(DITTO_MIRRORED, &options, &c.strategy));
        c.weights = weights_create(c.strategy, &g->shape, 1, replicas,
                                   &(struct weight_source){ .seed = 1, .deviation = 0.02f, .bf16 = g->bf16 });
        measure_case(&c, i, count > 0 ? &peers[0] : NULL);
        print_rows(&c, replicas, csv);
        fflush(stdout); /* the next model takes long */
        alone_forget(&c.counts);
        rounds_end(&c.rounds);
        weights_destroy(&c.weights);
        must(ditto_strategy_destroy(c.strategy));
    }
    for (uint32_t k = 0; k < count; k++)
        peers[k].close(peers[k].state);
}
