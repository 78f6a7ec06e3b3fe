/* Safetensors, the writing side: the head of a file; the bytes of the tensors follow it in the same order. */
#ifndef IR_STORE_SAFETENSORS_HEAD_H
#define IR_STORE_SAFETENSORS_HEAD_H

#include "ir/store/safetensors.h"

typedef struct SafeEntry {
    const char *name; /* UTF-8, not that of the metadata */
    const Type
        *type; /* known; no strings.  Types without a name of the format are stored as bytes: U8, one dimension */
} SafeEntry;

/* Appends the length and the header, padded to eight bytes; pairs (there may be none) become the metadata and come
 * first. */
void safetensors_head(Text *out, const SafeEntry *entries, size_t n, const SafePair *pairs, size_t n_pairs);

#endif
