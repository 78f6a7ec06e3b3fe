/* Words of quantizers with an argument that each takes, for tests that walk through all of them. */
#ifndef TESTS_SUPPORT_QUANT_WORDS_H
#define TESTS_SUPPORT_QUANT_WORDS_H

#include <stdio.h>

#include "passes/recipe/quantizer.h"

typedef enum QuantArgument { NONE, MAYBE, REAL, WHOLE, PAIR } QuantArgument;

typedef struct QuantWord {
    QuantField field;
    const char *word;
    QuantArgument argument;
} QuantWord;

static const QuantWord quant_words[] = {
#define WORD(field, word, value, argument, ...) { QUANT_##field, word, argument },
    QUANT_WORDS(WORD)
#undef WORD
};

enum { QUANT_WORD_ROOM = 32 };

/* A word as it is written: with 0.5, with `whole` elements, with two such rows. */
static inline void quant_word_say(char to[QUANT_WORD_ROOM], const QuantWord *w, int whole)
{
    if (w->argument == REAL)
        snprintf(to, QUANT_WORD_ROOM, "%s=0.5", w->word);
    else if (w->argument == WHOLE)
        snprintf(to, QUANT_WORD_ROOM, "%s=%d", w->word, w->field == QUANT_TURN ? 16 : whole);
    else if (w->argument == PAIR)
        snprintf(to, QUANT_WORD_ROOM, "%s=2x%d", w->word, whole);
    else
        snprintf(to, QUANT_WORD_ROOM, "%s", w->word);
}

#endif
