/* src/sync/grouping/grouping.c - makes groups, and finds that of a replica. See grouping.h. */
#include "sync/grouping/grouping.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/grouping/state.h"
#include "sync/hosts/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ditto_status dti_groupings_make(struct dti_groupings **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? DITTO_OK : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the list of groupings");
}

/* -- the groups of one level -- */

/* Frees what the replicas of a level have in their own memory. */
static void free_members(const ditto_grouping *g, const struct dti_grouping_level *level)
{
    for (uint32_t k = 0; k < g->groups; k++)
        for (uint32_t rank = 0; level->sync[k] != NULL && rank < dti_grouping_size(g, k); rank++)
            dti_sync_state_free(&level->member[g->start[k] + rank], level->sync[k]);
}

static void release_level(const ditto_grouping *g, struct dti_grouping_level *level)
{
    for (uint32_t k = 0; level->sync != NULL && k < g->groups; k++)
        if (level->sync[k] != NULL)
            dti_sync_state_release(level->sync[k]);
    free(level->sync);
    free(level->member);
    *level = (struct dti_grouping_level){ NULL, NULL };
}

/* Makes a copy of a replica of the team that stands for it in a group. What changes from run to run is copied
 * in each run, by the replica itself (begin_run). */
static void copy_replica(struct dti_replica *of_team, struct dti_sync *sync, uint32_t rank,
                         struct dti_replica *out)
{
    *out = (struct dti_replica){ .index = rank,
                                 .rank = rank,
                                 .id = of_team->id,
                                 .place = of_team->place,
                                 .num_replicas = sync->num_replicas,
                                 .all_replicas = sync->num_replicas,
                                 .team = of_team->team,
                                 .of_team = of_team,
                                 .arena = of_team->arena,
                                 .pu = of_team->pu,
                                 .pus = of_team->pus,
                                 .crew = of_team->crew,
                                 .sync = sync,
                                 .stop = of_team->stop,
                                 .wait_queue = of_team->wait_queue,
                                 .timeout_ms = of_team->timeout_ms,
                                 .process = of_team->process,
                                 .run_deadline_ns = of_team->run_deadline_ns };
}

/* Returns the distance of two replicas of the machine's row. */
static uint8_t distance(const struct dti_machine_shape *shape, uint32_t a, uint32_t b)
{
    uint8_t most = 0;
    for (uint32_t i = (a < b ? a : b) + 1; i <= (a < b ? b : a); i++)
        most = shape->border[i] > most ? shape->border[i] : most;
    return most;
}

/* Returns true if two members are on the same PU. */
static bool shares_pus(const struct dti_replica *member, uint32_t n)
{
    struct dti_mask pus;
    dti_mask_clear(&pus);
    for (uint32_t i = 0; i < n; i++) {
        if (dti_mask_has(&pus, member[i].pu.number))
            return true;
        dti_mask_add(&pus, member[i].pu.number);
    }
    return false;
}

static void name_group(const ditto_grouping *g, uint32_t group, struct dti_sync *sync)
{
    struct dti_text text = { sync->group_text, sizeof sync->group_text, 0 };
    if (g->name[0] != '\0')
        dti_text_add(&text, " in group %u of \"%s\"", group, g->name);
    else
        dti_text_add(&text, " in the group of color %u of split %u", g->color[group], g->slot);
}

/* Makes the state of a group and the copies of its replicas, without what they have in their own memory. */
static ditto_status make_group(const ditto_grouping *g, uint32_t group, struct dti_sync *whole,
                               struct dti_grouping_level *level)
{
    uint32_t n = dti_grouping_size(g, group), first = dti_team_first_replica(g->team);
    struct dti_replica *member = &level->member[g->start[group]];
    const uint32_t *id = &g->replica[g->start[group]];
    struct dti_sync *sync;
    DTI_TRY(dti_sync_state_make(g->team, member, n, whole, &sync));
    level->sync[group] = sync;
    sync->whole = whole;
    name_group(g, group, sync);
    for (uint32_t rank = 0; rank < n; rank++) {
        copy_replica(&whole->replica[id[rank] - first], sync, rank, &member[rank]);
        sync->state[rank].reported = &whole->state[id[rank] - first];
    }
    /* Two replicas of a group that have PUs of their own do not share them with each other, also if they do
     * with replicas of other groups. */
    sync->oversubscribed = whole->oversubscribed &&
                           (!dti_team_options(g->team)->pin || shares_pus(member, n));
    sync->shape.n = n;
    for (uint32_t rank = 1; rank < n; rank++)
        sync->shape.border[rank] = distance(&whole->shape, id[rank - 1] - first, id[rank] - first);
    sync->tree = (struct dti_tree){ .n = n };
    return dti_sync_state_plan(sync);
}

