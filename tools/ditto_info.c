/* tools/ditto_info.c - the program ditto-info: what ditto sees of this machine, what limits it, and where replicas would go.
 *
 *     ditto-info [--json] [--replicas N] [--compact] [--topology FILE.xml | --synthetic "pack:2 [numa] core:4 pu:2"]
 * A made-up or recorded machine shows the placement alone; on this machine a strategy is made, and what is shown was read
 * back. */
#include <ditto.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    bool json;
    ditto_topology_options topology;
    ditto_placement_options placement;
};

static void usage(void)
{
    fprintf(stderr, "usage: ditto-info [--json] [--replicas N] [--compact] [--topology FILE.xml | --synthetic TEXT]\n");
    exit(2);
}

static void check(ditto_status status)
{
    if (status == DITTO_OK)
        return;
    fprintf(stderr, "ditto-info: %s: %s\n", ditto_status_name(status), ditto_last_error()->message);
    exit(1);
}

static struct request parse(int count, char **word)
{
    struct request r = { .topology = DITTO_TOPOLOGY_OPTIONS_INIT, .placement = DITTO_PLACEMENT_OPTIONS_INIT };
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? word[i + 1] : NULL;
        if (strcmp(word[i], "--json") == 0)
            r.json = true;
        else if (strcmp(word[i], "--compact") == 0)
            r.placement.policy = DITTO_COMPACT;
        else if (value == NULL)
            usage();
        else if (strcmp(word[i], "--topology") == 0)
            r.topology.xml_path = word[++i];
        else if (strcmp(word[i], "--synthetic") == 0)
            r.topology.synthetic = word[++i];
        else if (strcmp(word[i], "--replicas") == 0) {
            char *end;
            unsigned long number = strtoul(word[++i], &end, 10);
            if (*end != '\0' || number < 1 || number > DITTO_MAX_REPLICAS)
                usage();
            r.placement.replicas = (uint32_t)number;
        } else
            usage();
    }
    return r;
}

static const char *binding_name(ditto_binding binding)
{
    static const char *const names[] = { "unknown", "bound", "preferred", "first-touch" };
    return names[binding];
}

/* Limits that a user may not expect, each with its remedy. */
static void print_limits(const ditto_topology_counts *c, const ditto_placement *placement, bool json)
{
    uint32_t replicas = ditto_placement_replicas(placement), sharing = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        ditto_place place;
        check(ditto_placement_get(placement, i, 0, &place));
        sharing += place.sharers > 1;
    }
    if (json) {
        printf(
            "  \"limits\": { \"pus\": %u, \"machine_pus\": %u, \"cpu_quota\": %.3f, \"replicas_sharing_pus\": %u },\n",
            c->pus, c->machine_pus, c->cpu_quota, sharing);
        return;
    }
    printf("limits:\n  the process may use %u of %u PUs%s\n", c->pus, c->machine_pus,
           c->pus < c->machine_pus ? ": its affinity (taskset) or cpuset leaves out the others" : "");
    if (c->cpu_quota > 0)
        printf("  its control groups grant %.2f CPUs of time (cpu.max or cfs quota)%s\n", c->cpu_quota,
               c->cpu_quota < replicas ? ": fewer than replicas, so waiting threads yield; raise the quota or use fewer"
                                       : "");
    else
        printf("  no CPU quota\n");
    if (sharing > 0)
        printf("  %u replicas share PUs: waiting threads yield; use at most %u replicas for one each\n", sharing,
               c->pus);
}

static void print_machine(const ditto_topology_counts *c, bool json)
{
    if (json)
        printf("{\n  \"schema\": 1,\n  \"ditto\": \"%s\",\n  \"machine\": { \"packages\": %u, \"numa_nodes\": %u, "
               "\"cores\": %u, "
               "\"pus\": %u },\n",
               ditto_version(), c->packages, c->numa_nodes, c->cores, c->pus);
    else
        printf("ditto %s\nmachine: %u package%s, %u NUMA node%s, %u core%s, %u PU%s\n", ditto_version(), c->packages,
               c->packages == 1 ? "" : "s", c->numa_nodes, c->numa_nodes == 1 ? "" : "s", c->cores,
               c->cores == 1 ? "" : "s", c->pus, c->pus == 1 ? "" : "s");
}

/* A machine that is not here: where replicas would go. */
static void print_placement(const ditto_placement *placement, bool json)
{
    uint32_t replicas = ditto_placement_replicas(placement);
    printf(json ? "  \"replicas\": [\n" : "placement:\nreplica  package  node  core    PU  sharers\n");
    for (uint32_t i = 0; i < replicas; i++) {
        ditto_place p;
        check(ditto_placement_get(placement, i, 0, &p));
        if (json)
            printf("    { \"replica\": %u, \"package\": %u, \"numa_node\": %u, \"core\": %u, \"pu\": %u, \"sharers\": "
                   "%u }%s\n",
                   i, p.pu.package, p.pu.numa_node, p.pu.core, p.pu.number, p.sharers, i + 1 < replicas ? "," : "");
        else
            printf("%7u  %7u  %4u  %4u  %4u  %7u\n", i, p.pu.package, p.pu.numa_node, p.pu.core, p.pu.number, p.sharers);
    }
    printf(json ? "  ]\n}\n" : "");
}

/* This machine: a strategy is made, and told of as it was read back. */
static void print_strategy(const struct request *r)
{
    static char table[1 << 18];
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.replicas = r->placement.replicas;
    options.policy = r->placement.policy;
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    uint32_t replicas = ditto_strategy_num_replicas(strategy);
    if (!r->json) {
        check(ditto_strategy_describe(strategy, table, sizeof table, NULL));
        printf("a strategy, as read back:\n%s", table);
    } else {
        printf("  \"replicas\": [\n");
        for (uint32_t i = 0; i < replicas; i++) {
            ditto_replica_info info;
            check(ditto_strategy_replica_info(strategy, i, &info));
            printf(
                "    { \"replica\": %u, \"package\": %u, \"numa_node\": %u, \"core\": %u, \"pu\": %u, \"sharers\": %u, "
                "\"cpu\": %d, \"memory_node\": %d, \"binding\": \"%s\", \"pages_elsewhere\": %llu }%s\n",
                i, info.place.pu.package, info.place.pu.numa_node, info.place.pu.core, info.place.pu.number, info.place.sharers,
                info.cpu, info.memory_node, binding_name(info.binding), (unsigned long long)info.pages_elsewhere,
                i + 1 < replicas ? "," : "");
        }
        printf("  ]\n}\n");
    }
    check(ditto_strategy_destroy(strategy));
}

int main(int count, char **word)
{
    struct request r = parse(count, word);
    ditto_topology *topology;
    ditto_placement *placement;
    ditto_topology_counts counts;
    check(ditto_topology_create(&r.topology, &topology));
    check(ditto_topology_count(topology, &counts));
    if (r.placement.replicas == 0)
        r.placement.replicas = ditto_topology_default_replicas(topology);
    r.placement.flags = DITTO_PLACEMENT_SHARE;
    check(ditto_placement_build(topology, &r.placement, &placement));
    print_machine(&counts, r.json);
    print_limits(&counts, placement, r.json);
    if (r.topology.xml_path != NULL || r.topology.synthetic != NULL)
        print_placement(placement, r.json);
    else
        print_strategy(&r);
    ditto_placement_destroy(placement);
    ditto_topology_destroy(topology);
    return 0;
}
