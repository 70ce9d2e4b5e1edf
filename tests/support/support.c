/* tests/support/support.c - see support.h. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "cluster/header.h"
#include "replicas/team/team_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void report_failure(struct report *report, const char *file, int line, const char *format, ...)
{
    char text[600];
    va_list arguments;
    if (atomic_exchange(&report->claimed, 1) != 0)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(report->first_failure, sizeof report->first_failure, "%s:%d: %s", file, line, text);
}

ditto_strategy *make_strategy(uint32_t n, const ditto_strategy_options *options)
{
    ditto_strategy_options own_options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    if (options != NULL)
        own_options = *options;
    if (own_options.placement_options == NULL)
        own_options.num_replicas = n;
    spread_over_hosts(n, &own_options);
    if (ditto_strategy_create(DITTO_MIRRORED, &own_options, &strategy) != DITTO_OK)
        fail_msg("no strategy of %u replicas: %s", n, ditto_last_error()->message);
    return strategy;
}

ditto_strategy *make_on_two_nodes(uint32_t n)
{
    ditto_strategy *s = make_strategy(n, NULL);
    struct dti_team *team = dti_team_of(s);
    n = properties_of_strategy(s).num_local_replicas;
    for (uint32_t i = 1; i < n; i++)
        team->replica[i].pu.memory_node = team->replica[0].pu.memory_node + (i >= (n + 1) / 2);
    return s;
}

ditto_strategy_properties properties_of_strategy(const ditto_strategy *strategy)
{
    ditto_strategy_properties found = DITTO_STRATEGY_PROPERTIES_INIT;
    if (ditto_strategy_info(strategy, &found) != DITTO_OK)
        fail_msg("%s", ditto_last_error()->message);
    return found;
}

ditto_tensor spec_of(const ditto_variable *variable)
{
    ditto_tensor spec = { 0 };
    if (ditto_variable_spec(variable, &spec) != DITTO_OK)
        fail_msg("no spec: %s", ditto_last_error()->message);
    return spec;
}

ditto_status add_slices_to_dense(ditto_replica *self, const ditto_slices *src, void *dense, size_t dense_rows,
                                 ditto_op op, const ditto_reduce_options *options)
{
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    ditto_slices dst = { .values = dense, .rows = dense_rows };
    if (options != NULL)
        o = *options;
    o.flags = DITTO_SLICES_DENSE;
    return ditto_all_reduce_slices(self, src, &dst, op, &o);
}

uint64_t generation_of(const ditto_variable *variable)
{
    ditto_variable_properties properties = DITTO_VARIABLE_PROPERTIES_INIT;
    (void)!ditto_variable_info(variable, &properties);
    return properties.generation;
}

ditto_status component_of(ditto_variable *variable, uint32_t replica, const void **data)
{
    ditto_value *value;
    ditto_tensor component;
    DITTO_TRY(ditto_variable_value(variable, &value));
    ditto_status status = ditto_value_component(value, replica, &component);
    if (status == DITTO_OK)
        *data = component.data;
    DITTO_TRY(ditto_value_destroy(value));
    return status;
}

ditto_context context_here(void)
{
    ditto_context context = DITTO_CONTEXT_INIT;
    (void)!ditto_get_context(&context);
    return context;
}

ditto_variable *iterations_of(const ditto_optimizer *optimizer)
{
    ditto_optimizer_properties properties = DITTO_OPTIMIZER_PROPERTIES_INIT;
    (void)!ditto_optimizer_info(optimizer, &properties);
    return properties.iterations;
}

ditto_value_properties properties_of_value(const ditto_value *value)
{
    ditto_value_properties properties = DITTO_VALUE_PROPERTIES_INIT;
    (void)!ditto_value_info(value, &properties);
    return properties;
}

ditto_variable_properties properties_of(const ditto_variable *variable)
{
    ditto_variable_properties properties = DITTO_VARIABLE_PROPERTIES_INIT;
    if (ditto_variable_info(variable, &properties) != DITTO_OK)
        fail_msg("no properties: %s", ditto_last_error()->message);
    return properties;
}

ditto_shard_info shard_of(const ditto_variable *variable, size_t shard)
{
    ditto_shard_info info = DITTO_SHARD_INFO_INIT;
    if (ditto_variable_shard(variable, shard, &info) != DITTO_OK)
        fail_msg("no shard %zu: %s", shard, ditto_last_error()->message);
    return info;
}

ditto_strategy *make_wide_strategy(uint32_t n, uint32_t devices, const ditto_strategy_options *options)
{
    ditto_strategy_options own_options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_topology *here;
    ditto_placement *placement;
    ditto_strategy *strategy;
    uint32_t *pus = calloc((size_t)n * devices, sizeof *pus), *sizes = calloc(n, sizeof *sizes);
    if (options != NULL)
        own_options = *options;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    for (uint32_t i = 0; i < n * devices; i++) {
        ditto_pu pu;
        assert_ok(ditto_topology_pu(here, i % counts.pus, &pu));
        pus[i] = pu.number;
        sizes[i / devices] = devices;
    }
    ditto_placement_options o = OPTIONS(placement, .pus = pus, .num_pus = n * devices, .set_sizes = sizes,
                                        .num_replicas = n, .flags = DITTO_PLACEMENT_SHARE);
    assert_ok(ditto_placement_create(here, &o, &placement));
    own_options.placement = placement;
    if (ditto_strategy_create(DITTO_MIRRORED, &own_options, &strategy) != DITTO_OK)
        fail_msg("no strategy of %u replicas of %u devices: %s", n, devices, ditto_last_error()->message);
    assert_ok(ditto_placement_destroy(placement));
    assert_ok(ditto_topology_destroy(here));
    free(pus);
    free(sizes);
    return strategy;
}

void run_all(ditto_strategy *strategy, ditto_replica_fn function, void *argument, struct report *report)
{
    ditto_status status = ditto_strategy_run(strategy, function, argument);
    if (report->first_failure[0] != '\0')
        fail_msg("%s", report->first_failure);
    if (status != DITTO_OK)
        fail_msg("run: %s: %s", ditto_status_name(status), ditto_last_error()->message);
}

void run_once(uint32_t n, const ditto_strategy_options *options, ditto_replica_fn function, void *argument,
              struct report *report)
{
    ditto_strategy *strategy = make_strategy(n, options);
    run_all(strategy, function, argument, report);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Under ThreadSanitizer each replica takes many times longer, and 5 on two cores meet in as many orders. */
