/* tests/fortran/c_cluster_values.c - what the C headers say about clusters, for comparison with the Fortran
 * module. */
#include <ditto.h>
#include <ditto/tcp.h>

void c_sizes_of_clusters(size_t *bytes);
void c_cluster_values(int *values);
int c_cluster_options_are(const ditto_cluster_options *o);

/* In the order of cluster_sizes. */
void c_sizes_of_clusters(size_t *bytes)
{
    bytes[0] = sizeof(ditto_cluster_options);
    bytes[1] = sizeof(ditto_tcp_options);
}

/* In the order of test_clusters.f90. */
void c_cluster_values(int *values)
{
    values[0] = DITTO_SWITCH_DEFAULT;
    values[1] = DITTO_SWITCH_ON;
    values[2] = DITTO_SWITCH_OFF;
}

/* The Fortran test gives each component a value of its own, in the order of components. */
int c_cluster_options_are(const ditto_cluster_options *o)
{
    return o->struct_size == 1 && o->timeout_ms == 2 && o->name == NULL && (int)o->life_line == 3;
}
