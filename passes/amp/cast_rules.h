/* What the rules of fold-casts decide and build, by the part of the rule list they belong to. */
#ifndef PASSES_AMP_CAST_RULES_H
#define PASSES_AMP_CAST_RULES_H

#include "passes/engine/pattern.h"

/* Element types of mixed precision: f32, f16, bf16. */
static inline bool is_amp_width(DType t)
{
    return t == F32 || t == F16 || t == BF16;
}

/* A tensor whose element type is f32, or 16 bits wide. */
static inline bool is_wide(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

static inline bool is_narrow(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == F16 || n->type->dtype == BF16);
}

/* Forward, backward or update. */
static inline int side_of(const Node *n)
{
    return n->flags & (NODE_BACKWARD | NODE_UPDATE);
}

/* The builder, with the marks of a call that is built again. */
static inline Build build_as(const Build *b, const Node *n)
{
    Build own = *b;
    own.src = n->src;
    own.flags = n->flags;
    own.label = n->label;
    return own;
}

/* C-6: whether everybody goes on seeing one value when the reader of a narrow copy reads the wide value instead. */
bool one_view_remains(const Match *m);

/* C-9, C-10: what widening and narrowing casts change places with, operand 0 or (behind a condition) 1 being data. */
bool passes_up(const OpDef *def);
bool passes_down(const OpDef *def);
bool chooses_up(const OpDef *def);
bool chooses_down(const OpDef *def);

/* C-9, C-10: `move(cast(x))` becomes `cast(move(x))`, all data operands at once; null: one of them has no such form. */
bool may_go_behind(const Match *m);
Node *cast_behind(Build *b, const Match *m);

/* C-9, C-10: `cast(move(x))`, narrowing, becomes `move(cast(x))`, reading the narrow copies that are there already. */
bool may_go_before(const Match *m);
Node *cast_before(Build *b, const Match *m);

/* C-11: a contraction gives what the cast of its result gave. */
bool may_give_wide(const Match *m);
bool may_give_narrow(const Match *m);
Node *give_as_cast(Build *b, const Match *m);

/* C-14: what compares; a comparison of narrow values as they are, or with a constant, made with narrow values that give the
 * same answers. */
bool compares(const OpDef *def);
bool compares_widened(const Match *m);
Node *compare_as_they_are(Build *b, const Match *m);
Node *compare_narrow(Build *b, const Match *m);

/* The nearest values of F16 or BF16 that are not less, and not greater, than a number. */
double amp_at_least(double value, DType narrow);
double amp_at_most(double value, DType narrow);

#endif
