/* tests/fortran/c_cluster_options.c - compares the options of a cluster in Fortran with those of C. */
#include <ditto/cluster.h>

int c_cluster_options_are(const ditto_cluster_options *o);

/* The Fortran test gives each component a value of its own, in the order of components. */
int c_cluster_options_are(const ditto_cluster_options *o)
{
    return o->struct_size == 1 && o->timeout_ms == 2 && o->name == NULL && (int)o->life_line == 3;
}
