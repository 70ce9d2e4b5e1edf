/* bench/request.c - reads the command line, see request.h. */
#include "request.h"
#include "../examples/command_line.h"
#include "perf_control.h"
#include "rounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the words -- */

/* The first rows of the table are the kinds of work, which have the numbers of enum bench_kind. */
enum {
    MACHINE = BENCH_KINDS,
    HEADING,
    REPLICAS,
    BYTES,
    DTYPE,
    OP,
    GROUPS,
    ALONE,
    IN_PLACE,
    TURNS,
    SKEW,
    LOAD,
    DEVICES,
    PEERS,
    CSV,
    FORMS,
    SAMPLES,
    COUNTERS,
    PERF_CONTROL,
    PATIENCE,
    END
};

static struct command_row rows[END + 1] = {
    [BENCH_BARRIER].help = "all replicas wait for each other",
    [BENCH_RUN].help = "a run of an empty function",
    [BENCH_ALL_REDUCE].help = "all get the sum of what all have",
    [BENCH_ALL_GATHER].help = "all get what each has",
    [BENCH_BROADCAST].help = "all get what one has",
    [BENCH_REDUCE_SCATTER].help = "each gets a part of the sum",
    [BENCH_REDUCE].help = "one gets the sum of what all have",
    [BENCH_GATHER].help = "one gets what each has",
    [BENCH_SCATTER].help = "each gets a part of what one has",
    [BENCH_ALL_TO_ALL].help = "each gets a part of what each has",
    [BENCH_SCAN].help = "each gets the sum of the replicas up to itself",
    [BENCH_SCAN_EXCLUSIVE].help = "each gets the sum of the replicas before it",
    [BENCH_LIST].help = "one all-reduce of 100 tensors",
    [BENCH_ASYNC].help = "an all-reduce that is started and then waited for",
    [BENCH_SKEW].help = "an all-reduce to which one replica comes late",
    [BENCH_WAIT].help = "ways to wait for a late replica, after 300 us of work",
    [BENCH_PARALLEL_FOR].help = "a loop on the PUs of one replica",
    [BENCH_CG].help = "an iteration of conjugate gradients",
    [BENCH_TRAIN].help = "a step of training a network",
    [BENCH_CREATE].help = "a strategy is created and destroyed",
    [BENCH_REST].help = "the CPU time of a strategy that does nothing",
    [BENCH_RUN_VALUES].help = "a run with arguments and results",
    [BENCH_REDUCE_VALUES].help = "the values of a run are added up",
    [BENCH_MERGE_CALL].help = "a merge call of an empty function",
    [BENCH_EXCHANGE].help = "both neighbours on a ring get a row",
    [BENCH_DOT].help = "dot products with the same bits for any replicas",
    [BENCH_TRACE].help = "an all-reduce while the strategy is traced",
    [BENCH_ASSIGN].help = "adding to variables",
    [BENCH_APPLY].help = "steps of optimizers",
    [BENCH_CHECKPOINT].help = "saving and restoring 1 GiB",
    [BENCH_QUEUE].help = "the queue alone",
    [BENCH_FUNCTIONS].help = "functions and updates of workers that do not wait",
    [BENCH_INPUT].help = "reading files, and input while replicas compute",
    [BENCH_GENERATE].help = "a position of a language model over the replicas",
    [MACHINE] = { "machine", NULL, "describes the machine, and measures nothing" },
    [HEADING] = { NULL, NULL, "Options" },
    [REPLICAS] = { "--replicas", "N", "the number of replicas: 1 to 1024 (default: 2)" },
    [BYTES] = { "--bytes", "SIZES",
                "like 8,4K,1M or 8..128M: the message; of all-gather and gather the whole output, of "
                "reduce-scatter, scatter and all-to-all a whole input, of list all tensors together, of "
                "parallel-for the array" },
    [DTYPE] = { "--dtype", "DTYPE", "of collectives: f16, bf16, f32 and so on (default: f32)" },
    [OP] = { "--op", "OP", "of reductions: SUM, MAX and so on (default: SUM)" },
    [GROUPS] = { "--groups", "G",
                 "of collectives and barrier: the replicas form G groups, which all do the work" },
    [ALONE] = { "--alone", NULL, "of --groups: only the first does it, and the others have returned" },
    [IN_PLACE] = { "--in-place", NULL, "of collectives: the output is the input's buffer" },
    [TURNS] = { "--turns", NULL,
                "of broadcast, reduce, gather and scatter: all replicas take turns as root" },
    [SKEW] = { "--skew", "US", "of skew and wait: how late a replica is, like 0,20,200" },
    [LOAD] = { "--load", "N", "of wait: the busy processes on each PU, 0 to 16" },
    [DEVICES] = { "--devices", "N", "of parallel-for: the number of PUs, 1 to 1024" },
    [PEERS] = { "--peers", NULL, "measure MPI, gloo and others, too, if they are built" },
    [CSV] = { "--csv", NULL, "print CSV" },
    [FORMS] = { "--forms", NULL, "CSV with a row for each form of the bound that came near" },
    [SAMPLES] = { "--samples", NULL, "CSV with the times of all batches" },
    [COUNTERS] = { "--counters", "[EVENTS]",
                   "what each thread counts in one operation, like cycles,page-faults" },
    [PERF_CONTROL] = { "--perf-control", "PIPES",
                       "the pipes of `perf stat --control`, CTL or CTL,ACK: perf counts only ditto's "
                       "batches" },
    [PATIENCE] = { "--patience", "SECONDS",
                   "how long a row waits for another mode of the machine: 0 to 3600 (default: 60)" },
};

