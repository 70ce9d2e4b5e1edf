/* tests/cases/shared_source.c - replicas start an operation on one shared source. Replica 0 waits, and writes
 * the source as soon as its own call has returned, which ditto/collective.h allows. The other replicas, which
 * wait later, still read it. */
#include "cases.h"

enum { REPLICAS = 2, MOST = 1024 };
enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER };

struct job {
    enum kind kind;
    size_t count;
    float src[REPLICAS * MOST], dst[REPLICAS][REPLICAS * MOST];
};

static ditto_status start(ditto_replica *self, struct job *job, ditto_pending *pending)
{
    float *dst = job->dst[ditto_replica_id(self)];
    if (job->kind == ALL_REDUCE)
        return ditto_all_reduce_start(self, job->src, dst, job->count, DITTO_F32, DITTO_SUM, NULL, pending);
    if (job->kind == REDUCE_SCATTER)
        return ditto_reduce_scatter_start(self, job->src, dst, job->count, DITTO_F32, DITTO_SUM, NULL,
                                          pending);
    return ditto_all_gather_start(self, job->src, dst, job->count, DITTO_F32, NULL, pending);
}

static ditto_status overwrite_source(ditto_replica *self, void *user)
{
    struct job *job = user;
    ditto_pending pending;
    DITTO_TRY(start(self, job, &pending));
    if (ditto_replica_id(self) != 0)
        sleep_ms(200);
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    for (size_t i = 0; ditto_replica_id(self) == 0 && i < REPLICAS * MOST; i++)
        job->src[i] = 100;
    return DITTO_OK;
}

int main(void)
{
    static const char *const name[] = { "all-reduce", "reduce-scatter", "all-gather" };
    static struct job job;
    ditto_strategy *strategy = mirrored(REPLICAS);
    int wrong = 0;
    for (job.kind = ALL_REDUCE; job.kind <= ALL_GATHER; job.kind++)
        for (job.count = 1; job.count <= MOST; job.count *= 32) {
            for (size_t i = 0; i < REPLICAS * MOST; i++)
                job.src[i] = 1;
            MUST(ditto_strategy_run(strategy, overwrite_source, &job));
            size_t length = job.kind == ALL_GATHER ? REPLICAS * job.count : job.count, bad = 0;
            for (size_t i = 0; i < length; i++)
                bad += job.dst[1][i] != (job.kind == ALL_GATHER ? 1 : REPLICAS);
            printf("%s of %zu: %zu wrong elements\n", name[job.kind], job.count, bad);
            wrong += bad > 0;
        }
    MUST(ditto_strategy_destroy(strategy));
    return wrong == 0 ? RIGHT : WRONG;
}
