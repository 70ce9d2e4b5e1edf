/* tests/hosts/test_tcp.c - clusters over TCP: lists of hosts, launchers, messages, and hosts that do not come
 * or are lost. Each host is a thread with a cluster of its own, or a process if it is to be lost. */
#include "hosts/cluster.h"
#include "hosts/tcp/tcp_hosts.h"
#include "support/free_ports.h"
#include "support/support.h"

#include <ditto.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_HOSTS = 8, TIMEOUT_MS = 20000 };

/* -- lists -- */

static ditto_status read_list(const char *list, struct dti_tcp_hosts *hosts)
{
    *hosts = (struct dti_tcp_hosts){ 0 };
    return dti_tcp_read_list(list, hosts);
}

static void lists_of_hosts(void **state)
{
    (void)state;
    struct dti_tcp_hosts hosts;
    assert_ok(read_list("node1:7000", &hosts));
    assert_int_equal(hosts.count, 1);
    dti_tcp_hosts_free(&hosts);
    assert_ok(read_list(" node1:7000 , 10.0.0.2:7001,\n[fd00::3]:65535", &hosts));
    assert_int_equal(hosts.count, 3);
    assert_string_equal(hosts.host[0].name, "node1");
    assert_string_equal(hosts.host[1].name, "10.0.0.2");
    assert_int_equal(hosts.host[1].port, 7001);
    assert_string_equal(hosts.host[2].name, "fd00::3");
    assert_int_equal(hosts.host[2].port, 65535);
    dti_tcp_hosts_free(&hosts);
}

static void lists_that_cannot_be_read(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        ditto_status status;
        const char *text;
    } wrong[] = {
        { "", DITTO_ERR_INVALID, "is not NAME:PORT" },
        { "node1", DITTO_ERR_INVALID, "\"node1\" in the list" },
        { "node1:", DITTO_ERR_INVALID, "\"node1:\"" },
        { ":7000", DITTO_ERR_INVALID, "\":7000\"" },
        { "node1:70x0", DITTO_ERR_INVALID, "70x0" },
        { "node1:7000,", DITTO_ERR_INVALID, "\"\"" },
        { "node1:7000,,node2:7000", DITTO_ERR_INVALID, "\"\"" },
        { "[::1:7000", DITTO_ERR_INVALID, "[::1:7000" },
        { "[]:7000", DITTO_ERR_INVALID, "[]:7000" },
        { "[::1]7000", DITTO_ERR_INVALID, "[::1]7000" },
        { "::1:7000", DITTO_ERR_INVALID, "[ADDRESS]:PORT" },
        { "node1:0", DITTO_ERR_RANGE, "port 0" },
        { "node1:65536", DITTO_ERR_RANGE, "port 65536" },
        { "node1:123456", DITTO_ERR_INVALID, "123456" },
        { "a:1,b:1,a:1", DITTO_ERR_INVALID, "listed twice, as host 0 and host 2" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct dti_tcp_hosts hosts;
        assert_status(read_list(wrong[i].list, &hosts), wrong[i].status);
        assert_message(wrong[i].text);
        dti_tcp_hosts_free(&hosts);
    }
    char *many = calloc(1025, 16);
    for (int i = 0; i < 1025; i++)
        sprintf(many + strlen(many), "%sn%d:1", i > 0 ? "," : "", i);
    struct dti_tcp_hosts hosts;
    assert_status(read_list(many, &hosts), DITTO_ERR_RANGE);
    assert_message("more than 1024 hosts");
    dti_tcp_hosts_free(&hosts);
    free(many);
}

/* -- the environment -- */

static const char *const variables[] = {
    "DITTO_HOSTS",
    "DITTO_HOST",
    "DITTO_PORT",
    "DITTO_SECRET",
    "PMI_SIZE",
    "PMI_RANK",
    "MPI_LOCALNRANKS",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_ID",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_STEP_NODELIST",
    "SLURMD_NODENAME",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "SLURM_STEP_TASKS_PER_NODE",
};

