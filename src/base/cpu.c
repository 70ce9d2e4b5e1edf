/* src/base/cpu.c - what the processor can do. */
#include "base/cpu.h"

struct dti_cpu dti_cpu_features(void)
{
    struct dti_cpu cpu = { 0 };
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    cpu.avx2 = __builtin_cpu_supports("avx2") != 0;
    cpu.avx512f = __builtin_cpu_supports("avx512f") != 0;
    cpu.fma = __builtin_cpu_supports("fma") != 0;
    cpu.f16c = cpu.avx2; /* every processor with AVX2 has it; gcc 12 and clang 14 do not both know the name */
#endif
    return cpu;
}
