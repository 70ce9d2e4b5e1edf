/* tests/replicas/machine/test_cgroup.c - the claims of src/replicas/machine/limits.h about quotas of cgroups,
 * on imitations of /proc and /sys. */
#include "support/support.h"

#include "replicas/machine/limits.h"

#include <unistd.h>

static char root[SCRATCH_NAME];

static int make_root(void **state)
{
    return mkdtemp(scratch_name(root, "cgroup")) == NULL;
}

static int remove_root(void **state)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void the_least_quota_of_all_ancestors_holds_in_version_2(void **state)
{
    put_file(root, "/proc/self/cgroup", "0::/user.slice/job.scope/leaf\n");
    put_file(root, "/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
    put_file(root, "/sys/fs/cgroup/user.slice/job.scope/leaf/cpu.max", "max 100000\n");
    put_file(root, "/sys/fs/cgroup/user.slice/job.scope/cpu.max", "150000 100000\n");
    put_file(root, "/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
    assert_true(dti_cgroup_cpu_quota(root) == 1.5);
}

static void the_quota_of_version_1_is_read(void **state)
{
    put_file(root, "/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a/b\n");
    put_file(root, "/proc/self/mountinfo",
             "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    put_file(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put_file(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    put_file(root, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
    put_file(root, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    assert_true(dti_cgroup_cpu_quota(root) == 2.5);
}

static void a_container_sees_only_its_part_of_the_tree(void **state)
{
    put_file(root, "/proc/self/cgroup", "0::/docker/0123/inner\n");
    put_file(root, "/proc/self/mountinfo", "30 20 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put_file(root, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put_file(root, "/sys/fs/cgroup/inner/cpu.max", "max 100000\n");
    assert_true(dti_cgroup_cpu_quota(root) == 0.5);
}

static void paths_may_have_spaces(void **state)
{
    put_file(root, "/proc/self/cgroup", "0::/my jobs/a\n");
    put_file(root, "/proc/self/mountinfo",
             "30 20 0:26 /my\\040jobs /sys/fs/c\\134group\\011s rw - cgroup2 cgroup2 rw\n");
    put_file(root, "/sys/fs/c\\group\ts/a/cpu.max", "150000 100000\n");
    assert_true(dti_cgroup_cpu_quota(root) == 1.5);
}

static void no_cgroup_and_broken_files_mean_no_limit(void **state)
{
    assert_true(dti_cgroup_cpu_quota(root) == 0);
    put_file(root, "/proc/self/cgroup", "rubbish\n0::\n::\n");
    put_file(root, "/proc/self/mountinfo", "rubbish\n - \n1 2 - cgroup2\n");
    assert_true(dti_cgroup_cpu_quota(root) == 0);
    put_file(root, "/proc/self/cgroup", "0::/a\n");
    put_file(root, "/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put_file(root, "/sys/fs/cgroup/a/cpu.max", "-5 0\n");
    assert_true(dti_cgroup_cpu_quota(root) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_quota_of_all_ancestors_holds_in_version_2, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(the_quota_of_version_1_is_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_container_sees_only_its_part_of_the_tree, make_root, remove_root),
        cmocka_unit_test_setup_teardown(paths_may_have_spaces, make_root, remove_root),
        cmocka_unit_test_setup_teardown(no_cgroup_and_broken_files_mean_no_limit, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
