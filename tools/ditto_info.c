/* tools/ditto_info.c - the program ditto-info. It prints the machine as ditto sees it, the limits of the
 * process, warnings, and the placement of replicas. On this machine it creates a strategy, and prints what
 * the system reports of its threads and pages. For a recorded or synthetic machine it prints the planned
 * placement. */
#include "base/text/environment.h"
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void usage(const char *problem)
{
    if (problem != NULL)
        fprintf(stderr, "ditto-info: %s\n", problem);
    fputs("usage: ditto-info [--json] [--measure] [machine] [placement]\n"
          "  machine    --topology FILE.xml | --synthetic \"pack:2 [numa] core:4 pu:2\"   not this one\n"
          "             --cpus LIST         only these PUs, as in taskset: 0-31,64\n"
          "  placement  --replicas N        default: one per core, or fewer under a CPU quota;\n"
          "                                 as many as --per gives; 1 with --shape or --stride\n"
          "             --per pu|core|llc|node|package|machine\n"
          "             --shape P,N,C,T     packages, NUMA nodes, cores, PUs that one replica spans\n"
          "             --stride P,N,C,T\n"
          "             --compact           fill a node before the next\n"
          "             --no-smt            only the first PU of each core\n"
          "             --no-helpers        leaders only\n"
          "             --read FILE         a placement's text, as --placement prints it; - reads the input\n"
          "  --placement  print the placement as text that ditto_placement_read takes, nothing else\n",
          problem != NULL ? stderr : stdout);
    exit(problem != NULL ? 2 : 0);
}

/* Reports a wrong word of the command line. */
static void complain(const char *word, const char *problem)
{
    char text[256];
    snprintf(text, sizeof text, "%s %s", word, problem);
    usage(text);
}

static ditto_span parse_per(const char *text)
{
    static const char *const names[] = { "pu", "core", "llc", "node", "package", "machine" };
    for (int i = 0; i < 6; i++)
        if (strcmp(text, names[i]) == 0)
            return (ditto_span)(DITTO_SPAN_PU + i);
    usage("--per is pu, core, llc, node, package or machine");
    return DITTO_SPAN_PU;
}

/* Reads a list like "1,1,8,2", and returns how many numbers it has. The library refuses a wrong number of
 * them. */
static uint32_t parse_numbers(const char *text, int64_t numbers[8])
{
    uint32_t count = 0;
    for (char *end; count < 8; text = end + 1) {
        numbers[count++] = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0'))
            usage("a shape or stride is written like 1,1,8,2");
        if (*end == '\0')
            return count;
    }
    usage("a shape or stride has four numbers");
    return 0;
}

static uint32_t parse_replicas(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > DITTO_MAX_REPLICAS)
        usage("--replicas is a number from 1 to 1024");
    return (uint32_t)number;
}

/* Reads an option that has no value. Returns false if the word is not such an option. */
static bool take_flag(struct request *r, const char *word)
{
    if (strcmp(word, "--json") == 0)
        r->json = true;
    else if (strcmp(word, "--measure") == 0)
        r->measure = true;
    else if (strcmp(word, "--placement") == 0)
        r->text_only = true;
    else if (strcmp(word, "--compact") == 0)
        r->placement.policy = DITTO_PLACEMENT_COMPACT;
    else if (strcmp(word, "--no-smt") == 0)
        r->placement.flags |= DITTO_PLACEMENT_NO_SMT;
    else if (strcmp(word, "--no-helpers") == 0)
        r->helpers = DITTO_SWITCH_OFF;
    else
        return false;
    return true;
}

static bool chooses_places(const ditto_placement_options *o)
{
    return o->num_replicas != 0 || o->span != DITTO_SPAN_DEFAULT || o->shape != NULL || o->stride != NULL ||
           o->policy != DITTO_PLACEMENT_DEFAULT || (o->flags & DITTO_PLACEMENT_NO_SMT) != 0;
}

static struct request parse(int count, char **word)
{
    static int64_t shape[8], stride[8];
    struct request r = { .topology = DITTO_TOPOLOGY_OPTIONS_INIT, .placement = DITTO_PLACEMENT_OPTIONS_INIT };
    r.placement.flags = DITTO_PLACEMENT_SHARE; /* like a strategy with a number of replicas */
    for (int i = 1; i < count; i++) {
        if (strcmp(word[i], "--help") == 0 || strcmp(word[i], "-h") == 0)
            usage(NULL);
        if (take_flag(&r, word[i]))
            continue;
        const char *value = i + 1 < count ? word[i + 1] : NULL;
        if (value == NULL)
            complain(word[i], "is unknown, or needs a value");
        if (strcmp(word[i], "--topology") == 0)
            r.topology.xml_path = value;
        else if (strcmp(word[i], "--synthetic") == 0)
            r.topology.synthetic = value;
        else if (strcmp(word[i], "--cpus") == 0)
            r.topology.cpus = value;
        else if (strcmp(word[i], "--per") == 0)
            r.placement.span = parse_per(value);
        else if (strcmp(word[i], "--replicas") == 0)
            r.placement.num_replicas = parse_replicas(value);
        else if (strcmp(word[i], "--shape") == 0)
            r.placement.shape_rank = parse_numbers(value, shape);
        else if (strcmp(word[i], "--stride") == 0)
            r.placement.stride_rank = parse_numbers(value, stride);
        else if (strcmp(word[i], "--read") == 0)
            r.placement_file = value;
        else
            complain(word[i], "is unknown");
        i++;
    }
    r.placement.shape = r.placement.shape_rank > 0 ? shape : NULL;
    r.placement.stride = r.placement.stride_rank > 0 ? stride : NULL;
    if (r.placement_file != NULL && chooses_places(&r.placement))
        usage("--read FILE gives the whole placement: leave out --replicas, --per, --shape, --stride, "
              "--compact and --no-smt");
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
    if (r.measure && (r.topology.xml_path != NULL || r.topology.synthetic != NULL))
        usage("--measure needs this machine");
    char unknown[160];
    for (size_t at = 0; dti_unknown_variable(&at, unknown, sizeof unknown);)
        fprintf(stderr, "ditto-info: %s\n", unknown);
    if (r.topology.xml_path != NULL)
        try_topology(&r.topology);
    survey_make(&s, &r);
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
