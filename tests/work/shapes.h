/* Files in which there is many of one thing. */
#ifndef TESTS_WORK_SHAPES_H
#define TESTS_WORK_SHAPES_H

#include "onnx_bytes.h"

typedef struct Shape {
    const char *name;
    Bytes (*model)(int n);
    int n; /* of the smaller file; the larger has four times as many */
} Shape;

extern const Shape shapes[];
extern const size_t n_shapes;

#endif
