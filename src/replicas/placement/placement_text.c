/* src/replicas/placement/placement_text.c - converts placements to text and back.
 *
 * The text may come from an untrusted source. tests/fuzz/fuzz_placement.c tests the reader. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "replicas/placement/placement.h"

#include <stdio.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char title[] = "ditto-placement 1";

/* The line "check" has a hash of the machine's size, and of the numbers of each PU in the text and of its
 * node, package and core. If one of these numbers is different, the hash almost certainly is too. The PUs are
 * added in the order of the text. The order of a placement's replicas would not do, because the process that
 * reads the text may order the NUMA nodes differently if it may use other PUs. */
static uint64_t check_machine(uint32_t pus, uint32_t nodes)
{
    const uint32_t machine[] = { pus, nodes };
    return dti_hash_bytes(DTI_HASH_SEED, machine, sizeof machine);
}

static uint64_t check_pu(uint64_t hash, const struct dti_pu *pu)
{
    const uint32_t words[] = { pu->is.number, pu->is.numa_node, pu->package_os, pu->core_os };
    return dti_hash_bytes(hash, words, sizeof words);
}

void dti_placement_write(const ditto_placement *p, struct dti_text *text)
{
    uint64_t check = check_machine(p->machine_pus, p->machine_nodes);
    for (uint32_t r = 0; r < p->replicas; r++)
        for (uint32_t d = 0; d < p->blocks[r].count; d++)
            check = check_pu(check, dti_placement_pu(p, r, d));
    dti_text_add(text, "%s\ncheck %016" PRIx64 "\n", title, check);
    for (uint32_t r = 0; r < p->replicas; r++) {
        struct dti_number_list list = { .text = text, .first = 1 };
        dti_text_add(text, "replica %u: ", r);
        for (uint32_t d = 0; d < p->blocks[r].count; d++)
            dti_number_list_add(&list, dti_placement_pu(p, r, d)->is.number);
        dti_number_list_end(&list);
        dti_text_add(text, "\n");
    }
    dti_text_add(text, "end\n");
}

/* -- reading -- */

struct placement_reader {
    const char *at, *end;
    uint32_t line;

    /* The PUs that were read, and the number of PUs of each replica. `capacity` is that of pus. */
    uint32_t *pus, *sizes;
    size_t listed, capacity;
    uint32_t replicas;
    bool checked; /* the text has a line "check" */
    uint64_t check;
};

static ditto_status corrupt(const struct placement_reader *r, const char *expected)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT, "line %u of the placement: expected %s", r->line, expected);
}

/* Gets the next line without its end. Returns false if there is none. */
static bool next_line(struct placement_reader *r, const char **line, size_t *length)
{
    if (r->at == r->end)
        return false;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *line = r->at;
    *length = (size_t)((stop != NULL ? stop : r->end) - r->at);
    r->at = stop != NULL ? stop + 1 : r->end;
    r->line++;
    if (*length > 0 && (*line)[*length - 1] == '\r')
        --*length;
    return true;
}

static bool starts(const char *line, size_t length, const char *word)
{
    size_t size = strlen(word);
    return length >= size && memcmp(line, word, size) == 0;
}

static bool equals(const char *line, size_t length, const char *word)
{
    return length == strlen(word) && starts(line, length, word);
}

static bool parse_hex(const char *at, const char *end, uint64_t *value)
{
    *value = 0;
    if (end - at != 16)
        return false;
    for (; at < end; at++) {
        unsigned number = (unsigned char)*at - (unsigned)'0', letter = (unsigned char)*at - (unsigned)'a';
        if (number > 9 && letter > 5)
            return false;
        *value = *value << 4 | (number <= 9 ? number : letter + 10);
    }
    return true;
}

static ditto_status add_pu(struct placement_reader *r, uint32_t pu)
{
    if (r->listed == r->capacity) {
        size_t capacity = r->capacity != 0 ? 2 * r->capacity : 256;
        uint32_t *grown = realloc(r->pus, capacity * sizeof *grown);
        if (grown == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a placement of %zu PUs or more",
                            r->listed + 1);
        r->pus = grown;
        r->capacity = capacity;
    }
    r->pus[r->listed++] = pu;
    return DITTO_OK;
}

