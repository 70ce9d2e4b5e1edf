/* src/strategy/owners.c - which hosts keep the parameters of a strategy over several hosts, and on which of
 * their nodes. */
#include "hosts/questions.h"
#include "strategy/strategy.h"
#include "sync/hosts/hosts.h"

#include <stdlib.h>
#include <string.h>

/* What a host tells the others: how many of its nodes keep parameters, and which. */
#define MOST_NODES (DTI_HOSTS_NOTE_BYTES / sizeof(uint32_t) - 1)
struct own_nodes {
    uint32_t count;
    uint32_t node[MOST_NODES];
};

static ditto_status tell(const struct dti_workers *w, const ditto_strategy_options *o, struct own_nodes *own)
{
    own->count = o->keeps_parameters != DITTO_SWITCH_OFF ? w->num_nodes : 0;
    if (own->count > MOST_NODES)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "parameters on %u NUMA nodes of a host: at most %zu",
                        own->count, MOST_NODES);
    memcpy(own->node, w->node, own->count * sizeof own->node[0]);
    return DITTO_OK;
}

/* Returns the nodes of a host. */
static struct own_nodes nodes_of(const struct dti_hosts *hosts, uint32_t host)
{
    struct own_nodes nodes = { .count = 0 };
    size_t bytes;
    const void *note = dti_hosts_note(hosts, host, &bytes);
    memcpy(&nodes, note, bytes < sizeof nodes ? bytes : sizeof nodes);
    return nodes;
}

/* Lists the nodes of all hosts. */
static ditto_status list(const struct dti_hosts *hosts, struct dti_owners *owners)
{
    owners->own = dti_hosts_own(hosts);
    owners->hosts = dti_hosts_count(hosts);
    for (uint32_t h = 0; h < owners->hosts; h++)
        owners->servers += nodes_of(hosts, h).count;
    if (owners->servers == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "keeps_parameters is OFF on all %u hosts: let one of them keep the parameters",
                        owners->hosts);
    owners->host = calloc(owners->servers, sizeof *owners->host);
    owners->node = calloc(owners->servers, sizeof *owners->node);
    if (owners->host == NULL || owners->node == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the list of %u parameter servers",
                        owners->servers);
    for (uint32_t h = 0, s = 0; h < owners->hosts; h++) {
        struct own_nodes nodes = nodes_of(hosts, h);
        for (uint32_t k = 0; k < nodes.count; k++, s++) {
            owners->host[s] = h;
            owners->node[s] = nodes.node[k];
        }
    }
    return DITTO_OK;
}

/* Finds the second host of each host: the next one that keeps parameters. */
static ditto_status pair(struct dti_owners *owners)
{
    owners->second = calloc(owners->hosts, sizeof *owners->second);
    if (owners->second == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the pairs of %u hosts", owners->hosts);
    if (owners->host[0] == owners->host[owners->servers - 1])
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "mirrors_parameters is ON, but host %u alone keeps parameters: let another one keep some",
            owners->host[0]);
    for (uint32_t s = 0; s < owners->servers; s++) { /* the hosts are in ascending order */
        uint32_t next = s + 1;
        while (next < owners->servers && owners->host[next] == owners->host[s])
            next++;
        owners->second[owners->host[s]] = owners->host[next < owners->servers ? next : 0];
    }
    return DITTO_OK;
}

ditto_status dti_owners_make(ditto_strategy *strategy, const ditto_strategy_options *o, ditto_status status)
{
    struct own_nodes own = { .count = 0 };
    struct dti_workers *w = strategy->workers;
    struct dti_hosts *hosts = strategy->hosts;
    if (status == DITTO_OK)
        status = dti_questions_make(hosts->cluster, hosts->timeout_ms, &w->questions);
    if (status == DITTO_OK)
        status = tell(w, o, &own);
    size_t bytes = (1 + (size_t)own.count) * sizeof(uint32_t);
    DTI_TRY(dti_hosts_agree_with(hosts, "the parameter servers", status, &own, bytes));
    w->owners.questions = w->questions;
    /* If this fails, the end of ditto_strategy_create tells the other hosts. */
    DTI_TRY(list(hosts, &w->owners));
    return o->mirrors_parameters == DITTO_SWITCH_ON ? pair(&w->owners) : DITTO_OK;
}

void dti_owners_free(struct dti_workers *w)
{
    free(w->owners.host);
    free(w->owners.node);
    free(w->owners.second);
    dti_questions_free(w->questions);
}
