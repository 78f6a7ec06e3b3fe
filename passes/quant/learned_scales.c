/* Scales that are learned: a state holds the logarithm, so that steps of an optimizer change it by parts of itself. */
#include <math.h>

#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/quant/quantize.h"
#include "passes/learned/learned.h"
#include "passes/quant/phases.h"
#include "passes/quant/scale_parts.h"

static const double ln_2 = 0.69314718055994530942;

/* ---- what is learned ---- */

typedef struct ScaleLearns {
    bool moves;  /* it is trained, or computed from what is */
    bool serves; /* what moves reads it, if not behind a product of its own */
} ScaleLearns;

static ScaleLearns *learns(QuantScales *s, const Node *n)
{
    return fact(&s->learn, n);
}

/* Whether a reader of the value moves, or serves one that does. */
static bool has_moving_reader(QuantScales *s, const Node *value)
{
    for (const Use *u = value->uses; u; u = u->next) {
        const ScaleLearns *reader = learns(s, u->user);
        if (reader->moves || (reader->serves && !quant_call(s->p, u->user)->core))
            return true;
    }
    return false;
}

static void find_moving(QuantScales *s, Graph *g, bool any)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        learns(s, g->inputs[i])->moves = !any || g->inputs[i]->flags & NODE_TRAINED;
    for (Node *n = g->first; n; n = n->next) {
        bool moves = !any;
        for (int i = 0; i < n->n_in && !moves; i++)
            moves = in(n, i) && learns(s, in(n, i))->moves;
        learns(s, n)->moves = moves;
    }
}

void quant_find_learners(QuantScales *s)
{
    Graph *g = s->p->g;
    bool any = false;
    s->learn = facts_open(s->p->run->scratch, sizeof(ScaleLearns));
    for (size_t i = 0; i < g->n_inputs; i++)
        any |= (g->inputs[i]->flags & NODE_TRAINED) != 0;
    find_moving(s, g, any);
    for (Node *n = g->last; n; n = n->prev)
        learns(s, n)->serves = has_moving_reader(s, n);
    for (size_t i = 0; i < g->n_inputs; i++)
        learns(s, g->inputs[i])->serves = has_moving_reader(s, g->inputs[i]);
}

bool quant_learns(QuantScales *s, const Node *value)
{
    const ScaleLearns *l = learns(s, value);
    return l->moves || l->serves;
}

/* ---- how ---- */

/* The scale with which the codes reach up to what a Clip lets pass; infinite where none does. */
static double widest_scale(const QuantNodes *q)
{
    return q->most / quant_most_of(q);
}

/* 1 / (1 / s + 1 / widest): a learned scale that stays below the widest and can always be learned down again. */
static Node *below_widest(Build *b, Node *scale, double widest)
{
    Node *one = build_scalar(b, F32, 1), *most = build_scalar(b, F32, widest);
    scale = CALL(b, div, most, CALL(b, add, CALL(b, div, most, scale), one));
    return CALL(b, min, scale, most);
}

/* The s of which that is a scale of at most three quarters of the widest. */
static Node *before_bound(Build *b, Node *scale, double widest)
{
    Node *one = build_scalar(b, F32, 1), *most = build_scalar(b, F32, widest);
    scale = CALL(b, min, scale, build_scalar(b, F32, 0.75 * widest));
    return CALL(b, div, scale, CALL(b, sub, one, CALL(b, div, scale, most)));
}

/* 2 E|x| / sqrt(largest) */
static Node *mean_size(const QuantNodes *q, Build *b, Node *each, const Type *type, double largest)
{
    Node *mean;
    if (q->grain.block) {
        mean = quant_as_scales(b, &q->grain, quant_fold(b, FOLD_SUM, &q->grain, each), type);
        mean = CALL(b, div, mean, quant_counts(b, &q->grain, type));
    } else {
        mean = quant_fold(b, FOLD_MEAN, &q->grain, each);
    }
    return CALL(b, mul, mean, build_scalar(b, F32, 2 / sqrt(largest)));
}

/* max|x| / largest */
static Node *whole_size(const QuantNodes *q, Build *b, Node *each, const Type *type, double largest)
{
    Node *most = quant_fold(b, FOLD_LARGEST, &q->grain, each);
    if (q->grain.block)
        most = quant_as_scales(b, &q->grain, most, type);
    return CALL(b, div, most, build_scalar(b, F32, largest));
}

/* Where learning starts, as a logarithm to the base 2; what is never learned holds all of what is seen, and so do floats,
 * whose codes are as close to each other, for their size, wherever the largest lies. */
