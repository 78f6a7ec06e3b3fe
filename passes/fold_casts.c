/* fold-casts: removes conversions that say nothing.
 *
 *     graph @f(%a: f16[4]) -> (%c) {
 *         %b: f32[4] = cast(%a, to=f32)
 *         %c: f16[4] = cast(%b, to=f16)
 *     }
 *     ==>
 *     graph @f(%a: f16[4]) -> (%c = %a) {
 *     }
 *
 * A narrowing is never folded away: f32 -> f16 -> f32 is a rounding, and someone asked for it.  Nor are two roundings
 * made one. */
#include "passes/pattern.h"

static bool to_own_type(const Match *m)
{
    return m->root->type == m->x[0]->type;
}

static bool inner_loses_nothing(const Match *m)
{
    return dtype_holds(m->node[1]->type->dtype, m->x[0]->type->dtype);
}

static bool there_and_back(const Match *m)
{
    return to_own_type(m) && inner_loses_nothing(m);
}

/* clang-format off */
static const Rule rules[] = {
    /* name                  exactness  match                  become                  build  when                */
    { "cast-to-own-type",    EXACT,     P(cast, X),            X,                      NULL,  to_own_type         },
    { "cast-there-and-back", EXACT,     P(cast, P(cast, X)),   X,                      NULL,  there_and_back      },
    { "cast-of-cast",        EXACT,     P(cast, P(cast, X)),   LIKE(0, P(cast, X)),    NULL,  inner_loses_nothing },
};
/* clang-format on */

const Pass pass_fold_casts = {
    .name = "fold-casts", .needs = TYPED, .may = EXACT, .rules = rules, .n_rules = COUNT(rules)
};
