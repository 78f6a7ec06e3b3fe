#include "base/heap.h"

#include "base/poison.h"

enum { HEADER = 64 };
_Static_assert(sizeof(HeapBlock) <= HEADER, "the header keeps the alignment of what follows");

/* Sizes are told apart by their power of two and the three bits behind its first, once what stands before the elements of
 * a tensor is taken off: 2^n bytes of weights waste nothing. */
enum { LEAST_REUSED = 1 << 12, LEAST_POWER = 12, STEPS = 8, LARGER = 3, BEFORE = 256 };

/* The class of blocks of at least `size` bytes, which becomes the size of its blocks; -1: not reused. */
static int class_of(size_t *size)
{
    if (*size < LEAST_REUSED + BEFORE)
        return -1;
    const size_t elements = *size - BEFORE;
    int power = 63 - __builtin_clzll(elements);
    const size_t step = ((size_t)1 << power) / STEPS, rounded = (elements + step - 1) / step * step;
    const int class = (power - LEAST_POWER) * STEPS + (int)(rounded / step) - STEPS;
    if (class + LARGER >= HEAP_CLASSES)
        return -1;
    *size = rounded + BEFORE;
    return class;
}

static void release_spare(Heap *h)
{
    for (int i = 0; i < HEAP_CLASSES; i++)
        while (h->spare[i]) {
            HeapBlock *b = h->spare[i];
            h->spare[i] = b->next;
            memory_release(h->memory, b, b->size);
        }
}

static void close_heap(void *thing)
{
    Heap *h = thing;
    h->reuses = false;
    while (h->blocks.next != &h->blocks)
        heap_free(h, (char *)h->blocks.next + HEADER);
    release_spare(h);
}

void heap_open(Heap *h, Memory *m)
{
    *h = (Heap){ .memory = m };
    h->blocks.next = h->blocks.prev = &h->blocks;
    cleanup_push(m, &h->cleanup, close_heap, h);
}

void heap_keep(Heap *h)
{
    cleanup_drop(&h->cleanup);
}

void heap_reuse(Heap *h)
{
    h->reuses = true;
}

void heap_close(Heap *h)
{
    cleanup_drop(&h->cleanup);
    close_heap(h);
}

static void link_block(Heap *h, HeapBlock *b)
{
    b->next = &h->blocks;
    b->prev = h->blocks.prev;
    b->prev->next = b->next->prev = b;
}

/* Takes one that waits: the last that came, whose pages are warm; where poison finds uses of what was freed, the first. */
static HeapBlock *take_spare(HeapBlock **spare)
{
    while (RED_ZONE > 0 && (*spare)->next)
        spare = &(*spare)->next;
    HeapBlock *b = *spare;
    *spare = b->next;
    return b;
}

/* A block that waited, of this class or one little larger; or else a fresh one. */
static HeapBlock *reused(Heap *h, size_t *size)
{
    const int class = class_of(size);
    for (int i = class; class >= 0 && i <= class + LARGER; i++)
        if (h->spare[i]) {
            HeapBlock *b = take_spare(&h->spare[i]);
            *size = b->size;
            return b;
        }
    const Memory *m = h->memory;
    if (m->budget && m->used + *size > m->budget)
        release_spare(h);
    return memory_block(h->memory, *size);
}

void *heap_alloc(Heap *h, size_t size)
{
    if (size > PTRDIFF_MAX - HEADER)
        memory_exhausted(h->memory);
    size_t whole = size + HEADER;
    HeapBlock *b = h->reuses ? reused(h, &whole) : memory_block(h->memory, whole);
    char *block = (char *)b + HEADER;
    b->size = whole;
    link_block(h, b);
    poison(b + 1, whole - sizeof *b);
    unpoison(block, size);
    return block;
}

void heap_take(Heap *h, void *block)
{
    HeapBlock *b = (HeapBlock *)((char *)block - HEADER);
    b->prev->next = b->next;
    b->next->prev = b->prev;
    link_block(h, b);
}

void heap_free(Heap *h, void *block)
{
    if (!block)
        return;
    HeapBlock *b = (HeapBlock *)((char *)block - HEADER);
    b->prev->next = b->next;
    b->next->prev = b->prev;
    size_t size = b->size;
    const int class = h->reuses ? class_of(&size) : -1;
    if (class >= 0 && size == b->size) { /* one from before heap_reuse may be of no class */
        b->next = h->spare[class];
        h->spare[class] = b;
        poison(block, b->size - HEADER);
        return;
    }
    memory_release(h->memory, b, b->size);
}
