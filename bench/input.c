/* bench/input.c - the speed of the input, and its cost while replicas compute.
 *
 * csv:      MB/s per core of a file with 64 columns of whole numbers, which are read as i32. Bound: at least
 *           200 MB/s.
 * tfrecord: MB/s per core of records of 1 KiB, with both checksums. Bound: at least 1500 MB/s.
 * npy:      MB/s of batches of 256 rows of 1 KiB from a file of 256 MiB. It is compared with copying such
 *           batches from an array of the same size. Bound: at least 0.8 of that speed.
 * range:    rows/s of a range of 10^7 numbers with a map, in batches of 256, for all replicas. Also the
 *           growth of the process's memory. Bounds: at least 20 million rows/s; a growth of at most the
 *           queues' bytes and 1 MiB.
 * hidden:   us of a step in which the replica computes while a producer sleeps for the same time for each
 *           batch. Bound: at most 1.1 times the longer of the two.
 * shared:   us of a step in which each replica computes for 1 ms, while producers parse the rows. It is
 *           compared with the same step without parsing, and with the time of parsing. No bound, because with
 *           a replica on each PU there is no idle PU for the parsing.
 *
 * The time of csv and tfrecord is the time that the only producer spent in choosing and filling
 * (ditto_iterator_stats). The time of npy is that of the whole pass. These three files are in the page cache
 * after two passes that are not counted. One replica takes the batches, except in range and shared. The
 * figures are medians, and each pass begins with the first row. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 15, MOST_STEPS = 1 << 20 };
#define COLUMNS      64
#define CSV_ROWS     40000u
#define RECORDS      ((size_t)65536)
#define NPY_ROWS     ((size_t)262144)
#define ROW_BYTES    ((size_t)1024)
#define RANGE_ROWS   10000000
#define HIDDEN_STEPS 400
#define SHARED_STEPS 300

/* The row that is measured. The figures are nanoseconds, but for a ratio in `hidden`. */
static struct rounds rounds;

static double median(uint32_t column, uint32_t mode)
{
    return rounds_figures(&rounds, column, mode).median;
}

/* What a row of one mode shows, beside its column of the rounds. */
struct row {
    const char *name;
    uint32_t replicas, column;
    uint64_t bytes;
    double per_second; /* in the unit */
    const char *unit, *words;
    double bound_ns;
    const struct alone_counts *counts;
};

static void print(const struct row *row, uint32_t mode, bool csv)
{
    if (csv) {
        alone_csv(&(struct alone_row){ .bench = "input",
                                       .algorithm = row->name,
                                       .replicas = row->replicas,
                                       .bytes = row->bytes,
                                       .reps = SAMPLES,
                                       .rounds = &rounds,
                                       .column = row->column,
                                       .mode = mode,
                                       .bound_ns = row->bound_ns,
                                       .counts = row->counts });
        return;
    }
    printf("input   %-12s %3u %11llu %10.1f %s  %s;", row->name, row->replicas,
           (unsigned long long)row->bytes, row->per_second, row->unit, row->words);
    alone_end_row(&rounds, row->column, mode, row->counts);
}

/* -- files -- */

struct file {
    FILE *stream;
    char path[64];
    uint64_t bytes;
};

static struct file new_file(const char *folder, const char *name)
{
    struct file f;
    snprintf(f.path, sizeof f.path, "%s/%s", folder, name);
    f.stream = fopen(f.path, "wb");
    if (f.stream == NULL)
        exit(1);
    return f;
}

/* Flushes the file and removes it from the page cache, so that the first pass brings it there. A file that
 * was written in small pieces and stays in the page cache is read 15 % slower. */
