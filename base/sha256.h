/* SHA-256 (FIPS 180-4): identity of models, kernels and files. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
    SHA256_BYTES = 32,
    SHA256_TEXT = 65 /* 64 hexadecimal digits and the terminator */
};

typedef struct Sha256 {
    void (*compress)(uint32_t state[8], const unsigned char *blocks, size_t n); /* n blocks of 64 bytes */
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
} Sha256;

/* Starts an empty message; by the processor's own instructions where it has them. */
void sha256_begin(Sha256 *s);

/* The same in plain C, which gives the same digests. */
void sha256_begin_plain(Sha256 *s);

/* Appends n bytes; in pieces of any size. */
void sha256_add(Sha256 *s, const void *bytes, size_t n);

/* Ends the message; `s` must be begun again before further use. */
void sha256_end(Sha256 *s, uint8_t out[SHA256_BYTES]);

/* A digest in lower-case hexadecimal. */
void sha256_text(char out[SHA256_TEXT], const uint8_t digest[SHA256_BYTES]);

#endif
