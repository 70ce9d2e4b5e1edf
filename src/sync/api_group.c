/* src/sync/api_group.c - the public functions of include/ditto/group.h. */
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "replicas/team/turn.h"
#include "sync/grouping/grouping.h"
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>

static ditto_status check_kind(const struct dti_team *team, const char *what)
{
    if (dti_team_options(team)->plain || dti_team_options(team)->idle)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s: %s", what,
                        dti_team_options(team)->plain
                            ? "the default strategy has one replica: create a strategy"
                            : "a strategy of kind DITTO_PARAMETER_SERVER executes no runs");
    return DITTO_OK;
}

/* Begins a call that makes groupings of a strategy. */
static ditto_status begin(struct dti_team *team, const char *what, struct dti_frame *frame)
{
    DTI_TRY(dti_cross_enter(team, frame, DTI_CALLER_PINNED));
    if (dti_team_pauses(team) == 0)
        return DITTO_OK;
    dti_cross_leave(team, frame);
    return DTI_FAIL(
        DITTO_ERR_CONTEXT,
        "%s was called inside a run: the replicas of a run have the groupings that were made before "
        "it",
        what);
}

/* Makes a grouping between two runs. */
static ditto_status make(struct dti_team *team, const struct dti_division *division, ditto_grouping **out)
{
    ditto_status status = dti_grouping_make(team, division, out);
    dti_sync_run_ended(team); /* if the job of the replicas has failed */
    return status;
}

ditto_status ditto_strategy_split(ditto_strategy *strategy, const uint32_t *colors, const uint32_t *keys,
                                  uint32_t count, ditto_grouping **out)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_not_null(colors, "colors"));
    DTI_TRY(dti_not_null(out, "out"));
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(check_kind(team, "ditto_strategy_split"));
    if (count != dti_team_all_replicas(team))
        return DTI_FAIL(DITTO_ERR_INVALID, "count = %u, but the strategy has %u replicas: give each a color",
                        count, dti_team_all_replicas(team));
    DTI_TRY(begin(team, "ditto_strategy_split", &frame));
    ditto_status status = make(team, &(struct dti_division){ "", colors, keys }, out);
    dti_cross_leave(team, &frame);
    return status;
}

static ditto_status check_axes(const struct dti_team *team, const ditto_mesh_axis *axes, uint32_t num_axes)
{
    size_t product = 1;
    if (num_axes == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_axes = 0: a mesh has an axis");
    for (uint32_t a = 0; a < num_axes; a++) {
        DTI_TRY_OF(dti_not_null(axes[a].name, "name"), "axis %u of %u", a, num_axes);
        if (axes[a].name[0] == '\0' || strlen(axes[a].name) > DITTO_MAX_LABEL_BYTES)
            return DTI_FAIL(DITTO_ERR_RANGE, "axis %u: its name has %zu bytes, give it 1 to %d", a,
                            strlen(axes[a].name), DITTO_MAX_LABEL_BYTES);
        if (axes[a].extent == 0)
            return DTI_FAIL(DITTO_ERR_RANGE, "axis %u (\"%s\") has the extent 0: the least is 1", a,
                            axes[a].name);
        if (!dti_multiply(product, axes[a].extent, &product))
            product = SIZE_MAX;
    }
    if (product != dti_team_all_replicas(team))
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "the extents of the mesh multiply to %zu, but the strategy has %u replicas", product,
                        dti_team_all_replicas(team));
    return DITTO_OK;
}

/* Makes the groupings of all axes, or none. `colors` and `keys` have room for an entry for each replica. */
static ditto_status make_axes(struct dti_team *team, const ditto_mesh_axis *axes, uint32_t num_axes,
                              uint32_t *colors, uint32_t *keys, ditto_grouping **out)
{
    uint32_t stride = dti_team_all_replicas(team);
    for (uint32_t a = 0; a < num_axes; a++) {
        /* Replicas that differ in their place along the axis alone have equal colors. */
        stride /= axes[a].extent;
        for (uint32_t i = 0; i < dti_team_all_replicas(team); i++) {
            keys[i] = i / stride % axes[a].extent;
            colors[i] = i - keys[i] * stride;
        }
        ditto_status status = make(team, &(struct dti_division){ axes[a].name, colors, keys }, &out[a]);
        if (status != DITTO_OK) {
            while (a > 0)
                dti_grouping_destroy(out[--a]);
            return status;
        }
    }
    return DITTO_OK;
}

ditto_status ditto_strategy_mesh(ditto_strategy *strategy, const ditto_mesh_axis *axes, uint32_t num_axes,
                                 ditto_grouping **out)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_not_null(axes, "axes"));
    DTI_TRY(dti_not_null(out, "out"));
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(check_kind(team, "ditto_strategy_mesh"));
    DTI_TRY(check_axes(team, axes, num_axes));
    DTI_TRY(begin(team, "ditto_strategy_mesh", &frame));
    uint32_t n = dti_team_all_replicas(team), *places = calloc(2 * (size_t)n, sizeof *places);
    ditto_grouping **made = calloc(num_axes, sizeof(ditto_grouping *));
    ditto_status status = places != NULL && made != NULL
                              ? make_axes(team, axes, num_axes, places, places + n, made)
                              : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a mesh of %u replicas", n);
    if (status == DITTO_OK)
        memcpy((void *)out, (void *)made, num_axes * sizeof(ditto_grouping *));
    free(places);
    free((void *)made);
    dti_cross_leave(team, &frame);
    return status;
}

ditto_status ditto_grouping_destroy(ditto_grouping *grouping)
{
    bool took_turn;
    DTI_ENTER();
    if (grouping == NULL)
        return DITTO_OK;
    struct dti_team *team = grouping->team;
    if (team == NULL) {
        dti_grouping_destroy(grouping);
        return DITTO_OK;
    }
    DTI_TRY(dti_context_check_outside("grouping"));
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (!dti_team_try_turn(team, &took_turn))
        return DTI_FAIL(DITTO_ERR_BUSY, "a run or another call uses the strategy of the grouping: destroy it "
                                        "afterwards");
    /* A replica that has not returned may use it, and change the number of pauses. */
    bool is_kept = dti_team_is_poisoned(team);
    ditto_status status = is_kept || dti_team_pauses(team) == 0
                              ? DITTO_OK
                              : DTI_FAIL(DITTO_ERR_BUSY,
                                         "the grouping is in use by the run that this call is "
                                         "in: destroy it after the run");
    if (is_kept)
        grouping->is_of_library = true;
    else if (status == DITTO_OK && grouping->users != 0)
        status = DTI_FAIL(
            DITTO_ERR_BUSY,
            "%u variable%s sliced along the grouping, or mirrored in its groups: destroy %s first",
            grouping->users, grouping->users > 1 ? "s are" : " is", grouping->users > 1 ? "them" : "it");
    if (status == DITTO_OK && !is_kept)
        dti_grouping_destroy(grouping);
    dti_team_give_turn(team, took_turn);
    return status;
}

ditto_status ditto_group_of(ditto_replica *self, const ditto_grouping *grouping, ditto_group *out)
{
    struct dti_replica *replica;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_self(self, &replica));
    DTI_TRY(dti_not_null(grouping, "grouping"));
    DTI_TRY(dti_not_null(out, "out"));
    return dti_grouping_find(replica, grouping, out);
}
