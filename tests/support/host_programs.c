/* tests/support/host_programs.c - plays a program on several hosts and on one. See host_programs.h. */
#include "support/host_programs.h"

#include <unistd.h>

#define NOTES_BYTES ((size_t)1 << 20)

void note(struct program *p, uint32_t replica, const void *bytes, size_t count)
{
    if (p->used[replica] + count > NOTES_BYTES)
        return;
    memcpy(p->noted[replica] + p->used[replica], bytes, count);
    p->used[replica] += count;
}

void note_cross(ditto_strategy *strategy, struct program *p, const void *bytes, size_t count)
{
    if (properties_of_strategy(strategy).first_local_replica == 0)
        note(p, MOST_PROGRAM_REPLICAS, bytes, count);
}

static ditto_status on_one_of_several(struct test_host *host)
{
    struct program *p = host->argument;
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, p->replicas[host->host], &OPTIONS(strategy, .caller = p->caller),
                                 &strategy));
    DITTO_TRY(p->function(strategy, p));
    return ditto_strategy_destroy(strategy);
}

static void remove_folder(const char *folder)
{
    char command[SCRATCH_NAME + 10];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void make_notes(struct program *p)
{
    for (int i = 0; i <= MOST_PROGRAM_REPLICAS; i++)
        p->noted[i] = calloc(1, NOTES_BYTES);
}

void play_program(ditto_status (*function)(ditto_strategy *strategy, struct program *program), uint32_t hosts,
                  const uint32_t *replicas, uint32_t delay_us, ditto_caller caller)
{
    char several[SCRATCH_NAME], one[SCRATCH_NAME];
    uint32_t n = 0;
    assert_non_null(mkdtemp(scratch_name(several, "hosts")));
    assert_non_null(mkdtemp(scratch_name(one, "hosts")));
    struct program spread = { .function = function,
                              .caller = caller,
                              .replicas = replicas,
                              .folder = several },
                   alone = { .function = function, .folder = one };
    for (uint32_t h = 0; h < hosts; h++)
        n += replicas[h];
    make_notes(&spread);
    make_notes(&alone);
    on_hosts(hosts, delay_us, on_one_of_several, &spread);
    ditto_strategy *strategy = make_strategy(n, NULL);
    assert_ok(function(strategy, &alone));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_int_not_equal(alone.used[0] + alone.used[MOST_PROGRAM_REPLICAS], 0);
    for (uint32_t i = 0; i <= MOST_PROGRAM_REPLICAS; i++) {
        assert_int_equal(spread.used[i], alone.used[i]);
        assert_memory_equal(spread.noted[i], alone.noted[i], alone.used[i]);
        free(spread.noted[i]);
        free(alone.noted[i]);
    }
    remove_folder(several);
    remove_folder(one);
}

void play_everywhere(ditto_status (*function)(ditto_strategy *strategy, struct program *program))
{
    play_program(function, 2, (const uint32_t[]){ 1, 1 }, 0, DITTO_CALLER_DEFAULT);
    play_program(function, 3, (const uint32_t[]){ 2, 3, 1 }, 50, DITTO_CALLER_DEFAULT);
    play_program(function, 2, (const uint32_t[]){ 2, 2 }, 0, DITTO_CALLER_WAITS);
}

ditto_status program_variable(ditto_strategy *strategy, const char *name,
                              ditto_synchronization synchronization, ditto_aggregation aggregation,
                              ditto_dtype dtype, size_t count, const void *data, ditto_variable **out)
{
    ditto_tensor initial = { .data = (void *)(uintptr_t)data, .dtype = dtype, .rank = 1, .shape = { count } };
    ditto_variable_options options = OPTIONS(variable, .name = name, .synchronization = synchronization,
                                             .aggregation = aggregation);
    return ditto_variable_create(strategy, &initial, &options, out);
}
