/* Digests of files that are open: read once, from the beginning, through a buffer of bounded size. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/memory.h"
#include "base/sha1.h"
#include "base/sha256.h"

/* The digest of the first `size` bytes: 0, an errno, or -1 where the file ends before. */
int digest_sha256(Memory *memory, int fd, uint64_t size, uint8_t out[SHA256_BYTES]);
int digest_sha1(Memory *memory, int fd, uint64_t size, uint8_t out[SHA1_BYTES]);

#endif
