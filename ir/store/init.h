/* Initial values that are said, not stored: zeros, ones, uniform, normal, kaiming.  A payload of this kind is
 * computed when it is first read; the same seed gives the same bits everywhere. */
#ifndef IR_STORE_INIT_H
#define IR_STORE_INIT_H

#include "ir/tensor.h"

/* clang-format off */
/*     enumerator   word       draws   what                                                                  */
#define INITS(_)                                                                                               \
    _( ZEROS,       "zeros",   false,  "0"                                                                   ) \
    _( ONES,        "ones",    false,  "1"                                                                   ) \
    _( UNIFORM,     "uniform", true,   "evenly in [-scale, scale)"                                           ) \
    _( NORMAL,      "normal",  true,   "with mean 0 and standard deviation scale"                            ) \
    _( KAIMING,     "kaiming", true,   "evenly in [-b, b) for b = scale * sqrt(6 / inputs of one unit)"      )
/* clang-format on */

typedef enum InitKind {
#define ENUMERATOR(id, word, draws, what) INIT_##id,
    INITS(ENUMERATOR)
#undef ENUMERATOR
        INIT_COUNT
} InitKind;

typedef struct Init {
    InitKind kind;
    uint64_t seed;
    float scale;
} Init;

/* "kaiming"; never null. */
const char *init_word(InitKind kind);

/* Whether it draws, and so takes seed and scale. */
bool init_draws(InitKind kind);

/* A payload of a known tensor type with these values. */
Payload *payload_init(Arena *arena, const Type *type, Init init);

/* What payload_init made it from; false when it was made otherwise. */
bool payload_is_init(const Payload *p, Init *init);

#endif
