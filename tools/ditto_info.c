/* tools/ditto_info.c - the program ditto-info. It prints the machine as ditto sees it, the limits of the
 * process, warnings, and the placement of replicas. On this machine it creates a strategy, and prints what
 * the system reports of its threads and pages. For a recorded or synthetic machine it prints the planned
 * placement. */
#include "base/text/environment.h"
#include "../examples/command_line.h"
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- the command line -- */

enum {
    JSON,
    MEASURE,
    PLACEMENT,
    MACHINE, /* a heading */
    TOPOLOGY,
    SYNTHETIC,
    CPUS,
    KINDS,
    REPLICAS_PLACED, /* a heading */
    REPLICAS,
    PER,
    PUS,
    SHAPE,
    STRIDE,
    COMPACT,
    NO_SMT,
    NO_HELPERS,
    READ,
    NUM_ROWS
};

static const struct command_row rows[] = {
    [JSON] = { "--json", NULL, "print JSON, as ditto-info.schema.json describes it" },
    [MEASURE] = { "--measure", NULL, "also measure what a cache line and a byte cost" },
    [PLACEMENT] = { "--placement", NULL, "print only the placement, as text for ditto_placement_read" },
    [MACHINE] = { NULL, NULL, "Another machine, or a part of this one" },
    [TOPOLOGY] = { "--topology", "FILE.xml", "a machine that lstopo has recorded" },
    [SYNTHETIC] = { "--synthetic", "TEXT", "a machine of hwloc, like \"pack:2 [numa] core:4 pu:2\"" },
    [CPUS] = { "--cpus", "LIST", "only these PUs, as in taskset: 0-31,64" },
    [KINDS] = { "--kinds", "N", "only the N fastest kinds of cores" },
    [REPLICAS_PLACED] = { NULL, NULL, "The placement of replicas" },
    [REPLICAS] = { "--replicas", "N",
                   "the number of replicas: 1 to 1024 (default: as many as --per or --pus gives, 1 with "
                   "--shape or --stride, or else one for each core, and fewer under a CPU quota)" },
    [PER] = { "--per", "PART", "what a replica spans: pu, core, llc, node, package or machine" },
    [PUS] = { "--pus", "N", "the number of PUs of each replica" },
    [SHAPE] = { "--shape", "P,N,C,T", "packages, NUMA nodes, cores and PUs that a replica spans" },
    [STRIDE] = { "--stride", "P,N,C,T", "how far apart replicas are" },
    [COMPACT] = { "--compact", NULL, "fill a NUMA node before the next one" },
    [NO_SMT] = { "--no-smt", NULL, "only the first PU of each core" },
    [NO_HELPERS] = { "--no-helpers", NULL, "no threads but the leaders of the replicas" },
    [READ] = { "--read", "FILE", "a placement that --placement has printed; - is the standard input" },
    { 0 },
};

/* Options that exclude others. Of each pair, one would have no effect. */
static const struct {
    int option;
    uint32_t excluded; /* bits of rows */
    const char *reason;
} exclusions[] = {
    { PLACEMENT, 1u << JSON | 1u << MEASURE | 1u << NO_HELPERS, "prints only the places" },
    { TOPOLOGY, 1u << SYNTHETIC, "gives the machine" },
    { MEASURE, 1u << TOPOLOGY | 1u << SYNTHETIC, "measures this machine" },
    { NO_HELPERS, 1u << TOPOLOGY | 1u << SYNTHETIC,
      "is for threads, which are created on this machine alone" },
    { PER, 1u << PUS | 1u << SHAPE | 1u << STRIDE, "gives the shape" },
    { PUS, 1u << SHAPE | 1u << STRIDE, "gives the size" },
    { READ,
      1u << REPLICAS | 1u << PER | 1u << PUS | 1u << SHAPE | 1u << STRIDE | 1u << COMPACT | 1u << NO_SMT,
      "gives the whole placement" },
};

static void refuse_excluded(const struct command_line *line, uint32_t given)
{
    for (size_t i = 0; i < sizeof exclusions / sizeof exclusions[0]; i++)
        for (int other = 0; other < NUM_ROWS; other++)
            if ((given >> exclusions[i].option & 1) != 0 &&
                ((given & exclusions[i].excluded) >> other & 1) != 0)
                command_refuse(line, "%s %s: leave out %s", rows[exclusions[i].option].name,
                               exclusions[i].reason, rows[other].name);
}

/* Reads a list like "1,1,8,2", and returns how many numbers it has. The library refuses a wrong number of
 * them. */
