/* src/sync/hosts/exchange_on_hosts.c - replicas of several hosts give data to each other: ditto_exchange, and
 * collectives that move parts.
 *
 * Parts between two replicas of this host are copied as on one host. All other parts of this host are given
 * to each other host in one message, and taken out of one message from it. First the hosts compare, for each
 * pair of them, what one gives with what the other expects. All hosts see all comparisons, so all find the
 * same error. A message has the parts in the order of their destination, source and tag, which both hosts
 * know. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/neighbours.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/hosts/gather.h"
#include "sync/hosts/transfers.h"
#include "sync/meeting/access.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/meeting.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* A part that a replica of one host gives to a replica of another. */
struct crossing {
    uint32_t host; /* the other one */
    uint32_t dst, src, tag, dtype;
    uint64_t count;
    size_t offset;    /* in the message */
    const void *data; /* of a part that this host gives */
};

/* What this host gives to one other host, and expects from it. */
struct between {
    uint32_t host, unused;
    uint64_t given, given_bytes, given_digest;
    uint64_t expected, expected_bytes, expected_digest;
};

struct dti_hosts_exchange {
    struct dti_transfers *transfers;
    struct crossing *given, *expected; /* sorted */
    size_t num_given, num_expected, most;
    struct between *between; /* [hosts], of which num_between are used */
    uint32_t num_between;

    /* The lists of a started operation, one for each replica of this host, and all their parts. NULL until
     * there is one. */
    struct dti_exchange_list *lists;
    ditto_exchange_part *parts;
};

/* What the driver needs for one call. */
struct exchanging {
    uint32_t seq;

    /* [replicas of this host] The lists of a started operation, or NULL. Otherwise they are announced. */
    const struct dti_exchange_list *lists;
    struct dti_hosts_exchange *x;
};

void dti_hosts_exchange_free(ditto_cluster *cluster, struct dti_hosts_exchange *x)
{
    if (x == NULL)
        return;
    dti_transfers_free(cluster, x->transfers);
    free(x->given);
    free(x->expected);
    free(x->between);
    free(x->lists);
    free(x->parts);
    free(x);
}

static size_t crossing_bytes(const struct crossing *c)
{
    return c->count * ditto_dtype_bytes((ditto_dtype)c->dtype);
}

/* -- what crosses -- */

static ditto_status fail_memory(void)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the parts of ditto_exchange between hosts");
}

static ditto_status make(struct dti_hosts *hosts)
{
    if (hosts->exchange != NULL)
        return DITTO_OK;
    struct dti_hosts_exchange *x = calloc(1, sizeof *x);
    if (x == NULL)
        return fail_memory();
    hosts->exchange = x;
    x->between = calloc((size_t)dti_hosts_count(hosts) + 1, sizeof *x->between);
    x->transfers = dti_transfers_make();
    return x->between != NULL && x->transfers != NULL ? DITTO_OK : fail_memory();
}

static const struct dti_exchange_list *list_of(const struct dti_hosts_call *c, const struct exchanging *e,
                                               uint32_t index)
{
    return e->lists != NULL ? &e->lists[index] : dti_call_of(c->self->sync, index, e->seq)->more;
}

/* The driver of a started operation has access from before it until after it (started.h). */
static bool begin_access(const struct dti_hosts_call *c)
{
    return c->started != 0 || dti_access_begin(c->self);
}

static void end_access(const struct dti_hosts_call *c)
{
    if (c->started == 0)
        dti_access_end(c->self);
}

static ditto_status reserve(const struct dti_hosts_call *c, const struct exchanging *e)
{
    struct dti_hosts_exchange *x = e->x;
    size_t parts = 0;
    for (uint32_t i = 0; i < c->self->num_replicas; i++)
        parts += list_of(c, e, i)->parts;
    x->num_given = x->num_expected = 0;
    if (parts <= x->most)
        return DITTO_OK;
    free(x->given);
    free(x->expected);
    x->given = calloc(parts, sizeof *x->given);
    x->expected = calloc(parts, sizeof *x->expected);
    x->most = x->given != NULL && x->expected != NULL ? parts : 0;
    return x->most != 0 ? DITTO_OK : fail_memory();
}

