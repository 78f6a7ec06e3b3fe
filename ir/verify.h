/* Whether a graph is one: what every pass may rely on. */
#ifndef IR_VERIFY_H
#define IR_VERIFY_H

#include "ir/text/parse.h"

/* Checks a graph and its regions: values are defined before they are read and read where they are, names and ids are
 * unique, use lists are whole, every call fits its card and has the type that the card infers, results that are the
 * next values of states have their types.  Reports every complaint (a hundred at most); INVALID when there was one.
 * `source`, which may be null, gives them lines. */
Status verify(Graph *g, SourceMap *source);

/* Checks every graph of a module, and that states of one name have one type. */
Status verify_module(const Module *m, SourceMap *source);

#endif
