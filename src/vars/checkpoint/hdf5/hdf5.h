/* src/vars/checkpoint/hdf5/hdf5.h - the HDF5 part of a checkpoint: how it is laid out, and how it is read
 * again.
 *
 * Root attributes: ditto_version (text), ditto_step, the user's. Each dataset has the attributes dtype,
 * synchronization, aggregation (text) and trainable; data of the program's own have dtype and kind,
 * "data". f16 and bf16 are floats of two bytes; complex numbers are compounds of r and i; bool is an enum
 * of FALSE and TRUE over i8, as h5py has them.
 *
 * The HDF5 library is not used. It ends the process when a malloc fails while it registers an id
 * (1.10.8 calls exit there), it crashes at other failed mallocs, and it keeps broken state for the next
 * call. The forms that are written and read here are those that the library writes by default, and that
 * every version of it reads: superblock 0, object headers of version 1, groups of a B-tree, a local heap
 * and symbol nodes, contiguous datasets. They are defined in the HDF5 File Format Specification, version
 * 3.0. docs/adr/0020. */
#ifndef DTI_HDF5_H
#define DTI_HDF5_H

#include "vars/checkpoint/contents.h"

/* The bytes that stand between the user block and the values. */
struct dti_skeleton {
    unsigned char *bytes;
    size_t size;

    /* Length of the whole file: user block, skeleton and values. */
    uint64_t file_bytes;
};

/* Lays a file out. Each entry that has bytes is given its offset in the file, in ascending order. The
 * caller frees out->bytes. NO_MEMORY; INVALID: attributes that do not fit into their messages. */
ditto_status dti_hdf5_lay_out(struct dti_contents *contents, struct dti_skeleton *out);

/* Reads what is in a file of `file_bytes` bytes, values excepted: entries come sorted by their path, with
 * their offsets. The file may hold anything. CORRUPT, UNSUPPORTED (a form that ditto does not write), IO,
 * NO_MEMORY; the caller frees the contents in any case. */
ditto_status dti_hdf5_list(int fd, uint64_t file_bytes, const char *path, struct dti_contents *contents);

#endif
