/* tools/info_text.c - prints a survey as text. */
#include "base/text/environment.h"
#include "measure.h"
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 100

static void print_bytes(uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    printf("%.*f %s", value < 10 && unit > 0 ? 1 : 0, value, units[unit]);
}

static void print_count(const char *before, uint32_t count, const char *noun)
{
    printf("%s%u %s%s", before, count, noun, count == 1 ? "" : "s");
}

/* -- the machine, with the replicas on each PU -- */

/* Writes the replicas on a PU, for example "r0", "r0-3" or "r0,r4", or "-" if there are none. A long list
 * ends in "...". */
static void name_replicas(const struct survey *s, uint32_t pu, char *text, size_t size)
{
    const uint32_t *at = s->replica_on + s->first[pu], *end = s->replica_on + s->first[pu + 1];
    size_t used = (size_t)snprintf(text, size, "%s", at == end ? "-" : "");
    while (at < end) {
        uint32_t first = *at, last = first;
        while (at < end && *at <= last + 1)
            last = *at++;
        if (used > size - 32) {
            snprintf(text + used, size - used, ",...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, first < last ? "%sr%u-%u" : "%sr%u",
                                 used > 0 ? "," : "", first, last);
    }
}

/* Successive PUs of the mesh with the same replicas. They are printed together, for example
 * "0-63,128-191:r0". */
struct run {
    char replicas[64];
    uint32_t pu[MOST_PUS], count;
    int column; /* the current column of the line */
};

static void draw_run(struct run *run)
{
    char item[512];
    size_t used = name_numbers(run->pu, run->count, item, sizeof item - 65);
    if (run->count == 0)
        return;
    used += (size_t)snprintf(item + used, sizeof item - used, ":%s", run->replicas);
    if (run->column > 6 && run->column + (int)used > COLUMNS) {
        printf("\n      ");
        run->column = 6;
    }
    run->column += printf("%s%s", run->column > 6 ? "  " : "", item);
    run->count = 0;
}

static void draw_pu(const struct survey *s, const ditto_pu *pu, struct run *run)
{
    char replicas[sizeof run->replicas];
    name_replicas(s, pu->number, replicas, sizeof replicas);
    if (strcmp(replicas, run->replicas) != 0)
        draw_run(run);
    memcpy(run->replicas, replicas, sizeof replicas);
    run->pu[run->count++] = pu->number;
}

static void draw_node_line(const struct survey *s, const ditto_pu *pu)
{
    printf("  NUMA node ");
    if (pu->numa_node == DITTO_NO_NODE)
        printf("none shown\n");
    for (uint32_t i = 0; i < s->counts.machine_nodes; i++) {
        ditto_node node;
        check(ditto_topology_node(s->topology, i, &node));
        if (node.number != pu->numa_node)
            continue;
        printf("%u", node.number);
        if (node.memory_bytes > 0 || node.kind == DITTO_NODE_MEMORYLESS) {
            printf(", ");
            print_bytes(node.memory_bytes);
        }
        if (pu->memory_node != pu->numa_node && pu->memory_node != DITTO_NO_NODE)
            printf(", memory from node %u", pu->memory_node);
        printf("\n");
    }
}

static void draw_machine(const struct survey *s)
{
    static struct run run;
    ditto_pu before = { 0 };
    for (uint32_t i = 0; i < s->counts.pus; i++) {
        ditto_pu pu;
        check(ditto_topology_pu(s->topology, i, &pu));
        bool package = i == 0 || pu.mesh[0] != before.mesh[0], node = package || pu.mesh[1] != before.mesh[1];
        bool cache = node || pu.llc != before.llc;
        if (i > 0 && cache) {
            draw_run(&run);
            printf("\n");
        }
        if (package)
            printf("package %u\n", pu.package);
        if (node)
            draw_node_line(s, &pu);
        if (cache) {
            printf("    LLC %u\n      ", pu.llc);
            run.column = 6;
        }
        draw_pu(s, &pu, &run);
        before = pu;
    }
    draw_run(&run);
    printf("\n");
}

static void print_machine(const struct survey *s)
{
    const ditto_topology_counts *c = &s->counts;
    printf("ditto %s\n", ditto_version());
    print_count("machine: ", c->packages, "package");
    print_count(", ", c->numa_nodes, "NUMA node");
    print_count(", ", c->llcs, "LLC");
    print_count(", ", c->cores, "core");
    print_count(", ", c->pus, "PU");
    printf("; mesh %u x %u x %u x %u%s\n", c->mesh[0], c->mesh[1], c->mesh[2], c->mesh[3],
           c->regular ? "" : ", irregular");
    draw_machine(s);
}

static void print_nodes(const struct survey *s)
{
    printf("nodes:\n  node  kind         memory      may use  PUs\n");
    for (uint32_t i = 0; i < s->counts.machine_nodes; i++) {
        ditto_node node;
        check(ditto_topology_node(s->topology, i, &node));
        printf("  %4u  %-11s  ", node.number, node_kind_name(node.kind));
        if (node.memory_bytes > 0 || node.kind == DITTO_NODE_MEMORYLESS)
            printf("%6.1f GiB", (double)node.memory_bytes / (1 << 30));
        else
            printf("   unknown");
        printf("  %-7s  %3u\n", node.allowed ? "yes" : "no", node.num_pus);
    }
}

/* -- limits and warnings -- */

static void print_limits(const struct survey *s)
{
    const ditto_topology_counts *c = &s->counts;
    const ditto_limits *l = &s->limits;
    printf("limits:\n  PUs: %u of %u usable, %u in the cpuset", c->pus, c->machine_pus, c->cpuset_pus);
    if (s->live)
        printf(", affinity %s", l->affinity);
    printf("\n");
    if (!s->live)
        return;
    if (c->num_parts > 1)
        printf("  part: %u/%u of the PUs (%s)\n", c->part, c->num_parts, c->part_source);
    if (c->cpu_quota > 0)
        printf("  CPU quota: %.2f CPUs\n", c->cpu_quota);
    else
        printf("  CPU quota: none\n");
    printf("  memory nodes: %s; policy %s%s%s\n", l->memory_nodes[0] != '\0' ? l->memory_nodes : "unknown",
           policy_name(l->memory_policy), l->policy_nodes[0] != '\0' ? " on " : "", l->policy_nodes);
    printf("  mbind: %s; move_pages: %s; numa_balancing: ",
           l->mbind_errno == 0 ? "works" : strerror(l->mbind_errno),
           l->move_pages_errno == 0 ? "works" : strerror(l->move_pages_errno));
    if (l->numa_balancing < 0)
        printf("unknown");
    else
        printf("%d", l->numa_balancing);
    printf("; huge pages: %s\n", huge_pages_name(l->huge_pages));
}

static void print_environment(void)
{
    printf("environment:\n");
    for (uint32_t i = 0; i < DTI_NUM_VARIABLES; i++) {
        const struct dti_variable *v = &dti_variables[i];
        const char *value = getenv(v->name);
        printf("  %s%s%s: %s (default: %s)\n", v->name, value != NULL ? "=" : "", value != NULL ? value : "",
               v->sets, v->usual);
    }
}

static void print_warnings(const struct survey *s)
{
    if (s->warnings > 0)
        printf("warnings:\n");
    for (uint32_t i = 0; i < s->warnings; i++)
        printf("  %s\n      -> %s\n", s->warning[i].what, s->warning[i].remedy);
}

/* -- replicas -- */

static void print_planned(const struct survey *s)
{
    printf("placement:\nreplica  package  node  memory of   LLC  core  leader's PU  devices\n");
    for (uint32_t r = 0; r < ditto_placement_num_replicas(s->placement); r++) {
        ditto_placed_device p;
        check(ditto_placement_get(s->placement, r, 0, &p));
        printf("%7u  %7u  %4d  %9d  %4u  %4u  %11u  %7u%s\n", r, p.pu.package, (int)p.pu.numa_node,
               (int)p.pu.memory_node, p.pu.llc, p.pu.core, p.pu.number,
               ditto_placement_num_devices(s->placement, r), p.num_sharers > 1 ? "  shared PU" : "");
    }
}

static void print_read_back(const struct survey *s)
{
    size_t length;
    check(ditto_strategy_describe(s->strategy, NULL, 0, &length));
    char *table = malloc(length + 256); /* the text may become longer meanwhile */
    if (table == NULL)
        return;
    check(ditto_strategy_describe(s->strategy, table, length + 256, NULL));
    printf("a strategy, as read back:\n%s", table);
    free(table);
}

static void print_measured(const struct survey *s)
{
    struct measured m[MOST_PAIRS];
    uint32_t pairs = measure(s, m);
    printf("measured from PU %u:\n", pairs > 0 ? m[0].from : 0);
    printf("  to                PU   hand-over of a line   reading its node's memory\n");
    for (uint32_t i = 0; i < pairs; i++) {
        printf("  %-14s  %4u   ", m[i].name, m[i].to);
        if (m[i].hand_over_ns > 0)
            printf("%13.0f ns   ", m[i].hand_over_ns);
        else
            printf("%16s   ", "-");
        printf("%16.1f GB/s\n", m[i].gigabytes_per_second);
    }
}

void print_text(const struct survey *s)
{
    print_machine(s);
    print_nodes(s);
    print_limits(s);
    print_environment();
    print_warnings(s);
    if (s->live)
        print_read_back(s);
    else
        print_planned(s);
    if (s->request->measure)
        print_measured(s);
}
