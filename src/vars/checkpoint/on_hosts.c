/* src/vars/checkpoint/on_hosts.c - checkpoints of a strategy over several hosts.
 *
 * Only the first host reads files. It sends their bytes to the other hosts, which put them into a file in
 * memory and continue as if it were the file. So no host but the first needs the file system of the
 * checkpoints. */
#include "sync/hosts/cross.h"
#include "vars/checkpoint/checkpoint.h"
#include "vars/checkpoint/hdf5/hdf5.h"
#include "vars/vars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a file that are sent at once. */
#define CHUNK_BYTES ((size_t)16 << 20)

/* -- the first host -- */

static ditto_status fail_io(const char *what, const char *path)
{
    return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s %s for the other hosts", what, path);
}

/* Sends the bytes of an open file to the other hosts. */
static ditto_status send_file(struct dti_team *team, const ditto_checkpoint *file)
{
    struct dti_cross_request request = { .name = dti_this_thread()->function };
    const struct dti_gathered *all;
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return fail_io("reading", file->path);
    uint64_t bytes = (uint64_t)st.st_size;
    unsigned char *chunk = malloc(CHUNK_BYTES);
    if (chunk == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to send %s to other hosts", file->path);
    ditto_status status = dti_cross_gather(team, &request, &bytes, sizeof bytes, &all);
    for (uint64_t at = 0; status == DITTO_OK && at < bytes; at += CHUNK_BYTES) {
        size_t length = bytes - at < CHUNK_BYTES ? (size_t)(bytes - at) : CHUNK_BYTES;
        status = dti_checkpoint_file_read(file->fd, chunk, length, at, file->path);
        if (status == DITTO_OK)
            status = dti_cross_gather(team, &request, chunk, length, &all);
    }
    free(chunk);
    return status;
}

/* -- the other hosts -- */

static ditto_status write_all(int fd, const unsigned char *data, size_t bytes, const char *path)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail_io("keeping the bytes of", path);
        data += written;
        bytes -= (size_t)written;
    }
    return DITTO_OK;
}

/* Receives the bytes of the file of the first host. */
static ditto_status receive_file(struct dti_team *team, int fd, const char *path, uint64_t *bytes)
{
    struct dti_cross_request request = { .name = dti_this_thread()->function };
    const struct dti_gathered *all;
    DTI_TRY(dti_cross_gather(team, &request, NULL, 0, &all));
    memcpy(bytes, all[0].data, sizeof *bytes);
    for (uint64_t at = 0; at < *bytes; at += all[0].bytes) {
        DTI_TRY(dti_cross_gather(team, &request, NULL, 0, &all));
        DTI_TRY(write_all(fd, all[0].data, all[0].bytes, path));
    }
    return DITTO_OK;
}

static ditto_status receive_checkpoint(struct dti_team *team, const char *path, ditto_checkpoint **out)
{
    uint64_t bytes = 0;
    ditto_checkpoint *file = calloc(1, sizeof *file);
    if (file == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to open %s", DTI_SHOWN(path));
    (void)dti_path_shown(path, file->path);
    file->fd = memfd_create("ditto-checkpoint", MFD_CLOEXEC);
    ditto_status status = file->fd >= 0 ? DITTO_OK : fail_io("making a file in memory of", file->path);
    if (status == DITTO_OK)
        status = receive_file(team, file->fd, file->path, &bytes);
    if (status == DITTO_OK)
        status = dti_hdf5_list(file->fd, bytes, file->path, &file->contents);
    if (status == DITTO_OK)
        *out = file;
    else
        dti_checkpoint_close(file);
    return status;
}

/* -- both -- */

ditto_status dti_checkpoint_open_on_hosts(struct dti_team *team, const char *path, ditto_checkpoint **out)
{
    ditto_checkpoint *file = NULL;
    ditto_status status;
    if (dti_cross_has_hosts(team) && dti_cross_host(team) != 0) {
        status = receive_checkpoint(team, path, &file);
    } else {
        status = dti_checkpoint_open(path, &file);
        if (status == DITTO_OK && dti_cross_has_hosts(team))
            status = send_file(team, file);
    }
    status = dti_cross_agree(team, "the end of opening a checkpoint", status);
    if (status != DITTO_OK)
        dti_checkpoint_close(file);
    else
        *out = file;
    return status;
}

ditto_status dti_checkpoint_latest_on_hosts(struct dti_team *team, const char *folder, const char *prefix,
                                            struct dti_latest *out)
{
    struct dti_cross_request request = { .name = dti_this_thread()->function };
    const struct dti_gathered *all;
    size_t length = 0;
    memset(out, 0, sizeof *out);
    if (dti_cross_host(team) == 0) {
        DTI_TRY(dti_checkpoint_latest(folder, prefix, out->path, sizeof out->path, &length, &out->step));
        if (length >= sizeof out->path)
            return DTI_FAIL(DITTO_ERR_RANGE, "the path of the newest checkpoint has %zu bytes: at most %zu",
                            length, sizeof out->path - 1);
    }
    if (!dti_cross_has_hosts(team))
        return DITTO_OK;
    DTI_TRY(dti_cross_gather(team, &request, out, dti_cross_host(team) == 0 ? sizeof *out : 0, &all));
    memcpy(out, all[0].data, sizeof *out);
    return DITTO_OK;
}
