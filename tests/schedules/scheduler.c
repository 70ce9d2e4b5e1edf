/* tests/schedules/scheduler.c - fibers, and which of them goes on.
 *
 * Policies: random switches, and priorities with a few random changes (PCT: Burckhardt, Kothari, Musuvathi,
 * Nagarakatte, ASPLOS 2010), which finds a fault of depth d among k steps of n threads with a probability of
 * at least 1 / (n k^(d-1)). Beside these a fiber may stop for long, and time may jump. */
#include "engine.h"

#include <errno.h>
#include <immintrin.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum {
    STEP_NS = 20,
    MOST_NS_SECONDS = 30,
    MOST_JUMPED_NS = 500000000 /* a process that lost more than a second would move its limits */
};

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_below(uint64_t limit)
{
    return next_random(&W->now.random) % limit;
}

void policy_choose(uint64_t seed, bool may_refuse)
{
    static const uint32_t switches[] = { 2, 4, 8, 16, 32, 0, 0, 0 }, stale[] = { 0, 2, 4, 8 };
    uint64_t state = seed * 0x2545f4914f6cdd1du + 1, steps = W->typical_steps;
    struct policy *p = &W->policy;
    *p = (struct policy){ .seed = seed };
    p->switch_one_in = switches[next_random(&state) % 8];
    p->stale_one_in = stale[next_random(&state) % 4];
    p->spurious_one_in = next_random(&state) % 4 == 0 ? 4 : 64;
    p->changes = (uint32_t)(next_random(&state) % 5); /* so the depth is 1 to 5 */
    for (uint32_t i = 0; i < p->changes; i++)
        p->change_at[i] = next_random(&state) % steps;
    if (next_random(&state) % 4 == 0) {
        p->freeze_at = 1 + next_random(&state) % steps;
        p->freeze_for = steps / 8 + next_random(&state) % (2 * steps);
    }
    if (next_random(&state) % 8 == 0) {
        p->jump_one_in = 1u << (3 + next_random(&state) % 9);
        p->jump_ns = 1000000 << next_random(&state) % 9; /* up to 256 ms */
    }
    if (may_refuse && next_random(&state) % 2 == 0)
        p->refuse = (uint32_t)(1 + next_random(&state) % W->typical_requests);
    if (seed == 0) /* the lengths of all other schedules follow from this one */
        p->freeze_at = p->jump_one_in = p->refuse = 0;
    W->now.random = next_random(&state);
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        W->now.fiber[f].priority = (int32_t)(next_random(&state) % 1000000);
    W->now.is_free = true;
}

void clocks_add(struct clocks *to, const struct clocks *more)
{
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        to->of[f] = to->of[f] > more->of[f] ? to->of[f] : more->of[f];
}

/* -- changing fibers -- */

static void begin_fiber(void)
{
    struct fiber *f = me();
    fiber_end(f->body(f->argument));
}

static noreturn void enter(uint32_t number)
{
    struct fiber *f = &W->now.fiber[number];
    W->now.current = number;
    memcpy(W->tls_block, W->tls[number], W->tls_bytes);
    errno = f->kept_errno;
    _mm_setcsr(f->kept_mxcsr);
    if (f->begun)
        _longjmp(f->context, 1);
    ucontext_t context;
    f->begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = MEMORY + HEAP_BYTES + (size_t)number * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, begin_fiber, 0);
    setcontext(&context);
    __builtin_unreachable();
}

/* Keeps what setjmp does not keep. The functions that call it have small frames. */
static inline void keep(struct fiber *f)
{
    f->kept_errno = errno;
    f->kept_mxcsr = _mm_getcsr();
    f->stack_used = (char *)__builtin_frame_address(0) - 1024;
    memcpy(W->tls[W->now.current], W->tls_block, W->tls_bytes);
}

static __attribute__((noinline)) void leave_for(uint32_t number)
{
    struct fiber *f = me();
    if (number == W->now.current)
        return;
    keep(f);
    if (_setjmp(f->context) == 0)
        enter(number);
}

static bool is_ready(uint32_t number)
{
    struct fiber *f = &W->now.fiber[number];
    if (f->state == BLOCKED && f->until_ns <= W->now.now_ns)
        return true;
    return f->state == RUNNABLE;
}

