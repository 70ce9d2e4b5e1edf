/* src/sync/grouping/grouping.h - groupings of the replicas of a strategy (ditto/group.h).
 *
 * A group has its own state of collectives: mailboxes, tree, plans, started operations. Each member has a
 * copy of its struct dti_replica for it, which has the group's state, and counts the members as if they were
 * a team. So the code of collectives does not know about groups. It runs on the member's own thread, which is
 * in one collective at a time.
 *
 * Like a team, a group has one state for each level of runs inside runs. The state of a level is made when
 * the grouping is made (level 0), or when the first run of that level begins. */
#ifndef DTI_GROUPING_H
#define DTI_GROUPING_H

#include <ditto/group.h>

#include "replicas/team/team.h"
#include "sync/meeting/sync_state.h"

/* A group that is not on this host, or a replica that is in none. */
#define DTI_NO_GROUP UINT32_MAX

/* The groups at one level. */
struct dti_grouping_level {
    struct dti_sync **sync; /* [groups] NULL if the group is on another host */

    /* [members] The copies of replicas, group by group, in the order of ranks. */
    struct dti_replica *member;
};

struct ditto_grouping {
    struct dti_team *team; /* NULL when the strategy has ended. Then no other member is used. */
    struct dti_groupings *all;
    uint32_t slot;
    uint64_t number;            /* no two groupings of a process have the same */
    char name[DTI_LABEL_BYTES]; /* of the axis; empty if it was split by colors */
    uint32_t replicas;          /* of all hosts */

    /* The number of variables that are sliced along the groups, or mirrored in them. Guarded by the turn. */
    uint32_t users;

    /* True if the library made it for such variables, or if its user has destroyed it while the team was
     * poisoned. It is destroyed with the last of them, or then with the team. */
    bool is_of_library;
    uint32_t groups;
    uint32_t *color; /* [groups] */

    /* [groups + 1] The members of group g are replica[start[g]] to replica[start[g + 1] - 1], by rank. */
    uint32_t *start;
    uint32_t *replica; /* ids */

    /* [replicas] By id: where the replica is in `replica`, or DTI_NO_GROUP. */
    uint32_t *position;
    struct dti_grouping_level level[DTI_LEVELS];
};

/* How the replicas are divided. The arrays have an entry for each replica of all hosts. */
struct dti_division {
    const char *name;
    const uint32_t *colors;
    const uint32_t *keys; /* may be NULL */
};

/* -- Cross-replica context, no run is active, the caller is between dti_cross_enter and dti_cross_leave -- */

/* Makes an empty list. Fails with NO_MEMORY. */
ditto_status dti_groupings_make(struct dti_groupings **out);
/* Frees the list, and what all groupings consist of, but not what is in the arenas of replicas. The structs
 * of the groupings stay until dti_grouping_destroy. NULL is ignored. */
void dti_groupings_free(struct dti_groupings *all);

/* Fails with INVALID, UNSUPPORTED or NO_MEMORY. */
ditto_status dti_grouping_make(struct dti_team *team, const struct dti_division *division,
                               ditto_grouping **out);
void dti_grouping_destroy(ditto_grouping *grouping);

/* Returns true if the grouping is in the list. It is only compared. */
bool dti_grouping_is_listed(const struct dti_groupings *all, const ditto_grouping *grouping);

/* Sets *out to the grouping whose groups are the replicas of equal rank in `along`, which are numbered by
 * that rank. It is one that exists, or is made. Adds a user to both. Fails as dti_grouping_make, and with
 * CONTEXT if it would have to be made in a run. */
ditto_status dti_grouping_across(ditto_grouping *along, ditto_grouping **out);

/* Removes a user, and destroys a grouping of the library that has no other. */
void dti_grouping_drop(ditto_grouping *grouping);

/* Writes a line for each grouping. */
void dti_groupings_describe(const struct dti_sync *sync, struct dti_text *text);

/* -- The thread that posts a run -- */

/* Makes the groups of all groupings at a level of runs, where they are not made yet. `whole` is the state of
 * the team at that level. Fails with NO_MEMORY. */
ditto_status dti_groupings_go_in(struct dti_sync *whole, uint32_t level);

/* Resets what a stopped run of this level has left behind. */
void dti_groupings_reset(const struct dti_groupings *all, uint32_t level);

/* -- Any thread, while the grouping exists -- */

/* Returns the size of group g. */
static inline uint32_t dti_grouping_size(const ditto_grouping *grouping, uint32_t g)
{
    return grouping->start[g + 1] - grouping->start[g];
}

/* Returns the group of a replica that is in one. */
uint32_t dti_grouping_group(const ditto_grouping *grouping, uint32_t id);

/* Returns the rank of a replica that is in a group. */
static inline uint32_t dti_grouping_rank(const ditto_grouping *grouping, uint32_t id)
{
    return grouping->position[id] - grouping->start[dti_grouping_group(grouping, id)];
}

/* -- The replica's own thread -- */

/* The same as ditto_group_of. */
ditto_status dti_grouping_find(struct dti_replica *self, const ditto_grouping *grouping, ditto_group *out);

/* Returns the member that stands for a replica of the team in its group, at the level of the present run. */
struct dti_replica *dti_grouping_member(struct dti_replica *self, const ditto_grouping *grouping);

/* Returns the copy of a replica of the team that is at an address, in some group at the level of the present
 * run, or NULL if there is none. *of_team is true if there is a copy of another replica of the team. */
struct dti_replica *dti_group_copy(struct dti_replica *self, const void *address, bool *of_team);

/* Returns the member that stands for a replica of the team in a group of the present run. Fails with INVALID
 * if it is not a member, or if the group is not of this run and strategy. */
ditto_status dti_group_member(struct dti_replica *self, const ditto_group *group, const char *function,
                              struct dti_replica **out);

#endif
