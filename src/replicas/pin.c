/* src/replicas/pin.c - affinity of the calling thread. */
#include "replicas/pin.h"
#include "base/base.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

ditto_status dti_affinity_get(struct dti_mask *mask)
{
    dti_mask_clear(mask);
    if (sched_getaffinity(0, sizeof *mask, (cpu_set_t *)(void *)mask) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "could not read the thread's affinity");
    return DITTO_OK;
}

void dti_affinity_restore(const struct dti_mask *mask)
{
    int kept_errno = errno;
    sched_setaffinity(0, sizeof *mask, (const cpu_set_t *)(const void *)mask);
    errno = kept_errno;
}

ditto_status dti_pin_to(const struct dti_mask *pus)
{
    if (sched_setaffinity(0, sizeof *pus, (const cpu_set_t *)(const void *)pus) != 0) {
        int failed = errno;
        char list[256];
        struct dti_text text = { list, sizeof list, 0 };
        dti_mask_write(pus, &text);
        dti_list_fit(&text);
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed,
                              "could not bind the thread to PU %s: was it taken offline or out of the cpuset? "
                              "DITTO_PIN_NONE does without binding",
                              list);
    }
    return DITTO_OK;
}
