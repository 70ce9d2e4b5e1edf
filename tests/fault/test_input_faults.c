/* tests/fault/test_input_faults.c - input when memory is refused, when the process forks while a producer
 * works, and when a replica is late. The linker wraps the functions of the allocator, in this program and in
 * the library. */
#include "input/written_rows.h"

#include "base/numbers/checksum.h"
#include "input/distribute/iterator.h"
#include "input/distribute/order.h"
#include "replicas/team/team_state.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* -- The wrapped functions -- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void __real_dti_arena_free_remote(struct dti_arena *arena, void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);
void __wrap_dti_arena_free_remote(struct dti_arena *arena, void *memory);

/* The number of allocations that have not been freed. */
static _Atomic long live;

/* The number of requests since fails_at was set, and the number of the request that is refused. If fails_at
 * is 0, no request is refused or counted. */
static _Atomic long asked, fails_at;

static _Atomic bool refused;

/* If true, only requests of the test's own thread are counted and refused. */
static _Atomic bool spares_others;

/* While held_at is not 0: the number of allocator calls on threads other than the test's own, and the number
 * of the call after which its thread waits for may_go. */
static _Atomic long passed, held_at;
static _Atomic bool is_held, may_go;

/* The id of the thread that made the last call that was counted in `passed`, or 0. */
static _Atomic int caller_id;

/* True on the test's own thread, if the test holds or spares other threads. */
static _Thread_local bool own_thread;

static bool is_refused(void)
{
    long at = atomic_load(&fails_at);
    if (at == 0 || (atomic_load(&spares_others) && !own_thread) || atomic_fetch_add(&asked, 1) + 1 != at)
        return false;
    atomic_store(&refused, true);
    return true;
}

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* Called at the end of each wrapped call of the C library. Calls that are refused memory do not reach it. */
static void pass(void)
{
    if (own_thread || atomic_load(&held_at) == 0)
        return;
    atomic_store(&caller_id, (int)syscall(SYS_gettid));
    if (atomic_fetch_add(&passed, 1) + 1 != atomic_load(&held_at))
        return;
    atomic_store(&is_held, true);
    while (!atomic_load(&may_go))
        rest();
}

/* Fills new memory with a byte, so that it is not zero by chance. A `fill` of 0 leaves it as it is. */
static void *given(void *memory, unsigned char fill)
{
    if (memory != NULL) {
        atomic_fetch_add(&live, 1);
        if (fill != 0 && !SANITIZED)
            memset(memory, fill, malloc_usable_size(memory));
    }
    pass();
    return memory;
}

/* Fills memory with a byte before it is freed, so that a later use finds no valid data. */
static void release(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_sub(&live, 1);
        if (!SANITIZED)
            memset(memory, 0xA5, malloc_usable_size(memory));
    }
    __real_free(memory);
}

void *__wrap_malloc(size_t bytes)
{
    return is_refused() ? NULL : given(__real_malloc(bytes), 0x41);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_refused() ? NULL : given(__real_calloc(count, bytes), 0);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return is_refused() ? NULL : given(__real_aligned_alloc(alignment, bytes), 0x41);
}

char *__wrap_strdup(const char *text)
{
    return is_refused() ? NULL : given(__real_strdup(text), 0);
}

/* Moves the memory also if it could stay, so that a pointer to the old memory finds no valid data. */
void *__wrap_realloc(void *memory, size_t bytes)
{
    size_t before = memory != NULL ? malloc_usable_size(memory) : 0;
    if (is_refused())
        return NULL;
    void *grown = __real_malloc(bytes);
    if (grown == NULL)
        return NULL;
    atomic_fetch_add(&live, 1);
    if (memory != NULL)
        memcpy(grown, memory, before < bytes ? before : bytes);
    release(memory);
    pass();
    return grown;
}

void __wrap_free(void *memory)
{
    release(memory);
    pass();
}

/* -- Memory that is refused -- */

static ditto_status keep_all(const ditto_tensor *row, void *user, int *keep)
{
    *keep = 1;
    return DITTO_OK;
}

static ditto_status copy_first(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    memcpy(out[0].data, in[0].data, ditto_tensor_bytes(&in[0]));
    return DITTO_OK;
}

