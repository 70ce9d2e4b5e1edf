/* src/cluster/function.c - finds the file of a function. See function.h. */
#include "cluster/function.h"
#include "base/numbers/checksum.h"

#include <dlfcn.h>
#include <string.h>

uint64_t dti_function_hash(const void *function)
{
    Dl_info info;
    /* A function that no file contains was made while the program runs. Its address is all that is known. */
    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return dti_hash_word(DTI_HASH_SEED, (uint64_t)(uintptr_t)function);
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash != NULL ? slash + 1 : info.dli_fname;
    return dti_hash_word(dti_hash_bytes(DTI_HASH_SEED, name, strlen(name)),
                         (uint64_t)((uintptr_t)function - (uintptr_t)info.dli_fbase));
}
