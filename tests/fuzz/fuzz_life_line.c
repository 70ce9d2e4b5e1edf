/* tests/fuzz/fuzz_life_line.c - the life line of host 0, and of another host, hears any bytes. Its file is
 * part of this one, because what it reads is known to it alone. */
#include "cluster/life_line.c" /* NOLINT(bugprone-suspicious-include) */

#include "fuzz/fuzz.h"
#include "support/support.h"

/* The bytes of a struct news, each one greater than it is there. */
const char *const fuzz_seeds[] = {
    "\x01\x01\x01\x01",
    "\x02\x01\x01\x01",
    "\x05\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
    "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
    "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
    NULL,
};
const char *const fuzz_words[] = { "\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\xff\xff\xff\xff", NULL };
unsigned long fuzz_accepted;

enum { HOSTS = 3 };

/* The seeds of the driver are texts, which have no zeros. So each byte of a frame is one less than
 * that of the input, and the bytes behind the input are zeros. */
static void fill(unsigned char *out, size_t bytes, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = i < size ? (unsigned char)(data[i] - 1) : 0;
}

static bool hear_as(uint32_t host, const uint8_t *data, size_t size)
{
    char name[HOSTS][DTI_HOST_NAME_BYTES] = { "a", "b", "c" };
    unsigned char frames[4 * sizeof(struct news)];
    ditto_cluster cluster = { .wire = { .num_hosts = HOSTS, .host = host }, .name = name };
    int fd[HOSTS] = { -1, -1, -1 }, other[HOSTS] = { -1, -1, -1 };
    for (uint32_t h = 0; h < HOSTS; h++) {
        int pair[2];
        if (h == host || (host != 0 && h != 0))
            continue;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            abort();
        fd[h] = pair[0];
        other[h] = pair[1];
    }
    struct dti_life_line *l = allocate(&cluster, fd);
    if (l == NULL)
        abort();
    cluster.life_line = l;
    l->end = eventfd(0, EFD_CLOEXEC);
    fill(frames, sizeof frames, data, size);
    /* In pieces, as a network may deliver them. */
    for (size_t at = 0, piece = size % 97 + 1; at < sizeof frames && l->connection[0].fd >= 0; at += piece) {
        piece = piece < sizeof frames - at ? piece : sizeof frames - at;
        if (send(other[l->connection[0].host], frames + at, piece, MSG_NOSIGNAL) != (ssize_t)piece)
            break;
        listen_to(l, &l->connection[0]);
    }
    dti_life_line_await(&cluster, 1);
    uint32_t lost = atomic_load(&l->lost);
    if (lost > HOSTS)
        abort();
    if (lost != 0 && dti_life_line_fail(&cluster) != DITTO_ERR_LOST)
        abort();
    bool goes_on = lost == 0 && l->connection[0].fd >= 0;
    release(l);
    for (uint32_t h = 0; h < HOSTS; h++)
        if (other[h] >= 0)
            close(other[h]);
    return goes_on;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool both_go_on = hear_as(0, data, size);
    both_go_on &= hear_as(2, data, size);
    fuzz_accepted += both_go_on;
    return 0;
}
