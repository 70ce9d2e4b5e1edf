/* tests/schedules/report.c - prints the last steps of the fibers, with functions and lines. */
#include "engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 60, OF_EACH = 10 };

static const char *const orders[] = { "relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst" };

/* Writes "function file:line" for each place. The tool is that of binutils. */
static void find_places(const uint32_t *place, uint32_t count, char text[][160])
{
    char command[64 + SHOWN * MOST_FIBERS * 12], program[128] = "";
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return;
    int length = snprintf(command, sizeof command, "addr2line -s -f -e '%.120s'", program);
    for (uint32_t i = 0; i < count; i++)
        length += snprintf(command + length, sizeof command - (size_t)length, " %x", place[i] - 1);
    FILE *lines = popen(command, "r");
    for (uint32_t i = 0; lines != NULL && i < count; i++) {
        char function[80] = "", line[80] = "";
        if (fgets(function, sizeof function, lines) == NULL || fgets(line, sizeof line, lines) == NULL)
            break;
        function[strcspn(function, "\n")] = line[strcspn(line, "\n ")] = '\0';
        snprintf(text[i], sizeof text[i], "%s %s", function, line);
    }
    if (lines != NULL)
        pclose(lines);
}

static void print_step(const struct traced *t, const char *place)
{
    static const char *const kinds[] = { "load", "store", "exchange", "fence", "" };
    char object[40] = "";
    if (is_in_memory(t->address)) {
        size_t at = (size_t)((const volatile char *)t->address - MEMORY);
        if (at < HEAP_BYTES)
            snprintf(object, sizeof object, " heap+%#zx", at);
        else
            snprintf(object, sizeof object, " stack %zu+%#zx", (at - HEAP_BYTES) / STACK_BYTES,
                     (at - HEAP_BYTES) % STACK_BYTES);
    } else if (t->address != NULL) {
        snprintf(object, sizeof object, " global+%#zx", (size_t)((uintptr_t)t->address - W->code));
    }
    printf("%8llu  fiber %u  %s%s%s", (unsigned long long)t->step, t->fiber, kinds[t->kind],
           t->name != NULL ? t->name : "", object);
    if (t->kind <= EXCHANGE || t->value != 0)
        printf(" %s%llu", t->kind == LOAD ? "-> " : "= ", (unsigned long long)t->value);
    printf("%s%s%s  %s\n", t->kind <= FENCE ? " " : "", t->kind <= FENCE ? orders[t->order % 6] : "",
           t->was_stale ? " (an old value)" : "", place);
}

void report_steps(void)
{
    static uint32_t index[SHOWN * MOST_FIBERS], place[SHOWN * MOST_FIBERS];
    static char text[SHOWN * MOST_FIBERS][160];
    uint32_t count = 0, of[MOST_FIBERS] = { 0 };
    uint64_t last = W->now.steps;
    for (uint64_t back = 0; back < TRACE_STEPS && back < last && count < SHOWN * MOST_FIBERS; back++) {
        const struct traced *t = &W->trace[(last - back) % TRACE_STEPS];
        if (back < SHOWN || of[t->fiber] < OF_EACH) {
            of[t->fiber]++;
            place[count] = t->place;
            index[count++] = (uint32_t)((last - back) % TRACE_STEPS);
        }
    }
    memset(text, 0, sizeof text);
    find_places(place, count, text);
    while (count-- > 0)
        print_step(&W->trace[index[count]], text[count]);
    for (uint32_t f = 0; f < MOST_FIBERS; f++) {
        const struct fiber *fiber = &W->now.fiber[f];
        if (fiber->state == BLOCKED && fiber->until_ns != UINT64_MAX)
            printf("fiber %u is blocked until %llu\n", f, (unsigned long long)fiber->until_ns);
        else if (fiber->state != UNUSED)
            printf("fiber %u is %s\n", f,
                   fiber->state == BLOCKED    ? "blocked"
                   : fiber->state == FINISHED ? "finished"
                                              : "ready");
    }
}
