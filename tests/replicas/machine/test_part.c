/* tests/replicas/machine/test_part.c - processes that a launcher of MPI programs has started on one machine
 * divide its PUs: what src/replicas/machine/part.h promises, and what strategies make of it. */
#include "support/support.h"

#include "replicas/machine/machines.h"
#include "replicas/machine/part.h"

#include <sched.h>

/* -- the environment -- */

static const char *const variables[] = { "DITTO_PART",      "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_LOCALID",
                                         "SLURM_NODEID",    "SLURM_STEP_TASKS_PER_NODE",  "PMI_RANK" };

static int clear_environment(void **state)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

/* Sets variables, given as "NAME=value NAME=value". */
static void set_environment(const char *assignments)
{
    char text[300], *rest = text;
    clear_environment(NULL);
    snprintf(text, sizeof text, "%s", assignments);
    for (char *one; (one = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(one, '=');
        *value = '\0';
        setenv(one, value + 1, 1);
    }
}

static void launchers_say_how_many_processes_they_have_started(void **state)
{
    static const struct {
        const char *environment;
        uint32_t index, parts;
    } expected[] = {
        { "", 0, 1 },
        { "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4", 1, 4 },
        { "MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3", 2, 3 },
        { "SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2", 1, 2 },
        { "SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x3),1", 1, 2 },
        { "SLURM_LOCALID=0 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=2(x3),1", 0, 1 },
        { "SLURM_LOCALID=4 SLURM_NODEID=5 SLURM_STEP_TASKS_PER_NODE=2(x3),1,8(x2)", 4, 8 },
        /* Inside a step of Slurm, mpirun of Open MPI has started the process. */
        { "SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=9 OMPI_COMM_WORLD_LOCAL_RANK=1 "
          "OMPI_COMM_WORLD_LOCAL_SIZE=2",
          1, 2 },
        { "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1", 0, 1 }, /* alone on this machine */
        { "OMPI_COMM_WORLD_LOCAL_RANK=1", 0, 1 },                              /* the number is not known */
        { "PMI_RANK=3", 0, 1 },                                                /* counts over all machines */
        { "SLURM_LOCALID=1", 0, 1 },
        { "SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2", 0, 1 },
        { "SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(x", 0, 1 },
        { "SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=many", 0, 1 },
        { "SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=99999999999(x4294967296),2", 0, 1 },
        { "SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2(x0),2", 0, 1 },
        { "MPI_LOCALRANKID=3 MPI_LOCALNRANKS=3", 0, 1 }, /* contradicts itself */
        { "MPI_LOCALRANKID=-1 MPI_LOCALNRANKS=3", 0, 1 },
        { "MPI_LOCALRANKID=x MPI_LOCALNRANKS=y", 0, 1 },
        { "DITTO_PART=off MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3", 0, 1 },
        { "DITTO_PART=auto MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3", 2, 3 },
        { "DITTO_PART=1/2 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3", 1, 2 },
        { "DITTO_PART=0/1 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3", 0, 1 },
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct dti_part part;
        set_environment(expected[i].environment);
        assert_ok(dti_part_read(&part));
        if (part.index != expected[i].index || part.parts != expected[i].parts)
            fail_msg("\"%s\" gives part %u of %u", expected[i].environment, part.index, part.parts);
        assert_int_equal(part.source != NULL, part.parts > 1);
    }
}

static void a_wrong_part_is_an_error(void **state)
{
    static const char *const wrong[] = { "", "1", "2/2", "-1/2", "1/", "/2", "a/b", "1/2/3", "0/0", "OFF" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ditto_strategy *strategy = NULL;
        clear_environment(NULL);
        setenv("DITTO_PART", wrong[i], 1);
        assert_status(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy), DITTO_ERR_INVALID);
        assert_message("it must be auto, off, or a part and the number of parts");
        assert_null(strategy);
    }
}

/* -- the PUs -- */

