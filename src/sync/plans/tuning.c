/* src/sync/plans/tuning.c - reads, checks and keeps the numbers by which algorithms are chosen. */
#include "sync/plans/tuning.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/types/types.h"

#include <stdlib.h>
#include <string.h>

/* The fields of ditto_tuning. `name` is the name in DITTO_TUNING. */
static const struct field {
    const char *name;
    size_t offset;

    /* The range of a value that is not 0. */
    size_t least;
    size_t most;

    bool narrow; /* true for uint32_t, false for size_t */
} fields[] = {
    { "small_bytes", offsetof(ditto_tuning, small_bytes), 1, SIZE_MAX, false },
    { "stream_bytes", offsetof(ditto_tuning, stream_bytes), 1, SIZE_MAX, false },
    { "hierarchical_bytes", offsetof(ditto_tuning, hierarchical_bytes), 1, SIZE_MAX, false },
    { "helper_bytes", offsetof(ditto_tuning, helper_bytes), 1, SIZE_MAX, false },
    { "block_bytes", offsetof(ditto_tuning, block_bytes), 4096, 1u << 20, false },
    { "near_replicas", offsetof(ditto_tuning, near_replicas), 1, DITTO_MAX_REPLICAS, true },
    { "fetch_bytes", offsetof(ditto_tuning, fetch_bytes), 1, SIZE_MAX, false },
    { "stage_bytes", offsetof(ditto_tuning, stage_bytes), 1, SIZE_MAX, false },
    { "stage_one_way_bytes", offsetof(ditto_tuning, stage_one_way_bytes), 1, SIZE_MAX, false },
};
#define FIELDS (sizeof fields / sizeof fields[0])

static size_t get(const ditto_tuning *t, const struct field *f)
{
    uint32_t narrow;
    size_t wide;
    memcpy(f->narrow ? (void *)&narrow : (void *)&wide, (const char *)t + f->offset,
           f->narrow ? sizeof narrow : sizeof wide);
    return f->narrow ? narrow : wide;
}

static void set(ditto_tuning *t, const struct field *f, size_t value)
{
    uint32_t narrow = (uint32_t)value;
    memcpy((char *)t + f->offset, f->narrow ? (void *)&narrow : (void *)&value,
           f->narrow ? sizeof narrow : sizeof value);
}

void dti_tuning_fill(ditto_tuning *t, const ditto_tuning *from)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (get(t, &fields[i]) == 0)
            set(t, &fields[i], get(from, &fields[i]));
}

void dti_tuning_describe(const ditto_tuning *t, struct dti_text *text)
{
    const char *before = "collectives: DITTO_TUNING=";
    for (size_t i = 0; i < FIELDS; i++) {
        size_t value = get(t, &fields[i]);
        if (value == DITTO_NEVER_BYTES)
            dti_text_add(text, "%s%s=never", before, fields[i].name);
        else if (value != 0)
            dti_text_add(text, "%s%s=%zu", before, fields[i].name, value);
        before = value != 0 ? "," : before;
    }
    dti_text_add(text, "\n");
}

static ditto_status check_value(const struct field *f, size_t value)
{
    if (value != 0 && (value < f->least || value > f->most))
        return DTI_FAIL(DITTO_ERR_RANGE, "tuning: %s = %zu is outside %zu to %zu", f->name, value, f->least,
                        f->most);
    return DITTO_OK;
}

/* -- DITTO_TUNING -- */

/* Parses a number such as "2048" or "2K", or "never". Returns false if the text is neither. */
static bool parse_number(const char *text, size_t length, size_t *value)
{
    static const char units[] = "KMG";
    const char *unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
    int64_t number;
    if (length == 5 && memcmp(text, "never", 5) == 0) {
        *value = DITTO_NEVER_BYTES;
        return true;
    }
    if (unit != NULL)
        length--;
    if (!dti_parse_i64(text, length, &number) || number < 0)
        return false;
    unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    *value = (size_t)number << shift;
    return *value >> shift == (size_t)number;
}

