/* Where the nodes of a file come from in the program behind it: on the way in, and as a note of our own files. */
#ifndef FRONTENDS_ONNX_READ_ORIGINS_H
#define FRONTENDS_ONNX_READ_ORIGINS_H

#include "frontends/onnx/read/importer.h"

/* Adds what PyTorch's exporter says of a node of the file. */
void import_origin(Importer *im, Graph *g, const Onnx__NodeProto *o);

/* Gives nodes that say nothing, in a graph where others do, the module that what they read and their readers share. */
void import_origins_between(Importer *im, Graph *g);

/* The origins of a graph as one text. */
const char *origins_note(Arena *arena, const Graph *g);

/* Reads such a text into a graph that has none yet; false: it is not ours. */
bool origins_read(Graph *g, const char *text);

#endif
