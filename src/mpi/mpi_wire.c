/* src/mpi/mpi_wire.c - a wire over MPI (ditto/mpi.h). The libraries libditto-openmpi and libditto-mpich are
 * this file, compiled with the compiler of each MPI. It is installed too, so that it can be compiled for
 * others. Therefore it includes public headers only.
 *
 * Channels are the tags of one communicator. MPI guarantees tags up to 32767, and keeps the order of messages
 * with equal source and tag. */
#include <ditto/api.h>
#include <ditto/mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 60000u
#define CANCEL_TRIES       16
#define END_SECONDS        5

/* From libditto, which has the same version: writes the error record of the calling thread (src/base/errors).
 * */
void dti_fail(ditto_status status, int error_number, const char *format, ...) DITTO_PRINTF(3, 4);
#define FAIL(status, ...) (dti_fail((status), 0, __VA_ARGS__), (status))

struct wire {
    MPI_Comm comm;
    int count, capacity; /* of the requests that have not finished */
    MPI_Request *request;
    uint64_t *ticket;
    bool *receives;
    int *done; /* for MPI_Testsome, and the next one */
    MPI_Status *status;

    /* Events that `progress` has not returned yet. */
    ditto_wire_event *event;
    size_t events, first_event, event_capacity;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    struct wire *next_kept;
};

static ditto_status fail_mpi(const char *function, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return FAIL(DITTO_ERR_SYSTEM, "%s failed: %s", function, text);
}

/* -- requests -- */

/* Returns the array with a new length. Without memory, returns it as it was and clears *ok. */
static void *lengthen(void *array, size_t bytes, bool *ok)
{
    void *longer = realloc(array, bytes);
    if (longer != NULL)
        return longer;
    *ok = false;
    return array;
}

/* Makes room for one more request. */
static ditto_status grow(struct wire *w)
{
    if (w->count < w->capacity)
        return DITTO_OK;
    int capacity = w->capacity != 0 ? 2 * w->capacity : 64;
    size_t n = (size_t)capacity;
    bool ok = true;
    w->request = lengthen(w->request, n * sizeof(MPI_Request), &ok);
    w->ticket = lengthen(w->ticket, n * sizeof *w->ticket, &ok);
    w->receives = lengthen(w->receives, n * sizeof *w->receives, &ok);
    w->done = lengthen(w->done, n * sizeof *w->done, &ok);
    w->status = lengthen(w->status, n * sizeof *w->status, &ok);
    if (!ok)
        return FAIL(DITTO_ERR_NO_MEMORY, "no memory for %d messages", capacity);
    w->capacity = capacity;
    return DITTO_OK;
}

static ditto_status add(struct wire *w, MPI_Request request, uint64_t ticket, bool receives)
{
    w->request[w->count] = request;
    w->ticket[w->count] = ticket;
    w->receives[w->count] = receives;
    w->count++;
    return DITTO_OK;
}

static void forget(struct wire *w, int i)
{
    w->count--;
    w->request[i] = w->request[w->count];
    w->ticket[i] = w->ticket[w->count];
    w->receives[i] = w->receives[w->count];
}

static ditto_status check_usable(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized)
        return FAIL(DITTO_ERR_INVALID,
                    "MPI was finalized: destroy the strategy and the cluster before MPI_Finalize");
    return DITTO_OK;
}

static ditto_status wire_send(void *user, uint32_t to, uint32_t channel, const void *data, size_t bytes,
                              uint64_t ticket)
{
    struct wire *w = user;
    MPI_Request request;
    DITTO_TRY(check_usable());
    DITTO_TRY(grow(w));
    int code = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, (int)channel, w->comm, &request);
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): MPI_Testsome waits for it */
    return code == MPI_SUCCESS ? add(w, request, ticket, false) : fail_mpi("MPI_Isend", code);
}

static ditto_status wire_receive(void *user, uint32_t from, uint32_t channel, void *data, size_t capacity,
                                 uint64_t ticket)
{
    struct wire *w = user;
    MPI_Request request;
    DITTO_TRY(check_usable());
    DITTO_TRY(grow(w));
    int code = MPI_Irecv(data, (int)capacity, MPI_BYTE, (int)from, (int)channel, w->comm, &request);
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): MPI_Testsome waits for it */
    return code == MPI_SUCCESS ? add(w, request, ticket, true) : fail_mpi("MPI_Irecv", code);
}

/* -- events -- */

