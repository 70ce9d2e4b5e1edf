/* src/vars/checkpoint/hdf5/hdf5.h - writes and reads the HDF5 part of a checkpoint.
 *
 * The root group has the attributes ditto_version (a text), ditto_step, and those of the user. The dataset of
 * a variable has the attributes dtype, synchronization and aggregation, which are texts, and trainable. The
 * dataset of the program's own data has the attributes dtype and kind, and kind is "data". f16 and bf16 are
 * floats of two bytes. Complex numbers are compounds of r and i. bool is an enum of FALSE and TRUE over i8.
 * h5py uses the same datatypes.
 *
 * The HDF5 library is not used. It ends the process when a malloc fails while it registers an id (version
 * 1.10.8 calls exit there). It crashes when other mallocs fail, and it keeps broken state for the next call.
 * The structures that are written and read here are those that the library writes by default and that all its
 * versions read. They are superblock 0, object headers of version 1, groups of a B-tree, a local heap and
 * symbol nodes, and contiguous datasets. They are defined in the HDF5 File Format Specification, version 3.0.
 * docs/adr/0020-checkpoints-without-the-hdf5-library.md has what was measured. */
#ifndef DTI_HDF5_H
#define DTI_HDF5_H

#include "vars/checkpoint/files/contents.h"

/* The bytes between the user block and the values. */
struct dti_skeleton {
    unsigned char *bytes;
    size_t size;

    /* The length of the whole file, with user block, skeleton and values. */
    uint64_t file_bytes;
};

/* Lays out a file. Each entry that has bytes gets its offset in the file, and the offsets ascend in the order
 * of the entries. The caller frees out->bytes. Returns DITTO_ERR_NO_MEMORY, or DITTO_ERR_INVALID if an
 * attribute does not fit in its message or there are too many attributes. */
ditto_status dti_hdf5_lay_out(struct dti_contents *contents, struct dti_skeleton *out);

/* Reads the contents of a file of `file_bytes` bytes, without the values. The entries are sorted by path and
 * have their offsets. The file may contain any bytes. The caller frees the contents, also after an error.
 * Returns DITTO_ERR_CORRUPT, DITTO_ERR_UNSUPPORTED for structures that ditto does not write, DITTO_ERR_IO or
 * DITTO_ERR_NO_MEMORY. */
ditto_status dti_hdf5_list(int fd, uint64_t file_bytes, const char *path, struct dti_contents *contents);

#endif