/* Returns the fiber that goes on, or one that waits for a time if no other one can. */
static uint32_t choose(bool not_me)
{
    uint32_t ready[MOST_FIBERS], count = 0, next = MOST_FIBERS;
    for (int frozen = 0; frozen < 2 && count == 0; frozen++)
        for (uint32_t f = 0; f < MOST_FIBERS; f++)
            if (is_ready(f) && (frozen != 0 || W->now.fiber[f].frozen_until <= W->now.steps) &&
                !(not_me && f == W->now.current))
                ready[count++] = f;
    if (count == 0 && not_me && is_ready(W->now.current))
        return W->now.current;
    if (count == 0) {
        for (uint32_t f = 0; f < MOST_FIBERS; f++)
            if (W->now.fiber[f].state == BLOCKED && W->now.fiber[f].until_ns != UINT64_MAX &&
                (next == MOST_FIBERS || W->now.fiber[f].until_ns < W->now.fiber[next].until_ns))
                next = f;
        if (next == MOST_FIBERS)
            fail("all fibers wait for each other");
        if (W->now.is_free &&
            W->now.fiber[next].until_ns - W->now.now_ns > W->scenario->longest_ms * UINT64_C(1000000))
            fail("all fibers sleep: a wake-up was lost");
        W->now.now_ns = W->now.fiber[next].until_ns;
        if (W->now.now_ns > MOST_NS_SECONDS * 1000000000ull)
            fail("nothing has ended after %d seconds", MOST_NS_SECONDS);
        return next;
    }
    next = ready[0];
    if (!W->now.is_free) { /* in turn */
        for (uint32_t i = 0; i < count; i++)
            if (ready[i] > W->now.current)
                return ready[i];
        return next;
    }
    if (W->policy.switch_one_in != 0)
        return ready[random_below(count)];
    for (uint32_t i = 1; i < count; i++)
        next = W->now.fiber[ready[i]].priority > W->now.fiber[next].priority ? ready[i] : next;
    return next;
}

static void trace(enum step_kind kind, const volatile void *address, uint64_t value, uint32_t bytes,
                  int order, const char *name, const void *place)
{
    struct traced *t = &W->trace[W->now.steps % TRACE_STEPS];
    *t = (struct traced){ .step = W->now.steps,
                          .place = (uint32_t)((uintptr_t)place - W->code),
                          .fiber = (uint8_t)W->now.current,
                          .kind = (uint8_t)kind,
                          .bytes = (uint8_t)bytes,
                          .order = (uint8_t)order,
                          .name = name,
                          .address = address,
                          .value = value };
    /* Thread-local variables are the only ones whose addresses change from process to process. */
    uintptr_t at = (uintptr_t)address - (uintptr_t)W->tls_block;
    at = at < W->tls_bytes ? at : (uintptr_t)address;
    W->now.digest = (W->now.digest ^ t->place ^ (uint64_t)t->fiber << 32 ^ value ^ at) * 0x9e3779b97f4a7c15u;
}

/* Goes on with another fiber, unless this switch is left out of the trace. */
static void switch_freely(bool not_me)
{
    uint32_t number = W->now.switches++ % MOST_SWITCHES, next = choose(not_me);
    if ((W->drop[number / 8] >> number % 8 & 1) == 0)
        leave_for(next);
}

/* A step in which another fiber goes on has the number of that fiber's next step, so each time counts once.
 */
static void disturb(void)
{
    struct policy *p = &W->policy;
    uint64_t steps = W->now.steps;
    if (p->jump_one_in != 0 && W->now.jumped_ns < MOST_JUMPED_NS && random_below(p->jump_one_in) == 0) {
        W->now.now_ns += p->jump_ns;
        W->now.jumped_ns += p->jump_ns;
    }
    if (steps == p->freeze_at) {
        me()->frozen_until = steps + p->freeze_for;
        p->freeze_at = UINT64_MAX;
    }
    for (uint32_t i = 0; i < p->changes; i++)
        if (p->change_at[i] == steps) {
            me()->priority = --W->now.lowest_priority;
            p->change_at[i] = UINT64_MAX;
        }
}

