/* src/strategy/trace.h - what replicas have recorded. The team's turn is taken, and no run is going on. */
#ifndef DTI_TRACE_REPORT_H
#define DTI_TRACE_REPORT_H

#include <ditto/trace.h>

#include "strategy/strategy.h"

ditto_status dti_trace_times(const struct dti_team *team, uint32_t index, ditto_operation_times *out);
ditto_status dti_trace_statistics(const struct dti_team *team, struct dti_text *text);
ditto_status dti_trace_write(const struct dti_team *team, const char *path);

#endif
