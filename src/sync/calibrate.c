/* src/sync/calibrate.c - see calibrate.h. */
#include "sync/calibrate.h"
#include "replicas/jobs/jobs.h"
#include "replicas/memory/arena.h"
#include "replicas/placement/placement.h"
#include "sync/algorithms/collective.h"
#include "sync/meeting/meeting.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* -- hops of a cache line from one core to another -- */

enum { HOP_BATCHES = 10, HOPS = 20, HOPS_NS = 500000, OVER = INT32_MAX };

struct hops {
    struct {
        alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t word;
    } ball[2];

    /* For each distance, the replicas pair - 1 and pair are measured. 0 if no neighbours have this
     * distance. */
    uint32_t pair[DTI_DISTANCES];

    double ns[DTI_DISTANCES];

    /* The distance that is measured now. Only one pair is measured at a time. */
    _Atomic uint32_t distance;
};

static void await_word(_Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t polls = 1; atomic_load_explicit(word, memory_order_acquire) != value; polls++) {
        dti_pause();
        if (polls % 1024 == 0) /* another thread may occupy the PU of the other replica */
            sched_yield();
    }
}

/* Side 0 of a pair, which is the replica with the lower id. Measures batches of hops there and back, until
 * HOP_BATCHES are made or HOPS_NS have passed. Returns the best batch, in nanoseconds per hop. Only this side
 * reads the clock, so it ends the measurement with the number OVER. */
static double lead(struct hops *h)
{
    uint64_t first = dti_now_ns(), begin = first;
    double best = 0;
    uint32_t number = 1;
    for (uint32_t batch = 0; batch < HOP_BATCHES && begin - first < HOPS_NS; batch++) {
        for (uint32_t hop = 0; hop < HOPS; hop++, number++) {
            atomic_store_explicit(&h->ball[0].word, number, memory_order_release);
            await_word(&h->ball[1].word, number);
        }
        uint64_t end = dti_now_ns();
        double ns = (double)(end - begin) / (2 * HOPS);
        best = batch == 0 || ns < best ? ns : best;
        begin = end;
    }
    atomic_store_explicit(&h->ball[0].word, OVER, memory_order_release);
    await_word(&h->ball[1].word, OVER);
    return best;
}

/* Side 1 of a pair. Answers every number, the last of which is OVER. */
static void follow(struct hops *h)
{
    uint32_t number = 0;
    while (number != OVER) {
        uint32_t before = number;
        while ((number = atomic_load_explicit(&h->ball[0].word, memory_order_acquire)) == before)
            dti_pause();
        atomic_store_explicit(&h->ball[1].word, number, memory_order_release);
    }
}

static ditto_status measure_hops(struct dti_replica *self, void *argument)
{
    struct hops *h = argument;
    for (uint32_t d = 0; d < DTI_DISTANCES; d++) {
        if (h->pair[d] == 0 || self->index + 1 < h->pair[d] || self->index > h->pair[d])
            continue;
        /* Side 0 of the previous pair stores the next distance when it has finished. */
        await_word(&h->distance, d);
        if (self->index == h->pair[d]) {
            follow(h);
            continue;
        }
        h->ns[d] = lead(h);
        /* Both are relaxed, because `distance` publishes them. */
        atomic_store_explicit(&h->ball[0].word, 0, memory_order_relaxed);
        atomic_store_explicit(&h->ball[1].word, 0, memory_order_relaxed);
        uint32_t next = d + 1;
        while (next < DTI_DISTANCES && h->pair[next] == 0)
            next++;
        atomic_store_explicit(&h->distance, next, memory_order_release);
    }
    return DITTO_OK;
}

