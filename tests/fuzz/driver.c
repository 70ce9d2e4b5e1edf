/* tests/fuzz/driver.c - runs a fuzz target on its seeds and on mutations of them. The target must accept some
 * seeds and some mutations, and must refuse some inputs. The environment variable DITTO_FUZZ_EXECUTIONS sets
 * the number of inputs, of which a slow target gets a part. The default is 100000. With --write-seeds FOLDER
 * the program writes the seeds for libFuzzer (tools/fuzz.sh). If an input crashes or hangs, the handler
 * `keep_input` writes it to the file fuzz-crash. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define MOST_BYTES 4096

static uint8_t input[MOST_BYTES];
static size_t input_bytes;

static const int deadly[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM };

static void keep_input(int signal)
{
    int file = open("fuzz-crash", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, input, input_bytes) < 0)
        _exit(3);
    _exit(128 + signal);
}

static void insert(size_t at, const void *bytes, size_t count)
{
    if (input_bytes + count > MOST_BYTES)
        return;
    memmove(input + at + count, input + at, input_bytes - at);
    memcpy(input + at, bytes, count);
    input_bytes += count;
}

static void mutate(uint64_t *random)
{
    size_t at = input_bytes > 0 ? test_random(random) % input_bytes : 0, count = 0, words = 0;
    uint64_t drawn = test_random(random);
    uint8_t byte = (uint8_t)drawn;
    /* In half of the cases the new byte is copied from the input, where it probably has a meaning. A bit that
     * is not in `byte` decides, so that all values occur in the other half. */
    if (drawn >> 8 & 1)
        byte = input_bytes > 0 ? input[test_random(random) % input_bytes] : '0';
    while (fuzz_words[words] != NULL)
        words++;
    switch (test_random(random) % 6) {
    case 0: /* another byte */
        if (input_bytes > 0)
            input[at] = byte;
        break;
    case 1: /* a flipped bit */
        if (input_bytes > 0)
            input[at] ^= (uint8_t)(1u << byte % 8);
        break;
    case 2: /* a part removed */
        count = input_bytes > 0 ? 1 + test_random(random) % (input_bytes - at) : 0;
        memmove(input + at, input + at + count, input_bytes - at - count);
        input_bytes -= count;
        break;
    case 3: /* a short part repeated at a random offset */
        count = input_bytes > 0 ? 1 + test_random(random) % (input_bytes - at) : 0;
        if (count < 64) {
            uint8_t copy[64];
            memcpy(copy, input + at, count);
            insert(test_random(random) % (input_bytes + 1), copy, count);
        }
        break;
    case 4: /* an inserted byte */
        insert(at, &byte, 1);
        break;
    default: { /* an inserted word */
        const char *word = fuzz_words[test_random(random) % words];
        insert(at, word, strlen(word));
    }
    }
}

static int write_seeds(const char *folder)
{
    for (int i = 0; fuzz_seeds[i] != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%d", folder, i);
        FILE *file = fopen(path, "wb");
        if (file == NULL || fwrite(fuzz_seeds[i], 1, strlen(fuzz_seeds[i]), file) != strlen(fuzz_seeds[i]) ||
            fclose(file) != 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write-seeds") == 0)
        return write_seeds(argv[2]);
    const char *requested = getenv("DITTO_FUZZ_EXECUTIONS");
    unsigned long executions = requested != NULL ? strtoul(requested, NULL, 10) : 100000, seeds = 0;
    unsigned long accepted_seeds = 0;
    uint64_t random = test_seed(1);
    executions /= EXECUTIONS_DIVISOR;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        signal(deadly[i], keep_input);
    while (fuzz_seeds[seeds] != NULL)
        seeds++;
    for (unsigned long i = 0; i < executions; i++) {
        const char *seed = fuzz_seeds[i % seeds];
        input_bytes = strlen(seed);
        memcpy(input, seed, input_bytes);
        for (uint64_t rounds = i < seeds ? 0 : 1 + test_random(&random) % 4; rounds > 0; rounds--)
            mutate(&random);
        if (i % 1024 == 0)
            alarm(300); /* if 1024 inputs take longer, one of them hangs, even on a busy machine */
        LLVMFuzzerTestOneInput(input, input_bytes);
        if (i < seeds)
            accepted_seeds = fuzz_accepted;
    }
    printf("%lu executions, %lu inputs accepted, %lu of them unchanged seeds\n", executions, fuzz_accepted,
           accepted_seeds);
    /* In few executions there may be no mutation that is accepted. */
    bool mutations = fuzz_accepted > accepted_seeds || executions < 20000;
    return accepted_seeds > 0 && mutations && fuzz_accepted < executions ? 0 : 1;
}
