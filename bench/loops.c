/* bench/loops.c - hand-written loops, see loops.h. */
#include "loops.h"

#include <stdalign.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Stands before a loop. No iteration needs the result of another one, in place or out of place. */
#if defined(__clang__)
#define WORK_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WORK_INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { LINE = 64, BLOCK_BYTES = 4096 }; /* a block stays in the first-level cache */

/* -- sums -- */

/* The widest vectors of the instructions that this file is compiled for. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
enum { VECTORS = 4 };

struct sums {
    void (*two)(char *x, char *y, const char *a, const char *b, struct span s);
    void (*eight)(char *const *out, const char *const *in, struct span s);
    void (*registers)(char *const *out, uint32_t outs, const char *const *in, uint32_t ins, struct span s);
    void (*block)(char *sum, const char *const *in, uint32_t count, struct span s);
};

#define SAME(x) (x)
#define NAME    f32
#define T       float
#define A       float
#define WIDEN   SAME
#define NARROW  SAME
#define LOOP
#include "loops_of_type.h"
#define NAME   f64
#define T      double
#define A      double
#define WIDEN  SAME
#define NARROW SAME
#define LOOP
#include "loops_of_type.h"
#define NAME   i32 /* overflow wraps around */
#define T      uint32_t
#define A      uint32_t
#define WIDEN  SAME
#define NARROW SAME
#define LOOP
#include "loops_of_type.h"

#define NAME   f32_half
#define T      float
#define A      float
#define WIDEN  SAME
#define NARROW SAME
#if defined(__x86_64__) && !defined(__clang__)
#define LOOP __attribute__((target("prefer-vector-width=256")))
#else
#define LOOP
#endif
#include "loops_of_type.h"

static inline float float_of(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } u = { .bits = bits };
    return u.value;
}

static inline float widen_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

/* Rounds to nearest, ties to even. A NaN stays a NaN. The result is in the upper half. */
static inline uint32_t round_bf16(float value)
{
    union {
        float value;
        uint32_t bits;
    } u = { .value = value };
    uint32_t rounded = u.bits + 0x7fffu + ((u.bits >> 16) & 1u);
    return (u.bits & 0x7fffffffu) > 0x7f800000u ? u.bits | 0x400000u : rounded;
}

static inline uint16_t narrow_bf16(float value)
{
    return (uint16_t)(round_bf16(value) >> 16);
}

/* Adds two neighbouring elements at a time, as one word. Compilers need no instructions then that widen and
 * narrow vectors. */
static inline uint32_t add_words(uint32_t a, uint32_t b)
{
    uint32_t low = round_bf16(float_of(a << 16) + float_of(b << 16));
    uint32_t high = round_bf16(float_of(a & 0xffff0000u) + float_of(b & 0xffff0000u));
    return (high & 0xffff0000u) | low >> 16;
}

/* The same for vectors of words. The lower and the upper halves have sums of their own. */
typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
struct two_sums {
    floats low, high;
};

static inline struct two_sums widen_words(words w)
{
    return (struct two_sums){ (floats)(w << 16), (floats)(w & 0xffff0000u) };
}

static inline struct two_sums add_to_sums(struct two_sums sums, words w)
{
    struct two_sums more = widen_words(w);
    return (struct two_sums){ sums.low + more.low, sums.high + more.high };
}

static inline words round_floats(floats value)
{
    words bits = (words)value, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    words is_nan = (words)(value != value);
    return (is_nan & (bits | 0x400000u)) | (~is_nan & rounded);
}

static inline words narrow_sums(struct two_sums sums)
{
    return (round_floats(sums.high) & 0xffff0000u) | round_floats(sums.low) >> 16;
}

/* As two_ of loops_of_type.h. The span is a multiple of a word. */
static void two_words(char *x_, char *y_, const char *a_, const char *b_, struct span s)
{
    const uint32_t *a = (const void *)a_, *b = (const void *)b_;
    uint32_t *x = (void *)x_, *y = (void *)y_;
    size_t first = s.first / sizeof *a, end = s.end / sizeof *a;
    if (y == NULL) {
        WORK_INDEPENDENT
        for (size_t i = first; i < end; i++)
            x[i] = add_words(a[i], b[i]);
    } else {
        WORK_INDEPENDENT
        for (size_t i = first; i < end; i++)
            x[i] = y[i] = add_words(a[i], b[i]);
    }
}

