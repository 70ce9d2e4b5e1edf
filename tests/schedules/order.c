/* tests/schedules/order.c - which values a load may find, and which accesses race.
 *
 * The model is C11's with two limits: the order of the stores to an atomic (modification order) is that of
 * their execution, and no load finds a value that is stored later (no load buffering). Another order of
 * the stores comes in another schedule, but for 2+2W. Each atomic keeps its last stores. A load
 * finds one of them that is not older than
 *   - a store that happens before the load, or that seq_cst fences let the fiber see,
 *   - a store that was found by a load that happens before this one,
 *   - for a seq_cst load: the last seq_cst store, and what seq_cst fences have made visible.
 * Source: Batty and others, POPL 2011, and the rules of C11Tester (Luo, Demsky, ASPLOS 2021).
 *
 * Two accesses race if they are not both atomic, one writes, and neither happens before the other. The last
 * four accesses of each 8 bytes are compared, as ThreadSanitizer does it. */
#include "engine.h"

#include <stdatomic.h>
#include <string.h>

/* Ends a step of a fiber. Later accesses are no part of its release. */
void count_step(uint32_t number)
{
    struct fiber *f = &W->now.fiber[number];
    f->view.of[number] = ++f->before.of[number];
}

/* -- shadow -- */

enum { NO_GRANULE = UINT32_MAX };

static uint32_t granule_of(const volatile void *address)
{
    uintptr_t in_memory = (uintptr_t)address - (uintptr_t)MEMORY;
    uintptr_t in_globals = (uintptr_t)address - (uintptr_t)W->globals;
    if (in_memory < MEMORY_BYTES)
        return (uint32_t)(in_memory / 8);
    if (in_globals < W->globals_bytes)
        return (uint32_t)(MEMORY_BYTES / 8 + in_globals / 8);
    return NO_GRANULE;
}

static struct cell *cell_of(uint32_t granule)
{
    uint32_t id = W->shadow[granule];
    if (id != 0)
        return &W->cell[id];
    id = ++W->now.cells;
    if (id >= MOST_CELLS)
        fail("the engine has no more cells");
    W->shadow[granule] = id;
    W->touched_granule[id] = granule;
    memset(&W->cell[id], 0, sizeof W->cell[id]);
    return &W->cell[id];
}

void memory_is_new(const void *at, size_t bytes)
{
    uint32_t first = granule_of(at);
    for (uint32_t g = first; first != NO_GRANULE && g < first + bytes / 8; g++)
        if (W->shadow[g] != 0)
            memset(&W->cell[W->shadow[g]], 0, sizeof W->cell[0]);
}

static uint32_t bytes_mask(uintptr_t address, size_t bytes)
{
    return ((1u << bytes) - 1) << address % 8;
}

static void check_is_allocated(const volatile void *address, size_t bytes, const void *place)
{
    size_t first = (size_t)((const volatile char *)address - MEMORY) / 16;
    size_t last = ((size_t)((const volatile char *)address - MEMORY) + bytes - 1) / 16;
    if (first >= HEAP_BYTES / 16)
        return;
    if ((W->allocated[first / 64] >> first % 64 & 1) == 0 || (W->allocated[last / 64] >> last % 64 & 1) == 0)
        fail("%zu bytes at heap + %#zx are used, and not allocated (code + %#zx)", bytes,
             (size_t)((const volatile char *)address - MEMORY), (size_t)((uintptr_t)place - W->code));
}

/* -- races -- */

static bool has_happened(const struct record *r)
{
    return r->step <= me()->before.of[r->fiber];
}

static void note_access(struct cell *cell, uint32_t granule, uint32_t mask, bool is_write, bool is_atomic,
                        const void *place)
{
    uint32_t number = W->now.current, step = me()->before.of[number];
    struct record *free = NULL, *own = NULL;
    for (int i = 0; i < 4; i++) {
        struct record *r = &cell->record[i];
        if (r->bytes == 0) {
            free = free == NULL || free->bytes != 0 ? r : free;
            continue;
        }
        if (r->fiber == number) {
            if (r->is_write == is_write && r->is_atomic == is_atomic &&
                (r->step == step || (r->bytes & ~mask) == 0))
                own = r; /* what it says about the bytes is said again */
            continue;
        }
        if ((r->bytes & mask) == 0 || (!r->is_write && !is_write) || (r->is_atomic && is_atomic))
            continue;
        if (!has_happened(r))
            fail("a race: fiber %u %s%s granule %#x, code + %#zx, and fiber %u %s%s it, code + %#x", number,
                 is_write ? "writes" : "reads", is_atomic ? " (atomic)" : "", granule,
                 (size_t)((uintptr_t)place - W->code), r->fiber, r->is_write ? "has written" : "has read",
                 r->is_atomic ? " (atomic)" : "", r->place);
        if (free == NULL || (free->bytes != 0 && r->step < free->step))
            free = r;
    }
    struct record *to = own != NULL ? own : free != NULL ? free : &cell->record[W->now.steps % 4];
    if (own != NULL && own->step == step)
        mask |= own->bytes;
    *to = (struct record){ step,
                           (uint32_t)((uintptr_t)place - W->code),
                           (uint8_t)number,
                           (uint8_t)mask,
                           (uint8_t)is_write,
                           (uint8_t)is_atomic };
}

