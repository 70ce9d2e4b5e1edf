/* bench/peer.c - peers, each of which is a process or a group of processes. They read their orders from a
 * pipe, and are stopped (SIGSTOP) while other contenders are measured. A peer that dies or does not answer is
 * reported and no longer used. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_SECONDS 120 /* much longer than any batch */
#define END_SECONDS    5

struct peer {
    const char *name, *family;
    pid_t child; /* the peer, or the program that starts its processes */
    pid_t processes[WORK_MOST_REPLICAS];
    uint32_t count;
    int to, from;
    bool lost;
    uint32_t replicas;
    struct counts counts[WORK_MOST_REPLICAS]; /* of the last batch */
};

/* -- starting -- */

/* How a peer is started. */
struct launch {
    const char *name, *family, *program;

    /* The words before the program. The first ones are used if each replica can have a PU of its own and the
     * process may use all PUs. Otherwise the others are used, because the launchers of MPI bind ranks to PUs
     * that this process may not use, and an MPI program then binds its process itself. %N stands for the
     * number of replicas, and %P for "user:" and the PU of each. */
    const char *one_per_core, *otherwise;

    /* With more replicas per PU the rows would take minutes. 0 means no limit. */
    uint32_t most_per_pu;

    /* A variable of the environment and its value, for a setting that is not the default. */
    const char *variable, *value;

    /* True if the peer must not see the user's own settings of how to wait. */
    bool forgets_waiting;
};
#define OPENMPI                                                                 \
    "peer-openmpi", "mpirun.openmpi --allow-run-as-root -np %N --bind-to core", \
        "mpirun.openmpi --allow-run-as-root -np %N --bind-to none --oversubscribe", 4
/* Under a batch system, MPICH would start the ranks on all of its hosts. With -bind-to %P, the memory that
 * MPI_Init touches is on the node of the rank. */
#define MPICH                                                        \
    "peer-mpich", "mpirun.mpich -launcher fork -n %N -bind-to core", \
        "mpirun.mpich -launcher fork -n %N -bind-to %P", 4
#define SHARED_MEMORY "shm", "peer-shared-memory", "", "", 1, "SHARED_MEMORY_FORM"

static const struct launch launches[] = {
    { "libgomp", "OpenMP", "peer-libgomp", "", "", 0, NULL, NULL, false },
    { "libomp", "OpenMP", "peer-libomp", "", "", 0, NULL, NULL, false },
    { "openmpi", "MPI", OPENMPI, NULL, NULL, false },
    { "mpich", "MPI", MPICH, NULL, NULL, false },
    { "gloo", "gloo", "peer-gloo", "", "", 4, NULL, NULL, false },
    { "deepspeed", SHARED_MEMORY, "deepspeed", false },
    { "vllm", SHARED_MEMORY, "vllm", false },
    { "gloo-shm", SHARED_MEMORY, "gloo-shm", false },
};

/* Ways to wait. gloo is left out, because its own threads wait, whose CPU time is not counted. */
static const struct launch waiting_launches[] = {
    { "libgomp", "default", "peer-libgomp", "", "", 0, NULL, NULL, true },
    { "libgomp-active", "other", "peer-libgomp", "", "", 0, "OMP_WAIT_POLICY", "ACTIVE", true },
    { "libgomp-passive", "other", "peer-libgomp", "", "", 0, "OMP_WAIT_POLICY", "PASSIVE", true },
    { "libomp", "default", "peer-libomp", "", "", 0, NULL, NULL, true },
    { "libomp-active", "other", "peer-libomp", "", "", 0, "OMP_WAIT_POLICY", "ACTIVE", true },
    { "libomp-passive", "other", "peer-libomp", "", "", 0, "OMP_WAIT_POLICY", "PASSIVE", true },
    { "openmpi", "default", OPENMPI, NULL, NULL, true },
    { "openmpi-yield", "other", OPENMPI, "OMPI_MCA_mpi_yield_when_idle", "1", true },
    { "mpich", "default", MPICH, NULL, NULL, true },
};

/* Those of the rows of `functions`. */
static const struct launch function_launches[] = {
    { "tbb", "pool", "peer-tbb", "", "", 0, NULL, NULL, false },
    { "taskflow", "pool", "peer-taskflow", "", "", 0, NULL, NULL, false },
    { "openmpi", "MPI", OPENMPI, NULL, NULL, false },
    { "mpich", "MPI", MPICH, NULL, NULL, false },
};

static const struct launch generate_launches[] = {
    { "libgomp", "OpenMP", "peer-generate", "", "", 0, NULL, NULL, false },
};

static const char *const waiting_variables[] = { "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                                 "KMP_LIBRARY", "OMPI_MCA_mpi_yield_when_idle" };

static uint32_t count_pus(void)
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    return (uint32_t)CPU_COUNT(&allowed);
}

