/* tests/hosts/test_life_line.c - how the connections of the life line are made (src/hosts/star.h). */
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
    struct local_network *network;
    ditto_cluster *cluster;
    ditto_status status;
    char message[512];
};

static void *make(void *argument)
{
    struct maker *m = argument;
    ditto_cluster_options options = DITTO_CLUSTER_OPTIONS_INIT;
    ditto_wire wire;
    local_network_wire(m->network, m->host, &wire);
    options.name = "node";
    options.timeout_ms = 20000;
    options.life_line = m->life_line;
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
    (void)state;
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
    (void)state;
    for (rlim_t left = 0; left < 8; left += 3)
        assert_int_equal(in_child(make_with_few_descriptors, &left, 60), 0);
}

/* -- strangers -- */

enum { MOST_STRANGERS = 100, ROUNDS = 40 };

struct strangers {
    pthread_t thread;
    _Atomic bool ends;
    int fd[MOST_STRANGERS];
    uint32_t count;
    bool elsewhere; /* host 0 listened on another address than that of the loopback */
};

/* Connects to a port of host 0. Some strangers are silent, others say half of a hello, or that they are host
 * 1 or 2 and have a token of zeros. */
static void disturb(struct strangers *s, const struct sockaddr_in *address)
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
    struct strangers *s = argument;
    while (!atomic_load(&s->ends))
        for (int fd = 3; fd < 64 && s->count < MOST_STRANGERS; fd++) {
            struct sockaddr_in address = { .sin_family = AF_UNSPEC };
            int listens = 0;
            socklen_t bytes = sizeof listens, length = sizeof address;
            if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || !listens)
                continue;
            if (getsockname(fd, (struct sockaddr *)(void *)&address, &length) != 0)
                continue; /* it has been closed meanwhile */
            s->elsewhere |= address.sin_family != AF_INET ||
                            address.sin_addr.s_addr != htonl(INADDR_LOOPBACK);
            disturb(s, &address);
        }
    return NULL;
}

static ditto_status has_a_life_line(struct test_host *host)
{
    CHECK(host, ditto_cluster_has_life_line(host->cluster) == 1);
    return DITTO_OK;
}

static void strangers_are_not_let_in(void **state)
{
    struct strangers s = { .count = 0 };
    uint32_t met = 0;
    (void)state;
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
    print_message("%u strangers\n", met);
    assert_int_not_equal(met, 0);
    assert_false(s.elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_with_other_settings_name_the_option),
        cmocka_unit_test(a_host_without_descriptors_says_so),
        cmocka_unit_test(strangers_are_not_let_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