static void end_file(struct file *f)
{
    f->bytes = (uint64_t)ftell(f->stream);
    if (fflush(f->stream) != 0 || fsync(fileno(f->stream)) != 0 ||
        posix_fadvise(fileno(f->stream), 0, 0, POSIX_FADV_DONTNEED) != 0 || fclose(f->stream) != 0)
        exit(1);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static struct file write_csv(const char *folder)
{
    struct file f = new_file(folder, "rows.csv");
    uint32_t random = 1;
    for (unsigned i = 0; i < CSV_ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            fprintf(f.stream, "%d%c", (int)(next_random(&random) % 20000) - 5000,
                    k + 1 < COLUMNS ? ',' : '\n');
    end_file(&f);
    return f;
}

/* Computes the masked CRC-32C with a table. It is used only to write the file. */
static uint32_t masked_crc(const unsigned char *bytes, size_t length)
{
    static uint32_t table[256];
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < 256 && table[255] == 0; i++)
        for (int bit = 0; bit <= 8; bit++)
            table[i] = bit == 0 ? i : table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78u : 0);
    for (size_t i = 0; i < length; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void write_number(FILE *stream, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(number >> (8 * i) & 255), stream);
}

static struct file write_tfrecord(const char *folder)
{
    struct file f = new_file(folder, "rows.tfrecord");
    unsigned char header[8] = { ROW_BYTES & 255, ROW_BYTES >> 8 }, data[ROW_BYTES];
    uint32_t random = 1;
    for (size_t i = 0; i < RECORDS; i++) {
        for (size_t k = 0; k < ROW_BYTES; k++)
            data[k] = (unsigned char)next_random(&random);
        fwrite(header, 1, 8, f.stream);
        write_number(f.stream, masked_crc(header, 8), 4);
        fwrite(data, 1, ROW_BYTES, f.stream);
        write_number(f.stream, masked_crc(data, ROW_BYTES), 4);
    }
    end_file(&f);
    return f;
}

static struct file write_npy(const char *folder)
{
    struct file f = new_file(folder, "rows.npy");
    char header[118];
    static unsigned char data[ROW_BYTES];
    snprintf(header, sizeof header, "%-117s",
             "{'descr': '|u1', 'fortran_order': False, 'shape': (262144, 1024), }");
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f.stream);
    fwrite(header, 1, 117, f.stream);
    fputc('\n', f.stream);
    for (size_t i = 0; i < NPY_ROWS; i++) {
        memset(data, (int)i, sizeof data);
        fwrite(data, 1, ROW_BYTES, f.stream);
    }
    end_file(&f);
    return f;
}

/* -- one producer -- */

struct taking {
    ditto_iterator *iterator;
    double compute; /* the seconds of computing in each step */
    uint64_t steps; /* the most steps */
};

static void compute_for(double seconds)
{
    for (double begin = now_seconds(); now_seconds() - begin < seconds;)
        ;
}

static ditto_status take_all(ditto_replica *self, void *argument)
{
    struct taking *t = argument;
    ditto_batch batch;
    ditto_status status = DITTO_OK;
    for (uint64_t step = 0; step < t->steps && (status = ditto_next(self, t->iterator, &batch)) == DITTO_OK;
         step++)
        if (t->compute > 0)
            compute_for(t->compute);
    return status < 0 ? status : DITTO_OK;
}

static double run_pass(ditto_strategy *strategy, ditto_dataset *dataset, uint64_t batch, uint32_t producers,
                       double compute, uint64_t steps, ditto_iterator_counters *stats,
                       struct alone_counts *counts)
{
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct taking taking = { .compute = compute, .steps = steps };
    options.global_batch = batch;
    options.num_producers = producers;
    must(ditto_strategy_iterate(strategy, dataset, &options, &taking.iterator));
    alone_start(counts);
    double begin = now_seconds();
    must(ditto_strategy_run(strategy, take_all, &taking));
    double seconds = now_seconds() - begin;
    alone_stop(counts, 1);
    must(ditto_iterator_stats(taking.iterator, DITTO_ALL_REPLICAS, stats));
    must(ditto_iterator_destroy(taking.iterator));
    return seconds;
}

