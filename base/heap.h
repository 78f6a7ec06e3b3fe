/* Blocks that come and go: the tensors of an evaluation.  A heap gives back at close, or when a jump passes,
 * whatever is still out. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/memory.h"

typedef struct HeapBlock {
    struct HeapBlock *next, *prev;
    size_t size;
} HeapBlock;

enum { HEAP_CLASSES = 256 };

typedef struct Heap {
    Memory *memory;
    HeapBlock blocks; /* ring */
    Cleanup cleanup;
    bool reuses;
    HeapBlock *spare[HEAP_CLASSES]; /* blocks that came back, by size */
} Heap;

/* An empty heap over `m`; it closes itself if a jump passes. */
void heap_open(Heap *h, Memory *m);

/* Keeps the heap alive past guarded(): a jump no longer closes it, its owner must. */
void heap_keep(Heap *h);

/* From now on larger blocks that come back wait for the next request of about their size: the pages of a fresh one
 * cost more than most work on them.  Where the budget ends, those that wait go first. */
void heap_reuse(Heap *h);

/* Gives every block back. */
void heap_close(Heap *h);

/* `size` bytes aligned to 64, not zeroed; jumps when there are none. */
void *heap_alloc(Heap *h, size_t size);

/* Moves a block from whatever heap it is in, over the same memory, into `h`; it cannot fail. */
void heap_take(Heap *h, void *block);

/* Gives one block back; null is allowed. */
void heap_free(Heap *h, void *block);

#endif
