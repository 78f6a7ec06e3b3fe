/* The format of a golden file:
 *
 *     # run: fold-casts verify        what is done (default: print), the words of run.c, passes, or pipelines
 *     # recipe: --clip-norm 1         of the training step, for its passes (support/recipe.h)
 *     # rounds                        values may differ by roundings
 *     # narrow                        and by another width
 *     # no-values                     both sides are not evaluated
 *     graph ... { ... }               # error: a complaint about this line, or a part of it
 *     ==>
 *     graph ... { ... }               exactly what must come out
 *
 * Without `==>` the first part comes out as it is, comment lines at the top apart, or ends in the errors named. */
#ifndef TESTS_GOLDEN_FILE_H
#define TESTS_GOLDEN_FILE_H

#include "base/diag.h"
#include "base/str.h"

typedef struct Expected {
    int line;
    Str text;
    bool met;
} Expected;

typedef struct Golden {
    const char *path;
    Str text;   /* whole */
    Str input;  /* up to the arrow */
    Str body;   /* input without comment lines at the top */
    Str output; /* behind the arrow */
    bool has_output, rounds, narrow, no_values;
    Str run;
    Expected *errors;
    size_t n_errors, cap_errors;
    int lines; /* of the input */
} Golden;

/* Takes a file apart. */
void golden_read(Golden *g, Arena *arena, const char *path, Str text);

/* The text of a message that expectations are held against: what it says, then " | try: " and what it proposes. */
const char *golden_message(Arena *arena, const Message *m);

/* Marks the expectation that a message meets; false when there is none. */
bool golden_meet(Golden *g, Arena *arena, const Message *m);

/* Whether the line of a message says `# error: ...`: an update records whatever is wrong there. */
bool golden_takes_any(const Golden *g, const Message *m);

/* The file with other errors and another output; a null output leaves the arrow out. */
Str golden_rewritten(const Golden *g, Arena *arena, const Message *const *errors, size_t n, const char *output);

#endif
