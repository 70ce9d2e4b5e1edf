/* src/sync/async.h */
#ifndef DTI_ASYNC_H
#define DTI_ASYNC_H
#include "sync/state.h"
static inline void dti_async_help(struct dti_replica *self)
{
    (void)self;
}
static inline ditto_status dti_async_make(struct dti_replica *self, struct dti_sync *sync)
{
    (void)self, (void)sync;
    return DITTO_OK;
}
static inline void dti_async_renew(struct dti_attendee *a)
{
    (void)a;
}
#endif