static struct command_line line;

/* Ends the program, because `word` has a fault. */
static void refuse(const char *word, const char *fault)
{
    command_refuse(&line, "%s %s", word, fault);
}

/* -- values -- */

#define SIZES_ALLOWED "sizes of at most 4G, like 8,4K,1M or 8..128M"
#define SKEWS_ALLOWED "at most 8 numbers of microseconds from 0 to 1000000, like 0,20,200"

/* Reads a number that may be followed by K, M or G, and moves the text behind it. */
static size_t parse_size(const char **text, size_t most, const char *allowed)
{
    char *end;
    unsigned long long size = strtoull(*text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (**text < '0' || **text > '9' || size > most >> shift)
        command_refuse_value(&line, allowed);
    *text = end + (shift != 0);
    return (size_t)size << shift;
}

static void add_size(struct request *r, size_t bytes)
{
    if (r->sizes == MOST_SIZES)
        command_refuse_value(&line, "a list of at most 32 sizes");
    r->bytes[r->sizes++] = bytes;
}

static void parse_sizes(struct request *r, const char *text)
{
    size_t most = (size_t)1 << 32;
    r->sizes = 0;
    do {
        size_t size = parse_size(&text, most, SIZES_ALLOWED);
        add_size(r, size);
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            size_t last = parse_size(&text, most, SIZES_ALLOWED);
            while (size != 0 && (size *= 4) <= last)
                add_size(r, size);
            /* The end of the range is always measured. */
            if (r->bytes[r->sizes - 1] < last)
                add_size(r, last);
        }
        if (*text != ',' && *text != '\0')
            command_refuse_value(&line, SIZES_ALLOWED);
    } while (*text++ == ',');
}

static void parse_skews(struct request *r, const char *text)
{
    r->skews = 0;
    do {
        size_t us = parse_size(&text, 1000000, SKEWS_ALLOWED);
        if (r->skews == MOST_SKEWS || (*text != ',' && *text != '\0'))
            command_refuse_value(&line, SKEWS_ALLOWED);
        r->skew_us[r->skews++] = (uint32_t)us;
    } while (*text++ == ',');
}

static ditto_dtype parse_dtype(void)
{
#define DTYPE_NAME(name, number, bytes, text)   text,
#define DTYPE_NUMBER(name, number, bytes, text) name,
    static const char *const names[] = { DITTO_DTYPE_LIST(DTYPE_NAME) NULL };
    static const ditto_dtype dtypes[] = { DITTO_DTYPE_LIST(DTYPE_NUMBER) };
#undef DTYPE_NAME
#undef DTYPE_NUMBER
    return dtypes[command_choice(&line, names)];
}

static ditto_op parse_op(void)
{
    const char *names[DITTO_XOR - DITTO_SUM + 2] = { NULL };
    for (int op = DITTO_SUM; op <= DITTO_XOR; op++)
        names[op - DITTO_SUM] = ditto_op_name((ditto_op)op);
    return (ditto_op)(DITTO_SUM + command_choice(&line, names));
}

/* -- checks -- */

/* Checks a size. A small message may have any number of elements. Large parts must begin at the start of a
 * cache line. */
static void check_size(const struct request *r, size_t bytes)
{
    const struct bench_facts *facts = &bench_facts[r->kind];
    bool parts = facts->input == EXTENT_OWN_PART || facts->output == EXTENT_OWN_PART ||
                 r->kind == BENCH_ALL_TO_ALL;
    size_t element = work_element_bytes(r->dtype), unit = element > 4 ? element : 4;
    uint32_t members = request_members(r);
    char text[32];
    snprintf(text, sizeof text, "%zu", bytes);
    if (parts)
        unit = (bytes >= (size_t)members * 64 ? 64 : unit) * members;
    if (bytes % unit != 0)
        refuse(text, parts ? "is no multiple of replicas x 64, or, if it is small, of replicas x element"
                           : "is no multiple of 4 and of an element");
    if (facts->collective && bytes == 0)
        refuse(text, "is no message");
    if (r->kind == BENCH_CG && (bytes == 0 || bytes % 8192 != 0))
        refuse(text, "is no multiple of 8K, a plane of the grid");
    if (r->kind == BENCH_TRAIN && (bytes < 1024 || bytes % 64 != 0))
        refuse(text, "is no multiple of 64 from 1K on, as gradients are");
    if (r->kind == BENCH_LIST && bytes < (size_t)WORK_TENSORS * 64)
        refuse(text, "is below 6400, the least for a list of 100 tensors");
}

