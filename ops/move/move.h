/* Moving elements as bytes: one engine for everything that only puts elements somewhere else.  Elements are raw: 1,
 * 2, 4, 8 or 16 bytes; packed ones are unpacked to bytes, moved and packed again. */
#ifndef OPS_MOVE_MOVE_H
#define OPS_MOVE_MOVE_H

#include "ops/card/cards.h"

/* The elements of a tensor, one to `size` bytes. */
typedef struct Raw {
    char *data;
    size_t size;
} Raw;

/* The elements of a tensor, to be read. */
Raw raw_of(Eval *e, const Tensor *t);

/* The elements of operand i, to be read. */
Raw raw_in(Eval *e, int i);

/* Room for the elements of a fresh tensor; raw_close puts them there. */
Raw raw_open(Eval *e, const Tensor *t);
void raw_close(Tensor *t, Raw r);

/* Writes `n` copies of one element. */
void raw_fill(void *to, const void *element, int64_t n, size_t size);

/* `n` times the element whose bytes are all zero. */
void raw_zero(void *to, int64_t n, size_t size);

enum { MOVE_RANK = 2 * MAX_RANK };

/* Nested loops, the last one innermost: element i of an axis lies i * to and i * from elements from the first one. */
typedef struct Move {
    Eval *e; /* whose threads and loops may be used; or null */
    size_t size;
    int rank;
    struct MoveAxis {
        int64_t n, to, from;
    } axis[MOVE_RANK];
} Move;

/* Adds an axis inside those that are there. */
void move_axis(Move *m, int64_t n, int64_t to, int64_t from);

/* Copies element by element; the two sides must not overlap. */
void move_run(const Move *m, void *to, const void *from);

/* Row-major strides of a shape. */
void move_strides(int rank, const int64_t *dims, int64_t *strides);

/* Elements of the axes first .. last - 1. */
int64_t move_count(const int64_t *dims, int first, int last);

/* y[i, j, ..] = x[map0[i], map1[j], ..] for a dense x of shape `from` and a dense y of shape `to`.  A null map is the
 * identity; an entry of -1 stands for the element `fill`. */
void move_mapped(size_t size, int rank, void *y, const int64_t *to, const void *x, const int64_t *from,
                 const int64_t *const *map, const void *fill);

/* Copies the whole of operand 0 into result 0, whose shape may differ. */
Status move_whole(Eval *e);

#endif
