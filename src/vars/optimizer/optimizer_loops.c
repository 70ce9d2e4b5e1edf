/* src/vars/optimizer/optimizer_loops.c - the arithmetic of ditto/optimizer.h's rules.
 *
 * The file is compiled once for each instruction set, and DTI_OPTIMIZER_LOOPS names the table that comes
 * out (src/meson.build). No element depends on another one, and nothing is fused, so all tables give the
 * same bits (tests/semantics/optimizer/test_optimizer.c). */
#include "base/platform.h"
#include "vars/optimizer/optimizer_step.h"

#include <math.h>

#define NAME        f32
#define TYPE        float
#define SQUARE_ROOT sqrtf
#include "vars/optimizer/optimizer_loops_of_type.h"

#define NAME        f64
#define TYPE        double
#define SQUARE_ROOT sqrt
#include "vars/optimizer/optimizer_loops_of_type.h"

const struct dti_optimizer_loops DTI_OPTIMIZER_LOOPS = {
    .descend = { f32_descend, f64_descend },
    .momentum = { f32_momentum, f64_momentum },
    .nesterov = { f32_nesterov, f64_nesterov },
    .adapt = { f32_adapt, f64_adapt },
    .decay = { f32_decay, f64_decay },
};
