/* bench/loops.h - the hand-written loops of bounds and of the OpenMP peer: a range of a collective's result, from
 * the inputs to the results of those who take it. No errors, no order beyond the loop's own. */
#ifndef LOOPS_H
#define LOOPS_H

#include "work.h"

/* How the bytes go. */
enum way {
    WAY_PLAIN,  /* ordinary stores; two inputs in one pass, in registers */
    WAY_HALF,   /* the same, f32 with vectors of half the length */
    WAY_WIDE,   /* eight inputs in one pass, in registers, into eight results */
    WAY_BLOCKS, /* through a block in the first-level cache, then ordinary stores */
    WAY_STREAM, /* stores that go past the caches */
    WAY_AHEAD,  /* the next block's lines are fetched while this block is added up */
    WAY_STREAM_AHEAD,
    WAY_TWO_AHEAD, /* as plain; the lines of the results are asked for before they are written */
    WAY_DEMOTE,    /* what others will read is moved out of this core's own caches */
};
bool way_exists(enum way way); /* on this CPU */

/* Work that the loops know: SUM of f32, f64, i32 and bf16; copies of anything. */
bool loops_can(const struct work *work);

/* The owners' shares of the result: whole lines. */
struct span loops_share(const struct work *work, uint32_t id);

/* What both have; empty: nothing. */
struct span loops_common(struct span a, struct span b);

/* Writes bytes `s` of the result, made from in[replicas], to replica `me` or, if `everyone`, to all replicas that
 * take them. An input has its bytes where the source of that replica has them. */
void loops_produce(enum way way, const struct work *work, const char *const *in, struct worker *workers,
                   struct span s, uint32_t me, bool everyone);

/* The sources of all replicas. */
void loops_sources(const struct work *work, const struct worker *workers, const char **in);

/* What replica `id` does between two barriers, in the direct way: owners of shares make them for everyone who takes
 * them; who has a part of its own brings it to everyone; who takes a part of its own makes it. */
void loops_collective(const struct work *work, struct worker *workers, uint32_t id);

/* Lines to the cache that all cores share; nothing where the CPU cannot. */
void demote(const void *bytes, size_t count);

#endif