void memory_is_freed(const void *at, size_t bytes, void *place)
{
    uint32_t first = granule_of(at);
    for (uint32_t g = first; W->now.is_free && g < first + (bytes + 7) / 8; g++)
        if (W->shadow[g] != 0)
            note_access(&W->cell[W->shadow[g]], g, 0xff, true, false, place);
}

/* Thread-local variables have the same addresses in all fibers. So no fiber may read a pointer to one that
 * another fiber has stored. */
static void check_pointer(const struct cell *cell, uint32_t granule)
{
    uintptr_t word;
    memcpy(&word,
           granule < MEMORY_BYTES / 8 ? MEMORY + (size_t)granule * 8
                                      : W->globals + ((size_t)granule - MEMORY_BYTES / 8) * 8,
           sizeof word);
    if (word - (uintptr_t)W->tls_block >= W->tls_bytes)
        return;
    uint32_t writer = W->now.current;
    for (int i = 0; i < 4; i++)
        if (cell->record[i].bytes == 0xff && cell->record[i].is_write &&
            (writer == W->now.current || cell->record[i].fiber == W->now.current))
            writer = cell->record[i].fiber;
    if (writer != W->now.current)
        fail("fiber %u reads a pointer to a thread-local variable of fiber %u", W->now.current, writer);
}

/* A plain write to an atomic: the next atomic access begins with what was written. Atomics in the other bytes
 * keep their stores. */
static void forget_stores(struct cell *cell, uint32_t mask)
{
    const struct history *h = &W->history[cell->history];
    uint32_t stored = 0;
    for (uint32_t i = 1; i < h->stores; i++) /* the first one is what was there before */
        stored |= h->store[i].bytes;
    if ((stored & mask) != 0 || h->stores == 1)
        cell->history = 0;
}

void plain_access(const volatile void *address, size_t bytes, bool is_write, void *place)
{
    uintptr_t at = (uintptr_t)address, end = at + bytes;
    uint32_t granule = granule_of(address);
    if (granule == NO_GRANULE || bytes == 0 || !W->now.is_free) {
        if (is_write)
            world_touch(address, bytes);
        return;
    }
    if (is_in_memory(address))
        check_is_allocated(address, bytes, place);
    if (is_write)
        world_touch(address, bytes);
    for (; at < end; at = (at | 7) + 1, granule++) {
        size_t here = end - at < 8 - at % 8 ? end - at : 8 - at % 8;
        uint32_t mask = bytes_mask(at, here);
        struct cell *cell = cell_of(granule);
        const struct record *first = &cell->record[0];
        if (first->fiber == W->now.current && first->is_write && !first->is_atomic &&
            (first->bytes & mask) == mask && first->step == me()->before.of[W->now.current])
            continue;
        if (mask == 0xff && !is_write)
            check_pointer(cell, granule);
        note_access(cell, granule, mask, is_write, false, place);
        if (is_write && cell->history != 0)
            forget_stores(cell, mask);
    }
}

/* -- histories -- */

static uint64_t *word_of(volatile void *address)
{
    return (uint64_t *)((uintptr_t)address / 8 * 8);
}

/* Returns the history, which begins with the value that was there. */
static struct history *history_of(struct cell *cell, volatile void *address)
{
    if (cell->history != 0)
        return &W->history[cell->history];
    cell->history = ++W->now.histories;
    if (cell->history >= MOST_HISTORIES)
        fail("the engine has no more histories");
    struct history *h = &W->history[cell->history];
    struct store *s = &h->store[0];
    h->stores = 1;
    memset(s, 0, sizeof *s);
    s->value = *word_of(address);
    s->bytes = 0xff;
    return h;
}

/* Returns the last store to some of the bytes. */
static struct store *newest(struct history *h, uint32_t mask)
{
    uint32_t i = h->stores - 1;
    while (i > 0 && (h->store[i].bytes & mask) == 0)
        i--;
    return &h->store[i];
}