enum { ROWS = 24, RECORD_BYTES = 8 };
enum kind {
    RANGE,
    ARRAYS,
    GENERATOR,
    TEXT,
    CSV,
    FIXED,
    TFRECORD,
    NPY,
    MAP,
    FILTER,
    SHUFFLE,
    REPEAT,
    TAKE_SKIP,
    SHARD,
    ZIP,
    CONCATENATE,
    INTERLEAVE,
    BATCH,
    KINDS
};
static const char *const kind_names[KINDS] = { "range",       "arrays",     "generator",  "text",  "csv",
                                               "fixed",       "tfrecord",   "npy",        "map",   "filter",
                                               "shuffle",     "repeat",     "take, skip", "shard", "zip",
                                               "concatenate", "interleave", "batch" };
static char *text_file, *csv_file, *fixed_file, *tfrecord_file, *npy_file;

static ditto_status make_source(enum kind kind, ditto_dataset **out)
{
    static int64_t numbers[ROWS];
    ditto_tensor row = { .data = numbers, .dtype = DITTO_I64, .rank = 1, .shape = { ROWS } };
    ditto_tensor record = { .dtype = DITTO_I64 };
    ditto_csv_component column = { .num_columns = 1, .dtype = DITTO_I64 };
    switch (kind) {
    case ARRAYS:
        return ditto_dataset_from_arrays(&row, 1, out);
    case GENERATOR:
        return counted_up_to(ROWS, true, out);
    case TEXT:
        return ditto_dataset_from_text(&(ditto_files){ (const char *[]){ text_file }, 1, DITTO_FILES_GLOB },
                                       NULL, out);
    case CSV:
        return ditto_dataset_from_csv(&(ditto_files){ (const char *[]){ csv_file, csv_file }, 2, 0 }, &column,
                                      1, NULL, out);
    case FIXED:
        return ditto_dataset_from_fixed(&(ditto_files){ (const char *[]){ fixed_file }, 1, 0 }, &record, 1,
                                        NULL, out);
    case TFRECORD:
        return ditto_dataset_from_tfrecord(&(ditto_files){ (const char *[]){ tfrecord_file }, 1, 0 },
                                           &OPTIONS(tfrecord, .max_bytes = RECORD_BYTES), out);
    case NPY:
        return ditto_dataset_from_npy((const char *[]){ npy_file }, 1, out);
    default:
        return ditto_dataset_from_range(0, ROWS, 1, out);
    }
}

static ditto_status make_dataset(enum kind kind, ditto_dataset **out)
{
    ditto_shuffle_options shuffle = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *first, *second = NULL, *inputs[2];
    ditto_status status = make_source(kind, &first);
    if (status != DITTO_OK || kind < MAP) {
        *out = first;
        return status;
    }
    inputs[0] = inputs[1] = first;
    switch (kind) {
    case MAP:
        status = ditto_dataset_map(first, copy_first, NULL, NULL, out);
        break;
    case FILTER:
        status = ditto_dataset_filter(first, keep_all, NULL, out);
        break;
    case SHUFFLE:
        status = ditto_dataset_shuffle(first, &shuffle, out);
        break;
    case REPEAT:
        status = ditto_dataset_repeat(first, 2, out);
        break;
    case TAKE_SKIP:
        status = ditto_dataset_take(first, ROWS - 1, &second);
        if (status == DITTO_OK)
            status = ditto_dataset_skip(second, 1, out);
        break;
    case SHARD:
        status = ditto_dataset_shard(first, 2, 0, out);
        break;
    case ZIP:
        status = ditto_dataset_zip(inputs, 2, out);
        break;
    case CONCATENATE:
        status = ditto_dataset_concatenate(inputs, 2, out);
        break;
    case INTERLEAVE:
        status = ditto_dataset_interleave(inputs, 2, 0, 0, out);
        break;
    default:
        status = ditto_dataset_batch(first, 4, 0, &second);
        if (status == DITTO_OK)
            status = ditto_dataset_prefetch(second, 2, out);
        break;
    }
    DITTO_TRY(ditto_dataset_destroy(first));
    DITTO_TRY(ditto_dataset_destroy(second));
    return status;
}

