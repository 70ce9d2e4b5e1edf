/* src/replicas/api_replica.c - the functions of include/ditto/replica.h, and ditto_random_of of
 * include/ditto/random.h. They check their arguments and then call. */
#include "replicas/helpers/remote_memory.h"
#include "replicas/team/servers.h"
#include "replicas/team/team_state.h"

#include <ditto/random.h>
#include <stdarg.h>
#include <stdio.h>

/* The number of the first stream of ditto_random_of. It is large, so that these streams differ from those
 * that a program numbers itself. */
#define OWN_STREAMS (UINT64_C(1) << 63)

uint32_t ditto_replica_id(const ditto_replica *self)
{
    const struct dti_replica *r = dti_self_in("ditto_replica_id", self);
    return r != NULL ? r->id : DITTO_NO_REPLICA;
}

uint32_t ditto_num_replicas(const ditto_replica *self)
{
    const struct dti_replica *r = dti_self_in("ditto_num_replicas", self);
    return r != NULL ? r->all_replicas : 0;
}

int ditto_replica_is_first_of_host(const ditto_replica *self)
{
    const struct dti_replica *r = dti_self_in("ditto_replica_is_first_of_host", self);
    return r != NULL && r->index == 0;
}

ditto_status ditto_alloc(ditto_replica *self, size_t bytes, size_t alignment, void **out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    if (out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "out is NULL: give a pointer that receives the memory");
    if ((alignment & (alignment - 1)) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "alignment %zu is not a power of two", alignment);
    return dti_replica_alloc(r, bytes, alignment, out);
}

ditto_status ditto_free(ditto_replica *self, void *memory)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    dti_replica_free(r, memory);
    return DITTO_OK;
}

ditto_status ditto_random_of(ditto_replica *self, uint64_t seed, ditto_random *out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(out, "out"));
    *out = ditto_random_make(seed, OWN_STREAMS + dti_team_first_stream(r->team) + r->id);
    return DITTO_OK;
}

ditto_status ditto_fail(ditto_replica *self, int32_t code, const char *format, ...)
{
    va_list arguments;
    (void)self; /* the record belongs to the thread */
    DTI_ENTER_QUICKLY();
    va_start(arguments, format);
    dti_vfail(DITTO_ERR_USER, 0, format, arguments);
    va_end(arguments);
    dti_error_set_user(code);
    return DITTO_ERR_USER;
}