static bool has_option(enum bench_kind kind, int option)
{
    const struct bench_facts *facts = &bench_facts[kind];
    switch (option) {
    case BYTES:
        return facts->sizes != NULL;
    case DTYPE:
        return facts->collective;
    case IN_PLACE:
        return facts->collective && kind != BENCH_ALL_TO_ALL;
    case OP:
        return facts->reduces;
    case GROUPS:
    case ALONE:
        return facts->collective || kind == BENCH_BARRIER;
    case TURNS:
        return work_has_root(kind);
    case SKEW:
        return kind == BENCH_SKEW || kind == BENCH_WAIT;
    case LOAD:
        return kind == BENCH_WAIT;
    case DEVICES:
        return kind == BENCH_PARALLEL_FOR;
    case FORMS:
    case SAMPLES:
    case COUNTERS:
    case PERF_CONTROL:
    case PATIENCE:
        return kind != BENCH_WAIT; /* its rows have no bound and no counters */
    default:
        return true;
    }
}

static void take_option(struct request *r, int option)
{
    char why[256];
    switch (option) {
    case REPLICAS:
    case DEVICES:
        r->replicas = (uint32_t)command_number(&line, 1, WORK_MOST_REPLICAS);
        break;
    case BYTES:
        parse_sizes(r, line.value);
        break;
    case DTYPE:
        r->dtype = parse_dtype();
        break;
    case OP:
        r->op = parse_op();
        break;
    case GROUPS:
        r->groups = (uint32_t)command_number(&line, 1, WORK_MOST_REPLICAS);
        break;
    case ALONE:
        r->alone = true;
        break;
    case IN_PLACE:
        r->in_place = true;
        break;
    case TURNS:
        r->turns = true;
        break;
    case SKEW:
        parse_skews(r, line.value);
        break;
    case LOAD:
        r->load = (uint32_t)command_number(&line, 0, 16);
        break;
    case PEERS:
        r->peers = true;
        break;
    case CSV:
        r->csv = true;
        break;
    case FORMS:
        r->forms = r->csv = true;
        break;
    case SAMPLES:
        r->samples = r->csv = true;
        break;
    case COUNTERS:
        r->counters = line.value != NULL ? line.value : "";
        if (!counters_choose(r->counters, why, sizeof why))
            refuse("--counters:", why);
        break;
    case PERF_CONTROL:
        if (!perf_control_open(line.value))
            command_refuse(&line, "--perf-control %s: %s", line.value, strerror(errno));
        break;
    case PATIENCE:
        rounds_wait_at_most((double)command_number(&line, 0, 3600));
        break;
    }
}

struct request request_parse(int count, char **word)
{
    struct request r = { .replicas = 2, .dtype = DITTO_F32, .op = DITTO_SUM, .sizes = 1, .skews = 1 };
    for (int kind = 0; kind < BENCH_KINDS; kind++)
        rows[kind].name = bench_facts[kind].name;
    line = command_line_of(
        "NAME [OPTION ...]",
        "Measures one kind of work beside bounds and peers, with a row for each size. The names are:", rows,
        count, word);
    int name = command_next(&line);
    if (name < 0 || name > MACHINE)
        command_refuse(&line, "the first word must be the name of what to measure");
    r.machine = name == MACHINE;
    r.kind = r.machine ? BENCH_BARRIER : (enum bench_kind)name;
    if (bench_facts[r.kind].sizes != NULL)
        parse_sizes(&r, bench_facts[r.kind].sizes);
    if (r.kind == BENCH_WAIT)
        parse_sizes(&r, "8");
    if (r.kind == BENCH_SKEW)
        parse_skews(&r, "0,20,200");
    if (r.kind == BENCH_WAIT)
        parse_skews(&r, "0,20,50,150,200,1000");
    for (int option; (option = command_next(&line)) >= 0; take_option(&r, option)) {
        if (option <= MACHINE)
            command_refuse(&line, "%s is one name too many", rows[option].name);
        if (!has_option(r.kind, option))
            command_refuse(&line, "%s is no option of %s", rows[option].name, rows[name].name);
    }
    r.in_place |= bench_facts[r.kind].one_buffer;
    if (r.groups > 0 && (r.replicas % r.groups != 0 || r.replicas == r.groups))
        command_refuse(&line,
                       "--groups must divide the number of replicas, which is %u, into groups of at "
                       "least 2",
                       r.replicas);
    if (r.alone && r.groups == 0)
        command_refuse(&line, "--alone needs --groups");
    for (uint32_t i = 0; i < r.sizes; i++)
        check_size(&r, r.bytes[i]);
    return r;
}
