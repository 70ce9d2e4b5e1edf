/* tests/hosts/test_header_steps.c - headers that go in steps: all hosts get all of them, and failures in an
 * exchange end it on all hosts. */
#include "base/errors/status.h"
#include "base/text/text.h"
#include "cluster/header.h"
#include "support/hosts.h"

#include <unistd.h>

enum { ROUNDS = 30, MOST_PAYLOAD = 300, LONG_PAYLOAD = 4096 };

static struct dti_limits limits_of(uint32_t timeout_ms)
{
    return (struct dti_limits){ .deadline = { .timeout_ms = timeout_ms } };
}

static enum dti_verdict exchange(struct test_host *host, uint64_t round, size_t payload_bytes,
                                 uint32_t timeout_ms)
{
    const struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                       .digest = round,
                                       .name = "round",
                                       .number = round,
                                       .payload_bytes = payload_bytes };
    struct dti_limits limits = limits_of(timeout_ms);
    return dti_headers_exchange(host->cluster, &intent, &limits);
}

/* Ends the epoch with an error of this thread, or with that of another host. Returns the error of all. */
static ditto_status close_epoch(struct test_host *host)
{
    ditto_error error = *dti_error_get();
    struct dti_limits limits = limits_of(20000);
    DITTO_TRY(dti_headers_close(host->cluster, &error, &limits));
    dti_error_set(&error);
    return error.status;
}

/* -- exchanges that end well -- */

static size_t payload_of(uint32_t host, uint64_t round)
{
    return (host * 37 + (size_t)round * 11) % MOST_PAYLOAD;
}

static unsigned char byte_of(uint32_t host, uint64_t round, size_t i)
{
    return (unsigned char)(host * 7 + (size_t)round * 3 + i);
}

static uint32_t steps_of(uint32_t hosts)
{
    uint32_t steps = 0;
    for (uint32_t known = 1; known < hosts; known *= 2)
        steps++;
    return steps;
}

static ditto_status exchanges(struct test_host *host)
{
    uint64_t sent = host->cluster->sent_messages;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        unsigned char *out = dti_header_out(host->cluster);
        size_t own = payload_of(host->host, round);
        for (size_t i = 0; i < own; i++)
            out[i] = byte_of(host->host, round, i);
        CHECK(host, exchange(host, round, own, 20000) == DTI_HEADERS_EQUAL);
        for (uint32_t h = 0; h < host->hosts; h++) {
            const unsigned char *in = dti_header_in(host->cluster, h);
            CHECK(host, (uintptr_t)in % 16 == 0);
            for (size_t i = 0; i < payload_of(h, round); i++)
                CHECK(host, in[i] == byte_of(h, round, i));
        }
    }
    CHECK(host, host->cluster->sent_messages - sent == (uint64_t)ROUNDS * steps_of(host->hosts));
    return DITTO_OK;
}

static void all_hosts_get_all_headers(void **state)
{
    for (uint32_t hosts = 2; hosts <= 20; hosts++)
        on_hosts(hosts, hosts % 3 == 0 ? 300 : 0, exchanges, NULL);
}

/* The payload of a block of hosts: their numbers, in order. */
struct numbers {
    uint32_t count;
    uint32_t number[64];
};

static size_t bytes_of(const struct numbers *n)
{
    return sizeof n->count + n->count * sizeof n->number[0];
}

/* A dti_header_combine_fn that keeps the order. The context counts the calls. */
static size_t join(void *context, uint32_t first, uint32_t hosts, const void *low, const void *high,
                   void *out)
{
    const struct numbers *a = low, *b = high;
    struct numbers *both = out;
    *(uint32_t *)context += a->count == hosts && b->count == hosts && a->number[0] == first;
    both->count = a->count + b->count;
    memcpy(both->number, a->number, a->count * sizeof a->number[0]);
    memcpy(both->number + a->count, b->number, b->count * sizeof b->number[0]);
    return bytes_of(both);
}

static enum dti_verdict combine_numbers(struct test_host *host, uint64_t digest, uint32_t *calls)
{
    struct numbers *own = dti_header_out(host->cluster);
    *own = (struct numbers){ 1, { host->host } };
    const struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                       .digest = digest,
                                       .name = "numbers",
                                       .payload_bytes = bytes_of(own),
                                       .combine = join,
                                       .context = calls };
    struct dti_limits limits = limits_of(20000);
    return dti_headers_exchange(host->cluster, &intent, &limits);
}

