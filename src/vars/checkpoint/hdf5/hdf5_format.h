/* src/vars/checkpoint/hdf5/hdf5_format.h - the constants of the HDF5 format and the encoding of datatypes,
 * which the writer and the reader share. Addresses in the file are relative to the end of the user block. */
#ifndef DTI_HDF5_FORMAT_H
#define DTI_HDF5_FORMAT_H

#include <ditto/dtype.h>

#include <stddef.h>

#define DTI_H5_SIGNATURE "\211HDF\r\n\032\n"
#define DTI_H5_UNDEFINED UINT64_MAX /* the undefined address */

/* The types of messages in an object header. */
enum {
    DTI_H5_DATASPACE = 0x01,
    DTI_H5_DATATYPE = 0x03,
    DTI_H5_FILL_VALUE = 0x05,
    DTI_H5_LAYOUT = 0x08,
    DTI_H5_ATTRIBUTE = 0x0c,
    DTI_H5_CONTINUATION = 0x10,

    /* The "symbol table" message, which contains the addresses of a group's B-tree and heap. */
    DTI_H5_GROUP = 0x11,
};

/* The lengths of structures. */
enum {
    DTI_H5_SUPERBLOCK_BYTES = 96,
    DTI_H5_HEADER_BYTES = 16, /* of an object header, before its first message */
    DTI_H5_MESSAGE_BYTES = 8, /* of a message, before its contents */
    DTI_H5_HEAP_BYTES = 32,   /* of a local heap, before its names */
    DTI_H5_TREE_BYTES = 24,   /* of a B-tree's node, before keys and children */
    DTI_H5_SYMBOLS_BYTES = 8, /* of a symbol node, before its symbols */
    DTI_H5_SYMBOL_BYTES = 40, /* of one symbol */
    DTI_H5_TYPE_BYTES = 128,  /* of the longest datatype here */
};

/* The offsets of members of the superblock. */
enum {
    DTI_H5_AT_LEAF_K = 16,
    DTI_H5_AT_INTERNAL_K = 18,
    DTI_H5_AT_BASE = 24,
    DTI_H5_AT_FREE = 32,
    DTI_H5_AT_END = 40,
    DTI_H5_AT_DRIVER = 48,
    DTI_H5_AT_ROOT = 56,
};

static inline size_t dti_h5_padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Encodes the datatype of a dtype, and returns its length. */
size_t dti_h5_type(ditto_dtype dtype, unsigned char out[DTI_H5_TYPE_BYTES]);

/* Encodes the datatype of a text of `bytes` bytes, which include its terminating zero. */
size_t dti_h5_text_type(size_t bytes, unsigned char out[DTI_H5_TYPE_BYTES]);

/* The names in attributes of DITTO_ON_WRITE and DITTO_ON_READ, and of the aggregations from
 * DITTO_AGGREGATE_NONE on. */
extern const char *const dti_h5_synchronizations[2];
extern const char *const dti_h5_aggregations[4];

#endif
