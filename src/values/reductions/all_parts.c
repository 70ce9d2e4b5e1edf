/* src/values/reductions/all_parts.c - the parts of a value on all hosts.
 *
 * Each host gives its parts to all hosts. Then each host reduces all parts, as one host does, so the bits are
 * the same everywhere. */
#include "base/numbers/checksum.h"
#include "sync/hosts/cross.h"
#include "values/reductions/reductions.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* A part on the wire. Its data follow, at a multiple of 16 bytes. */
struct wire_part {
    uint64_t shape[DITTO_MAX_RANK];
    uint32_t dtype, rank;
    uint64_t bytes;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static size_t head_bytes(void)
{
    return round_up(sizeof(struct wire_part));
}

static ditto_status fail_memory(void)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the parts of a value on all hosts");
}

/* Writes the n parts of this host, which the caller frees. */
static unsigned char *pack(const ditto_tensor *part, uint32_t n, size_t *bytes)
{
    *bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        *bytes += head_bytes() + round_up(ditto_tensor_bytes(&part[i]));
    unsigned char *out = calloc(1, *bytes + 1), *at = out;
    for (uint32_t i = 0; out != NULL && i < n; i++) {
        struct wire_part head = { .dtype = (uint32_t)part[i].dtype,
                                  .rank = part[i].rank,
                                  .bytes = ditto_tensor_bytes(&part[i]) };
        for (uint32_t d = 0; d < part[i].rank; d++)
            head.shape[d] = part[i].shape[d];
        memcpy(at, &head, sizeof head);
        if (head.bytes != 0)
            memcpy(at + head_bytes(), part[i].data, head.bytes);
        at += head_bytes() + round_up(head.bytes);
    }
    return out;
}

/* Copies the parts of all hosts, because what was gathered is gone after the next exchange. */
static ditto_status unpack(const struct dti_gathered *all, uint32_t hosts, uint32_t n,
                           struct dti_all_parts *out)
{
    size_t bytes = round_up(n * sizeof(ditto_tensor));
    uint32_t i = 0;
    for (uint32_t h = 0; h < hosts; h++)
        bytes += all[h].bytes;
    unsigned char *at = aligned_alloc(DTI_CACHE_LINE,
                                      (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE);
    if (at == NULL)
        return fail_memory();
    ditto_tensor *part = (ditto_tensor *)(void *)at;
    out->memory = at;
    at += round_up(n * sizeof *part);
    for (uint32_t h = 0; h < hosts; at += all[h++].bytes) {
        if (all[h].bytes != 0)
            memcpy(at, all[h].data, all[h].bytes);
        for (size_t used = 0; used < all[h].bytes && i < n; i++) {
            struct wire_part head;
            memcpy(&head, at + used, sizeof head);
            part[i] = (ditto_tensor){ .data = at + used + head_bytes(),
                                      .dtype = (ditto_dtype)head.dtype,
                                      .rank = head.rank };
            for (uint32_t d = 0; d < head.rank; d++)
                part[i].shape[d] = head.shape[d];
            used += head_bytes() + round_up(head.bytes);
        }
    }
    out->part = part;
    out->n = n;
    return DITTO_OK;
}

/* Variables of one shape are told apart by their names, as in other calls. */
static ditto_status gather_parts(struct dti_team *team, const ditto_value *v, uint32_t n, uint64_t digest,
                                 struct dti_all_parts *parts)
{
    const ditto_tensor *first = &parts->part[0];
    struct dti_cross_request request = { .name = dti_this_thread()->function,
                                         .object = v->kind == DITTO_VALUE_VARIABLE ? v->variable->name : NULL,
                                         .digest = dti_hash_word(digest, (uint64_t)first->dtype << 32 |
                                                                             first->rank) };
    const struct dti_gathered *all;
    size_t bytes;
    unsigned char *own = pack(parts->part, parts->n, &bytes);
    if (own == NULL)
        return fail_memory();
    ditto_status status = dti_cross_gather(team, &request, own, bytes, &all);
    free(own);
    return status == DITTO_OK ? unpack(all, dti_cross_hosts(team), n, parts) : status;
}

/* Gives the replicas of other hosts the part of the first replica of this one, to which it is equal. */
static ditto_status repeat_part(uint32_t n, struct dti_all_parts *parts)
{
    ditto_tensor *part = malloc(n * sizeof *part);
    if (part == NULL)
        return fail_memory();
    for (uint32_t i = 0; i < n; i++)
        part[i] = parts->part[0];
    parts->part = parts->memory = part;
    parts->n = n;
    return DITTO_OK;
}

ditto_status dti_all_parts_open(const ditto_value *v, uint64_t digest, struct dti_all_parts *parts)
{
    struct dti_team *team = dti_team_of(v->strategy);
    uint32_t n = dti_team_all_replicas(team);
    *parts = (struct dti_all_parts){ .n = dti_team_num_replicas(team) };
    DTI_TRY(dti_value_parts_open(v, &parts->local));
    parts->part = parts->local.part;
    if (!dti_cross_has_hosts(team))
        return DITTO_OK;
    ditto_status status = dti_is_read_alone(v) ? repeat_part(n, parts)
                                               : gather_parts(team, v, n, digest, parts);
    if (status != DITTO_OK)
        dti_all_parts_close(parts);
    return status;
}

void dti_all_parts_close(struct dti_all_parts *parts)
{
    dti_value_parts_close(&parts->local);
    free(parts->memory);
    *parts = (struct dti_all_parts){ .n = 0 };
}
