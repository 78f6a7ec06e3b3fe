/* The skeleton of a file: the same message without its weights.
 *
 * It is the file's own bytes, cut:
 *   - the value of a payload field (raw_data, or a packed run of float_data, int64_data ...) becomes 16 bytes, where it
 *     lies: offset and length in the file, both little-endian 64-bit;
 *   - payload elements that are not packed, and strings, which never are, become one such value for each unbroken run
 *     of fields; the top bit of its length says so, and the range it names is made of whole fields, keys included;
 *   - messages that have them get the fields source_at and source_size: where their body lies in the file;
 *   - unknown fields are left out (whoever writes the file anew copies them from the file, not from here). */
#ifndef FRONTENDS_ONNX_FILE_SKELETON_H
#define FRONTENDS_ONNX_FILE_SKELETON_H

#include "frontends/onnx/file/splice.h"

/* Where payload lies in the file. */
typedef struct Span {
    uint64_t offset, length;
    bool keyed; /* whole fields, not one run of elements */
} Span;

enum { SPAN_BYTES = 16 };

/* Reads what stands in the place of a payload. */
Span span_read(const uint8_t *p);

/* Checks the source and makes its skeleton, which lives in wire->arena; the visitor of `wire` is not used. */
Status skeleton_make(const Wire *wire, const uint8_t **bytes, size_t *n);

#endif
