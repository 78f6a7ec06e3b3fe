/* Which calls compute on codes, and which values they are given.
 *
 * A call whose card has a product of codes asks for its data; demands go against the data through what only moves
 * elements.  What adds, multiplies, pools or lays values side by side joins in where its operands are codes anyway and
 * its result is asked for: a call alone between two floats would only cost the way there and back. */
#include <math.h>
#include <string.h>

#include "ops/card/words.h"
#include "passes/quant/grain.h"

QuantValueMark *quant_value(Placement *p, const Node *n)
{
    return fact(&p->values, n);
}

QuantCallMark *quant_call(Placement *p, const Node *n)
{
    return fact(&p->calls, n);
}

static bool is_f32(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

/* Whether the card has a product of data with weights, or of data with data. */
static bool multiplies(const Node *n)
{
    return quant_multiplies(op_of(n)) && is_f32(n) && is_f32(in(n, 0)) && is_f32(in(n, 1));
}

static const OpDef *integer_word(const Node *n)
{
    const OpWord word = op_of(n)->quant.integer;
    return !word ? NULL : n->graph->ir->ops->defs[word];
}

bool quant_needs_codes_out(const Node *n, const QuantTarget *t)
{
    enum { CODES = 3 }; /* operands of the word for each of the call's: codes, scale, zero point */
    const OpDef *word = integer_word(n);
    int taken = 0;
    for (int i = 0; i < n->n_in; i++) {
        const QuantRole role = quant_role(&op_of(n)->quant, i);
        taken += in(n, i) && (role == QUANT_INPUT || role == QUANT_WEIGHT) ? CODES : 0;
    }
    return word && (word->min_in > taken || !target_has(t->numbers, op_of(n)->name));
}

/* What a source does for few codes alone is another one's where there are more. */
static void change_source(Quantizer *q, const char *from)
{
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_TWN))
        q->part[QUANT_SOURCE] = (QuantPart){ .value = SOURCE_MINMAX, .from = from };
    if (!quantizer_says(q, QUANT_SOURCE, SOURCE_N2UQ) || q->bits <= QUANT_THRESHOLD_BITS)
        return;
    q->part[QUANT_SOURCE] = (QuantPart){ .value = SOURCE_LSQ, .from = from };
    q->part[QUANT_MASK] = (QuantPart){ .value = MASK_V, .from = from };
}

/* A quantizer of so many bits instead. */
static const Quantizer *with_bits(Placement *p, const QuantCallMark *c, const Quantizer *q, const QuantEnd *end)
{
    if (!end->said || !q->on || (q->bits == end->bits && !q->part[QUANT_BITS].value))
        return q->on ? q : NULL;
    if (end->bits == 0)
        return NULL;
    Quantizer *other = NEW(p->g->arena, Quantizer);
    *other = *q;
    if (!quantizer_is_integer(q)) {
        const bool data = q->format == FORMAT_BINARY && q == &c->spec->of[OPERAND_A];
        other->format = data ? FORMAT_EITHER : FORMAT_INT;
        other->part[QUANT_RANGE] = (QuantPart){ .value = data ? RANGE_FULL : RANGE_NARROW, .from = end->from };
    }
    other->bits = end->bits;
    other->part[QUANT_BITS] = (QuantPart){ .value = QUANT_NOTHING };
    other->from = end->from;
    change_source(other, end->from);
    return other;
}

static const Quantizer *chosen(Placement *p, const QuantCallMark *c, QuantOperand operand)
{
    const Quantizer *q = &c->spec->of[operand];
    if (c->first && c->spec->first.said)
        return with_bits(p, c, q, &c->spec->first);
    if (c->last && c->spec->last.said)
        return with_bits(p, c, q, &c->spec->last);
    return q->on ? q : NULL;
}

/* How many products of codes a result is the sum of: of data with data, the last extent; 0: nobody knows. */
static double terms_of(const Node *n)
{
    const int weight = quant_weight_of(in(n, 0)) ? 0 : quant_weight_of(in(n, 1)) ? 1 : -1;
    const Type *t = in(n, weight < 0 ? 0 : weight)->type;
    const int axis = weight < 0 ? QUANT_WHOLE : quant_weight_axis(n, weight);
    if (!type_known(t) || !t->rank)
        return 0;
    if (axis != QUANT_WHOLE && axis < t->rank)
        return (double)type_elements(t) / (double)(t->dims[axis] ? t->dims[axis] : 1);
    return (double)t->dims[t->rank - 1];
}

