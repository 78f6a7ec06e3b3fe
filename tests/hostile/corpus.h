/* The hostile corpus: files that mean harm, each with what has to be said about it.
 *
 * A case goes through the command (`check`), then through reading, writing as text and back, and evaluation on zeros;
 * the first of these that answers something else than OK must answer `want`, in time, with a message that names the
 * file and has `says` in it. */
#ifndef TESTS_HOSTILE_CORPUS_H
#define TESTS_HOSTILE_CORPUS_H

#include "hostile/sketch.h"
#include "qcc/qcc.h"

typedef struct Corpus {
    double lap, longest; /* processor seconds: when the running step began, what the longest of the case took */
    char folder[64];     /* empty between cases, but for what a class puts there */
    bool large;          /* the cases that take long, instead of the others */
    const char *filter;
    const char *class; /* at hand */
    int cases[64], failed;
    /* allocations of the context at hand */
    int64_t blocks, bytes;
    char said[20000];
} Corpus;

/* One model by a sketch. */
typedef struct SketchCase {
    const char *name;
    int want;
    const char *says; /* null: nothing is expected to be said */
    const char *text;
} SketchCase;

/* The models of a class, one after the other. */
void corpus_sketches(Corpus *c, const SketchCase *cases, size_t n);

/* One model by its bytes, which are freed. */
void corpus_bytes(Corpus *c, const char *name, int want, const char *says, Bytes bytes);

/* One model in a file of the folder. */
void corpus_file(Corpus *c, const char *name, int want, const char *says, const char *path);

/* Counts a case that a class judged by itself. */
void corpus_judge(Corpus *c, const char *name, bool good, const char *what);

/* A context of the corpus: bounded, one thread, its allocations counted; closed by corpus_close, which says whether
 * all of them came back. */
qcc_context *corpus_open(Corpus *c);
bool corpus_close(Corpus *c, qcc_context *cx);

/* Writes a file of the folder; its path in `path`. */
void corpus_write(Corpus *c, const char *name, const void *bytes, size_t n, char path[4096]);

/* The classes, by file. */
void wire_classes(Corpus *c);
void string_classes(Corpus *c);
void graph_classes(Corpus *c);
void tensor_classes(Corpus *c);
void attribute_classes(Corpus *c);
void value_classes(Corpus *c);
void file_classes(Corpus *c);

/* Begins a class: whether its cases are wanted. */
bool corpus_class(Corpus *c, int number);

#endif