static Node *first_step_size(const QuantNodes *q, Build *b, Node *value)
{
    Node *each = CALL(b, abs, value);
    const bool bits = q->by->part[QUANT_BITS].value != QUANT_NOTHING;
    const bool whole = q->stays || bits || quantizer_is_float(q->by);
    Node *size = (whole ? whole_size : mean_size)(q, b, each, value->type, bits ? 1 : quant_most_of(q));
    size = CALL(b, max, size, build_scalar(b, F32, ldexp(1, -24)));
    if (isfinite(q->most))
        size = before_bound(b, size, widest_scale(q));
    Node *log2 = CALL(b, mul, CALL(b, log, size), build_scalar(b, F32, 1 / ln_2));
    return q->grain.block ? log2 : quant_as_scales(b, &q->grain, log2, value->type);
}

/* Nothing trains scales of data that are floats. */
static void train_scale(const QuantScales *s, const QuantNodes *q, Node *state, bool data)
{
    if (!q->stays && (!data || !s->p->recipe->weights_alone))
        state->flags |= NODE_TRAINED;
}

static Tensor *filled(Graph *g, const Type *type, double v)
{
    Tensor *t = tensor_new(g->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, v);
    return t;
}

Node *scale_state(const QuantScales *s, const QuantNodes *q, const char *prefix, const Tensor *first, bool data)
{
    Graph *g = s->p->g;
    const StateAttr attr = { payload_of(g->arena, first), { STATE_quant, NULL } };
    Node *state = graph_state(g, name_with(g, prefix, q->name), first->type, &attr);
    train_scale(s, q, state, data);
    return state;
}

/* Values that are not numbers leave a scale as it is. */
static Node *if_finite(Build *b, Node *next, Node *state)
{
    Node *finite = CALL(b, less, CALL(b, abs, next), build_scalar(b, F32, (double)INFINITY));
    return CALL(b, where, finite, next, state);
}

/* An exporter may have computed how a weight is cut from sizes that are open where the model is written again. */
static Status no_shape(const QuantScales *s, const QuantNodes *q, const Node *value)
{
    Message *m =
        message_new(s->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(value),
                    "%s has scales that are learned, and nobody knows its shape while the batch is open", q->name);
    message_try(m, "w=int%d:channel:minmax, which comes from the weight itself", q->by->bits);
    return message_send(m);
}

/* ---- the code of 0 ---- */

static bool has_source(const QuantNodes *q, QuantValue source)
{
    return q->by->part[QUANT_SOURCE].value == source;
}

static bool learns_zero(const QuantNodes *q)
{
    return q->by->part[QUANT_ZERO].value == ZERO_LEARNED;
}

/* Where it starts: codes begin with the least that is seen, but reach as far below 0 as above it at most, and up to 0. */
static Node *first_offset(const QuantNodes *q, Build *b, Node *value, Node *log2)
{
    int64_t least, largest;
    quant_codes_of(q, &least, &largest);
    Node *scale = learned_power(b, log2), *zero = build_scalar(b, F32, 0);
    Node *lowest = quant_as_scales(b, &q->grain, quant_fold(b, FOLD_LEAST, &q->grain, value), value->type);
    if (!q->stays)
        lowest = CALL(b, max, lowest, CALL(b, mul, scale, build_scalar(b, F32, (double)(least - largest) / 2)));
    lowest = CALL(b, min, lowest, zero);
    if (has_source(q, SOURCE_LSQ_PLUS))
        return CALL(b, sub, lowest, CALL(b, mul, scale, build_scalar(b, F32, (double)least)));
    return CALL(b, sub, build_scalar(b, F32, (double)least), CALL(b, div, lowest, scale));
}

/* A state beside that of the scale: an offset (lsq+), or the code itself. */
static Status zero_learned(QuantScales *s, QuantNodes *q, Node *value, Node *log2, bool data)
{
    Graph *g = s->p->g;
    LearnedZero k;
    double lo, hi;
    k.codes = quant_codes_of(q, &k.least, &k.largest);
    code_range(k.codes, &lo, &hi);
    k.all = (double)k.least == lo && (double)k.largest == hi;
    Node *state = scale_state(s, q, OFFSET_PREFIX, filled(g, q->scale->type, (double)NAN), data);
    Build start = scale_at_start(g, value), here = scale_behind(value);
    start.before = q->scale->next;
    q->zero =
        (has_source(q, SOURCE_LSQ_PLUS) ? learned_zero_of_offset : learned_zero_of_code)(&start, &k, state, q->scale);
    TRY(start.status);
    here.before = log2->next;
    Node *first = if_finite(&here, first_offset(q, &here, value, log2), state);
    TRY(here.status);
    results_add(&s->results, state->name, first);
    return OK;
}