/* The job in which replicas make what they have in their own memory. */
struct level_making {
    const ditto_grouping *grouping;
    const struct dti_grouping_level *level;
};

static ditto_status make_member(struct dti_replica *r, void *argument)
{
    const struct level_making *m = argument;
    uint32_t position = m->grouping->position[r->id];
    if (position == DTI_NO_GROUP)
        return DITTO_OK;
    struct dti_replica *member = &m->level->member[position];
    return dti_sync_state_allocate(member, member->sync);
}

static ditto_status make_level(ditto_grouping *g, struct dti_sync *whole, uint32_t number)
{
    struct dti_grouping_level *level = &g->level[number];
    ditto_status status = DITTO_OK;
    size_t bytes = g->start[g->groups] * sizeof *level->member;
    level->sync = calloc(g->groups, sizeof(struct dti_sync *));
    level->member = aligned_alloc(DTI_CACHE_LINE_PAIR, bytes);
    if (level->sync == NULL || level->member == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u groups", g->groups);
    else
        memset((void *)level->member, 0, bytes);
    for (uint32_t k = 0; k < g->groups && status == DITTO_OK; k++) {
        uint32_t index;
        if (dti_team_index(g->team, g->replica[g->start[k]], &index) == DITTO_OK)
            status = make_group(g, k, whole, level);
    }
    if (status == DITTO_OK) {
        status = dti_team_run(g->team, make_member, &(struct level_making){ g, level }, false);
        if (status != DITTO_OK && !dti_team_forked(g->team))
            free_members(g, level);
    }
    if (status != DITTO_OK) {
        release_level(g, level);
        return status;
    }
    for (uint32_t k = 0; k < g->groups; k++)
        if (level->sync[k] != NULL)
            dti_sync_state_reset(level->sync[k]);
    return DITTO_OK;
}

ditto_status dti_groupings_go_in(struct dti_sync *whole, uint32_t level)
{
    for (uint32_t i = 0; i < whole->groupings->slots; i++) {
        ditto_grouping *g = whole->groupings->of_slot[i];
        if (g != NULL && g->level[level].sync == NULL)
            DTI_TRY(make_level(g, whole, level));
    }
    return DITTO_OK;
}

void dti_groupings_reset(const struct dti_groupings *all, uint32_t level)
{
    for (uint32_t i = 0; i < all->slots; i++) {
        const ditto_grouping *g = all->of_slot[i];
        for (uint32_t k = 0; g != NULL && g->level[level].sync != NULL && k < g->groups; k++)
            if (g->level[level].sync[k] != NULL)
                dti_sync_state_reset(g->level[level].sync[k]);
    }
}

/* -- a grouping -- */

/* A replica, while groups are formed. */
struct colored {
    uint32_t color, key, id;
};

static int by_color(const void *left, const void *right)
{
    const struct colored *a = left, *b = right;
    if (a->color != b->color)
        return a->color < b->color ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* Forms groups of the replicas that have a color. They are sorted, and those without a color are the last. */
static void form_groups(ditto_grouping *g, const struct colored *sorted)
{
    uint32_t members = 0;
    for (uint32_t i = 0; i < g->replicas; i++)
        g->position[i] = DTI_NO_GROUP;
    for (; members < g->replicas && sorted[members].color != DITTO_NO_COLOR; members++) {
        if (members == 0 || sorted[members].color != sorted[members - 1].color) {
            g->color[g->groups] = sorted[members].color;
            g->start[g->groups++] = members;
        }
        g->replica[members] = sorted[members].id;
        g->position[sorted[members].id] = members;
    }
    g->start[g->groups] = members;
}

/* A group is on one host. All hosts look at all groups, so all find the same error. */
static ditto_status check_hosts(const ditto_grouping *g, const struct dti_hosts *hosts)
{
    for (uint32_t k = 0; hosts != NULL && k < g->groups; k++) {
        const uint32_t *id = &g->replica[g->start[k]];
        uint32_t here = 1;
        while (here < dti_grouping_size(g, k) && dti_hosts_of(hosts, id[here]) == dti_hosts_of(hosts, id[0]))
            here++;
        if (here != dti_grouping_size(g, k))
            return DTI_FAIL(
                DITTO_ERR_UNSUPPORTED,
                "group %u%s%s has replicas on several hosts, %u and %u: collectives of groups work "
                "within one host",
                k, g->name[0] != '\0' ? " of " : "", g->name, id[0], id[here]);
    }
    return g->groups != 0 ? DITTO_OK
                          : DTI_FAIL(DITTO_ERR_INVALID, "no replica has a color: a grouping has a group");
}

/* Frees what a grouping consists of, but not its struct. */
static void release_parts(ditto_grouping *g)
{
    for (uint32_t level = 0; level < DTI_LEVELS; level++)
        release_level(g, &g->level[level]);
    free(g->color);
    free(g->start);
    free(g->replica);
    free(g->position);
    g->team = NULL;
}

/* Frees a grouping that is in no list. */
static void release(ditto_grouping *g)
{
    release_parts(g);
    free(g);
}

static ditto_status allocate(struct dti_team *team, const char *name, ditto_grouping **out)
{
    static _Atomic uint64_t made;
    uint32_t n = dti_team_all_replicas(team);
    ditto_grouping *g = calloc(1, sizeof *g);
    if (g != NULL) {
        g->team = team;
        g->replicas = n;
        /* relaxed: the numbers only have to differ */
        g->number = 1 + atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
        memcpy(g->name, name, strlen(name) + 1);
        g->color = calloc(n, sizeof *g->color);
        g->start = calloc((size_t)n + 1, sizeof *g->start);
        g->replica = calloc(n, sizeof *g->replica);
        g->position = calloc(n, sizeof *g->position);
        *out = g;
        if (g->color != NULL && g->start != NULL && g->replica != NULL && g->position != NULL)
            return DITTO_OK;
        release(g);
    }
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the groups of %u replicas", n);
}

/* Puts a grouping into the list. */
static ditto_status enlist(ditto_grouping *g, struct dti_groupings *all)
{
    uint32_t slot = 0;
    while (slot < all->slots && all->of_slot[slot] != NULL)
        slot++;
    if (slot == all->slots) {
        void *longer = realloc((void *)all->of_slot, (slot + 1) * sizeof(ditto_grouping *));
        if (longer == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u groupings", slot + 1);
        all->of_slot = longer;
        all->slots++;
    }
    all->of_slot[slot] = g;
    all->count++;
    g->slot = slot;
    g->all = all;
    return DITTO_OK;
}

static void take_out(const ditto_grouping *g)
{
    g->all->of_slot[g->slot] = NULL;
    g->all->count--;
}

ditto_status dti_grouping_make(struct dti_team *team, const struct dti_division *division,
                               ditto_grouping **out)
{
    struct dti_sync *whole = dti_team_sync(team);
    uint32_t n = dti_team_all_replicas(team);
    struct colored *sorted = calloc(n, sizeof *sorted);
    ditto_grouping *g = NULL;
    ditto_status status = sorted == NULL ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u colors", n)
                                         : allocate(team, division->name, &g);
    if (status == DITTO_OK) {
        for (uint32_t i = 0; i < n; i++)
            sorted[i] = (struct colored){ division->colors[i], division->keys != NULL ? division->keys[i] : 0,
                                          i };
        qsort(sorted, n, sizeof *sorted, by_color);
        form_groups(g, sorted);
        status = check_hosts(g, whole->hosts);
        if (status == DITTO_OK)
            status = enlist(g, whole->groupings);
        if (status == DITTO_OK && (status = make_level(g, whole, 0)) != DITTO_OK)
            take_out(g);
        if (status != DITTO_OK)
            release(g);
        else
            *out = g;
    }
    free(sorted);
    return status;
}

void dti_grouping_destroy(ditto_grouping *g)
{
    if (g->team == NULL) { /* its strategy has ended */
        free(g);
        return;
    }
    take_out(g);
    for (uint32_t level = 0; level < DTI_LEVELS; level++)
        if (g->level[level].sync != NULL)
            free_members(g, &g->level[level]);
    release(g);
}

/* -- groupings of variables -- */

bool dti_grouping_is_listed(const struct dti_groupings *all, const ditto_grouping *grouping)
{
    uint32_t slot = 0;
    while (slot < all->slots && all->of_slot[slot] != grouping)
        slot++;
    return slot < all->slots;
}

uint32_t dti_grouping_group(const ditto_grouping *g, uint32_t id)
{
    uint32_t k = 0;
    while (g->position[id] >= g->start[k + 1])
        k++;
    return k;
}

/* Returns true if the groups of `g` are those of the colors, and ranks follow the ids. */
static bool has_colors(const ditto_grouping *g, const uint32_t *colors)
{
    for (uint32_t i = 0; i < g->replicas; i++)
        if (g->position[i] == DTI_NO_GROUP || dti_grouping_group(g, i) != colors[i] ||
            (dti_grouping_rank(g, i) > 0 && g->replica[g->position[i] - 1] > i))
            return false;
    return true;
}

ditto_status dti_grouping_across(ditto_grouping *along, ditto_grouping **out)
{
    uint32_t colors[DITTO_MAX_REPLICAS] = { 0 };
    const struct dti_groupings *all = along->all;
    *out = NULL;
    for (uint32_t i = 0; i < along->replicas; i++)
        colors[i] = dti_grouping_rank(along, i);
    for (uint32_t slot = 0; slot < all->slots && *out == NULL; slot++)
        if (all->of_slot[slot] != NULL && has_colors(all->of_slot[slot], colors))
            *out = all->of_slot[slot];
    if (*out == NULL && dti_team_pauses(along->team) != 0)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the replicas that mirror a slice are no groups of a grouping yet, and in a run none "
                        "can be made: create a first variable that is sliced along this grouping outside of "
                        "runs");
    if (*out == NULL) {
        char name[DTI_LABEL_BYTES];
        snprintf(name, sizeof name, "across %.40s", along->name[0] != '\0' ? along->name : "a split");
        DTI_TRY(dti_grouping_make(along->team, &(struct dti_division){ name, colors, NULL }, out));
        (*out)->is_of_library = true;
    }
    (*out)->users++;
    along->users++;
    return DITTO_OK;
}

void dti_grouping_drop(ditto_grouping *g)
{
    if (--g->users == 0 && g->is_of_library)
        dti_grouping_destroy(g);
}

void dti_groupings_free(struct dti_groupings *all)
{
    for (uint32_t i = 0; all != NULL && i < all->slots; i++) {
        ditto_grouping *g = all->of_slot[i];
        if (g != NULL)
            release_parts(g);
        if (g != NULL && g->is_of_library)
            free(g);
    }
    if (all != NULL)
        free((void *)all->of_slot);
    free(all);
}

void dti_groupings_describe(const struct dti_sync *sync, struct dti_text *text)
{
    static const char *const within[] = { "within caches", "across caches", "across NUMA nodes",
                                          "across packages" };
    for (uint32_t i = 0; i < sync->groupings->slots; i++) {
        const ditto_grouping *g = sync->groupings->of_slot[i];
        if (g != NULL && g->is_of_library)
            continue;
        uint32_t largest = 0;
        uint8_t most = 0;
        for (uint32_t k = 0; g != NULL && k < g->groups; k++) {
            const struct dti_sync *of_group = g->level[0].sync[k];
            largest = dti_grouping_size(g, k) > largest ? dti_grouping_size(g, k) : largest;
            for (uint32_t rank = 1; of_group != NULL && rank < dti_grouping_size(g, k); rank++)
                most = of_group->shape.border[rank] > most ? of_group->shape.border[rank] : most;
        }
        if (g != NULL)
            dti_text_add(text, "grouping %u (\"%s\"): %u group%s of at most %u replica%s, %s\n", g->slot,
                         g->name[0] != '\0' ? g->name : "split", g->groups, g->groups == 1 ? "" : "s",
                         largest, largest == 1 ? "" : "s", within[most]);
    }
}

/* -- in a run -- */

/* Returns the number of the run that the replica is in, or was in when it asked for its group last. */
static uint64_t run_number_of(const struct dti_replica *self)
{
    /* relaxed: only the replica itself writes it, or another thread between runs. */
    return atomic_load_explicit(&dti_replica_state_of(self)->run, memory_order_relaxed);
}

/* Called when a replica uses a group for the first time in a run. */
static void begin_run(struct dti_replica *member, const struct dti_replica *self)
{
    member->run = self->run;
    member->depth = self->depth;
    member->tracer = self->tracer;
    member->wait_policy = self->wait_policy;
    member->load_epoch = self->load_epoch;
    dti_number_run(dti_replica_state_of(member), run_number_of(self));
}

ditto_status dti_grouping_find(struct dti_replica *self, const ditto_grouping *grouping, ditto_group *out)
{
    /* The pointer is only compared, because the grouping may have been destroyed. */
    if (!dti_grouping_is_listed(self->sync->groupings, grouping))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the grouping is not one of this strategy: it was destroyed, or is another strategy's");
    uint32_t position = grouping->position[self->id];
    *out = (ditto_group){ .rank = DITTO_NO_REPLICA, .index = DITTO_NO_COLOR, .slot = grouping->slot };
    if (position == DTI_NO_GROUP)
        return DITTO_OK;
    const struct dti_replica *member = dti_grouping_member(self, grouping);
    uint32_t k = dti_grouping_group(grouping, self->id);
    *out = (ditto_group){ .index = k,
                          .rank = member->rank,
                          .size = member->num_replicas,
                          .replicas = &grouping->replica[grouping->start[k]],
                          .grouping = grouping->number,
                          .slot = grouping->slot,
                          .run = (uint32_t)run_number_of(self) };
    return DITTO_OK;
}

struct dti_replica *dti_grouping_member(struct dti_replica *self, const ditto_grouping *g)
{
    struct dti_replica *member = &g->level[self->depth].member[g->position[self->id]];
    if (run_number_of(member) != run_number_of(self))
        begin_run(member, self);
    return member;
}

struct dti_replica *dti_group_copy(struct dti_replica *self, const void *address, bool *of_team)
{
    const struct dti_groupings *all = self->sync->groupings;
    *of_team = false;
    for (uint32_t i = 0; i < all->slots; i++) {
        const ditto_grouping *g = all->of_slot[i];
        const struct dti_replica *member = g != NULL ? g->level[self->depth].member : NULL;
        if (member == NULL || (uintptr_t)address < (uintptr_t)member ||
            (uintptr_t)address >= (uintptr_t)(member + g->start[g->groups]))
            continue;
        *of_team = true;
        if (g->position[self->id] != DTI_NO_GROUP && address == &member[g->position[self->id]])
            return &g->level[self->depth].member[g->position[self->id]];
    }
    return NULL;
}

ditto_status dti_group_member(struct dti_replica *self, const ditto_group *group, const char *function,
                              struct dti_replica **out)
{
    const struct dti_groupings *all = self->sync->groupings;
    const ditto_grouping *g = group->slot < all->slots ? all->of_slot[group->slot] : NULL;
    if (g == NULL || g->number != group->grouping)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        group->size == 0
                            ? "%s: the group has no members: the replica is in no group of its grouping "
                              "(DITTO_NO_COLOR), or ditto_group_of has not set the group"
                            : "%s: the group is of no grouping of this strategy: its grouping was destroyed, "
                              "or is another strategy's, or the group was never set by ditto_group_of",
                        function);
    if (group->run != (uint32_t)run_number_of(self))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s: the group is of another run: ask for it in each run (ditto_group_of)", function);
    uint32_t position = g->position[self->id];
    if (position == DTI_NO_GROUP || group->index >= g->groups || position < g->start[group->index] ||
        position >= g->start[group->index + 1])
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s: replica %u is not a member of group %u: a replica calls with its "
                        "own group (ditto_group_of)",
                        function, self->id, group->index);
    *out = dti_grouping_member(self, g); /* the replica may use what another one has asked for */
    return DITTO_OK;
}
