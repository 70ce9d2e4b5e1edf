/* tests/fuzz/fuzz_placement.c - ditto_placement_read with texts that need not be valid. If a text is
 * accepted, the placement is written, read and written again, and both written texts must be equal. */
#include "fuzz/fuzz.h"
#include "support/support.h"

const char *const fuzz_seeds[] = {
    "ditto-placement 1\nreplica 0: 0-3\nreplica 1: 4-7\nend\n",
    "ditto-placement 1\ncheck 48a84e7ef7bd8221\nreplica 0: 0-3\nreplica 1: 8-11\nend\n",
    "ditto-placement 1\ncheck 0123456789abcdef\nreplica 0: 0\nend\n",
    "ditto-placement 1\r\nreplica 0: 8,0,2-5\r\nreplica 1: 0\r\nend\r\n",
    "ditto-placement 1\nreplica 0: 0-31\nreplica 1: 0-31\nreplica 2: 0-31\nend\n\n",
    NULL,
};
const char *const fuzz_words[] = {
    "replica ",
    "end\n",
    "check ",
    "0-8191",
    ",",
    "-",
    "\n",
    "\r\n",
    "99999999999999999999",
    "ditto-placement 1\n",
    "31",
    NULL,
};
unsigned long fuzz_accepted;

static ditto_topology *machine(void)
{
    static ditto_topology *topology;
    ditto_topology_options options = { .struct_size = sizeof options,
                                       .synthetic = "pack:4 [numa] core:8 pu:1" };
    if (topology == NULL && ditto_topology_create(&options, &topology) != DITTO_OK)
        abort();
    return topology;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char first[1 << 16], second[1 << 16];
    ditto_placement *p = NULL, *q = NULL;
    if (ditto_placement_read(machine(), (const char *)data, size, &p) != DITTO_OK)
        return 0;
    fuzz_accepted++;
    size_t length;
    if (ditto_placement_write(p, first, sizeof first, &length) != DITTO_OK || length >= sizeof first ||
        ditto_placement_read(machine(), first, length, &q) != DITTO_OK ||
        ditto_placement_write(q, second, sizeof second, NULL) != DITTO_OK || strcmp(first, second) != 0)
        abort();
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_placement_destroy(q));
    return 0;
}