/* Returns the nanoseconds that the only producer spent in choosing and filling. If `whole` is true, returns
 * those of the pass. It is used for large batches, because passing them on takes little of it. */
static double pass_ns(ditto_strategy *one, ditto_dataset *dataset, bool whole, struct alone_counts *counts)
{
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    double seconds = run_pass(one, dataset, 256, 1, 0, MOST_STEPS, &stats, counts);
    return whole ? seconds * 1e9 : (double)(stats.choosing_ns + stats.filling_ns);
}

static ditto_dataset *open_csv(const char *path)
{
    ditto_csv_component columns = { .num_columns = COLUMNS, .dtype = DITTO_I32 };
    ditto_dataset *d;
    must(ditto_dataset_from_csv(&(ditto_files){ .names = &path, .num_names = 1 }, &columns, 1, NULL, &d));
    return d;
}

static ditto_dataset *open_tfrecord(const char *path)
{
    ditto_tfrecord_options options = DITTO_TFRECORD_OPTIONS_INIT;
    ditto_dataset *d;
    options.max_bytes = ROW_BYTES;
    must(ditto_dataset_from_tfrecord(&(ditto_files){ .names = &path, .num_names = 1 }, &options, &d));
    return d;
}

static ditto_dataset *open_npy(const char *path)
{
    ditto_dataset *d;
    must(ditto_dataset_from_npy(&path, 1, &d));
    return d;
}

/* Copies as many bytes from memory, a batch at a time, to three buffers in turn. A queue of two batches uses
 * as many. */
static double copy_seconds(const char *from, char *to)
{
    size_t piece = 256 * ROW_BYTES;
    double begin = now_seconds();
    for (size_t at = 0; at < NPY_ROWS * ROW_BYTES; at += piece)
        memcpy(to + at / piece % 3 * piece, from + at, piece);
    return now_seconds() - begin;
}

enum { CSV, TFRECORD, NPY, FILES, COPY = FILES, FILE_COLUMNS };

static void measure_files(ditto_strategy *one, ditto_dataset *const *dataset, struct alone_counts *counts)
{
    char *from = malloc(NPY_ROWS * ROW_BYTES), *to = malloc(3 * 256 * ROW_BYTES);
    if (from == NULL || to == NULL)
        exit(1);
    memset(from, 1, NPY_ROWS * ROW_BYTES);
    memset(to, 1, 3 * 256 * ROW_BYTES);
    /* Two passes do not count, this one and the first round. The first pass reads from the disk. In the
     * second, the kernel moves the pages to another list. */
    for (int k = 0; k < FILES; k++)
        (void)pass_ns(one, dataset[k], true, NULL);
    rounds_begin(&rounds, FILE_COLUMNS, SAMPLES);
    while (rounds_next(&rounds)) {
        for (uint32_t k = 0; k < FILES; k++)
            rounds_put(&rounds, k, pass_ns(one, dataset[k], k == NPY, &counts[k]));
        rounds_put(&rounds, COPY, copy_seconds(from, to) * 1e9);
    }
    free(from);
    free(to);
}

/* Prints the row of a file in one mode. */
static void print_file(uint32_t k, const struct file *file, const struct alone_counts *counts, uint32_t mode,
                       bool csv)
{
    static const char *const name[] = { "csv", "tfrecord", "npy" };
    static const double least[] = { 200, 1500 };
    double ns = median(k, mode), copied = median(COPY, mode), bytes = (double)file->bytes;
    char words[120];
    struct row row = { .name = name[k],
                       .replicas = 1,
                       .column = k,
                       .bytes = file->bytes,
                       .words = words,
                       .per_second = bytes / ns * 1e3,
                       .unit = "MB/s  ",
                       .counts = counts };
    if (k < NPY) {
        snprintf(words, sizeof words, "per core, at least %.0f", least[k]);
        row.bound_ns = bytes / least[k] * 1e3;
    } else {
        snprintf(words, sizeof words, "copying %.1f MB/s (%.2f, at least 0.80)", bytes / copied * 1e3,
                 copied / ns);
        row.bound_ns = copied / 0.8;
    }
    print(&row, mode, csv);
}