/* The largest product of two codes: those of 8 bits are at most 255 apart, those of weights lie about 0. */
static double largest_product(Placement *p, const Node *n)
{
    enum { BYTE = 8 };
    const QuantCallMark *c = quant_call(p, n);
    const Quantizer *w = chosen(p, c, OPERAND_W), *a = chosen(p, c, OPERAND_A);
    const int data = a && a->bits < BYTE ? a->bits : BYTE;
    const int about_0 = !quant_has_weight(n) ? data : w && w->bits < BYTE ? w->bits : BYTE;
    return (ldexp(1, data) - 1) * (about_0 > 1 ? ldexp(1, about_0 - 1) - 1 : 1);
}

/* Whether the accumulator holds every sum, whatever the codes are. */
static bool sums_fit(Placement *p, const Node *n, const QuantTarget *t)
{
    return terms_of(n) * largest_product(p, n) < target_most_sum(t);
}

/* Whether its products are of what codes stand for: one operand alone is quantized, codes are floats, or their scales are
 * codes or change along its sums, or with the rows of its data. */
static bool computes_floats(const Node *n, const QuantSpec *spec)
{
    const Quantizer *w = &spec->of[OPERAND_W], *a = &spec->of[OPERAND_A];
    return !a->on || quantizer_is_float(a) ||
           (quant_has_weight(n) && (quant_splits_sums(w) || quantizer_is_float(w) || quantizer_has_coded_scale(w))) ||
           quant_goes_by_rows(a) || quantizer_has_coded_scale(a);
}

/* A convolution of so few channels that codes do not pay; nobody said that it is to be one of codes nevertheless. */
static bool is_small(Placement *p, const Node *n, const QuantTarget *t)
{
    const int weight = quant_weight_of(in(n, 1)) ? 1 : 0;
    const Type *w = in(n, weight)->type, *x = in(n, 1 - weight)->type;
    const int axis = quant_weight_axis(n, weight);
    if (!t->least_channels || quant_call(p, n)->said & (1u << OPERAND_W | 1u << OPERAND_A) || w->rank < 3 ||
        axis == QUANT_WHOLE || x->rank != w->rank || !quant_has_weight(n))
        return false;
    return w->dims[axis] < t->least_channels || x->dims[1] < t->least_channels;
}

/* Why a call that multiplies stays as it is; null: nothing hinders. */
static const char *hindrance(Placement *p, const Node *n, bool floats)
{
    if (quant_weight_of(in(n, 0)) && quant_weight_of(in(n, 1)))
        return "computes from constants alone";
    for (int i = 0; i < 2; i++)
        if (!quant_weight_of(in(n, i)) && !*(bool *)fact(&p->data, in(n, i)))
            return "computes from positions or sizes";
    if (floats)
        return NULL;
    const QuantTarget *t = quantization_target(p->recipe);
    if (t->words_alone && !integer_word(n))
        return t->lacks;
    if (is_small(p, n, t))
        return arena_printf(p->g->arena, "has fewer than %d channels, which %s computes faster of floats",
                            t->least_channels, t->title);
    if (!sums_fit(p, n, t))
        return arena_printf(p->g->arena, "a sum of %.0f products of codes may leave %d bits", terms_of(n),
                            target_accumulator(t));
    return op_of(n)->quant.serves && !op_of(n)->quant.serves(n) ? "scales its product or what is added to it" : NULL;
}

/* Ternary weights and rows of data. */
static bool is_bitnet(const QuantSpec *spec)
{
    return spec->of[OPERAND_W].format == FORMAT_TERNARY && quant_has_rows(&spec->of[OPERAND_A]);
}

/* They are of layers that multiply rows: convolutions, and products of data with data, are none. */
static const char *no_rows_of_ternary(const Node *n, const QuantSpec *spec)
{
    if (!is_bitnet(spec))
        return NULL;
    if (!quant_has_weight(n))
        return "multiplies data with data: layers alone have ternary weights";
    return quant_sum_axis(n, quant_weight_of(in(n, 0)) ? 1 : 0) == QUANT_WHOLE
               ? "its data have no rows that it adds up: ternary weights multiply rows"
               : NULL;
}

