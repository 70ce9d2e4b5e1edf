/* tests/cases/narrowed_cpuset.c - a manager takes PUs from the cpuset of a process that has a strategy (CPU
 * manager of Kubernetes, AllowedCPUs of systemd). If the caller's PU is taken, each run fails. If another
 * one is, the kernel moves its replica, and ditto_strategy_describe still prints the old PU.
 *     narrowed_cpuset FOLDER PU     FOLDER is a cpuset cgroup with PUs 0 and 1, of which PU is left */
#include "cases.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

static int ran_on[2];

static void put(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(NOT_TRIED);
    }
}

static ditto_status where(ditto_replica *self, void *unused)
{
    (void)unused;
    ran_on[ditto_replica_id(self)] = sched_getcpu();
    return ditto_barrier(self, NULL);
}

int main(int argc, char **argv)
{
    char text[4096], own[32];
    if (argc != 3)
        return NOT_TRIED;
    snprintf(own, sizeof own, "%d", getpid());
    put(argv[1], "cgroup.procs", own);
    ditto_strategy *strategy = mirrored(2);
    MUST(ditto_strategy_run(strategy, where, NULL));
    put(argv[1], "cpuset.cpus", argv[2]);
    ditto_status status = told("run", ditto_strategy_run(strategy, where, NULL));
    MUST(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    put(argv[1], "cpuset.cpus", "0-1");
    printf("PUs of replicas: %d %d\n%s", ran_on[0], ran_on[1], text);
    MUST(ditto_strategy_destroy(strategy));
    /* The line of replica 1 begins with its number, package, node, and PUs, and the PU that it runs on. */
    const char *line = strstr(text, "\n      1");
    int pu = -1;
    return status == DITTO_OK && line != NULL && sscanf(line, "%*d%*d%*d%*s%d", &pu) == 1 && pu == ran_on[1]
               ? RIGHT
               : WRONG;
}
