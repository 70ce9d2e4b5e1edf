/* src/sync/hosts/block_sum_on_hosts.c - sums over fixed blocks of a row whose elements are on several hosts.
 *
 * First each host gives the counts of its replicas to all hosts, and its first elements, because a block that
 * begins on an earlier host may end in them. Then each replica sums its blocks, as on one host, and each host
 * gives the sums of its replicas to all hosts. */
#include "base/errors/status.h"
#include "replicas/memory/arena.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/block_sum.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/hosts/gather.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* One replica in the call. */
struct summing {
    uint32_t seq;
    struct dti_block_row *row;
    const unsigned char **sums; /* [n] of each replica */
};

static const struct dti_block_row *row_of(const struct dti_hosts_call *c, uint32_t index)
{
    const struct summing *s = c->step;
    return dti_call_of(c->self->sync, index, s->seq)->more;
}

/* -- the first elements of each host -- */

/* Writes the counts of the replicas of this host, and then its first elements. Returns the number of
 * bytes. */
static size_t write_heads(const struct dti_hosts_call *c, unsigned char *out)
{
    size_t bytes = row_of(c, 0)->reduction.element_bytes, left = DITTO_BLOCK_ELEMENTS - 1;
    uint64_t *count = (uint64_t *)(void *)out;
    unsigned char *to = out + c->self->num_replicas * sizeof *count;
    for (uint32_t i = 0; i < c->self->num_replicas; i++) {
        const struct dti_block_row *row = row_of(c, i);
        size_t taken = row->count < left ? row->count : left;
        count[i] = row->count;
        if (taken != 0)
            memcpy(to, row->values, taken * bytes);
        to += taken * bytes;
        left -= taken;
    }
    return (size_t)(to - out);
}

static ditto_status drive_heads(const struct dti_hosts_call *c)
{
    const struct dti_gathered *all;
    unsigned char *own = malloc(c->self->num_replicas * sizeof(uint64_t) +
                                DITTO_BLOCK_ELEMENTS * row_of(c, 0)->reduction.element_bytes);
    if (own == NULL) {
        DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the first elements of this host");
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    }
    ditto_status status;
    if (dti_access_begin(c->self)) {
        size_t bytes = write_heads(c, own);
        dti_access_end(c->self);
        status = dti_hosts_gather_call(c, own, bytes, &all);
    } else {
        status = dti_hosts_fail_wait(c, DTI_WAIT_STOPPED);
    }
    free(own);
    return status;
}

/* Sets where the elements of all replicas begin, and where they are in memory. */
static ditto_status find_elements(const struct dti_hosts_call *c, size_t *start, const char **data)
{
    const struct dti_hosts *hosts = c->hosts;
    size_t bytes = row_of(c, 0)->reduction.element_bytes;
    start[0] = 0;
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        uint32_t first = hosts->ranges.start[h], end = hosts->ranges.start[h + 1];
        const uint64_t *count = (const uint64_t *)(const void *)hosts->gathered[h].data;
        const char *head = (const char *)(count + (end - first));
        for (uint32_t i = first; i < end; i++) {
            DTI_TRY(dti_block_row_append(start, i, count[i - first]));
            data[i] = h == dti_hosts_own(hosts) ? row_of(c, i - first)->values
                                                : head + (start[i] - start[first]) * bytes;
        }
    }
    return DITTO_OK;
}

/* -- the sums -- */

static ditto_status drive_sums(const struct dti_hosts_call *c)
{
    const struct dti_gathered *all;
    size_t bytes = row_of(c, 0)->reduction.accumulator_bytes, used = 0;
    unsigned char *own = malloc((size_t)c->self->num_replicas * DTI_BLOCK_PARTS * DTI_BLOCK_SUM_BYTES);
    if (own == NULL) {
        DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the sums of this host");
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    }
    ditto_status status;
    if (dti_access_begin(c->self)) {
        for (uint32_t i = 0; i < c->self->num_replicas; i++) {
            memcpy(own + used, row_of(c, i)->part, row_of(c, i)->parts * bytes);
            used += row_of(c, i)->parts * bytes;
        }
        dti_access_end(c->self);
        status = dti_hosts_gather_call(c, own, used, &all);
    } else {
        status = dti_hosts_fail_wait(c, DTI_WAIT_STOPPED);
    }
    free(own);
    return status;
}

static const unsigned char *sums_of(void *context, const struct dti_block_row *r, uint32_t replica,
                                    uint32_t parts)
{
    const struct summing *s = context;
    (void)r;
    (void)parts;
    return s->sums[replica];
}

/* -- both -- */

static ditto_status drive(const struct dti_hosts_call *c, ditto_status (*work)(const struct dti_hosts_call *))
{
    ditto_status status = dti_hosts_drive(c, work);
    return status == DITTO_OK ? DITTO_OK : dti_leave_collective(c->self, status);
}

static ditto_status sum(const struct dti_hosts_call *c, struct summing *s, size_t *start, const char **data)
{
    DTI_TRY(drive(c, drive_heads));
    DTI_TRY(dti_hosts_meet(c));
    if (!dti_access_begin(c->self))
        return dti_leave_collective(c->self, dti_team_stop_status(c->self->team));
    uint32_t serial = dti_this_thread()->errors;
    s->row->start = start;
    s->row->data = data;
    ditto_status status = find_elements(c, start, data);
    if (status == DITTO_OK)
        status = dti_block_row_sum_own(s->row);
    dti_access_end(c->self);
    if (status != DITTO_OK)
        return dti_leave_collective(c->self, dti_fail_function(c->self, c->call, status, serial));
    DTI_TRY(dti_hosts_meet(c));
    DTI_TRY(drive(c, drive_sums));
    DTI_TRY(dti_hosts_meet(c));
    struct dti_span part[DTI_BLOCK_PARTS];
    for (uint32_t h = 0; h < dti_hosts_count(c->hosts); h++) {
        const unsigned char *at = c->hosts->gathered[h].data;
        for (uint32_t i = c->hosts->ranges.start[h]; i < c->hosts->ranges.start[h + 1]; i++) {
            s->sums[i] = at;
            at += dti_block_row_subtrees(s->row, i, part) * s->row->reduction.accumulator_bytes;
        }
    }
    dti_block_row_finish(s->row, sums_of, s, c->call->dst);
    return dti_hosts_meet(c);
}

ditto_status dti_block_sum_on_hosts(struct dti_block_row *row, const struct dti_call *call,
                                    struct dti_deadline *deadline)
{
    struct dti_replica *self = row->self;
    struct dti_arrival arrival = { .call = call };
    struct summing s = { .row = row };
    size_t n = row->n;
    struct dti_hosts_call c;
    void *memory;
    DTI_TRY(dti_pending_finish_all(self, deadline));
    DTI_TRY(dti_meet(self, &arrival, deadline, &s.seq));
    DTI_TRY(dti_meeting_compare(self, s.seq));
    dti_hosts_call_begin(&c, self, call, deadline);
    c.step = &s;
    ditto_status status = dti_replica_alloc(self, (n + 1) * sizeof(size_t) + 2 * n * sizeof(void *),
                                            DTI_CACHE_LINE, &memory);
    if (status != DITTO_OK) {
        dti_replica_stop(self);
        return dti_leave_collective(self, status);
    }
    size_t *start = memory;
    const char **data = (const char **)(void *)(start + n + 1);
    s.sums = (const unsigned char **)(void *)(data + n);
    status = sum(&c, &s, start, data);
    dti_arena_free(self->arena, memory);
    return status;
}