/* Sets the environment to "NAME=value NAME=value", and nothing else that matters here. */
static void set_environment(const char *words)
{
    char copy[500], *rest = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static ditto_status find(const char *environment, struct dti_tcp_hosts *hosts)
{
    ditto_tcp_options options = DITTO_TCP_OPTIONS_INIT;
    set_environment(environment);
    ditto_status status = dti_tcp_find_hosts(&options, hosts);
    set_environment("");
    return status;
}

/* Checks which hosts there are: "name:port ..." and the number of this one. */
static void expect_hosts(const char *environment, const char *expected, uint32_t own)
{
    struct dti_tcp_hosts hosts;
    char found[500] = "";
    assert_ok(find(environment, &hosts));
    for (uint32_t h = 0; h < hosts.count; h++)
        sprintf(found + strlen(found), "%s%s:%u", h > 0 ? " " : "", hosts.host[h].name, hosts.host[h].port);
    assert_string_equal(found, expected);
    assert_int_equal(hosts.own, own);
    dti_tcp_hosts_free(&hosts);
}

static void hosts_of_the_environment(void **state)
{
    (void)state;
    expect_hosts("DITTO_HOSTS=a:1,b:2,c:3 DITTO_HOST=1", "a:1 b:2 c:3", 1);
    expect_hosts("DITTO_HOSTS=a:1,b:2 PMI_SIZE=2 PMI_RANK=1", "a:1 b:2", 1);
    expect_hosts("DITTO_HOSTS=203.0.113.1:1,127.0.0.1:2", "203.0.113.1:1 127.0.0.1:2", 1);
    expect_hosts("DITTO_HOSTS=unknown.invalid:9", "unknown.invalid:9", 0);
    expect_hosts("", "localhost:1", 0);
    expect_hosts("PMI_SIZE=3 PMI_RANK=2 MPI_LOCALNRANKS=3 DITTO_PORT=7000",
                 "127.0.0.1:7000 127.0.0.1:7001 127.0.0.1:7002", 2);
    expect_hosts("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 DITTO_PORT=9",
                 "127.0.0.1:9 127.0.0.1:10", 0);
    expect_hosts("SLURM_STEP_NUM_TASKS=7 SLURM_PROCID=3 SLURM_STEP_NODELIST=n[08-10],x2,y "
                 "SLURM_STEP_TASKS_PER_NODE=2(x2),1(x3) SLURMD_NODENAME=n09 DITTO_PORT=50",
                 "n08:50 n08:51 n09:50 n09:51 n10:50 x2:50 y:50", 3);
}

static void environments_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        ditto_status status;
        const char *text;
    } wrong[] = {
        { "DITTO_HOSTS=a:1,b:2 DITTO_HOST=2", DITTO_ERR_RANGE, "DITTO_HOST is 2, but the list has 2" },
        { "DITTO_HOSTS=a:1,b:2 DITTO_HOST=x", DITTO_ERR_INVALID, "DITTO_HOST is \"x\"" },
        { "DITTO_HOSTS=a:1,b:2 DITTO_HOST=-1", DITTO_ERR_INVALID, "DITTO_HOST is \"-1\"" },
        { "DITTO_HOSTS=127.0.0.1:1,127.0.0.1:2", DITTO_ERR_INVALID, "2 of the 2 listed hosts" },
        { "DITTO_HOSTS=203.0.113.1:1,203.0.113.2:2", DITTO_ERR_INVALID, "0 of the 2 listed hosts" },
        { "DITTO_HOSTS=a", DITTO_ERR_INVALID, "\"a\" in the list" },
        { "DITTO_PORT=70000", DITTO_ERR_INVALID, "DITTO_PORT" },
        { "PMI_SIZE=3 PMI_RANK=3", DITTO_ERR_INVALID, "PMI_RANK is 3" },
        { "PMI_SIZE=3 PMI_RANK=1 MPI_LOCALNRANKS=2", DITTO_ERR_INVALID, "does not tell which" },
        { "PMI_SIZE=3 PMI_RANK=1 MPI_LOCALNRANKS=3 DITTO_PORT=65534", DITTO_ERR_RANGE, "port 65536" },
        { "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1- SLURM_STEP_TASKS_PER_NODE=1(x2)",
          DITTO_ERR_INVALID, "cannot be read" },
        { "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_STEP_NODELIST=n[2-1] SLURM_STEP_TASKS_PER_NODE=1(x2)",
          DITTO_ERR_INVALID, "cannot be read" },
        { "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=1(x",
          DITTO_ERR_INVALID, "cannot be read" },
        { "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=1",
          DITTO_ERR_INVALID, "cannot be read" },
        { "SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=1(x2)",
          DITTO_ERR_INVALID, "tell of 2" },
        { "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_STEP_NODELIST=n[1-2] "
          "SLURM_STEP_TASKS_PER_NODE=2(x2) SLURMD_NODENAME=n2",
          DITTO_ERR_INVALID, "--distribution=block" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct dti_tcp_hosts hosts;
        assert_status(find(wrong[i].environment, &hosts), wrong[i].status);
        assert_message(wrong[i].text);
        dti_tcp_hosts_free(&hosts);
    }
    ditto_tcp_options options = DITTO_TCP_OPTIONS_INIT;
    ditto_cluster *cluster;
    assert_status(ditto_tcp_cluster(&options, NULL, NULL), DITTO_ERR_INVALID);
    options.port = 65536;
    assert_status(ditto_tcp_cluster(&options, NULL, &cluster), DITTO_ERR_RANGE);
    options.struct_size = 0;
    assert_status(ditto_tcp_cluster(&options, NULL, &cluster), DITTO_ERR_INVALID);
    ditto_tcp_options third = DITTO_TCP_OPTIONS_INIT;
    third.hosts = "127.0.0.1:1,127.0.0.1:2";
    third.has_host = 1;
    third.host = 2;
    assert_status(ditto_tcp_cluster(&third, NULL, &cluster), DITTO_ERR_RANGE);
    assert_message("ditto_tcp_options.host is 2");
}

