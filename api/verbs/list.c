/* What the cards say, as lists: operators, and the tables of classes and roles; and what quantizers are in full. */
#include <stdlib.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/options/recipe_options.h"
#include "api/verbs/verbs.h"
#include "ops/card/schema.h"
#include "passes/amp/table.h"
#include "passes/quant/table.h"

static const char *title_of(Arena *a, const OpDef *def)
{
    if (!def->onnx.op)
        return def->name;
    return def->onnx.domain ? arena_printf(a, "%s.%s", def->onnx.domain, def->onnx.op) : def->onnx.op;
}

/* What a card says to one question, for a column. */
typedef struct Question {
    const char *word, *help;
    void (*answer)(Text *t, const OpDef *def);
    void (*sum)(Text *t); /* the last line; null: there is none */
} Question;

static void answer_meaning(Text *t, const OpDef *def)
{
    text_add(t, def->row ? "row" : def->eval ? "eval" : def->expand ? "expand" : "structure");
}

static const OnnxSchema *schema_of(const OpDef *def)
{
    return def->onnx.op ? schema_find(def->onnx.domain ? def->onnx.domain : "", def->onnx.op, ONNX_OPSET_NEWEST) : NULL;
}

static bool has_gradient(const OpDef *def, int operand)
{
    return (def->adjoint || def->expand) && def->differentiable >> (operand < 31 ? operand : 31) & 1;
}

/* Operands that have a gradient by the names that ONNX gives them, by number where it gives none. */
static void answer_grad(Text *t, const OpDef *def)
{
    const OnnxSchema *s = schema_of(def);
    const int known = s ? s->n_in : 0;
    bool any = false, more = false;
    for (int i = 0; i < known; i++) {
        if (!has_gradient(def, i))
            continue;
        more |= (s->in[i].flags & ONNX_PARAM_VARIADIC) != 0;
        text_printf(t, "%s%s%s", any ? ", " : "", s->in[i].name, s->in[i].flags & ONNX_PARAM_VARIADIC ? ".." : "");
        any = true;
    }
    for (int i = known; i < 32 && !more; i++) {
        if (!has_gradient(def, i))
            continue;
        more = i < 31 && has_gradient(def, 31) && has_gradient(def, i + 1);
        text_printf(t, "%s%d%s", any ? ", " : "", i, more ? ".." : "");
        any = true;
    }
    text_add(t, !any ? "none" : def->adjoint ? "" : "; through its expansion");
}

/* Whether every operand that ONNX marks as differentiable has a gradient; *marked: whether it marks any. */
static bool is_covered(const OnnxSchema *s, bool *marked)
{
    Op op;
    bool good = op_find_onnx(&ops_table, "", s->op, &op);
    *marked = false;
    for (int i = 0; i < s->n_in; i++) {
        if (!(s->in[i].flags & ONNX_PARAM_DIFFERENTIABLE))
            continue;
        *marked = true;
        good = good && has_gradient(ops_table.defs[op], i);
    }
    return good;
}

static void sum_grad(Text *t)
{
    size_t n, marked = 0, covered = 0;
    const OnnxSchema *all = schema_all(&n);
    for (size_t i = 0; i < n; i++) {
        bool here;
        if (schema_next(&all[i]) || all[i].deprecated || strcmp(all[i].domain, "ai.onnx") != 0)
            continue;
        const bool good = is_covered(&all[i], &here);
        marked += here;
        covered += here && good;
    }
    text_printf(t, "operators of ONNX that are marked as differentiable, and have every gradient: %zu of %zu\n",
                covered, marked);
}

static void list_mask(Text *t, const char *what, uint32_t mask)
{
    text_add(t, mask ? what : "");
    for (int i = 0; mask >> i && i < 32; i++)
        if (mask >> i & 1)
            text_printf(t, "%s%d", mask & ((1u << i) - 1) ? "," : " ", i);
}

/* What stays f32 beside narrow values, and whether results are small whatever comes. */
static void answer_amp(Text *t, const OpDef *def)
{
    const AmpCard *card = &def->amp;
    text_printf(t, "%-3s %-3s %s", amp_word(card->f16), amp_word(card->bf16), amp_reason(card->reason));
    list_mask(t, "; wide", card->wide);
    list_mask(t, "; wide results", card->wide_out);
    text_add(t, card->bounded ? "; bounded" : "");
}

static void answer_quant(Text *t, const OpDef *def)
{
    text_printf(t, "%s -> %s", quant_word(def->quant.in[0]), quant_word(def->quant.out[0]));
}

/* The element types of the first operand. */
static void answer_types(Text *t, const OpDef *def)
{
    const OnnxSchema *s = schema_of(def);
    const OnnxParam *p = !s ? NULL : s->n_in ? schema_input(s, 0) : schema_output(s, 0);
    const uint32_t mask = p ? s->types[p->types].tensor : 0;
    for (int d = 0, any = 0; d < DTYPE_COUNT; d++)
        if (mask >> dtype_onnx((DType)d) & 1)
            text_printf(t, "%s%s", any++ ? " " : "", dtype_name((DType)d));
}

