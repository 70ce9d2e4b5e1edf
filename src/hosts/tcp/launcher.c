/* src/hosts/tcp/launcher.c - what launchers have written into the environment of a process. See tcp_hosts.h.
 *
 * Open MPI's mpirun (OMPI_*), MPICH's mpiexec (PMI_*, MPI_*) and Slurm's srun (SLURM_*) all tell how many
 * processes there are, and which one this is. Only Slurm tells the names of the machines. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "hosts/cluster.h"
#include "hosts/tcp/tcp_hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ditto_status dti_environment_number(const char *variable, uint32_t most, uint32_t *out)
{
    const char *text = getenv(variable);
    char *end;
    if (text == NULL)
        return DITTO_PENDING;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number > most)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s is \"%.60s\" in the environment, which is not a number from 0 to %u", variable,
                        text, most);
    *out = (uint32_t)number;
    return DITTO_OK;
}

/* -- who started this process -- */

/* The variables of a launcher. The number of processes on this machine is NULL if it is read otherwise. */
static const struct launcher {
    const char *size, *rank, *local_size;
} launchers[] = {
    { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" },
    { "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS" },
    { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL },
};

ditto_status dti_launcher_read(struct dti_launched *out)
{
    *out = (struct dti_launched){ 0 };
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && out->size == 0; i++) {
        const struct launcher *l = &launchers[i];
        uint32_t local_size = 0;
        if (getenv(l->size) == NULL || getenv(l->rank) == NULL)
            continue;
        DTI_TRY(dti_environment_number(l->size, UINT32_MAX, &out->size));
        DTI_TRY(dti_environment_number(l->rank, UINT32_MAX, &out->rank));
        if (l->local_size != NULL && dti_environment_number(l->local_size, UINT32_MAX, &local_size) < 0)
            return dti_error_get()->status;
        out->one_machine = local_size == out->size;
        if (out->rank >= out->size)
            return DTI_FAIL(DITTO_ERR_INVALID, "%s is %u and %s is %u in the environment: ranks are below it",
                            l->size, out->size, l->rank, out->rank);
    }
    return DITTO_OK;
}

/* -- the hosts of one machine -- */

/* Ports below those that the system gives to outgoing connections. */
#define FIRST_PORT 20000u
#define PORTS      12000u

/* Jobs with up to so many processes on a machine have ports of their own, most likely. */
#define PORTS_OF_JOB 16u

static uint64_t add_variable(uint64_t hash, const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? dti_hash_bytes(hash, text, strlen(text)) : hash;
}

uint64_t dti_launcher_job(void)
{
    uint64_t hash = add_variable(DTI_HASH_SEED, "PMIX_NAMESPACE"); /* Open MPI, and Slurm with PMIx */
    hash = add_variable(hash, "SLURM_JOB_ID");
    hash = add_variable(hash, "SLURM_STEP_ID");
    return hash != DTI_HASH_SEED ? hash : 0;
}

/* Without a name of the job, the processes of a launcher on one machine have the same parent process. */
static uint32_t computed_port(void)
{
    uint64_t job = dti_launcher_job();
    long parent = (long)getppid();
    if (job == 0)
        job = dti_hash_bytes(DTI_HASH_SEED, &parent, sizeof parent);
    return FIRST_PORT + (uint32_t)(job % (PORTS / PORTS_OF_JOB)) * PORTS_OF_JOB;
}

static ditto_status hosts_here(const struct dti_launched *launched, uint32_t port, struct dti_tcp_hosts *out)
{
    if (port == 0)
        port = computed_port();
    for (uint32_t h = 0; h < launched->size; h++)
        DTI_TRY(dti_tcp_add_host(out, "127.0.0.1", strlen("127.0.0.1"), port + h));
    return DITTO_OK;
}

/* -- the hosts of Slurm -- */

/* Where the reader of a list of nodes is. */
struct reader {
    const char *nodes; /* "node[1-3,07],other" */
    const char *tasks; /* "2(x3),1", or "" */
    uint32_t tasks_of_node;
    uint32_t repeats; /* how many more nodes have so many tasks */
    uint32_t port;
    struct dti_tcp_hosts *out;
};

static ditto_status fail_nodes(const char *text)
{
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%.80s\" in the list of nodes or tasks that Slurm gives cannot be read: set "
                    "DITTO_HOSTS=NAME:PORT,NAME:PORT",
                    text);
}

/* Reads a number of at most 9 digits. Moves *at behind it. */
static bool read_number(const char **at, uint32_t *number)
{
    const char *first = *at;
    *number = 0;
    while (**at >= '0' && **at <= '9' && *at - first < 9)
        *number = 10 * *number + (uint32_t)(*(*at)++ - '0');
    return *at != first && !(**at >= '0' && **at <= '9');
}

