/* src/cluster/function.h - which function of the user's a call was given. */
#ifndef DTI_HOSTS_FUNCTION_H
#define DTI_HOSTS_FUNCTION_H

#include <stdint.h>

/* Returns a hash of a function that is equal in all processes that run the same program: of the name of the
 * file that contains the function, and of its place in that file. Addresses differ between processes. The
 * file's folder is left out, because hosts may have it elsewhere. Any thread may call it. It takes some
 * microseconds, because it searches the symbols of the file. */
uint64_t dti_function_hash(const void *function);

#endif