/* Returns how many PUs of part `index` of `parts` have an SMT sibling in another part. */
static uint32_t check_part(const ditto_topology *t, uint32_t index, uint32_t parts, struct dti_mask *taken)
{
    struct dti_mask pus;
    uint32_t torn = 0, count = 0;
    bool shared = dti_part_choose(t, &(struct dti_part){ .index = index, .parts = parts }, &pus);
    assert_int_equal(shared, parts > t->counts.pus);
    for (uint32_t i = 0; i < t->counts.pus; i++) {
        if (!dti_mask_has(&pus, t->pus[i].is.number))
            continue;
        count++;
        assert_true(shared || !dti_mask_has(taken, t->pus[i].is.number));
        dti_mask_add(taken, t->pus[i].is.number);
        for (uint32_t k = 0; k < t->counts.pus; k++)
            torn += t->pus[k].is.core == t->pus[i].is.core && !dti_mask_has(&pus, t->pus[k].is.number);
    }
    assert_int_equal(dti_mask_count(&pus), count);
    assert_true(count >= 1 && (!shared || count == 1));
    if (parts > t->counts.cores && !shared)
        assert_true(count == t->counts.pus / parts || count == t->counts.pus / parts + 1);
    return torn;
}

static void parts_are_disjoint_and_have_whole_cores_if_there_are_enough(void **state)
{
    for (int m = 0; m < MACHINES; m++) {
        ditto_topology *t = machine_topology(m);
        uint32_t most = t->counts.pus + 3;
        for (uint32_t parts = 2; parts <= most; parts += 1 + (parts > 20) * (most / 7)) {
            struct dti_mask taken;
            uint32_t torn = 0;
            dti_mask_clear(&taken);
            for (uint32_t index = 0; index < parts; index++)
                torn += check_part(t, index, parts, &taken);
            assert_int_equal(dti_mask_count(&taken), t->counts.pus);
            assert_true(parts > t->counts.cores || torn == 0);
        }
        assert_ok(ditto_topology_destroy(t));
    }
}

static void two_parts_of_a_server_are_its_sockets(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SERVER);
    for (uint32_t index = 0; index < 2; index++) {
        struct dti_mask pus;
        dti_part_choose(t, &(struct dti_part){ .index = index, .parts = 2 }, &pus);
        for (uint32_t i = 0; i < t->counts.pus; i++)
            assert_int_equal(dti_mask_has(&pus, t->pus[i].is.number), t->pus[i].is.mesh[0] == index);
    }
    assert_ok(ditto_topology_destroy(t));
}

static void each_part_has_its_share_of_each_kind_of_cores(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_RK3588);
    for (uint32_t parts = 2; parts <= 4; parts++)
        for (uint32_t index = 0; index < parts; index++) {
            struct dti_mask pus;
            uint32_t of_kind[2] = { 0 };
            dti_part_choose(t, &(struct dti_part){ .index = index, .parts = parts }, &pus);
            for (uint32_t i = 0; i < t->counts.pus; i++)
                of_kind[t->pus[i].is.kind] += dti_mask_has(&pus, t->pus[i].is.number);
            for (int kind = 0; kind < 2; kind++)
                assert_true(of_kind[kind] == 4 / parts || of_kind[kind] == 4 / parts + 1);
        }
    assert_ok(ditto_topology_destroy(t));
}

/* -- strategies -- */

/* Returns the PU of the only replica of a strategy. Its description says which part of the PUs it has, or
 * that it has all if num_parts is 1. */
