/* Text to graphs (docs/qir.md).  The first mistake ends it, with line, column and a caret. */
#ifndef IR_TEXT_PARSE_H
#define IR_TEXT_PARSE_H

#include "ir/graph.h"
#include "ir/store/blob.h"

/* Where the nodes of a parsed module stand in its text. */
typedef struct SourceMap {
    Arena *arena;
    Str text; /* must stay where it is */
    const char *file;
    const Module *module;
    Facts *lines; /* of graph i: a SourceLine a node */
} SourceMap;

typedef struct SourceLine {
    const char *at;
    int line;
} SourceLine;

/* Parses a file of graphs.  `blobs` holds the constants it refers to by name; null: there are none.  `source`,
 * which may be null, is filled in `arena`. */
Status parse_module(Ir *ir, Arena *arena, Str text, const char *file, Blobs *blobs, SourceMap *source, Module **module);

/* Reads a .qir file and, where it has one, its FILE.safetensors. */
Status parse_file(Ir *ir, Arena *arena, const char *path, SourceMap *source, Module **module);

/* Where a node stands; node_place when `s` is null or does not know it. */
Place source_map_place(SourceMap *s, const Node *n);

#endif
