/* tests/hosts/test_life_line.c - how the connections of the life line are made (src/cluster/star.h), and what
 * becomes of hosts that are silent or have left (src/cluster/life_line.h). */
#include "cluster/header.h"
#include "cluster/life_line.h"
#include "support/hosts.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- making clusters that may fail -- */

enum { HOSTS = 3 };

struct maker {
    pthread_t thread;
    uint32_t host;
    ditto_switch life_line;
    bool lacks_memory;
    struct local_network *network;
    ditto_cluster *cluster;
    ditto_status status;
    char message[512];
};

/* The headers are the only memory that is allocated with aligned_alloc. */
static _Thread_local bool lacks_memory;

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return lacks_memory ? NULL : __real_aligned_alloc(alignment, bytes);
}

static void *make(void *argument)
{
    struct maker *m = argument;
    ditto_wire wire;
    local_network_wire(m->network, m->host, &wire);
    ditto_cluster_options options = OPTIONS(cluster, .name = "node", .timeout_ms = 20000,
                                            .life_line = m->life_line);
    lacks_memory = m->lacks_memory;
    m->status = ditto_cluster_create(&wire, &options, &m->cluster);
    snprintf(m->message, sizeof m->message, "%s", ditto_last_error()->message);
    return NULL;
}

static void make_all(struct maker makers[HOSTS])
{
    struct local_network *network = local_network_make(HOSTS, 0, 17);
    for (uint32_t h = 0; h < HOSTS; h++) {
        makers[h].host = h;
        makers[h].network = network;
        pthread_create(&makers[h].thread, NULL, make, &makers[h]);
    }
    for (uint32_t h = 0; h < HOSTS; h++)
        pthread_join(makers[h].thread, NULL);
}

static void hosts_with_other_settings_name_the_option(void **state)
{
    struct maker makers[HOSTS] = { { .life_line = DITTO_SWITCH_ON },
                                   { .life_line = DITTO_SWITCH_ON },
                                   { .life_line = DITTO_SWITCH_OFF } };
    make_all(makers);
    for (uint32_t h = 0; h < HOSTS; h++) {
        assert_int_equal(makers[h].status, DITTO_ERR_INVALID);
        assert_non_null(strstr(makers[h].message, "the option life_line is"));
    }
    local_network_free(makers[0].network);
}

/* The hosts are threads of this process, and share what is left. Whatever it is enough for, all of them find
 * the same. */
