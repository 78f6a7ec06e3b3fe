/* explain of quantization: which values are codes, who asked, and which products stay as they are. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/quant_report.h"
#include "api/session/export_quant.h"
#include "api/verbs/explain.h"
#include "api/deployed/fusions.h"
#include "ops/card/words.h"

/* The quantizer in the words in which it is said, without those that all have. */
static void tell_one(Text *t, Arena *arena, const QuantDecision *d)
{
    static const char *const kinds[] = { "data", "weight", "bias", "stays", "float", "codes" };
    text_label(t, "");
    text_printf(t, "%-6s %s", kinds[d->kind], d->value ? name_text(arena, d->value) : d->where);
    if (d->kind == QUANT_STAYS || d->kind == QUANT_PRODUCT) {
        if (d->asked)
            text_printf(t, ", %s", d->asked);
        text_printf(t, ": %s", d->why);
        if (d->asked && d->said)
            text_printf(t, ", by %s", d->said);
        text_char(t, '\n');
        return;
    }
    text_printf(t, ": %s", quantizer_text(d->by, arena));
    text_printf(t, "; for %s", name_text(arena, d->asked));
    if (d->said)
        text_printf(t, ", by %s", d->said);
    if (quantizer_is_stored(d->by))
        text_add(t, "; its codes are what is trained, there is no copy in f32");
    else if (d->floats)
        text_add(t, ", a product of floats");
    if (d->shared)
        text_add(t, "; with the scale of what it is moved from");
    else if (d->within > 0)
        text_printf(t, "; never beyond %g", d->within);
    else if (d->state)
        text_printf(t, "; remembered in %s", name_text(arena, d->state));
    if (d->stays)
        text_add(t, "; never learned: it serves nothing that is trained");
    text_char(t, '\n');
}

/* Whether both are states of one recurrent layer, step after step. */
static bool are_states(const QuantDecision *a, const QuantDecision *b)
{
    return a->kind == QUANTIZED_DATA && b->kind == QUANTIZED_DATA && a->within > 0 && b->within > 0 && a->asked &&
           b->asked && strcmp(a->asked, b->asked) == 0;
}

/* Operators that are no products and of floats for one reason, in one line: how many, and where the first stands. */
static void tell_left(Text *t, Arena *arena, const qcc_step *s, size_t first)
{
    const QuantLedger *l = s->recipe.quantization.ledger;
    const QuantDecision *d = &l->list[first];
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const QuantDecision *other = &l->list[i];
        if (other->kind != QUANT_LEFT || other->op != d->op || strcmp(other->why, d->why) != 0)
            continue;
        if (i < first)
            return;
        n++;
    }
    const OpDef *def = s->ir->ops->defs[d->op];
    text_label(t, "");
    text_printf(t, "float  %zu %s: %s; %s%s\n", n, def->onnx.op ? def->onnx.op : def->name, d->why,
                n > 1 ? "the first is " : "", name_text(arena, d->where));
}

void explain_quantization(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const QuantLedger *l = s->recipe.quantization.ledger;
    const char *line = quant_report_line(arena, s);
    if (!line)
        return;
    text_label(t, "quantization");
    text_printf(t, "%s\n", line);
    for (size_t i = 0, more = 0; l && i < l->n; i++, more = 0) {
        if (l->list[i].kind == QUANT_LEFT)
            continue;
        tell_one(t, arena, &l->list[i]);
        while (i + 1 < l->n && are_states(&l->list[i], &l->list[i + 1]))
            i++, more++;
        if (more) {
            text_label(t, "");
            text_printf(t, "       and %zu other states of that layer\n", more);
        }
    }
    for (size_t i = 0; l && i < l->n; i++)
        if (l->list[i].kind == QUANT_LEFT)
            tell_left(t, arena, s, i);
}

/* What will be fused of the file that a run ends in; the step says it before there is one. */
static Status predict(qcc_step *s, Fusions *f)
{
    Text bytes;
    Spine spine = { .linked_data = false };
    Module *module;
    Ir ir;
    Arena *arena = &s->cx->scratch;
    text_open(&bytes, arena);
    TRY(export_sketch(s, &bytes));
    ir_open(&ir, arena, &ops_table, &s->cx->diag);
    ir.limits = s->model->ir.limits;
    source_memory(&spine.source, &s->cx->memory, "the exported model", bytes.p, bytes.n);
    Status status = spine_read(&spine, &s->cx->memory, &s->cx->diag, &ir.limits, &onnx__model_proto__descriptor);
    if (status == OK)
        status = onnx_import(&ir, arena, &spine, NULL, &module);
    if (status == OK)
        status = fusions_by(quantization_target(&s->recipe.quantization)->predicts, &spine, module->graphs[0], arena,
                            &s->cx->diag, f);
    spine_close(&spine);
    return status;
}

Status explain_fusions(Text *t, qcc_step *s, bool records)
{
    Fusions f;
    const Quantization *q = &s->recipe.quantization;
    if (!q->spec || !q->ledger || quantization_target(q)->predicts == PREDICTS_NOTHING)
        return OK;
    TRY(predict(s, &f));
    if (records)
        fusions_records(t, &f);
    else
        fusions_tell(t, &s->cx->scratch, &f, true);
    return OK;
}
