/* Which products of trained weights are of codes: what --quant and --quant-op say, and what of it cannot be. */
#include <inttypes.h>
#include <string.h>

#include "ops/card/path.h"
#include "passes/lowbit/products.h"
#include "passes/quant/grain.h"
#include "passes/quant/ledger.h"
#include "passes/recipe/selector.h"

/* Whose records the operands of a product are: of the data (of what arrives), and of the other one. */
static const QuantOperand records[QUANT_PRODUCT_COUNT][2] = {
    [PRODUCT_OUTPUT] = { OPERAND_A, OPERAND_W },
    [PRODUCT_GRAD_INPUT] = { OPERAND_G, OPERAND_W_DGRAD },
    [PRODUCT_GRAD_WEIGHT] = { OPERAND_X_WGRAD, OPERAND_G_WGRAD },
};

static const char *const product_words[] = {
#define PRODUCT(id, word) [PRODUCT_##id] = word,
    QUANT_PRODUCTS(PRODUCT)
#undef PRODUCT
};

QuantOperand layer_operand(const Layer *l, QuantProduct k, int operand)
{
    return records[k][operand != l->data[k]];
}

const Quantizer *layer_record(const Layer *l, QuantProduct k, int operand)
{
    return &l->spec->of[layer_operand(l, k, operand)];
}

/* ---- what is said ---- */

static Status refuse(Products *p, const char *what, const char *instead)
{
    Message *m =
        message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, (Place){ .where = "--quant", .byte = -1 }, "%s", what);
    message_try(m, "%s", instead);
    return message_send(m);
}

static Status check_end(Products *p, const QuantEnd *end, const char *word, const QuantSpec *s)
{
    if (!end->said || end->bits == 0 || end->bits == s->of[OPERAND_W].bits)
        return OK;
    return refuse(
        p, arena_printf(p->run->scratch, "%s=%d: a layer of other bits than the rest", word, end->bits),
        arena_printf(p->run->scratch, "%s=%d, %s=off, or --quant-op SELECTOR=SPEC", word, s->of[OPERAND_W].bits, word));
}

static Status check_spec(Products *p, const QuantSpec *s)
{
    Arena *a = p->run->scratch;
    if (p->recipe->n_tables)
        return refuse(p, "products of few bits know no tables of quantizers", "--quant-op SELECTOR=SPEC");
    if (s->weights_first)
        return refuse(p, "phase=weights-first belongs to scales that are remembered: here each step makes its own",
                      "the same without phase=");
    if (s->of[OPERAND_B].on)
        return refuse(p, "biases are added to products of few bits as floats", "b=off");
    if (s->of[OPERAND_W].part[QUANT_MASTER].value)
        return refuse(p, "weights that are stored as codes do not make products of codes yet",
                      "int8-weights, or int8-matmul");
    for (int i = 0; i < QUANT_OPERAND_COUNT; i++)
        if (s->of[i].on && quantizer_is_integer(&s->of[i]) && s->of[i].bits > 8)
            return refuse(p,
                          arena_printf(a, "%s=int%d: products add up codes of 8 bits or less",
                                       quantizer_operand_word((QuantOperand)i), s->of[i].bits),
                          arena_printf(a, "%s=int8", quantizer_operand_word((QuantOperand)i)));
    return OK;
}

static Status apply_override(Products *p, const QuantOverride *o, const Map *paths)
{
    Selector selector;
    const QuantSpec *below = NULL;
    QuantSpec *above = NULL;
    bool any = false;
    TRY(selector_open(&selector, p->g, p->run->scratch, paths, o->from, o->selector));
    for (size_t i = 0; i < p->layers.n; i++) {
        Layer *l = &p->layers.list[i];
        if (!selector_takes(&selector, l->call[PRODUCT_OUTPUT]))
            continue;
        if (l->spec != below) {
            above = NEW(p->run->scratch, QuantSpec);
            *above = *l->spec;
            quantizer_lay_over(above, o->spec);
            below = l->spec;
        }
        l->spec = above;
        l->by = arena_printf(p->run->scratch, "%s '%s'", o->from, o->selector);
        any = true;
    }
    const Status status = any ? OK : selector_missed(&selector, p->g, false);
    selector_close(&selector);
    TRY(status);
    return above ? check_spec(p, above) : OK;
}