#define NAME       bf16
#define T          uint16_t
#define A          float
#define WIDEN      widen_bf16
#define NARROW     narrow_bf16
#define VECTOR     words
#define SUMS       struct two_sums
#define WIDEN_ALL  widen_words
#define ADD_ALL    add_to_sums
#define NARROW_ALL narrow_sums
#define TWO        two_words
#define LOOP
#include "loops_of_type.h"

static const struct sums *sums_of(ditto_dtype dtype, enum variant variant)
{
    switch (dtype) {
    case DITTO_F32:
        return variant == VARIANT_HALF ? &sums_f32_half : &sums_f32;
    case DITTO_F64:
        return &sums_f64;
    case DITTO_I32:
        return &sums_i32;
    case DITTO_BF16:
        return &sums_bf16;
    default:
        return NULL;
    }
}

bool loops_can(const struct work *work)
{
    if (work->kind == BENCH_ALL_TO_ALL) /* in place, parts would be written where others still read */
        return !work->in_place;
    return !bench_facts[work->kind].reduces ||
           (work->op == DITTO_SUM && sums_of(work->dtype, VARIANT_PLAIN) != NULL);
}

/* -- variants -- */

#if defined(__x86_64__)
static bool can_demote(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 25 & 1u) != 0;
}

__attribute__((target("cldemote"))) void demote(const void *bytes, size_t count)
{
    char *line = (char *)(uintptr_t)bytes;
    for (size_t i = 0; i < count; i += LINE)
        _cldemote(line + i);
}

/* Writes whole lines with streaming stores, and incomplete lines at both ends with ordinary stores. */
static void stream(char *out, const char *from, size_t bytes)
{
    size_t head = (LINE - (uintptr_t)out % LINE) % LINE;
    head = head < bytes ? head : bytes;
    memcpy(out, from, head);
    size_t i = head;
    for (; i + LINE <= bytes; i += LINE) {
#if defined(__AVX512F__)
        _mm512_stream_si512((void *)(out + i), _mm512_loadu_si512((const void *)(from + i)));
#else
        for (size_t k = 0; k < LINE; k += 16)
            _mm_stream_si128((void *)(out + i + k), _mm_loadu_si128((const void *)(from + i + k)));
#endif
    }
    memcpy(out + i, from + i, bytes - i);
}

static void stream_end(void)
{
    _mm_sfence();
}
#else
static bool can_demote(void)
{
    return false;
}

void demote(const void *bytes, size_t count)
{
    (void)bytes, (void)count;
}

static void stream(char *out, const char *from, size_t bytes)
{
    memcpy(out, from, bytes);
}

static void stream_end(void) {}
#endif

static bool is_streaming(enum variant variant)
{
    return variant == VARIANT_STREAM || variant == VARIANT_STREAM_AHEAD;
}

static bool is_ahead(enum variant variant)
{
    return variant == VARIANT_AHEAD || variant == VARIANT_STREAM_AHEAD || variant == VARIANT_REGISTERS_AHEAD;
}

/* Returns the bytes of a block. Prefetches and streaming stores occupy line fill buffers, of which a core has
 * few. Smaller blocks have fewer of them in flight at a time. */
static size_t block_of(enum variant variant)
{
    return variant == VARIANT_STREAM_AHEAD ? 512
           : variant == VARIANT_STREAM     ? 256
           : is_ahead(variant)             ? 1024
                                           : BLOCK_BYTES;
}

bool variant_exists(enum variant variant)
{
#if !defined(__x86_64__)
    if (is_streaming(variant))
        return false;
#endif
    return variant != VARIANT_DEMOTE || can_demote();
}

/* The inputs and outputs of a range. */
struct buffers {
    const char *const *in;
    uint32_t ins, outs;
    const char *own; /* the output of the calling replica */
    char *out[WORK_MOST_REPLICAS];
};

static void fetch_ahead(const struct buffers *e, struct span s, bool also_outputs)
{
    for (size_t at = s.first; at < s.end; at += LINE) {
        for (uint32_t i = 0; i < e->ins; i++)
            __builtin_prefetch(e->in[i] + at, 0);
        for (uint32_t i = 0; i < e->outs && also_outputs; i++)
            fetch_to_write(e->out[i] + at);
    }
}

