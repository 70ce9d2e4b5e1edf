/* bench/request.c - reads the command line, see request.h. */
#include "request.h"
#include "perf_control.h"
#include "rounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(const char *reason, const char *word)
{
    if (reason != NULL)
        fprintf(stderr, "ditto-bench: %s: %s\n", word, reason);
    fprintf(stderr, "usage: ditto-bench machine");
    for (int i = 0; i < BENCH_KINDS; i++)
        fprintf(stderr, "|%s", bench_facts[i].name);
    fprintf(
        stderr,
        "\n"
        "           [--replicas N] [--bytes 8,4K,1M or 8..128M] [--dtype f32] [--op SUM] [--in-place]\n"
        "           [--skew 0,20,200 (us; of skew and wait)] [--load N (of wait: busy processes on each "
        "PU)]\n"
        "           [--devices N (of parallel-for)] [--peers] [--csv]\n"
        "           [--turns (of broadcast and reduce: each replica in turn is the root)]\n"
        "           [--patience SECONDS (how long a row waits for another mode of the machine; 60)]\n"
        "           [--forms (CSV with a row for every form of the bound that came near)]\n"
        "           [--samples (CSV with the times of all batches)]\n"
        "           [--counters [EVENT,EVENT,...] (what each replica's thread counted for one operation)]\n"
        "           [--perf-control CTL[,ACK] (pipes of `perf stat --control`: only ditto's batches are "
        "counted)]\n"
        "bytes: of all-reduce, reduce, broadcast the message; of reduce-scatter a replica's whole input, of\n"
        "all-gather its whole output; of list all tensors together; of parallel-for the array\n");
    exit(2);
}

/* -- values -- */

static size_t parse_size(const char **text)
{
    char *end;
    size_t size = strtoull(*text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == *text)
        usage("is no size", *text);
    *text = end + (shift != 0);
    return size << shift;
}

static void parse_sizes(struct request *r, const char *text)
{
    r->sizes = 0;
    while (*text != '\0' && r->sizes < MOST_SIZES) {
        size_t size = parse_size(&text);
        r->bytes[r->sizes++] = size;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            size_t last = parse_size(&text);
            while (r->sizes < MOST_SIZES && size != 0 && (size *= 4) <= last)
                r->bytes[r->sizes++] = size;
            /* The end of the range is always measured. */
            if (r->bytes[r->sizes - 1] < last && r->sizes < MOST_SIZES)
                r->bytes[r->sizes++] = last;
        }
        if (*text != ',' && *text != '\0')
            usage("is no list of sizes", text);
        text += *text == ',';
    }
}

static void parse_skews(struct request *r, const char *text)
{
    r->skews = 0;
    while (*text != '\0' && r->skews < MOST_SKEWS) {
        size_t us = parse_size(&text);
        if (us > 1000000 || (*text != ',' && *text != '\0'))
            usage("is no list of microseconds", text);
        r->skew_us[r->skews++] = (uint32_t)us;
        text += *text == ',';
    }
}

static uint32_t parse_count(const char *value)
{
    int count = atoi(value);
    if (count < 1 || count > WORK_MOST_REPLICAS)
        usage("is no number from 1 to 1024", value);
    return (uint32_t)count;
}

/* Reads a number that may be 0. */
static uint32_t parse_number(const char *value, unsigned long most, const char *reason)
{
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0' || number > most)
        usage(reason, value);
    return (uint32_t)number;
}

static ditto_dtype parse_dtype(const char *value)
{
#define SAME_DTYPE(name, number, bytes, text) \
    if (strcmp(value, text) == 0)             \
        return name;
    DITTO_DTYPE_LIST(SAME_DTYPE)
#undef SAME_DTYPE
    usage("is no dtype", value);
    return DITTO_F32;
}

static ditto_op parse_op(const char *value)
{
    for (int op = DITTO_SUM; op <= DITTO_XOR; op++)
        if (strcmp(value, ditto_op_name((ditto_op)op)) == 0)
            return (ditto_op)op;
    usage("is no operator", value);
    return DITTO_SUM;
}

static void parse_name(struct request *r, const char *word)
{
    r->kind = BENCH_KINDS;
    r->machine = strcmp(word, "machine") == 0;
    for (int i = 0; i < BENCH_KINDS; i++)
        if (strcmp(word, bench_facts[i].name) == 0)
            r->kind = (enum bench_kind)i;
    if (r->machine)
        r->kind = BENCH_BARRIER;
    if (r->kind == BENCH_KINDS)
        usage("is not measured", word);
}

/* -- checks -- */

/* Checks a size. A small message may have any number of elements. Large parts must begin at the start of a
 * cache line. */
