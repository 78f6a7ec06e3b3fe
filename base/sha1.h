/* SHA-1 (FIPS 180-4): the checksum that ONNX has for external data.  It finds damage; it proves no origin. */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum {
    SHA1_BYTES = 20,
    SHA1_TEXT = 41 /* 40 hexadecimal digits and the terminator */
};

typedef struct Sha1 {
    void (*compress)(uint32_t state[5], const unsigned char *blocks, size_t n); /* n blocks of 64 bytes */
    uint32_t state[5];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
} Sha1;

/* Starts an empty message; by the processor's own instructions where it has them. */
void sha1_begin(Sha1 *s);

/* The same in plain C, which gives the same digests. */
void sha1_begin_plain(Sha1 *s);

/* Appends n bytes; in pieces of any size. */
void sha1_add(Sha1 *s, const void *bytes, size_t n);

/* Ends the message; `s` must be begun again before further use. */
void sha1_end(Sha1 *s, uint8_t out[SHA1_BYTES]);

/* A digest in lower-case hexadecimal. */
void sha1_text(char out[SHA1_TEXT], const uint8_t digest[SHA1_BYTES]);

#endif