#ifdef __SANITIZE_THREAD__
const uint32_t replica_counts[] = { 1, 2, 5, 64 };
#else
const uint32_t replica_counts[] = { 1, 2, 3, 8, 64 };
#endif
size_t replica_counts_length = sizeof replica_counts / sizeof replica_counts[0];

/* Where tests are slow, 64 replicas on two cores take most of the time, and find nothing that 8 replicas do
 * not. */
__attribute__((constructor)) static void shorten_counts(void)
{
    if (test_is_short())
        replica_counts_length--;
}

/* Headers go in steps on more than so many hosts. */
__attribute__((constructor)) static void set_direct_hosts(void)
{
    const char *direct = getenv("DITTO_TEST_DIRECT_HOSTS");
    if (direct != NULL)
        dti_most_direct_hosts = (uint32_t)atoi(direct);
}

void assert_status_(ditto_status found, ditto_status expected, const char *call, const char *file, int line)
{
    if (found == expected)
        return;
    print_error("%s gave %s, expected %s; the last error is: %s\n", call, ditto_status_name(found),
                ditto_status_name(expected), ditto_last_error()->message);
    _fail(file, line);
}

void assert_message_(const char *text, const char *file, int line)
{
    if (strstr(ditto_last_error()->message, text) != NULL)
        return;
    print_error("the message is \"%s\", expected \"%s\" in it\n", ditto_last_error()->message, text);
    _fail(file, line);
}