/* What is made of floats that people bind, or of weights that are trained; the rest is made of positions and sizes. */
static void find_data(Placement *p)
{
    for (size_t i = 0; i < p->g->n_inputs; i++) {
        const Node *n = p->g->inputs[i];
        *(bool *)fact(&p->data, n) = is_f32(n) && (node_is_input(n) || n->flags & NODE_TRAINED);
    }
    for (Node *n = p->g->first; n; n = n->next) {
        bool data =
            op_looks_up(op_of(n)) && is_f32(n) && !quant_weight_of(in(n, 1)); /* rows of a table, trained or not */
        for (int i = 0; i < n->n_in && !data; i++)
            data = in(n, i) && op_reads_value(op_of(n), i) && *(bool *)fact(&p->data, in(n, i));
        *(bool *)fact(&p->data, n) = data;
    }
}

/* ---- first and last ---- */

static bool is_layer(const Node *n)
{
    return (multiplies(n) || quant_is_recurrent(n)) && quant_is_layer(n);
}

static void mark_ends(Placement *p, Node *const *calls, size_t n)
{
    Facts before = facts_open(p->run->scratch, sizeof(bool)), behind = facts_open(p->run->scratch, sizeof(bool));
    for (Node *k = p->g->first; k; k = k->next) {
        bool *b = fact(&before, k);
        for (int i = 0; i < k->n_in; i++) {
            const Node *def = in(k, i);
            *b |= def && (*(bool *)fact(&before, def) || is_layer(def));
        }
    }
    for (Node *k = p->g->last; k; k = k->prev) {
        const bool b = *(bool *)fact(&behind, k) || is_layer(k);
        for (int i = 0; i < k->n_in && b; i++)
            if (in(k, i))
                *(bool *)fact(&behind, in(k, i)) = true;
    }
    for (size_t i = 0; i < n; i++) {
        QuantCallMark *c = quant_call(p, calls[i]);
        c->first = c->core && quant_is_layer(calls[i]) && !*(bool *)fact(&before, calls[i]);
        c->last = c->core && quant_is_layer(calls[i]) && !*(bool *)fact(&behind, calls[i]);
    }
}

/* ---- demands ---- */

/* Whether a value is what codes stand for, or one of which there are codes: nobody makes them twice. */
static bool is_quantized(const Node *value)
{
    bool any = op_of(value)->quant.dequantizes;
    for (const Use *u = value->uses; u; u = u->next)
        any |= op_of(u->user)->quant.quantizes && in(u->user, 0) == value;
    return any;
}

/* Asks for a value; the widest demand counts.  Whether anything changed. */
static bool ask(Placement *p, Node *value, const Quantizer *q, Node *asked)
{
    QuantValueMark *v = quant_value(p, value);
    if (is_quantized(value) || !q || (v->by && v->by->bits >= q->bits))
        return false;
    *v = (QuantValueMark){ .by = q, .asked = asked, .axis = QUANT_WHOLE, .within = v->within };
    return true;
}

/* Rows of a value lie along what the product adds up, and blocks within them: all who read it have to agree. */
static Status ask_rows(Placement *p, Node *n, int i, const Quantizer *q)
{
    TRY(quant_check_rows(p, n, i, q));
    if (ask(p, in(n, i), q, n))
        quant_value(p, in(n, i))->axis = quant_block_axis(n, i);
    return OK;
}

/* Of a first or a last layer that is to have other bits, or none, that is why. */
static void explain_end(Placement *p, QuantCallMark *c)
{
    const bool first = c->first && c->spec->first.said, last = !first && c->last && c->spec->last.said;
    const QuantEnd *end = first ? &c->spec->first : &c->spec->last;
    if (!first && !last)
        return;
    const char *word = first ? "first" : "last";
    if (end->bits)
        c->by = arena_printf(p->g->arena, "%s=%d", word, end->bits);
    else
        c->why = arena_printf(p->g->arena, "%s=off: no such layer stands %s it", word, first ? "before" : "behind");
}