static const Question questions[] = {
    { NULL, "meaning", answer_meaning, NULL },
    { "grad", "operands with a gradient", answer_grad, sum_grad },
    { "amp", "fp16, bf16, reason, what stays f32", answer_amp, NULL },
    { "quant", "first operand -> result", answer_quant, NULL },
    { "types", "element types", answer_types, NULL },
};

static int by_title(const void *a, const void *b)
{
    return strcmp(((const char *const *)a)[0], ((const char *const *)b)[0]);
}

typedef struct Titled {
    const char *title;
    const OpDef *def;
} Titled;

/* Operators of ONNX by their names there, then words of ours. */
static const Titled *titled_ops(Arena *a, size_t *n)
{
    Titled *list = NEWS(a, Titled, ops_table.n);
    size_t n_onnx = 0, at;
    for (size_t i = 0; i < ops_table.n; i++)
        n_onnx += ops_table.defs[i]->onnx.op != NULL;
    at = n_onnx;
    n_onnx = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *def = ops_table.defs[i];
        list[def->onnx.op ? n_onnx++ : at++] = (Titled){ title_of(a, def), def };
    }
    qsort(list, n_onnx, sizeof *list, by_title);
    qsort(list + n_onnx, at - n_onnx, sizeof *list, by_title);
    *n = at;
    return list;
}

/* Operators of ONNX, in their newest version, that no card stands for; Constant becomes a parameter while it is read. */
static void list_missing(Text *t)
{
    size_t n;
    Op op;
    const OnnxSchema *all = schema_all(&n);
    for (size_t i = 0; i < n; i++) {
        const OnnxSchema *s = &all[i];
        const bool main = strcmp(s->domain, "ai.onnx") == 0;
        if (schema_next(s) || s->deprecated || strcmp(s->op, "Constant") == 0 ||
            op_find_onnx(&ops_table, main ? "" : s->domain, s->op, &op))
            continue;
        text_printf(t, "%s%s%-*s %-28s %5d  not here\n", main ? "" : s->domain, main ? "" : ".",
                    main ? 32 : 31 - (int)strlen(s->domain), s->op, "-", s->since);
    }
}

static Status no_question(Command *c, const char *word)
{
    const char *words[COUNT(questions)];
    for (size_t i = 1; i < COUNT(questions); i++)
        words[i - 1] = questions[i].word;
    Place place = ON_COMMAND_LINE;
    place.where = "--list-ops";
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "has no column '%s'", word);
    for (size_t i = 1; i < COUNT(questions); i++)
        message_try(m, "qcc --list-ops %s", words[i - 1]);
    return message_send(m);
}

Status command_list_ops(Command *c)
{
    const Question *q = &questions[0];
    Arena *a = &c->cx->scratch;
    Text t;
    size_t n;
    if (c->line.n_paths) {
        size_t i = 1;
        while (i < COUNT(questions) && strcmp(questions[i].word, c->line.paths[0]) != 0)
            i++;
        if (i == COUNT(questions))
            return no_question(c, c->line.paths[0]);
        q = &questions[i];
    }
    const Titled *ops = titled_ops(a, &n);
    text_open(&t, a);
    text_printf(&t, "%-32s %-28s %5s  %s\n", "operator", "word", "opset", q->help);
    for (size_t i = 0; i < n; i++) {
        const OpDef *def = ops[i].def;
        const char *since = def->onnx.op ? arena_printf(a, "%d", def->onnx.since) : "-";
        text_printf(&t, "%-32s %-28s %5s  ", ops[i].title, def->name, since);
        q->answer(&t, def);
        text_char(&t, '\n');
    }
    list_missing(&t);
    if (q->sum)
        q->sum(&t);
    return out_bytes(c->out, t.p, t.n);
}

/* ---- tables: SELECTOR key=value ..., as --amp-table and --quant-table take them ---- */

Status command_print_table(Command *c)
{
    const char *target = options_target(&c->line);
    const bool amp = strcmp(option_text(&c->line, OPT_print_table), "amp") == 0;
    Text t;
    size_t n;
    const Titled *ops = titled_ops(&c->cx->scratch, &n);
    text_open(&t, &c->cx->scratch);
    text_add(&t, amp ? "# Classes of mixed precision: for fp16, for bf16, operands that stay wide, and why.\n"
                     : arena_printf(&c->cx->scratch,
                                    "# Roles in graphs quantized for %s: of operands and results (the last "
                                    "one serves those beyond).\n",
                                    target));
    for (size_t i = 0; i < n; i++) {
        if (ops[i].def->structural)
            continue;
        if (amp)
            amp_table_print(&t, ops[i].title, ops[i].def);
        else
            quant_table_print(&t, ops[i].title, ops[i].def, &ops_table, quant_target(target));
    }
    return out_bytes(c->out, t.p, t.n);
}

/* ---- quantizers ---- */

Status command_print_quantizer(Command *c)
{
    const char *target = options_target(&c->line);
    QuantSpec spec;
    Text t;
    TRY(quantizer_read(&spec, "--print-quantizer", option_text(&c->line, OPT_print_quantizer), target, &c->cx->scratch,
                       &c->cx->diag));
    text_open(&t, &c->cx->scratch);
    quantizer_explain(&t, &spec);
    text_printf(&t, "\nin full         %s\n", quantizer_spec_text(&spec, &c->cx->scratch));
    return out_bytes(c->out, t.p, t.n);
}