/* Writes the PUs of the replicas. */
static void list_pus(char *text, size_t size, uint32_t replicas)
{
    size_t used = (size_t)snprintf(text, size, "user");
    for (uint32_t id = 0; id < replicas; id++)
        used += (size_t)snprintf(text + used, size - used, "%c%u", id == 0 ? ':' : ',',
                                 part_pu(id, replicas));
}

/* Executes the peer in the child process. Its arguments are the number of replicas, and whether it has to
 * bind them. */
static void become(const struct launch *launch, char *program, uint32_t replicas)
{
    enum { MOST_WORDS = 32 };
    char number[16], pus[8 * WORK_MOST_REPLICAS], text[512], *word[MOST_WORDS], *rest = NULL;
    int count = 0;
    bool binds = replicas > count_pus() || count_pus() < (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(number, sizeof number, "%u", replicas);
    list_pus(pus, sizeof pus, replicas);
    snprintf(text, sizeof text, "%s", binds ? launch->otherwise : launch->one_per_core);
    for (char *w = strtok_r(text, " ", &rest); w != NULL && count < MOST_WORDS - 4;
         w = strtok_r(NULL, " ", &rest))
        word[count++] = strcmp(w, "%N") == 0 ? number : strcmp(w, "%P") == 0 ? pus : w;
    word[count++] = program;
    word[count++] = number;
    word[count++] = binds ? "bind" : "bound";
    word[count] = NULL;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; launch->forgets_waiting && i < sizeof waiting_variables / sizeof waiting_variables[0];
         i++)
        unsetenv(waiting_variables[i]);
    if (launch->variable != NULL)
        setenv(launch->variable, launch->value, 1);
    setenv("OMP_PROC_BIND", "true", 1); /* threads are bound, like those of ditto */
    if (counters_list != NULL)
        setenv(COUNTERS_VARIABLE, counters_list, 1);
    execvp(word[0], word);
    fprintf(stderr, "ditto-bench: %s: %s\n", word[0], strerror(errno));
    _exit(127);
}

static bool start(struct peer *p, const struct launch *launch, char *program, uint32_t replicas)
{
    /* Peers that are started later do not inherit the pipes. Otherwise the end of this peer would not be
     * noticed. */
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        return false;
    p->child = fork();
    if (p->child < 0)
        return false;
    if (p->child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        become(launch, program, replicas);
    }
    setpgid(p->child, p->child);
    close(down[0]);
    close(up[1]);
    p->to = down[1];
    p->from = up[0];
    return true;
}

/* -- communication -- */

/* Sends a signal to the processes of the peer. mpirun does not get it, because it sleeps while nothing
 * happens, and that of Open MPI would forward the signal some time later. */
static void send_to_all(const struct peer *p, int signal)
{
    for (uint32_t i = 0; i < p->count; i++)
        kill(p->processes[i], signal);
}

static void kill_all(const struct peer *p)
{
    send_to_all(p, SIGKILL);
    kill(-p->child, SIGKILL);
    waitpid(p->child, NULL, 0);
}

static void drop_peer(struct peer *p, const char *why)
{
    fprintf(stderr, "ditto-bench: the peer %s %s: going on without it\n", p->name, why);
    kill_all(p);
    close(p->to);
    close(p->from);
    p->lost = true;
}

/* Reads one line. Returns NULL, or the reason why there is none. */
static const char *read_line(struct peer *p, char *line, size_t size, int seconds)
{
    struct pollfd ready = { .fd = p->from, .events = POLLIN };
    double end = now_seconds() + seconds;
    for (size_t used = 0; used + 1 < size; used++) {
        int left = (int)((end - now_seconds()) * 1e3);
        if (left <= 0 || poll(&ready, 1, left) <= 0)
            return "does not answer";
        if (read(p->from, line + used, 1) != 1)
            return "has exited";
        line[used + 1] = '\0';
        if (line[used] == '\n')
            return NULL;
    }
    return "talks too much";
}

/* Reads the counts that follow the times in an answer, those of replica 0 first. What is missing in the
 * answer is not counted. */
static void read_counts(struct peer *p, char *words)
{
    for (uint32_t r = 0; r < p->replicas; r++)
        for (uint32_t e = 0; e < counters_events; e++) {
            char *end = words;
            struct count count = { strtod(words, &end), 1, 0 };
            bool found = end != words;
            count.enabled_ns = found ? strtod(end, &end) : 1;
            count.running_ns = found ? strtod(end, &words) : 0;
            p->counts[r].of[e] = count;
        }
}

/* An answer has room for 64 characters of each count. */
static char line[WORK_MOST_REPLICAS * MOST_EVENTS * 64 + 256];

