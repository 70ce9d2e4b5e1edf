/* tests/support/checkpoints.h - what an open checkpoint contains. */
#ifndef TESTS_CHECKPOINTS_H
#define TESTS_CHECKPOINTS_H

#include "support/support.h"

#include <ditto/checkpoint.h>

static inline ditto_checkpoint_properties contents_of(const ditto_checkpoint *file)
{
    ditto_checkpoint_properties found = DITTO_CHECKPOINT_PROPERTIES_INIT;
    assert_ok(ditto_checkpoint_info(file, &found));
    return found;
}

/* Returns the attribute of that name, which must exist. */
static inline ditto_attribute attribute_of(const ditto_checkpoint *file, const char *name)
{
    ditto_checkpoint_properties found = contents_of(file);
    size_t i = 0;
    while (i < found.num_attributes && strcmp(found.attributes[i].name, name) != 0)
        i++;
    assert_true(i < found.num_attributes);
    return found.attributes[i];
}

#endif