static void one_host(void **state)
{
    (void)state;
    ditto_cluster *cluster;
    set_environment("");
    assert_ok(ditto_tcp_cluster(NULL, NULL, &cluster));
    assert_int_equal(ditto_cluster_num_hosts(cluster), 1);
    assert_ok(ditto_cluster_destroy(cluster));
}

/* -- hosts as threads -- */

struct host {
    pthread_t thread;
    uint32_t number, hosts, delay_ms, timeout_ms;
    const char *list, *secret;
    bool no_life_line;
    ditto_cluster *cluster;
    ditto_status status; /* of ditto_tcp_cluster, or else of the function */
    char message[1024];
    ditto_status (*function)(struct host *host);
    struct report *report;
};

static ditto_status make_cluster(struct host *host)
{
    ditto_tcp_options tcp = DITTO_TCP_OPTIONS_INIT;
    ditto_cluster_options options = DITTO_CLUSTER_OPTIONS_INIT;
    tcp.hosts = host->list;
    tcp.host = host->number;
    tcp.has_host = 1;
    tcp.secret = host->secret;
    options.timeout_ms = host->timeout_ms;
    options.life_line = host->no_life_line ? DITTO_SWITCH_OFF : DITTO_SWITCH_DEFAULT;
    return ditto_tcp_cluster(&tcp, &options, &host->cluster);
}

static void *host_main(void *argument)
{
    struct host *host = argument;
    sleep_ms((int)host->delay_ms);
    host->status = make_cluster(host);
    if (host->status == DITTO_OK && host->function != NULL)
        host->status = host->function(host);
    if (host->status != DITTO_OK)
        snprintf(host->message, sizeof host->message, "%s", ditto_last_error()->message);
    if (host->cluster != NULL && ditto_cluster_destroy(host->cluster) != DITTO_OK)
        host->status = ditto_last_error()->status;
    return NULL;
}

/* Plays `started` of `hosts` hosts, whose members are set. */
static void play(struct host *host, uint32_t started)
{
    for (uint32_t h = 0; h < started; h++)
        pthread_create(&host[h].thread, NULL, host_main, &host[h]);
    for (uint32_t h = 0; h < started; h++)
        pthread_join(host[h].thread, NULL);
}

static void prepare(struct host *host, uint32_t hosts, char *list, size_t capacity, struct report *report,
                    ditto_status (*function)(struct host *host))
{
    list_free_ports(hosts, list, capacity);
    for (uint32_t h = 0; h < hosts; h++)
        host[h] = (struct host){ .number = h,
                                 .hosts = hosts,
                                 .list = list,
                                 .timeout_ms = TIMEOUT_MS,
                                 .report = report,
                                 .function = function };
}

static void on_tcp(uint32_t hosts, ditto_status (*function)(struct host *host))
{
    struct host host[MOST_HOSTS];
    struct report report = { 0 };
    char list[MOST_HOSTS * 24];
    prepare(host, hosts, list, sizeof list, &report, function);
    play(host, hosts);
    assert_string_equal(report.first_failure, "");
    for (uint32_t h = 0; h < hosts; h++) {
        assert_string_equal(host[h].message, "");
        assert_ok(host[h].status);
    }
}

