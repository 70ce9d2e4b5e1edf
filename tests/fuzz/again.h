/* tests/fuzz/again.h - what must hold for every dataset, whatever its files hold: a position that is saved after two rows goes on with the
 * same third one, and rows can say where they are. */
#ifndef AGAIN_H
#define AGAIN_H

#include <ditto/dataset.h>

void fuzz_again(const ditto_dataset *dataset);

#endif
