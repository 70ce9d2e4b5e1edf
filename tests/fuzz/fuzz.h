/* tests/fuzz/fuzz.h - declares the parts of a fuzz target, in the form of libFuzzer. A program has one
 * target. If it is linked with driver.c, it mutates its own seeds and needs no other tool. If it is linked by
 * `clang -fsanitize=fuzzer`, it uses the search of libFuzzer. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <ditto/dataset.h>

/* Tries one input. It must not crash, hang or leak, whatever the bytes are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid and nearly valid inputs from which mutations start. The last element is NULL. */
extern const char *const fuzz_seeds[];

/* Texts that mutations insert. The last element is NULL. */
extern const char *const fuzz_words[];

/* The number of inputs that the target has accepted as valid, with the unchanged seeds among them. driver.c
 * fails if it is 0, or if all inputs were accepted. */
extern unsigned long fuzz_accepted;

/* Checks what must hold for every dataset, whatever its files contain. The dataset has a fingerprint. If a
 * position is saved after two rows, the restored cursor returns the same third row, or the same error. Each
 * row that is read can say where in its source it is. */
void fuzz_again(const ditto_dataset *dataset);

#endif
