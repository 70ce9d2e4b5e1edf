/* bench/peers/shared_forms.c - see shared_forms.h.
 *
 * Each rank copies its message to its buffer, and counts this in its `step`. When all ranks have done so, the
 * message is reduced in one of two ways. In the symmetric way, each rank adds up all buffers for itself. In
 * the distributed way, each rank adds up its share of all buffers into its own buffer, counts this too, waits
 * for the others, and copies the shares of all ranks from their buffers.
 *
 * Invariants  A rank begins its message e + 1 only after all of its own reads for message e.
 *             Message e is in buffer e % 2.
 * Edges       The release store of `step` -> the acquire load in wait_for_step, which returns when each rank
 *             has done the step or a later one.
 * Therefore   what a rank wrote to its buffer before a step is seen by all that have waited for the step. A
 *             rank writes message e + 2 to the buffer of message e after it has waited for step
 *             2 (e + 1) - 1, which each rank does after its last read for message e.
 *
 * The originals have two or three states instead of numbers, and more threads in each rank. Here a rank has
 * one PU. They work in place. Out of place, a form reads the input and writes the output, without a copy that
 * the form in place does not have. That of gloo copies its input first, as the original does. */
#include "shared_forms.h"
#include "../loops.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared_form {
    const char *name;
    size_t chunk_bytes;       /* longer messages are reduced in chunks */
    size_t distributed_bytes; /* chunks from this size on are reduced in the distributed way */
    enum variant copy;        /* of messages to the buffers */
    bool own_from_input;      /* a rank reads its own message where it was, and not in its buffer */
    bool input_to_output;     /* the input is copied to the output first */
    bool in_pairs;            /* one input after the other is added to the result, in a pass each */
    bool pauses;              /* while it waits */
    bool waits_on_thread;     /* a new thread does each wait, so that the caller may have a time limit */
};

static const struct shared_form forms[] = {
    { .name = "deepspeed", .chunk_bytes = SHARED_CHUNK_BYTES, .distributed_bytes = 1 << 20 },
    { .name = "vllm",
      .chunk_bytes = 1 << 20,
      .distributed_bytes = SIZE_MAX,
      .copy = VARIANT_STREAM,
      .own_from_input = true,
      .pauses = true },
    { .name = "gloo-shm",
      .chunk_bytes = SHARED_CHUNK_BYTES,
      .distributed_bytes = 1 << 20,
      .input_to_output = true,
      .in_pairs = true,
      .waits_on_thread = true },
};