static void deliver(enum variant variant, const struct buffers *e, size_t at, const char *from, size_t bytes)
{
    for (uint32_t i = 0; i < e->outs; i++) {
        char *out = e->out[i] + at;
        if (out == from) /* a copy in place */
            continue;
        if (is_streaming(variant))
            stream(out, from, bytes);
        else
            memcpy(out, from, bytes);
        if (variant == VARIANT_DEMOTE && e->out[i] != e->own)
            demote(out, bytes);
    }
}

/* Adds inputs in a block in the first-level cache, and copies the block to the outputs. If sums is NULL,
 * there is one input, which is copied directly. */
static void in_blocks(enum variant variant, const struct sums *sums, const struct buffers *e, struct span s)
{
    alignas(LINE) char block[BLOCK_BYTES];
    size_t step = block_of(variant);
    for (size_t at = s.first; at < s.end; at += step) {
        size_t end = at + step < s.end ? at + step : s.end;
        if (is_ahead(variant))
            fetch_ahead(e, (struct span){ end, end + step < s.end ? end + step : s.end },
                        !is_streaming(variant));
        if (sums != NULL)
            sums->block(block, e->in, e->ins, (struct span){ at, end });
        deliver(variant, e, at, sums != NULL ? block : e->in[0] + at, end - at);
    }
    if (is_streaming(variant))
        stream_end();
}

static void fetch_outputs(const struct buffers *e, size_t first, size_t end)
{
    for (uint32_t i = 0; i < e->outs; i++)
        for (size_t at = first; at < end; at += LINE)
            fetch_to_write(e->out[i] + at);
}

/* Adds two inputs in one pass. The lines of the results are prefetched for writing shortly before they are
 * written. */
static void sum_two_ahead(const struct sums *sums, const struct buffers *e, struct span s)
{
    const size_t step = 1024;
    for (size_t at = s.first; at < s.end; at += step) {
        struct span part = { at, at + step < s.end ? at + step : s.end };
        fetch_outputs(e, part.first, part.end);
        sums->two(e->out[0], e->outs == 2 ? e->out[1] : NULL, e->in[0], e->in[1], part);
    }
}

/* Adds inputs in registers. The lines of the results are prefetched for writing one step before they are
 * needed. If a result is also an input, its lines need not be fetched again to be written. */
static void sum_registers_ahead(const struct sums *sums, const struct buffers *e, struct span s)
{
    const size_t step = 1024;
    size_t fetched = s.first;
    for (size_t at = s.first; at < s.end; at += step) {
        struct span part = { at, at + step < s.end ? at + step : s.end };
        size_t ahead = part.end + step < s.end ? part.end + step : s.end;
        fetch_outputs(e, fetched, ahead);
        fetched = ahead;
        sums->registers(e->out, e->outs, e->in, e->ins, part);
    }
}

static void sum(enum variant variant, ditto_dtype dtype, const struct buffers *e, struct span s)
{
    const struct sums *sums = sums_of(dtype, variant);
    if ((variant == VARIANT_PLAIN || variant == VARIANT_HALF) && e->ins == 2 && e->outs <= 2)
        sums->two(e->out[0], e->outs == 2 ? e->out[1] : NULL, e->in[0], e->in[1], s);
    else if (variant == VARIANT_WIDE && e->ins == 8 && e->outs == 8)
        sums->eight(e->out, e->in, s);
    else if (variant == VARIANT_TWO_AHEAD && e->ins == 2 && e->outs <= 2)
        sum_two_ahead(sums, e, s);
    else if (variant == VARIANT_REGISTERS)
        sums->registers(e->out, e->outs, e->in, e->ins, s);
    else if (variant == VARIANT_REGISTERS_AHEAD)
        sum_registers_ahead(sums, e, s);
    else
        in_blocks(variant, sums, e, s);
}

/* Returns true if a copy in this variant is one `memcpy` to each result. */
static bool copies_at_once(enum variant variant)
{
    return variant == VARIANT_PLAIN || variant == VARIANT_HALF || variant == VARIANT_WIDE ||
           variant == VARIANT_REGISTERS;
}

static void copy(enum variant variant, struct buffers *e, const char *const *from, struct span s)
{
    e->in = from;
    e->ins = 1;
    if (copies_at_once(variant))
        deliver(variant, e, s.first, from[0] + s.first, s.end > s.first ? s.end - s.first : 0);
    else
        in_blocks(variant, NULL, e, s);
}