static Status say(Products *p)
{
    Map paths = path_names(p->g, p->run->scratch);
    const QuantSpec *s = p->recipe->products;
    TRY(check_spec(p, s));
    TRY(check_end(p, &s->first, "first", s));
    TRY(check_end(p, &s->last, "last", s));
    for (size_t i = 0; i < p->layers.n; i++)
        p->layers.list[i].spec = p->recipe->products;
    for (size_t i = 0; i < p->recipe->n_overrides; i++)
        TRY(apply_override(p, &p->recipe->overrides[i], &paths));
    return OK;
}

/* ---- what is a product of codes ---- */

int64_t product_most(const Quantizer *a, const Quantizer *b)
{
    int64_t least, largest, size[2];
    const Quantizer *both[] = { a, b };
    for (int i = 0; i < 2; i++) {
        if (!quantizer_is_integer(both[i]) || quant_splits_sums(both[i]))
            return 0;
        quantizer_codes(both[i], &least, &largest);
        size[i] = -least > largest ? -least : largest;
    }
    return INT32_MAX / (size[0] * size[1]);
}

static const char *why_not(Products *p, const Layer *l, QuantProduct k)
{
    Arena *a = p->g->arena;
    const Node *call = l->call[k];
    const Quantizer *x = &l->spec->of[records[k][0]], *y = &l->spec->of[records[k][1]];
    if (l->first && l->spec->first.said && !l->spec->first.bits)
        return "it is of the first convolution, and first=off";
    if (l->last && l->spec->last.said && !l->spec->last.bits)
        return "no such layer stands behind it, and last=off";
    if (!x->on || !y->on)
        return arena_printf(a, "%s=off", quantizer_operand_word(records[k][x->on]));
    if (!call)
        return k == PRODUCT_GRAD_INPUT ? "nobody asks for it" : "it is no product of this kind";
    if ((x->part[QUANT_TURN].value || y->part[QUANT_TURN].value) && product_way(call) != &way_matrix)
        return "a convolution sums windows, which hadamard=16 does not turn";
    const int64_t most = product_most(x, y), least = product_way(call)->least(call);
    if (most && least > most)
        return arena_printf(a, "it adds up %" PRId64 " products of codes, more than the %" PRId64 " that 32 bits hold",
                            least, most);
    return NULL;
}

bool layer_quantizes(const Layer *l, QuantProduct k)
{
    return l->call[k] && !l->why[k];
}

Status products_say(Products *p)
{
    TRY(say(p));
    for (size_t i = 0; i < p->layers.n; i++)
        for (int k = 0; k < QUANT_PRODUCT_COUNT; k++)
            p->layers.list[i].why[k] = why_not(p, &p->layers.list[i], (QuantProduct)k);
    return OK;
}

/* ---- what is told ---- */

static const char *computes_in(Products *p, const Layer *l, QuantProduct k)
{
    const Quantizer *x = layer_record(l, k, 0), *y = layer_record(l, k, 1);
    Arena *a = p->recipe->ledger->arena;
    return arena_printf(a, "%s x %s, sums in %s", quantizer_text(x, a), quantizer_text(y, a),
                        product_most(x, y) ? "i32" : "f32");
}

static void tell(Products *p, const Layer *l, QuantProduct k)
{
    QuantLedger *ledger = p->recipe->ledger;
    const Node *call = l->call[PRODUCT_OUTPUT];
    Arena *a = ledger->arena;
    GROW(a, ledger->list, ledger->n, ledger->cap);
    ledger->list[ledger->n++] = (QuantDecision){
        .kind = l->why[k] ? QUANT_STAYS : QUANT_PRODUCT,
        .src = call->src,
        .op = call->op,
        .value = call->name,
        .where = arena_string(a, node_place(call).where),
        .asked = product_words[k],
        .asker = selector_of(a, call),
        .said = l->by ? arena_string(a, l->by) : NULL,
        .why = l->why[k] ? arena_string(a, l->why[k]) : computes_in(p, l, k),
    };
}

void products_tell(Products *p)
{
    for (size_t i = 0; i < p->layers.n && p->recipe->ledger; i++)
        for (int k = 0; k < QUANT_PRODUCT_COUNT; k++)
            tell(p, &p->layers.list[i], (QuantProduct)k);
}