/* ---- levels ---- */

/* Thresholds begin as those of the scale, from 0 on; what levels are counted in learns beside them. */
static Status levels_learned(QuantScales *s, QuantNodes *q, Node *value, Node *log2)
{
    Graph *g = s->p->g;
    int64_t least, largest;
    quant_codes_of(q, &least, &largest);
    const Type *type = type_vector(&g->ir->types, F32, (int)largest);
    Node *widths = scale_state(s, q, THRESHOLD_PREFIX, filled(g, type, (double)NAN), true);
    Node *offset = scale_state(s, q, OFFSET_PREFIX, filled(g, q->scale->type, 0), true);
    Build start = scale_at_start(g, value), here = scale_behind(value);
    start.before = q->scale->next;
    q->levels.widths = learned_power(&start, widths);
    q->levels.start = offset;
    TRY(start.status);
    here.before = log2->next;
    Node *first = if_finite(&here, make_expand(&here, log2, 1, type->dims), widths);
    TRY(here.status);
    results_add(&s->results, widths->name, first);
    return OK;
}

/* What is learned, of its logarithm. */
static Node *scale_of_state(const QuantNodes *q, Build *b, Node *state)
{
    if (has_source(q, SOURCE_TQT))
        return learned_power_above(b, state);
    Node *scale = learned_power(b, state);
    return isfinite(q->most) ? below_widest(b, scale, widest_scale(q)) : scale;
}

Status scale_learned(QuantScales *s, QuantNodes *q, Node *value, bool data)
{
    Graph *g = s->p->g;
    const Type *type = quant_scale_type(&g->ir->types, &q->grain, value->type);
    if (!type_known(type))
        return no_shape(s, q, value);
    Node *state = scale_state(s, q, STEP_SIZE_PREFIX, filled(g, type, (double)NAN), data);
    Build start = scale_at_start(g, value), here = scale_behind(value);
    if (learns_zero(q) || has_source(q, SOURCE_TQT) || has_source(q, SOURCE_N2UQ))
        q->most = (double)INFINITY; /* a Clip stays */
    if (q->by->part[QUANT_BITS].value)
        TRY(scale_of_bits(s, q, &start, value, learned_power(&start, state)));
    else
        q->scale = scale_of_state(q, &start, state);
    TRY(start.status);
    Node *first = if_finite(&here, first_step_size(q, &here, value), state);
    TRY(here.status);
    results_add(&s->results, state->name, first);
    q->state = state->name;
    if (has_source(q, SOURCE_N2UQ))
        return levels_learned(s, q, value, first);
    return learns_zero(q) ? zero_learned(s, q, value, first, data) : OK;
}

/* ---- statistics for some steps, then learned: a state holds the logarithm of what is learned over those ---- */

/* From a scale that stays as it is behind so many steps: 0 is learned before. */
static Status learn_from(QuantScales *s, QuantNodes *q, Build *b, bool data)
{
    Graph *g = s->p->g;
    const char *name = name_with(g, STEP_SIZE_PREFIX, q->name);
    Node *state = graph_state(g, name, q->scale->type, &(StateAttr){ NULL, { STATE_quant, NULL } });
    train_scale(s, q, state, data);
    Node *learned = phase_until(b, phase_of_statistics(s, q, data), build_scalar(b, F32, 0), state);
    q->scale = CALL(b, mul, q->scale, CALL(b, exp, CALL(b, mul, learned, build_scalar(b, F32, ln_2))));
    if (isfinite(q->most))
        q->scale = CALL(b, min, q->scale, build_scalar(b, F32, widest_scale(q)));
    return b->status;
}

Status scale_of_data_seen(QuantScales *s, QuantNodes *q, Node *value)
{
    TRY(scale_observed(s, q, value));
    Build b = scale_at_start(s->p->g, value);
    b.before = q->scale->next;
    return learn_from(s, q, &b, true);
}

/* The scale that a weight had in the step before: evaluation has it too. */
Status scale_of_weight_seen(QuantScales *s, QuantNodes *q, Build *b, Node *weight)
{
    Graph *g = s->p->g;
    TRY(scale_of_values(q, b, weight));
    Node *now = q->scale;
    const char *name = name_with(g, OBSERVED_PREFIX, q->name);
    const StateAttr attr = { payload_of(g->arena, filled(g, now->type, (double)NAN)), { STATE_quant, NULL } };
    q->scale = graph_state(g, name, now->type, &attr);
    Node *next = phase_until(b, phase_of_statistics(s, q, false), now, q->scale);
    TRY(b->status);
    results_add(&s->results, name, next);
    q->state = name;
    return learn_from(s, q, b, false);
}