static ditto_status combines(struct test_host *host)
{
    CHECK(host, dti_headers_can_combine(host->cluster));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t calls = 0;
        CHECK(host, combine_numbers(host, round, &calls) == DTI_HEADERS_EQUAL);
        CHECK(host, calls == steps_of(host->hosts));
        for (uint32_t h = 0; h < host->hosts; h++) {
            const struct numbers *all = dti_header_in(host->cluster, h);
            CHECK(host, all->count == host->hosts && all->number[h] == h);
        }
        CHECK(host, round % 3 != 0 || exchange(host, round, 0, 20000) == DTI_HEADERS_EQUAL);
    }
    return DITTO_OK;
}

/* In a ring, every host gets each payload. */
static ditto_status combines_in_a_ring(struct test_host *host)
{
    uint32_t calls = 0;
    CHECK(host, !dti_headers_can_combine(host->cluster));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        CHECK(host, combine_numbers(host, round, &calls) == DTI_HEADERS_EQUAL);
        for (uint32_t h = 0; h < host->hosts; h++) {
            const struct numbers *one = dti_header_in(host->cluster, h);
            CHECK(host, one->count == 1 && one->number[0] == h);
        }
    }
    CHECK(host, calls == 0);
    return DITTO_OK;
}

static void hosts_combine_what_they_pass_on(void **state)
{
    on_hosts(3, 0, combines_in_a_ring, NULL);
    on_hosts(18, 0, combines_in_a_ring, NULL);
    for (uint32_t hosts = 2; hosts <= 32; hosts *= 2)
        on_hosts(hosts, hosts % 3 == 0 ? 300 : 0, combines, NULL);
}

/* Some hosts combine in another call, and one does not combine. */
static ditto_status combine_differently(struct test_host *host)
{
    for (uint32_t i = 0; i < (uint32_t)test_trials(20); i++) {
        uint32_t calls = 0, other = 1 + i % (host->hosts - 1);
        enum dti_verdict verdict;
        if (host->host == other && i % 2 == 0) {
            memset(dti_header_out(host->cluster), 1, LONG_PAYLOAD);
            verdict = exchange(host, 2, LONG_PAYLOAD, 20000);
        } else {
            verdict = combine_numbers(host, host->host >= other, &calls);
        }
        CHECK(host, verdict == DTI_HEADERS_DIFFER);
        (void)dti_headers_fail_differ(host->cluster, host->host >= other ? "another call" : "this call");
        char text[64];
        snprintf(text, sizeof text, "host %u (node%u) calls another call", other, other);
        DITTO_TRY(expect(host, close_epoch(host), DITTO_ERR_DIVERGED, text));
        CHECK(host, combine_numbers(host, 5, &calls) == DTI_HEADERS_EQUAL);
    }
    return DITTO_OK;
}

static void hosts_that_combine_find_calls_that_differ(void **state)
{
    on_hosts(4, 0, combine_differently, NULL);
    on_hosts(16, 0, combine_differently, NULL);
}

/* A host may compute after the exchange, and then moves no message. So long ones must have been sent. */
static ditto_status sends_long_messages(struct test_host *host)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        memset(dti_header_out(host->cluster), 0, LONG_PAYLOAD);
        CHECK(host, exchange(host, round, LONG_PAYLOAD, 20000) == DTI_HEADERS_EQUAL);
        CHECK(host, host->cluster->unfinished_sends == 0);
    }
    return DITTO_OK;
}

/* A dti_header_combine_fn whose last result is short. */
static size_t shrink(void *context, uint32_t first, uint32_t hosts, const void *low, const void *high,
                     void *out)
{
    const struct test_host *host = context;
    memset(out, 0, LONG_PAYLOAD);
    return 2 * hosts == host->hosts ? 16 : LONG_PAYLOAD;
}

static ditto_status combines_long_messages(struct test_host *host)
{
    const struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                       .digest = 7,
                                       .name = "round",
                                       .payload_bytes = LONG_PAYLOAD,
                                       .combine = shrink,
                                       .context = host };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct dti_limits limits = limits_of(20000);
        memset(dti_header_out(host->cluster), 0, LONG_PAYLOAD);
        CHECK(host, dti_headers_exchange(host->cluster, &intent, &limits) == DTI_HEADERS_EQUAL);
        CHECK(host, host->cluster->unfinished_sends == 0);
    }
    return DITTO_OK;
}

