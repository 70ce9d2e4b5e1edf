/* tests/support/support.h - functions that all tests share. They run code on replicas, record failures there
 * and report them on the main thread, write files, and ask the kernel about this process. */
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

/* The first failure of any replica. Replicas record failures and never assert, because a cmocka assertion
 * outside the main thread would end the whole program. */
struct report {
    _Atomic int claimed;
    char first_failure[700];
};
void report_failure(struct report *report, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For a replica's function. Records a failure and returns DITTO_ERR_USER if the condition is false. */
#define EXPECT(report, condition)                                                           \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            report_failure((report), __FILE__, __LINE__, "%s (last error: %s)", #condition, \
                           ditto_last_error()->message);                                    \
            return DITTO_ERR_USER;                                                          \
        }                                                                                   \
    } while (0)

/* Options of a kind (strategy, input, variable, ...) in which these fields are set. */
#define OPTIONS(kind, ...) \
    ((ditto_##kind##_options){ .struct_size = sizeof(ditto_##kind##_options), __VA_ARGS__ })

/* Creates a strategy of n replicas, which share PUs if there are fewer PUs than replicas. NULL options are
 * the defaults. If there are placement options, they decide the number of replicas, and n is not used. Fails
 * the test if the strategy cannot be created. */
ditto_strategy *make_strategy(uint32_t n, const ditto_strategy_options *options);
/* The same with `devices` logical devices for each replica. The devices take the machine's PUs in turn. */
ditto_strategy *make_wide_strategy(uint32_t n, uint32_t devices, const ditto_strategy_options *options);
/* The same as make_strategy(n, NULL), with two memory nodes on every machine. The first half of the replicas
 * has the node of replica 0, and the second half has the next number, so variables have two copies. */
ditto_strategy *make_on_two_nodes(uint32_t n);
/* Runs the function on all replicas. Fails the test with the first reported failure, or with the run's
 * error. */
void run_all(ditto_strategy *strategy, ditto_replica_fn function, void *argument, struct report *report);
/* The same on a strategy that make_strategy(n, options) creates and that is destroyed afterwards. */
void run_once(uint32_t n, const ditto_strategy_options *options, ditto_replica_fn function, void *argument,
              struct report *report);

/* Returns dtype, rank and shape of a variable. */
ditto_tensor spec_of(const ditto_variable *variable);
ditto_strategy_properties properties_of_strategy(const ditto_strategy *strategy);

/* Returns ditto_variable_properties.generation, or 0 if it cannot be read. Any thread may call it. */
uint64_t generation_of(const ditto_variable *variable);

/* Sets *data to the address of a replica's component. Any thread outside of runs may call it. */
ditto_status component_of(ditto_variable *variable, uint32_t replica, const void **data);

/* Calls ditto_all_reduce_slices with DITTO_SLICES_DENSE. NULL options are the defaults. */
ditto_status add_slices_to_dense(ditto_replica *self, const ditto_slices *src, void *dense, size_t dense_rows,
                                 ditto_op op, const ditto_reduce_options *options);

/* Returns the number of elements of a tensor. */
static inline size_t elements_in(const ditto_tensor *tensor)
{
    return ditto_tensor_bytes(tensor) / ditto_dtype_bytes(tensor->dtype);
}

/* Returns the context of the calling thread. */
ditto_context context_here(void);

/* Returns the variable with the number of the optimizer's steps. Any thread may call it. */
ditto_variable *iterations_of(const ditto_optimizer *optimizer);

/* Returns what ditto_value_info says, or zeros if it fails. Any thread may call it. */
ditto_value_properties properties_of_value(const ditto_value *value);

/* Return what ditto_variable_info and ditto_variable_shard say. They fail the test if these fail. */
ditto_variable_properties properties_of(const ditto_variable *variable);
ditto_shard_info shard_of(const ditto_variable *variable, size_t shard);

/* The numbers of replicas that features are tried with. They are 1, 2, 3, 8, and, without DITTO_TEST_SHORT,
 * 64; under ThreadSanitizer 1, 2, 5, and 64. */
extern const uint32_t replica_counts[];
extern size_t replica_counts_length;
/* Returns the largest of them. */
uint32_t most_replicas(void);

#define assert_status(call, expected) assert_status_((call), (expected), #call, __FILE__, __LINE__)
void assert_status_(ditto_status found, ditto_status expected, const char *call, const char *file, int line);
#define assert_ok(call) assert_status((call), DITTO_OK)
/* Asserts that the message of the last error contains `text`. */
#define assert_message(text) assert_message_((text), __FILE__, __LINE__)
void assert_message_(const char *text, const char *file, int line);

/* Returns the seed of a test's random numbers and prints it. It is DITTO_TEST_SEED if that is set, and
 * `otherwise` if not. */
uint64_t test_seed(uint64_t otherwise);

/* Writes the name of a file or folder for mkstemp or mkdtemp, and returns it. It is in the folder that TMPDIR
 * names, or in /tmp if that one has a long name. */
enum { SCRATCH_FOLDER = 24, SCRATCH_NAME = 64 };
char *scratch_name(char name[SCRATCH_NAME], const char *what);

/* Returns the next random number. It depends only on `state`, which the seed initializes. */
uint64_t test_random(uint64_t *state);

/* DITTO_TEST_SHORT is set, for example under sanitizers and on emulated machines. */
bool test_is_short(void);

/* Returns how many times a test tries something. It is about a third of `full`, with DITTO_TEST_SHORT a
 * fifth, and then under ThreadSanitizer a tenth. It is `full` if DITTO_TEST_LONG is set. */
int test_trials(int full);

/* 1 if AddressSanitizer or ThreadSanitizer is compiled in. Its shadow memory and its threads exceed the
 * limits that some tests set. Its malloc does not work in the child of a process whose other threads use
 * it. */
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

/* For the body of a child process, where cmocka does not work. Prints and returns 1 if the condition is
 * false. */
#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                    ditto_last_error()->message);                                           \
            return 1;                                                                       \
        }                                                                                   \
    } while (0)
