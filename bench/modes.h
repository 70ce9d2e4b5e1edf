/* bench/modes.h - the modes of a machine whose cores change while it runs.
 *
 * The virtual cores of a shared host are two threads of one core at one time, and two cores at another. The
 * time in which a store of one PU becomes visible on the other (the hand-over of a cache line) then changes
 * by a factor of two to ten, and so does the time of each small collective. Therefore the hand-over is
 * measured before and after each batch, and batches of different modes are never put into one median.
 *
 * Modes are not known in advance. They are the groups of a row's readings between which neighbouring readings
 * differ by a factor of more than MODES_GAP, after single readings without others near them were left out. */
#ifndef MODES_H
#define MODES_H

#include <stdbool.h>
#include <stdint.h>

#define MODES_GAP 1.6
enum { MODES_MOST = 4 };

/* A group of readings, in nanoseconds. */
struct mode {
    double low_ns, high_ns, median_ns;
};

/* In ascending order. */
struct modes {
    struct mode mode[MODES_MOST];
    uint32_t count;
};

/* The state of the machine around a batch. */
struct conditions {
    double before_ns, after_ns; /* the hand-over of a line */

    /* True if the host used a PU for something else meanwhile (steal time), so the batch does not count. */
    bool disturbed;
};

/* Finds the modes of some readings. Readings near which (within a factor of 1.25) there are less than 1 of 50
 * are left out, because one reading between two modes would join them. A group with less than three readings
 * is no mode. Of more than MODES_MOST groups the largest are modes. If the process has only one PU, all
 * readings are 0, and there is one mode. */
struct modes modes_find(const double *reading, uint32_t count);

/* Returns the mode in which the batch was, or -1 if it was disturbed or the mode changed. */
int modes_of(const struct modes *modes, const struct conditions *conditions);

#endif
