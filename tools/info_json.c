/* tools/info_json.c - prints a survey as JSON. The schema is docs/ditto-info.schema.json, and a test compares
 * the two. */
#include "base/text/environment.h"
#include "measure.h"
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the separator before an element: "" before the first one. */
static const char *comma(uint32_t index)
{
    return index > 0 ? "," : "";
}

/* Prints a string. Quotes and backslashes are escaped, and control characters are left out. */
static void print_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text >= ' ')
            putchar(*text);
    }
    putchar('"');
}

/* Prints the number of a node, or null if there is none. */
static void print_node_number(const char *name, uint32_t node)
{
    if (node == DITTO_NO_NODE)
        printf("\"%s\": null", name);
    else
        printf("\"%s\": %u", name, node);
}

static void print_pu(const ditto_pu *pu)
{
    printf("\"pu\": %u, \"package\": %u, ", pu->number, pu->package);
    print_node_number("numa_node", pu->numa_node);
    printf(", ");
    print_node_number("memory_node", pu->memory_node);
    printf(", \"llc\": %u, \"core\": %u, \"smt\": %u, \"kind\": %u, \"mesh\": [%u, %u, %u, %u]", pu->llc,
           pu->core, pu->smt, pu->kind, pu->mesh[0], pu->mesh[1], pu->mesh[2], pu->mesh[3]);
}

static void print_pus(const struct survey *s)
{
    printf("    \"pus\": [");
    for (uint32_t i = 0; i < s->counts.pus; i++) {
        ditto_pu pu;
        check(ditto_topology_pu(s->topology, i, &pu));
        printf("%s\n      { ", comma(i));
        print_pu(&pu);
        printf(" }");
    }
    printf("\n    ]");
}

static void print_nodes(const struct survey *s)
{
    printf("    \"nodes\": [");
    for (uint32_t i = 0; i < s->counts.machine_nodes; i++) {
        ditto_node node;
        check(ditto_topology_node(s->topology, i, &node));
        printf("%s\n      { \"numa_node\": %u, \"kind\": \"%s\", \"memory_bytes\": %llu, \"allowed\": %s, "
               "\"pus\": %u }",
               comma(i), node.number, node_kind_name(node.kind), (unsigned long long)node.memory_bytes,
               node.allowed ? "true" : "false", node.num_pus);
    }
    printf("\n    ]");
}

static void print_machine(const struct survey *s)
{
    const ditto_topology_counts *c = &s->counts;
    printf("  \"machine\": {\n    \"packages\": %u, \"numa_nodes\": %u, \"llcs\": %u, \"cores\": %u, "
           "\"usable_pus\": "
           "%u,\n",
           c->packages, c->numa_nodes, c->llcs, c->cores, c->pus);
    printf("    \"mesh\": [%u, %u, %u, %u], \"regular\": %s, \"core_kinds\": %u,\n", c->mesh[0], c->mesh[1],
           c->mesh[2], c->mesh[3], c->regular ? "true" : "false", c->core_kinds);
    print_nodes(s);
    printf(",\n");
    print_pus(s);
    printf("\n  },\n");
}

static void print_limits(const struct survey *s)
{
    const ditto_topology_counts *c = &s->counts;
    const ditto_limits *l = &s->limits;
    printf("  \"limits\": { \"machine_pus\": %u, \"cpuset_pus\": %u, \"cpu_quota\": %.3f", c->machine_pus,
           c->cpuset_pus, c->cpu_quota);
    printf(", \"num_parts\": %u, \"part\": %u", c->num_parts, c->part);
    if (s->live) {
        printf(", \"affinity\": ");
        print_string(l->affinity);
        printf(", \"memory_nodes\": ");
        print_string(l->memory_nodes);
        printf(", \"memory_policy\": \"%s\", \"policy_nodes\": ", policy_name(l->memory_policy));
        print_string(l->policy_nodes);
        printf(
            ", \"mbind_errno\": %d, \"move_pages_errno\": %d, \"numa_balancing\": %d, \"huge_pages\": \"%s\"",
            l->mbind_errno, l->move_pages_errno, l->numa_balancing, huge_pages_name(l->huge_pages));
    }
    printf(" },\n");
}

/* Prints the variables that are set. */
static void print_environment(void)
{
    uint32_t printed = 0;
    printf("  \"environment\": {");
    for (uint32_t i = 0; i < DTI_NUM_VARIABLES; i++) {
        const char *value = getenv(dti_variables[i].name);
        if (value == NULL)
            continue;
        printf("%s \"%s\": ", comma(printed++), dti_variables[i].name);
        print_string(value);
    }
    printf(" },\n");
}

static void print_warnings(const struct survey *s)
{
    printf("  \"warnings\": [");
    for (uint32_t i = 0; i < s->warnings; i++) {
        printf("%s\n    { \"what\": ", comma(i));
        print_string(s->warning[i].what);
        printf(", \"remedy\": ");
        print_string(s->warning[i].remedy);
        printf(" }");
    }
    printf("%s],\n", s->warnings > 0 ? "\n  " : "");
}

static void print_devices(const struct survey *s, uint32_t replica)
{
    printf("\"devices\": [");
    for (uint32_t d = 0; d < ditto_placement_num_devices(s->placement, replica); d++) {
        ditto_placed_device place;
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        check(ditto_placement_get(s->placement, replica, d, &place));
        printf("%s\n        { ", comma(d));
        print_pu(&place.pu);
        printf(", \"sharers\": %u", place.num_sharers);
        if (s->live && (d == 0 || s->request->helpers != DITTO_SWITCH_OFF)) {
            check(ditto_strategy_replica_info(s->strategy, replica, d, &info));
            printf(", \"thread\": %d, \"cpu\": %d", info.thread_id, info.cpu);
        }
        printf(" }");
    }
    printf("]");
}

static void print_replicas(const struct survey *s)
{
    printf("  \"replicas\": [");
    for (uint32_t r = 0; r < ditto_placement_num_replicas(s->placement); r++) {
        printf("%s\n    { \"replica\": %u, ", comma(r), r);
        print_devices(s, r);
        if (s->live) {
            ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
            check(ditto_strategy_replica_info(s->strategy, r, 0, &info));
            printf(", \"memory_node\": %d, \"binding\": \"%s\", \"arena_bytes\": %llu, \"remote_pages\": "
                   "%llu, \"foreign_threads\": %u",
                   info.memory_node, binding_name(info.binding), (unsigned long long)info.arena_bytes,
                   (unsigned long long)info.remote_pages, info.num_foreign_threads);
        }
        printf(" }");
    }
    printf("\n  ]");
}

static void print_measured(const struct survey *s)
{
    struct measured m[MOST_PAIRS];
    uint32_t pairs = measure(s, m);
    printf(",\n  \"measured\": [");
    for (uint32_t i = 0; i < pairs; i++)
        printf("%s\n    { \"to\": \"%s\", \"from_pu\": %u, \"to_pu\": %u, \"hand_over_ns\": %.1f, "
               "\"gigabytes_per_second\": %.2f }",
               comma(i), m[i].name, m[i].from, m[i].to, m[i].hand_over_ns, m[i].gigabytes_per_second);
    printf("\n  ]");
}

void print_json(const struct survey *s)
{
    printf("{\n  \"schema\": 2,\n  \"ditto\": \"%s\",\n  \"live\": %s,\n", ditto_version(),
           s->live ? "true" : "false");
    print_machine(s);
    print_limits(s);
    print_environment();
    print_warnings(s);
    print_replicas(s);
    if (s->request->measure)
        print_measured(s);
    printf("\n}\n");
}