/* Forgets the oldest store whose bytes have all been stored again. */
static void make_room(struct history *h)
{
    uint32_t oldest = 0, later = 0;
    for (uint32_t i = h->stores; i-- > 0; later |= h->store[i].bytes)
        oldest = (h->store[i].bytes & ~later) == 0 ? i : oldest;
    if (oldest == 0) /* perhaps nothing has stored its bytes again */
        h->store[1].bytes |= h->store[0].bytes;
    h->stores--;
    memmove(&h->store[oldest], &h->store[oldest + 1], (h->stores - oldest) * sizeof h->store[0]);
}

/* Returns true if no older value may be found. */
static bool is_oldest_for_me(const struct store *s, int order)
{
    const struct clocks *view = &me()->view;
    if (s->step <= view->of[s->fiber])
        return true;
    if (s->is_seq_cst && (order == memory_order_seq_cst || s->at < me()->seq_cst_fence_at))
        return true;
    if (order == memory_order_seq_cst && s->step <= W->now.seq_cst.of[s->fiber])
        return true;
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        if (s->read_at[f] != 0 && s->read_at[f] <= view->of[f])
            return true;
    return false;
}

/* Chooses the store that a load finds. */
static struct store *find_store(struct history *h, const volatile void *address, uint32_t mask, int order)
{
    struct store *found[HISTORY_STORES];
    uint32_t count = 0;
    uint8_t *stale = &me()->stale[((uintptr_t)address / 8 * 0x9e3779b97f4a7c15u) >> 58];
    for (uint32_t i = h->stores; i-- > 0;) {
        struct store *s = &h->store[i];
        if ((s->bytes & mask) == 0)
            continue;
        found[count++] = s;
        if (is_oldest_for_me(s, order))
            break;
    }
    if (count > 1 && W->now.is_free && W->policy.stale_one_in != 0 && *stale < 3 &&
        random_below(W->policy.stale_one_in) == 0) {
        ++*stale;
        W->trace[W->now.steps % TRACE_STEPS].was_stale = true;
        return found[1 + random_below(count - 1)];
    }
    *stale = 0;
    return found[0];
}

static void load_from(struct store *s, int order)
{
    struct fiber *f = me();
    uint32_t number = W->now.current;
    if (s->read_at[number] == 0)
        s->read_at[number] = f->before.of[number];
    if (!s->releases)
        return;
    bool acquires = order == memory_order_acquire || order == memory_order_consume ||
                    order == memory_order_acq_rel || order == memory_order_seq_cst;
    clocks_add(acquires ? &f->before : &f->loaded, &s->released);
    clocks_add(acquires ? &f->view : &f->loaded_view, &s->released_view);
}

static uint64_t bits_of(uint64_t word, const volatile void *address, uint32_t bytes)
{
    uint64_t value = word >> (uintptr_t)address % 8 * 8;
    return bytes == 8 ? value : value & (((uint64_t)1 << bytes * 8) - 1);
}

static void write_value(volatile void *address, uint64_t value, uint32_t bytes)
{
    world_touch(address, bytes);
    memcpy((void *)(uintptr_t)address, &value, bytes); /* little-endian */
}

/* Adds a store, which continues the release sequence of `read` (or of none). */
static void add_store(struct history *h, volatile void *address, uint64_t value, uint32_t bytes, int order,
                      const struct store *read)
{
    struct fiber *f = me();
    uint32_t number = W->now.current;
    struct store s = { .step = f->before.of[number],
                       .at = W->now.steps,
                       .fiber = (uint8_t)number,
                       .bytes = (uint8_t)bytes_mask((uintptr_t)address, bytes),
                       .is_seq_cst = order == memory_order_seq_cst };
    if (order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst) {
        s.releases = true;
        s.released = f->before;
        s.released_view = f->view;
    } else if (f->has_fence) {
        s.releases = true;
        s.released = f->fenced;
        s.released_view = f->fenced_view;
    }
    if (read != NULL && read->releases) {
        s.releases = true;
        clocks_add(&s.released, &read->released);
        clocks_add(&s.released_view, &read->released_view);
    }
    write_value(address, value, bytes);
    s.value = *word_of(address);
    if (h->stores == HISTORY_STORES)
        make_room(h);
    h->store[h->stores++] = s;
}

/* -- atomic accesses -- */

static struct history *begin(volatile void *address, uint32_t bytes, bool is_write, void *place)
{
    uint32_t granule = granule_of(address);
    if (granule == NO_GRANULE || !W->now.is_free)
        return NULL;
    if (is_in_memory(address))
        check_is_allocated(address, bytes, place);
    struct cell *cell = cell_of(granule);
    struct history *h = history_of(cell, address);
    note_access(cell, granule, bytes_mask((uintptr_t)address, bytes), is_write, true, place);
    return h;
}