/* Reads a line such as "replica 0: 0-3,8". The numbers of the replicas count up from 0. */
static ditto_status read_replica(struct placement_reader *r, const char *line, size_t length)
{
    char wanted[32];
    const char *at, *end = line + length;
    size_t before = r->listed;
    struct dti_text text = { wanted, sizeof wanted, 0 };
    dti_text_add(&text, "replica %u: ", r->replicas);
    if (r->replicas == DITTO_MAX_REPLICAS)
        return DTI_FAIL(DITTO_ERR_RANGE, "line %u: a strategy has at most %u replicas", r->line,
                        DITTO_MAX_REPLICAS);
    if (!starts(line, length, wanted)) {
        char expected[64];
        snprintf(expected, sizeof expected, "\"%s\" and PUs, or \"end\"", wanted);
        return corrupt(r, expected);
    }
    for (at = line + text.length;; at++) { /* at++ skips the comma */
        uint32_t first, last;
        if (!dti_number_range_parse(&at, end, &first, &last))
            return corrupt(r, "numbers of PUs, like 0-3,8");
        if (last >= DTI_MAX_PUS)
            return DTI_FAIL(DITTO_ERR_RANGE, "line %u: PU %u: this build supports numbers below %u", r->line,
                            last, DTI_MAX_PUS);
        if (r->listed - before + (last - first) >= DTI_MAX_PUS)
            return DTI_FAIL(DITTO_ERR_RANGE, "line %u: a replica of more than %u PUs", r->line, DTI_MAX_PUS);
        for (; first <= last; first++)
            DTI_TRY(add_pu(r, first));
        if (at == end)
            break;
        if (*at != ',')
            return corrupt(r, "numbers of PUs, like 0-3,8");
    }
    r->sizes[r->replicas++] = (uint32_t)(r->listed - before);
    return DITTO_OK;
}

static ditto_status read_lines(struct placement_reader *r)
{
    const char *line;
    size_t length;
    if (!next_line(r, &line, &length) || !equals(line, length, title))
        return corrupt(r, "\"ditto-placement 1\"");
    while (next_line(r, &line, &length)) {
        if (equals(line, length, "end"))
            break;
        if (r->replicas == 0 && !r->checked && starts(line, length, "check ")) {
            r->checked = parse_hex(line + 6, line + length, &r->check);
            if (!r->checked)
                return corrupt(r, "16 hexadecimal digits after \"check\"");
        } else {
            DTI_TRY(read_replica(r, line, length));
        }
    }
    if (r->at == r->end && !(r->line > 0 && equals(line, length, "end")))
        return corrupt(r, "\"end\": the text is cut");
    while (next_line(r, &line, &length))
        if (length > 0)
            return corrupt(r, "nothing after \"end\"");
    return r->replicas > 0 ? DITTO_OK : corrupt(r, "at least one replica");
}

/* Returns true if the text has no line "check", or if the line fits the topology, which has all PUs of the
 * text. */
static bool is_same_hardware(const struct placement_reader *r, const ditto_topology *t)
{
    uint64_t check = check_machine(t->counts.machine_pus, t->counts.machine_nodes);
    for (size_t i = 0; i < r->listed; i++)
        check = check_pu(check, dti_topology_find(t, r->pus[i]));
    return !r->checked || r->check == check;
}

ditto_status dti_placement_read(const ditto_topology *topology, const char *text, size_t length,
                                ditto_placement **out)
{
    struct placement_reader r = { .at = text, .end = text + length };
    ditto_placement *p = NULL;
    r.sizes = calloc(DITTO_MAX_REPLICAS, sizeof *r.sizes);
    ditto_status status = r.sizes != NULL ? read_lines(&r)
                                          : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a placement");
    if (status == DITTO_OK)
        status = dti_placement_from_sets(topology, r.pus, r.sizes, r.replicas, true, &p);
    if (status == DITTO_OK && !is_same_hardware(&r, topology)) {
        dti_placement_destroy(p);
        status = DTI_FAIL(
            DITTO_ERR_INVALID,
            "the placement was written for other hardware: its PUs have other packages, nodes or cores here. "
            "Make it again here, or delete the line \"check\" if the difference is intended");
    }
    if (status == DITTO_OK)
        *out = p;
    free(r.pus);
    free(r.sizes);
    return status;
}
