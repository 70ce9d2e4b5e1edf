/* bench/checkpoint.c - the cost of a checkpoint, compared with the disk and with memory.
 *
 * save:    MB/s of ditto_checkpoint_save of 1 GiB in four variables, on the disk of the working directory. It
 *          is compared with writing the same bytes like dd (blocks of 4 MiB, then fsync) and renaming the
 *          file. Bound: 70 % of that speed.
 * stall:   ms for which a background save stalls the replicas, compared with one copy in memory by one
 *          thread. Bound: 1.2 times that.
 * check:   MB/s of opening and checking a file. It is in the page cache, so the disk is not read. No bound. A
 *          save reads its file back in the same way before it renames it. The row of save names this time.
 * restore: MB/s of restoring. No bound.
 *
 * The measurements are interleaved, and the figures are medians. The disk is shared, and its samples spread
 * widely. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>
#include <ditto/checkpoint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 7, VARIABLES = 4 };
#define BYTES ((size_t)1 << 30)
#define EACH  (BYTES / VARIABLES)
#define BLOCK ((size_t)4 << 20)

/* The operations of ditto that are measured. */
enum operation { SAVE, STALL, CHECK, RESTORE, OPERATIONS };
static struct alone_counts counts[OPERATIONS];

static struct rounds rounds; /* seconds of each operation, and of what it is compared with */
enum column { PLAIN = OPERATIONS, COPY, COLUMNS };

static double end(enum operation operation, double begin)
{
    double seconds = now_seconds() - begin;
    alone_stop(&counts[operation], 1);
    return seconds;
}

static double begin_counting(enum operation operation)
{
    alone_start(&counts[operation]);
    return now_seconds();
}

static double save(ditto_strategy *strategy, const char *path)
{
    double begin = begin_counting(SAVE);
    must(ditto_checkpoint_save(strategy, path, NULL));
    return end(SAVE, begin);
}

/* Writes a new file and renames it over the last one, like a save. So both need new pages, which a virtual
 * machine may have to request from its host. */
