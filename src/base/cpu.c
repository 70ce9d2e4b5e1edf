/* src/base/cpu.c - what the processor can do. */
#include "base/cpu.h"

struct dti_cpu dti_cpu_features(void)
{
    struct dti_cpu cpu = { 0 };
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    cpu.avx2 = __builtin_cpu_supports("avx2") != 0;
    cpu.avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                 __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    cpu.crc32c = __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
    cpu.crc32c = true; /* the compiler was told so, and uses it on its own */
#endif
    return cpu;
}