/* -- strategies -- */

enum { ELEMENTS = 1 << 20 };

static ditto_status reduce_all(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    static const size_t counts[] = { 1, 1000, ELEMENTS };
    float *x = malloc(ELEMENTS * sizeof *x);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        bool is_right = true;
        for (size_t i = 0; i < counts[c]; i++)
            x[i] = (float)(id + i % 7);
        ditto_status status = ditto_all_reduce(self, x, x, counts[c], DITTO_F32, DITTO_SUM, NULL);
        for (size_t i = 0; i < counts[c]; i++)
            is_right &= x[i] == (float)(n * (n - 1) / 2 + n * (i % 7));
        EXPECT(report, status == DITTO_OK && is_right);
    }
    free(x);
    return DITTO_OK;
}

static ditto_status run_strategy(struct host *host)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.cluster = host->cluster;
    options.num_replicas = 1 + host->number % 2;
    options.timeout_ms = TIMEOUT_MS;
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    EXPECT(host->report, ditto_cluster_has_life_line(host->cluster) == (host->hosts > 1));
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_strategy_run(strategy, reduce_all, host->report));
    return ditto_strategy_destroy(strategy);
}

static void strategies_over_tcp(void **state)
{
    (void)state;
    static const uint32_t hosts[] = { 1, 2, 3, 8 };
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        on_tcp(hosts[i], run_strategy);
}

/* -- messages -- */

/* Drives the wire of a host until so many events have come. */
static ditto_status collect(struct host *host, size_t wanted, ditto_wire_event *events)
{
    const ditto_wire *wire = &host->cluster->wire;
    size_t found = 0, count;
    for (int tries = 0; found < wanted && tries < TIMEOUT_MS; tries++) {
        DITTO_TRY(wire->progress(wire->user, events + found, wanted - found, &count));
        found += count;
        if (count == 0)
            sleep_ms(1);
    }
    EXPECT(host->report, found == wanted);
    return DITTO_OK;
}

static const ditto_wire_event *of_ticket(const ditto_wire_event *events, size_t count, uint64_t ticket)
{
    for (size_t i = 0; i < count; i++)
        if (events[i].ticket == ticket)
            return &events[i];
    return NULL;
}

/* Host 0 sends messages of three channels and many lengths, before host 1 asks for most of them. */
enum { MESSAGES = 60, LARGEST = 300000 };
static size_t length_of(size_t message)
{
    return message * message * LARGEST / (MESSAGES * MESSAGES);
}

static ditto_status send_messages(struct host *host)
{
    const ditto_wire *wire = &host->cluster->wire;
    ditto_wire_event events[MESSAGES];
    char *data[MESSAGES];
    for (size_t i = 0; i < MESSAGES; i++) {
        data[i] = length_of(i) != 0 ? malloc(length_of(i)) : NULL;
        if (data[i] != NULL)
            memset(data[i], (int)i, length_of(i));
        DITTO_TRY(wire->send(wire->user, 1, (uint32_t)(9 + i % 3), data[i], length_of(i), 100 + i));
    }
    DITTO_TRY(collect(host, MESSAGES, events));
    for (size_t i = 0; i < MESSAGES; i++) {
        EXPECT(host->report, events[i].status == DITTO_OK);
        free(data[i]);
    }
    return DITTO_OK;
}

static ditto_status receive_messages(struct host *host)
{
    const ditto_wire *wire = &host->cluster->wire;
    ditto_wire_event events[MESSAGES];
    char *data[MESSAGES];
    size_t count;
    for (size_t i = 0; i < MESSAGES; i++)
        data[i] = calloc(1, LARGEST);
    /* Receives that come before, while and after messages arrive, of the last channel first. */
    for (size_t channel = 3, posted = 0; channel-- > 0;)
        for (size_t i = channel; i < MESSAGES; i += 3, posted++) {
            DITTO_TRY(wire->receive(wire->user, 0, (uint32_t)(9 + channel), data[i], LARGEST, 200 + i));
            if (posted % 7 == 3) {
                sleep_ms(1);
                DITTO_TRY(wire->progress(wire->user, NULL, 0, &count));
            }
        }
    DITTO_TRY(collect(host, MESSAGES, events));
    for (size_t i = 0; i < MESSAGES; i++) {
        const ditto_wire_event *event = of_ticket(events, MESSAGES, 200 + i);
        bool is_right = event != NULL && event->status == DITTO_OK && event->bytes == length_of(i);
        for (size_t k = 0; k < length_of(i); k++)
            is_right &= data[i][k] == (char)i;
        EXPECT(host->report, is_right);
        free(data[i]);
    }
    return DITTO_OK;
}