static uint64_t current_value(const volatile void *address, uint32_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)address, bytes);
    return value;
}

uint64_t atomic_load_step(const volatile void *address, uint32_t bytes, int order, void *place)
{
    step(LOAD, address, 0, bytes, order, NULL, place);
    struct history *h = begin((volatile void *)(uintptr_t)address, bytes, false, place);
    uint64_t value = current_value(address, bytes);
    if (h != NULL) {
        struct store *s = find_store(h, address, bytes_mask((uintptr_t)address, bytes), order);
        load_from(s, order);
        value = bits_of(s->value, address, bytes);
    }
    step_found(value);
    count_step(W->now.current);
    return value;
}

void atomic_store_step(volatile void *address, uint64_t value, uint32_t bytes, int order, void *place)
{
    step(STORE, address, value, bytes, order, NULL, place);
    struct history *h = begin(address, bytes, true, place);
    if (h != NULL)
        add_store(h, address, value, bytes, order, NULL);
    else
        write_value(address, value, bytes);
    count_step(W->now.current);
}

uint64_t atomic_change_step(volatile void *address, uint64_t operand, uint32_t bytes, int order, void *place,
                            uint64_t (*change)(uint64_t value, uint64_t operand))
{
    step(EXCHANGE, address, operand, bytes, order, NULL, place);
    struct history *h = begin(address, bytes, true, place);
    uint64_t old = current_value(address, bytes), value = change(old, operand);
    step_found(value);
    if (h != NULL) {
        struct store *read = newest(h, bytes_mask((uintptr_t)address, bytes)), copy;
        load_from(read, order);
        copy = *read;
        add_store(h, address, value, bytes, order, &copy);
    } else {
        write_value(address, value, bytes);
    }
    count_step(W->now.current);
    return old;
}

bool atomic_compare_step(volatile void *address, uint64_t *expected, uint64_t desired, uint32_t bytes,
                         int order, int failure_order, bool is_weak, void *place)
{
    step(EXCHANGE, address, desired, bytes, order, NULL, place);
    uint64_t value = current_value(address, bytes);
    struct history *h = begin(address, bytes, value == *expected, place);
    uint32_t mask = bytes_mask((uintptr_t)address, bytes);
    /* A failure is a load, which may find an old value. */
    struct store *found = h != NULL ? find_store(h, address, mask, failure_order) : NULL;
    bool equal = value == *expected && (found == NULL || bits_of(found->value, address, bytes) == value);
    equal = equal && !(is_weak && W->now.is_free && random_below(16) == 0);
    if (h != NULL && !equal) {
        if (bits_of(found->value, address, bytes) == *expected)
            found = newest(h, mask); /* an exchange does not fail if it finds what is expected */
        load_from(found, failure_order);
        value = bits_of(found->value, address, bytes);
    } else if (h != NULL) {
        struct store *read = newest(h, mask), copy;
        load_from(read, order);
        copy = *read;
        add_store(h, address, desired, bytes, order, &copy);
    } else if (equal) {
        write_value(address, desired, bytes);
    }
    *expected = equal ? *expected : value;
    step_found(equal ? desired : value);
    count_step(W->now.current);
    return equal;
}

static void fence(struct fiber *f, int order)
{
    if (order != memory_order_release) {
        clocks_add(&f->before, &f->loaded);
        clocks_add(&f->view, &f->loaded_view);
    }
    if (order == memory_order_seq_cst) {
        clocks_add(&W->now.seq_cst, &f->view);
        clocks_add(&f->view, &W->now.seq_cst);
        f->seq_cst_fence_at = W->now.steps;
    }
    if (order != memory_order_acquire) {
        f->has_fence = true;
        f->fenced = f->before;
        f->fenced_view = f->view;
    }
}

void fence_step(int order, void *place)
{
    step(FENCE, NULL, 0, 0, order, NULL, place);
    fence(me(), order);
    count_step(W->now.current);
}

/* membarrier: a seq_cst fence on every fiber. In the second round all see all. */
void fence_everyone(void *place)
{
    step(CALL, NULL, 0, 0, memory_order_seq_cst, "membarrier", place);
    for (int round = 0; round < 2; round++)
        for (uint32_t f = 0; f < MOST_FIBERS; f++)
            if (W->now.fiber[f].state != UNUSED)
                fence(&W->now.fiber[f], memory_order_seq_cst);
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        count_step(f);
}
