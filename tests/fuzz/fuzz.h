/* What a fuzz target is: libFuzzer's entry point, or main.c's, which runs it over stored files. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs the target on some bytes; aborts when a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