static ditto_status move_messages(struct host *host)
{
    return host->number == 0 ? send_messages(host) : receive_messages(host);
}

static void messages_of_all_lengths(void **state)
{
    (void)state;
    on_tcp(2, move_messages);
}

/* Messages that are longer than their receives, whether those came first or not, and receives that are
 * withdrawn. Later messages of the channel are not disturbed. */
static ditto_status refuse_messages(struct host *host)
{
    const ditto_wire *wire = &host->cluster->wire;
    static char large[LARGEST], place[LARGEST];
    ditto_wire_event events[5];
    if (host->number == 0) {
        for (uint64_t i = 0; i < 4; i++)
            DITTO_TRY(wire->send(wire->user, 1, 5, large, i % 2 == 0 ? LARGEST : 8, i));
        DITTO_TRY(collect(host, 4, events));
        /* Host 1 answers when it has everything, so that it does not lose this host before. */
        DITTO_TRY(wire->receive(wire->user, 1, 6, place, 8, 9));
        return collect(host, 1, events);
    }
    DITTO_TRY(wire->receive(wire->user, 0, 7, place, 8, 50));
    EXPECT(host->report, wire->cancel(wire->user, 50) == DITTO_OK);
    EXPECT(host->report, wire->cancel(wire->user, 50) == DITTO_PENDING);
    DITTO_TRY(wire->receive(wire->user, 0, 5, place, 100, 10)); /* before the message, most likely */
    DITTO_TRY(wire->receive(wire->user, 0, 5, place, 100, 11));
    DITTO_TRY(collect(host, 2, events));
    sleep_ms(20);
    DITTO_TRY(wire->receive(wire->user, 0, 5, place, 100, 12)); /* after it */
    DITTO_TRY(wire->receive(wire->user, 0, 5, place, 100, 13));
    DITTO_TRY(collect(host, 2, events + 2));
    for (uint64_t i = 0; i < 4; i++) {
        const ditto_wire_event *event = of_ticket(events, 4, 10 + i);
        EXPECT(host->report, event != NULL && event->status == (i % 2 == 0 ? DITTO_ERR_RANGE : DITTO_OK));
    }
    EXPECT(host->report, wire->cancel(wire->user, 13) == DITTO_PENDING);
    DITTO_TRY(wire->send(wire->user, 0, 6, large, 8, 14));
    return collect(host, 1, events);
}

static void messages_that_are_too_long(void **state)
{
    (void)state;
    on_tcp(2, refuse_messages);
}

/* Both hosts send more than the network takes before either receives. */
enum { FLOOD = 16 << 20 };
static ditto_status flood(struct host *host)
{
    const ditto_wire *wire = &host->cluster->wire;
    uint32_t other = 1 - host->number;
    char *sent = malloc(FLOOD), *received = malloc(FLOOD);
    ditto_wire_event events[2];
    memset(sent, (int)host->number + 1, FLOOD);
    DITTO_TRY(wire->send(wire->user, other, 3, sent, FLOOD, 1));
    sleep_ms(10);
    DITTO_TRY(wire->receive(wire->user, other, 3, received, FLOOD, 2));
    DITTO_TRY(collect(host, 2, events));
    bool is_right = true;
    for (size_t i = 0; i < FLOOD; i++)
        is_right &= received[i] == (char)(other + 1);
    EXPECT(host->report, is_right && events[0].status == DITTO_OK && events[1].status == DITTO_OK);
    free(sent);
    free(received);
    return DITTO_OK;
}

static void messages_that_do_not_fit_the_network(void **state)
{
    (void)state;
    on_tcp(2, flood);
}

/* -- hosts that do not come together -- */

static void a_late_host(void **state)
{
    (void)state;
    struct host host[3];
    struct report report = { 0 };
    char list[MOST_HOSTS * 24];
    for (uint32_t late = 0; late < 3; late++) {
        prepare(host, 3, list, sizeof list, &report, run_strategy);
        host[late].delay_ms = 200;
        play(host, 3);
        assert_string_equal(report.first_failure, "");
        for (uint32_t h = 0; h < 3; h++)
            assert_ok(host[h].status);
    }
}

