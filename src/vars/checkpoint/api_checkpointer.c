/* src/vars/checkpoint/api_checkpointer.c - the public functions of include/ditto/checkpoint.h that manage a
 * folder of checkpoints. They name the files, remove all but the newest ones, and can write in the
 * background. */
#include "replicas/machine/affinity.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/checkpoint/checkpoint.h"
#include "vars/vars.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KEEP 5u

struct ditto_checkpointer {
    /* Must be the first member. Through it the team notifies the checkpointer of the strategy's end. */
    struct dti_dependent dependent;

    /* NULL after the strategy was destroyed. It is read in the dependent's gate, so the strategy cannot be
     * destroyed meanwhile. */
    ditto_strategy *strategy;

    char *folder, *prefix;
    uint32_t keep;
    bool background;

    /* The process that created the checkpointer. A child process has a copy of this struct, but neither the
     * thread that writes nor the thread that holds the lock. */
    uint32_t process;

    /* Counts calls of the checkpointer, including those that wait for the turn or the lock. */
    struct dti_gate gate;

    /* Held by the call that is executing. It guards all members below. A thread that holds it does not wait
     * for the turn, because the thread that has the turn may wait for the lock. */
    pthread_mutex_t lock;
    struct dti_snapshot snapshot;

    /* True from the start of the writing thread until it has been joined. Meanwhile it owns the members below
     * `thread`, and reads the snapshot. */
    bool running;

    pthread_t thread;
    struct dti_contents contents;
    char *path;

    /* True if the saving thread was pinned by a scope. Its own affinity is then in `mask`. */
    bool was_pinned;

    struct dti_mask mask;
    ditto_status status;
    ditto_error error; /* of the writing thread */
};

static void release(ditto_checkpointer *c)
{
    dti_snapshot_free(&c->snapshot);
    dti_contents_free(&c->contents);
    free(c->path);
    free(c->folder);
    free(c->prefix);
    free(c);
}

static void team_ends(struct dti_dependent *dependent, enum dti_team_end end)
{
    /* If the team is left to a replica that never returned, that replica may still use the checkpointer. */
    if (end != DTI_TEAM_IS_LEFT)
        ((ditto_checkpointer *)dependent)->strategy = NULL;
}

static void release_dependent(struct dti_dependent *dependent)
{
    release((ditto_checkpointer *)dependent);
}

static const struct dti_dependent_kind kind = {
    .what = "the checkpointer",
    .team_ends = team_ends,
    .release = release_dependent,
};

static bool is_forked(const ditto_checkpointer *c)
{
    return c->process != dti_process_number();
}

/* Begins a call of the checkpointer. Returns DITTO_ERR_FORKED in a child process, and DITTO_ERR_BUSY if the
 * checkpointer is being destroyed. If it fails, the caller must not call leave(). */
static ditto_status enter(ditto_checkpointer *c)
{
    if (is_forked(c))
        return DTI_FAIL(
            DITTO_ERR_FORKED,
            "the checkpointer of %s was made before fork, and what it was writing is written by the "
            "parent process: destroy it and create another",
            DTI_SHOWN(c->folder));
    /* A function of an input pipeline must not wait for the turn, because the thread that has the turn may
     * wait for the rows that this function makes. */
    DTI_TRY(dti_context_check_not_input("the checkpointer"));
    if (!dti_gate_enter(&c->gate)) {
        DTI_FAIL(DITTO_ERR_BUSY, "the checkpointer of %s is being destroyed by another thread",
                 DTI_SHOWN(c->folder));
        dti_gate_leave(&c->gate);
        return DITTO_ERR_BUSY;
    }
    return DITTO_OK;
}

static void leave(ditto_checkpointer *c)
{
    dti_gate_leave(&c->gate);
}

static ditto_status check_prefix(const char *prefix)
{
    if (*prefix == '\0' || strchr(prefix, '/') != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "the prefix \"%.100s\" must not be empty or contain \"/\"",
                        prefix);
    return DITTO_OK;
}

