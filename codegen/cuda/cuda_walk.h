/* Coordinates and places in the text of kernels, from how a call walks what it reads and makes (ops/card/access.h). */
#ifndef CODEGEN_CUDA_CUDA_WALK_H
#define CODEGEN_CUDA_CUDA_WALK_H

#include "base/text.h"
#include "ops/card/access.h"

typedef struct CudaWalk {
    Text *out;
    Arena *arena;
    const Node *call;
    Iteration it;
    const char *index; /* the type of coordinates: i32, or i64 where that counts too few */
    bool folded[SPACE_RANK];
    int solved_by
        [SPACE_RANK]; /* of a folded axis: the dimension of the result that says where along it one is; NO_DIM */
} CudaWalk;

enum { NO_DIM = -1 };

/* Opens the walk of a call; null, or why kernels cannot follow it. */
const char *cuda_walk_open(CudaWalk *w, Text *out, const Node *call);

/* Points that lead to one element, and elements of a result. */
int64_t cuda_walk_points(const CudaWalk *w);
int64_t cuda_walk_elements(const CudaWalk *w);

/* Prints the coordinates of the element `o` of result 0 along the axes that are not folded; null, or why that is not
 * known. */
const char *cuda_walk_from_result(CudaWalk *w, int indent);

/* Prints the coordinates along some axes, the slowest first, that a number counts; the number of those that a point has. */
void cuda_walk_digits(const CudaWalk *w, const int *axes, int n, const char *number, int indent);
const char *cuda_walk_number(const CudaWalk *w, const int *axes, int n);

/* Prints the coordinates of the point with the number `o`. */
void cuda_walk_from_point(const CudaWalk *w, int indent);

/* Prints loops over the folded axes, the slowest first, and what lets those points through that lead to the element; how many
 * braces are open behind it. */
int cuda_walk_loops(const CudaWalk *w, int indent);

/* One more term of a sum of coordinates: "p5 * 3" behind what stands there. */
void cuda_walk_term(Text *t, int64_t times, const char *what, int number);

/* The place of an operand or a result at the point, where indices j0, .. are known if it has any, and the condition that it has one there; null: always. */
const char *cuda_walk_place(const CudaWalk *w, const Access *a, const Type *t);
const char *cuda_walk_inside(const CudaWalk *w, const Access *a, const Type *t);

#endif
