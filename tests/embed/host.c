/* tests/embed/host.c - a host program in which malloc and free must still be the host's after a strategy has
 * run. It is built with the shared and with the static library, and both times with and without the host's
 * own jemalloc (HOST_JEMALLOC). */
#include <ditto.h>

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ditto_status work(ditto_replica *self, void *unused)
{
    double one = 1;
    void *memory;
    (void)unused;
    DITTO_TRY(ditto_alloc(self, 100000, 0, &memory));
    DITTO_TRY(ditto_all_reduce(self, &one, &one, 1, DITTO_F64, DITTO_SUM, NULL));
    DITTO_TRY(ditto_free(self, memory));
    return one == ditto_num_replicas(self) ? DITTO_OK : ditto_fail(self, 1, "wrong sum");
}

/* Returns the name of the library or program that defines a function. */
static const char *library_of(void *function)
{
    Dl_info info;
    return dladdr(function, &info) != 0 ? info.dli_fname : "nowhere";
}

int main(void)
{
    static const char *const functions[] = { "malloc", "calloc", "realloc", "aligned_alloc", "free" };
    const char *expected = HOST_JEMALLOC ? "libjemalloc" : "libc";
    ditto_strategy *strategy;
    void *before = malloc(1000);
    if (ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy) != DITTO_OK ||
        ditto_strategy_run(strategy, work, NULL) != DITTO_OK) {
        printf("%s\n", ditto_last_error()->message);
        return 1;
    }
    void *after = malloc(1000);
    /* This would crash if free had become that of another allocator since `before` was allocated. */
    free(before);
    free(after);
    if (ditto_strategy_destroy(strategy) != DITTO_OK)
        return 1;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const char *library = library_of(dlsym(RTLD_DEFAULT, functions[i]));
        printf("%s %s\n", functions[i], library);
        if (strstr(library, expected) == NULL)
            return printf("%s is not %s's any more\n", functions[i], expected), 1;
    }
    /* Without the host's jemalloc, blocks must come from glibc's heap, so its statistics must count them. The
     * pointer is volatile, because the compiler may leave out a malloc whose result is not used. */
    size_t in_use = mallinfo2().uordblks;
    void *volatile block = malloc(90000);
    if (!HOST_JEMALLOC && mallinfo2().uordblks < in_use + 90000)
        return printf("glibc did not see the host's malloc\n"), 1;
    free(block);
    return 0;
}
