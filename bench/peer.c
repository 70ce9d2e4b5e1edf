/* bench/peer.c - a peer in a process of its own: told what to do over a pipe, stopped (SIGSTOP) while others are
 * measured. */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
    pid_t process;
    FILE *to, *from;
};

static double ask(struct peer *p, const char *format, unsigned long a, unsigned long b, unsigned long c)
{
    double seconds = -1;
    kill(p->process, SIGCONT);
    fprintf(p->to, format, a, b, c);
    fflush(p->to);
    if (fscanf(p->from, "%lf", &seconds) != 1) {
        fprintf(stderr, "ditto-bench: the peer went away\n");
        exit(1);
    }
    kill(p->process, SIGSTOP); /* its threads spin for milliseconds after their work */
    return seconds;
}

static double batch(void *state, const struct work *work, bool baseline)
{
    return ask(state, "batch %lu %lu %lu\n", (unsigned long)work->kind, (unsigned long)work->reps, baseline);
}

static void prepare(void *state, const struct work *work)
{
    ask(state, "prepare %lu %lu %lu\n", (unsigned long)work->kind, (unsigned long)work->bytes, work->in_place);
}

static void finish(void *state, const struct work *work)
{
    (void)work;
    ask(state, "finish %lu %lu %lu\n", 0, 0, 0);
}

bool peer_open(struct contender *out, const char *name, const char *program, uint32_t replicas)
{
    int down[2], up[2];
    char number[16];
    snprintf(number, sizeof number, "%u", replicas);
    if (access(program, X_OK) != 0 || pipe(down) != 0 || pipe(up) != 0)
        return false;
    struct peer *p = calloc(1, sizeof *p);
    p->process = fork();
    if (p->process == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        setenv("OMP_PROC_BIND", "true", 1); /* bound threads, as ditto's are */
        execl(program, program, number, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    p->to = fdopen(down[1], "w");
    p->from = fdopen(up[0], "r");
    *out = (struct contender){ .name = name, .state = p, .batch = batch, .prepare = prepare, .finish = finish };
    return true;
}

void peer_close(struct contender *contender)
{
    struct peer *p = contender->state;
    kill(p->process, SIGCONT);
    fclose(p->to); /* end of its input: it ends */
    fclose(p->from);
    waitpid(p->process, NULL, 0);
    free(p);
}
