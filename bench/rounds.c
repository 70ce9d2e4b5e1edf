/* bench/rounds.c - see rounds.h. */
#include "rounds.h"
#include "hand_over.h"
#include "samples.h"
#include "work.h"

#include <stdlib.h>
#include <time.h>

#define SLOW_ROW_SECONDS 20.0 /* after this time five rounds are enough, before the wait for modes */
enum { SLOW_ROW_ROUNDS = 5, APPEARED = 3 };

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static const struct rounds_machine real = { hand_over_ns, stolen_ticks, now_seconds, nap };
static const struct rounds_machine *machine = &real;
static double wait_seconds = ROUNDS_WAIT_SECONDS;

void rounds_wait_at_most(double seconds)
{
    wait_seconds = seconds;
}

void rounds_use(const struct rounds_machine *other)
{
    machine = other != NULL ? other : &real;
}

static void look_at_machine(struct rounds *r)
{
    r->hand_over_ns = machine->hand_over_ns();
    r->stolen = machine->stolen_ticks();
}

void rounds_begin(struct rounds *r, uint32_t columns, uint32_t least)
{
    *r = (struct rounds){ .columns = columns, .least = least, .began = machine->now_seconds() };
}

static struct rounds_batch *batch_of(const struct rounds *r, uint32_t round, uint32_t column)
{
    return &r->batch[(size_t)round * r->columns + column];
}

static void begin_round(struct rounds *r)
{
    size_t all = (size_t)(r->count + 1) * r->columns;
    r->batch = realloc(r->batch, all * sizeof *r->batch);
    if (r->batch == NULL)
        exit(1);
    for (uint32_t c = 0; c < r->columns; c++)
        *batch_of(r, r->count, c) = (struct rounds_batch){ .exists = false };
    r->count++;
}

void rounds_put(struct rounds *r, uint32_t column, double figure)
{
    double before = r->hand_over_ns;
    uint64_t stolen = r->stolen;
    look_at_machine(r);
    *batch_of(r, r->count - 1, column) = (struct rounds_batch){
        .figure = figure,
        .conditions = { before, r->hand_over_ns, .disturbed = r->stolen != stolen || r->count == 1 },
        .exists = true
    };
}

void rounds_put_also(struct rounds *r, uint32_t column, uint32_t of, double figure)
{
    struct rounds_batch *batch = batch_of(r, r->count - 1, column);
    *batch = *batch_of(r, r->count - 1, of);
    batch->figure = figure;
}

void rounds_drop(struct rounds *r, uint32_t column)
{
    for (uint32_t i = 0; i < r->count; i++)
        batch_of(r, i, column)->exists = false;
}

bool rounds_has(const struct rounds *r, uint32_t round, uint32_t column, uint32_t mode)
{
    const struct rounds_batch *batch = batch_of(r, round, column);
    if (r->disturbed)
        return batch->exists && round > 0;
    return batch->exists && modes_of(&r->modes, &batch->conditions) == (int)mode;
}

static uint32_t count_in(const struct rounds *r, uint32_t column, uint32_t mode)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < r->count; i++)
        found += rounds_has(r, i, column, mode);
    return found;
}

uint32_t rounds_fewest(const struct rounds *r, uint32_t mode)
{
    uint32_t fewest = UINT32_MAX;
    for (uint32_t c = 0; c < r->columns; c++) {
        bool exists = false;
        for (uint32_t i = 0; i < r->count && !exists; i++)
            exists = batch_of(r, i, c)->exists;
        uint32_t found = exists ? count_in(r, c, mode) : UINT32_MAX;
        fewest = found < fewest ? found : fewest;
    }
    return fewest;
}

/* Returns the number of batches in the mode, of the column that has the most. */
static uint32_t most_in(const struct rounds *r, uint32_t mode)
{
    uint32_t most = 0;
    for (uint32_t c = 0; c < r->columns; c++) {
        uint32_t found = count_in(r, c, mode);
        most = found > most ? found : most;
    }
    return most;
}

/* Finds the modes in which this row has batches. The readings beside its batches decide, but not those of
 * disturbed ones. */