static uint32_t pu_of_strategy(ditto_strategy_options *options, uint32_t num_parts)
{
    ditto_strategy *strategy;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    char text[4000];
    assert_ok(ditto_strategy_create(DITTO_ONE_DEVICE, options, &strategy));
    assert_ok(ditto_strategy_replica_info(strategy, 0, 0, &info));
    assert_ok(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    assert_int_equal(strstr(text, "this process has part ") != NULL, num_parts > 1);
    assert_ok(ditto_strategy_destroy(strategy));
    return info.planned.pu.number;
}

static ditto_topology_counts count_machine(ditto_switch part)
{
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_topology *topology;
    assert_ok(ditto_topology_create(&OPTIONS(topology, .part = part), &topology));
    assert_ok(ditto_topology_count(topology, &counts));
    assert_ok(ditto_topology_destroy(topology));
    return counts;
}

static void processes_of_one_machine_put_their_replicas_on_different_pus(void **state)
{
    clear_environment(NULL);
    ditto_topology_counts whole = count_machine(DITTO_SWITCH_DEFAULT);
    struct dti_mask taken;
    dti_mask_clear(&taken);
    if (whole.pus < 2 || whole.pus != whole.cpuset_pus)
        skip();
    for (uint32_t index = 0; index < whole.pus; index++) {
        char environment[100];
        snprintf(environment, sizeof environment, "MPI_LOCALRANKID=%u MPI_LOCALNRANKS=%u", index, whole.pus);
        set_environment(environment);
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        uint32_t pu = pu_of_strategy(&options, whole.pus);
        assert_false(dti_mask_has(&taken, pu));
        dti_mask_add(&taken, pu);
        ditto_topology_counts part = count_machine(DITTO_SWITCH_ON);
        assert_int_equal(part.pus, 1);
        assert_int_equal(part.part, index);
        assert_int_equal(part.num_parts, whole.pus);
        assert_int_equal(part.part_is_shared, 0);
        assert_string_equal(part.part_source, "MPI_LOCALRANKID");
        assert_int_equal(count_machine(DITTO_SWITCH_DEFAULT).pus, whole.pus);
    }
}

static void options_and_environment_take_all_pus(void **state)
{
    ditto_strategy_options off = DITTO_STRATEGY_OPTIONS_INIT, lists = DITTO_STRATEGY_OPTIONS_INIT;
    set_environment("");
    ditto_strategy_options usual = DITTO_STRATEGY_OPTIONS_INIT;
    uint32_t first = pu_of_strategy(&usual, 1);
    set_environment("OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2");
    off.part = DITTO_SWITCH_OFF;
    assert_int_equal(pu_of_strategy(&off, 1), first);
    lists.placement_options = &OPTIONS(placement, .pus = &first, .num_pus = 1);
    assert_int_equal(pu_of_strategy(&lists, 1), first);
    setenv("DITTO_PART", "off", 1);
    assert_int_equal(pu_of_strategy(&usual, 1), first);
    off.part = (ditto_switch)7;
    ditto_strategy *strategy = NULL;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &off, &strategy), DITTO_ERR_RANGE);
    assert_null(strategy);
}

/* The launcher has given each process PUs of its own. */
static int bound_by_the_launcher(void *argument)
{
    ditto_topology_counts *whole = argument;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    REQUIRE(whole->pus > 1 && sched_setaffinity(0, sizeof one, &one) == 0);
    uint32_t pu = pu_of_strategy(&options, 1);
    setenv("DITTO_PART", "1/2", 1); /* a user who says it nevertheless gets a part of the one PU */
    return !CPU_ISSET(pu, &one) || pu_of_strategy(&options, 2) != pu;
}

static void pus_that_a_launcher_has_divided_are_not_divided_again(void **state)
{
    clear_environment(NULL);
    ditto_topology_counts whole = count_machine(DITTO_SWITCH_DEFAULT);
    if (whole.pus < 2)
        skip();
    set_environment("OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2");
    assert_int_equal(in_child(bound_by_the_launcher, &whole, 60), 0);
}

static ditto_status meet(ditto_replica *self, void *unused)
{
    for (int i = 0; i < 100; i++)
        DITTO_TRY(ditto_barrier(self, NULL));
    return DITTO_OK;
}

static void more_processes_than_pus_share_them_and_let_others_run(void **state)
{
    char text[4000];
    clear_environment(NULL);
    ditto_topology_counts whole = count_machine(DITTO_SWITCH_DEFAULT);
    char environment[100];
    snprintf(environment, sizeof environment, "DITTO_PART=%u/%u", 2 * whole.pus, 2 * whole.pus + 1);
    set_environment(environment);
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.num_replicas = 1; /* it has its PU alone in this process, and yields nevertheless */
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    assert_ok(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    assert_non_null(strstr(text, "which other processes may use too"));
    assert_non_null(strstr(text, "waiting threads yield"));
    assert_ok(ditto_strategy_run(strategy, meet, NULL));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_int_equal(count_machine(DITTO_SWITCH_ON).part_is_shared, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(launchers_say_how_many_processes_they_have_started, clear_environment),
        cmocka_unit_test_teardown(a_wrong_part_is_an_error, clear_environment),
        cmocka_unit_test(parts_are_disjoint_and_have_whole_cores_if_there_are_enough),
        cmocka_unit_test(two_parts_of_a_server_are_its_sockets),
        cmocka_unit_test(each_part_has_its_share_of_each_kind_of_cores),
        cmocka_unit_test_teardown(processes_of_one_machine_put_their_replicas_on_different_pus,
                                  clear_environment),
        cmocka_unit_test_teardown(options_and_environment_take_all_pus, clear_environment),
        cmocka_unit_test_teardown(pus_that_a_launcher_has_divided_are_not_divided_again, clear_environment),
        cmocka_unit_test_teardown(more_processes_than_pus_share_them_and_let_others_run, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