static Status ask_core(Placement *p, Node *n)
{
    QuantCallMark *c = quant_call(p, n);
    TRY(quant_check_floats(p, n, c));
    c->weight = chosen(p, c, OPERAND_W);
    explain_end(p, c);
    if (!multiplies(n))
        return OK;
    c->data = chosen(p, c, OPERAND_A);
    c->ternary = c->weight && c->data && c->weight->format == FORMAT_TERNARY && quant_has_rows(c->data);
    TRY(quant_check_target(p, n, c));
    for (int i = 0; i < 2; i++)
        if (quant_weight_of(in(n, i))) {
            continue;
        } else {
            TRY(quant_check_format(p, n, i, c->data));
            if (c->data && quant_goes_by_rows(c->data))
                TRY(ask_rows(p, n, i, c->data));
            else
                ask(p, in(n, i), c->data, n);
        }
    return OK;
}

/* Whether a value is asked for with scales that go with it wherever its elements are moved: not with those of rows or
 * blocks; and by whom codes of it are for: floats of few bits are for products alone, and are made where those read
 * them. */
static bool is_asked(const QuantValueMark *v)
{
    return v->by && !quant_goes_by_rows(v->by) && !quantizer_is_float(v->by) && !quantizer_has_coded_scale(v->by);
}

static bool is_result(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user))
            return true;
    return false;
}

/* Whether a call is a function of one number, which is a table of its codes: because the target has such, or somebody
 * says so. */
static bool is_table(Placement *p, const Node *n)
{
    const OpDef *def = op_of(n);
    const QuantWay way = quant_call(p, n)->in;
    return def->quant.in[0] == QUANT_TABLE && def->row && n->n_in == 1 && is_f32(n) && is_f32(in(n, 0)) &&
           (way == WAY_CARD || way == WAY_TABLE || quant_is_table_for(def, quantization_target(p->recipe)));
}

static bool reads_codes(const Node *n, int i)
{
    const QuantRole role = quant_role(&op_of(n)->quant, i);
    return role == QUANT_INPUT || role == QUANT_TABLE || quant_is_side_by_side(n);
}

bool quant_may_join(Placement *p, const Node *n)
{
    const OpDef *def = op_of(n);
    const QuantTarget *t = quantization_target(p->recipe);
    if (!quant_is_open(p, n) || quant_call(p, n)->cell)
        return false;
    if (is_table(p, n))
        return true;
    if (!quant_joins_for(def, t) && quant_call(p, n)->in != WAY_CARD)
        return false;
    if (quant_is_side_by_side(n))
        return target_has(t->joins, def->name) || quant_call(p, n)->in == WAY_CARD;
    return def->quant.in[0] == QUANT_INPUT && def->quant.out[0] == QUANT_INPUT && !multiplies(n) && n->n_in &&
           is_f32(n) && (!t->words_alone || integer_word(n));
}

/* Whether a value is codes at no cost: asked for, what a product on codes gives, or what is made of such. */
static bool could_be_codes(Placement *p, Node *n)
{
    const OpDef *def = op_of(n);
    const QuantCallMark *c = quant_call(p, n);
    if (is_asked(quant_value(p, n)) || (c->core && c->data && !c->floats && c->out != WAY_OFF) ||
        quant_summed_product(p, n) >= 0)
        return true;
    const bool row = def->row && def->quant.in[0] == QUANT_AGNOSTIC && !c->cell;
    const Node *from = row && n->n_in ? in(n, 0) : quant_moved_from(n);
    if (row || from)
        return from && quant_is_open(p, n) && quant_call(p, from)->could;
    bool all = quant_may_join(p, n);
    for (int i = 0; i < n->n_in && all; i++)
        if (reads_codes(n, i))
            all = in(n, i) && quant_call(p, in(n, i))->could;
    return all;
}

/* What such a call would read as codes, and could. */
static bool joins(Placement *p, Node *n)
{
    if (!quant_may_join(p, n))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (reads_codes(n, i) && (!is_f32(in(n, i)) || quant_weight_of(in(n, i)) || !quant_call(p, in(n, i))->could))
            return false;
    return true;
}

static void find_possible(Placement *p)
{
    for (size_t i = 0; i < p->g->n_inputs; i++)
        quant_call(p, p->g->inputs[i])->could = is_asked(quant_value(p, p->g->inputs[i]));
    for (Node *n = p->g->first; n; n = n->next)
        quant_call(p, n)->could = could_be_codes(p, n);
}

