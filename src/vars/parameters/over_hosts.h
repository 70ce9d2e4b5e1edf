/* src/vars/parameters/over_hosts.h - parameters of which several hosts have shards.
 *
 * The shards of all parameters are dealt out over the nodes of all hosts that keep parameters (struct
 * dti_owners). The host that has a shard is its owner. It has the elements, those of the slots, the lock and
 * the version. Other hosts ask it (hosts/questions.h). The owner does what is asked on the thread of its
 * postman, under the lock of the shard, exactly as a worker of its own would do it. So all rules about locks,
 * versions and updates are those of one host.
 *
 * A question names variables and optimizers by their numbers (registry.h), and concerns all shards of the
 * variable that the owner has. SAVE and RESTORE concern one shard, because slots make it longer. A question
 * is a request of fixed length, and what belongs to it (sections).
 *
 *     what      variable    behind the request                          answer
 *     READ      number                                                  version and elements of each shard
 *     VERSIONS  number                                                  version of each shard
 *     WRITE     number      elements of each shard
 *     LOOKUP    number      numbers of rows                             version of each shard, rows
 *     SCATTER   number      numbers of rows, rows
 *     SAVE      `count`     numbers of the variables                    version and elements of one shard
 *     RESTORE   `count`     numbers, elements of one shard
 *     STEP      optimizer   gradient of each shard of variable `count`
 *     NUMBER    optimizer                                               number of the step, or 0
 *
 * With mirrors_parameters a second host has the same shards (owners->second). Then all operations are
 * questions to such pairs of hosts (hosts/pairs.h), also those of the owner itself, so that both do all
 * changes in the same order.
 *
 * While there is no coordinator, hosts cannot be asked. Then all hosts make the same calls, and each changes
 * its own shards. */
#ifndef DTI_OVER_HOSTS_H
#define DTI_OVER_HOSTS_H

#include <ditto/cluster.h>

#include "base/text/bytes.h"
#include "vars/vars.h"

enum dti_ask {
    DTI_ASK_READ,
    DTI_ASK_VERSIONS,
    DTI_ASK_WRITE,
    DTI_ASK_LOOKUP,
    DTI_ASK_SCATTER,
    DTI_ASK_SAVE,
    DTI_ASK_RESTORE,
    DTI_ASK_STEP,
    DTI_ASK_NUMBER
};

struct dti_parameter_request {
    uint32_t what;
    uint32_t flag;       /* READ, LOOKUP: without locks. WRITE, SCATTER: the rule. RESTORE: enum dti_restored.
                          * NUMBER: has_read_steps */
    uint64_t number;     /* of the variable or optimizer */
    uint64_t count;      /* of rows, or of variables; of STEP: which variable of the optimizer */
    uint64_t piece;      /* SAVE, RESTORE: the shard */
    uint64_t version;    /* RESTORE: the version that the shard gets */
    int64_t steps;       /* STEP: number of the step. NUMBER: read_steps */
    double rate, factor; /* STEP: learning rate, and the factor of clipping */

    /* Of whose shards it is asked. If they are mirrored: the first host of the pair that has them. Set when
     * the request is sent. */
    uint64_t owner;
};

/* What RESTORE does to the versions of the shards. */
enum dti_restored { DTI_VERSIONS_STAY, DTI_VERSIONS_COUNT, DTI_VERSIONS_GIVEN };

/* -- ask_owners.c -- */

/* Sections begin at multiples of this, so that elements of every type are aligned. */
#define DTI_SECTION_BYTES ((size_t)16)
void dti_put_request(struct dti_bytes *to, const struct dti_parameter_request *request);
void dti_put_section(struct dti_bytes *to, const void *data, size_t bytes);
/* Puts the shards that a host has, from a whole value of the variable, each as a section. */
void dti_put_shards_of(struct dti_bytes *to, const ditto_variable *v, uint32_t host, const void *value);

/* What is done to all shards of a variable. */
struct dti_asking {
    const ditto_variable *v;

    /* Does it to the shards of this host. Not called if they are mirrored and hosts can be asked. */
    void (*own)(void *context);

    /* Writes the request to a host that has shards. Returns false if it is not to be asked. */
    bool (*put)(void *context, uint32_t host, struct dti_bytes *request);

    /* Reads its answer. NULL if there is nothing in it. */
    ditto_status (*take)(void *context, uint32_t host, struct dti_bytes_reader *answer);
    void *context;

    bool changes; /* what is asked for changes something */

    /* If the hosts cannot be asked, do it to the own shards alone. Otherwise that is an error. */
    bool works_closed;
};

/* Asks all other owners, does the own part meanwhile, and waits for the answers. If shards are mirrored, asks
 * all owners, this host too. Over one host it does the own part alone. Returns the first error: NO_MEMORY,
 * RANGE if a message would be too long, LOST if an owner is gone, CONTEXT if owners cannot be asked,
 * TIMED_OUT, or an error of an owner. The other owners may have done their part then. */
ditto_status dti_ask_owners(const struct dti_asking *asking);

/* The same for `count` variables of one strategy, and for all of them at once. The own parts are done one
 * after the other. works_closed is that of the first. */
ditto_status dti_ask_owners_of_all(const struct dti_asking *asking, uint32_t count);

/* Asks one host. If take is not NULL, it reads the answer. Returns the same errors. */
ditto_status dti_ask_host(const ditto_variable *v, uint32_t host, const struct dti_parameter_request *request,
                          ditto_status (*take)(void *context, uint32_t host, struct dti_bytes_reader *answer),
                          void *context);

/* Returns CONTEXT if hosts can be asked already, because then they do not create variables or optimizers
 * together. `what` is "variables" or "optimizers". */
ditto_status dti_parameters_check_begun(const struct dti_team *team, const char *what);

/* Returns BUSY if shards are mirrored and hosts can be asked. Both hosts of a pair have the variable or
 * optimizer then. `what` is "variable" or "optimizer". */
ditto_status dti_parameters_check_ended(const struct dti_team *team, const char *what, const char *name);

/* What hosts must have alike when they begin to ask each other. */
struct dti_parameters_digest {
    uint64_t made; /* equal on two hosts if they have the same variables and optimizers */

    /* Of mirrored shards, with their slots and versions: those that this host has as the first, and as the
     * second host of a pair. */
    uint64_t first, second;
};

/* Initial values of shards that are not mirrored are not compared, because each host has its own ones, nor
 * are functions of the program. Cross context. It reads all mirrored shards. */
ditto_status dti_parameters_digest(struct dti_team *team, struct dti_parameters_digest *digest);

/* Compares the digests of all hosts. Returns INVALID, naming two hosts. */
ditto_status dti_parameters_compare(const struct dti_team *team, const ditto_cluster *cluster,
                                    const struct dti_parameters_digest *digests);

/* -- answer.c -- */

/* Does what another host asks for, on any thread. `team` is that of the parameter servers. Returns NOT_FOUND
 * if the variable or optimizer was destroyed, and CORRUPT if the request makes no sense. */
ditto_status dti_parameters_answer(void *team, const void *request, size_t bytes, struct dti_bytes *answer);

#endif
