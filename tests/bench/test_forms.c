/* tests/bench/test_forms.c - the forms of the bound, and the all-reduces of the peers in shared memory,
 * compute what a loop over all inputs computes. Elements differ by their position, and calls follow each
 * other without a barrier, so a form that returns before its input was read, or that reuses a slot too early,
 * is found. */
#include "bound.h"
#include "peers/shared_forms.h"
#include "support/support.h"

#include <pthread.h>
#include <sys/mman.h>

enum { MOST_TEAM = 8, CALLS = 3, MOST_BYTES = 4 << 20, PERIOD = 11 };

static const ditto_dtype dtypes[] = { DITTO_F32, DITTO_BF16, DITTO_F64, DITTO_I32 };
static const enum bench_kind kinds[] = { BENCH_ALL_REDUCE,     BENCH_ALL_GATHER, BENCH_BROADCAST,
                                         BENCH_REDUCE_SCATTER, BENCH_REDUCE,     BENCH_GATHER,
                                         BENCH_SCATTER,        BENCH_ALL_TO_ALL, BENCH_SCAN,
                                         BENCH_SCAN_EXCLUSIVE };
/* One element or two, incomplete lines, the ends of slots, stripes and the least sizes of forms, and some
 * bytes more. */
static const size_t sizes[] = { 8, 1000, 8192, 8200, 40008, 300 * 1024 + 24 };
static const size_t shared_sizes[] = { 4, 1000, 40004, (1 << 20) - 64, (1 << 20) + 4, (3 << 20) + 8 };
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A team of threads, each of which calls `run`. */
struct team {
    uint32_t count;
    void (*run)(struct team *team, uint32_t id);
    struct worker workers[2][MOST_TEAM]; /* out of place, and in place */
    struct shared_rank *segment;
    struct report report;
    _Atomic uint32_t next_id, cases;
};

/* -- elements, which are whole numbers that bf16 can represent, also in sums -- */

static uint32_t element_of(uint32_t replica, size_t index, uint32_t call)
{
    return (uint32_t)((index * 7 + replica * 3 + call * 5) % PERIOD);
}

static void put(ditto_dtype dtype, char *at, uint32_t value)
{
    float single = (float)value;
    double twice = value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    const void *from = dtype == DITTO_F32   ? (const void *)&single
                       : dtype == DITTO_F64 ? (const void *)&twice
                       : dtype == DITTO_I32 ? (const void *)&value
                                            : (const void *)&half;
    memcpy(at, from, work_element_bytes(dtype));
}

/* Writes the sums of the elements of some replicas from `index` on, until they repeat. Returns their
 * bytes. */
static size_t block_of(const struct work *work, struct span replicas, size_t index, uint32_t call,
                       char *block)
{
    size_t each = work_element_bytes(work->dtype);
    for (size_t i = 0; i < PERIOD; i++) {
        uint32_t sum = 0;
        for (size_t r = replicas.first; r < replicas.end; r++)
            sum += element_of((uint32_t)r, index + i, call);
        put(work->dtype, block + i * each, sum);
    }
    return PERIOD * each;
}

static void fill(const struct work *work, struct worker *w, uint32_t id, uint32_t call)
{
    char block[PERIOD * 8];
    struct span s = work_input(work, id);
    size_t bytes = block_of(work, (struct span){ id, id + 1 }, s.first / work_element_bytes(work->dtype),
                            call, block);
    for (; s.first < s.end; s.first += bytes)
        memcpy(w->src + s.first, block, s.end - s.first < bytes ? s.end - s.first : bytes);
}

/* Checks bytes `s` of a result, which must be the sums of what replicas `from` had from byte `first` on. */
static void check_span(struct team *team, const struct work *work, uint32_t id, uint32_t call,
                       const char *name, struct span s, struct span from, size_t first)
{
    char block[PERIOD * 8];
    size_t bytes = block_of(work, from, first / work_element_bytes(work->dtype), call, block);
    for (; s.first < s.end; s.first += bytes)
        if (memcmp(team->workers[work->in_place][id].dst + s.first, block,
                   s.end - s.first < bytes ? s.end - s.first : bytes) != 0) {
            report_failure(&team->report, __FILE__, __LINE__,
                           "%s: %s of %zu bytes of %s, %u replicas%s, call %u: an element of replica %u from "
                           "byte %zu on is wrong",
                           name, bench_facts[work->kind].name, work->bytes, ditto_dtype_name(work->dtype),
                           work->replicas, work->in_place ? ", in place" : "", call, id, s.first);
            return;
        }
}

