#include "sync/calibrate.h"
ditto_status dti_calibrate(struct dti_team *team)
{
    (void)team;
    return DITTO_OK;
}