ditto_status dti_measure_hops(struct dti_team *team, const struct dti_machine_shape *shape,
                              struct dti_costs *costs)
{
    struct hops *h = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *h);
    uint32_t first = DTI_DISTANCES;
    if (dti_team_is_oversubscribed(team) || dti_team_num_replicas(team) == 1) {
        free(h);
        return DITTO_OK;
    }
    if (h == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to calibrate %u replicas",
                        dti_team_num_replicas(team));
    memset(h, 0, sizeof *h);
    for (uint32_t i = shape->n - 1; i > 0; i--)
        h->pair[shape->border[i]] = i;
    for (uint32_t d = DTI_DISTANCES; d-- > 0;)
        first = h->pair[d] != 0 ? d : first;
    atomic_init(&h->distance, first);
    ditto_status status = dti_team_run(team, measure_hops, h, false);
    for (uint32_t d = 0; d < DTI_DISTANCES && status == DITTO_OK; d++)
        if (h->pair[d] != 0)
            costs->hop_ns[d] = h->ns[d];
    free(h);
    return status;
}

/* -- thresholds -- */

enum { TRIES = 3, TRY_NS = 60000, BUDGET_NS = 30000000 };
enum { MOST_BYTES = 512 << 10 };

/* Where an operation has its result. With BOTH, the first half of the operations has it in place, and the
 * second half out of place. If the two took turns, every operation with two meetings would write two
 * announcements, and one with one meeting none, because meetings use two announcements by turns. So the
 * comparison holds for calls that are repeated. */
enum result_place { BOTH, IN_PLACE, OUT_OF_PLACE };

struct trial {
    /* The thresholds that are found, if the time is not up. Replica 0 sets them. */
    ditto_tuning found;

    uint64_t begin_ns;

    /* How often a try repeats the operation. Replica 0 sets this and the next member before a meeting, so
     * that all replicas use the same values. */
    uint32_t times;

    /* True if the time is up, because the machine is too busy to measure. The usual thresholds are then used
     * instead of these. */
    bool over;
};

/* A collective of `bytes`, with thresholds of its own: an all-reduce, or a broadcast from replica 0. */
struct attempt {
    size_t bytes;
    enum result_place place;
    ditto_tuning tuning;
    uint8_t pattern;
};

/* Returns an attempt with the algorithm and the form that no threshold asks for. */
static struct attempt plain_attempt(const struct dti_sync *sync, size_t bytes, enum result_place place)
{
    struct attempt attempt = { bytes, place, sync->tuning.given, DTI_PATTERN_ALL_REDUCE };
    attempt.tuning.small_bytes = 1;
    attempt.tuning.hierarchical_bytes = DITTO_NEVER_BYTES;
    attempt.tuning.stream_bytes = DITTO_NEVER_BYTES;
    attempt.tuning.fetch_bytes = DITTO_NEVER_BYTES;
    attempt.tuning.stage_bytes = attempt.tuning.stage_one_way_bytes = DITTO_NEVER_BYTES;
    return attempt;
}

/* Executes the operation `times` times. The second half of `data` is for results out of place. */
static ditto_status repeat(struct dti_replica *self, float *data, const struct attempt *attempt,
                           uint32_t times)
{
    struct dti_deadline deadline = { .timeout_ms = DITTO_FOREVER };
    bool reduces = attempt->pattern == DTI_PATTERN_ALL_REDUCE;
    for (uint32_t i = 0; i < times; i++) {
        bool in_place = attempt->place == IN_PLACE || (attempt->place == BOTH && i < times / 2);
        struct dti_call call = { .name = "calibration",
                                 .count = attempt->bytes / sizeof *data,
                                 .element_bytes = sizeof *data,
                                 .root = reduces ? DTI_NO_ROOT : 0,
                                 .pattern = attempt->pattern,
                                 .dtype = DITTO_F32,
                                 .op = reduces ? DITTO_MAX : 0,
                                 .src = data,
                                 .dst = in_place ? data : data + MOST_BYTES / sizeof *data };
        /* New data, because otherwise the lines of each part would stay in the cache of its owner. */
        if (reduces || self->index == 0)
            memset(data, 0, attempt->bytes);
        struct dti_prepared_call prepared = dti_prepare_call(self->sync, &attempt->tuning, &call, NULL);
        DTI_TRY(dti_collective_prepared(self, &prepared, NULL, &deadline));
        /* Reads one word of every line, as a user would, so that lines that others have written are
         * fetched. */
        for (size_t at = 0; at < attempt->bytes; at += DTI_CACHE_LINE)
            (void)*(const volatile float *)(const void *)((const char *)call.dst + at);
    }
    return DITTO_OK;
}