static void check(struct team *team, const struct work *work, uint32_t id, uint32_t call, const char *name)
{
    const struct bench_facts *facts = &bench_facts[work->kind];
    struct span output = work_output(work, id), root = { work->root, work->root + 1 },
                all = { 0, work_inputs(work, id) };
    bool transposes = work->kind == BENCH_ALL_TO_ALL;
    if (facts->input != EXTENT_OWN_PART && !transposes) {
        check_span(team, work, id, call, name, output, facts->reduces ? all : root, output.first);
        return;
    }
    for (uint32_t r = 0; r < work->replicas && output.end > output.first; r++) {
        struct span part = work_part(work, r);
        check_span(team, work, id, call, name, part, (struct span){ r, r + 1 },
                   transposes ? work_part(work, id).first : part.first);
    }
}

/* -- a team -- */

static void *run_thread(void *argument)
{
    struct team *team = argument;
    team->run(team, team->next_id++);
    return NULL;
}

static char *bytes_of(size_t bytes)
{
    char *start = aligned_alloc(4096, bytes);
    assert_non_null(start);
    memset(start, 0, bytes);
    return start;
}

/* Runs a team of `count` threads, and fails with the first wrong element. */
static void run_team(uint32_t count, void (*run)(struct team *, uint32_t))
{
    static struct team team;
    pthread_t thread[MOST_TEAM];
    size_t segment_bytes = count * sizeof *team.segment;
    memset(&team, 0, sizeof team);
    team.count = count;
    team.run = run;
    team.segment = mmap(NULL, segment_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(team.segment != MAP_FAILED);
    for (uint32_t i = 0; i < count; i++) {
        team.workers[0][i].src = team.workers[1][i].src = team.workers[1][i].dst = bytes_of(MOST_BYTES);
        team.workers[0][i].dst = bytes_of(MOST_BYTES);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_thread, &team), 0);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    for (uint32_t i = 0; i < count; i++) {
        free(team.workers[0][i].src);
        free(team.workers[0][i].dst);
    }
    munmap(team.segment, segment_bytes);
    assert_string_equal(team.report.first_failure, "");
    assert_true(team.cases > 0);
}

static void call_often(struct team *team, struct work *work, uint32_t id, const struct contender_ops *ops,
                       void *context, const char *name)
{
    struct worker *workers = team->workers[work->in_place];
    team->cases++;
    for (uint32_t call = 0; call < CALLS; call++) {
        work->root = call % work->replicas;
        fill(work, &workers[id], id, call);
        ops->collective(context, id, work, workers);
        check(team, work, id, call, name);
    }
}

/* -- forms of the bound -- */

/* Threads sleep here. Those that spin or yield would take long on a loaded machine. */
static pthread_barrier_t meeting;

static void sleeping_barrier(void *context, uint32_t id)
{
    (void)context;
    bound_episode[id].count++;
    pthread_barrier_wait(&meeting);
}

/* Parts of a result are whole lines, or single elements of small results. */
static size_t size_for(enum bench_kind kind, size_t bytes, uint32_t count)
{
    bool parts = kind == BENCH_ALL_GATHER || kind == BENCH_REDUCE_SCATTER || kind == BENCH_GATHER ||
                 kind == BENCH_SCATTER || kind == BENCH_ALL_TO_ALL;
    size_t unit = (bytes < 64 ? 8 : 64) * (size_t)count;
    return parts ? (bytes + unit - 1) / unit * unit : bytes;
}