/* Runs `body` in a child process. Returns its exit status, 128 + signal if a signal ended it, or 124 if it
 * was still running after `seconds`. Tests use it for changes that a process cannot undo (limits, seccomp,
 * another user). */
int in_child(int (*body)(void *argument), void *argument, unsigned seconds);

/* Writes the text, or the bytes, to a new temporary file and returns its malloced name. */
char *temporary_file(const char *text);
char *temporary_bytes(const char *bytes, size_t length);
/* Removes the file and frees the name. */
void forget_file(char *name);

/* A temporary folder of this test program. make_own_folder and remove_own_folder are the group setup and
 * teardown of cmocka_run_group_tests. The teardown removes the files in the folder, but it fails if files
 * remain whose names begin with a dot. */
extern char own_folder[SCRATCH_NAME];
int make_own_folder(void **state);
int remove_own_folder(void **state);
/* Returns the path of a file in own_folder. The text is in one of eight static buffers, which are used in
 * turn. */
const char *own_path(const char *name);

/* Reads a whole file into malloced memory and returns its size in bytes. Fails the test if it cannot
 * be read. */
size_t read_file(const char *path, unsigned char **out);

/* Writes `text` to root/path and creates the folders on the way. Tests build imitations of /proc and /sys
 * with it. */
void put_file(const char *root, const char *path, const char *text);

/* Count, or remove, the files of a folder whose names do not begin with a dot. */
int count_files(const char *folder);
void empty_folder(const char *folder);

/* From now on malloc and free overwrite the memory, so that a read after free does not find the old contents.
 * With a sanitizer this does nothing, because AddressSanitizer finds such a read itself. */
void spoil_freed_memory(void);

void sleep_ms(long ms);

/* Waits until the kernel reports that the thread of this process sleeps. While the id is 0, it is not known
 * yet. Returns false if the thread has not slept within a minute. */
bool await_sleep(_Atomic int *thread_id);

/* Calls in which every replica takes part, for tests of the contexts in which they are refused: a barrier, a
 * merge_call whose function does nothing, and the creation of a variable. */
ditto_status call_barrier(ditto_replica *self);
ditto_status call_merge(ditto_replica *self);
ditto_status call_create(ditto_replica *self);

/* Counts the threads of this process. A thread that is exiting is not counted, because pthread_join may
 * return while /proc still lists it. */
long count_threads(void);

/* Numbers of this process from /proc: mappings, KiB of resident memory, and bytes of address space. */
long count_mappings(void);
long resident_kib(void);
size_t mapped_bytes(void);

/* From now on these system calls fail with EPERM on this thread, and on the threads and processes that it
 * creates later, as under the seccomp profile of a container. This cannot be undone. Returns false if `count`
 * is above 15 or the kernel does not allow it. */
bool refuse_system_calls(const uint32_t *numbers, size_t count);
/* The same with another error number. */
bool refuse_system_calls_with(const uint32_t *numbers, size_t count, int error_number);

/* From now on was_freed tells whether free was called with this address. Only the latest address is watched.
 * The linker option --wrap=free replaces free in the test program and in the libraries that it links
 * statically. */
void watch_free(const void *memory);
/* True if the watched address has been freed. */
bool was_freed(void);

#endif
