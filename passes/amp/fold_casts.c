/* fold-casts: removes conversions that say nothing, and puts the others where they move the fewest bytes.
 *
 *     graph @f(%a: f16[4], %b: f16[2,2]) -> (%c, %y) {
 *         %wide: f32[4] = cast(%a, to=f32)
 *         %c: f16[4] = cast(%wide, to=f16)
 *         %up: f32[2,2] = amp_cast(%b, to=f32) ours
 *         %y: f32[2,2] = transpose(%up, perm=[1, 0])
 *     }
 *     ==>
 *     graph @f(%a: f16[4], %b: f16[2,2]) -> (%c = %a, %y) {
 *         %0: f16[2,2] = transpose(%b, perm=[1, 0])
 *         %y: f32[2,2] = amp_cast(%0, to=f32) ours
 *     }
 *
 * A `cast` is the user's: it goes where not a bit changes, and it stays where it stands.  An `amp_cast` is ours: it
 * moves, and a rounding of ours may go (ELASTIC).  Two roundings are never made one otherwise, and nothing moves across
 * arithmetic, steps or decisions (docs/passes.md has the list). */
#include "base/hash.h"
#include "ops/card/attrs.h"
#include "ops/quant/quantize.h"
#include "passes/amp/amp.h"
#include "passes/amp/cast_rules.h"

/* ---- C-1, C-2 ---- */

static bool to_own_type(const Match *m)
{
    return m->root->type == m->x[0]->type;
}

/* A cast to f8e5m2 makes a number of an infinity, when it saturates; none to an element's own type does anything. */
static bool loses_infinity(const Match *m)
{
    const CastAttr *at = m->attr[0];
    const DType from = m->x[0]->type->dtype;
    return from == F8E5M2 && from == m->root->type->dtype && at->saturate;
}

/* What is kept as bits is kept so on purpose. */
static bool inner_loses_nothing(const Match *m)
{
    return m->node[1]->type->dtype != BIT && !loses_infinity(m) &&
           dtype_holds(m->node[1]->type->dtype, m->x[0]->type->dtype);
}

static bool there_and_back(const Match *m)
{
    return to_own_type(m) && inner_loses_nothing(m);
}

static bool ours_reaches_inside(const Match *m)
{
    return inner_loses_nothing(m) && is_amp_width(m->x[0]->type->dtype);
}

/* ---- C-6 ---- */

static bool two_narrowings(const Match *m)
{
    return is_wide(m->x[0]) && is_narrow(m->node[1]) && is_narrow(m->root);
}

/* ---- C-15 ---- */

static bool widens(const Match *m)
{
    const Node *cast = m->node[m->n_nodes - 1];
    return is_narrow(in(cast, 0)) && is_wide(cast);
}

/* Indices of a call whose values nobody reads. */
static Node *indices_of_narrow(Build *b, const Match *m)
{
    const Node *call = m->node[1];
    const int n_out = type_results(call->type);
    Node **ins = NEWS(b->graph->arena, Node *, call->n_in);
    for (int i = 0; i < call->n_in; i++)
        ins[i] = i ? in(call, i) : m->x[0];
    Build own = build_as(b, call);
    Node *y = build_part(&own, build_node_n(&own, call->op, call->attr, call->n_in, ins, n_out), 1);
    b->status = own.status;
    return y;
}

static bool narrows(const Match *m)
{
    return is_narrow(m->root) && is_wide(m->node[1]);
}

static Node *dequantize_narrow(Build *b, const Match *m)
{
    const Node *call = m->node[1];
    DequantizeAttr attr = *(const DequantizeAttr *)call->attr;
    Node **ins = NEWS(b->graph->arena, Node *, call->n_in);
    for (int i = 0; i < call->n_in; i++)
        ins[i] = in(call, i);
    attr.output_dtype = (int)m->root->type->dtype + 1;
    Build own = build_as(b, call);
    Node *y = build_node(&own, call->op, &attr, call->n_in, ins);
    b->status = own.status;
    return y;
}

/* clang-format off */

#define SUMS(_)        _(matmul) _(gemm) _(conv) _(conv_transpose) _(conv_weight_grad)
#define GIVES_WIDE(word)   { "c11-wide-" #word,   ELASTIC, P(amp_cast, P(word, X, REST(0))), NULL, give_as_cast, may_give_wide },
#define GIVES_NARROW(word) { "c11-narrow-" #word, EXACT,   P(amp_cast, P(word, X, REST(0))), NULL, give_as_cast, may_give_narrow },