static ditto_status meet(struct dti_replica *self)
{
    struct dti_deadline deadline = { .timeout_ms = DITTO_FOREVER };
    struct dti_call call = { .name = "calibration", .root = DTI_NO_ROOT };
    struct dti_arrival arrival = { .call = &call };
    uint32_t seq;
    return dti_meet(self, &arrival, &deadline, &seq);
}

/* Returns in *ns the time of one operation in nanoseconds. Only the time of replica 0 is used. Each try
 * begins with an operation that is not measured, or with one in each place, because otherwise this attempt
 * would pay for lines that the other attempt has left in the cache of the other replica. */
static ditto_status time_try(struct dti_replica *self, float *data, const struct attempt *attempt,
                             uint32_t times, double *ns)
{
    DTI_TRY(repeat(self, data, attempt, attempt->place == BOTH ? 2 : 1));
    DTI_TRY(meet(self));
    uint64_t begin = dti_now_ns();
    DTI_TRY(repeat(self, data, attempt, times));
    DTI_TRY(meet(self)); /* the other replicas may still read */
    *ns = (double)(dti_now_ns() - begin) / times;
    return DITTO_OK;
}

/* Makes one try to find out how often the next ones repeat the operation, and whether there is time left. */
static ditto_status plan_tries(struct dti_replica *self, struct trial *trial, float *data,
                               const struct attempt *attempt)
{
    double ns;
    /* All replicas meet in the try, so none still uses `times` and `over` of the comparison before. */
    DTI_TRY(time_try(self, data, attempt, 1, &ns));
    if (self->index == 0) {
        uint32_t least = attempt->place == BOTH ? 2 : 1;
        trial->times = ns * 40 < TRY_NS ? 40 : ns * least > TRY_NS ? least : (uint32_t)(TRY_NS / ns);
        trial->times -= trial->times % least; /* as many in place as out of place */
        trial->over = dti_now_ns() - trial->begin_ns > BUDGET_NS;
    }
    return meet(self);
}

/* Sets *first_is_faster to true if the first attempt takes at most `most_share` of the time of the second.
 * The two are tried by turns, so that a disturbance affects both, and the best of TRIES tries counts. */
static ditto_status compare(struct dti_replica *self, struct trial *trial, float *data,
                            const struct attempt *first, const struct attempt *second, double most_share,
                            bool *first_is_faster)
{
    double best[2] = { 0, 0 };
    *first_is_faster = false;
    DTI_TRY(plan_tries(self, trial, data, first));
    int tries = first->bytes < MOST_BYTES ? TRIES : TRIES - 1; /* a long one is disturbed less */
    for (int i = 0; i < tries && !trial->over; i++)
        for (int k = 0; k < 2; k++) {
            double ns;
            DTI_TRY(time_try(self, data, k == 0 ? first : second, trial->times, &ns));
            best[k] = i == 0 || ns < best[k] ? ns : best[k];
        }
    *first_is_faster = !trial->over && best[0] <= most_share * best[1];
    return DITTO_OK;
}

/* Finds the largest number of bytes, read from all others together, for which one meeting with payloads is
 * faster than two meetings without. 512, 1024, 2048 and 4096 are possible. 512 is not tried. */
static ditto_status find_small(struct dti_replica *self, struct trial *trial, float *data)
{
    uint32_t others = self->num_replicas - 1;
    size_t found = 512;
    for (size_t total = 1024; total <= DTI_PAYLOAD_BYTES; total *= 2) {
        struct attempt direct = plain_attempt(self->sync, total / others / 4 * 4, BOTH), payloads = direct;
        payloads.tuning.small_bytes = SIZE_MAX;
        /* With so many replicas, each payload fits into the line of the word anyway. */
        bool faster = payloads.bytes < DTI_INLINE_PAYLOAD_BYTES;
        if (!faster)
            DTI_TRY(compare(self, trial, data, &payloads, &direct, 1, &faster));
        if (faster && found == total / 2)
            found = total;
    }
    if (self->index == 0)
        trial->found.small_bytes = found;
    return DITTO_OK;
}

/* Finds the smallest size from which on the algorithm with groups is faster, for all larger sizes that are
 * tried too. */
