#include "ops/card/words.h"

#include "ops/card/cards.h"

#include "base/status.h"

/* clang-format off */
static const struct { const char *word, *meaning; } classes[] = {
    [AMP_UNSET] = { "-",  "no class" },
    [AMP_T]     = { "T",  "computes narrow, accumulates in f32" },
    [AMP_S]     = { "S",  "computes in f32 between narrow edges" },
    [AMP_FO]    = { "FO", "gives f32" },
    [AMP_FI]    = { "FI", "takes f32: its input is never narrowed for it" },
    [AMP_F]     = { "F",  "stays f32" },
    [AMP_EX]    = { "EX", "elementwise, leaves the narrow range" },
    [AMP_E]     = { "E",  "elementwise, follows its input" },
    [AMP_W]     = { "W",  "takes all operands to the widest of them" },
    [AMP_P]     = { "P",  "moves data, keeps its type" },
    [AMP_PW]    = { "PW", "moves data of several operands, which get one type" },
    [AMP_PM]    = { "PM", "monotone: rounding before or after is the same" },
    [AMP_N]     = { "N",  "has no float data" },
    [AMP_X]     = { "X",  "its type is its meaning" },
    [AMP_C]     = { "C",  "depends on attributes or operands" },
};

static const char *const access[] = {
    [ACCESS_OPAQUE] = "opaque",     [ACCESS_ROW] = "pointwise",         [ACCESS_FOLD] = "reduce",
    [ACCESS_SCAN] = "scan",         [ACCESS_CONTRACT] = "contract", [ACCESS_WINDOW] = "window",
    [ACCESS_MOVE] = "move",         [ACCESS_GATHER] = "gather",   [ACCESS_SCATTER] = "scatter",
    [ACCESS_DRAW] = "draw",         [ACCESS_COMPOSITE] = "composite",
};

static const char *const reasons[] = {
    [REASON_NONE] = "-",           [REASON_RANGE] = "range",   [REASON_PRECISION] = "precision",
    [REASON_INDEX] = "index",      [REASON_SCHEMA] = "schema", [REASON_KERNEL] = "kernel",
    [REASON_MEANING] = "meaning",
};

static const struct { const char *word, *meaning; } roles[] = {
    [QUANT_UNSET]    = { "-",        "no role" },
    [QUANT_INPUT]    = { "input",    "an activation of an operator that computes with codes" },
    [QUANT_WEIGHT]   = { "weight",   "a weight, quantized by channel" },
    [QUANT_BIAS]     = { "bias",     "a bias, in int32" },
    [QUANT_AGNOSTIC] = { "agnostic", "the codes of its input pass through" },
    [QUANT_TABLE]    = { "table",    "a function of one code: a table of 256" },
    [QUANT_GATHER]   = { "gather",   "rows of a quantized table, dequantized behind it" },
    [QUANT_FLOAT]    = { "float",    "stays float" },
    [QUANT_NEVER]    = { "never",    "integers, indices, shapes" },
};
/* clang-format on */

const char *access_word(AccessKind kind)
{
    return access[kind];
}

const char *amp_word(AmpClass c)
{
    return classes[c].word;
}

const char *amp_meaning(AmpClass c)
{
    return classes[c].meaning;
}

bool amp_keeps_wide(AmpClass c)
{
    return c == AMP_S || c == AMP_FO || c == AMP_FI || c == AMP_F || c == AMP_EX || c == AMP_X;
}

const char *amp_reason(AmpReason r)
{
    return reasons[r];
}

const char *quant_word(QuantRole r)
{
    return roles[r].word;
}

const char *quant_meaning(QuantRole r)
{
    return roles[r].meaning;
}

QuantRole quant_role(const QuantCard *card, int operand)
{
    const int last = COUNT(card->in) - 1;
    int i = operand < last ? operand : last;
    while (i > 0 && card->in[i] == QUANT_UNSET)
        i--;
    return card->in[i];
}

int quant_weight_axis(const Node *n, int operand)
{
    const QuantCard *card = &op_of(n)->quant;
    const Type *t = operand < n->n_in && n->in[operand].def ? n->in[operand].def->type : NULL;
    if (!card->weight_axis || !t || t->kind != TYPE_TENSOR || t->rank < 1)
        return QUANT_WHOLE;
    return card->weight_axis(n, operand);
}

static const char *with_domain(Arena *arena, const char *domain, const char *op)
{
    return domain && *domain ? arena_printf(arena, "%s.%s", domain, op) : op;
}

const char *op_title(Arena *arena, const Node *n)
{
    const OpDef *def = op_of(n);
    if (n->op == OP_opaque) {
        const OpaqueAttr *a = n->attr;
        return with_domain(arena, a->domain, a->op_type);
    }
    return def->onnx.op ? with_domain(arena, def->onnx.domain, def->onnx.op) : def->name;
}
