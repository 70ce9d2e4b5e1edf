/* src/input/distribute/progress_of_hosts.c - hosts tell each other how far their pipelines are. See
 * progress_of_hosts.h. */
#include "input/distribute/progress_of_hosts.h"
#include "base/errors/status.h"
#include "cluster/life_line.h"
#include "input/distribute/iterator.h"
#include "replicas/team/team.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>

enum { NOTICE_BEGINS = 1, NOTICE_ASKS, NOTICE_TELLS };

/* The words of a notice. NOTICE_ASKS has the steps alone. */
enum { STEPS, PIPELINE, IS_END };

struct dti_progress_of_hosts {
    struct dti_listener listener; /* first */
    struct ditto_cluster *cluster;
    struct ditto_iterator *iterator;

    /* The last step that another host, or this one, has asked for, and 1. They never decrease. */
    _Atomic uint64_t wanted, asked;
};

static uint64_t load(const _Atomic uint64_t *number)
{
    /* relaxed: in dti_progress_tell a fence orders it. Elsewhere the thread of the life line reads what it
     * has stored itself, or an answer that is out of date is only told again. */
    return atomic_load_explicit(number, memory_order_relaxed);
}

static bool raise_to(_Atomic uint64_t *number, uint64_t to)
{
    uint64_t found = load(number);
    while (found < to)
        /* K0, if it is `wanted`: the fence in dti_progress_tell follows */
        if (atomic_compare_exchange_weak_explicit(number, &found, to, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void say(const struct dti_progress_of_hosts *hosts, struct dti_notice notice)
{
    notice.subject = hosts->listener.subject;
    dti_life_line_tell(hosts->cluster, &notice);
}

/* -- telling -- */

static struct dti_pipeline_progress *progress_of(const struct dti_progress_of_hosts *hosts, uint32_t pipeline)
{
    return &hosts->iterator->progress.pipeline_progress[pipeline];
}

static bool has_ended(const struct dti_pipeline_progress *n)
{
    return atomic_load_explicit(&n->ended, memory_order_acquire); /* pairs with publish in sequencer.c */
}

static void tell(struct dti_progress_of_hosts *hosts, uint32_t pipeline)
{
    struct dti_pipeline_progress *n = progress_of(hosts, pipeline);
    bool ended = has_ended(n); /* before the steps, which are then all */
    uint64_t steps = load(&n->steps);
    /* relaxed, both: they only save messages. Two threads that tell at once may set `told` back, and then one
     * thing is told twice. */
    atomic_store_explicit(&n->told, steps, memory_order_relaxed);
    if (ended)
        atomic_store_explicit(&n->told_end, true, memory_order_relaxed);
    say(hosts, (struct dti_notice){ .kind = NOTICE_TELLS,
                                    .word = { [PIPELINE] = pipeline, [STEPS] = steps, [IS_END] = ended } });
}

void dti_progress_tell(struct dti_progress_of_hosts *hosts, uint32_t pipeline)
{
    const struct dti_pipeline_progress *n = progress_of(hosts, pipeline);
    /* K1. The thread that has stored the progress and the one that has stored `wanted` both come here. */
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t told = load(&n->told);
    /* Another host may have asked for an earlier step than the last one. So each step up to that one is
     * told. */
    if (has_ended(n) ? !atomic_load_explicit(&n->told_end, memory_order_relaxed)
                     : told < load(&hosts->wanted) && told < load(&n->steps))
        tell(hosts, pipeline);
}

/* -- asking -- */

static void ask(struct dti_progress_of_hosts *hosts)
{
    say(hosts, (struct dti_notice){ .kind = NOTICE_ASKS, .word = { [STEPS] = load(&hosts->asked) } });
}

void dti_progress_ask(struct dti_progress_of_hosts *hosts, uint64_t step)
{
    if (raise_to(&hosts->asked, step + 1))
        ask(hosts);
}

/* -- hearing: the thread of the life line -- */

/* Takes over the progress of a pipeline that is on other hosts only. */
static void take_over(struct dti_progress_of_hosts *hosts, const struct dti_notice *notice)
{
    struct ditto_iterator *it = hosts->iterator;
    uint64_t pipeline = notice->word[PIPELINE], first = it->plan.first_pipeline;
    bool is_here = pipeline >= first && pipeline - first < it->plan.local_pipelines;
    if (pipeline >= it->plan.pipelines || is_here)
        return;
    struct dti_pipeline_progress *n = progress_of(hosts, (uint32_t)pipeline);
    /* Two threads of the other host may have told at once, so an older number may come last. Only this thread
     * stores it. release: both stores pair with existence_of in sequencer.c */
    if (notice->word[STEPS] > load(&n->steps))
        atomic_store_explicit(&n->steps, notice->word[STEPS], memory_order_release);
    if (notice->word[IS_END] != 0)
        atomic_store_explicit(&n->ended, true, memory_order_release);
    dti_wait_queue_signal(&it->wait_queue, DTI_AWAITS_PROGRESS(it));
}

/* Tells of the pipelines whose first replica is on this host. */
static void tell_own(struct dti_progress_of_hosts *hosts,
                     void (*how)(struct dti_progress_of_hosts *hosts, uint32_t pipeline))
{
    const struct ditto_iterator *it = hosts->iterator;
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++)
        if (it->pipeline[i].sequencer.o.first_served == 0)
            how(hosts, it->plan.first_pipeline + i);
}

static void tell_again(struct dti_progress_of_hosts *hosts, uint32_t pipeline)
{
    const struct dti_pipeline_progress *n = progress_of(hosts, pipeline);
    if (load(&n->told) > 0 || has_ended(n))
        tell(hosts, pipeline);
}

static void hear(struct dti_listener *listener, const struct dti_notice *notice)
{
    struct dti_progress_of_hosts *hosts = (struct dti_progress_of_hosts *)listener;
    switch (notice->kind) {
    case NOTICE_BEGINS:
        tell_own(hosts, tell_again);
        if (load(&hosts->asked) > 0)
            ask(hosts);
        break;
    case NOTICE_ASKS:
        if (raise_to(&hosts->wanted, notice->word[STEPS]))
            tell_own(hosts, dti_progress_tell);
        break;
    default:
        take_over(hosts, notice);
        break;
    }
}

/* -- life -- */

ditto_status dti_progress_of_hosts_begin(struct ditto_iterator *it)
{
    struct dti_progress_of_hosts *hosts = calloc(1, sizeof *hosts);
    if (hosts == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the progress of pipelines");
    hosts->listener = (struct dti_listener){ .subject = it->number, .hear = hear };
    hosts->cluster = dti_cross_cluster(it->team);
    hosts->iterator = it;
    it->progress.hosts = hosts;
    dti_life_line_listen(hosts->cluster, &hosts->listener);
    say(hosts, (struct dti_notice){ .kind = NOTICE_BEGINS });
    return DITTO_OK;
}

void dti_progress_of_hosts_end(struct ditto_iterator *it)
{
    if (it->progress.hosts == NULL)
        return;
    dti_life_line_ignore(it->progress.hosts->cluster, &it->progress.hosts->listener);
    free(it->progress.hosts);
    it->progress.hosts = NULL;
}
