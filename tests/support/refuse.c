/* tests/support/refuse.c - see support.h. */
#include "support/support.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

bool refuse_system_calls_with(const uint32_t *numbers, size_t count, int error_number)
{
    struct sock_filter filter[32] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
    unsigned short length = 1;
    if (count > 15)
        return false;
    for (size_t i = 0; i < count; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                        SECCOMP_RET_ERRNO | (unsigned)error_number);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { length, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool refuse_system_calls(const uint32_t *numbers, size_t count)
{
    return refuse_system_calls_with(numbers, count, EPERM);
}
