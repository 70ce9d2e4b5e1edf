/* bench/peers/shared_forms.h - the all-reduces of DeepSpeed, vLLM and gloo for processes of one host, which
 * copy their messages to a segment of shared memory. */
#ifndef SHARED_FORMS_H
#define SHARED_FORMS_H

#include "../work.h"

#include <stdalign.h>
#include <stdatomic.h>

enum { SHARED_CHUNK_BYTES = 32 << 20 };

/* The part of a segment that one rank writes and all ranks read. Its bytes are 0 at first. It is large, but
 * pages that no message needs are not touched. */
struct shared_rank {
    /* The steps that the rank has done: 2 e - 1 when its e-th message is in its buffer, and 2 e when its
     * share of the e-th result is there, too. */
    alignas(128) _Atomic uint32_t step;
    alignas(128) _Atomic uint32_t barriers; /* to which the rank has come */
    alignas(4096) char buffer[2][SHARED_CHUNK_BYTES];
};

struct shared_form;

/* Returns the form of this name: "deepspeed", "vllm" or "gloo-shm". Returns NULL if there is none. */
const struct shared_form *shared_form_of(const char *name);

/* Adds up `work->bytes` bytes of f32 or bf16 of rank `id` and of all others, which call this, too. `dst` may
 * be `src`. */
void shared_all_reduce(const struct shared_form *form, struct shared_rank *segment, const struct work *work,
                       uint32_t id, const char *src, char *dst);

void shared_barrier(struct shared_rank *segment, uint32_t ranks, uint32_t id);

#endif
