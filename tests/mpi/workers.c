/* tests/mpi/workers.c - workers on several hosts over MPI, for tests/mpi/check.sh. Every host adds 1 to all
 * elements of a variable with shards on all hosts, and steps an optimizer on it; host 0 prints the elements.
 *
 *     workers            as it should be
 *     workers mirrors    each shard is on two hosts
 *     workers exit       the process of host 1, which has no shards, ends in a function
 *     workers funneled   MPI allows one thread */
#include <ditto.h>
#include <ditto/mpi.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 9, TIMES = 300 };

struct program {
    const char *fault; /* "" if there is none */
    uint32_t host;
    int times; /* how many functions this host has executed */
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_variable *table;
    ditto_optimizer *optimizer;
};

static ditto_status add_and_step(ditto_replica *self, void *user)
{
    struct program *p = user;
    double ones[ROWS], minus[ROWS];
    if (strcmp(p->fault, "exit") == 0 && p->host == 1 && p->times++ == 5)
        _exit(3);
    for (int i = 0; i < ROWS; i++) {
        ones[i] = 1;
        minus[i] = -1;
    }
    ditto_tensor gradient = { .data = minus, .dtype = DITTO_F64, .rank = 1, .shape = { ROWS } };
    DITTO_TRY(ditto_assign_add(self, p->table, ones));
    return ditto_apply(self, p->optimizer, &gradient, NULL);
}

static ditto_status make(struct program *p)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options cut = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options sgd = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 1, .shape = { ROWS } };
    DITTO_TRY(ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &p->cluster));
    p->host = ditto_cluster_host(p->cluster);
    options.cluster = p->cluster;
    options.num_replicas = 1;
    options.timeout_ms = 20000;
    options.mirrors_parameters = strcmp(p->fault, "mirrors") == 0 ? DITTO_SWITCH_ON : DITTO_SWITCH_DEFAULT;
    if (strcmp(p->fault, "exit") == 0 && p->host == 1)
        options.keeps_parameters = DITTO_SWITCH_OFF;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &p->strategy));
    cut.name = "table";
    cut.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 4 };
    DITTO_TRY(ditto_variable_create(p->strategy, &table, &cut, &p->table));
    sgd.rule = DITTO_RULE_SGD;
    sgd.learning_rate = 1;
    DITTO_TRY(ditto_optimizer_create(&p->table, 1, &sgd, &p->optimizer));
    return ditto_function_register("add_and_step", add_and_step, p);
}

static ditto_status destroy(struct program *p)
{
    DITTO_TRY(ditto_function_unregister("add_and_step"));
    DITTO_TRY(ditto_optimizer_destroy(p->optimizer));
    DITTO_TRY(ditto_variable_destroy(p->table));
    DITTO_TRY(ditto_strategy_destroy(p->strategy));
    return ditto_cluster_destroy(p->cluster);
}

static ditto_status coordinate(struct program *p)
{
    ditto_coordinator *c;
    double table[ROWS];
    DITTO_TRY(ditto_coordinator_create(p->strategy, NULL, &c));
    for (int i = 0; i < TIMES; i++)
        DITTO_TRY(ditto_coordinator_schedule(c, "add_and_step", NULL, NULL, NULL));
    DITTO_TRY(ditto_coordinator_join(c));
    DITTO_TRY(ditto_variable_read(p->table, table, sizeof table));
    printf("elements");
    for (int i = 0; i < ROWS; i++)
        printf(" %g", table[i]);
    printf("\n");
    fflush(stdout);
    return ditto_coordinator_destroy(c);
}

static ditto_status run(struct program *p)
{
    DITTO_TRY(make(p));
    ditto_status status = p->host == 0 ? coordinate(p) : ditto_serve(p->strategy, NULL, NULL);
    if (status == DITTO_ERR_UNSUPPORTED && strcmp(p->fault, "funneled") == 0) {
        /* A launcher may drop what an aborted process has written, so this one ends as usual. */
        printf("host %u: %s\n", p->host, ditto_last_error()->message);
        fflush(stdout);
        status = DITTO_OK;
    }
    DITTO_TRY(status);
    return destroy(p);
}

int main(int argc, char **argv)
{
    int level;
    struct program p = { .fault = argc > 1 ? argv[1] : "" };
    MPI_Init_thread(&argc, &argv,
                    strcmp(p.fault, "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    return ditto_mpi_end(run(&p));
}
