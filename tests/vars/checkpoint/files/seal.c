/* tests/vars/checkpoint/files/seal.c - seals HDF5 files as checkpoints; see
 * vars/checkpoint/checkpoint_support.h. It follows the description in
 * src/vars/checkpoint/files/checkpoint_files.h, and does not use the functions declared there. */
#include "vars/checkpoint/checkpoint_support.h"
#include "support/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void seal_bytes(unsigned char *bytes, size_t count)
{
    XXH128_canonical_t sum;
    uint32_t format = 1, block = 4096;
    uint64_t length = count;
    memset(bytes, 0, 4096);
    memcpy(bytes, "DITTOCKP", 8);
    memcpy(bytes + 8, &format, 4);
    memcpy(bytes + 12, &block, 4);
    memcpy(bytes + 16, &length, 8);
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, count));
    memcpy(bytes + 24, &sum, sizeof sum);
}

void seal_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    size_t count = (size_t)st.st_size;
    unsigned char *bytes = malloc(count);
    assert_int_equal(read(fd, bytes, count), count);
    seal_bytes(bytes, count);
    assert_int_equal(pwrite(fd, bytes, count, 0), count);
    assert_int_equal(close(fd), 0);
    free(bytes);
}
