/* bench/host_workers.c - workers and parameters on two hosts, which are processes of this machine over TCP.
 *
 *     build/bench/host-workers [--csv] [BYTES...]
 *
 * Host 0 calls, and host 1 has the parameter. The contenders have clusters of their own at the same time, and
 * take turns, during which the processes of the others are stopped. Values are rewritten before each call.
 * Figures are medians over the calls of all turns:
 *   plain     the parameter is on host 1
 *   server    the same, and host 1 has a PU for its server, if there is a second PU
 *   mirrored  each shard is on both hosts
 *   bound     two sockets. A push sends the same bytes, and gets a byte. A pull sends a byte, and gets the
 *             bytes */
#include <ditto.h>
#include <ditto/tcp.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 15, CALLS = 200, FUNCTIONS = 500, MOST = TURNS * CALLS };
#define TURN_NS 40000000.0

enum contender { PLAIN, SERVER, MIRRORED, BOUND, CONTENDERS };
static const char *const names[] = { "plain", "server", "mirrored", "bound" };

/* A cluster, and what is in it. Of the bound, a socket. */
static struct side {
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_variable *parameter;
    ditto_coordinator *coordinator;
    int socket;
    pid_t process; /* host 1 */
} side[CONTENDERS];

static struct {
    size_t bytes;
    float *value;
    double sample[CONTENDERS][MOST];
    int samples[CONTENDERS];
} b;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, ditto_last_error()->message);
    exit(1);
}

static void check(ditto_status status, const char *what)
{
    if (status != DITTO_OK)
        give_up(what);
}

/* -- PUs -- */

static uint32_t first_pu(void)
{
    cpu_set_t set;
    uint32_t pu = 0;
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(pu, &set))
        pu++;
    return pu;
}

static uint32_t last_pu(void)
{
    cpu_set_t set;
    uint32_t pu = CPU_SETSIZE - 1;
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(pu, &set))
        pu--;
    return pu;
}

/* -- making -- */

static ditto_status nothing(ditto_replica *self, void *user)
{
    (void)self, (void)user;
    return DITTO_OK;
}

/* The same on both hosts, whose replicas are on the first PU. */
static ditto_status make(enum contender which, uint32_t host, const char *list)
{
    struct side *s = &side[which];
    uint32_t pu = first_pu();
    ditto_tcp_options tcp = DITTO_TCP_OPTIONS_INIT;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options placement = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { b.bytes / sizeof(float) } };
    tcp.hosts = list;
    tcp.host = host;
    tcp.has_host = 1;
    placement.pus = &pu;
    placement.num_pus = 1;
    DITTO_TRY(ditto_tcp_cluster(&tcp, NULL, &s->cluster));
    options.cluster = s->cluster;
    options.placement_options = &placement;
    if (which == MIRRORED)
        options.mirrors_parameters = DITTO_SWITCH_ON;
    else if (host == 0)
        options.keeps_parameters = DITTO_SWITCH_OFF;
    if (which == SERVER && host == 1 && last_pu() != pu) {
        options.has_server_pu = 1;
        options.server_pu = last_pu();
    }
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &s->strategy));
    return ditto_variable_create(s->strategy, &spec, NULL, &s->parameter);
}

static ditto_status destroy(const struct side *s)
{
    DITTO_TRY(ditto_variable_destroy(s->parameter));
    DITTO_TRY(ditto_strategy_destroy(s->strategy));
    return ditto_cluster_destroy(s->cluster);
}

/* Host 1 of a contender, in a process of its own. */
static void serve(enum contender which, const char *list)
{
    check(make(which, 1, list), "host 1");
    check(ditto_function_register("nothing", nothing, NULL), "host 1");
    check(ditto_serve(side[which].strategy, NULL, NULL), "ditto_serve");
    check(destroy(&side[which]), "host 1");
    exit(0);
}

/* -- the bound -- */

