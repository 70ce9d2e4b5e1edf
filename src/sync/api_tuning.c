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
        const struct dti_sync *sync = atomic_load_explicit(&dti_team_replica(team, i)->shown_sync,
                                                           memory_order_acquire); /* V1 */
        dti_text_add(&text, "replica %u: ", i);
        dti_describe_place(sync, i, &text);
        dti_text_add(&text, "\n");
    }
    return dti_team_sync(team)->diagnosis;
}
