/* src/cluster/socket.h - small parts of work with TCP sockets that are in non-blocking mode. */
#ifndef DTI_SOCKET_H
#define DTI_SOCKET_H

#include "base/waiting/deadline.h"

#include <stdbool.h>
#include <stddef.h>

/* Waits until the socket is ready for the events of poll(2). Returns false after the deadline. */
bool dti_socket_wait(int fd, short events, const struct dti_deadline *deadline);

/* Send and receive all bytes. Return false after the deadline, or if the connection is closed. */
bool dti_socket_send(int fd, const void *data, size_t bytes, const struct dti_deadline *deadline);
bool dti_socket_receive(int fd, void *data, size_t bytes, const struct dti_deadline *deadline);

/* Sets options by which small messages are sent at once, and a dead peer or a cut cable is noticed while
 * nothing is sent, after 25 s. */
void dti_socket_set_options(int fd);

/* Makes the system close the connection if what was sent is not acknowledged within half a minute. A peer
 * that is alive, but does not read for so long while its buffers are full, is lost too. So this is for
 * connections with few and short messages. */
void dti_socket_limit_unacknowledged(int fd);

#endif