static void try_form(struct team *team, uint32_t id, const struct form *original)
{
    struct form form = *original;
    form.ops.barrier = sleeping_barrier;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t t = 0; t < (bench_facts[kinds[k]].reduces ? COUNT(dtypes) : 1); t++)
                for (int in_place = bench_facts[kinds[k]].one_buffer; in_place < 2; in_place++) {
                    struct work work = { .kind = kinds[k],
                                         .replicas = team->count,
                                         .bytes = size_for(kinds[k], sizes[s], team->count),
                                         .dtype = dtypes[t],
                                         .op = DITTO_SUM,
                                         .in_place = in_place != 0 };
                    /* The dtypes of eight bytes and of integers differ little from f32. */
                    if (!form_does(&form, &work) || (t >= 2 && s % 2 == 0))
                        continue;
                    call_often(team, &work, id, &form.ops, &form, form.name);
                    sleeping_barrier(NULL, id); /* forms share slots */
                }
}

static void try_forms(struct team *team, uint32_t id)
{
    for (uint32_t i = 0; i < bound_form_count; i++) {
        const struct form *form = &bound_forms[i];
        bool has_collective = form->ops.collective != NULL;
        if (has_collective && team->count >= form->least_team && variant_exists(form->variant) &&
            (form->most_team == 0 || team->count <= form->most_team))
            try_form(team, id, form);
    }
}

static void forms_of_the_bound_give_the_results_of_a_plain_loop(void **state)
{
    const uint32_t counts[] = { 2, 3, 8 };
    for (size_t i = 0; i < COUNT(counts); i++) {
        bound_team.size = counts[i];
        bound_team.oversubscribed = true;        /* those that can yield do */
        for (uint32_t r = 1; r < MOST_TEAM; r++) /* no number of the team before comes again */
            bound_episode[r] = bound_episode[0];
        assert_int_equal(pthread_barrier_init(&meeting, NULL, counts[i]), 0);
        for (uint32_t f = 0; f < bound_form_count; f++)
            bound_slots_open(&bound_forms[f], counts[i]);
        run_team(counts[i], try_forms);
        bound_slots_close();
        pthread_barrier_destroy(&meeting);
    }
}

static void contenders_have_room_for_all_forms_of_a_kind(void **state)
{
    const uint32_t others = 10; /* ditto twice, and eight peers */
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int own_pus = 0; own_pus < 2; own_pus++) {
            uint32_t count = 0;
            for (uint32_t i = 0; i < bound_form_count; i++)
                count += (own_pus ? bound_forms[i].for_own_pus : bound_forms[i].for_shared_pus) &&
                         (bound_forms[i].kinds >> kinds[k] & 1u) != 0;
            assert_true(count > 0 && count + others <= MOST_CONTENDERS);
        }
}

/* -- peers in shared memory -- */

struct shared_call {
    const struct shared_form *form;
    struct shared_rank *segment;
};

static void shared_collective(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct shared_call *call = context;
    shared_all_reduce(call->form, call->segment, work, id, w[id].src, w[id].dst);
}

static void try_shared_forms(struct team *team, uint32_t id)
{
    static const struct contender_ops ops = { NULL, shared_collective };
    const char *const names[] = { "deepspeed", "vllm", "gloo-shm" };
    for (size_t f = 0; f < COUNT(names); f++)
        for (size_t s = 0; s < COUNT(shared_sizes); s++)
            for (size_t t = 0; t < 2; t++)
                for (int in_place = 0; in_place < 2; in_place++) {
                    struct shared_call call = { shared_form_of(names[f]), team->segment };
                    struct work work = { .kind = BENCH_ALL_REDUCE,
                                         .replicas = team->count,
                                         .bytes = shared_sizes[s],
                                         .dtype = dtypes[t],
                                         .op = DITTO_SUM,
                                         .in_place = in_place != 0 };
                    call_often(team, &work, id, &ops, &call, names[f]);
                    shared_barrier(team->segment, team->count, id);
                }
}

static void all_reduces_in_shared_memory_give_the_results_of_a_plain_loop(void **state)
{
    assert_null(shared_form_of("other"));
    run_team(2, try_shared_forms);
    run_team(3, try_shared_forms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_the_bound_give_the_results_of_a_plain_loop),
        cmocka_unit_test(contenders_have_room_for_all_forms_of_a_kind),
        cmocka_unit_test(all_reduces_in_shared_memory_give_the_results_of_a_plain_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
