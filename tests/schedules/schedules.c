/* tests/schedules/schedules.c - runs scenarios, each in many schedules.
 *
 *     test_schedules [--scenario NAME] [--seed FIRST] [--count N] [--steps N] [--seconds S] [--digest]
 *                    [--totals FILE]
 *
 * Each schedule has a seed, which follows the one before it. --count, --steps (of all schedules together) and
 * --seconds limit each scenario. A failure prints its seed, and the last steps of
 * each fiber, after as many switches as possible have been left out. --digest prints a number for each
 * schedule that is made of all its steps. --totals adds a line for each scenario to a file, and begins with
 * the seeds after those that the file has counted. */
#include "engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const struct scenario fault_scenarios[], litmus_scenarios[], part_scenarios[], run_scenarios[],
    collective_scenarios[], group_scenarios[], variable_scenarios[], end_scenarios[], worker_scenarios[],
    queue_scenarios[], input_scenarios[];
static const struct scenario *const scenario_lists[] = {
    fault_scenarios,      litmus_scenarios, part_scenarios,     run_scenarios,
    collective_scenarios, group_scenarios,  variable_scenarios, end_scenarios,
    worker_scenarios,     queue_scenarios,  input_scenarios
};

/* After so many schedules all outcomes of a scenario must have come. The first ones are executed twice. */
enum { ENOUGH = 1000, TWICE = 3 };

struct request {
    const char *scenario;
    uint64_t first, count, steps;
    double seconds; /* for each scenario, as count and steps */
    bool digest;
    const char *totals; /* a file */
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *main_fiber(void *argument)
{
    const struct scenario *s = argument;
    if (s->setup != NULL)
        s->setup();
    schedule_park();
    s->body();
    return NULL;
}

static bool play(const struct scenario *s, uint64_t seed)
{
    world_restore();
    policy_choose(seed, s->may_refuse);
    return schedule_run(NULL, NULL);
}

static void drop_switches(uint32_t first, uint32_t end, bool drop)
{
    for (uint32_t i = first; i < end; i++)
        W->drop[i / 8] = (uint8_t)(drop ? W->drop[i / 8] | 1u << i % 8 : W->drop[i / 8] & ~(1u << i % 8));
}

/* Leaves out switches as long as the schedule fails in the same way: halves, quarters and so on (Zeller,
 * Hildebrandt, TSE 2002). */
static void shorten(const struct scenario *s, uint64_t seed)
{
    char failure[48];
    uint32_t all = W->now.switches < MOST_SWITCHES ? W->now.switches : MOST_SWITCHES, tries = 0;
    snprintf(failure, sizeof failure, "%.47s", W->failure);
    for (uint32_t part = all / 2; part > 0 && tries < 300; part /= 2)
        for (uint32_t first = 0; first < all && tries < 300; first += part, tries++) {
            uint8_t before[sizeof W->drop];
            memcpy(before, W->drop, sizeof before);
            drop_switches(first, first + part < all ? first + part : all, true);
            if (play(s, seed) || strncmp(failure, W->failure, strlen(failure)) != 0)
                memcpy(W->drop, before, sizeof before);
        }
    play(s, seed);
}

static void on_signal(int number)
{
    fail("signal %d", number);
}

/* A fault of the program under test is a failure of the schedule. */
static void catch_faults(void)
{
    static char stack[64 << 10];
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i],
                  &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER }, NULL);
}

/* Returns how many schedules of the scenario a file has counted. */
static uint64_t counted(const struct request *r, const struct scenario *s)
{
    char name[64];
    unsigned long long count, sum = 0;
    FILE *file = r->totals != NULL ? fopen(r->totals, "r") : NULL;
    while (file != NULL && fscanf(file, "%63s %llu", name, &count) == 2)
        sum += strcmp(name, s->name) == 0 ? count : 0;
    if (file != NULL)
        fclose(file);
    return sum;
}

static void count_more(const struct request *r, const struct scenario *s, uint64_t count)
{
    FILE *file = r->totals != NULL ? fopen(r->totals, "a") : NULL;
    if (r->totals != NULL &&
        (file == NULL || fprintf(file, "%s %llu\n", s->name, (unsigned long long)count) < 0 ||
         fclose(file) != 0)) {
        fprintf(stderr, "schedules: %s cannot be written\n", r->totals);
        _exit(2);
    }
}

/* Returns true if one of the first schedules finds the fault of the scenario. */
static bool find_fault(const struct scenario *s)
{
    size_t length = strlen(s->fault);
    uint64_t seed = 1;
    while (seed <= ENOUGH && (play(s, seed) || strncmp(W->failure, s->fault, length) != 0))
        seed++;
    printf("%-28s %s\n", s->name, seed <= ENOUGH ? "has its fault" : "does not show its fault");
    return seed <= ENOUGH;
}

