/* tests/refuse.h - a kernel that refuses: what seccomp profiles of containers do to a process. */
#ifndef REFUSE_H
#define REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on these system calls give EPERM to this process and to what it starts, for good. False: not possible here. */
bool refuse_system_calls(const uint32_t *numbers, size_t count);
/* The same with another error number. */
bool refuse_system_calls_with(const uint32_t *numbers, size_t count, int error_number);

#endif