static ditto_status make_folder(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0777) == 0)
        return dti_checkpoint_flush_folder(folder);
    if (errno == EEXIST) {
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            return DITTO_OK;
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, ENOTDIR, "%s exists and is not a folder", DTI_SHOWN(folder));
    }
    return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "creating the folder %s", DTI_SHOWN(folder));
}

static ditto_status make_checkpointer(ditto_strategy *strategy, const char *folder, const char *prefix,
                                      const ditto_checkpointer_options *options, ditto_checkpointer **out)
{
    ditto_checkpointer *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->strategy = strategy;
        c->process = dti_process_number();
        c->keep = options->keep != 0 ? options->keep : KEEP;
        c->background = options->background != 0;
        c->folder = dti_absolute_name(folder);
        c->prefix = strdup(prefix);
    }
    if (c == NULL || c->folder == NULL || c->prefix == NULL) {
        if (c != NULL)
            release(c);
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a checkpointer");
    }
    int failed = pthread_mutex_init(&c->lock, NULL);
    if (failed != 0) {
        release(c);
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed, "creating a checkpointer's lock");
    }
    c->dependent.kind = &kind;
    ditto_status status = dti_watch(strategy, &c->dependent);
    if (status != DITTO_OK) {
        pthread_mutex_destroy(&c->lock);
        release(c);
        return status;
    }
    *out = c;
    return DITTO_OK;
}

