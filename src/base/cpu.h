/* src/base/cpu.h - what the processor can do. */
#ifndef DTI_CPU_H
#define DTI_CPU_H

#include <stdbool.h>

struct dti_cpu {
    bool avx2,
        avx512;  /* avx512: with the byte, double-word and vector-length extensions that servers have had since 2017 */
    bool crc32c; /* an instruction for it that this library was compiled to use: SSE 4.2, or that of ARMv8 */
};
/* Any thread; asked of the processor (and of the operating system's saved state) at each call: cheap, no state. */
struct dti_cpu dti_cpu_features(void);

#endif
