/* src/strategy/kinds.c - the kinds of strategy that can be created. */
#include "strategy/strategy.h"

/* -- mirrored: variables have a copy on each node that has replicas -- */

const struct dti_strategy_kind dti_mirrored_strategy = { .kind = DITTO_MIRRORED, .name = "mirrored" };

/* -- one device: one replica -- */

const struct dti_strategy_kind dti_one_device_strategy = { .kind = DITTO_ONE_DEVICE,
                                                           .name = "one device",
                                                           .has_one_replica = true };

/* -- central storage: variables have one copy, on one node -- */

const struct dti_strategy_kind dti_central_strategy = { .kind = DITTO_CENTRAL_STORAGE,
                                                        .name = "central storage",
                                                        .is_central = true };

/* -- parameter server: variables have one copy, dealt out over nodes, and workers do not wait for each other
 * (parameter_server.c) -- */

const struct dti_strategy_kind dti_parameter_server_strategy = { .kind = DITTO_PARAMETER_SERVER,
                                                                 .name = "parameter server",
                                                                 .has_workers = true };

const struct dti_strategy_kind *dti_strategy_kind_of(ditto_strategy_kind kind)
{
    static const struct dti_strategy_kind *const kinds[] = { &dti_mirrored_strategy, &dti_central_strategy,
                                                             &dti_one_device_strategy,
                                                             &dti_parameter_server_strategy };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->kind == kind)
            return kinds[i];
    return NULL;
}