static void check_size(const struct request *r, size_t bytes)
{
    const struct bench_facts *facts = &bench_facts[r->kind];
    bool parts = facts->input == EXTENT_OWN_PART || facts->output == EXTENT_OWN_PART;
    size_t element = work_element_bytes(r->dtype), unit = element > 4 ? element : 4;
    char text[32];
    snprintf(text, sizeof text, "%zu", bytes);
    if (parts)
        unit = (bytes >= (size_t)r->replicas * 64 ? 64 : unit) * r->replicas;
    if (bytes % unit != 0)
        usage(parts ? "such sizes are multiples of replicas x 64, or small ones of replicas x element"
                    : "sizes are whole elements and multiples of 4",
              text);
    if (facts->collective && bytes == 0)
        usage("a message has bytes", text);
    if (r->kind == BENCH_CG && (bytes == 0 || bytes % 8192 != 0))
        usage("vectors are multiples of 8K, a plane of the grid", text);
    if (r->kind == BENCH_TRAIN && (bytes < 1024 || bytes % 64 != 0))
        usage("gradients have at least 1K, and a multiple of 64", text);
    if (r->kind == BENCH_LIST && bytes < (size_t)WORK_TENSORS * 64)
        usage("a list of 100 tensors has at least 6400 bytes", text);
    if (bytes > (size_t)1 << 32)
        usage("sizes end at 4G", text);
}

static bool has_root(const struct bench_facts *facts)
{
    return facts->input == EXTENT_WHOLE_AT_ROOT || facts->output == EXTENT_WHOLE_AT_ROOT;
}

/* The list may be missing. Returns the number of words that were used. */
static int parse_counters(struct request *r, const char *value)
{
    char why[256];
    bool has_list = value != NULL && strncmp(value, "--", 2) != 0;
    r->counters = has_list ? value : "";
    if (!counters_choose(r->counters, why, sizeof why))
        usage(why, "--counters");
    return has_list ? 2 : 1;
}

static void open_pipes(const char *paths)
{
    if (!perf_control_open(paths))
        usage(strerror(errno), paths);
}

/* Reads one word, and its value if it has one. Returns the number of words that were used. */
static int parse_word(struct request *r, const char *word, const char *value)
{
    const struct bench_facts *facts = &bench_facts[r->kind];
    bool counts = r->kind != BENCH_WAIT; /* its rows have no bound and no counters */
    if (strcmp(word, "--in-place") == 0 && facts->collective)
        r->in_place = true;
    else if (strcmp(word, "--turns") == 0 && has_root(facts))
        r->turns = true;
    else if (strcmp(word, "--csv") == 0)
        r->csv = true;
    else if (strcmp(word, "--peers") == 0)
        r->peers = true;
    else if (strcmp(word, "--forms") == 0 && counts)
        r->forms = r->csv = true;
    else if (strcmp(word, "--samples") == 0 && counts)
        r->samples = r->csv = true;
    else if (strcmp(word, "--counters") == 0 && counts)
        return parse_counters(r, value);
    else if (value == NULL)
        usage("is not an option of this bench, or lacks its value", word);
    else if (strcmp(word, "--replicas") == 0 ||
             (strcmp(word, "--devices") == 0 && r->kind == BENCH_PARALLEL_FOR))
        return r->replicas = parse_count(value), 2;
    else if (strcmp(word, "--bytes") == 0 && facts->sizes != NULL)
        return parse_sizes(r, value), 2;
    else if (strcmp(word, "--perf-control") == 0 && counts)
        return open_pipes(value), 2;
    else if (strcmp(word, "--patience") == 0 && counts)
        return rounds_wait_at_most(parse_number(value, 3600, "is no number from 0 to 3600")), 2;
    else if (strcmp(word, "--skew") == 0 && (r->kind == BENCH_SKEW || r->kind == BENCH_WAIT))
        return parse_skews(r, value), 2;
    else if (strcmp(word, "--load") == 0 && r->kind == BENCH_WAIT)
        return r->load = parse_number(value, 8, "is no number from 0 to 8"), 2;
    else if (strcmp(word, "--dtype") == 0 && facts->collective)
        return r->dtype = parse_dtype(value), 2;
    else if (strcmp(word, "--op") == 0 && facts->reduces)
        return r->op = parse_op(value), 2;
    else
        usage("is not an option of this bench", word);
    return 1;
}

struct request request_parse(int count, char **word)
{
    struct request r = { .replicas = 2, .dtype = DITTO_F32, .op = DITTO_SUM, .sizes = 1, .skews = 1 };
    if (count < 2)
        usage(NULL, NULL);
    parse_name(&r, word[1]);
    if (bench_facts[r.kind].sizes != NULL)
        parse_sizes(&r, bench_facts[r.kind].sizes);
    if (r.kind == BENCH_WAIT)
        parse_sizes(&r, "8");
    if (r.kind == BENCH_SKEW)
        parse_skews(&r, "0,20,200");
    if (r.kind == BENCH_WAIT)
        parse_skews(&r, "0,20,50,150,200,1000");
    for (int i = 2; i < count;)
        i += parse_word(&r, word[i], i + 1 < count ? word[i + 1] : NULL);
    r.in_place |= bench_facts[r.kind].one_buffer;
    for (uint32_t i = 0; i < r.sizes; i++)
        check_size(&r, r.bytes[i]);
    return r;
}
