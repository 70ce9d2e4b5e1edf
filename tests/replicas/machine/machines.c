/* tests/replicas/machine/machines.c - see machines.h. */
#include "replicas/machine/machines.h"

#include <hwloc.h>
#include <unistd.h>

const struct machine machines[MACHINES] = {
    [MACHINE_SERVER] = { "2 x 64 SMT server", "pack:2 [numa] l3:1 core:64 pu:2(indexes=2*128:128*1)" },
    [MACHINE_PACKAGES] = { "4 packages", "pack:4 [numa] core:8 pu:1" },
    [MACHINE_SUB_NUMA] = { "sub-NUMA 2 x 4", "pack:2 group:4 [numa] core:8 pu:2(indexes=2*64:64*1)" },
    [MACHINE_HBM] = { "HBM beside DRAM", "pack:2 group:4 [numa(memory=128GB)] [numa(memory=16GB)] core:14 "
                                         "pu:2(indexes=2*112:112*1)" },
    [MACHINE_HBM_RECORDED] = { "HBM, recorded", "hbm.xml" },
    [MACHINE_CPULESS] = { "CPU-less node, recorded", "cpuless.xml" },
    [MACHINE_MEMORYLESS] = { "memory-less node, recorded", "memoryless.xml" },
    [MACHINE_AMD] = { "AMD, 12 caches a package",
                      "pack:2 [numa] l3:12(size=32MiB) core:8 pu:2(indexes=2*192:192*1)" },
    [MACHINE_ONE_CORE] = { "one-core VM", "pack:1 [numa] core:1 pu:1" },
    [MACHINE_LARGEST] = { "8 x 64 SMT", "pack:8 [numa] core:64 pu:2(indexes=2*512:512*1)" },
    [MACHINE_RK3588] = { "slow and fast cores, recorded", "rk3588.xml" },
};

ditto_topology *machine_part(const char *text, const char *cpus)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    char path[256];
    if (strstr(text, ".xml") != NULL) {
        snprintf(path, sizeof path, "tests/replicas/machine/machines/%s", text);
        options.xml_path = path;
    } else {
        options.synthetic = text;
    }
    options.cpus = cpus;
    assert_ok(ditto_topology_create(&options, &topology));
    return topology;
}

ditto_topology *machine_topology(int machine)
{
    return machine_part(machines[machine].text, NULL);
}

void write_kinds(char path[SCRATCH_NAME], const char *synthetic, const char *const *kinds, bool ranked)
{
    hwloc_topology_t hw;
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    close(mkstemp(scratch_name(path, "kinds")));
    assert_int_equal(hwloc_topology_init(&hw), 0);
    if (synthetic != NULL)
        assert_int_equal(hwloc_topology_set_synthetic(hw, synthetic), 0);
    assert_int_equal(hwloc_topology_load(hw), 0);
    for (int kind = 0; kinds[kind] != NULL; kind++) {
        assert_int_equal(hwloc_bitmap_list_sscanf(pus, kinds[kind]), 0);
        assert_int_equal(hwloc_cpukinds_register(hw, pus, ranked ? kind : -1, 0, NULL, 0), 0);
    }
    assert_int_equal(hwloc_topology_export_xml(hw, path, 0), 0);
    hwloc_topology_destroy(hw);
    hwloc_bitmap_free(pus);
}

ditto_topology *machine_of_kinds(const char *synthetic, const char *const *kinds, bool ranked,
                                 const char *cpus, uint32_t fastest_kinds)
{
    ditto_topology *topology;
    char path[SCRATCH_NAME];
    write_kinds(path, synthetic, kinds, ranked);
    assert_ok(ditto_topology_create(
        &OPTIONS(topology, .xml_path = path, .cpus = cpus, .fastest_kinds = fastest_kinds), &topology));
    remove(path);
    return topology;
}

const char *placement_lines(const ditto_placement *placement)
{
    static char lines[1 << 16];
    char text[1 << 16], *out = lines;
    size_t length;
    assert_ok(ditto_placement_write(placement, text, sizeof text, &length));
    assert_true(length < sizeof text);
    lines[0] = '\0';
    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "replica ", 8) == 0)
            out += sprintf(out, "%s\n", line + 8);
    return lines;
}
