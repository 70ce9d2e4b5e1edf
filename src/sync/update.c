/* src/sync/update.c - an all-reduce into copies that are nobody's own: what variables use. */
#include "sync/arguments.h"
#include "sync/collective.h"
#include "sync/sync.h"

ditto_status dti_update(struct dti_replica *self, const void *src, size_t count, ditto_dtype dtype, ditto_op op,
                        const char *name, const char *object, const struct dti_target *target,
                        struct dti_deadline *deadline)
{
    struct dti_call call = { .name = name,
                             .object = object,
                             .count = count,
                             .element_bytes = ditto_dtype_bytes(dtype),
                             .root = op != 0 ? DTI_NO_ROOT : 0,
                             .pattern = DTI_UPDATE,
                             .dtype = (uint8_t)dtype,
                             .op = (uint8_t)op,
                             .src = src };
    DTI_TRY(dti_not_combining(self, name));
    return dti_collective(self, &call, target, deadline);
}
