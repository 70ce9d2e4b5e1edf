/* src/replicas/pin.c - affinity of the calling thread. */
#include "replicas/pin.h"
#include "base/base.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define WORD_BITS (8 * sizeof(unsigned long))

void dti_mask_clear(struct dti_mask *mask)
{
    memset(mask, 0, sizeof *mask);
}

void dti_mask_add(struct dti_mask *mask, uint32_t pu)
{
    mask->bits[pu / WORD_BITS] |= 1ul << pu % WORD_BITS;
}

bool dti_mask_has(const struct dti_mask *mask, uint32_t pu)
{
    return pu < DTI_MAX_PUS && (mask->bits[pu / WORD_BITS] >> pu % WORD_BITS & 1) != 0;
}

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

ditto_status dti_pin_to(uint32_t pu)
{
    struct dti_mask mask;
    dti_mask_clear(&mask);
    dti_mask_add(&mask, pu);
    if (sched_setaffinity(0, sizeof mask, (cpu_set_t *)(void *)&mask) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno,
                              "could not bind the thread to PU %u: was it taken offline or out of the cpuset? "
                              "DITTO_PIN_NONE does without binding",
                              pu);
    return DITTO_OK;
}
