/* op_manual: prints what the cards say of every word, as docs/ops-reference.md. */
#include <stdio.h>
#include <stdlib.h>

#include "api/hall/words.h"
#include "base/number_text.h"
#include "ops/card/cards.h"
#include "ops/card/row.h"
#include "ops/card/schema.h"

static const char head[] =
    "# The operators\n"
    "\n"
    "Printed from the cards by `op_manual`; [ops.md](ops.md) explains the fields. Operands with a `?` may be absent, a\n"
    "`..` repeats the last; an attribute is given with its default, or with `!` when it has none. Attributes marked * are\n"
    "not ONNX's but ours. Classes and roles are those that `qcc --print-table amp` and `quant` print.\n";

static const char *const modes[] = {
    [MODE_PURE] = "", [MODE_RANDOM] = "; draws", [MODE_TRAINING] = "; different in training"
};

static void print_dtypes(Text *t, uint32_t mask)
{
    bool any = false;
    uint32_t every = 0;
    for (int d = 0; d < DTYPE_COUNT; d++)
        every |= d == BIT ? 0 : 1u << dtype_onnx((DType)d);
    if ((mask & every) == every) {
        text_add(t, "every type");
        return;
    }
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (mask >> dtype_onnx((DType)d) & 1) {
            text_printf(t, "%s%s", any ? " " : "", dtype_name((DType)d));
            any = true;
        }
}

/* "f32 f64", "seq of f32", ... */
static void print_types(Text *t, const OnnxTypes *types)
{
    const struct {
        const char *before;
        uint32_t mask;
    } kinds[] = { { "", types->tensor },
                  { "sequences of ", types->seq },
                  { "optional ", types->opt },
                  { "optional sequences of ", types->opt_seq } };
    bool any = false;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].mask) {
            text_printf(t, "%s%s", any ? "; " : "", kinds[i].before);
            print_dtypes(t, kinds[i].mask);
            any = true;
        }
}

static bool is_variable(const OnnxTypes *types)
{
    for (const char *p = types->var; *p; p++)
        if (*p == '(')
            return false;
    return true;
}

static void print_params(Text *t, const char *title, const OnnxSchema *s, const OnnxParam *params, int n)
{
    if (!n)
        return;
    text_printf(t, "- %s: ", title);
    for (int i = 0; i < n; i++) {
        const OnnxTypes *types = &s->types[params[i].types];
        text_printf(t, "%s`%s`%s%s ", i ? ", " : "", params[i].name, params[i].flags & ONNX_PARAM_OPTIONAL ? "?" : "",
                    params[i].flags & ONNX_PARAM_VARIADIC ? ".." : "");
        if (is_variable(types))
            text_add(t, types->var);
        else
            print_types(t, types);
    }
    text_char(t, '\n');
}

/* Results that ONNX does not have. */
static void print_saved(Text *t, const OpDef *d)
{
    for (int i = 0; d->saved && d->saved[i]; i++)
        text_printf(t, "%s`%s`", i ? ", " : "- and, for the way back: ", d->saved[i]);
    text_add(t, d->saved ? "\n" : "");
}

static void print_variables(Text *t, const OnnxSchema *s)
{
    for (int i = 0; i < s->n_types; i++) {
        if (!is_variable(&s->types[i]))
            continue;
        text_printf(t, "- %s: ", s->types[i].var);
        print_types(t, &s->types[i]);
        text_char(t, '\n');
    }
}

static void print_default(Text *t, const AttrSpec *a)
{
    static const char *const kinds[] = {
        [ATTR_INTS] = "integers", [ATTR_FLOATS] = "numbers", [ATTR_STRS] = "strings", [ATTR_PAYLOAD] = "tensor",
        [ATTR_TYPE] = "type",     [ATTR_STR] = "string",     [ATTR_DTYPE] = "type",   [ATTR_INT] = "integer",
        [ATTR_FLOAT] = "number",  [ATTR_ENUM] = "choice",    [ATTR_BOOL] = "bool"
    };
    char number[NUMBER_TEXT];
    if (a->required) {
        text_printf(t, ": %s!", kinds[a->kind]);
    } else if (a->kind == ATTR_ENUM) {
        for (int i = 0; a->choices[i]; i++)
            text_printf(t, "%s%s%s%s", i ? " " : ": ", i == (int)a->value ? "**" : "", a->choices[i],
                        i == (int)a->value ? "**" : "");
    } else if (a->kind == ATTR_BOOL) {
        text_printf(t, " = %s", a->value != 0 ? "true" : "false");
    } else if (a->kind == ATTR_INT) {
        text_printf(t, " = %lld", (long long)a->value);
    } else if (a->kind == ATTR_FLOAT) {
        f32_to_text(number, (float)a->value);
        text_printf(t, " = %s", number);
    } else if (a->kind == ATTR_DTYPE && a->value > 0) {
        text_printf(t, " = %s", dtype_name((DType)((int)a->value - 1)));
    } else if (a->kind == ATTR_STR && a->text) {
        text_printf(t, " = \"%s\"", a->text);
    } else {
        text_printf(t, ": %s", kinds[a->kind]);
    }
}

static void print_attributes(Text *t, const OpDef *d)
{
    bool any = false;
    for (const AttrSpec *a = d->attrs; a && a->kind != ATTR_END; a++) {
        text_printf(t, "%s`%s`%s", any ? ", " : "- attributes: ", a->name, a->ours ? "*" : "");
        print_default(t, a);
        any = true;
    }
    text_add(t, any ? "\n" : "");
}

