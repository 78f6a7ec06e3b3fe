/* Files that are neither models nor samples, and well known (base/foreign.def). */
#ifndef BASE_FOREIGN_H
#define BASE_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Foreign {
    size_t at, n; /* bytes before what it begins with, and of that */
    const char *magic;
    const char *what;                 /* "a GGUF file: weights without a graph" */
    const char *for_model, *for_data; /* what to do where one was wanted; null: nothing helps */
    bool is_data;                     /* samples are read from it */
} Foreign;

/* The kind of file that begins with these bytes, told by at least `least` of them; null: none of these. */
const Foreign *foreign_find(const void *bytes, size_t n, size_t least);

/* The kind that torch.save writes. */
const Foreign *foreign_torch(void);

#endif