static void long_messages_are_sent_when_the_exchange_ends(void **state)
{
    on_hosts(8, 300, combines_long_messages, NULL);
    on_hosts(8, 300, sends_long_messages, NULL);
    on_hosts(11, 300, sends_long_messages, NULL);
    dti_most_direct_hosts = 16;
    on_hosts(3, 300, sends_long_messages, NULL);
    dti_most_direct_hosts = 1;
}

/* -- hosts that differ, fail, or are late -- */

/* Makes some exchanges that end well, which also shows that the epoch before has left nothing. */
static ditto_status goes_on(struct test_host *host)
{
    for (uint64_t round = 0; round < 3; round++)
        if (exchange(host, round, 0, 20000) != DTI_HEADERS_EQUAL)
            return DTI_FAIL(DITTO_ERR_INVALID, "an exchange does not end well: %s", dti_error_get()->message);
    return DITTO_OK;
}

static ditto_status differs(struct test_host *host)
{
    for (int i = 0; i < test_trials(20); i++) {
        uint32_t other = 1 + (uint32_t)i % (host->hosts - 1);
        CHECK(host, exchange(host, host->host == other, 0, 20000) == DTI_HEADERS_DIFFER);
        (void)dti_headers_fail_differ(host->cluster, host->host == other ? "another call" : "this call");
        char text[64];
        snprintf(text, sizeof text, "host %u (node%u) calls another call", other, other);
        DITTO_TRY(expect(host, close_epoch(host), DITTO_ERR_DIVERGED, text));
        DITTO_TRY(goes_on(host));
    }
    return DITTO_OK;
}

static void a_host_that_differs_is_named_on_all(void **state)
{
    on_hosts(5, 100, differs, NULL);
    on_hosts(8, 0, differs, NULL);
    on_hosts(17, 0, differs, NULL);
}

/* A host fails at a random time, before an exchange or in the middle of it. The others learn of it in that
 * exchange or in the next one. */
static ditto_status fails(struct test_host *host)
{
    uint64_t random = 3;
    for (int i = 0; i < test_trials(40); i++) {
        uint32_t who = (uint32_t)(test_random(&random) % host->hosts),
                 before = (uint32_t)test_random(&random) % 3;
        bool gives_up = test_random(&random) % 2 == 0;
        uint64_t round = 0;
        enum dti_verdict verdict = DTI_HEADERS_EQUAL;
        while (verdict == DTI_HEADERS_EQUAL && (host->host != who || round < before))
            verdict = exchange(host, round++, 0, 20000);
        if (host->host == who) {
            /* A limit of 0 ends the wait at once. */
            if (gives_up)
                (void)exchange(host, round, 0, 0);
            (void)DTI_FAIL(DITTO_ERR_USER, "host %u has failed", who);
        } else {
            CHECK(host, verdict == DTI_HEADERS_LAST);
            (void)dti_headers_fail_last(host->cluster);
        }
        char text[64];
        snprintf(text, sizeof text, "host %u has failed", who);
        DITTO_TRY(expect(host, close_epoch(host), DITTO_ERR_USER, text));
        DITTO_TRY(goes_on(host));
    }
    return DITTO_OK;
}

static void a_host_that_fails_ends_the_exchange_of_all(void **state)
{
    on_hosts(3, 100, fails, NULL);
    on_hosts(7, 100, fails, NULL);
    on_hosts(8, 0, fails, NULL);
    on_hosts(17, 0, fails, NULL);
}

/* Others come after 0.6 or 1.5 of this. A busy machine may delay them by another 0.4. */
enum { TIMEOUT_MS = 1500 };

/* Most hosts do not hear of the late host directly, and hosts that wait for each other are not late. One of
 * them, host 2, comes after more than half of the time. */
