/* src/cluster/socket.c - small parts of work with TCP sockets. See socket.h. */
#include "cluster/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#define KEEPALIVE_SECONDS 5
#define KEEPALIVE_TRIES   4
#define USER_TIMEOUT_MS   25000

bool dti_socket_wait(int fd, short events, const struct dti_deadline *deadline)
{
    struct dti_deadline until = *deadline;
    struct pollfd polled = { .fd = fd, .events = events };
    struct dti_look look = { 0 };
    for (;;) {
        if (dti_look(&look) >= dti_deadline_at(&until))
            return false;
        int ready = poll(&polled, 1, dti_look_poll_ms(&look, dti_deadline_at(&until)));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
}

/* Says whether a call that has moved so many bytes, with this errno, has failed for good. */
static bool has_failed(ssize_t moved)
{
    return moved == 0 || (moved < 0 && errno != EINTR && errno != EAGAIN);
}

bool dti_socket_send(int fd, const void *data, size_t bytes, const struct dti_deadline *deadline)
{
    struct dti_deadline until = *deadline;
    (void)dti_deadline_at(&until); /* one limit for all parts */
    for (size_t done = 0; done < bytes;) {
        if (!dti_socket_wait(fd, POLLOUT, &until))
            return false;
        ssize_t moved = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (has_failed(moved))
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

bool dti_socket_receive(int fd, void *data, size_t bytes, const struct dti_deadline *deadline)
{
    struct dti_deadline until = *deadline;
    (void)dti_deadline_at(&until);
    for (size_t done = 0; done < bytes;) {
        if (!dti_socket_wait(fd, POLLIN, &until))
            return false;
        ssize_t moved = recv(fd, (char *)data + done, bytes - done, 0);
        if (has_failed(moved))
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

void dti_socket_set_options(int fd)
{
    const struct {
        int level, name, value;
    } options[] = { { SOL_SOCKET, SO_KEEPALIVE, 1 },
                    { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_SECONDS },
                    { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_SECONDS },
                    { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES },
                    { IPPROTO_TCP, TCP_NODELAY, 1 } };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

void dti_socket_limit_unacknowledged(int fd)
{
    const int limit_ms = USER_TIMEOUT_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}
