/* src/base/usage.h - how often each public function has been called. */
#ifndef DTI_USAGE_H
#define DTI_USAGE_H

#include "base/companion.h"
#include "base/atomics.h"

/* One public function: lives in it, and is listed from its first counted call on. */
struct dti_usage {
    const char *name;
    _Atomic uint64_t calls;
    _Atomic uint32_t listed;
    struct dti_usage *next;
};

extern DTI_COMPANION _Atomic bool dti_usage_on;
DTI_COMPANION void dti_usage_count(struct dti_usage *usage, const char *name); /* any thread */
struct dti_usage *dti_usage_first(void); /* of those listed: never removed, so they can be walked */

#endif
