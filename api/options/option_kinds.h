/* What --loss, --optimizer and --schedule take, from the tables that read them: for help and completion. */
#ifndef API_OPTIONS_OPTION_KINDS_H
#define API_OPTIONS_OPTION_KINDS_H

#include "api/options/options.h"
#include "ir/graph.h"

enum { KIND_SETTINGS = 16 };

/* A word that an option begins with, and its settings: their names, and with a default behind = where there is one. */
typedef struct OptionKind {
    const char *word, *what; /* what it is, in words; null: its name says it */
    const char *settings[KIND_SETTINGS];
    size_t n;
} OptionKind;

/* The kinds of an option, in `arena`; 0: it has none.  `ops` has the cards of optimizers. */
size_t option_kinds(const OpTable *ops, Arena *arena, Option o, OptionKind **kinds);

/* Appends them all as --help=loss says them. */
void kinds_print(Text *t, const OpTable *ops);

/* Appends those of one option, as a case of the completion does. */
void kinds_complete(Text *t, const OpTable *ops, Option o);

#endif
