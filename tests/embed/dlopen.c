/* tests/embed/dlopen.c - a program that loads the library while it runs, as Python and plugins do.
 *     dlopen LIBRARY [gone]
 * With "gone" it expects that the library cannot be loaded, because its jemalloc has static TLS. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <ditto.h>

enum { THREADS = 4, ROUNDS = 20 };

/* The functions of the library that the program uses. */
static struct {
    ditto_status (*create)(ditto_strategy_kind, const ditto_strategy_options *, ditto_strategy **);
    ditto_status (*run)(ditto_strategy *, ditto_replica_fn, void *);
    ditto_status (*destroy)(ditto_strategy *);
    ditto_status (*all_reduce)(ditto_replica *, const void *, void *, size_t, ditto_dtype, ditto_op,
                               const ditto_reduce_options *);
    ditto_status (*alloc)(ditto_replica *, size_t, size_t, void **);
    ditto_status (*free)(ditto_replica *, void *);
    uint32_t (*id)(const ditto_replica *);
    const ditto_error *(*last_error)(void);
} ditto;

static int find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    memcpy(function, &found, sizeof found);
    return 0;
}

static int load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    return find(library, "ditto_strategy_create", &ditto.create) ||
           find(library, "ditto_strategy_run", &ditto.run) ||
           find(library, "ditto_strategy_destroy", &ditto.destroy) ||
           find(library, "ditto_all_reduce", &ditto.all_reduce) ||
           find(library, "ditto_alloc", &ditto.alloc) || find(library, "ditto_free", &ditto.free) ||
           find(library, "ditto_replica_id", &ditto.id) ||
           find(library, "ditto_last_error", &ditto.last_error);
}

static ditto_status sum(ditto_replica *self, void *result)
{
    double *memory;
    ditto_status status = ditto.alloc(self, sizeof *memory, 64, (void **)&memory);
    if (status != DITTO_OK)
        return status;
    *memory = ditto.id(self) + 1;
    status = ditto.all_reduce(self, memory, memory, 1, DITTO_F64, DITTO_SUM, NULL);
    if (status == DITTO_OK && ditto.id(self) == 0)
        *(double *)result = *memory;
    return status == DITTO_OK ? ditto.free(self, memory) : status;
}

/* A thread with a strategy of its own, and with an error of its own. */
static void *use(void *failed)
{
    ditto_strategy *strategy = NULL;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 3;
    for (int i = 0; i < ROUNDS; i++) {
        double result = 0;
        if (ditto.create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK ||
            ditto.run(strategy, sum, &result) != DITTO_OK || result != 6 ||
            ditto.run(strategy, NULL, NULL) != DITTO_ERR_INVALID ||
            strstr(ditto.last_error()->message, "function") == NULL || ditto.destroy(strategy) != DITTO_OK) {
            fprintf(stderr, "a result is %g, and the last error: %s\n", result, ditto.last_error()->message);
            *(int *)failed = 1;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int failed[THREADS] = { 0 }, any = 0;
    int is_gone = argc > 2 && strcmp(argv[2], "gone") == 0;
    if (argc < 2)
        return 2;
    if (load(argv[1]) != 0)
        return !is_gone;
    if (is_gone)
        return fprintf(stderr, "%s was loaded, against what its build says\n", argv[1]), 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, use, &failed[i]) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        any |= failed[i];
    }
    return any;
}