static void a_host_that_does_not_come(void **state)
{
    (void)state;
    struct host host[3];
    struct report report = { 0 };
    char list[MOST_HOSTS * 24];
    prepare(host, 3, list, sizeof list, &report, NULL);
    for (uint32_t h = 0; h < 3; h++)
        host[h].timeout_ms = 300;
    play(host, 2);
    for (uint32_t h = 0; h < 2; h++) {
        assert_int_equal(host[h].status, DITTO_ERR_TIMED_OUT);
        assert_non_null(strstr(host[h].message, "have not connected: 2. Start the program there"));
    }
    play(host + 1, 2);
    for (uint32_t h = 1; h < 3; h++) {
        assert_int_equal(host[h].status, DITTO_ERR_TIMED_OUT);
        assert_non_null(strstr(host[h].message, "could not connect to host 0"));
    }
}

static void hosts_that_do_not_belong_together(void **state)
{
    (void)state;
    struct host host[3];
    struct report report = { 0 };
    char list[MOST_HOSTS * 24], longer[MOST_HOSTS * 24];
    prepare(host, 2, list, sizeof list, &report, NULL);
    host[0].timeout_ms = 500;
    host[1].secret = "another word";
    play(host, 2);
    assert_int_equal(host[0].status, DITTO_ERR_TIMED_OUT);
    assert_non_null(strstr(host[0].message, "host 1 of 2 was refused: another secret"));
    assert_int_equal(host[1].status, DITTO_ERR_UNSUPPORTED);
    assert_non_null(strstr(host[1].message, "another secret"));

    prepare(host, 2, list, sizeof list, &report, NULL);
    snprintf(longer, sizeof longer, "%.150s,127.0.0.1:9", list);
    host[0].timeout_ms = 500;
    host[1].list = longer;
    play(host, 2);
    assert_int_equal(host[0].status, DITTO_ERR_TIMED_OUT);
    assert_int_equal(host[1].status, DITTO_ERR_UNSUPPORTED);
    assert_non_null(strstr(host[1].message, "another list of hosts"));

    prepare(host, 3, list, sizeof list, &report, NULL);
    for (uint32_t h = 0; h < 3; h++)
        host[h].timeout_ms = 1000;
    host[2].number = 1;
    host[2].delay_ms = 100;
    play(host, 3); /* the real host 2 never comes, and this one finds its port in use, or its place taken */
    assert_int_equal(host[0].status, DITTO_ERR_TIMED_OUT);
    assert_true(host[2].status == DITTO_ERR_UNSUPPORTED || host[2].status == DITTO_ERR_SYSTEM);
}

/* Strangers connect to host 0 as soon as it listens: one that says nothing, and others that say something
 * else than a host does, or only a part of it. The hosts find each other nevertheless. */
static void *disturb(void *list)
{
    static const char *const words[] = { "", "GET / HTTP/1.1\r\nHost: a.long.name.of.a.host.com\r\n\r\n",
                                         "ditto" };
    struct dti_tcp_hosts hosts;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd[3];
    if (read_list(list, &hosts) == DITTO_OK)
        to.sin_port = htons(hosts.host[0].port);
    dti_tcp_hosts_free(&hosts);
    for (int i = 0; i < 3; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(fd[i], (struct sockaddr *)(void *)&to, sizeof to) != 0)
            sleep_ms(1);
        (void)!send(fd[i], words[i], strlen(words[i]), MSG_NOSIGNAL);
    }
    sleep_ms(200);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    return NULL;
}

static void connections_that_are_no_hosts(void **state)
{
    (void)state;
    struct host host[2];
    struct report report = { 0 };
    char list[MOST_HOSTS * 24];
    pthread_t thread;
    prepare(host, 2, list, sizeof list, &report, run_strategy);
    host[1].delay_ms = 300;
    pthread_create(&thread, NULL, disturb, list);
    play(host, 2);
    pthread_join(thread, NULL);
    assert_string_equal(report.first_failure, "");
    assert_ok(host[0].status);
    assert_ok(host[1].status);
}

/* -- hosts that are lost -- */

static ditto_status reduce_for_ever(ditto_replica *self, void *argument)
{
    double x = 1;
    (void)argument;
    for (;;)
        DITTO_TRY(ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_MEAN, NULL));
}

