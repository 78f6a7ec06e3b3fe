/* The options that a checkpoint says its step was compiled with, one by one. */
#ifndef RUNTIME_CHECKPOINT_OPTION_WORDS_H
#define RUNTIME_CHECKPOINT_OPTION_WORDS_H

#include "base/arena.h"
#include "base/str.h"

/* The next option of a line of them, with its value, which may be quoted; empty at the end. */
Str option_words_next(const char **line);

/* The options of one line that another does not have. */
const char *options_without(Arena *arena, const char *options, const char *others);

#endif
