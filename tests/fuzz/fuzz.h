/* tests/fuzz/fuzz.h - one fuzz target per program, in libFuzzer's form. Linked with driver.c it mutates its own seeds and
 * needs no other tool; `clang -fsanitize=fuzzer` in place of driver.c gives libFuzzer's search. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <ditto/dataset.h>

/* Must not crash, hang or leak, whatever the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid and nearly valid inputs to start from, ended by NULL. */
extern const char *const fuzz_seeds[];
/* Fragments that mutations insert, ended by NULL. */
extern const char *const fuzz_words[];
/* How many inputs the target took as valid: a fuzzer that never gets inside shows nothing. */
extern unsigned long fuzz_accepted;

/* What must hold for every dataset, whatever its files hold: a position that is saved after two rows goes on with the
 * same third one, and rows can say where they are. */

void fuzz_again(const ditto_dataset *dataset);

#endif