/* Prints what has failed, in as few switches as possible. */
static bool report(const struct scenario *s, uint64_t seed)
{
    printf("%s: seed %llu: %s\n", s->name, (unsigned long long)seed, W->failure);
    shorten(s, seed);
    report_steps();
    printf("%s\nagain: --scenario %s --seed %llu --count 1\n", W->failure, s->name, (unsigned long long)seed);
    return false;
}

/* Returns false if a schedule has failed. */
static bool run_scenario(const struct scenario *s, const struct request *r)
{
    W->most_steps = 400000;
    W->typical_steps = W->typical_requests = 1000;
    W->scenario = s;
    W->now.now_ns = 1000000000;
    W->now.heap_end = PAGE;
    catch_faults();
    if (!schedule_run(main_fiber, (void *)(uintptr_t)s)) {
        printf("%s: the setup has failed: %s\n", s->name, W->failure);
        report_steps();
        return false;
    }
    world_save();
    if (s->fault != NULL)
        return find_fault(s);
    double begin = seconds();
    uint64_t first = r->first + counted(r, s), seed = first, steps = 0;
    /* Schedule 0 says how many steps and requests there are, on which the points in time of all others
     * depend. */
    if (!play(s, 0))
        return report(s, 0);
    W->typical_steps = W->now.steps + 1;
    W->typical_requests = W->now.requests + 1;
    for (; seed - first < r->count && steps < r->steps && (r->seconds == 0 || seconds() - begin < r->seconds);
         seed++) {
        bool held = play(s, seed);
        uint64_t digest = W->now.digest;
        steps += W->now.steps;
        if (held && seed - first < TWICE && (!play(s, seed) || W->now.digest != digest)) {
            snprintf(W->failure, sizeof W->failure, "the seed does not give the same schedule again");
            held = false;
        }
        if (r->digest)
            printf("%s %llu %016llx\n", s->name, (unsigned long long)seed, (unsigned long long)digest);
        if (!held)
            return report(s, seed);
    }
    double took = seconds() - begin;
    uint64_t count = seed - first;
    if (count >= ENOUGH && (s->outcomes & ~W->outcomes) != 0) {
        printf("%s: these outcomes never came: %#x\n", s->name, s->outcomes & ~W->outcomes);
        return false;
    }
    count_more(r, s, count);
    if (r->digest)
        return true;
    printf("%-28s %8llu schedules, %6.0f steps each, %7.0f a second\n", s->name, (unsigned long long)count,
           count > 0 ? (double)steps / (double)count : 0, (double)count / took);
    return true;
}

/* Runs it in a process of its own, so that scenarios leave nothing behind for others. */
static bool run_apart(const struct scenario *s, const struct request *r)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        world_begin();
        bool held = run_scenario(s, r);
        fflush(stdout);
        _exit(held ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || *text == '\0' || *end != '\0') {
        fprintf(stderr, "schedules: a number is needed\n");
        exit(2);
    }
    return value;
}

static struct request parse(int count, char **word)
{
    struct request r = { .first = 1, .count = 1000, .steps = UINT64_MAX };
    for (int i = 1; i < count; i++) {
        const char *name = word[i];
        if (strcmp(name, "--digest") == 0)
            r.digest = true;
        else if (strcmp(name, "--scenario") == 0)
            r.scenario = word[++i];
        else if (strcmp(name, "--totals") == 0)
            r.totals = word[++i];
        else if (strcmp(name, "--seed") == 0)
            r.first = number(word[++i]);
        else if (strcmp(name, "--count") == 0)
            r.count = number(word[++i]);
        else if (strcmp(name, "--steps") == 0)
            r.steps = number(word[++i]);
        else if (strcmp(name, "--seconds") == 0)
            r.seconds = (double)number(word[++i]), r.count = r.seconds > 0 ? UINT64_MAX : 0;
        else {
            fprintf(stderr, "schedules: %s is no option\n", name);
            exit(2);
        }
    }
    if (r.count == 0 || r.steps == 0) {
        fprintf(stderr, "schedules: --count, --steps and --seconds are at least 1\n");
        exit(2);
    }
    return r;
}

int main(int count, char **word)
{
    struct request r = parse(count, word);
    /* The machine of all schedules. */
    setenv("HWLOC_SYNTHETIC", "pack:1 [numa] l3:1 core:4 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    unsetenv("DITTO_TUNING");
    bool held = true, found = false;
    for (size_t i = 0; i < sizeof scenario_lists / sizeof scenario_lists[0] && held; i++)
        for (const struct scenario *s = scenario_lists[i]; s->name != NULL && held; s++)
            if (r.scenario == NULL || strcmp(r.scenario, s->name) == 0) {
                found = true;
                held = run_apart(s, &r);
            }
    if (!found) {
        fprintf(stderr, "schedules: there is no scenario %s\n", r.scenario);
        _exit(2);
    }
    fflush(stdout);
    _exit(held ? 0 : 1); /* ditto has functions that are called at exit, and no world to work in */
}
