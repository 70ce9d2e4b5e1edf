/* src/replicas/machine/part.c - see part.h.
 * Source of the variables: mpirun(1) of Open MPI 4.1, "Environment Variables"; MPICH's hydra, which sets them
 * for each process (Intel MPI does the same); srun(1), "OUTPUT ENVIRONMENT VARIABLES". */
#include "replicas/machine/part.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

/* -- the environment -- */

static bool read_number(const char *name, uint32_t *out)
{
    const char *text = getenv(name);
    int64_t value;
    if (text == NULL || !dti_parse_i64(text, strlen(text), &value) || value < 0 || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* Finds the number of tasks on a node in a list such as "2(x3),1", in which three nodes have two tasks each
 * and the fourth has one. Returns false if the text is no such list, or has no such node. */
static bool tasks_of_node(const char *text, uint32_t node, uint32_t *tasks)
{
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long number = strtoul(text, &end, 10), nodes = 1;
        if (number > UINT32_MAX)
            return false;
        if (strncmp(end, "(x", 2) == 0) {
            nodes = strtoul(end + 2, &end, 10);
            if (*end++ != ')')
                return false;
        }
        if (node < nodes) {
            *tasks = (uint32_t)number;
            return true;
        }
        node -= (uint32_t)nodes;
        text = *end == ',' ? end + 1 : end;
    }
    return false;
}

static bool read_slurm(struct dti_part *part)
{
    const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
    uint32_t node;
    return tasks != NULL && read_number("SLURM_NODEID", &node) &&
           read_number("SLURM_LOCALID", &part->index) && tasks_of_node(tasks, node, &part->parts);
}

/* Reads what a launcher has set. The innermost launcher is asked first: mpirun may run inside a step of
 * Slurm. */
static void read_launcher(struct dti_part *out)
{
    static const struct {
        const char *index, *parts; /* NULL: Slurm's, which has another form */
    } launchers[] = { { "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" },
                      { "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
                      { "SLURM_LOCALID", NULL } };
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        struct dti_part part = { .source = launchers[i].index };
        bool found = launchers[i].parts != NULL ? read_number(launchers[i].index, &part.index) &&
                                                      read_number(launchers[i].parts, &part.parts)
                                                : read_slurm(&part);
        if (!found || part.index >= part.parts)
            continue;
        if (part.parts > 1)
            *out = part;
        return;
    }
}

ditto_status dti_part_read(struct dti_part *out)
{
    const char *text = getenv("DITTO_PART"), *slash = text != NULL ? strchr(text, '/') : NULL;
    int64_t index, parts;
    *out = (struct dti_part){ .parts = 1 };
    if (text == NULL || strcmp(text, "auto") == 0) {
        read_launcher(out);
        return DITTO_OK;
    }
    if (strcmp(text, "off") == 0)
        return DITTO_OK;
    if (slash == NULL || !dti_parse_i64(text, (size_t)(slash - text), &index) ||
        !dti_parse_i64(slash + 1, strlen(slash + 1), &parts) || index < 0 || index >= parts ||
        parts > UINT32_MAX)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the environment variable DITTO_PART is \"%s\": it must be auto, off, or a part and the "
            "number of parts, such as 0/2 and 1/2",
            text);
    if (parts > 1)
        *out = (struct dti_part){ (uint32_t)index, (uint32_t)parts, "DITTO_PART", .asked = true };
    return DITTO_OK;
}

/* -- the PUs -- */

bool dti_part_choose(const ditto_topology *t, const struct dti_part *part, struct dti_mask *pus)
{
    bool whole_cores = part->parts <= t->counts.cores, shared = part->parts > t->counts.pus;
    uint64_t all = whole_cores ? t->counts.cores : t->counts.pus;
    uint64_t first = all * part->index / part->parts, end = all * (part->index + 1u) / part->parts, at = 0;
    if (shared) {
        first = part->index % t->counts.pus;
        end = first + 1;
    }
    dti_mask_clear(pus);
    for (uint32_t i = 0; i < t->counts.pus; i++) {
        /* The PUs of a core are neighbours in the mesh. smt is 0 for the first of them. */
        if (i > 0 && (!whole_cores || t->pus[i].is.smt == 0))
            at++;
        bool mine = t->kinds > 1 && t->domains == 1 && !shared ? at % part->parts == part->index
                                                               : first <= at && at < end;
        if (mine)
            dti_mask_add(pus, t->pus[i].is.number);
    }
    return shared;
}
