/* What a fuzz target is: libFuzzer's entry point, or main.c's, which runs it over stored files; and how its inputs are
 * changed so that they stay what the reader takes them for (mutate.c). */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs the target on some bytes; aborts when a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the inputs of a target are made of. */
typedef enum FuzzForm {
    FUZZ_BYTES, /* nothing that a change has to keep */
    FUZZ_TEXT,  /* lines of words and numbers */
    FUZZ_WIRE,  /* protobuf: fields within fields, whose lengths are those of what they hold */
    FUZZ_SAFE   /* safetensors: a length, JSON, tensors that tile the rest */
} FuzzForm;

extern const FuzzForm fuzz_form;

/* Changes data[0..n) in its form, into at most `cap` bytes; the new size. */
size_t fuzz_mutate(uint8_t *data, size_t n, size_t cap, uint64_t seed);

#endif