static bool move(int fd, char *data, size_t bytes, bool sends)
{
    while (bytes != 0) {
        ssize_t moved = sends ? send(fd, data, bytes, MSG_NOSIGNAL) : recv(fd, data, bytes, 0);
        if (moved <= 0)
            return false;
        data += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

static int connect_pair(int out[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    out[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(out[0], (struct sockaddr *)&address, length) != 0 ||
        (out[1] = accept(listener, NULL, NULL)) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        setsockopt(out[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return close(listener);
}

/* Answers: 'p' is a push, which is followed by the bytes, and 'g' asks for them. */
static void answer(int fd)
{
    char what, *value = calloc(b.bytes, 1);
    while (value != NULL && move(fd, &what, 1, false))
        if (!move(fd, value, b.bytes, what == 'g') || (what == 'p' && !move(fd, &what, 1, true)))
            break;
    exit(0);
}

/* -- calls -- */

static void push(enum contender which)
{
    char word = 'p';
    if (which != BOUND)
        check(ditto_variable_assign(side[which].parameter, b.value, b.bytes), "ditto_variable_assign");
    else if (!move(side[BOUND].socket, &word, 1, true) ||
             !move(side[BOUND].socket, (char *)b.value, b.bytes, true) ||
             !move(side[BOUND].socket, &word, 1, false))
        give_up("the bound");
}

static void pull(enum contender which)
{
    char word = 'g';
    if (which != BOUND)
        check(ditto_variable_read(side[which].parameter, b.value, b.bytes), "ditto_variable_read");
    else if (!move(side[BOUND].socket, &word, 1, true) ||
             !move(side[BOUND].socket, (char *)b.value, b.bytes, false))
        give_up("the bound");
}

static void pause_5_ms(void)
{
    const struct timespec pause = { 0, 5000000 };
    nanosleep(&pause, NULL);
}

/* One call on a value that is rewritten before it, and checked after a pull. */
static double time_call(enum contender which, void (*call)(enum contender which), bool after_pause)
{
    static float round;
    float wanted = round;
    if (call == push) {
        round++;
        for (size_t i = 0; i < b.bytes / sizeof(float); i++)
            b.value[i] = round;
    } else {
        push(which); /* what it reads */
        wanted = b.value[0];
        memset(b.value, 0, b.bytes);
    }
    if (after_pause)
        pause_5_ms();
    double begin = now_ns();
    call(which);
    double time = now_ns() - begin;
    for (size_t i = 0; call == pull && i < b.bytes / sizeof(float); i++)
        if (b.value[i] != wanted)
            give_up("a pull has found other values than were pushed");
    return time;
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, c = *(const double *)y;
    return a < c ? -1 : a > c;
}

static double median(enum contender which)
{
    qsort(b.sample[which], (size_t)b.samples[which], sizeof(double), compare);
    return b.sample[which][b.samples[which] / 2];
}

static void print_row(const char *what, bool csv)
{
    printf(csv ? "%s,%zu" : "%-22s %9zu", what, b.bytes);
    for (int k = 0; k < CONTENDERS; k++)
        if (b.samples[k] != 0)
            printf(csv ? ",%.1f" : " %10.1f", median((enum contender)k) / 1000);
        else
            printf(csv ? "," : "          -");
    printf("\n");
    fflush(stdout);
}

/* Stops host 1 of all contenders but one. */
static void begin_turn(int which)
{
    for (int k = 0; k < CONTENDERS; k++)
        kill(side[k].process, k == which ? SIGCONT : SIGSTOP);
}

static void measure(const char *what, void (*call)(enum contender which), bool after_pause, bool csv)
{
    memset(b.samples, 0, sizeof b.samples);
    for (int turn = 0; turn <= TURNS; turn++) /* the first one is not counted */
        for (int k = 0; k < CONTENDERS; k++) {
            begin_turn(k);
            double begin = now_ns();
            for (int i = 0; i < CALLS && now_ns() - begin < TURN_NS; i++) {
                double time = time_call((enum contender)k, call, after_pause);
                if (turn != 0)
                    b.sample[k][b.samples[k]++] = time;
            }
        }
    print_row(what, csv);
}

/* The time of one of many empty functions, which the workers of both hosts execute. */
static void measure_functions(bool csv)
{
    memset(b.samples, 0, sizeof b.samples);
    for (int turn = 0; turn <= TURNS; turn++)
        for (int k = 0; k < BOUND; k++) {
            begin_turn(k);
            double begin = now_ns();
            for (int i = 0; i < FUNCTIONS; i++)
                check(ditto_coordinator_schedule(side[k].coordinator, "nothing", NULL, NULL, NULL),
                      "schedule");
            check(ditto_coordinator_join(side[k].coordinator), "join");
            if (turn != 0)
                b.sample[k][b.samples[k]++] = (now_ns() - begin) / FUNCTIONS;
        }
    print_row("empty function", csv);
}

/* -- all -- */

static void measure_bytes(size_t bytes, int port, bool csv)
{
    int pair[2];
    char list[BOUND][64];
    b.bytes = bytes;
    b.value = calloc(bytes, 1);
    if (b.value == NULL || connect_pair(pair) != 0)
        give_up("no memory, or no socket");
    for (int k = 0; k < CONTENDERS; k++) {
        if (k != BOUND)
            snprintf(list[k], sizeof list[k], "127.0.0.1:%d,127.0.0.1:%d", port + 2 * k, port + 2 * k + 1);
        fflush(stdout); /* which the process would write, too */
        side[k].process = fork();
        if (side[k].process < 0)
            give_up("fork");
        if (side[k].process != 0)
            continue;
        close(pair[0]);
        if (k == BOUND)
            answer(pair[1]);
        close(pair[1]);
        serve((enum contender)k, list[k]);
    }
    close(pair[1]);
    side[BOUND].socket = pair[0];
    check(ditto_function_register("nothing", nothing, NULL), "host 0");
    for (int k = 0; k < BOUND; k++) {
        check(make((enum contender)k, 0, list[k]), "host 0");
        check(ditto_coordinator_create(side[k].strategy, NULL, &side[k].coordinator), "coordinator");
    }
    measure("push", push, false, csv);
    measure("pull", pull, false, csv);
    measure("push after 5 ms", push, true, csv);
    measure_functions(csv);
    for (int k = 0; k < CONTENDERS; k++)
        kill(side[k].process, SIGCONT);
    for (int k = 0; k < BOUND; k++) {
        check(ditto_coordinator_destroy(side[k].coordinator), "coordinator");
        check(destroy(&side[k]), "host 0");
    }
    check(ditto_function_unregister("nothing"), "host 0");
    close(pair[0]);
    for (int k = 0; k < CONTENDERS; k++)
        waitpid(side[k].process, NULL, 0);
    free(b.value);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = { 1024, 65536, 1048576 };
    int port = 20000 + (int)(getpid() % 10000), first = 1;
    bool csv = argc > 1 && strcmp(argv[1], "--csv") == 0;
    first += csv;
    printf(csv ? "call,bytes" : "medians in us               bytes");
    for (int k = 0; k < CONTENDERS; k++)
        printf(csv ? ",%s" : " %10s", names[k]);
    printf("\n");
    for (int i = first; i < argc; i++, port += 2 * BOUND)
        measure_bytes(strtoull(argv[i], NULL, 10) & ~(size_t)63, port, csv);
    for (size_t i = 0; argc == first && i < sizeof usual / sizeof usual[0]; i++, port += 2 * BOUND)
        measure_bytes(usual[i], port, csv);
    return 0;
}