static ditto_status parse(const char *text, ditto_tuning *out)
{
    *out = (ditto_tuning)DITTO_TUNING_INIT;
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ","), name = strcspn(at, "=,"), value = 0, i = 0;
        while (i < FIELDS && (strlen(fields[i].name) != name || memcmp(fields[i].name, at, name) != 0))
            i++;
        if (i == FIELDS || name >= length || !parse_number(at + name + 1, length - name - 1, &value))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the environment variable DITTO_TUNING has \"%.*s\": it must be "
                            "name=number,name=number, with the names of ditto_tuning's fields and numbers "
                            "like 2048, 2K or never",
                            (int)length, at);
        DTI_TRY(check_value(&fields[i], value)); /* before it is converted to uint32_t */
        set(out, &fields[i], value);
        at += length + (at[length] == ',');
    }
    return DITTO_OK;
}

ditto_status dti_tuning_read(const ditto_tuning *given, ditto_tuning *out)
{
    const char *text = getenv("DITTO_TUNING");
    ditto_tuning from_text;
    DTI_TRY(dti_options_copy(out, sizeof *out, given, "ditto_tuning"));
    out->struct_size = sizeof *out;
    if (text != NULL) {
        DTI_TRY(parse(text, &from_text));
        dti_tuning_fill(out, &from_text);
    }
    for (size_t i = 0; i < FIELDS; i++)
        DTI_TRY(check_value(&fields[i], get(out, &fields[i])));
    /* Blocks are adjacent in memory, and each must be aligned. */
    out->block_bytes -= out->block_bytes % DTI_CACHE_LINE_PAIR;
    return DITTO_OK;
}

/* The times of hops on servers of 2017 to 2023, and the thresholds of a small one of them. */
const struct dti_tuning dti_tuning_usual = {
    .given = { .struct_size = sizeof(ditto_tuning),
               .small_bytes = 4096,
               .stream_bytes = (size_t)64 << 20,
               .hierarchical_bytes = 64 << 10,
               .helper_bytes = 256 << 10,
               .block_bytes = 32 << 10,
               .fetch_bytes = DITTO_NEVER_BYTES,
               .stage_bytes = DITTO_NEVER_BYTES,
               .stage_one_way_bytes = DITTO_NEVER_BYTES },
    .costs = { { 60, 80, 110, 150 }, 10, 15 },
};

/* -- what this process has measured -- */

/* An element of the list. Elements are added at the head, and stay until the process ends. There is no lock,
 * because a thread could hold it while another thread forks, and no thread of the child process would release
 * it. */
struct kept {
    struct kept *next;
    struct dti_tuning tuning;
    uint32_t n;
    uint8_t border[];
};
static _Atomic(struct kept *) kept_list;

bool dti_tuning_find(const struct dti_machine_shape *shape, struct dti_tuning *out)
{
    /* acquire: pairs with the release in dti_tuning_keep */
    const struct kept *k = atomic_load_explicit(&kept_list, memory_order_acquire);
    while (k != NULL && (k->n != shape->n || memcmp(k->border, shape->border, shape->n) != 0))
        k = k->next;
    if (k != NULL)
        *out = k->tuning;
    return k != NULL;
}

void dti_tuning_keep(const struct dti_machine_shape *shape, const struct dti_tuning *measured)
{
    struct kept *k = malloc(sizeof *k + shape->n);
    if (k == NULL) /* the next strategy measures again */
        return;
    k->tuning = *measured;
    k->n = shape->n;
    memcpy(k->border, shape->border, shape->n);
    /* relaxed: the element at the head is not read here */
    k->next = atomic_load_explicit(&kept_list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&kept_list, &k->next, k, memory_order_release,
                                                  memory_order_relaxed))
        ; /* a failed exchange has stored the new head in k->next */
}