static void bench_files(ditto_strategy *one, const char *folder, bool csv)
{
    struct file file[FILES] = { write_csv(folder), write_tfrecord(folder), write_npy(folder) };
    ditto_dataset *dataset[FILES] = { open_csv(file[CSV].path), open_tfrecord(file[TFRECORD].path),
                                      open_npy(file[NPY].path) };
    struct alone_counts counts[FILES] = { { .threads = 0 } };
    measure_files(one, dataset, counts);
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        for (uint32_t k = 0; k < FILES; k++)
            print_file(k, &file[k], &counts[k], mode, csv);
    rounds_end(&rounds);
    for (uint32_t k = 0; k < FILES; k++) {
        alone_forget(&counts[k]);
        must(ditto_dataset_destroy(dataset[k]));
        unlink(file[k].path);
    }
}

/* -- rows of a range -- */

static ditto_status double_it(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *user)
{
    (void)random;
    (void)user;
    *(int64_t *)out[0].data = 2 * *(const int64_t *)in[0].data;
    return DITTO_OK;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1)
        exit(1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void bench_range(ditto_strategy *strategy, bool csv)
{
    ditto_dataset *range, *mapped;
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    struct alone_counts counts = { .threads = 0 };
    char words[160];
    long grown = 0;
    must(ditto_dataset_from_range(0, RANGE_ROWS, 1, &range));
    must(ditto_dataset_map(range, double_it, NULL, NULL, &mapped));
    (void)run_pass(strategy, mapped, 256, 1, 0, 100, &stats, NULL);
    rounds_begin(&rounds, 1, SAMPLES);
    while (rounds_next(&rounds)) {
        long before = resident_kib();
        double seconds = run_pass(strategy, mapped, 256, 0, 0, MOST_STEPS, &stats, &counts);
        grown = resident_kib() - before > grown ? resident_kib() - before : grown;
        rounds_put(&rounds, 0, seconds * 1e9);
    }
    snprintf(words, sizeof words, "at least 20; memory grew by %ld KiB, queues have %.0f KiB", grown,
             (double)stats.queue_bytes / 1024);
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        print(&(struct row){ .name = "range",
                             .replicas = ditto_strategy_num_replicas(strategy),
                             .bytes = RANGE_ROWS * 8ull,
                             .per_second = RANGE_ROWS / median(0, mode) * 1e3,
                             .unit = "Mrows/s",
                             .words = words,
                             .bound_ns = RANGE_ROWS / 20e6 * 1e9,
                             .counts = &counts },
              mode, csv);
    rounds_end(&rounds);
    alone_forget(&counts);
    must(ditto_dataset_destroy(mapped));
    must(ditto_dataset_destroy(range));
}

/* -- computing beside producers -- */

#define NAP_NS 500000

static ditto_status nap(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user)
{
    (void)random;
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    double begin = now_seconds();
    nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    *(double *)user += now_seconds() - begin; /* is not atomic: there is only one producer */
    return DITTO_OK;
}

static void print_hidden(const struct alone_counts *counts, uint32_t mode, bool csv)
{
    double step = median(0, mode), ratio = median(1, mode);
    char words[160];
    snprintf(words, sizeof words, "%.2f of the longer of computing and sleeping, at most 1.1", ratio);
    print(&(struct row){ .name = "hidden",
                         .replicas = 1,
                         .bytes = 8,
                         .per_second = step * 1e-3,
                         .unit = "us/step",
                         .words = words,
                         .bound_ns = step / ratio * 1.1,
                         .counts = counts },
          mode, csv);
}

static void bench_hidden(ditto_strategy *one, bool csv)
{
    ditto_dataset *range, *slow;
    double slept = 0;
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    struct alone_counts counts = { .threads = 0 };
    must(ditto_dataset_from_range(0, HIDDEN_STEPS, 1, &range));
    must(ditto_dataset_map(range, nap, &slept, NULL, &slow));
    (void)run_pass(one, slow, 1, 1, 0, MOST_STEPS, &stats, NULL);
    rounds_begin(&rounds, 2, SAMPLES); /* a step, and its ratio */
    while (rounds_next(&rounds)) {
        double compute = slept / HIDDEN_STEPS; /* the measured time of a nap */
        slept = 0;
        double step = run_pass(one, slow, 1, 1, compute, MOST_STEPS, &stats, &counts) / HIDDEN_STEPS;
        double longer = slept / HIDDEN_STEPS > compute ? slept / HIDDEN_STEPS : compute;
        rounds_put(&rounds, 0, step * 1e9);
        rounds_put_also(&rounds, 1, 0, step / longer);
    }
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        print_hidden(&counts, mode, csv);
    rounds_end(&rounds);
    alone_forget(&counts);
    must(ditto_dataset_destroy(slow));
    must(ditto_dataset_destroy(range));
}

static void print_shared(uint32_t replicas, uint64_t bytes, const struct alone_counts *counts, uint32_t mode,
                         bool csv)
{
    char words[200];
    double step = median(0, mode), alone = median(1, mode), parsing = median(2, mode);
    snprintf(words, sizeof words,
             "numbers from a range %.1f us; parsing took %.1f us for each replica's batch of 64 rows of %d "
             "columns",
             alone * 1e-3, parsing * 1e-3, COLUMNS);
    print(&(struct row){ .name = "shared",
                         .replicas = replicas,
                         .bytes = bytes,
                         .per_second = step * 1e-3,
                         .unit = "us/step",
                         .words = words,
                         .bound_ns = alone,
                         .counts = counts },
          mode, csv);
}

static void bench_shared(ditto_strategy *strategy, const char *folder, bool csv)
{
    struct file file = write_csv(folder);
    ditto_dataset *rows = open_csv(file.path), *range;
    uint32_t n = ditto_strategy_num_replicas(strategy);
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    struct alone_counts counts = { .threads = 0 };
    double scale = 1e9 / SHARED_STEPS;
    must(ditto_dataset_from_range(0, (int64_t)SHARED_STEPS * 64 * n, 1, &range));
    rounds_begin(&rounds, 3, SAMPLES); /* a step, one without parsing, and the time of parsing */
    while (rounds_next(&rounds)) {
        rounds_put(&rounds, 0,
                   run_pass(strategy, rows, 64ull * n, 0, 1e-3, SHARED_STEPS, &stats, &counts) * scale);
        rounds_put_also(&rounds, 2, 0, (double)(stats.choosing_ns + stats.filling_ns) / SHARED_STEPS / n);
        rounds_put(&rounds, 1,
                   run_pass(strategy, range, 64ull * n, 0, 1e-3, SHARED_STEPS, &stats, NULL) * scale);
    }
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        print_shared(n, file.bytes, &counts, mode, csv);
    rounds_end(&rounds);
    alone_forget(&counts);
    must(ditto_dataset_destroy(range));
    must(ditto_dataset_destroy(rows));
    unlink(file.path);
}

void bench_input(uint32_t replicas, bool csv)
{
    char folder[] = "/tmp/ditto-bench-XXXXXX";
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *one, *all;
    if (mkdtemp(folder) == NULL)
        exit(1);
    options.num_replicas = 1;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &one));
    bench_files(one, folder, csv);
    bench_hidden(one, csv);
    must(ditto_strategy_destroy(one));
    options.num_replicas = replicas;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &all));
    bench_range(all, csv);
    bench_shared(all, folder, csv);
    must(ditto_strategy_destroy(all));
    rmdir(folder);
}