static double write_plainly(const char *path, const char *bytes)
{
    char partial[310];
    snprintf(partial, sizeof partial, "%s.partial", path);
    double begin = now_seconds();
    int fd = open(partial, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (size_t at = 0; at < BYTES; at += BLOCK)
        if (fd < 0 || write(fd, bytes + at, BLOCK) != (ssize_t)BLOCK)
            exit(1);
    if (fsync(fd) != 0 || close(fd) != 0 || rename(partial, path) != 0)
        exit(1);
    return now_seconds() - begin;
}

/* Returns the time until the replicas may continue. Then waits for the file, so that the next sample is not
 * disturbed. */
static double stall(ditto_checkpointer *checkpointer)
{
    double begin = begin_counting(STALL);
    must(ditto_checkpointer_save(checkpointer, NULL));
    double seconds = end(STALL, begin);
    must(ditto_checkpointer_wait(checkpointer));
    return seconds;
}

static double copy(char *to, const char *from)
{
    double begin = now_seconds();
    memcpy(to, from, BYTES);
    return now_seconds() - begin;
}

static double check(const char *path)
{
    ditto_checkpoint *file;
    double begin = begin_counting(CHECK);
    must(ditto_checkpoint_open(NULL, path, &file));
    must(ditto_checkpoint_close(file));
    return end(CHECK, begin);
}

static double restore(ditto_strategy *strategy, const char *path)
{
    double begin = begin_counting(RESTORE);
    must(ditto_checkpoint_restore(strategy, path, NULL, NULL));
    return end(RESTORE, begin);
}

static double median(uint32_t column, uint32_t mode)
{
    return rounds_figures(&rounds, column, mode).median;
}

static void row(enum operation operation, uint32_t replicas, uint32_t mode, double bound, const char *words,
                bool csv)
{
    static const char *const names[OPERATIONS] = { "save", "stall", "check", "restore" };
    double ns = median(operation, mode);
    if (csv) {
        alone_csv(&(struct alone_row){ .bench = "checkpoint",
                                       .algorithm = names[operation],
                                       .replicas = replicas,
                                       .dtype = "f32",
                                       .bytes = BYTES,
                                       .reps = SAMPLES,
                                       .rounds = &rounds,
                                       .column = operation,
                                       .mode = mode,
                                       .bound_ns = bound,
                                       .counts = &counts[operation] });
        return;
    }
    printf("checkpoint %-12s %3u %11zu %9.1f ms %8.0f MB/s;  %s", names[operation], replicas, BYTES,
           ns * 1e-6, (double)BYTES / ns * 1e3, words);
    alone_end_row(&rounds, operation, mode, &counts[operation]);
}

static void measure_all(ditto_strategy *strategy, const char *folder)
{
    ditto_checkpointer_options options = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_checkpointer *checkpointer;
    char path[300], plain[300];
    char *from = malloc(BYTES), *to = malloc(BYTES);
    if (from == NULL || to == NULL)
        exit(1);
    memset(from, 1, BYTES);
    memset(to, 2, BYTES);
    snprintf(path, sizeof path, "%s/saved.h5", folder);
    snprintf(plain, sizeof plain, "%s/plain", folder);
    options.background = 1;
    options.keep = 1;
    must(ditto_checkpointer_create(strategy, folder, &options, &checkpointer));
    rounds_begin(&rounds, COLUMNS, SAMPLES);
    while (rounds_next(&rounds)) {
        rounds_put(&rounds, SAVE, save(strategy, path) * 1e9);
        rounds_put(&rounds, PLAIN, write_plainly(plain, from) * 1e9);
        rounds_put(&rounds, STALL, stall(checkpointer) * 1e9);
        rounds_put(&rounds, COPY, copy(to, from) * 1e9);
        rounds_put(&rounds, CHECK, check(path) * 1e9);
        rounds_put(&rounds, RESTORE, restore(strategy, path) * 1e9);
    }
    must(ditto_checkpointer_destroy(checkpointer));
    unlink(path);
    unlink(plain);
    snprintf(path, sizeof path, "%s/checkpoint-0.h5", folder);
    unlink(path);
    free(from);
    free(to);
}

static void print(uint32_t replicas, uint32_t mode, bool csv)
{
    char words[160];
    double save = median(SAVE, mode), plain = median(PLAIN, mode), memory = median(COPY, mode);
    snprintf(words, sizeof words,
             "as dd does it %.1f ms; %.2f of its speed, at least 0.70; %.1f ms are reading back;",
             plain * 1e-6, plain / save, median(CHECK, mode) * 1e-6);
    row(SAVE, replicas, mode, plain / 0.7, words, csv);
    snprintf(words, sizeof words, "a copy in memory %.1f ms; %.2f, at most 1.2;", memory * 1e-6,
             median(STALL, mode) / memory);
    row(STALL, replicas, mode, memory * 1.2, words, csv);
    row(CHECK, replicas, mode, 0, "", csv);
    row(RESTORE, replicas, mode, 0, "", csv);
}

void bench_checkpoint(uint32_t replicas, bool csv)
{
    char folder[] = "./ditto-bench-XXXXXX";
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_variable *v[VARIABLES];
    if (mkdtemp(folder) == NULL)
        exit(1);
    options.num_replicas = replicas;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    must(ditto_strategy_scope_enter(strategy));
    for (int k = 0; k < VARIABLES; k++) {
        ditto_variable_options named = DITTO_VARIABLE_OPTIONS_INIT;
        ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { EACH / 4 } };
        char name[8];
        snprintf(name, sizeof name, "v%d", k);
        named.name = name;
        must(ditto_variable_create(strategy, &zeros, &named, &v[k]));
    }
    measure_all(strategy, folder);
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        print(replicas, mode, csv);
    rounds_end(&rounds);
    for (int k = 0; k < OPERATIONS; k++)
        alone_forget(&counts[k]);
    for (int k = 0; k < VARIABLES; k++)
        must(ditto_variable_destroy(v[k]));
    must(ditto_strategy_scope_leave(strategy));
    must(ditto_strategy_destroy(strategy));
    rmdir(folder);
}
