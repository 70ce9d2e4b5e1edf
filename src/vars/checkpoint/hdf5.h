/* src/vars/checkpoint/hdf5.h - the HDF5 part of a checkpoint. Everything that calls HDF5 is behind this door.
 *
 * Root attributes: ditto_version (text), ditto_step, the user's. Each dataset has the attributes dtype, synchronization, aggregation
 * (text) and trainable; data of the program's own have dtype and kind, "data". f16 and bf16 are floats of two bytes; complex numbers compounds of r and i, bool an enum of FALSE and TRUE
 * over i8, as h5py has them. */
#ifndef DTI_HDF5_H
#define DTI_HDF5_H

#include "vars/checkpoint/contents.h"

struct dti_hdf5; /* an open file */

/* -- Any thread; one at a time goes in -- */

/* A new file without its values: each entry is told its offset, where they belong. IO. */
ditto_status dti_hdf5_create(const char *path, struct dti_contents *contents);
/* A file that has been checked; `fd` stays the caller's, and open. CORRUPT, UNSUPPORTED (no dataset of ditto's), NO_MEMORY. */
ditto_status dti_hdf5_open(int fd, const char *path, struct dti_hdf5 **out, struct dti_contents *contents);
ditto_status dti_hdf5_read(struct dti_hdf5 *file, const struct dti_entry *entry, void *dst); /* CORRUPT */
void dti_hdf5_close(struct dti_hdf5 *file);

#endif
