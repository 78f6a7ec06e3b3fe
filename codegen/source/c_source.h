/* A model of integers as C: one translation unit of C99 that needs no library but stdint.h and string.h, allocates
 * nothing and holds no floats where its user wants none.
 *
 * What is printed is a graph whose calls compute on codes (passes/quant/take_integers.c), all sizes known.  Each call
 * is a function, tables are constant, values lie in an arena of the caller's, planned here.  Codes are those of the
 * evaluator, bit for bit: what that rounds as f32 is rounded to 24 bits in integers (c_runtime.c). */
#ifndef CODEGEN_SOURCE_C_SOURCE_H
#define CODEGEN_SOURCE_C_SOURCE_H

#include "base/text.h"
#include "ir/graph.h"

typedef struct CSourceOptions {
    const char *name;    /* of the model, where its graph has none */
    const char *made_by; /* "qcc 0.1" */
    bool header;         /* the interface alone */
} CSourceOptions;

/* Appends the source.  UNSUPPORTED, reported with the node and a way on, where something computes on floats, has an
 * open size, or is no word that is known here. */
Status c_source_print(Text *out, Graph *g, const CSourceOptions *options);

#endif
