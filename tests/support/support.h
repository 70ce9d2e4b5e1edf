/* tests/support/support.h - what tests share: running on replicas, recording what went wrong there, and reporting it here. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ditto.h>

/* Replicas record, they never assert: a cmocka assertion off the main thread would end the whole program. The first
 * failure of any replica is kept. */
struct report {
    _Atomic int claimed;
    char first_failure[700];
};
void report_failure(struct report *report, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* In a replica's function: records and returns. */
#define EXPECT(report, condition)                                                           \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            report_failure((report), __FILE__, __LINE__, "%s (last error: %s)", #condition, \
                           ditto_last_error()->message);                                    \
            return DITTO_ERR_USER;                                                          \
        }                                                                                   \
    } while (0)

/* A strategy with n replicas, sharing PUs as they must; NULL options: defaults. Fails the test if it can't be made. */
ditto_strategy *make_strategy(uint32_t n, const ditto_strategy_options *options);
/* The same with `devices` logical devices each; they take the machine's PUs in turn. */
ditto_strategy *make_wide_strategy(uint32_t n, uint32_t devices, const ditto_strategy_options *options);
/* Runs and fails the test with the replica's own report or the run's error. */
void run_all(ditto_strategy *strategy, ditto_replica_fn function, void *argument, struct report *report);

/* The numbers of replicas that every feature is tried with: 1, 2, 3, 8, and, without DITTO_TEST_SHORT, 64. */
extern const uint32_t replica_counts[];
extern size_t replica_counts_length;

#define assert_status(call, expected) assert_status_((call), (expected), #call, __FILE__, __LINE__)
void assert_status_(ditto_status found, ditto_status expected, const char *call, const char *file, int line);
#define assert_ok(call) assert_status((call), DITTO_OK)
/* The last error's message contains `text`. */
#define assert_message(text) assert_message_((text), __FILE__, __LINE__)
void assert_message_(const char *text, const char *file, int line);

/* Deterministic random numbers; the seed comes from DITTO_TEST_SEED, or is the given one. */
uint64_t test_seed(uint64_t otherwise);
uint64_t test_random(uint64_t *state);

/* How often something is tried: `full` times, a fifth of it where DITTO_TEST_SHORT is set (sanitizers make it slow). */
int test_trials(int full);

/* Whether a sanitizer is at work: its shadow memory and threads do not fit under limits, and its malloc is not whole in the child of a
 * process whose other threads use it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Runs `body` in a child process and returns its exit status (128 + signal when it was killed), 124 after `seconds`. What a
 * process can't take back (limits, seccomp, another user) is tried there. */
/* In a child process there is no cmocka: REQUIRE prints and returns 1. */
#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                    ditto_last_error()->message);                                           \
            return 1;                                                                       \
        }                                                                                   \
    } while (0)
int in_child(int (*body)(void *argument), void *argument, unsigned seconds);

/* A new file under a temporary directory with this text, or these bytes; its name is malloced. */
char *temporary_file(const char *text);
char *temporary_bytes(const char *bytes, size_t length);
void forget_file(char *name); /* removes the file, frees the name */

/* A folder of the test program's own, for cmocka_run_group_tests; it is empty again, but for files that begin with a dot, when it is
 * removed. */
extern char own_folder[];
int make_own_folder(void **state);
int remove_own_folder(void **state);
const char *own_path(const char *name); /* of a file in it; one of eight, in turn */

/* The bytes of a file, malloced, and how many they are. Fails the test if it can't be read. */
size_t read_file(const char *path, unsigned char **out);

/* Writes `text` to root/path, with the folders that it needs: made-up proc and sys trees. */
void put_file(const char *root, const char *path, const char *text);

/* Files of a folder, but for those that begin with a dot: how many; removes them. */
int count_files(const char *folder);
void empty_folder(const char *folder);

/* From now on memory that is freed is filled at once, so that it is not taken for what it was. */
void spoil_freed_memory(void);

void sleep_ms(long ms);

/* Waits until the kernel says that this process's thread sleeps; an id of 0 is not known yet. False after ten
 * seconds. */
bool await_sleep(_Atomic int *thread_id);

/* Calls in which every replica takes part, for tests of where they are refused: a barrier, a merge function that
 * does nothing, and the creation of a variable. */
ditto_status call_barrier(ditto_replica *self);
ditto_status call_merge(ditto_replica *self);
ditto_status call_create(ditto_replica *self);

/* Numbers of this process from /proc: how many threads, mappings, KiB of resident memory, and bytes of address
 * space it has. */
long count_threads(void);
long count_mappings(void);
long resident_kib(void);
size_t mapped_bytes(void);

/* A kernel that refuses: what seccomp profiles of containers do to a process. */

/* From now on these system calls give EPERM to this process and to what it starts, for good. False: not possible here. */
bool refuse_system_calls(const uint32_t *numbers, size_t count);
/* The same with another error number. */
bool refuse_system_calls_with(const uint32_t *numbers, size_t count, int error_number);

/* Whether something was given back to the allocator. The linker puts this free before the C
 * library's, in the test program and in what it links statically. */

/* From now on this address is watched, and no other. The handle itself: the first free of it counts. */
void watch_free(const void *memory);
bool was_freed(void);

#endif