static const Rule rules[] = {
    /* name                       exactness  match                             become                   build  when                */
    { "c1-to-own-type",           EXACT,     P(cast, X),                       X,                       NULL,  to_own_type         },
    { "c1-amp-to-own-type",       EXACT,     P(amp_cast, X),                   X,                       NULL,  to_own_type         },

    { "c2-there-and-back",        EXACT,     P(cast, P(cast, X)),              X,                       NULL,  there_and_back      },
    { "c2-amp-there-and-back",    EXACT,     P(amp_cast, P(amp_cast, X)),      X,                       NULL,  there_and_back      },
    { "c2-there-and-amp-back",    EXACT,     P(amp_cast, P(cast, X)),          X,                       NULL,  there_and_back      },
    { "c2-amp-there-and-cast",    EXACT,     P(cast, P(amp_cast, X)),          X,                       NULL,  there_and_back      },
    { "c2-cast-of-cast",          EXACT,     P(cast, P(cast, X)),              LIKE(0, P(cast, X)),     NULL,  inner_loses_nothing },
    { "c2-cast-of-amp-cast",      EXACT,     P(cast, P(amp_cast, X)),          LIKE(0, P(cast, X)),     NULL,  inner_loses_nothing },
    { "c2-amp-cast-of-amp-cast",  EXACT,     P(amp_cast, P(amp_cast, X)),      LIKE(0, P(amp_cast, X)), NULL,  inner_loses_nothing },
    { "c2-amp-cast-of-cast",      EXACT,     P(amp_cast, P(cast, X)),          LIKE(0, P(amp_cast, X)), NULL,  ours_reaches_inside },

    { "c6-down-and-up",           ELASTIC,   P(amp_cast, P(amp_cast, X)),      X,                       NULL,  one_view_remains    },
    { "c6-two-narrowings",        ELASTIC,   P(amp_cast, P(amp_cast, X)),      LIKE(0, P(amp_cast, X)), NULL,  two_narrowings      },

    { "c9-cast-behind",           EXACT,     ANY(passes_up, P(amp_cast, X), REST(0)),               NULL, cast_behind, may_go_behind },
    { "c9-cast-behind-choice",    EXACT,     ANY(chooses_up, Z, P(amp_cast, X), REST(0)),           NULL, cast_behind, may_go_behind },
    { "c9-cast-behind-or-choice", EXACT,     ANY(chooses_up, Z, CONST, P(amp_cast, X)),             NULL, cast_behind, may_go_behind },
    { "c9-cast-before",           EXACT,     P(amp_cast, ANY(passes_down, X, REST(0))),             NULL, cast_before, may_go_before },
    { "c9-cast-before-choice",    EXACT,     P(amp_cast, ANY(chooses_down, Z, X, REST(0))),         NULL, cast_before, may_go_before },

    SUMS(GIVES_WIDE) SUMS(GIVES_NARROW)

    { "c14-widened",              EXACT,     ANY(compares, P(amp_cast, X), P(amp_cast, Y)), NULL, compare_as_they_are, compares_widened },
    { "c14-constant-right",       EXACT,     ANY(compares, P(amp_cast, X), CONST),          NULL, compare_narrow,      compares_widened },
    { "c14-constant-left",        EXACT,     ANY(compares, CONST, P(amp_cast, X)),          NULL, compare_narrow,      compares_widened },

    { "c15-shape",                EXACT,     P(shape, P(cast, X)),             LIKE(0, P(shape, X)),    NULL,  NULL                },
    { "c15-amp-shape",            EXACT,     P(shape, P(amp_cast, X)),         LIKE(0, P(shape, X)),    NULL,  NULL                },
    { "c15-size",                 EXACT,     P(size, P(cast, X)),              P(size, X),              NULL,  NULL                },
    { "c15-amp-size",             EXACT,     P(size, P(amp_cast, X)),          P(size, X),              NULL,  NULL                },
    { "c15-arg-max",              EXACT,     P(arg_max, P(amp_cast, X)),       LIKE(0, P(arg_max, X)),  NULL,  widens              },
    { "c15-arg-min",              EXACT,     P(arg_min, P(amp_cast, X)),       LIKE(0, P(arg_min, X)),  NULL,  widens              },
    { "c15-top-k-indices",        EXACT,     WITH(P(part, P(top_k, P(amp_cast, X), Y)), PartAttr, .index = 1),
                                                                               NULL,   indices_of_narrow,  widens              },
    { "c15-max-pool-indices",     EXACT,     WITH(P(part, P(max_pool, P(amp_cast, X))), PartAttr, .index = 1),
                                                                               NULL,   indices_of_narrow,  widens              },
    { "c15-quantize",             EXACT,     P(quantize_linear, P(amp_cast, X), REST(1)),
                                                                LIKE(0, P(quantize_linear, X, REST(1))), NULL,  widens             },
    { "c15-dequantize",           EXACT,     P(amp_cast, P(dequantize_linear, X, REST(1))),
                                                                               NULL,   dequantize_narrow,  narrows             },
};
/* clang-format on */

/* What a decision and the node that it became have in common. */
static uint64_t key_of(uint32_t src, Op op, const char *name, bool backward, int64_t bytes)
{
    const uint64_t h = hash_word(hash_word(src, op), (uint64_t)(uintptr_t)name);
    return hash_word(h, (uint64_t)bytes << 1 | backward);
}

/* The ledger says how results are stored: those that are wide now (C-11) were meant to be narrow. */
static void tell(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    const AmpLedger *ledger = recipe ? recipe->precision.ledger : NULL;
    Map wide;
    map_open(&wide, run->scratch);
    for (Node *n = walk_first(g); n && ledger; n = walk_next(g, n))
        if (is_wide(n) && type_known(n->type) && attr_find(op_of(n)->attrs, str("out")))
            map_put_u64(&wide, key_of(n->src, n->op, n->name, n->flags & NODE_BACKWARD, 2 * type_elements(n->type)),
                        NULL)
                ->value.i++;
    for (size_t i = 0; ledger && i < ledger->n; i++) {
        AmpDecision *d = &ledger->list[i];
        MapEntry *e = d->narrow ? map_find_u64(&wide, key_of(d->src, d->op, d->value, d->backward, d->saved)) : NULL;
        if (!e || e->value.i == 0)
            continue;
        e->value.i--;
        d->narrow = false;
        d->saved = 0;
    }
}

const Pass pass_fold_casts = {
    .name = "fold-casts", .needs = TYPED, .may = ELASTIC, .rules = rules, .n_rules = COUNT(rules), .after = tell
};
