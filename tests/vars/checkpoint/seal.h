/* tests/vars/checkpoint/seal.h - turns an HDF5 file into something that passes the check of a checkpoint's
 * outside. */
#ifndef SEAL_H
#define SEAL_H

#include <stddef.h>

/* Puts magic, format, length and checksum into the first 4096 bytes of `bytes`, which are the user block. */
void seal_bytes(unsigned char *bytes, size_t count);

/* The same for a file. */
void seal_file(const char *path);

#endif