static int compare(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;
    const uint32_t keys[][2] = {
        { x->host, y->host }, { x->dst, y->dst }, { x->src, y->src }, { x->tag, y->tag }
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static void collect_of(const struct dti_hosts_call *c, const struct dti_exchange_list *list, uint32_t id,
                       struct dti_hosts_exchange *x)
{
    for (size_t i = 0; i < list->parts; i++) {
        const ditto_exchange_part *p = &list->part[i];
        uint32_t host = dti_hosts_of(c->hosts, p->replica), dtype = (uint32_t)p->dtype;
        if (host == dti_hosts_own(c->hosts))
            continue;
        x->given[x->num_given++] = (struct crossing){ .host = host,
                                                      .dst = p->replica,
                                                      .src = id,
                                                      .tag = p->tag,
                                                      .dtype = dtype,
                                                      .count = p->src_count,
                                                      .data = p->src };
        x->expected[x->num_expected++] = (struct crossing){
            .host = host, .dst = id, .src = p->replica, .tag = p->tag, .dtype = dtype, .count = p->dst_count
        };
    }
}

static uint64_t add_to_digest(uint64_t digest, const struct crossing *c)
{
    digest = dti_hash_word(digest, (uint64_t)c->dst << 32 | c->src);
    digest = dti_hash_word(digest, (uint64_t)c->tag << 32 | c->dtype);
    return dti_hash_word(digest, c->count);
}

/* Sums up the parts of each other host, which are sorted, and sets their places in the message. */
static void sum_up(struct dti_hosts_exchange *x)
{
    x->num_between = 0;
    for (size_t i = 0; i < x->num_given; i++) { /* a host that is given something also gives something */
        struct crossing *g = &x->given[i], *e = &x->expected[i];
        if (i == 0 || g->host != x->given[i - 1].host)
            x->between[x->num_between++] = (struct between){ .host = g->host };
        struct between *b = &x->between[x->num_between - 1];
        g->offset = b->given_bytes;
        e->offset = b->expected_bytes;
        b->given++;
        b->expected++;
        b->given_bytes += (crossing_bytes(g) + 15) / 16 * 16;
        b->expected_bytes += (crossing_bytes(e) + 15) / 16 * 16;
        b->given_digest = add_to_digest(b->given_digest, g);
        b->expected_digest = add_to_digest(b->expected_digest, e);
    }
}

static ditto_status collect(const struct dti_hosts_call *c, const struct exchanging *e)
{
    struct dti_hosts_exchange *x = e->x;
    if (!begin_access(c))
        return dti_team_stop_status(c->self->team);
    ditto_status status = reserve(c, e);
    for (uint32_t i = 0; status == DITTO_OK && i < c->self->num_replicas; i++)
        collect_of(c, list_of(c, e, i), c->hosts->first + i, x);
    end_access(c);
    if (status != DITTO_OK)
        return status;
    if (x->num_given != 0) {
        qsort(x->given, x->num_given, sizeof *x->given, compare);
        qsort(x->expected, x->num_expected, sizeof *x->expected, compare);
    }
    sum_up(x);
    return DITTO_OK;
}

/* -- comparing -- */

/* Returns what host `host` says of host `other`. */
static struct between find_between(const struct dti_gathered *all, uint32_t host, uint32_t other)
{
    struct between found = { .host = other };
    for (size_t at = 0; at < all[host].bytes; at += sizeof found) {
        memcpy(&found, all[host].data + at, sizeof found);
        if (found.host == other)
            return found;
    }
    return (struct between){ .host = other };
}

static ditto_status fail_pair(const struct dti_hosts_call *c, uint32_t from, uint32_t to,
                              const struct between *gives, const struct between *expects)
{
    char giver[DTI_HOST_NAME_BYTES + 64], taker[DTI_HOST_NAME_BYTES + 64];
    struct dti_text text = { giver, sizeof giver, 0 };
    dti_describe_host(c->hosts->cluster, from, &text);
    text = (struct dti_text){ taker, sizeof taker, 0 };
    dti_describe_host(c->hosts->cluster, to, &text);
    return DTI_FAIL(
        DITTO_ERR_DIVERGED,
        "in %s #%llu %s gives %llu parts to %s, which expects %llu%s: a part of one replica belongs "
        "to a part of the other, with the same tag, count and dtype",
        c->call->name, (unsigned long long)c->number, giver, (unsigned long long)gives->given, taker,
        (unsigned long long)expects->expected,
        gives->given == expects->expected ? " with other replicas, tags, counts or dtypes" : "");
}

/* Compares what each host gives with what the other expects. All hosts compare the same. */
static ditto_status check_pairs(const struct dti_hosts_call *c, const struct dti_gathered *all)
{
    for (uint32_t h = 0; h < dti_hosts_count(c->hosts); h++)
        for (size_t at = 0; at < all[h].bytes; at += sizeof(struct between)) {
            struct between own, theirs;
            memcpy(&own, all[h].data + at, sizeof own);
            theirs = find_between(all, own.host, h);
            if (own.given != theirs.expected || own.given_digest != theirs.expected_digest)
                return fail_pair(c, h, own.host, &own, &theirs);
            if (own.expected != theirs.given || own.expected_digest != theirs.given_digest)
                return fail_pair(c, own.host, h, &theirs, &own);
        }
    return DITTO_OK;
}

/* -- moving -- */

/* In the memory of the transfers stands what is expected from all hosts, and then what is given to them. */
static size_t expected_before(const struct dti_hosts_exchange *x, uint32_t k)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < k; i++)
        bytes += x->between[i].expected_bytes;
    return bytes;
}