/* Every switch on, every number 1. */
static void *all_set(Arena *arena, const AttrSpec *specs)
{
    void *attr = attrs_default(arena, specs);
    for (const AttrSpec *a = specs; a->kind != ATTR_END; a++)
        if (a->kind == ATTR_BOOL)
            *(bool *)attr_at(a, attr) = true;
        else if (a->kind == ATTR_FLOAT)
            *(float *)attr_at(a, attr) = 1;
    return attr;
}

/* The states of one step of an optimizer: with the defaults, and those that attributes ask for beside them. */
static void print_states(Text *t, const OpDef *d)
{
    const char *few[8], *all[8];
    if (!d->states)
        return;
    const int n_few = d->states(attrs_default(t->arena, d->attrs), few),
              n_all = d->states(all_set(t->arena, d->attrs), all);
    text_add(t, n_few ? "- states:" : "- states: none");
    for (int i = 0; i < n_few; i++)
        text_printf(t, " `%s`", few[i]);
    for (int i = n_few; i < n_all; i++)
        text_printf(t, "%s `%s`", i == n_few ? "; by attributes also" : "", all[i]);
    text_char(t, '\n');
}

static void print_mask(Text *t, const char *before, uint32_t mask)
{
    if (!mask)
        return;
    text_add(t, before);
    int tail = 32; /* the last bit stands for all operands beyond */
    while (tail && mask >> (tail - 1) & 1)
        tail--;
    for (int i = 0; i < tail; i++)
        if (mask >> i & 1)
            text_printf(t, " %d", i);
    if (tail == 0)
        text_add(t, " all");
    else if (tail < 32)
        text_printf(t, " %d and beyond", tail);
}

static void print_classes(Text *t, const OpDef *d)
{
    text_printf(t, "- mixed precision: f16 %s, bf16 %s", amp_word(d->amp.f16), amp_word(d->amp.bf16));
    if (d->amp.reason != REASON_NONE)
        text_printf(t, ", for %s", amp_reason(d->amp.reason));
    print_mask(t, "; wide:", d->amp.wide);
    print_mask(t, "; wide results:", d->amp.wide_out);
    text_add(t, d->amp.bounded ? "; bounded\n- quantization: " : "\n- quantization: ");
    for (size_t i = 0; i < COUNT(d->quant.in) && (!i || d->quant.in[i] != QUANT_UNSET); i++)
        text_printf(t, "%s%s", i ? ", " : "", quant_word(d->quant.in[i]));
    text_add(t, " -> ");
    for (size_t i = 0; i < COUNT(d->quant.out) && (!i || d->quant.out[i] != QUANT_UNSET); i++)
        text_printf(t, "%s%s", i ? ", " : "", quant_word(d->quant.out[i]));
    text_printf(t, "%s%s", d->quant.same_scale ? "; one scale for all" : "",
                d->quant.weight_axis ? "; weights by channel" : "");
    if (d->quant.integer)
        text_printf(t, "; on codes %s", ops_table.defs[d->quant.integer]->name);
    text_char(t, '\n');
    if (d->differentiable || d->trainable) {
        text_add(t, "- operands:");
        print_mask(t, " differentiable", d->differentiable);
        print_mask(t, d->differentiable ? "; trainable" : " trainable", d->trainable);
        text_char(t, '\n');
    }
}

static void print_counts(Text *t, const char *what, int least, int most)
{
    if (most < 0)
        text_printf(t, "- %s: %d or more\n", what, least);
    else if (least == most)
        text_printf(t, "- %s: %d\n", what, least);
    else
        text_printf(t, "- %s: %d to %d\n", what, least, most);
}

static void print_card(Text *t, const OpDef *d)
{
    const OnnxSchema *s =
        d->onnx.op ? schema_find(d->onnx.domain ? d->onnx.domain : "", d->onnx.op, ONNX_OPSET_NEWEST) : NULL;
    text_printf(t, "\n## %s\n\n", d->name);
    if (d->onnx.op)
        text_printf(t, "ONNX's %s, as of version %d.", d->onnx.op, d->onnx.since);
    else
        text_add(t, d->brief ? d->brief : "A word of the language.");
    if (d->structural) {
        text_char(t, '\n');
        return;
    }
    text_printf(t, " Meaning: %s%s; reads as %s%s.\n\n",
                d->row    ? "row"
                : d->eval ? "eval"
                          : "expand",
                modes[d->mode], access_word(d->access.kind), d->commutative ? "; commutative" : "");
    if (d->row)
        text_printf(t, "- value: `%s`\n", d->row->text);
    if (s) {
        print_params(t, "operands", s, s->in, s->n_in);
        print_params(t, "results", s, s->out, s->n_out);
        print_saved(t, d);
        print_variables(t, s);
    } else {
        print_counts(t, "operands", d->min_in, d->max_in);
    }
    print_attributes(t, d);
    print_states(t, d);
    print_classes(t, d);
}

static Status print_all(void *arg)
{
    Memory *memory = arg;
    Arena arena;
    Text t;
    arena_open(&arena, memory);
    text_open(&t, &arena);
    text_add(&t, head);
    for (size_t i = 0; i < ops_table.n; i++)
        print_card(&t, ops_table.defs[i]);
    const bool written = fwrite(t.p, 1, t.n, stdout) == t.n && fflush(stdout) == 0;
    arena_close(&arena);
    return written ? OK : IO;
}

int main(void)
{
    Memory memory;
    memory_open(&memory, NULL);
    return (int)guarded(&memory, print_all, &memory);
}
