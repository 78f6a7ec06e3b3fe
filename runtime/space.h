/* Memory that values lie in: the host's, or a device's, which only runs on that device and what is here touch.
 *
 * A space on a device works in order and may work late.  Its first failure sticks: whatever is asked of it from then on does
 * nothing, and space_status() says what failed, once it is asked.  So none of the rest has an answer. */
#ifndef RUNTIME_SPACE_H
#define RUNTIME_SPACE_H

#include "base/bytes.h"
#include "ir/tensor.h"

typedef struct Space Space;

/* Bytes that are asked for. */
typedef struct SpaceRead {
    void *host;
    const void *from;
    size_t bytes;
} SpaceRead;

/* Memory for bytes that come to a space while something runs there. */
typedef struct Brought Brought;

typedef struct SpaceClass {
    void *(*take)(Space *s,
                  size_t bytes); /* a block, aligned to 256; what is taken is given back when the space ends */
    void (*give)(Space *s, void *block);
    void (*write)(Space *s, void *to, const void *host, size_t bytes); /* the host's bytes are read before it returns */
    void (*read)(Space *s, int n, const SpaceRead *list);              /* waits once for what is small */
    void (*copy)(Space *s, void *to, const void *from, size_t bytes);
    void (*zero)(Space *s, void *at, size_t bytes);

    /* Has bytes of the host on their way beside what runs; they are read before it returns.  `b` was given the last time (null:
     * none was) and lives as long as the space; null: it failed. */
    Brought *(*bring)(Space *s, Brought *b, const void *host, size_t bytes);

    /* Copies what was brought to where it belongs, before whatever is asked for from then on. */
    void (*take_brought)(Space *s, Brought *b, void *to);

    Status (*status)(Space *s);
} SpaceClass;

/* What is null is the host's memory. */
struct Space {
    const SpaceClass *does;
};

/* OK, or what failed, reported. */
static inline Status space_status(Space *s)
{
    return s ? s->does->status(s) : OK;
}

static inline void space_write(Space *s, void *to, const void *host, size_t bytes)
{
    if (!s)
        bytes_copy(to, host, bytes);
    else if (bytes)
        s->does->write(s, to, host, bytes);
}

static inline void space_read(Space *s, void *host, const void *from, size_t bytes)
{
    if (!s)
        bytes_copy(host, from, bytes);
    else if (bytes)
        s->does->read(s, 1, &(SpaceRead){ host, from, bytes });
}

/* The same, of several places of a space. */
static inline void space_read_all(Space *s, int n, const SpaceRead *list)
{
    if (n)
        s->does->read(s, n, list);
}

static inline void space_copy(Space *s, void *to, const void *from, size_t bytes)
{
    if (!s)
        bytes_copy(to, from, bytes);
    else if (bytes)
        s->does->copy(s, to, from, bytes);
}

/* Whether values of a type lie in it: tensors do, everything else stays on the host. */
bool space_holds(const Space *s, const Type *type);

/* A tensor held once, its head in the heap and its data in the space, not zeroed. */
Tensor *space_tensor(Space *s, Heap *heap, const Type *type);

/* One holder less; the last one gives the memory back. */
void space_drop(Space *s, Heap *heap, Tensor *t);

#endif
