/* bench/perf_control.c - the commands to an outer perf, see perf_control.h. */
#include "perf_control.h"
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_SECONDS 10 /* perf needs milliseconds */

static int control = -1, answer = -1;
static bool shown;

/* A pipe is opened for reading and writing, so that the call does not wait for the other side. */
static int open_pipe(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

bool perf_control_open(const char *paths)
{
    char first[4096];
    size_t length = strcspn(paths, ",");
    if (length >= sizeof first) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(first, paths, length);
    first[length] = '\0';
    control = open_pipe(first);
    if (control >= 0 && paths[length] == ',')
        answer = open_pipe(paths + length + 1);
    return control >= 0 && (paths[length] != ',' || answer >= 0);
}

void perf_control_show(bool on)
{
    shown = on && control >= 0;
}

bool perf_control_is_shown(void)
{
    return shown;
}

/* perf answers "ack\n", and ends the answer with a zero byte. The thread polls, because perf would count
 * it as a switch if it slept. */
static void await_answer(void)
{
    char byte = '\0';
    double end = now_seconds() + ANSWER_SECONDS;
    while (byte != '\n') {
        if (read(answer, &byte, 1) != 1 && now_seconds() > end) {
            fprintf(stderr, "ditto-bench: perf does not answer on the second pipe of --perf-control\n");
            exit(1);
        }
    }
}

static void command(const char *words)
{
    size_t length = strlen(words);
    if (write(control, words, length) != (ssize_t)length) {
        fprintf(stderr, "ditto-bench: perf does not read its commands: %s\n", strerror(errno));
        exit(1);
    }
    if (answer >= 0)
        await_answer();
}

void perf_control_enable(void)
{
    if (shown)
        command("enable\n");
}

void perf_control_disable(void)
{
    if (shown)
        command("disable\n");
}