static ditto_status is_late(struct test_host *host)
{
    uint32_t late_host = *(const uint32_t *)host->argument, slow_host = 2;
    for (int i = 0; i < test_trials(1); i++) {
        bool missing[DTI_MAX_HOSTS];
        char text[300] = "", expected[64];
        DITTO_TRY(goes_on(host));
        if (host->host == slow_host)
            usleep(TIMEOUT_MS * 600);
        if (host->host == late_host)
            usleep(TIMEOUT_MS * 1500);
        enum dti_verdict verdict = exchange(host, 3, 0, host->host == slow_host ? 10000 : TIMEOUT_MS);
        if (host->host != late_host && host->host != slow_host && verdict == DTI_HEADERS_LATE) {
            dti_headers_list_missing(host->cluster, missing);
            for (uint32_t h = 0; h < host->hosts; h++)
                CHECK(host, missing[h] == (h == late_host));
            dti_headers_describe(host->cluster, missing, &(struct dti_text){ text, sizeof text, 0 });
            snprintf(expected, sizeof expected, "host %u (node%u) (last heard of in round #2)", late_host,
                     late_host);
            CHECK(host, strcmp(text, expected) == 0);
            (void)DTI_FAIL(DITTO_ERR_TIMED_OUT, "waited for %s", text);
        } else {
            /* The late host may find the headers of all others. */
            if (verdict == DTI_HEADERS_EQUAL)
                verdict = exchange(host, 4, 0, 20000);
            CHECK(host, verdict == DTI_HEADERS_LAST);
            (void)dti_headers_fail_last(host->cluster);
        }
        snprintf(expected, sizeof expected, "waited for host %u (node%u)", late_host, late_host);
        DITTO_TRY(expect(host, close_epoch(host), DITTO_ERR_TIMED_OUT, expected));
    }
    return goes_on(host);
}

static void only_the_late_host_is_named(void **state)
{
    static const uint32_t late[] = { 3, 5, 6 };
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
        on_hosts(i % 2 == 0 ? 8 : 11, i % 2 == 0 ? 0 : 100, is_late, (void *)(uintptr_t)&late[i]);
}

/* The exchange ends well, although the others have asked. The next one takes the questions that are left. */
static ditto_status is_slow(struct test_host *host)
{
    for (int i = 0; i < test_trials(1); i++) {
        DITTO_TRY(goes_on(host));
        if (host->host == 3)
            usleep(TIMEOUT_MS * 600);
        CHECK(host, exchange(host, 3, 0, TIMEOUT_MS) == DTI_HEADERS_EQUAL);
    }
    return goes_on(host);
}

static void a_slow_host_ends_an_exchange_well(void **state)
{
    on_hosts(8, 0, is_slow, NULL);
    on_hosts(8, 300, is_slow, NULL);
    on_hosts(11, 300, is_slow, NULL);
}

/* A host that comes when the others have given up learns of it, although it finds the headers of all. */
static ditto_status comes_late(struct test_host *host)
{
    for (int i = 0; i < test_trials(1); i++) {
        DITTO_TRY(goes_on(host));
        if (host->host == 3)
            usleep(TIMEOUT_MS * 1500);
        enum dti_verdict verdict = exchange(host, 3, 0, TIMEOUT_MS);
        if (verdict == DTI_HEADERS_EQUAL)
            verdict = dti_headers_confirm(host->cluster);
        CHECK(host, host->host != 3 || verdict == DTI_HEADERS_LAST);
        if (verdict == DTI_HEADERS_LAST)
            (void)dti_headers_fail_last(host->cluster);
        else
            (void)DTI_FAIL(DITTO_ERR_TIMED_OUT, "host 3 is late");
        DITTO_TRY(expect(host, close_epoch(host), DITTO_ERR_TIMED_OUT, "host 3 is late"));
    }
    return DITTO_OK;
}

static void a_late_host_learns_that_the_others_gave_up(void **state)
{
    on_hosts(8, 0, comes_late, NULL);
    on_hosts(11, 0, comes_late, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hosts_get_all_headers),
        cmocka_unit_test(hosts_combine_what_they_pass_on),
        cmocka_unit_test(hosts_that_combine_find_calls_that_differ),
        cmocka_unit_test(long_messages_are_sent_when_the_exchange_ends),
        cmocka_unit_test(a_host_that_differs_is_named_on_all),
        cmocka_unit_test(a_host_that_fails_ends_the_exchange_of_all),
        cmocka_unit_test(only_the_late_host_is_named),
        cmocka_unit_test(a_slow_host_ends_an_exchange_well),
        cmocka_unit_test(a_late_host_learns_that_the_others_gave_up),
    };
    dti_most_direct_hosts = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
