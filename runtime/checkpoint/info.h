/* Where a run stands, as metadata of a safetensors file and back. */
#ifndef RUNTIME_CHECKPOINT_INFO_H
#define RUNTIME_CHECKPOINT_INFO_H

#include "runtime/checkpoint/checkpoint.h"

#define CHECKPOINT_FORMAT "1"
#define CHECKPOINT_HASH   "qcc.hash" /* the key whose value the content hash reads as zeros */

/* The pairs of a file, sorted by key; the value of the hash is 64 zeros. */
SafePair *info_pairs(Arena *arena, const CheckpointInfo *info, size_t *n);

/* Reads them back; null, or what is wrong. */
const char *info_read(Arena *arena, const SafeTensors *s, CheckpointInfo *info);

#endif