/* Over several hosts only the first one uses the folder. */
static ditto_status create(ditto_strategy *strategy, const char *folder,
                           const ditto_checkpointer_options *options, ditto_checkpointer **out)
{
    ditto_checkpointer_options known;
    ditto_checkpointer *c = NULL;
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(dti_not_null(folder, "folder"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_checkpointer_options"));
    const char *prefix = known.prefix != NULL ? known.prefix : DTI_CHECKPOINT_PREFIX;
    DTI_TRY(check_prefix(prefix));
    if (dti_cross_host(team) == 0)
        DTI_TRY(make_folder(folder));
    DTI_TRY(make_checkpointer(strategy, folder, prefix, &known, &c));
    ditto_status status = dti_cross_agree(team, "ditto_checkpointer_create", DITTO_OK);
    if (status != DITTO_OK) {
        pthread_mutex_destroy(&c->lock);
        (void)dti_dependent_destroy(&c->dependent);
        return status;
    }
    if (dti_cross_host(team) == 0)
        dti_folder_clear(folder, prefix); /* removes temporary files that a killed process has left */
    *out = c;
    return DITTO_OK;
}

ditto_status ditto_checkpointer_create(ditto_strategy *strategy, const char *folder,
                                       const ditto_checkpointer_options *options, ditto_checkpointer **out)
{
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_context_check_not_input("the checkpointer")); /* checked before a folder is created */
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_LEAVES_GATE(held, dti_strategy_hold(strategy));
    uint64_t begin = dti_cross_begin(dti_team_of(strategy));
    return dti_keep_errno(
        before, dti_cross_tell(dti_team_of(strategy), begin, create(strategy, folder, options, out)));
}

/* Writes the file, and then removes old files. */
static ditto_status write_file(ditto_checkpointer *c)
{
    DTI_TRY(dti_save_write(&c->contents, c->path));
    dti_folder_prune(c->folder, c->prefix, c->keep, c->contents.step);
    return DITTO_OK;
}

static void *write_in_background(void *argument)
{
    ditto_checkpointer *c = argument;
    if (c->was_pinned)
        dti_affinity_restore(&c->mask);
    c->status = write_file(c);
    if (c->status != DITTO_OK)
        c->error = *ditto_last_error();
    return NULL;
}

static void forget_work(ditto_checkpointer *c)
{
    dti_contents_free(&c->contents);
    free(c->path);
    c->path = NULL;
}

/* Waits until the thread that writes has ended, and returns the status of its save. An error is returned
 * once, by the first call that waits, and the recorded error names that call. */
static ditto_status await(ditto_checkpointer *c)
{
    if (!c->running)
        return DITTO_OK;
    pthread_join(c->thread, NULL);
    c->running = false;
    forget_work(c);
    if (c->status != DITTO_OK)
        dti_error_set(&c->error);
    return dti_own(c->status);
}

/* The same for a caller that does not hold the lock. */
static ditto_status lock_and_await(ditto_checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    ditto_status status = await(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Starts the thread that writes, with all signals blocked. In a scope the calling thread is pinned to replica
 * 0's PU, so the new thread gets the affinity that the caller had before the scope. Returns an errno value,
 * or 0. */
static int start_thread(ditto_checkpointer *c)
{
    sigset_t all, before;
    const struct dti_mask *mask = dti_context_saved_mask();
    c->was_pinned = mask != NULL;
    if (mask != NULL)
        c->mask = *mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&c->thread, NULL, write_in_background, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Writes the file, or starts the thread that writes it. The values have been copied, or are written from
 * where they are. Over several hosts, only the first one writes. */
static ditto_status begin_writing(ditto_checkpointer *c, bool is_first_host)
{
    if (!is_first_host) {
        forget_work(c);
        return DITTO_OK;
    }
    if (c->background) {
        int failed = start_thread(c);
        if (failed == 0) {
            c->running = true;
            return DITTO_OK;
        }
        ditto_status status = DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed,
                                             "starting the thread that writes checkpoints");
        forget_work(c);
        return status;
    }
    ditto_status status = write_file(c);
    forget_work(c);
    return status;
}

/* Plans the save and copies the values. The caller has the turn and the lock. The variables cannot be
 * destroyed until it leaves the gates in `held`. */
static ditto_status plan_and_copy(ditto_checkpointer *c, const ditto_checkpoint_options *options,
                                  struct dti_gates *held)
{
    ditto_variable **variable;
    DTI_TRY(dti_save_plan(c->strategy, options, &c->contents, &variable, held));
    c->path = dti_folder_path(c->folder, c->prefix, options->step);
    ditto_status status = c->path != NULL
                              ? dti_save_copy(&c->contents, variable, &c->snapshot, !c->background)
                              : DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a path");
    free(variable);
    if (status != DITTO_OK)
        forget_work(c);
    return status;
}

/* Takes the turn and then the lock. If another thread has begun a save in between, waits for that save
 * without the turn, so that the strategy can be used while a file is written. A caller that had the turn
 * already keeps it, and waits in await. After DITTO_OK the caller unlocks, and passes the frame to
 * dti_cross_leave. */
static ditto_status lock_with_turn(ditto_checkpointer *c, struct dti_team *team, struct dti_frame *frame)
{
    for (;;) {
        DTI_TRY(dti_cross_enter(team, frame, DTI_CALLER_PINNED));
        if (!frame->has_turn) {
            pthread_mutex_lock(&c->lock);
            return DITTO_OK;
        }
        if (pthread_mutex_trylock(&c->lock) == 0) {
            if (!c->running)
                return DITTO_OK;
            pthread_mutex_unlock(&c->lock);
        }
        dti_cross_leave(team, frame);
        DTI_TRY(lock_and_await(c));
    }
}

/* Over several hosts, ends a call in which this host has found `status`, which may be the error of a file
 * that was written in the background. All hosts return an error of the first one. */
static ditto_status agree(ditto_checkpointer *c, const char *name, ditto_status status)
{
    DTI_LEAVES_GATE(held, NULL);
    ditto_error found = *ditto_last_error();
    if (!dti_dependent_hold(&c->dependent, &held)) {
        dti_error_set(&found);
        return status; /* the strategy was destroyed */
    }
    struct dti_team *team = dti_team_of(c->strategy);
    uint64_t begin = dti_cross_begin(team);
    return dti_cross_tell(team, begin, dti_cross_agree(team, name, status));
}

static ditto_status save_here(ditto_checkpointer *c, const ditto_checkpoint_options *options)
{
    struct dti_frame frame;
    DTI_TRY(lock_and_await(c)); /* before the gate is entered, because the strategy may be destroyed here */
    DTI_LEAVES_GATE(held, NULL);
    if (!dti_dependent_hold(&c->dependent, &held))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the strategy of the checkpoints in %s has been destroyed",
                        DTI_SHOWN(c->folder));
    struct dti_team *team = dti_team_of(c->strategy);
    DTI_LEAVES_GATES(variables);
    DTI_TRY(lock_with_turn(c, team, &frame));
    ditto_status status = await(c);
    if (status == DITTO_OK)
        status = plan_and_copy(c, options, &variables);
    dti_cross_leave(team, &frame); /* the file is written without the turn */
    if (status == DITTO_OK)
        status = begin_writing(c, dti_cross_host(team) == 0);
    pthread_mutex_unlock(&c->lock);
    return status;
}

ditto_status ditto_checkpointer_save(ditto_checkpointer *c, const ditto_checkpoint_options *options)
{
    ditto_checkpoint_options known;
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_not_null(c, "checkpointer"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_checkpoint_options"));
    if (known.step < 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "step = %lld: files are numbered from 0 on", (long long)known.step);
    DTI_TRY(enter(c));
    ditto_status status = agree(c, "the end of ditto_checkpointer_save", save_here(c, &known));
    leave(c);
    return dti_keep_errno(before, status);
}

ditto_status ditto_checkpointer_wait(ditto_checkpointer *c)
{
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_not_null(c, "checkpointer"));
    DTI_TRY(enter(c));
    ditto_status status = agree(c, "the end of ditto_checkpointer_wait", lock_and_await(c));
    leave(c);
    return dti_keep_errno(before, status);
}

ditto_status ditto_checkpointer_destroy(ditto_checkpointer *c)
{
    int before = errno;
    ditto_status status = DITTO_OK;
    DTI_ENTER();
    if (c == NULL)
        return DITTO_OK;
    if (!is_forked(c)) { /* in a child process, the writing thread and its error belong to the parent */
        DTI_TRY(dti_context_check_outside("checkpointer"));
        if (!dti_gate_shut(&c->gate))
            return DTI_FAIL(
                DITTO_ERR_BUSY,
                "a call of the checkpointer of %s has not returned: destroy it when the call has returned",
                DTI_SHOWN(c->folder));
        dti_gate_close(&c->gate);
        status = agree(c, "the end of ditto_checkpointer_destroy", await(c));
        pthread_mutex_destroy(&c->lock);
    }
    /* This cannot return DITTO_ERR_BUSY, because only calls of the checkpointer enter this gate, and there is
     * none. */
    ditto_status destroyed = dti_dependent_destroy(&c->dependent);
    return dti_keep_errno(before, status != DITTO_OK ? status : destroyed);
}

ditto_status dti_checkpoint_latest(const char *folder, const char *prefix, char *path, size_t capacity,
                                   size_t *length, int64_t *step)
{
    struct dti_text text = { path, capacity, 0 };
    int64_t newest;
    DTI_TRY(dti_not_null(folder, "folder"));
    if (capacity > 0)
        DTI_TRY(dti_not_null(path, "path"));
    prefix = prefix != NULL ? prefix : DTI_CHECKPOINT_PREFIX;
    DTI_TRY(check_prefix(prefix));
    DTI_TRY(dti_folder_newest(folder, prefix, &newest));
    char *name = dti_folder_path(folder, prefix, newest);
    if (name == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a path");
    dti_text_add(&text, "%s", name);
    free(name);
    if (length != NULL)
        *length = text.length;
    if (step != NULL)
        *step = newest;
    return DITTO_OK;
}
