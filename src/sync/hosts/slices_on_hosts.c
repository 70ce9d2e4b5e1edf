/* src/sync/hosts/slices_on_hosts.c - indexed rows of the replicas of all hosts.
 *
 * Each host gives the rows of its replicas to all hosts. Then each replica works with the rows of all
 * replicas, as on one host, so the bits are the same. */
#include "base/errors/status.h"
#include "replicas/memory/arena.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/algorithms/slices.h"
#include "sync/hosts/gather.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* What a host gives: an entry of each replica, then the indices of all rows, then their values. */
struct slices_entry {
    uint64_t rows, capacity;
};

/* What the driver needs. */
struct gathering_slices {
    uint32_t seq;
    size_t row_bytes;
    const struct dti_gathered *all;
};

static const struct dti_slices *slices_of(const struct dti_replica *self, uint32_t index, uint32_t seq)
{
    return dti_call_of(self->sync, index, seq)->more;
}

/* Writes what this host gives, which the caller frees. */
static ditto_status pack(const struct dti_hosts_call *c, const struct gathering_slices *s,
                         unsigned char **out, size_t *bytes)
{
    uint32_t n = c->self->num_replicas;
    size_t rows = 0, at;
    for (uint32_t i = 0; i < n; i++)
        rows += slices_of(c->self, i, s->seq)->in.rows;
    *bytes = n * sizeof(struct slices_entry) + rows * (sizeof(int64_t) + s->row_bytes);
    *out = malloc(*bytes + 1);
    if (*out == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to send %zu rows to other hosts", rows);
    unsigned char *indices = *out + n * sizeof(struct slices_entry),
                  *values = indices + rows * sizeof(int64_t);
    for (uint32_t i = 0; i < n; i++) {
        const struct dti_slices *slices = slices_of(c->self, i, s->seq);
        struct slices_entry entry = { slices->in.rows, slices->capacity };
        memcpy(*out + i * sizeof entry, &entry, sizeof entry);
        at = slices->in.rows * sizeof(int64_t);
        if (at != 0)
            memcpy(indices, slices->in.indices, at);
        indices += at;
        at = slices->in.rows * s->row_bytes;
        if (at != 0)
            memcpy(values, slices->in.values, at);
        values += at;
    }
    return DITTO_OK;
}

static ditto_status driven_slices(const struct dti_hosts_call *c)
{
    struct gathering_slices *s = c->step;
    unsigned char *own = NULL;
    size_t bytes;
    if (!dti_access_begin(c->self))
        return dti_hosts_fail_wait(c, DTI_WAIT_STOPPED);
    ditto_status status = pack(c, s, &own, &bytes);
    dti_access_end(c->self);
    status = status == DITTO_OK ? dti_hosts_gather_call(c, own, bytes, &s->all)
                                : dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    free(own);
    return status;
}

/* Calls `use` with the slices of all replicas, for which `memory` has room. */
static ditto_status gather_and_use(struct dti_replica *self, const struct dti_call *call, void *memory,
                                   dti_slices_use *use, void *context, struct dti_deadline *deadline)
{
    struct dti_slices *slices = memory;
    const struct dti_slices **of = (const struct dti_slices **)(void *)(slices + self->all_replicas),
                            *own = call->more;
    struct gathering_slices s = { .row_bytes = own->in.row_count * ditto_dtype_bytes(own->in.dtype) };
    struct dti_arrival arrival = { .call = call };
    struct dti_hosts_call c;
    DTI_TRY(dti_pending_finish_all(self, deadline));
    DTI_TRY(dti_meet(self, &arrival, deadline, &s.seq));
    DTI_TRY(dti_meeting_compare(self, s.seq));
    dti_hosts_call_begin(&c, self, call, deadline);
    c.step = &s;
    DTI_TRY(dti_hosts_drive(&c, driven_slices));
    DTI_TRY(dti_hosts_meet(&c));
    s.all = c.hosts->gathered;
    /* Finds the slices of all replicas in what the hosts have given. `own` are those of this replica. */
    for (uint32_t h = 0; h < dti_hosts_count(c.hosts); h++) {
        uint32_t first = c.hosts->ranges.start[h], n = c.hosts->ranges.start[h + 1] - first;
        const unsigned char *indices = s.all[h].data + n * sizeof(struct slices_entry), *values = indices;
        struct slices_entry entry;
        for (uint32_t i = 0; i < n; i++) {
            memcpy(&entry, s.all[h].data + i * sizeof entry, sizeof entry);
            values += entry.rows * sizeof(int64_t);
        }
        for (uint32_t i = 0; i < n; i++) {
            memcpy(&entry, s.all[h].data + i * sizeof entry, sizeof entry);
            slices[first + i] = (struct dti_slices){ .in = own->in, .capacity = entry.capacity };
            slices[first + i].in.indices = (int64_t *)(uintptr_t)indices;
            slices[first + i].in.values = (void *)(uintptr_t)values;
            slices[first + i].in.rows = entry.rows;
            of[first + i] = &slices[first + i];
            indices += entry.rows * sizeof(int64_t);
            values += entry.rows * s.row_bytes;
        }
    }
    ditto_status status = use(context, of, self->all_replicas);
    if (status != DITTO_OK) {
        dti_replica_stop(self);
        return status;
    }
    return dti_hosts_meet(&c);
}

ditto_status dti_slices_on_hosts(struct dti_replica *self, const struct dti_call *call, dti_slices_use *use,
                                 void *context, struct dti_deadline *deadline)
{
    void *memory;
    DTI_TRY(dti_replica_alloc(self, self->all_replicas * (sizeof(struct dti_slices) + sizeof(void *)),
                              DTI_CACHE_LINE, &memory));
    ditto_status status = gather_and_use(self, call, memory, use, context, deadline);
    dti_arena_free(self->arena, memory);
    return status;
}