uint64_t test_seed(uint64_t otherwise)
{
    const char *text = getenv("DITTO_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : otherwise;
    print_message("seed %llu (DITTO_TEST_SEED sets another)\n", (unsigned long long)seed);
    return seed;
}

uint32_t most_replicas(void)
{
    return replica_counts[replica_counts_length - 1];
}

bool test_is_short(void)
{
    return getenv("DITTO_TEST_SHORT") != NULL;
}

int test_trials(int full)
{
#ifdef __SANITIZE_THREAD__
    enum { FEWER = 10 };
#else
    enum { FEWER = 5 };
#endif
    if (test_is_short())
        return full / FEWER + 1;
    return getenv("DITTO_TEST_LONG") != NULL ? full : full / 3 + 1;
}

uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Signals that cmocka catches in a test. In a child process it would continue with the next test. */
static const int deadly[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS };

int in_child(int (*body)(void *argument), void *argument, unsigned seconds)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
            signal(deadly[i], SIG_DFL);
        int code = body(argument);
        fflush(NULL);
        _exit(code);
    }
    for (unsigned long waited = 0;; waited++) {
        int status;
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (waited >= seconds * 100ul) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return 124;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
}

char *scratch_name(char name[SCRATCH_NAME], const char *what)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] != '/' || strlen(folder) > SCRATCH_FOLDER)
        folder = "/tmp";
    snprintf(name, SCRATCH_NAME, "%s/ditto-%s-XXXXXX", folder, what);
    return name;
}

char *temporary_file(const char *text)
{
    char *name = scratch_name(malloc(SCRATCH_NAME), "test");
    int file = mkstemp(name);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    return name;
}

char *temporary_bytes(const char *bytes, size_t length)
{
    char *name = temporary_file("");
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return name;
}

void forget_file(char *name)
{
    remove(name);
    free(name);
}

char own_folder[SCRATCH_NAME];

int make_own_folder(void **state)
{
    return mkdtemp(scratch_name(own_folder, "test")) != NULL && chmod(own_folder, 0755) == 0 ? 0 : -1;
}

int remove_own_folder(void **state)
{
    empty_folder(own_folder);
    return rmdir(own_folder);
}

const char *own_path(const char *name)
{
    static char paths[8][200];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", own_folder, name);
    return path;
}

void put_file(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

int count_files(const char *folder)
{
    int files = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        files += e->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    return files;
}

void empty_folder(const char *folder)
{
    char path[600];
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            unlink(path);
        }
    if (dir != NULL)
        closedir(dir);
}

void spoil_freed_memory(void)
{
    if (!SANITIZED)
        mallopt(M_PERTURB, 0x5a);
}

void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

bool await_sleep(_Atomic int *thread_id)
{
    for (int i = 0; i < 60000; i++, sleep_ms(1)) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(thread_id));
        FILE *file = atomic_load(thread_id) != 0 ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        const char *state = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
        fclose(file);
        if (state != NULL && state[2] == 'S')
            return true;
    }
    return false;
}

ditto_status call_barrier(ditto_replica *self)
{
    return ditto_barrier(self, NULL);
}

static ditto_status merge_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *unused, ditto_value **result)
{
    return DITTO_OK;
}

ditto_status call_merge(ditto_replica *self)
{
    return ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL);
}

ditto_status call_create(ditto_replica *self)
{
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    ditto_variable *variable;
    return ditto_create_variable(self, &initial, NULL, &variable);
}

/* The kernel sets this flag before it wakes pthread_join, and removes the thread from /proc only later. */
#define PF_EXITING 4u

/* Returns true if the thread has begun to exit, or does not exist any more. */
static bool is_exiting(const char *thread_id)
{
    char path[64], text[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return true;
    text[length] = '\0';
    /* The name of the thread may contain any character. Its state and six numbers follow. */
    const char *behind_name = strrchr(text, ')');
    return behind_name != NULL && sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           (flags & PF_EXITING) != 0;
}

long count_threads(void)
{
    long count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.' && !is_exiting(entry->d_name);
    closedir(tasks);
    return count;
}

long count_mappings(void)
{
    long count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; (c = fgetc(maps)) != EOF;)
        count += c == '\n';
    fclose(maps);
    return count;
}

long resident_kib(void)
{
    char line[128];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

size_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t read_file(const char *path, unsigned char **out)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_int_equal(fstat(fd, &st), 0);
    *out = malloc((size_t)st.st_size);
    assert_int_equal(read(fd, *out, (size_t)st.st_size), st.st_size);
    close(fd);
    return (size_t)st.st_size;
}