static ditto_status find_hierarchical(struct dti_replica *self, struct trial *trial, float *data)
{
    size_t found = DITTO_NEVER_BYTES;
    const size_t most = 256 << 10;
    for (size_t bytes = most; bytes >= (16 << 10); bytes /= 4) {
        struct attempt flat = plain_attempt(self->sync, bytes, BOTH), groups = flat;
        bool faster;
        groups.tuning.hierarchical_bytes = 1;
        DTI_TRY(compare(self, trial, data, &groups, &flat, 1, &faster));
        if (faster && (found == bytes * 4 || bytes == most))
            found = bytes;
    }
    if (self->index == 0)
        trial->found.hierarchical_bytes = found;
    return DITTO_OK;
}

/* What is not usual must be faster than what is usual by more than noise. */
#define UNUSUAL_MOST_SHARE 0.9

/* Finds out whether results out of place that are not small are faster past the caches. Where replicas share
 * no cache, a non-temporal store saves the transfer of a line that another core has read: an all-reduce of
 * 512 KiB took 159 us instead of 305 us on two cores of a Zen 4, but 79 us instead of 48 us on two threads of
 * one core. If it is not faster, stream_bytes stays what it was. */
static ditto_status find_stream(struct dti_replica *self, struct trial *trial, float *data)
{
    struct attempt usual = plain_attempt(self->sync, MOST_BYTES, OUT_OF_PLACE), streams = usual;
    bool faster;
    streams.tuning.stream_bytes = 1;
    DTI_TRY(compare(self, trial, data, &streams, &usual, UNUSUAL_MOST_SHARE, &faster));
    if (self->index == 0 && faster)
        trial->found.stream_bytes = (size_t)MOST_BYTES * self->num_replicas;
    return DITTO_OK;
}

/* Finds out whether a result in place should be fetched for writing before it is read. Processors disagree:
 * on one of family 6, model 85 an all-reduce of 512 KiB took 136 us, and 59 us with fetching, and on a Zen 4
 * 10.3 us, and 11.2 us. On the first one it was faster for all sizes from 8 KiB to 1 MiB, so one is
 * tried. */
static ditto_status find_fetch(struct dti_replica *self, struct trial *trial, float *data)
{
    struct attempt usual = plain_attempt(self->sync, MOST_BYTES, IN_PLACE), fetches = usual;
    bool faster;
    fetches.tuning.fetch_bytes = 1;
    DTI_TRY(compare(self, trial, data, &fetches, &usual, UNUSUAL_MOST_SHARE, &faster));
    if (self->index == 0)
        trial->found.fetch_bytes = faster ? 1 : DITTO_NEVER_BYTES;
    return DITTO_OK;
}

/* Finds the smallest size from which on a collective by way of staging memory is faster than with the other
 * thresholds. It must be faster for all larger sizes that are tried, too. */
static ditto_status find_stage(struct dti_replica *self, struct trial *trial, float *data, uint8_t pattern,
                               const size_t *tried, uint32_t sizes, size_t *threshold)
{
    size_t found = DITTO_NEVER_BYTES;
    if (self->sync->state[0].stage == NULL)
        return DITTO_OK; /* the usual threshold stays */
    DTI_TRY(meet(self)); /* replica 0 has set the other thresholds */
    bool is_faster = true;
    for (uint32_t i = 0; i < sizes; i++) {
        /* An all-reduce in place is not staged. But from the threshold on it does not use the mailboxes
         * either, so both places are compared at the sizes of mailboxes. */
        enum result_place place = pattern == DTI_PATTERN_BROADCAST ? IN_PLACE
                                  : tried[i] > DTI_PAYLOAD_BYTES   ? OUT_OF_PLACE
                                                                   : BOTH;
        bool faster;
        struct attempt usual = { tried[i], place, trial->found, pattern }, staged;
        usual.tuning.stage_bytes = usual.tuning.stage_one_way_bytes = DITTO_NEVER_BYTES;
        staged = usual;
        staged.tuning.stage_bytes = staged.tuning.stage_one_way_bytes = 1;
        DTI_TRY(compare(self, trial, data, &staged, &usual, UNUSUAL_MOST_SHARE, &faster));
        is_faster = is_faster && faster;
        if (is_faster)
            found = tried[i];
    }
    if (self->index == 0)
        *threshold = found;
    return DITTO_OK;
}