static ditto_status begin_messages(const struct dti_hosts_call *c, struct dti_hosts_exchange *x)
{
    size_t bytes = expected_before(x, x->num_between), messages = 0;
    for (uint32_t k = 0; k < x->num_between; k++) {
        bytes += x->between[k].given_bytes;
        messages += dti_transfers_of(x->between[k].given_bytes) +
                    dti_transfers_of(x->between[k].expected_bytes);
    }
    DTI_TRY(dti_transfers_reserve(x->transfers, bytes, messages));
    unsigned char *at = x->transfers->memory;
    for (uint32_t k = 0; k < x->num_between; at += x->between[k++].expected_bytes)
        DTI_TRY(dti_transfers_receive(c->hosts->cluster, x->transfers, x->between[k].host, at,
                                      x->between[k].expected_bytes));
    if (!begin_access(c))
        return dti_team_stop_status(c->self->team);
    ditto_status status = DITTO_OK;
    size_t i = 0;
    for (uint32_t k = 0; status == DITTO_OK && k < x->num_between; at += x->between[k++].given_bytes) {
        for (; i < x->num_given && x->given[i].host == x->between[k].host; i++)
            if (x->given[i].count != 0)
                memcpy(at + x->given[i].offset, x->given[i].data, crossing_bytes(&x->given[i]));
        status = dti_transfers_send(c->hosts->cluster, x->transfers, x->between[k].host, at,
                                    x->between[k].given_bytes);
    }
    end_access(c);
    return status;
}

static ditto_status stop(const struct dti_hosts_call *c)
{
    return dti_hosts_fail_wait(c, dti_stopped(c->self->stop) ? DTI_WAIT_STOPPED : DTI_WAIT_FAILED);
}

static ditto_status driven_exchange(const struct dti_hosts_call *c)
{
    struct exchanging *e = c->step;
    const struct dti_gathered *all;
    bool late[DTI_MAX_HOSTS];
    if (make(c->hosts) != DITTO_OK)
        return stop(c);
    e->x = c->hosts->exchange;
    if (collect(c, e) != DITTO_OK)
        return stop(c);
    DTI_TRY(dti_hosts_gather_call(c, e->x->between, e->x->num_between * sizeof *e->x->between, &all));
    if (check_pairs(c, all) != DITTO_OK || begin_messages(c, e->x) != DITTO_OK)
        return stop(c);
    struct dti_limits limits = dti_hosts_limits(c);
    return dti_hosts_fail_verdict(c, dti_transfers_await(c->hosts->cluster, e->x->transfers, &limits, late),
                                  &limits, late);
}

/* Copies a part of another host to a replica of this one. It has arrived, because the hosts have compared all
 * parts. */
