/* src/replicas/machine/affinity.c - see affinity.h. */
#include "replicas/machine/affinity.h"
#include "base/errors/status.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0 or the error number. errno does not change. */
static int get_affinity(int32_t tid, struct dti_mask *mask)
{
    int kept_errno = errno;
    dti_mask_clear(mask);
    int error_number = sched_getaffinity(tid, sizeof *mask, (cpu_set_t *)(void *)mask) == 0 ? 0 : errno;
    errno = kept_errno;
    return error_number;
}

static int set_affinity(const struct dti_mask *mask)
{
    int kept_errno = errno;
    int error_number = sched_setaffinity(0, sizeof *mask, (const cpu_set_t *)(const void *)mask) == 0 ? 0
                                                                                                      : errno;
    errno = kept_errno;
    return error_number;
}

ditto_status dti_affinity_get(struct dti_mask *mask)
{
    int error_number = get_affinity(0, mask);
    if (error_number != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, error_number,
                              "the kernel refuses sched_getaffinity, so the PUs that the process may use are "
                              "not known: allow the call in its sandbox (seccomp profile)");
    return DITTO_OK;
}

bool dti_affinity_try_get(struct dti_mask *mask)
{
    return get_affinity(0, mask) == 0;
}

void dti_affinity_restore(const struct dti_mask *mask)
{
    (void)set_affinity(mask);
}

static ditto_status refuse_binding(const struct dti_mask *pus, int error_number)
{
    char list[256];
    struct dti_text text = { list, sizeof list, 0 };
    dti_mask_write(pus, &text);
    dti_number_list_fit(&text);
    if (error_number == EINVAL)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, error_number,
                              "could not bind the thread to PU %s: was it taken offline or out of the "
                              "cpuset? use DITTO_PIN_NONE to run without binding",
                              list);
    return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, error_number,
                          "could not bind the thread to PU %s: does the sandbox (seccomp profile) refuse "
                          "sched_setaffinity? use DITTO_PIN_NONE to run without binding",
                          list);
}

ditto_status dti_pin_to(const struct dti_mask *pus)
{
    int error_number = set_affinity(pus);
    return error_number == 0 ? DITTO_OK : refuse_binding(pus, error_number);
}

ditto_status dti_pin_if_allowed(const struct dti_mask *pus, struct dti_mask *before, bool *bound)
{
    DTI_TRY(dti_affinity_get(before));
    int error_number = set_affinity(pus);
    *bound = error_number == 0;
    return error_number == 0 || error_number == EINVAL ? DITTO_OK : refuse_binding(pus, error_number);
}

bool dti_pin_try_to(const struct dti_mask *pus)
{
    return set_affinity(pus) == 0;
}

int32_t dti_thread_pu(int32_t tid)
{
    enum { FIELD = 39 }; /* `processor` in proc_pid_stat(5). The name, field 2, is in parentheses */
    char text[1024];
    if (tid == 0)
        return sched_getcpu();
    snprintf(text, sizeof text, "/proc/self/task/%d/stat", (int)tid);
    if (!dti_read_file(text, text, sizeof text))
        return -1;
    const char *at = strrchr(text, ')');
    for (int field = 2; field < FIELD && at != NULL; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? (int32_t)strtol(at, NULL, 10) : -1;
}

bool dti_thread_is_bound_to(int32_t tid, const struct dti_mask *pus)
{
    struct dti_mask mask;
    return get_affinity(tid, &mask) == 0 && memcmp(&mask, pus, sizeof mask) == 0;
}

/* The counts are relaxed, because they guard no other data. */
static _Atomic uint16_t on_pu[DTI_MAX_PUS];
static _Atomic uint32_t floating, all, epoch;

uint32_t dti_load_epoch(void)
{
    /* acquire: pairs with the release in dti_load_add and dti_load_remove, which raise the epoch last. Counts
     * that are read after this are at least as new as the epoch. */
    return atomic_load_explicit(&epoch, memory_order_acquire);
}

uint32_t dti_load_on(uint32_t pu)
{
    return atomic_load_explicit(&on_pu[pu], memory_order_relaxed);
}

void dti_load_add(uint32_t pu)
{
    atomic_fetch_add_explicit(&all, 1, memory_order_relaxed);
    if (pu == DTI_NO_PU)
        atomic_fetch_add_explicit(&floating, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&on_pu[pu], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release); /* pairs with dti_load_epoch */
}

void dti_load_remove(uint32_t pu)
{
    atomic_fetch_sub_explicit(&all, 1, memory_order_relaxed);
    if (pu == DTI_NO_PU)
        atomic_fetch_sub_explicit(&floating, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&on_pu[pu], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release); /* pairs with dti_load_epoch */
}

bool dti_load_is_oversubscribed(uint32_t pu, uint32_t pus, double cpu_quota)
{
    uint32_t threads = atomic_load_explicit(&all, memory_order_relaxed);
    bool shared = pu != DTI_NO_PU && atomic_load_explicit(&on_pu[pu], memory_order_relaxed) > 1;
    bool too_many = atomic_load_explicit(&floating, memory_order_relaxed) > 0 && threads > pus;
    return shared || too_many || (cpu_quota > 0 && cpu_quota < threads);
}