static void find_modes(struct rounds *r)
{
    size_t all = (size_t)r->count * r->columns;
    double *reading = calloc(2 * all + 1, sizeof *reading);
    uint32_t count = 0, kept = 0;
    if (reading == NULL)
        exit(1);
    for (size_t i = 0; i < all; i++)
        if (r->batch[i].exists && !r->batch[i].conditions.disturbed) {
            reading[count++] = r->batch[i].conditions.before_ns;
            reading[count++] = r->batch[i].conditions.after_ns;
        }
    r->modes = modes_find(reading, count);
    free(reading);
    struct modes found = r->modes;
    for (uint32_t m = 0; m < found.count; m++)
        if (most_in(r, m) >= APPEARED)
            found.mode[kept++] = found.mode[m];
    found.count = kept;
    r->modes = found;
}

bool rounds_too_few(const struct rounds *r, uint32_t mode)
{
    uint32_t enough = r->least < ROUNDS_ENOUGH ? r->least : ROUNDS_ENOUGH;
    return r->disturbed || rounds_fewest(r, mode) < enough;
}

/* Returns true if a batch that began and ended now would be in a mode that has too few. If the machine is in
 * none of the modes, this may be a new one. */
static bool is_wanted_now(const struct rounds *r)
{
    struct conditions now = { r->hand_over_ns, r->hand_over_ns, false };
    int mode = modes_of(&r->modes, &now);
    return mode < 0 || rounds_too_few(r, (uint32_t)mode);
}

static bool is_complete(const struct rounds *r)
{
    for (uint32_t m = 0; m < r->modes.count; m++)
        if (rounds_too_few(r, m))
            return false;
    return r->modes.count > 0;
}

/* Returns true if the row needs another round before it looks for modes. */
static bool is_short(const struct rounds *r, double now)
{
    uint32_t measured = r->count > 0 ? r->count - 1 : 0; /* without the first */
    return measured < SLOW_ROW_ROUNDS || (measured < r->least && now - r->began < SLOW_ROW_SECONDS);
}

/* Waits for a mode in which the row has too few batches. Returns false if the row is complete, or has waited
 * long enough. */
static bool wait_for_mode(struct rounds *r)
{
    for (;;) {
        if (is_complete(r) || machine->now_seconds() - r->complete >= wait_seconds)
            return false;
        if (is_wanted_now(r))
            return true;
        machine->nap();
        look_at_machine(r);
    }
}

/* Drops modes in which a column has hardly any batches, because figures that are made of several columns
 * would be wrong there. */
static void drop_incomplete(struct rounds *r)
{
    struct modes all = r->modes;
    uint32_t kept = 0;
    bool keeps[MODES_MOST];
    for (uint32_t m = 0; m < all.count; m++)
        keeps[m] = rounds_fewest(r, m) >= APPEARED;
    for (uint32_t m = 0; m < all.count; m++)
        if (keeps[m])
            r->modes.mode[kept++] = all.mode[m];
    r->modes.count = kept;
}

bool rounds_next(struct rounds *r)
{
    double now = machine->now_seconds();
    look_at_machine(r);
    bool more = is_short(r, now);
    if (!more) {
        r->complete = r->complete == 0 ? now : r->complete;
        find_modes(r);
        more = wait_for_mode(r);
    }
    if (more) {
        begin_round(r);
        return true;
    }
    drop_incomplete(r);
    if (r->modes.count == 0) {
        r->disturbed = true;
        r->modes = (struct modes){ .count = 1 };
    }
    return false;
}

uint32_t rounds_pick(const struct rounds *r, uint32_t column, uint32_t mode, double *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (rounds_has(r, i, column, mode))
            out[found++] = batch_of(r, i, column)->figure;
    sort_samples(out, found);
    return found;
}

struct figures rounds_figures(const struct rounds *r, uint32_t column, uint32_t mode)
{
    struct figures f = { .batches = 0 };
    double *figure = calloc(r->count, sizeof *figure);
    if (figure == NULL)
        exit(1);
    f.batches = rounds_pick(r, column, mode, figure);
    if (f.batches > 0) {
        f.min = figure[0];
        f.median = figure[f.batches / 2];
        f.p95 = figure[f.batches * 95 / 100];
    }
    free(figure);
    return f;
}

uint32_t rounds_disturbed(const struct rounds *r, uint32_t column)
{
    uint32_t disturbed = 0;
    for (uint32_t i = 1; i < r->count; i++)
        disturbed += batch_of(r, i, column)->exists &&
                     modes_of(&r->modes, &batch_of(r, i, column)->conditions) < 0;
    return disturbed;
}

void rounds_end(struct rounds *r)
{
    free(r->batch);
    r->batch = NULL;
}