static int make_with_few_descriptors(void *left)
{
    struct maker makers[HOSTS] = { { .host = 0 } };
    struct rlimit limit;
    int next = dup(0);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = (rlim_t)next + *(const rlim_t *)left;
    REQUIRE(next > 0 && close(next) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    make_all(makers);
    for (uint32_t h = 0; h < HOSTS; h++) {
        REQUIRE(makers[h].status == DITTO_ERR_SYSTEM);
        REQUIRE(strstr(makers[h].message, "no file descriptor left") != NULL);
    }
    local_network_free(makers[0].network);
    return 0;
}

/* Three threads, four ends of connections, and a socket that listens need eight. */
static void a_host_without_descriptors_says_so(void **state)
{
    for (rlim_t left = 0; left < 8; left += 3)
        assert_int_equal(in_child(make_with_few_descriptors, &left, 60), 0);
}

/* Without an answer, the other hosts would wait for 20 s, and name another error. */
static void a_host_without_memory_for_headers_says_so_to_all(void **state)
{
    struct maker makers[HOSTS] = { { .host = 0 }, { .lacks_memory = true } };
    make_all(makers);
    for (uint32_t h = 0; h < HOSTS; h++) {
        assert_int_equal(makers[h].status, DITTO_ERR_NO_MEMORY);
        assert_non_null(strstr(makers[h].message, "host 1 (node) has no memory for the headers"));
    }
    local_network_free(makers[0].network);
}

/* -- silence -- */

enum { SILENCE_MS = 1000 };

static ditto_status loses_host_1(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_status status = DITTO_OK;
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    if (host->host == 1)
        dti_life_line_suspend(host->cluster, 3 * SILENCE_MS);
    while (status == DITTO_OK) {
        usleep(1000);
        status = ditto_strategy_run(strategy, sum_of_ids, host->report);
    }
    DITTO_TRY(expect(host, status, DITTO_ERR_LOST,
                     host->host == 1
                         ? "host 1 (node1, replica 1) is gone: it did not answer host 0"
                         : "host 1 (node1, replica 1) is gone: its process has ended or was stopped"));
    /* Destroying it is a call over the hosts, too. */
    status = ditto_strategy_destroy(strategy);
    return status == DITTO_ERR_LOST ? DITTO_OK : status;
}

static void a_silent_host_is_lost_on_all_hosts(void **state)
{
    on_hosts_with_life_line(HOSTS, loses_host_1, NULL);
}

/* The hosts that are suspended are bits of *argument. */
static ditto_status loses_nobody(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    if ((*(uint32_t *)host->argument >> host->host & 1) != 0)
        dti_life_line_suspend(host->cluster, 3 * SILENCE_MS);
    for (int i = 0; i < 40; i++) {
        usleep(SILENCE_MS * 100);
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return ditto_strategy_destroy(strategy);
}

static void host_0_does_not_count_its_own_pause(void **state)
{
    uint32_t suspended[] = { 1, 7 };
    for (size_t i = 0; i < sizeof suspended / sizeof suspended[0]; i++)
        on_hosts_that_take_leave(HOSTS, loses_nobody, &suspended[i]);
}

/* -- leaving -- */

/* The host *argument leaves, and the others go on. Their time limit is ten minutes. */
static ditto_status leaves_alone(struct test_host *host)
{
    uint32_t leaves = *(uint32_t *)host->argument;
    ditto_strategy *strategy;
    char text[80];
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    DITTO_TRY(ditto_strategy_destroy(strategy));
    if (host->host == leaves)
        return DITTO_OK;
    snprintf(text, sizeof text, "host %u (node%u) is gone: it has destroyed its cluster", leaves, leaves);
    return expect(host, make_host_strategy(host, 1, NULL, &strategy), DITTO_ERR_LOST, text);
}

static void a_host_that_has_left_is_not_waited_for(void **state)
{
    uint32_t most_direct_hosts = dti_most_direct_hosts;
    for (uint32_t hosts = 2; hosts <= 5; hosts++)
        for (uint32_t host = 0; host < hosts; host++) {
            dti_most_direct_hosts = hosts % 2 == 0 ? most_direct_hosts : 2; /* directly, or in steps */
            on_hosts_with_life_line(hosts, leaves_alone, &host);
        }
    dti_most_direct_hosts = most_direct_hosts;
}

/* -- connections of other programs -- */

enum { MOST_CONNECTIONS = 100, ROUNDS = 40 };

struct other_program {
    pthread_t thread;
    _Atomic bool ends;
    int fd[MOST_CONNECTIONS];
    uint32_t count;
    bool other_address; /* host 0 listened on another address than that of the loopback */
};

/* Connects to a port of host 0. Some connections are silent, others send half of a hello, or a hello of host
 * 1 or 2 with a token of zeros. */
static void disturb(struct other_program *s, const struct sockaddr_in *address)
{
    const struct {
        char token[16];
        uint32_t host;
    } hello = { .host = 1 + s->count % 2 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)(const void *)address, sizeof *address) != 0) {
        close(fd);
        return;
    }
    if (s->count % 3 > 0)
        (void)send(fd, &hello, s->count % 3 == 1 ? sizeof hello : sizeof hello / 2, MSG_NOSIGNAL);
    s->fd[s->count++] = fd;
}

/* Finds the sockets of this process that listen. */
static void *look_for_ports(void *argument)
{
    struct other_program *s = argument;
    while (!atomic_load(&s->ends))
        for (int fd = 3; fd < 64 && s->count < MOST_CONNECTIONS; fd++) {
            struct sockaddr_in address = { .sin_family = AF_UNSPEC };
            int listens = 0;
            socklen_t bytes = sizeof listens, length = sizeof address;
            if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || !listens)
                continue;
            if (getsockname(fd, (struct sockaddr *)(void *)&address, &length) != 0)
                continue; /* it has been closed meanwhile */
            s->other_address |= address.sin_family != AF_INET ||
                                address.sin_addr.s_addr != htonl(INADDR_LOOPBACK);
            disturb(s, &address);
        }
    return NULL;
}

static ditto_status has_a_life_line(struct test_host *host)
{
    ditto_cluster_properties on = DITTO_CLUSTER_PROPERTIES_INIT;
    CHECK(host, ditto_cluster_info(host->cluster, &on) == DITTO_OK && on.has_life_line == 1);
    return DITTO_OK;
}

static void connections_of_other_programs_are_refused(void **state)
{
    struct other_program s = { .count = 0 };
    uint32_t met = 0;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&s.ends, false);
        pthread_create(&s.thread, NULL, look_for_ports, &s);
        on_hosts_that_take_leave(HOSTS, has_a_life_line, NULL);
        atomic_store(&s.ends, true);
        pthread_join(s.thread, NULL);
        met += s.count;
        while (s.count > 0)
            close(s.fd[--s.count]);
    }
    print_message("%u connections\n", met);
    assert_int_not_equal(met, 0);
    assert_false(s.other_address);
}

int main(void)
{
    dti_life_line_silence_ms = SILENCE_MS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_with_other_settings_name_the_option),
        cmocka_unit_test(a_host_without_descriptors_says_so),
        cmocka_unit_test(a_host_without_memory_for_headers_says_so_to_all),
        cmocka_unit_test(connections_of_other_programs_are_refused),
        cmocka_unit_test(a_silent_host_is_lost_on_all_hosts),
        cmocka_unit_test(host_0_does_not_count_its_own_pause),
        cmocka_unit_test(a_host_that_has_left_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