/* The value whose codes and scale a value would have that is asked for; null: it has its own.  Of what a call cuts
 * apart all have to be asked for. */
static Node *source_of(Placement *p, const Node *n)
{
    Node *from = is_asked(quant_value(p, n)) && quant_is_open(p, n) ? quant_moved_from(n) : NULL;
    for (const Use *u = from && n->op == OP_part ? in(n, 0)->uses : NULL; u; u = u->next)
        if (!is_asked(quant_value(p, u->user)))
            return NULL;
    return from;
}

/* One sweep against the data; whether anything changed. */
static bool sweep(Placement *p)
{
    const QuantTarget *t = quantization_target(p->recipe);
    bool more = false;
    find_possible(p);
    for (Node *n = p->g->last; n; n = n->prev) {
        const QuantValueMark *v = quant_value(p, n);
        const QuantCallMark *c = quant_call(p, n);
        Node *from = source_of(p, n);
        if (from) {
            more |= ask(p, from, v->by, v->asked);
        } else if (c->core && c->data && !c->floats && c->out != WAY_OFF && !t->float_products &&
                   quant_needs_codes_out(n, t)) {
            Node *last = quant_behind_rows(p, n);
            if (!quant_value(p, last)->by && !is_result(last))
                more |= ask(p, last, c->data, n);
        }
        const int product = quant_summed_product(p, n);
        if (product >= 0 && !quant_weight_of(in(n, 1 - product)))
            more |= ask(p, in(n, 1 - product), quant_call(p, in(n, product))->data, n);
        if (is_asked(quant_value(p, quant_behind_rows(p, n))) && joins(p, n))
            for (int i = 0; i < n->n_in; i++)
                if (reads_codes(n, i))
                    more |= ask(p, in(n, i), quant_value(p, quant_behind_rows(p, n))->by, n);
    }
    return more;
}

/* What codes go through has the scale of what it reads. */
static void share_scales(Placement *p)
{
    for (Node *n = p->g->first; n; n = n->next) {
        QuantValueMark *v = quant_value(p, n);
        Node *from = source_of(p, n);
        if (from && is_asked(quant_value(p, from)))
            v->shares = quant_value(p, from)->shares ? quant_value(p, from)->shares : from;
    }
}

/* Why a call stays that somebody wants to stay. */
static const char *wanted_so(Placement *p, const QuantCallMark *c)
{
    return c->by ? arena_printf(p->g->arena, "is to stay as it is: %s", c->by) : "is to stay as it is";
}

/* Decides whether a call has products of codes, or weights alone that are codes. */
static void find_core(Placement *p, const Node *n)
{
    QuantCallMark *c = quant_call(p, n);
    const bool alone = quant_is_recurrent(n) || quant_is_table(n);
    if (alone)
        quant_weights_alone(c, n);
    if (alone && !c->why && is_bitnet(c->spec) && !(c->said & 1u << OPERAND_W))
        c->why = "a recurrent layer stays f32 unless --quant-op says w=ternary of it";
    if (!alone && !multiplies(n))
        return;
    if (!alone) {
        c->floats = computes_floats(n, c->spec);
        c->why = hindrance(p, n, c->floats);
        c->why = c->why ? c->why : no_rows_of_ternary(n, c->spec);
        c->core = (c->spec->of[OPERAND_W].on && quant_has_weight(n)) || c->spec->of[OPERAND_A].on;
    }
    if (!c->why && (!c->core || c->in == WAY_OFF))
        c->why = wanted_so(p, c);
    c->core = !c->why;
}

Status quant_find(Placement *p)
{
    Node **calls = NEWS(p->run->scratch, Node *, graph_count(p->g) + 1);
    size_t n = 0;
    for (Node *k = p->g->first; k; k = k->next)
        if (!(k->flags & NODE_BACKWARD))
            calls[n++] = k;
    find_data(p);
    quant_find_depths(p);
    for (size_t i = 0; i < n; i++)
        find_core(p, calls[i]);
    mark_ends(p, calls, n);
    for (size_t i = 0; i < n; i++)
        if (quant_call(p, calls[i])->core)
            TRY(ask_core(p, calls[i]));
    while (sweep(p))
        ;
    share_scales(p);
    quant_find_left(p);
    return OK;
}
