/* src/coordinator/copied.h - copies of values, which belong to no strategy: the arguments of a function on
 * their way to a worker, and its results on their way back. */
#ifndef DTI_COPIED_H
#define DTI_COPIED_H

#include <ditto/value.h>

#include "base/platform.h"

struct dti_copied_member;

/* A tensor, or a nest of copies. */
struct dti_copied {
    /* Of the outermost one. Each execution of a function has a reference to its arguments, also one that was
     * given up and still reads them. */
    _Atomic uint32_t references;

    ditto_tensor tensor; /* data is in the same allocation; dtype 0 for a nest */
    uint32_t members;
    struct dti_copied_member *member; /* [members] in the same allocation */
};

struct dti_copied_member {
    char name[48]; /* DITTO_MAX_RESULT_NAME_BYTES + 1 */
    struct dti_copied *value;
};

/* Copies plain and mirrored values, per-replica values (of one replica as its tensor, of several as a nest),
 * and nests of these. Returns INVALID for variables and slices, and NO_MEMORY. */
ditto_status dti_copied_make(const ditto_value *value, struct dti_copied **out);

ditto_status dti_copied_tensor(const ditto_tensor *tensor, struct dti_copied **out);

/* Makes a value of a strategy. If `views` is true, the tensors are views of the copy, which must live as long
 * as the value. Otherwise they are copied once more. */
ditto_status dti_copied_value(ditto_strategy *strategy, const struct dti_copied *copied, bool views,
                              ditto_value **out);

void dti_copied_keep(struct dti_copied *copied);
void dti_copied_drop(struct dti_copied *copied); /* NULL is allowed */

#endif