static ditto_status measure(struct dti_replica *self, void *argument)
{
    static const size_t both_ways[] = { MOST_BYTES, 64 << 10, 8 << 10, 4 << 10, 2 << 10 };
    static const size_t one_way[] = { 128 << 10, 32 << 10, 8 << 10, 4 << 10, 2 << 10 };
    struct trial *trial = argument;
    void *data;
    DTI_TRY(dti_replica_alloc(self, 2 * MOST_BYTES, DTI_CACHE_LINE, &data));
    memset(data, 0, 2 * MOST_BYTES);
    ditto_status status = find_small(self, trial, data);
    if (status == DITTO_OK)
        status = find_stream(self, trial, data);
    if (status == DITTO_OK)
        status = find_fetch(self, trial, data);
    if (status == DITTO_OK && self->sync->groups.groups > 1)
        status = find_hierarchical(self, trial, data);
    if (status == DITTO_OK)
        status = find_stage(self, trial, data, DTI_PATTERN_ALL_REDUCE, both_ways, 5,
                            &trial->found.stage_bytes);
    if (status == DITTO_OK)
        status = find_stage(self, trial, data, DTI_PATTERN_BROADCAST, one_way, 5,
                            &trial->found.stage_one_way_bytes);
    dti_arena_free(self->arena, data);
    return status;
}

/* ThreadSanitizer defines these functions. If only the program is compiled with it, it sees the copies that
 * the library makes by memcpy, but not the atomics that order them. Between Begin and End it ignores this
 * thread. If the library is compiled with it, it sees all, and is to check the measurements, too. */
#if defined(__SANITIZE_THREAD__)
#define IS_CHECKED true
#elif defined(__has_feature)
#define IS_CHECKED __has_feature(thread_sanitizer)
#else
#define IS_CHECKED false
#endif
void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

static ditto_status measure_unseen(struct dti_replica *self, void *argument)
{
    if (IS_CHECKED || AnnotateIgnoreReadsBegin == NULL || AnnotateIgnoreWritesBegin == NULL)
        return measure(self, argument);
    AnnotateIgnoreReadsBegin("", 0);
    AnnotateIgnoreWritesBegin("", 0);
    ditto_status status = measure(self, argument);
    AnnotateIgnoreWritesEnd("", 0);
    AnnotateIgnoreReadsEnd("", 0);
    return status;
}

/* Returns the total size of the different last-level caches of the replicas' PUs. */
static size_t cache_bytes(const ditto_placement *placement)
{
    const struct dti_replica_grouping *caches = &placement->level[DTI_LEVEL_LLC];
    size_t bytes = 0;
    for (uint32_t i = 0; i < caches->groups; i++) {
        const struct dti_pu *pu = dti_placement_leader(placement, caches->member[caches->first[i]]);
        if (pu->caches > 0)
            bytes += pu->cache[pu->caches - 1].bytes;
    }
    return bytes;
}

ditto_status dti_measure_thresholds(struct dti_sync *sync, ditto_tuning *tuning, bool *in_time)
{
    size_t cache = cache_bytes(dti_team_options(sync->team)->placement);
    if (cache != 0) /* sources and results out of place fill two thirds then */
        tuning->stream_bytes = cache / 3;
    struct trial trial = { .found = *tuning, .begin_ns = dti_now_ns() };
    trial.found.hierarchical_bytes = DITTO_NEVER_BYTES;
    *in_time = true;
    /* In groups, replicas wait for one another in every block. On shared PUs each wait costs a change of
     * threads, and nothing could be measured there. */
    if (sync->oversubscribed)
        tuning->hierarchical_bytes = DITTO_NEVER_BYTES;
    if (sync->oversubscribed || sync->num_replicas == 1)
        return DITTO_OK;
    DTI_TRY(dti_team_run(sync->team, measure_unseen, &trial, false));
    *in_time = !trial.over;
    if (!trial.over)
        *tuning = trial.found;
    return DITTO_OK;
}