static void take_crossing(const struct dti_hosts_call *c, const struct dti_replica *taker,
                          const ditto_exchange_part *part)
{
    const struct dti_hosts_exchange *x = c->hosts->exchange;
    struct crossing key = { .host = dti_hosts_of(c->hosts, part->replica),
                            .dst = taker->id,
                            .src = part->replica,
                            .tag = part->tag };
    const struct crossing *found = bsearch(&key, x->expected, x->num_expected, sizeof key, compare);
    uint32_t k = 0;
    while (x->between[k].host != key.host)
        k++;
    if (part->dst_count != 0)
        memcpy(part->dst, x->transfers->memory + expected_before(x, k) + found->offset,
               part->dst_count * ditto_dtype_bytes(part->dtype));
}

static ditto_status take_all(const struct dti_hosts_call *c, const struct exchanging *e,
                             struct dti_replica *taker, const struct dti_exchange_list *list,
                             bool of_this_host)
{
    for (size_t i = 0; i < list->parts; i++) {
        const ditto_exchange_part *part = &list->part[i];
        bool is_local = dti_hosts_of(c->hosts, part->replica) == dti_hosts_own(c->hosts);
        if (is_local && of_this_host)
            DTI_TRY(dti_exchange_take(taker, list, part, list_of(c, e, part->replica - c->hosts->first)));
        else if (!is_local && !of_this_host)
            take_crossing(c, taker, part);
    }
    return DITTO_OK;
}

ditto_status dti_exchange_on_hosts(struct dti_replica *self, const struct dti_call *call,
                                   const struct dti_exchange_list *list, struct dti_deadline *deadline)
{
    struct dti_arrival arrival = { .call = call };
    struct exchanging e = { 0 };
    struct dti_hosts_call c;
    DTI_TRY(dti_pending_finish_all(self, deadline));
    DTI_TRY(dti_meet(self, &arrival, deadline, &e.seq));
    DTI_TRY(dti_meeting_compare(self, e.seq));
    dti_hosts_call_begin(&c, self, call, deadline);
    c.step = &e;
    if (!dti_access_begin(self))
        return dti_leave_collective(self, dti_team_stop_status(self->team));
    ditto_status status = take_all(&c, &e, self, list, true);
    dti_access_end(self);
    if (status == DITTO_OK)
        status = dti_hosts_drive(&c, driven_exchange);
    if (status != DITTO_OK)
        return dti_leave_collective(self, status);
    DTI_TRY(dti_hosts_meet(&c));
    DTI_TRY(take_all(&c, &e, self, list, false));
    return dti_hosts_meet(&c);
}

/* -- a started operation -- */

/* Lists the parts of all replicas of this host. */
static ditto_status list_started(const struct dti_hosts_call *c, struct dti_hosts_exchange *x)
{
    const struct dti_sync *sync = c->flow->sync;
    size_t n = c->self->all_replicas, here = c->self->num_replicas;
    if (x->parts == NULL) {
        free(x->lists); /* the parts may have had no memory */
        x->lists = calloc(here, sizeof *x->lists);
        x->parts = x->lists != NULL ? calloc(here * n, sizeof *x->parts) : NULL;
        if (x->parts == NULL)
            return fail_memory();
    }
    for (uint32_t i = 0; i < here; i++) {
        const struct dti_call *call = &dti_pending_operation_of(sync, i, c->started)->call;
        x->lists[i] = (struct dti_exchange_list){ .part = x->parts + i * n, .name = call->name };
        DTI_TRY(dti_exchange_list_parts(dti_replica_peer(c->self, i), call, NULL, x->parts + i * n,
                                        &x->lists[i].parts));
    }
    return DITTO_OK;
}

ditto_status dti_hosts_move_started(const struct dti_hosts_call *given)
{
    struct dti_hosts_call c = *given;
    struct exchanging e = { 0 };
    c.step = &e;
    if (make(c.hosts) != DITTO_OK || list_started(&c, c.hosts->exchange) != DITTO_OK)
        return stop(&c);
    e.lists = c.hosts->exchange->lists;
    for (uint32_t i = 0; i < c.self->num_replicas; i++)
        DTI_TRY(take_all(&c, &e, dti_team_replica(c.self->team, i), &e.lists[i], true));
    DTI_TRY(driven_exchange(&c));
    for (uint32_t i = 0; i < c.self->num_replicas; i++)
        DTI_TRY(take_all(&c, &e, dti_team_replica(c.self->team, i), &e.lists[i], false));
    return DITTO_OK;
}