static ditto_status add_event(struct wire *w, ditto_wire_event event)
{
    if (w->first_event == w->events)
        w->first_event = w->events = 0;
    if (w->events == w->event_capacity) {
        size_t capacity = w->event_capacity != 0 ? 2 * w->event_capacity : 64;
        ditto_wire_event *larger = realloc(w->event, capacity * sizeof *larger);
        if (larger == NULL)
            return FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu finished messages", capacity);
        w->event = larger;
        w->event_capacity = capacity;
    }
    w->event[w->events++] = event;
    return DITTO_OK;
}

/* Makes the event of request i, which has finished with `status` and `code`. */
static ditto_status finish(struct wire *w, int i, MPI_Status *status, int code)
{
    ditto_wire_event event = { .ticket = w->ticket[i], .status = DITTO_OK };
    int bytes = 0, cancelled = 0, class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class == MPI_ERR_TRUNCATE)
        event.status = FAIL(DITTO_ERR_RANGE, "a message was longer than the buffer that was given for it");
    else if (code != MPI_SUCCESS)
        event.status = fail_mpi("MPI_Testsome", code);
    else if (w->receives[i])
        MPI_Test_cancelled(status, &cancelled);
    if (w->receives[i] && code == MPI_SUCCESS && !cancelled)
        MPI_Get_count(status, MPI_BYTE, &bytes);
    event.bytes = (size_t)bytes;
    return add_event(w, event);
}

static ditto_status test(struct wire *w)
{
    int finished = 0;
    int code = MPI_Testsome(w->count, w->request, &finished, w->done, w->status);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return fail_mpi("MPI_Testsome", code);
    for (int k = 0; finished != MPI_UNDEFINED && k < finished; k++)
        DITTO_TRY(finish(w, w->done[k], &w->status[k],
                         code == MPI_ERR_IN_STATUS ? w->status[k].MPI_ERROR : MPI_SUCCESS));
    /* MPI has set the finished requests to MPI_REQUEST_NULL. */
    for (int i = w->count - 1; finished > 0 && i >= 0; i--)
        if (w->request[i] == MPI_REQUEST_NULL)
            forget(w, i);
    return DITTO_OK;
}

static ditto_status wire_progress(void *user, ditto_wire_event *events, size_t capacity, size_t *count)
{
    struct wire *w = user;
    *count = 0;
    if (w->count != 0) {
        DITTO_TRY(check_usable());
        DITTO_TRY(test(w));
    }
    while (*count < capacity && w->first_event < w->events)
        events[(*count)++] = w->event[w->first_event++];
    return DITTO_OK;
}

static ditto_status wire_cancel(void *user, uint64_t ticket)
{
    struct wire *w = user;
    MPI_Status status;
    int i = 0, done = 0, cancelled = 0, finalized;
    while (i < w->count && w->ticket[i] != ticket)
        i++;
    MPI_Finalized(&finalized);
    if (i == w->count || finalized)
        return DITTO_PENDING;
    /* A receive that was cancelled finishes soon without a message, unless a message has begun to arrive.
     * That one may take its time, or never come, so MPI_Wait must not wait for it. If neither has happened
     * yet, `progress` returns the event later. */
    int code = MPI_Cancel(&w->request[i]);
    for (int tries = 0; code == MPI_SUCCESS && !done && tries < CANCEL_TRIES; tries++)
        code = MPI_Test(&w->request[i], &done, &status);
    if (code != MPI_SUCCESS)
        return fail_mpi("MPI_Cancel", code);
    if (!done)
        return DITTO_PENDING;
    MPI_Test_cancelled(&status, &cancelled);
    code = cancelled ? DITTO_OK : finish(w, i, &status, MPI_SUCCESS);
    forget(w, i);
    return cancelled ? DITTO_OK : code == DITTO_OK ? DITTO_PENDING : (ditto_status)code;
}

/* Wires that MPI may still write to. The list keeps them reachable for leak checkers. Only the thread that
 * may call MPI changes it. */
static struct wire *kept;

/* Clusters that have not been destroyed. */
static int wires;

static void release(struct wire *w)
{
    free(w->request);
    free(w->ticket);
    free(w->receives);
    free(w->done);
    free(w->status);
    free(w->event);
    free(w);
}

static void wire_destroy(void *user)
{
    struct wire *w = user;
    int finalized;
    MPI_Finalized(&finalized);
    if (!finalized)
        MPI_Comm_free(&w->comm);
    wires--;
    release(w);
}

/* -- the MPI of the program -- */

/* Enough for each of the two MPIs, whose MPI_MAX_LIBRARY_VERSION_STRING are 256 and 8192. */
#define LONGEST_NAME 8192

/* Other MPIs, such as Intel's, have the binary interface of MPICH. */
#ifdef OPEN_MPI
#define IS_OPEN_MPI     true
#define OWN_LAUNCHER    "mpirun.openmpi"
#define OTHER_MPI       "an MPI other than Open MPI"
#define OTHER_COMPANION "ditto-mpich"
#else
#define IS_OPEN_MPI     false
#define OWN_LAUNCHER    "mpiexec.mpich"
#define OTHER_MPI       "Open MPI"
#define OTHER_COMPANION "ditto-openmpi"
#endif

