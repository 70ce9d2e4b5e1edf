/* src/hosts/socket.h - small parts of work with TCP sockets, which never block. */
#ifndef DTI_SOCKET_H
#define DTI_SOCKET_H

#include "base/waiting/futex.h"

#include <stdbool.h>
#include <stddef.h>

/* Waits until the socket is ready for the events of poll(2). Returns false after the deadline. */
bool dti_socket_is_ready(int fd, short events, const struct dti_deadline *deadline);

/* Send and receive all bytes. Return false after the deadline, or if the connection is closed. */
bool dti_socket_send(int fd, const void *data, size_t bytes, const struct dti_deadline *deadline);
bool dti_socket_receive(int fd, void *data, size_t bytes, const struct dti_deadline *deadline);

/* Sets options by which a dead peer, or a cut cable, is noticed within half a minute, and small messages are
 * sent at once. */
void dti_socket_set_options(int fd);

#endif
