/* A context for tests of the language: the product's words and a few made for testing, messages kept as text. */
#ifndef TESTS_SUPPORT_LANGUAGE_H
#define TESTS_SUPPORT_LANGUAGE_H

#include "ir/text/parse.h"
#include "ir/text/print.h"

typedef struct Language {
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    Text messages;        /* as they are shown */
    const Message **list; /* the same, one by one */
    size_t n_list, cap_list;
    OpTable ops;
    SourceMap source;
    Text input; /* of whoever wants to keep one */
} Language;

/* Opens it; ended by language_close. */
void language_open(Language *l);

/* The same over l->memory, which the caller opened. */
void language_open_over(Language *l);

/* Gives everything back. */
void language_close(Language *l);

/* Parses a text that is called test.qir; null after a failure, which l->messages then tells. */
Module *language_parse(Language *l, const char *text, Blobs *blobs);

/* The text of a module. */
const char *language_print(Language *l, const Module *m, Blobs *blobs);

#endif