void loops_sum(enum variant variant, ditto_dtype dtype, char *const *out, uint32_t outs,
               const char *const *in, uint32_t ins, struct span s)
{
    struct buffers e;
    e.in = in;
    e.ins = ins;
    e.outs = outs;
    e.own = out[0];
    memcpy(e.out, out, outs * sizeof *out);
    if (s.end > s.first)
        sum(variant, dtype, &e, s);
}

void loops_copy(enum variant variant, char *out, const char *in, struct span s)
{
    struct buffers e;
    e.outs = 1;
    e.own = e.out[0] = out;
    copy(variant, &e, &in, s);
}

/* -- collectives -- */

/* Lists the output buffers of the replicas that receive the result. If all receive it, the buffer of the
 * caller is the first, so that not all replicas begin with the same one. */
static void list_outputs(struct buffers *e, const struct work *work, struct worker *w, uint32_t me,
                         bool everyone)
{
    uint32_t n = work->replicas;
    e->outs = 0;
    e->own = w[me].dst;
    if (!everyone)
        e->out[e->outs++] = w[me].dst;
    else if (bench_facts[work->kind].output == EXTENT_WHOLE_AT_ROOT)
        e->out[e->outs++] = w[work->root].dst;
    else
        for (uint32_t r = 0; r < n; r++)
            e->out[e->outs++] = w[me + r < n ? me + r : me + r - n].dst;
}

struct span loops_common(struct span a, struct span b)
{
    struct span s = { a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end };
    return s.end < s.first ? (struct span){ 0, 0 } : s;
}

void loops_produce(enum variant variant, const struct work *work, const char *const *in, struct worker *w,
                   struct span s, uint32_t me, bool everyone)
{
    struct buffers e;
    /* In place, the result of a replica replaces an input that only the replicas behind it need. */
    if (everyone && work_scans(work->kind)) {
        for (uint32_t r = work->replicas; r-- > 0;)
            loops_produce(variant, work, in, w, loops_common(s, work_output(work, r)), r, false);
        return;
    }
    if (s.end <= s.first)
        return;
    list_outputs(&e, work, w, me, everyone);
    if (bench_facts[work->kind].reduces) {
        e.in = in;
        e.ins = work_inputs(work, me);
        if (e.ins > 1)
            sum(variant, work->dtype, &e, s);
        else if (in[0] != w[me].dst) /* in place, replica 0 has nothing to do in a scan */
            copy(variant, &e, in, s);
    } else if (bench_facts[work->kind].input == EXTENT_WHOLE_AT_ROOT) {
        if (everyone ||
            in[work->root] != w[me].dst) /* without others to write to, the root has nothing to do */
            copy(variant, &e, &in[work->root], s);
    } else if (work->kind == BENCH_ALL_TO_ALL) {
        for (uint32_t i = 0; i < work->replicas; i++) { /* the own part is the last */
            uint32_t r = me + i + 1 < work->replicas ? me + i + 1 : me + i + 1 - work->replicas;
            struct span part = work_part(work, r);
            /* Where the source would begin if the part for this replica were at the place of part r. */
            const char *from = (const char *)((uintptr_t)in[r] + work_part(work, me).first - part.first);
            copy(variant, &e, &from, loops_common(s, part));
        }
    } else {
        for (uint32_t r = 0; r < work->replicas; r++)
            copy(variant, &e, &in[r], loops_common(s, work_part(work, r)));
    }
}

struct span loops_share(const struct work *work, uint32_t id)
{
    size_t lines = (work->bytes + LINE - 1) / LINE, n = work->replicas, end = lines * (id + 1) / n * LINE;
    return (struct span){ lines * id / n * LINE, end < work->bytes ? end : work->bytes };
}

void loops_sources(const struct work *work, const struct worker *workers, const char **in)
{
    for (uint32_t r = 0; r < work->replicas; r++)
        in[r] = workers[r].src;
}

void loops_collective(const struct work *work, struct worker *workers, uint32_t id)
{
    const char *in[WORK_MOST_REPLICAS];
    const struct bench_facts *facts = &bench_facts[work->kind];
    bool everyone = facts->output != EXTENT_OWN_PART && work->kind != BENCH_ALL_TO_ALL;
    struct span s = !everyone                         ? work_output(work, id)
                    : facts->input == EXTENT_OWN_PART ? work_input(work, id)
                                                      : loops_share(work, id);
    loops_sources(work, workers, in);
    loops_produce(work->replicas == 8 ? VARIANT_WIDE : VARIANT_PLAIN, work, in, workers, s, id, everyone);
}
