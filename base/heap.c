#include "base/heap.h"

enum { HEADER = 64 };
_Static_assert(sizeof(HeapBlock) <= HEADER, "the header keeps the alignment of what follows");

static void close_heap(void *thing)
{
    Heap *h = thing;
    while (h->blocks.next != &h->blocks)
        heap_free(h, (char *)h->blocks.next + HEADER);
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

void *heap_alloc(Heap *h, size_t size)
{
    if (size > PTRDIFF_MAX - HEADER)
        memory_exhausted(h->memory);
    HeapBlock *b = memory_block(h->memory, size + HEADER);
    b->size = size + HEADER;
    link_block(h, b);
    return (char *)b + HEADER;
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
    memory_release(h->memory, b, b->size);
}
