/* src/replicas/team/servers.c - what workers and parameter servers know of each other. See servers.h. */
#include "replicas/team/servers.h"
#include "replicas/team/team_state.h"
#include "replicas/team/turn.h"

void dti_team_set_in_use(struct dti_team *team, bool (*is_in_use)(const void *argument), const void *argument)
{
    bool taken = dti_team_take_turn(team);
    team->is_in_use = is_in_use;
    team->in_use_argument = argument;
    dti_team_give_turn(team, taken);
}

ditto_status dti_team_check_unused(const struct dti_team *team, const char *what, const char *name)
{
    if (dti_team_forked(team) || team->is_in_use == NULL || !team->is_in_use(team->in_use_argument))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_BUSY,
        "functions of workers may be using the %s \"%s\": wait for them (ditto_coordinator_join), or "
        "destroy the coordinator first",
        what, name);
}

ditto_status dti_team_check_in_step(const struct dti_team *team)
{
    if (!team->options.idle)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "a strategy of kind DITTO_PARAMETER_SERVER has no replicas that work in step: schedule a "
                    "function (ditto_coordinator_schedule), and use the replicas of its worker there");
}

struct dti_team *dti_team_servers(const struct dti_team *team)
{
    return team->servers;
}

uint32_t dti_team_first_stream(const struct dti_team *team)
{
    return team->first_stream;
}

void dti_team_set_servers(struct dti_team *team, struct dti_team *servers, uint32_t first_stream)
{
    team->servers = servers;
    team->first_stream = first_stream;
}