/* Returns how many tasks the next node has: "2(x3)" stands for three nodes with two each. */
static ditto_status next_tasks(struct reader *r)
{
    if (r->repeats == 0) {
        const char *at = r->tasks;
        r->repeats = 1;
        bool is_right = read_number(&at, &r->tasks_of_node) && r->tasks_of_node != 0;
        if (is_right && strncmp(at, "(x", 2) == 0) {
            at += 2;
            is_right = read_number(&at, &r->repeats) && r->repeats != 0 && *at == ')';
            at++;
        }
        if (!is_right)
            return fail_nodes(r->tasks);
        r->tasks = *at == ',' ? at + 1 : at;
    }
    r->repeats--;
    return DITTO_OK;
}

static ditto_status add_node(struct reader *r, const char *name)
{
    DTI_TRY(next_tasks(r));
    for (uint32_t k = 0; k < r->tasks_of_node; k++)
        DTI_TRY(dti_tcp_add_host(r->out, name, strlen(name), r->port + k));
    return DITTO_OK;
}

/* Adds the nodes of "[1-3,07]", whose names begin with `prefix`. *at is behind the bracket that opens. */
static ditto_status add_range(struct reader *r, const char *prefix, size_t length, const char **at)
{
    char name[DTI_TCP_NAME_BYTES];
    for (;;) {
        const char *first = *at;
        uint32_t low, high;
        bool is_right = read_number(at, &low);
        int width = (int)(*at - first);
        high = low;
        if (is_right && **at == '-') {
            ++*at;
            is_right = read_number(at, &high);
        }
        if (!is_right || high < low || high - low >= DTI_MAX_HOSTS || (**at != ',' && **at != ']'))
            return fail_nodes(r->nodes);
        for (uint32_t k = low; k <= high; k++) {
            snprintf(name, sizeof name, "%.*s%0*u", (int)length, prefix, width, k);
            DTI_TRY(add_node(r, name));
        }
        if (*(*at)++ == ']')
            return DITTO_OK;
    }
}

static ditto_status read_nodes(struct reader *r)
{
    for (const char *at = r->nodes; *at != '\0';) {
        const char *prefix = at;
        size_t length = strcspn(at, ",[");
        char name[DTI_TCP_NAME_BYTES];
        if (length == 0 || length >= sizeof name - 24)
            return fail_nodes(r->nodes);
        at += length;
        if (*at == '[') {
            at++;
            DTI_TRY(add_range(r, prefix, length, &at));
            if (*at != '\0' && *at != ',')
                return fail_nodes(r->nodes); /* names with several ranges */
        } else {
            snprintf(name, sizeof name, "%.*s", (int)length, prefix);
            DTI_TRY(add_node(r, name));
        }
        at += *at == ',';
    }
    return DITTO_OK;
}

static ditto_status hosts_of_slurm(const struct dti_launched *launched, uint32_t port,
                                   struct dti_tcp_hosts *out)
{
    const char *nodes = getenv("SLURM_STEP_NODELIST"), *tasks = getenv("SLURM_STEP_TASKS_PER_NODE"),
               *own = getenv("SLURMD_NODENAME");
    if (nodes == NULL || tasks == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the launcher has started %u processes on several machines, and does not tell which: "
                        "set DITTO_HOSTS=NAME:PORT,NAME:PORT in the environment, or use ditto/mpi.h",
                        launched->size);
    struct reader r = {
        .nodes = nodes, .tasks = tasks, .port = port != 0 ? port : computed_port(), .out = out
    };
    DTI_TRY(read_nodes(&r));
    if (out->count != launched->size)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "Slurm has started %u processes, but SLURM_STEP_NODELIST (%.80s) and "
                        "SLURM_STEP_TASKS_PER_NODE (%.80s) tell of %u: set DITTO_HOSTS",
                        launched->size, nodes, tasks, out->count);
    if (own != NULL && strcmp(own, out->host[launched->rank].name) != 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "process %u runs on %s, and not on %s as it would if srun gave the machines blocks of "
            "processes: start it with srun --distribution=block, or set DITTO_HOSTS",
            launched->rank, own, out->host[launched->rank].name);
    return DITTO_OK;
}

ditto_status dti_launcher_hosts(const struct dti_launched *launched, uint32_t base_port,
                                struct dti_tcp_hosts *out)
{
    out->own = launched->rank;
    out->job = dti_launcher_job();
    return launched->one_machine ? hosts_here(launched, base_port, out)
                                 : hosts_of_slurm(launched, base_port, out);
}
