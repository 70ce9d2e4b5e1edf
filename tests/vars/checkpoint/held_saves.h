/* tests/vars/checkpoint/held_saves.h - checkpointers whose saves wait in fsync, and restores that wait in
 * their read. The program defines fsync, pread and pthread_join itself, so that it can hold threads in the
 * first two and can count the threads in each. With sanitizers it does not define them. */
#ifndef HELD_SAVES_H
#define HELD_SAVES_H

#include "support/support.h"

#include <ditto/checkpoint.h>

/* SECONDS is the limit of one wait. */
enum { ELEMENTS = 1000, SECONDS = 60 };

/* While true, fsync and the read of a restore wait. */
extern _Atomic bool holding;

/* The number of threads that are in fsync or in that read. */
extern _Atomic int in_held_call;

/* The inode of the file or folder that was given to fsync last. */
extern _Atomic uint64_t last_flushed;

/* The number of threads that are in pthread_join. */
extern _Atomic int joining;

/* Waits until the count is at least `wanted`. Returns false if it is not after SECONDS. */
bool await(_Atomic int *count, int wanted);

/* A strategy with a variable of ELEMENTS elements of DITTO_F32, and a checkpointer that saves in the
 * background. */
struct saved {
    ditto_strategy *strategy;
    ditto_variable *v;
    ditto_checkpointer *c;
};

/* Creates all objects of a `saved`. The checkpointer writes to own_folder. */
ditto_status begin_with(struct saved *s, const char *prefix, const ditto_strategy_options *options);

/* The same for two replicas. */
ditto_status begin(struct saved *s, const char *prefix);

/* Saves as this step. It may return before the file is written. */
ditto_status save(const struct saved *s, int64_t step);

/* Returns true if the file of this name in own_folder is a checkpoint. */
bool is_whole(const char *name);

/* A call that another thread makes. */
struct call {
    struct saved *saved;
    int64_t step; /* of the save, or -1 to wait */
    ditto_status status;
};

enum { REPLICA_COUNTS = 4 };

/* The numbers of replicas with which tests are repeated. */
extern const uint32_t counts_of_replicas[REPLICA_COUNTS];

#endif