const struct shared_form *shared_form_of(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

/* -- waiting -- */

/* A call of one rank. */
struct call {
    const struct shared_form *form;
    struct shared_rank *segment;
    const struct work *work;
    uint32_t id, episode;
};

/* A wait, which another thread may do. */
struct wait {
    const struct call *call;
    uint32_t step;
    bool is_over;
    pthread_mutex_t mutex;
    pthread_cond_t over;
};

static void wait_for_step(const struct call *c, uint32_t step)
{
    for (uint32_t i = 1; i < c->work->replicas; i++) {
        const struct shared_rank *other = &c->segment[(c->id + i) % c->work->replicas];
        /* Numbers wrap around, so their difference is compared. */
        while ((int32_t)(atomic_load_explicit(&other->step, memory_order_acquire) - step) < 0)
            if (c->form->pauses)
                PAUSE();
    }
}

static void *wait_on_thread(void *argument)
{
    struct wait *w = argument;
    wait_for_step(w->call, w->step);
    pthread_mutex_lock(&w->mutex);
    w->is_over = true;
    pthread_mutex_unlock(&w->mutex);
    pthread_cond_signal(&w->over);
    return NULL;
}

/* Says that this rank has done the step, and waits until all others have. */
static void finish_step(const struct call *c, uint32_t step)
{
    struct wait w = { c, step, false, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
    pthread_t thread;
    atomic_store_explicit(&c->segment[c->id].step, step, memory_order_release);
    if (!c->form->waits_on_thread) {
        wait_for_step(c, step);
        return;
    }
    if (pthread_create(&thread, NULL, wait_on_thread, &w) != 0) {
        fprintf(stderr, "peer-shared-memory: a thread cannot be created\n");
        exit(1);
    }
    pthread_mutex_lock(&w.mutex);
    while (!w.is_over)
        pthread_cond_wait(&w.over, &w.mutex);
    pthread_mutex_unlock(&w.mutex);
    pthread_join(thread, NULL);
}

/* -- a chunk -- */

static char *buffer_of(const struct call *c, uint32_t rank)
{
    return c->segment[rank].buffer[c->episode & 1];
}

/* Lists the inputs. If `own_first` is false, all ranks have the same order. */
static void list_inputs(const struct call *c, const char *src, bool own_first, const char **in)
{
    for (uint32_t i = 0; i < c->work->replicas; i++) {
        uint32_t r = own_first ? (c->id + i) % c->work->replicas : i;
        in[i] = r == c->id && c->form->own_from_input ? src : buffer_of(c, r);
    }
}

static void reduce(const struct call *c, char *out, const char *const *in, struct span s)
{
    if (!c->form->in_pairs) {
        loops_sum(VARIANT_REGISTERS, c->work->dtype, &out, 1, in, c->work->replicas, s);
        return;
    }
    loops_copy(VARIANT_PLAIN, out, in[0], s);
    for (uint32_t r = 1; r < c->work->replicas; r++) {
        const char *const pair[2] = { out, in[r] };
        loops_sum(VARIANT_PLAIN, c->work->dtype, &out, 1, pair, 2, s);
    }
}

static void reduce_chunk(const struct call *c, const char *src, char *dst, size_t bytes)
{
    const struct shared_form *form = c->form;
    const char *in[WORK_MOST_REPLICAS];
    bool distributed = bytes >= form->distributed_bytes;
    struct work chunk = *c->work;
    chunk.bytes = bytes;
    loops_copy(form->copy, buffer_of(c, c->id), src, (struct span){ 0, bytes });
    finish_step(c, 2 * c->episode - 1);
    list_inputs(c, src, distributed || form->own_from_input, in);
    if (!distributed) {
        reduce(c, dst, in, (struct span){ 0, bytes });
        return;
    }
    reduce(c, buffer_of(c, c->id), in, loops_share(&chunk, c->id));
    finish_step(c, 2 * c->episode);
    for (uint32_t i = 0; i < chunk.replicas; i++) {
        uint32_t r = (c->id + i) % chunk.replicas;
        loops_copy(VARIANT_PLAIN, dst, buffer_of(c, r), loops_share(&chunk, r));
    }
}

/* -- a message -- */

void shared_all_reduce(const struct shared_form *form, struct shared_rank *segment, const struct work *work,
                       uint32_t id, const char *src, char *dst)
{
    struct call c = { form, segment, work, id, 0 };
    if (form->input_to_output) {
        loops_copy(VARIANT_PLAIN, dst, src, (struct span){ 0, work->bytes });
        src = dst;
    }
    for (size_t at = 0; at < work->bytes; at += form->chunk_bytes) {
        size_t rest = work->bytes - at;
        /* The last message was number (step + 1) / 2, in both ways. Only this rank writes its step. */
        c.episode = (atomic_load_explicit(&segment[id].step, memory_order_relaxed) + 1) / 2 + 1;
        reduce_chunk(&c, src + at, dst + at, rest < form->chunk_bytes ? rest : form->chunk_bytes);
    }
}

void shared_barrier(struct shared_rank *segment, uint32_t ranks, uint32_t id)
{
    /* relaxed: only this rank writes its number. */
    uint32_t mine = atomic_load_explicit(&segment[id].barriers, memory_order_relaxed) + 1;
    /* release: the partner is the acquire below, in the other ranks. */
    atomic_store_explicit(&segment[id].barriers, mine, memory_order_release);
    for (uint32_t i = 1; i < ranks; i++)
        while ((int32_t)(atomic_load_explicit(&segment[(id + i) % ranks].barriers, memory_order_acquire) -
                         mine) < 0)
            PAUSE();
}
