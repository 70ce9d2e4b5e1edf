/* src/sync/api_tuning.c - the functions of include/ditto/tuning.h, and what
 * ditto_strategy_diagnose says about collectives. */
#include "replicas/team/servers.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/choose_algorithm.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/meeting.h"
#include "sync/sync.h"

#include <string.h>

const char *dti_sync_diagnose(const struct dti_team *team)
{
    struct dti_text text = { dti_team_sync(team)->diagnosis, dti_diagnosis_bytes(dti_team_num_replicas(team)),
                             0 };
    dti_text_add(&text, "%u replicas, run %llu%s\n", dti_team_num_replicas(team),
                 (unsigned long long)dti_team_run_number(team), dti_team_is_stopped(team) ? ", stopped" : "");
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++) {
        const struct dti_replica_state *state = &dti_team_replica(team, i)->sync->state[i];
        /* All loads are relaxed, because the values may change meanwhile. The text is only a snapshot. */
        const char *name = atomic_load_explicit(&state->name, memory_order_relaxed);
        uint32_t number = atomic_load_explicit(&state->number, memory_order_relaxed);
        bool is_inside = atomic_load_explicit(&state->finished, memory_order_relaxed) != number;
        dti_text_add(&text, "replica %u: %s", i,
                     dti_replica_returned(dti_team_replica(team, i)) ? "returned from its function; " : "");
        if (name == NULL || !dti_is_in_last_run(dti_team_replica(team, i)->sync, i))
            dti_text_add(&text, "in no collective yet\n");
        else
            dti_text_add(&text, "%s %s #%u\n", is_inside ? "in" : "last in", name, number);
    }
    return dti_team_sync(team)->diagnosis;
}