/* Returns true if the program links another MPI than this file was compiled for. The loader then binds the
 * MPI functions that are called here to those of the program, and they would take the handles of this MPI for
 * their own. MPI_Get_library_version takes no handle, and may be called at any time. */
static bool has_other_mpi(void)
{
    char name[LONGEST_NAME] = "";
    int length = 0;
    MPI_Get_library_version(name, &length);
    return (strncmp(name, "Open MPI", strlen("Open MPI")) == 0) != IS_OPEN_MPI;
}

/* -- making a cluster -- */

/* Launchers tell each process how many they have started. If this MPI knows of one process only, it was not
 * its own launcher. */
static ditto_status check_launcher(const char *library)
{
    static const char *const variables[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                             "SLURM_STEP_NUM_TASKS" };
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; size == 1 && i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = getenv(variables[i]);
        long started = text != NULL ? strtol(text, NULL, 10) : 1;
        if (started > 1)
            return FAIL(
                DITTO_ERR_INVALID,
                "a launcher has started %ld processes (%s), but %s knows of one: start the program with the "
                "launcher of this MPI (" OWN_LAUNCHER " in Debian), or build it for the other MPI",
                started, variables[i], library);
    }
    return DITTO_OK;
}

static ditto_status check_thread(int *level)
{
    int initialized, finalized, is_main;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return FAIL(DITTO_ERR_INVALID, "MPI %s: call MPI_Init_thread with MPI_THREAD_FUNNELED first",
                    finalized ? "was finalized" : "is not initialized");
    MPI_Query_thread(level);
    if (*level < MPI_THREAD_FUNNELED)
        return FAIL(DITTO_ERR_INVALID,
                    "MPI was initialized for programs without threads: call MPI_Init_thread with "
                    "MPI_THREAD_FUNNELED instead of MPI_Init");
    MPI_Is_thread_main(&is_main);
    if (*level < MPI_THREAD_SERIALIZED && !is_main)
        return FAIL(DITTO_ERR_CONTEXT,
                    "called on another thread than the one that has initialized MPI, which alone "
                    "may call it (MPI_THREAD_FUNNELED)");
    return DITTO_OK;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Duplicates the communicator of a wire, under a time limit. MPI_Comm_dup would have none. Sets *pending if
 * MPI may still write to the wire. */
static ditto_status duplicate(MPI_Comm comm, uint32_t timeout_ms, struct wire *w, bool *pending)
{
    static const struct timespec nap = { 0, 100000 };
    double waited = 0, looked = seconds();
    MPI_Request request;
    int done = 0, code = MPI_Comm_idup(comm, &w->comm, &request);
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        *pending = code == MPI_SUCCESS && !done;
        /* A look that comes late shows that this process could not run. That time does not count. */
        double now = seconds(), since = now - looked;
        waited += since < 1 ? since : 0;
        looked = now;
        if (!done && timeout_ms != DITTO_FOREVER && waited > timeout_ms / 1e3)
            return FAIL(DITTO_ERR_TIMED_OUT,
                        "waited %u ms for the cluster: not all ranks of the communicator have called "
                        "ditto_mpi_cluster",
                        timeout_ms);
        if (!done && waited > 1e-3)
            nanosleep(&nap, NULL);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    return code == MPI_SUCCESS ? DITTO_OK : fail_mpi("MPI_Comm_idup", code);
}

static void keep(struct wire *w)
{
    w->next_kept = kept;
    kept = w;
}

/* Writes the name and version of the MPI library, without what some of them add. */
static void name_library(char name[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length = 0;
    MPI_Get_library_version(name, &length);
    name[strcspn(name, ",\n")] = '\0';
    for (char *c = name; *c != '\0'; c++)
        if (*c == '\t')
            *c = ' ';
}

static uint32_t timeout_of(const ditto_cluster_options *options)
{
    return options != NULL && options->timeout_ms != 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
}

static ditto_status make_cluster(MPI_Comm comm, const ditto_cluster_options *options, ditto_cluster **out)
{
    ditto_wire wire = DITTO_WIRE_INIT;
    int level, rank, size;
    if (has_other_mpi())
        return FAIL(DITTO_ERR_INVALID, "the program uses " OTHER_MPI
                                       ", but is linked with the library of ditto for another MPI: "
                                       "link " OTHER_COMPANION " instead");
    DITTO_TRY(check_thread(&level));
    struct wire *w = calloc(1, sizeof *w);
    if (w == NULL)
        return FAIL(DITTO_ERR_NO_MEMORY, "no memory for a cluster");
    name_library(w->name);
    ditto_status status = check_launcher(w->name);
    bool pending = false;
    if (status == DITTO_OK)
        status = duplicate(comm, timeout_of(options), w, &pending);
    if (status != DITTO_OK) {
        if (pending)
            keep(w);
        else
            release(w);
        return status;
    }
    MPI_Comm_rank(w->comm, &rank);
    MPI_Comm_size(w->comm, &size);
    wire.num_hosts = (uint32_t)size;
    wire.host = (uint32_t)rank;
    wire.flags = level < MPI_THREAD_MULTIPLE ? DITTO_WIRE_ONE_THREAD : 0;
    wire.name = w->name;
    wire.user = w;
    wire.send = wire_send;
    wire.receive = wire_receive;
    wire.cancel = wire_cancel;
    wire.progress = wire_progress;
    wire.destroy = wire_destroy;
    status = ditto_cluster_create(&wire, options, out);
    /* The communicator is not freed, because that is collective, and other ranks may not come. */
    wires++;
    if (status == DITTO_OK)
        return DITTO_OK;
    if (w->count != 0) {
        keep(w);
    } else {
        wires--;
        release(w);
    }
    return status;
}

ditto_status ditto_mpi_cluster(MPI_Comm comm, const ditto_cluster_options *options, ditto_cluster **out)
{
    int cancel_state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* the thread could hold locks of MPI */
    ditto_status status = make_cluster(comm, options, out);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

/* For src/fortran/ditto_mpi.f90. In Fortran a communicator is an integer. */
DITTO_API ditto_status dti_mpi_cluster_f(MPI_Fint comm, const ditto_cluster_options *options,
                                         ditto_cluster **out);
ditto_status dti_mpi_cluster_f(MPI_Fint comm, const ditto_cluster_options *options, ditto_cluster **out)
{
    return ditto_mpi_cluster(MPI_Comm_f2c(comm), options, out);
}

/* Waits until all processes have come here, or until `end`. */
static bool meet_before_finalize(double end, bool naps)
{
    struct timespec nap = { .tv_nsec = 1000000 };
    MPI_Request all;
    int done = 0;
    if (MPI_Ibarrier(MPI_COMM_WORLD, &all) != MPI_SUCCESS)
        return false;
    while (MPI_Test(&all, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && MPI_Wtime() < end)
        if (naps)
            nanosleep(&nap, NULL);
    return done != 0;
}

static _Atomic bool has_ended;

/* Leaves the process if ditto_mpi_end does not return. */
static void *leave_late(void *code)
{
    sleep(END_SECONDS);
    if (atomic_load(&has_ended))
        return NULL;
    fprintf(stderr,
            "ditto: ditto_mpi_end has not been able to end MPI for %d s. This process ends without it\n",
            END_SECONDS);
    _exit((int)(intptr_t)code);
}

static void limit_end(int code)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave_late, (void *)(intptr_t)code) == 0)
        pthread_detach(thread);
}

/* MPICH over the TCP of UCX may wait for ever in MPI_Finalize if another process has gone in before, because
 * that one answers no more. So all meet twice: when the first meeting is over, all are awake, and they go in
 * together after the second one. With two processes this was enough in 10 of 10 trials, with three it was
 * not. When all have met, the work of all is done, and a process may leave if it waits for too long. A
 * process that comes to MPI_Finalize by another way never meets them, so they do not wait for it longer than
 * END_SECONDS. */
static void finalize_together(int code)
{
    double end = MPI_Wtime() + END_SECONDS;
    if (!has_other_mpi() && meet_before_finalize(end, true) && meet_before_finalize(end, false))
        limit_end(code);
    MPI_Finalize();
}

int ditto_mpi_end(ditto_status status)
{
    /* MPI_Finalize may wait for ever for receives of a cluster that was not destroyed. */
    bool abandons = status == DITTO_ERR_TIMED_OUT || status == DITTO_ERR_LOST ||
                    status == DITTO_ERR_POISONED || (status < 0 && wires != 0);
    int initialized, finalized;
    if (status < 0)
        fprintf(stderr, "%s: %s\n", ditto_status_name(status), ditto_last_error()->message);
    /* A replica that has not returned may hold the lock of a file, for which fflush waits for ever. */
    if (abandons)
        limit_end(1);
    /* MPI_Abort ends the process without this, and so does leave_late. */
    (void)fflush(NULL);
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized && abandons)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (initialized && !finalized)
        finalize_together(status < 0 ? 1 : 0);
    atomic_store(&has_ended, true);
    return status < 0 ? 1 : 0;
}
