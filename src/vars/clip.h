/* src/vars/clip.h - clipping by the global norm: the aggregated gradient is kept, measured, and then applied. */
#ifndef DTI_CLIP_H
#define DTI_CLIP_H

#include "vars/optimizer.h"

ditto_status dti_clip_make(ditto_optimizer *o); /* room for sums of squares. NO_MEMORY */

#endif