static uint32_t parse_numbers(const struct command_line *line, int64_t numbers[8])
{
    uint32_t count = 0;
    const char *text = line->value;
    for (char *end; count < 8; text = end + 1) {
        numbers[count++] = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0'))
            break;
        if (*end == '\0')
            return count;
    }
    command_refuse_value(line, "four numbers like 1,1,8,2");
}

static struct request parse(int count, char **word)
{
    static const char *const parts[] = { "pu", "core", "llc", "node", "package", "machine", NULL };
    static int64_t shape[8], stride[8];
    struct request r = { .topology = DITTO_TOPOLOGY_OPTIONS_INIT, .placement = DITTO_PLACEMENT_OPTIONS_INIT };
    struct command_line line = command_line_of(
        "[OPTION ...]",
        "Draws the machine with the replicas in it, names what limits the process and what to do about it, "
        "and shows the strategy that it creates.",
        rows, count, word);
    uint32_t given = 0; /* bits of rows */

    r.placement.flags = DITTO_PLACEMENT_SHARE; /* like a strategy with a number of replicas */
    for (int row; (row = command_next(&line)) >= 0; given |= 1u << row)
        switch (row) {
        case JSON:
            r.json = true;
            break;
        case MEASURE:
            r.measure = true;
            break;
        case PLACEMENT:
            r.text_only = true;
            break;
        case TOPOLOGY:
            r.topology.xml_path = line.value;
            break;
        case SYNTHETIC:
            r.topology.synthetic = line.value;
            break;
        case CPUS:
            r.topology.cpus = line.value;
            break;
        case KINDS:
            r.topology.fastest_kinds = (uint32_t)command_number(&line, 1, UINT32_MAX);
            break;
        case REPLICAS:
            r.placement.num_replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
            break;
        case PER:
            r.placement.span = (ditto_span)(DITTO_SPAN_PU + command_choice(&line, parts));
            break;
        case PUS:
            r.placement.pus_per_replica = (uint32_t)command_number(&line, 1, MOST_PUS);
            break;
        case SHAPE:
            r.placement.shape_rank = parse_numbers(&line, shape);
            r.placement.shape = shape;
            break;
        case STRIDE:
            r.placement.stride_rank = parse_numbers(&line, stride);
            r.placement.stride = stride;
            break;
        case COMPACT:
            r.placement.policy = DITTO_PLACEMENT_COMPACT;
            break;
        case NO_SMT:
            r.placement.flags |= DITTO_PLACEMENT_NO_SMT;
            break;
        case NO_HELPERS:
            r.helpers = DITTO_SWITCH_OFF;
            break;
        case READ:
            r.placement_file = line.value;
            break;
        }
    refuse_excluded(&line, given);
    return r;
}

/* Reads a topology file in a child process first, because hwloc crashes on some files that lstopo did not
 * write. This program may fork, because it has no other threads and no signal handlers
 * (docs/adr/0008-places-on-a-mesh.md). */
static void try_topology(const ditto_topology_options *options)
{
    enum { MOST_SECONDS = 60 };
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ditto_topology *topology;
        alarm(MOST_SECONDS);
        if (ditto_topology_create(options, &topology) == DITTO_OK)
            check(ditto_topology_destroy(topology));
        _exit(0); /* The parent reports errors of the library. */
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        return;
    fprintf(stderr,
            "ditto-info: hwloc crashes on %s (%s): the file is not as lstopo writes it; record it again with "
            "`lstopo file.xml`\n",
            options->xml_path, strsignal(WTERMSIG(status)));
    exit(1);
}

static void print_placement_text(const struct survey *s)
{
    size_t length;
    check(ditto_placement_write(s->placement, NULL, 0, &length));
    char *text = malloc(length + 1);
    if (text == NULL)
        return;
    check(ditto_placement_write(s->placement, text, length + 1, NULL));
    fputs(text, stdout);
    free(text);
}

int main(int count, char **word)
{
    struct request r = parse(count, word);
    struct survey s;
    char unknown[160];
    if (r.topology.xml_path != NULL)
        try_topology(&r.topology);
    survey_make(&s, &r);
    /* The description of a strategy, which the text contains, has these sentences. */
    bool described = s.strategy != NULL && !r.text_only && !r.json;
    for (size_t at = 0; !described && dti_unknown_variable(&at, unknown, sizeof unknown);)
        fprintf(stderr, "ditto-info: %s\n", unknown);
    if (r.text_only)
        print_placement_text(&s);
    else if (r.json)
        print_json(&s);
    else
        print_text(&s);
    survey_free(&s);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("ditto-info");
        return 1;
    }
    return 0;
}
