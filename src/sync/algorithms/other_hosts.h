/* src/sync/algorithms/other_hosts.h - all that one host's collectives ask of those over several hosts.
 *
 * If sync->hosts is NULL there is one host. Then only dti_started_give_up is called, which returns false.
 * Otherwise each collective goes through one of these functions. They are in the folder hosts. The replica's
 * own thread calls them. */
#ifndef DTI_OTHER_HOSTS_H
#define DTI_OTHER_HOSTS_H

#include "replicas/team/replica.h"

struct dti_block_row;
struct dti_call;
struct dti_exchange_list;
struct dti_prepared_call;
struct dti_slices;
struct dti_target;

/* -- collectives -- */

/* Executes a collective over all hosts. Accepts the patterns that dti_collective accepts, and NOTHING. */
ditto_status dti_collective_on_hosts(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                     const struct dti_target *target, struct dti_deadline *deadline);

/* The collective of ditto_exchange. */
ditto_status dti_exchange_on_hosts(struct dti_replica *self, const struct dti_call *call,
                                   const struct dti_exchange_list *list, struct dti_deadline *deadline);

/* Gives the slices of each replica to all. The call's `more` are those of this one (slices.h). Each
 * replica then calls `use` with the slices of all n replicas. */
typedef ditto_status dti_slices_use(void *context, const struct dti_slices *const *of, uint32_t n);
ditto_status dti_slices_on_hosts(struct dti_replica *self, const struct dti_call *call, dti_slices_use *use,
                                 void *context, struct dti_deadline *deadline);

/* The collective of ditto_block_sum. */
ditto_status dti_block_sum_on_hosts(struct dti_block_row *row, const struct dti_call *call,
                                    struct dti_deadline *deadline);

/* -- started operations (hosts/started.h) -- */

/* Called after operation `number` has been announced. */
void dti_started_announced(struct dti_replica *self, uint64_t number);

/* Works on operation `number`, which all replicas of this host have announced. Returns true if it has been
 * carried out. If it has failed, the run has been stopped. */
bool dti_started_work_on(struct dti_replica *self, uint64_t number);

/* The limit of a wait for operation `number` has passed. Returns true if the driver will end it: then it
 * either carries it out, or stops the run. Returns false if the driver is not in a call of ditto, or if there
 * is one host. */
bool dti_started_give_up(struct dti_replica *self, uint64_t number, const struct dti_deadline *deadline);

#endif