void step(enum step_kind kind, const volatile void *address, uint64_t value, uint32_t bytes, int order,
          const char *name, void *place)
{
    const struct policy *p = &W->policy;
    W->now.now_ns += STEP_NS;
    if (W->now.is_free) {
        disturb();
        if (p->switch_one_in == 0 || me()->frozen_until > W->now.steps || random_below(p->switch_one_in) == 0)
            switch_freely(false);
        if (W->now.steps > W->most_steps)
            fail("nothing has ended after %llu steps", (unsigned long long)W->most_steps);
    }
    W->now.steps++;
    trace(kind, address, value, bytes, order, name, place);
}

void step_found(uint64_t value)
{
    W->trace[W->now.steps % TRACE_STEPS].value = value;
    W->now.digest = (W->now.digest ^ value) * 0x9e3779b97f4a7c15u;
}

void step_back(void *place)
{
    step(CALL, NULL, 0, 0, 0, "pause", place);
    if (W->now.is_free)
        me()->priority = --W->now.lowest_priority;
    switch_freely(true);
}

bool fiber_block(const void *waits_on, uint64_t until_ns)
{
    struct fiber *f = me();
    f->state = BLOCKED;
    f->waits_on = waits_on;
    f->until_ns = until_ns;
    leave_for(choose(false));
    bool woken = f->state == RUNNABLE;
    f->state = RUNNABLE;
    return woken;
}

void fiber_wake(const void *waits_on, uint32_t most)
{
    uint32_t first = W->now.is_free ? (uint32_t)random_below(MOST_FIBERS) : 0;
    for (uint32_t i = 0; i < MOST_FIBERS && most > 0; i++) {
        struct fiber *f = &W->now.fiber[(first + i) % MOST_FIBERS];
        if (f->state == BLOCKED && f->waits_on == waits_on) {
            f->state = RUNNABLE;
            most--;
        }
    }
}

uint32_t fiber_create(void *(*body)(void *), void *argument)
{
    uint32_t number = 0;
    while (number < MOST_FIBERS && W->now.fiber[number].state != UNUSED)
        number++;
    if (number == MOST_FIBERS)
        return number;
    struct fiber *f = &W->now.fiber[number], *parent = me();
    uint32_t steps = f->before.of[number];
    *f = (struct fiber){ .state = RUNNABLE, .body = body, .argument = argument, .kept_mxcsr = _mm_getcsr() };
    if (number != W->now.current) {
        f->before = parent->before;
        f->view = parent->view;
        parent->view.of[W->now.current] = ++parent->before.of[W->now.current];
    }
    f->before.of[number] = f->view.of[number] = steps + 1;
    f->priority = W->now.is_free ? (int32_t)random_below(1000000) : 0;
    memory_is_new(MEMORY + HEAP_BYTES + (size_t)number * STACK_BYTES, STACK_BYTES);
    memset(W->tls[number], 0, W->tls_bytes);
    memcpy(W->tls[number], W->tls_image, W->tls_image_bytes);
    return number;
}

noreturn void fiber_end(void *result)
{
    uint32_t number = W->now.current;
    struct fiber *f = me();
    for (uint32_t k = 0; k < W->now.keys; k++) {
        void *value = f->key_value[k];
        f->key_value[k] = NULL;
        if (value != NULL && W->key_end[k] != NULL)
            W->key_end[k](value);
    }
    f->result = result;
    f->state = f->detached ? UNUSED : FINISHED;
    if (number == 0)
        _longjmp(W->host, 1);
    fiber_wake(f, MOST_FIBERS);
    enter(choose(true));
}

bool schedule_run(void *(*body)(void *), void *argument)
{
    switch (_setjmp(W->host)) {
    case 0:
        if (body != NULL) {
            W->now.current = 0;
            fiber_create(body, argument);
        }
        enter(0);
    case 1:
        return true;
    default:
        return false;
    }
}

/* Ends what all schedules begin with. In each schedule the fiber goes on from here. */
void schedule_park(void)
{
    struct fiber *f = me();
    keep(f);
    if (_setjmp(f->context) == 0)
        _longjmp(W->host, 1);
}

noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(W->failure, sizeof W->failure, format, arguments);
    va_end(arguments);
    _longjmp(W->host, 2);
}
