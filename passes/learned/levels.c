/* Levels whose thresholds are learned, as N2UQ has them: a number is as many intervals of widths of their own behind the start
 * as it has passed, and as far on its way to the next level as it is through the one that it is in.  Whoever rounds that has
 * passed the middle of an interval, its threshold. */
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/learned/learned.h"

/* The widths, each a number of its own. */
static void each_width(Build *b, Node *widths, int n, Node **width)
{
    Tensor *lengths = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, I64, n));
    for (int i = 0; i < n; i++)
        tensor_set_f64(lengths, i, 1);
    Node *all = n > 1 ? make_split(b, widths, 0, build_const(b, lengths), n) : widths;
    for (int i = 0; i < n; i++)
        width[i] = make_reshape(b, n > 1 ? build_part(b, all, i) : all, 0, NULL);
}

/* How far numbers are through an interval.  What lies where the first one begins, as behind a Relu most does, is outside. */
static Node *passed(Build *b, Node *x, Node *edge, Node *width, bool first)
{
    Node *zero = build_scalar(b, F32, 0), *one = build_scalar(b, F32, 1);
    Node *part = CALL(b, clip, CALL(b, div, CALL(b, sub, x, edge), width), zero, one);
    return first ? CALL(b, where, CALL(b, less, edge, x), part, zero) : part;
}

Node *learned_levels(Build *b, Node *x, Node *widths, Node *start, int n)
{
    Node *width[LEARNED_LEVELS], *level = NULL, *edge = start;
    each_width(b, widths, n, width);
    for (int i = 0; i < n; i++) {
        Node *part = passed(b, x, edge, width[i], i == 0);
        level = i ? CALL(b, add, level, part) : part;
        edge = CALL(b, add, edge, width[i]);
    }
    return level;
}

Node *learned_levels_of(const Node *level)
{
    while (level->op == OP_add && level->flags & NODE_OURS)
        level = in(level, 0);
    const Node *inside = level->op == OP_where ? in(level, 0) : NULL;
    return inside && inside->op == OP_less && inside->flags & NODE_OURS ? in(inside, 1) : NULL;
}
