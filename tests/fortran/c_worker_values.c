/* tests/fortran/c_worker_values.c - what the C headers say about coordinators and parameters, for comparison
 * with the Fortran modules, and a pause. */
#include <ditto.h>

#include <time.h>

void c_sizes_of_workers(size_t *bytes);
void c_worker_values(int *values);
int c_coordinator_options_are(const ditto_coordinator_options *o);
void c_fill_worker(ditto_worker_info *info, ditto_input_context *context);
void c_pause(void);

/* In the order of coordinator_sizes. */
void c_sizes_of_workers(size_t *bytes)
{
    bytes[0] = sizeof(ditto_coordinator_options);
    bytes[1] = sizeof(ditto_worker_info);
    bytes[2] = sizeof(ditto_input_context);
}

/* In the order of structs_are_those_of_c in test_coordinators.f90. */
void c_worker_values(int *values)
{
    const int found[] = { DITTO_MIRRORED,         DITTO_CENTRAL_STORAGE, DITTO_ONE_DEVICE,
                          DITTO_PARAMETER_SERVER, DITTO_SCATTER_ADD,     DITTO_SCATTER_SUB,
                          DITTO_SCATTER_MUL,      DITTO_SCATTER_DIV,     DITTO_SCATTER_MIN,
                          DITTO_SCATTER_MAX,      DITTO_SCATTER_UPDATE,  DITTO_MAX_FUNCTION_NAME_BYTES,
                          DITTO_MAX_SCHEDULED };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        values[i] = found[i];
}

/* The Fortran test gives each component a value of its own, from 1 on in the order of components. */
int c_coordinator_options_are(const ditto_coordinator_options *o)
{
    return o->struct_size == 1 && o->queue_capacity == 2 && o->max_attempts == 3;
}

void c_fill_worker(ditto_worker_info *info, ditto_input_context *context)
{
    *info = (ditto_worker_info){ .struct_size = 1,
                                 .first_replica = 2,
                                 .num_replicas = 3,
                                 .is_retired = 4,
                                 .is_busy = 5,
                                 .functions = 6,
                                 .busy_ns = 7,
                                 .iterators = 8,
                                 .idle_ns = 9 };
    *context = (ditto_input_context){ .num_pipelines = 10, .pipeline = 11, .num_replicas = 12 };
}

void c_pause(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}