__attribute__((format(printf, 2, 3))) static struct timing ask(struct peer *p, const char *format, ...)
{
    struct timing timing = TIMING_NONE;
    int used = 0;
    va_list words;
    if (p->lost)
        return timing;
    send_to_all(p, SIGCONT);
    va_start(words, format);
    int length = vsnprintf(line, sizeof line, format, words);
    va_end(words);
    const char *reason = write(p->to, line, (size_t)length) == length ? NULL : "has exited";
    if (reason == NULL)
        reason = read_line(p, line, sizeof line, ANSWER_SECONDS);
    if (reason == NULL && sscanf(line, "%lf %lf %lf%n", &timing.seconds, &timing.cpu_seconds,
                                 &timing.operation_seconds, &used) != 3)
        reason = "sent a line that is not in the protocol";
    if (reason != NULL) {
        drop_peer(p, reason);
        return TIMING_NONE;
    }
    send_to_all(p, SIGSTOP);
    read_counts(p, line + used);
    return timing;
}

static bool read_greeting(struct peer *p)
{
    const char *reason = read_line(p, line, sizeof line, ANSWER_SECONDS);
    if (reason == NULL && strncmp(line, "hello ", 6) != 0)
        reason = "sent a line that is not in the protocol";
    if (reason != NULL) {
        drop_peer(p, reason);
        return false;
    }
    for (char *at = line + 6; *at != '\n' && p->count < WORK_MOST_REPLICAS;)
        p->processes[p->count++] = (pid_t)strtol(at, &at, 10);
    send_to_all(p, SIGSTOP);
    return true;
}

/* -- a contender -- */

static struct timing batch(void *state, const struct work *work, bool baseline)
{
    return ask(state, "batch %d %lu %u %d\n", (int)work->kind, (unsigned long)work->reps, work->skew_ns,
               baseline);
}

static bool prepare(void *state, const struct work *work)
{
    const struct peer *p = state;
    if (work->groups > 0 && (strcmp(p->family, "MPI") != 0 || work->alone))
        return false;
    return ask(state, "prepare %d %lu %d %d %d %d %u\n", (int)work->kind, (unsigned long)work->bytes,
               (int)work->dtype, (int)work->op, work->in_place, work->turns, work->groups)
               .seconds > 0;
}

static void finish(void *state, const struct work *work)
{
    (void)work;
    ask(state, "finish\n");
}

static const struct counts *counts(void *state, uint32_t replica)
{
    return &((const struct peer *)state)->counts[replica];
}

static void end(void *state)
{
    struct peer *p = state;
    if (!p->lost) {
        send_to_all(p, SIGCONT);
        close(p->to); /* The peer ends at the end of its input. */
        while (read_line(p, line, sizeof line, END_SECONDS) == NULL)
            ;
        kill_all(p);
        close(p->from);
    }
    free(p);
}

/* Returns NULL if the peer cannot be started. */
static struct peer *open_peer(const struct launch *launch, const char *folder, uint32_t replicas)
{
    char program[4096];
    struct peer *p = calloc(1, sizeof *p);
    snprintf(program, sizeof program, "%s/%s", folder, launch->program);
    if (p == NULL || access(program, X_OK) != 0 || !start(p, launch, program, replicas)) {
        free(p);
        return NULL;
    }
    p->name = launch->name;
    p->family = launch->family;
    p->replicas = replicas;
    if (read_greeting(p))
        return p;
    free(p);
    return NULL;
}

static uint32_t open_list(struct contender *out, const struct launch *launch, size_t launches_count,
                          const char *folder, uint32_t replicas)
{
    uint32_t count = 0;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < launches_count; i++) {
        if (launch[i].most_per_pu != 0 && replicas > launch[i].most_per_pu * count_pus())
            continue;
        struct peer *p = open_peer(&launch[i], folder, replicas);
        if (p != NULL)
            out[count++] = (struct contender){ .name = p->name,
                                               .family = launch[i].family,
                                               .state = p,
                                               .prepare = prepare,
                                               .batch = batch,
                                               .finish = finish,
                                               .counts = counts,
                                               .close = end };
    }
    return count;
}

static const char *folder_of_peers;
static bool all_peers;

void function_peers_in(const char *folder, bool all)
{
    folder_of_peers = folder;
    all_peers = all;
}

uint32_t function_peers_open(struct contender *out, enum bench_kind kind, uint32_t workers)
{
    if (kind == BENCH_GENERATE)
        return open_list(out, generate_launches, 1, folder_of_peers, workers);
    size_t count = all_peers ? sizeof function_launches / sizeof function_launches[0] : 0;
    return open_list(out, function_launches, count, folder_of_peers, workers);
}

double function_peer_seconds(const struct contender *peer, int row, uint64_t operations)
{
    return ask(peer->state, "functions %d %lu\n", row, (unsigned long)operations).seconds;
}

uint32_t peers_open(struct contender *out, const char *folder, bool all, uint32_t replicas)
{
    return open_list(out, launches, all ? sizeof launches / sizeof launches[0] : 1, folder, replicas);
}

uint32_t waiting_peers_open(struct contender *out, const char *folder, bool all, uint32_t replicas)
{
    size_t count = sizeof waiting_launches / sizeof waiting_launches[0];
    return open_list(out, waiting_launches, all ? count : 3, folder, replicas);
}
