/* The states of a pattern: what pattern_read.c makes and pattern.c walks through.  A piece of code is entered at its
 * first state and left behind its last; all steps are relative, so that a copy of a piece means the same. */
#ifndef BASE_PATTERN_CODE_H
#define BASE_PATTERN_CODE_H

#include "base/pattern.h"

/* Characters are numbers of Unicode; a byte that is part of none comes behind them. */
enum { PATTERN_BYTES = 0x110000, PATTERN_CHARACTERS = PATTERN_BYTES + 256 };

typedef enum PatternKind {
    PATTERN_SET,   /* takes a character out of `second` ranges from `first` on */
    PATTERN_SPLIT, /* goes on at `first` and at `second` */
    PATTERN_JUMP,  /* goes on at `first` */
    PATTERN_BEGIN, /* goes on where the text begins */
    PATTERN_END,   /* goes on where it ends */
    PATTERN_FOUND
} PatternKind;

typedef struct PatternState {
    PatternKind kind;
    int32_t first, second;
} PatternState;

/* Characters from `low` to `high`; those of a set are in order and apart. */
typedef struct PatternRange {
    uint32_t low, high;
} PatternRange;

typedef struct PatternCode {
    PatternState *states;
    PatternRange *ranges;
    size_t n, cap, n_ranges, cap_ranges;
} PatternCode;

/* The character at a text that goes on, which is left behind it. */
uint32_t pattern_character(const char **text);

/* The walker over code that is complete. */
TextPattern *pattern_open(Arena *a, const PatternCode *code);

#endif
