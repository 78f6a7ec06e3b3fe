#include "api/make/quant_report.h"

#include <inttypes.h>

#include "api/hall/words.h"

void quant_report_open(qcc_step *s)
{
    if (!s->recipe.quantization.spec && !s->recipe.quantization.products)
        return;
    s->recipe.quantization.ledger = NEW(&s->arena, QuantLedger);
    s->recipe.quantization.ledger->arena = &s->arena;
}

Status quant_report_check(const qcc_step *s)
{
    const QuantLedger *l = s->recipe.quantization.ledger;
    for (size_t i = 0; l && i < l->n; i++)
        if (l->list[i].kind == QUANTIZED_DATA || l->list[i].kind == QUANTIZED_WEIGHT ||
            l->list[i].kind == QUANT_PRODUCT)
            return OK;
    if ((!s->recipe.quantization.spec && !s->recipe.quantization.products) || !l)
        return OK;
    Place place = NOWHERE;
    place.where = "--quant";
    Message *m =
        message_new(&s->cx->diag, SEVERITY_WARNING, OK, place, "nothing is quantized: all of this model stays float");
    message_try(m, "qcc explain with the same options, which says why");
    return message_send(m);
}

/* Whether a word computes on codes what another computes on numbers. */
static bool is_integer_word(const OpTable *ops, Op op)
{
    for (size_t i = 0; i < ops->n; i++)
        if (ops->defs[i] && ops->defs[i]->quant.integer == (OpWord)op && op != OP_input)
            return true;
    return false;
}

/* "3 qconv, 1 qmatmul compute on codes", the most frequent first. */
static void tell_words(Text *t, Arena *arena, const qcc_step *s)
{
    Graph *eval = module_graph(s->module, "eval");
    Map counts;
    bool any = false;
    map_open(&counts, arena);
    for (Node *n = eval ? walk_first(eval) : NULL; n; n = walk_next(eval, n))
        if (is_integer_word(s->ir->ops, n->op))
            map_put(&counts, op_of(n)->name, NULL)->value.i++;
    for (;;) {
        MapEntry *most = NULL;
        for (size_t i = 0; i < counts.n; i++)
            if (counts.entries[i].value.i > (most ? most->value.i : 0))
                most = &counts.entries[i];
        if (!most)
            break;
        text_printf(t, "%s%" PRId64 " %s", any ? ", " : "", most->value.i, most->key);
        most->value.i = 0;
        any = true;
    }
    text_add(t, any ? " on codes" : "nothing on codes");
}

/* Whether what stays looks up rows: no product. */
static bool is_table(const QuantDecision *d)
{
    return ops_table.defs[d->op]->quant.in[0] == QUANT_GATHER;
}

/* "9 of 12 products of trained weights, forward and backward, are of codes; evaluation and files are of floats" */
static const char *products_line(Arena *arena, const QuantLedger *l)
{
    size_t n = 0, all = l ? l->n : 0;
    for (size_t i = 0; i < all; i++)
        n += l->list[i].kind == QUANT_PRODUCT;
    return !l ? "products of few bits"
              : arena_printf(arena,
                             "%zu of %zu products with trained weights, forward and backward, are of codes; what is "
                             "evaluated and exported are floats",
                             n, all);
}

const char *quant_report_line(Arena *arena, const qcc_step *s)
{
    const Quantization *q = &s->recipe.quantization;
    size_t n[QUANT_PRODUCT + 1] = { 0 };
    Text t;
    if (q->products)
        return products_line(arena, q->ledger);
    if (!q->spec)
        return NULL;
    text_open(&t, arena);
    text_printf(&t, "for %s: ", q->target);
    tell_words(&t, arena, s);
    for (size_t i = 0; q->ledger && i < q->ledger->n; i++) {
        const QuantDecision *d = &q->ledger->list[i];
        n[d->kind] += d->kind != QUANT_STAYS || !is_table(d);
    }
    if (q->ledger)
        text_printf(&t, "; %zu values and %zu weights quantized", n[QUANTIZED_DATA], n[QUANTIZED_WEIGHT]);
    if (n[QUANT_STAYS])
        text_printf(&t, ", %zu products stay f32", n[QUANT_STAYS]);
    return text_get(&t);
}
