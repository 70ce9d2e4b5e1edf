/* src/replicas/machine/limits.c - reads memory nodes, memory policies and settings of the kernel.
 * Source: proc_pid_status(5), set_mempolicy(2), mbind(2), kernel Documentation/admin-guide/mm/transhuge.rst
 * and admin-guide/sysctl/kernel.rst (numa_balancing). */
#include "replicas/machine/limits.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/numa_node.h"

#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool read_under(const char *root, const char *path, char *text, size_t size)
{
    char full[PATH_MAX];
    return snprintf(full, sizeof full, "%s%s", root, path) < (int)sizeof full &&
           dti_read_file(full, text, size);
}

bool dti_limits_mems(const char *root, struct dti_mask *mems)
{
    static const char key[] = "\nMems_allowed_list:";
    char status[16384];
    if (!read_under(root, "/proc/self/status", status, sizeof status))
        return false;
    char *list = strstr(status, key);
    if (list == NULL)
        return false;
    list += sizeof key - 1;
    list += strspn(list, " \t");
    return dti_mask_parse(list, strcspn(list, "\n"), mems);
}

static ditto_huge_pages read_huge_pages(const char *root)
{
    static const char *const marked[] = { "", "[never]", "[madvise]", "[always]" };
    char text[128];
    if (read_under(root, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text))
        for (int i = DITTO_HUGE_PAGES_NEVER; i <= DITTO_HUGE_PAGES_ALWAYS; i++)
            if (strstr(text, marked[i]) != NULL)
                return (ditto_huge_pages)i;
    return DITTO_HUGE_PAGES_UNKNOWN;
}

static int32_t read_balancing(const char *root)
{
    char text[32];
    int64_t value;
    if (!read_under(root, "/proc/sys/kernel/numa_balancing", text, sizeof text) ||
        !dti_parse_i64(text, strcspn(text, "\n"), &value))
        return -1;
    return (int32_t)value;
}

/* Reads the memory policy of the calling thread, and its nodes. */
static ditto_numa_policy read_policy(struct dti_mask *nodes)
{
    int mode = 0, kept_errno = errno;
    /* One word more than any kernel needs. */
    unsigned long bits[(DTI_MAX_NODES + 63) / 64 + 1] = { 0 };
    dti_mask_clear(nodes);
    if (get_mempolicy(&mode, bits, sizeof bits * 8, NULL, 0) != 0) {
        errno = kept_errno;
        return DITTO_NUMA_POLICY_UNKNOWN;
    }
    memcpy(nodes->bits, bits, sizeof bits);
    switch (mode & 0xfff) { /* the higher bits are flags of the mode */
    case MPOL_DEFAULT:
        return DITTO_NUMA_POLICY_DEFAULT;
    case MPOL_PREFERRED:
    case MPOL_PREFERRED_MANY:
        return DITTO_NUMA_POLICY_PREFERRED;
    case MPOL_BIND:
        return DITTO_NUMA_POLICY_BIND;
    case MPOL_INTERLEAVE:
        return DITTO_NUMA_POLICY_INTERLEAVE;
    case MPOL_LOCAL:
        return DITTO_NUMA_POLICY_LOCAL;
    default:
        return DITTO_NUMA_POLICY_OTHER;
    }
}

void dti_policy_drop(void)
{
    int mode = MPOL_DEFAULT, kept_errno = errno;
    if (get_mempolicy(&mode, NULL, 0, NULL, 0) == 0 && mode != MPOL_DEFAULT)
        set_mempolicy(MPOL_DEFAULT, NULL, 0);
    errno = kept_errno;
}

static void write_mask(const struct dti_mask *mask, char *buffer, size_t size)
{
    struct dti_text text = { buffer, size, 0 };
    buffer[0] = '\0';
    dti_mask_write(mask, &text);
    dti_number_list_fit(&text);
}

void dti_limits_read(const char *root, const struct dti_mask *affinity, ditto_limits *out)
{
    struct dti_mask mask;
    *out = (ditto_limits){ .struct_size = sizeof *out,
                           .numa_balancing = read_balancing(root),
                           .huge_pages = read_huge_pages(root) };
    if (affinity != NULL || dti_affinity_try_get(&mask))
        write_mask(affinity != NULL ? affinity : &mask, out->affinity, sizeof out->affinity);
    if (dti_limits_mems(root, &mask))
        write_mask(&mask, out->memory_nodes, sizeof out->memory_nodes);
    out->memory_policy = read_policy(&mask);
    write_mask(&mask, out->policy_nodes, sizeof out->policy_nodes);
    /* Tries mbind and move_pages on a new page. Seccomp or a security module may refuse them, or the kernel
     * may be built without them. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int node = -1, kept_errno = errno;
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    out->mbind_errno = out->move_pages_errno = ENOMEM;
    if (memory != MAP_FAILED) {
        out->mbind_errno = mbind(memory, page, MPOL_DEFAULT, NULL, 0, 0) == 0 ? 0 : errno;
        *(volatile char *)memory = 0;
        out->move_pages_errno = dti_pages_nodes(&memory, &node, 1);
        munmap(memory, page);
    }
    errno = kept_errno;
}