static ditto_status take_three(ditto_replica *self, void *it)
{
    ditto_batch b;
    ditto_status status = DITTO_OK;
    for (int i = 0; i < 3 && status == DITTO_OK; i++)
        status = ditto_next(self, it, &b);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status take_many(ditto_replica *self, void *it)
{
    ditto_batch b;
    ditto_status status;
    do
        status = ditto_next(self, it, &b);
    while (status == DITTO_OK);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status make_of_context(const ditto_input_context *context, void *kind, ditto_dataset **out)
{
    ditto_dataset *rows, *unbatched = NULL;
    DITTO_TRY(make_dataset(*(enum kind *)kind, &rows));
    bool batched = *(enum kind *)kind == BATCH;
    ditto_status status = batched ? ditto_dataset_unbatch(rows, &unbatched) : DITTO_OK;
    if (status == DITTO_OK)
        status = ditto_dataset_batch(batched ? unbatched : rows, 2, 0, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    DITTO_TRY(ditto_dataset_destroy(unbatched));
    return status;
}

static ditto_status count_row(const ditto_tensor *row, void *count)
{
    ++*(int *)count;
    return DITTO_OK;
}

/* Creates a dataset and iterators over it, and reads them, also from a saved state, until a call returns an
 * error. */
static ditto_status use(ditto_strategy *s, enum kind kind)
{
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT, from_function = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator *it = NULL, *again = NULL, *made = NULL;
    ditto_dataset *d;
    void *state = NULL;
    int rows = 0;
    options.global_batch = kind == BATCH ? 0 : 4;
    options.num_producers = 2;
    from_function.num_pipelines = 2;
    DITTO_TRY(make_dataset(kind, &d));
    ditto_status status = ditto_dataset_reduce(d, count_row, &rows, 0);
    if (status == DITTO_OK)
        status = ditto_strategy_iterate(s, d, &options, &it);
    if (status == DITTO_OK)
        status = ditto_strategy_run(s, take_three, it);
    if (status == DITTO_OK)
        status = ditto_iterator_save(it, &state, &options.state_bytes);
    options.state = state;
    if (status == DITTO_OK)
        status = ditto_strategy_iterate(s, d, &options, &again);
    if (status == DITTO_OK)
        status = ditto_strategy_run(s, take_many, again);
    if (status == DITTO_OK)
        status = ditto_strategy_run(s, take_many, it);
    if (status == DITTO_OK)
        status = ditto_strategy_iterate_from_function(s, make_of_context, &kind, &from_function, &made);
    if (status == DITTO_OK)
        status = ditto_strategy_run(s, take_many, made);
    ditto_error kept = *ditto_last_error();
    (void)!ditto_iterator_destroy(it);
    (void)!ditto_iterator_destroy(again);
    (void)!ditto_iterator_destroy(made);
    ditto_state_free(state);
    DITTO_TRY(ditto_dataset_destroy(d));
    if (status < 0 && kept.status != status)
        return DITTO_ERR_USER; /* the error has no record */
    return status;
}

/* Writes `count` bytes of a number, the least significant one first, and returns the position behind them. */
static char *put_number(char *to, uint64_t number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *to++ = (char)(number >> 8 * i);
    return to;
}

static char *file_of_tfrecords(void)
{
    char bytes[ROWS * (RECORD_BYTES + 16)], *to = bytes;
    for (uint64_t row = 0; row < ROWS; row++) {
        char *length = to, *data = length + 12;
        to = put_number(to, RECORD_BYTES, 8);
        to = put_number(to, dti_crc32c_masked(dti_crc32c(length, 8)), 4);
        to = put_number(to, row, RECORD_BYTES);
        to = put_number(to, dti_crc32c_masked(dti_crc32c(data, RECORD_BYTES)), 4);
    }
    return temporary_bytes(bytes, sizeof bytes);
}

static void write_files(void)
{
    static const char header[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (24,), }";
    char npy[128 + 8 * ROWS] = "\x93NUMPY\x01\x00", bytes[8 * ROWS] = { 0 };
    text_file = temporary_file("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n");
    csv_file = temporary_file("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    fixed_file = temporary_bytes(bytes, sizeof bytes);
    tfrecord_file = file_of_tfrecords();
    npy[8] = 118; /* the length of the header, which ends at byte 128 */
    memset(npy + 10, ' ', 118);
    memcpy(npy + 10, header, sizeof header - 1);
    npy[127] = '\n';
    npy_file = temporary_bytes(npy, sizeof npy);
}

static void refused_memory_is_an_error_and_the_next_try_works(void **state)
{
    write_files();
    for (enum kind kind = 0; kind < KINDS; kind++) {
        ditto_strategy *s = make_strategy(2, NULL);
        assert_ok(use(s, kind));
        long before = atomic_load(&live);
        long errors = 0;
        for (long k = 1; k < 2000; k++) {
            atomic_store(&asked, 0);
            atomic_store(&refused, false);
            atomic_store(&fails_at, k);
            ditto_status status = use(s, kind);
            atomic_store(&fails_at, 0);
            long left = atomic_load(&live) - before;
            /* A producer tries again, row by row, so one refused request need not lead to an error. */
            bool expected = status == DITTO_OK || (status == DITTO_ERR_NO_MEMORY && atomic_load(&refused));
            if (!expected || left != 0)
                print_error("%s, request %ld: %s: %s; %ld allocations are left\n", kind_names[kind], k,
                            ditto_status_name(status), ditto_last_error()->message, left);
            assert_true(expected);
            assert_int_equal(left, 0);
            errors += status != DITTO_OK;
            if (!atomic_load(&refused))
                break;
        }
        assert_false(atomic_load(&refused)); /* every request has been refused once */
        assert_true(errors > 10);
        assert_ok(use(s, kind));
        assert_ok(ditto_strategy_destroy(s));
    }
    forget_file(text_file);
    forget_file(csv_file);
    forget_file(fixed_file);
    forget_file(tfrecord_file);
    forget_file(npy_file);
}

/* -- Memory that is refused to ditto_iterator_next -- */

/* The rows are pairs of equal numbers. Asserts that the value has rows first, first + 1, ... in the order of
 * the replicas, in both components, and returns the row after the last one. */
static int64_t check_pairs(const ditto_value *value, int64_t first)
{
    int64_t row = first;
    for (int k = 0; k < 2; k++) {
        const ditto_value *member;
        ditto_tensor t;
        row = first;
        assert_ok(ditto_value_member(value, k == 0 ? "0" : "1", &member));
        for (uint32_t r = 0; r < 2; r++) {
            assert_ok(ditto_value_component(member, r, &t));
            for (size_t i = 0; i < t.shape[0]; i++)
                assert_int_equal(((const int64_t *)t.data)[i], row++);
        }
    }
    return row;
}

/* Takes all batches, and refuses request k of the first call. Returns true if it was refused. The input fails
 * on row `bad` unless that is above ROWS. */
static bool take_with_refusal(long k, int64_t bad, int *errors)
{
    ditto_strategy *s = make_strategy(2, NULL); /* a strategy keeps the memory of values for later ones */
    ditto_dataset *rows, *failing, *pairs;
    ditto_iterator *it;
    ditto_value *value;
    int64_t row = 0;
    assert_ok(ditto_dataset_from_range(0, ROWS, 1, &rows));
    assert_ok(ditto_dataset_map(rows, fail_on_row, (void *)(uintptr_t)bad, NULL, &failing));
    assert_ok(ditto_dataset_zip((ditto_dataset *[]){ failing, failing }, 2, &pairs));
    assert_ok(ditto_strategy_iterate(s, pairs, &OPTIONS(input, .global_batch = 8), &it));
    atomic_store(&asked, 0);
    atomic_store(&refused, false);
    atomic_store(&fails_at, k);
    ditto_status status = ditto_iterator_next(it, &value);
    atomic_store(&fails_at, 0);
    bool was_refused = atomic_load(&refused);
    *errors += status == DITTO_ERR_NO_MEMORY;
    if (was_refused && status == DITTO_ERR_NO_MEMORY)
        status = ditto_iterator_next(it, &value);
    for (; status == DITTO_OK; status = ditto_iterator_next(it, &value)) {
        row = check_pairs(value, row);
        assert_ok(ditto_value_destroy(value));
    }
    assert_int_equal(status, bad < ROWS ? DITTO_ERR_CORRUPT : DITTO_END_OF_INPUT);
    assert_int_equal(row, bad < ROWS ? bad : ROWS);
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(pairs));
    assert_ok(ditto_dataset_destroy(failing));
    assert_ok(ditto_dataset_destroy(rows));
    assert_ok(ditto_strategy_destroy(s));
    return was_refused;
}

/* With row 2 or 6 the first call has the last rows, in a batch that ends with the error. */
static void rule_9_10_a_call_across_replicas_that_is_refused_memory_loses_no_rows(void **state)
{
    own_thread = true;
    atomic_store(&spares_others, true);
    for (int64_t bad = 2; bad < ROWS + 8; bad += bad == 6 ? ROWS : 4) {
        int errors = 0;
        for (long k = 1; take_with_refusal(k, bad, &errors); k++)
            ;
        assert_true(errors > 3);
    }
    atomic_store(&spares_others, false);
}

/* -- A fork while a producer works -- */

struct forking {
    ditto_strategy *strategy;
    ditto_dataset *dataset;
    ditto_iterator *iterator;

    /* True if the strategy is destroyed before the iterator. */
    bool strategy_first;
};

static int end_in_child(void *argument)
{
    struct forking *f = argument;
    ditto_value *value;
    void *state;
    size_t bytes;
    int rows = 0;
    REQUIRE(ditto_iterator_next(f->iterator, &value) == DITTO_ERR_FORKED);
    REQUIRE(ditto_iterator_save(f->iterator, &state, &bytes) == DITTO_ERR_FORKED);
    if (f->strategy_first)
        REQUIRE(ditto_strategy_destroy(f->strategy) == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(f->iterator) == DITTO_OK);
    if (!f->strategy_first)
        REQUIRE(ditto_strategy_destroy(f->strategy) == DITTO_OK);
    REQUIRE(ditto_dataset_reduce(f->dataset, count_row, &rows, 0) == DITTO_OK && rows > 0);
    REQUIRE(ditto_dataset_destroy(f->dataset) == DITTO_OK);
    return 0;
}

/* Writes a file with more rows than a shuffle has memory for at first. */
static char *long_file(void)
{
    static char text[3000 * 6];
    size_t length = 0;
    for (int row = 0; row < 3000; row++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d\n", row);
    return temporary_file(text);
}

static void a_child_can_destroy_an_iterator_wherever_its_producer_was(void **state)
{
    bool held = true;
    if (SANITIZED)
        skip(); /* a sanitizer's malloc does not work in such a child */
    char *name = long_file();
    own_thread = true;
    for (long k = 1; held; k++) {
        ditto_csv_component column = { .num_columns = 1, .dtype = DITTO_I64 };
        ditto_shuffle_options shuffle = DITTO_SHUFFLE_OPTIONS_INIT;
        ditto_dataset *csv;
        struct forking f = { .strategy_first = k % 2 != 0 };
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1), &f.strategy));
        assert_ok(
            ditto_dataset_from_csv(&(ditto_files){ (const char *[]){ name }, 1, 0 }, &column, 1, NULL, &csv));
        assert_ok(ditto_dataset_shuffle(csv, &shuffle, &f.dataset));
        assert_ok(ditto_dataset_destroy(csv));
        atomic_store(&passed, 0);
        atomic_store(&caller_id, 0);
        atomic_store(&is_held, false);
        atomic_store(&may_go, false);
        atomic_store(&held_at, k);
        assert_ok(ditto_strategy_iterate(
            f.strategy, f.dataset, &OPTIONS(input, .global_batch = 64, .num_producers = 1), &f.iterator));
        /* With a large k, the producer fills its queue and sleeps before it makes k calls. It may also sleep
         * for a moment at another place, so its state is read several times. */
        for (int seen = 0; seen < 10 && !atomic_load(&is_held); seen++) {
            assert_true(await_sleep(&caller_id));
            rest();
        }
        held = atomic_load(&is_held);
        int code = in_child(end_in_child, &f, 60);
        if (code != 0)
            print_error("the producer waited after call %ld of the allocator: the child ended with %d\n", k,
                        code);
        assert_int_equal(code, 0);
        atomic_store(&held_at, 0);
        atomic_store(&may_go, true);
        assert_ok(ditto_strategy_run(f.strategy, take_many, f.iterator));
        assert_ok(ditto_iterator_destroy(f.iterator));
        assert_ok(ditto_dataset_destroy(f.dataset));
        assert_ok(ditto_strategy_destroy(f.strategy));
    }
    forget_file(name);
}

/* -- Queues are in arenas of the strategy, so they are freed while the turn is held -- */

/* The team whose frees are counted, or NULL. */
static struct dti_team *watched;
static int freed, freed_without_turn;

void __wrap_dti_arena_free_remote(struct dti_arena *arena, void *memory)
{
    if (watched != NULL) {
        freed++;
        /* If no thread has the turn, another thread could destroy the strategy now. */
        if (pthread_mutex_trylock(&watched->lock) == 0) {
            pthread_mutex_unlock(&watched->lock);
            freed_without_turn++;
        }
    }
    __real_dti_arena_free_remote(arena, memory);
}

static void the_queues_of_an_iterator_are_freed_while_the_turn_is_held(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = range(0, 100);
    ditto_iterator *it;
    ditto_input_options options = OPTIONS(input, .global_batch = 4);
    watched = dti_team_of(s);
    assert_ok(ditto_strategy_iterate(s, d, &options, &it));
    assert_ok(ditto_iterator_destroy(it));
    assert_true(freed >= 2); /* a queue for each replica */
    assert_int_equal(freed_without_turn, 0);
    /* The same when the creation fails after the queues were allocated. */
    int failed_with_queues = 0;
    for (long k = 1; k < 100; k++) {
        atomic_store(&asked, 0);
        atomic_store(&refused, false);
        atomic_store(&fails_at, k);
        int freed_before = freed;
        ditto_status status = ditto_strategy_iterate(s, d, &options, &it);
        atomic_store(&fails_at, 0);
        failed_with_queues += status != DITTO_OK && freed > freed_before;
        if (status == DITTO_OK)
            assert_ok(ditto_iterator_destroy(it));
        assert_int_equal(freed_without_turn, 0);
    }
    assert_true(failed_with_queues > 0);
    watched = NULL;
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- A late replica calls ditto_next after the iterator was destroyed -- */

struct late {
    ditto_iterator *iterator;
    _Atomic bool is_destroyed, has_called;
    ditto_status status; /* of ditto_next */
};

static ditto_status come_late(ditto_replica *self, void *argument)
{
    struct late *l = argument;
    ditto_batch b;
    if (ditto_replica_id(self) == 0)
        return DITTO_OK;
    while (!atomic_load(&l->is_destroyed))
        rest();
    l->status = ditto_next(self, l->iterator, &b);
    atomic_store(&l->has_called, true);
    return DITTO_OK;
}

static int iterator_of_a_poisoned_strategy(void *destroys_strategy)
{
    /* Static, because the replica may use it after this function has returned. */
    static struct late l;
    ditto_strategy *s;
    ditto_dataset *d;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2, .run_timeout_ms = 50),
                                  &s) == DITTO_OK);
    REQUIRE(ditto_dataset_from_range(0, 100, 1, &d) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 4, .flags = DITTO_INPUT_HOST_MEMORY),
                                   &l.iterator) == DITTO_OK);
    while (dti_order_next_delivery(l.iterator, 1) == DTI_NEXT_DELIVERY_NONE)
        rest();
    REQUIRE(ditto_strategy_run(s, come_late, &l) == DITTO_ERR_TIMED_OUT);
    if (destroys_strategy != NULL)
        REQUIRE(ditto_strategy_destroy(s) == DITTO_ERR_POISONED);
    REQUIRE(ditto_iterator_destroy(l.iterator) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    atomic_store(&l.is_destroyed, true);
    while (!atomic_load(&l.has_called))
        rest();
    REQUIRE(l.status == DITTO_OK); /* it took the batch that was ready before the run */
    return 0;
}

static void a_late_replica_of_a_poisoned_strategy_can_use_the_iterator(void **state)
{
    assert_int_equal(in_child(iterator_of_a_poisoned_strategy, NULL, 60), 0);
    assert_int_equal(in_child(iterator_of_a_poisoned_strategy, (void *)1, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_memory_is_an_error_and_the_next_try_works),
        cmocka_unit_test(rule_9_10_a_call_across_replicas_that_is_refused_memory_loses_no_rows),
        cmocka_unit_test(a_child_can_destroy_an_iterator_wherever_its_producer_was),
        cmocka_unit_test(the_queues_of_an_iterator_are_freed_while_the_turn_is_held),
        cmocka_unit_test(a_late_replica_of_a_poisoned_strategy_can_use_the_iterator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
