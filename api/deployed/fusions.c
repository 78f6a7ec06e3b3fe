#include "api/deployed/fusions.h"

#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "runtime/log/log.h"

static bool has_pairs(const Census *c)
{
    return census_count(c, "QuantizeLinear") || census_count(c, "DequantizeLinear");
}

Status fusions_by(TargetPredictor by, Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f)
{
    return by == PREDICTS_TRT ? onnx_fusions_trt(spine, typed, arena, d, f) : onnx_fusions(spine, typed, arena, d, f);
}

Status fusions_of(qcc_model *m, TargetPredictor by, Arena *arena, Fusions *f, bool *has)
{
    const Census c = m->has_spine ? census_of(m, arena) : (Census){ .nodes = 0 };
    *has = m->has_spine && has_pairs(&c);
    return *has ? fusions_by(by, &m->spine, m->graph, arena, &m->cx->diag, f) : OK;
}

/* Without the domain, which is ONNX Runtime's. */
static const char *short_name(const char *op)
{
    const char *dot = strrchr(op, '.');
    return dot ? dot + 1 : op;
}

static const char *codes_name(int onnx)
{
    DType type;
    return dtype_from_onnx(onnx, &type) ? type == I8 ? "int8" : type == U8 ? "uint8" : "int32" : "float";
}

static const char *pairs_note(Arena *arena, const Fusions *f, bool q)
{
    size_t stay = 0, all = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->fates[i].is_q == q) {
            stay += f->fates[i].stays > 0;
            all++;
        }
    if (!all)
        return NULL;
    return stay ? arena_printf(arena, "%zu absorbed, %zu stay%s", all - stay, stay, stay == 1 ? "s" : "")
                : arena_printf(arena, "all absorbed");
}

const char *fusions_note(Arena *arena, const Fusions *f, const char *op)
{
    Text t;
    if (strcmp(op, "QuantizeLinear") == 0 || strcmp(op, "DequantizeLinear") == 0)
        return pairs_note(arena, f, op[0] == 'Q');
    text_open(&t, arena);
    for (size_t i = 0; i < f->n_changes; i++) {
        const FusionChange *c = &f->changes[i];
        if (strcmp(c->op, op) != 0)
            continue;
        if (!c->into) {
            text_printf(&t, "%s%d absorbed", t.n ? ", " : "", c->n);
            continue;
        }
        text_printf(&t, "%s%s %d", t.n ? ", " : "", short_name(c->into), c->n);
        if (c->weights)
            text_printf(&t, ": %s weights", codes_name(c->weights));
        if (c->biases)
            text_printf(&t, ", %s bias", codes_name(c->biases));
    }
    return t.n ? text_get(&t) : NULL;
}

/* The nearest to a name that people know. */
static void tell_place(Text *t, Arena *arena, const FusionFate *f)
{
    text_label(t, "");
    text_printf(t, "%-2s %s", f->is_q ? "Q" : "DQ", name_text(arena, f->value));
}

void fusions_tell(Text *t, Arena *arena, const Fusions *f, bool all)
{
    text_label(t, "fused");
    text_printf(t, "by %s (%s), as predicted: ", f->engine, f->how);
    if (f->refused) {
        text_printf(t, "the model is refused: %s\n", f->refused);
        return;
    }
    text_printf(t, "%zu of %zu Q and DQ go, %zu stay%s\n", f->n - f->orphans, f->n, f->orphans,
                f->orphans == 1 ? "s" : "");
    for (size_t i = 0; i < f->n; i++) {
        const FusionFate *fate = &f->fates[i];
        if (!fate->stays && !all)
            continue;
        tell_place(t, arena, fate);
        if (fate->stays)
            text_printf(t, ": stays: %s\n", fate->why);
        else if (fate->at)
            text_printf(t, ": into %s at %s\n", short_name(fate->by), name_text(arena, fate->at));
        else
            text_printf(t, ": into %s\n", short_name(fate->by));
    }
}

void fusions_records(Text *t, const Fusions *f)
{
    for (size_t i = 0; i < f->ops.n; i++)
        log_record(t, "fused_operator", { "name", logged_text(f->ops.entries[i].key) },
                   { "nodes", logged_int(f->ops.entries[i].value.i) });
    for (size_t i = 0; i < f->n; i++) {
        const FusionFate *fate = &f->fates[i];
        log_record(t, "fusion", { "pair", logged_text(fate->is_q ? "Q" : "DQ") }, { "node", logged_text(fate->node) },
                   { "value", logged_text(fate->value) }, { "into", logged_text(fate->stays ? NULL : fate->by) },
                   { "at", logged_text(fate->stays ? NULL : fate->at) },
                   { "why", logged_text(fate->stays ? fate->why : NULL) });
    }
}
