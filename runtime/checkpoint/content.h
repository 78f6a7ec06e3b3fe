/* The hash that a checkpoint carries: of all its bytes, the digits of the hash itself read as zeros. */
#ifndef RUNTIME_CHECKPOINT_CONTENT_H
#define RUNTIME_CHECKPOINT_CONTENT_H

#include "base/sha256.h"
#include "runtime/checkpoint/info.h"

/* Where bytes come from: exactly n of them, or a reported failure. */
typedef Status (*ContentRead)(void *user, uint64_t offset, void *out, size_t n);

/* Begins the hash with a head (length and header), whose digits are zeroed; their place, or null when it has none. */
char *content_begin(Sha256 *sha, char *head, size_t n);

/* Hashes a file of `size` bytes, whose head takes `head` of them, and says whether it is what its head says. */
Status content_check(Memory *m, ContentRead read, void *user, uint64_t head, uint64_t size, bool *whole);

#endif