/* The process of a host. Says on the pipe that it is in a run, and returns 0 if the run returns LOST. */
static int lose(struct host *host, int started)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    if (make_cluster(host) != DITTO_OK)
        return 1;
    options.cluster = host->cluster;
    options.num_replicas = 1;
    options.timeout_ms = TIMEOUT_MS;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK || write(started, "x", 1) != 1)
        return 2;
    ditto_status status = ditto_strategy_run(strategy, reduce_for_ever, NULL);
    bool is_as_expected = status == DITTO_ERR_LOST && strstr(ditto_last_error()->message, "host 1 (") != NULL;
    if (!is_as_expected)
        print_error("host %u: %s: %s\n", host->number, ditto_status_name(status),
                    ditto_last_error()->message);
    (void)!ditto_strategy_destroy(strategy);
    (void)!ditto_cluster_destroy(host->cluster);
    return is_as_expected ? 0 : 3;
}

static void a_host_that_is_killed(void **state)
{
    (void)state;
    struct host host[3];
    char list[MOST_HOSTS * 24], byte;
    int started[2], status;
    pid_t pid[3];
    prepare(host, 3, list, sizeof list, NULL, NULL);
    assert_int_equal(pipe(started), 0);
    for (uint32_t h = 0; h < 3; h++) {
        pid[h] = fork();
        if (pid[h] == 0)
            _exit(lose(&host[h], started[1]));
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(read(started[0], &byte, 1), 1);
    sleep_ms(20);
    kill(pid[1], SIGKILL);
    for (uint32_t h = 0; h < 3; h++) {
        assert_int_equal(waitpid(pid[h], &status, 0), pid[h]);
        if (h == 1)
            assert_true(WIFSIGNALED(status));
        else
            assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    }
    close(started[0]);
    close(started[1]);
}

/* Without a life line, the wire itself notices that a process has ended. One that has destroyed its cluster
 * has left, which is no loss. */
static void hosts_that_end_or_leave(void **state)
{
    (void)state;
    for (int leaves = 0; leaves <= 1; leaves++) {
        struct host host[2];
        struct report report = { 0 };
        char list[MOST_HOSTS * 24], byte;
        ditto_wire_event events[2];
        size_t count = 0;
        prepare(host, 2, list, sizeof list, &report, NULL);
        host[0].no_life_line = host[1].no_life_line = true;
        pid_t pid = fork();
        if (pid == 0)
            _exit(make_cluster(&host[1]) != DITTO_OK ||
                  (leaves && ditto_cluster_destroy(host[1].cluster) != DITTO_OK));
        assert_ok(make_cluster(&host[0]));
        const ditto_wire *wire = &host[0].cluster->wire;
        assert_ok(wire->receive(wire->user, 1, 9, &byte, 1, 1));
        if (leaves) {
            for (int i = 0; i < 20; i++, sleep_ms(1))
                assert_ok(wire->progress(wire->user, events, 2, &count));
            assert_int_equal(count, 0);
            assert_int_equal(wire->cancel(wire->user, 1), DITTO_OK);
        } else {
            /* the receive of the next header ends too */
            assert_ok(collect(&host[0], 2, events));
            assert_int_equal(events[0].status, DITTO_ERR_LOST);
            assert_int_equal(events[1].status, DITTO_ERR_LOST);
            assert_ok(wire->send(wire->user, 1, 9, &byte, 1, 2));
            assert_ok(collect(&host[0], 1, events));
            assert_int_equal(events[0].status, DITTO_ERR_LOST);
        }
        assert_string_equal(report.first_failure, "");
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        if (leaves)
            assert_ok(ditto_cluster_destroy(host[0].cluster));
        else /* its receive of a header has ended behind its back */
            (void)!ditto_cluster_destroy(host[0].cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_is_killed), /* before there are threads */
        cmocka_unit_test(hosts_that_end_or_leave),
        cmocka_unit_test(lists_of_hosts),
        cmocka_unit_test(lists_that_cannot_be_read),
        cmocka_unit_test(hosts_of_the_environment),
        cmocka_unit_test(environments_that_cannot_be),
        cmocka_unit_test(one_host),
        cmocka_unit_test(strategies_over_tcp),
        cmocka_unit_test(messages_of_all_lengths),
        cmocka_unit_test(messages_that_are_too_long),
        cmocka_unit_test(messages_that_do_not_fit_the_network),
        cmocka_unit_test(a_late_host),
        cmocka_unit_test(a_host_that_does_not_come),
        cmocka_unit_test(hosts_that_do_not_belong_together),
        cmocka_unit_test(connections_that_are_no_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
