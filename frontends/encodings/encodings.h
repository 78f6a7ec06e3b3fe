/* Encodings: the file that AIMET writes beside a model, which says for values by name how they become codes.
 *
 * Three forms of it are read: entries by name (versions 0.x), lists of entries with names (1.0.0), and one list with element
 * types and zero points as ONNX has them (2.0.0).  Here, an entry of b bits has for each scale an offset, the least code:
 * code 0 .. 2^b - 1 stands for (code + offset) * scale. */
#ifndef FRONTENDS_ENCODINGS_ENCODINGS_H
#define FRONTENDS_ENCODINGS_ENCODINGS_H

#include "base/str.h"
#include "ir/graph.h"

enum { NO_AXIS = -1 };

/* How one value becomes codes. */
typedef struct Encoding {
    const char *name;
    bool is_float, symmetric;
    int64_t bits;
    size_t n; /* of scales: 1, or one for each channel */
    int axis; /* along which channels lie; NO_AXIS: the file says nothing */
    double *scale;
    int64_t *offset;
} Encoding;

typedef struct Encodings {
    const char *path;
    Encoding *list; /* in the order of the file */
    size_t n, cap;
} Encodings;

/* Reads a file's text, all of it in `arena`; INVALID, with the entry, where it is no such file, UNSUPPORTED for what cannot
 * be held (blocks). */
Status encodings_read(Encodings *e, const char *path, Str text, Arena *arena, Diag *d);

/* What became of the entries. */
typedef struct EncodingsPlaced {
    size_t values, parameters; /* that are codes now */
    size_t guessed;            /* parameters whose channels are those of who reads them, since the file says no axis */
    size_t floats, wide;       /* entries of floats, and of 32 bits, which stay numbers */
    const char **absent;       /* names that the model has no value for */
    size_t n_absent, cap_absent;
} EncodingsPlaced;

/* Places a quantizer, and behind it the numbers of its codes, at every value that is named: whoever read it reads those. */
Status encodings_place(const Encodings *e, Graph *g, EncodingsPlaced *placed);

#endif
