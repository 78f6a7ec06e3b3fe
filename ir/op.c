#include "ir/op.h"

#include <string.h>

#include "ir/graph.h"

const Type *infer_fail(Infer *q, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    q->complaint = arena_vprintf(q->scratch, format, args);
    va_end(args);
    return NULL;
}

const Type *infer_results(Infer *q, int n, const Type *const *results)
{
    if (q->n_out > n)
        return infer_fail(q, "has %d results, %d are read", n, q->n_out);
    return q->n_out == 1 ? results[0] : type_tuple(q->types, q->n_out, results);
}

bool op_find(const OpTable *t, Str word, Op *op)
{
    for (size_t i = 0; i < t->n; i++) {
        if (str_is(word, t->defs[i]->name)) {
            *op = (Op)i;
            return true;
        }
    }
    return false;
}

bool op_find_onnx(const OpTable *t, const char *domain, const char *op_type, Op *op)
{
    const char *want = domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
    for (size_t i = 0; i < t->n; i++) {
        const OnnxName *o = &t->defs[i]->onnx;
        if (o->op && strcmp(o->op, op_type) == 0 && strcmp(o->domain ? o->domain : "", want) == 0) {
            *op = (Op)i;
            return true;
        }
    }
    return false;
}

bool op_takes(const OpDef *def, int n_in)
{
    return n_in >= def->min_in && (def->max_in < 0 || n_in <= def->max_in);
}

/* The bit of an operand: the last one stands for all beyond. */
static bool has_bit(uint32_t mask, int operand)
{
    return mask >> (operand < 31 ? operand : 31) & 1;
}

bool op_steers(const OpDef *def, int operand)
{
    return has_bit(def->access.steer, operand);
}

bool op_reads_value(const OpDef *def, int operand)
{
    return !has_bit(def->access.type_only, operand);
}

bool op_trains(const OpDef *def, int operand)
{
    return has_bit(def->trainable, operand);
}

bool op_passes(const OpDef *def)
{
    return def->access.kind == ACCESS_MOVE && def->min_in == 1 && def->max_in == 1 && !def->attrs && !def->latches;
}

bool op_looks_up(const OpDef *def)
{
    return def->access.kind == ACCESS_GATHER && op_trains(def, 0);
}

bool op_guards(const OpDef *def, int operand)
{
    return (operand < 32 && def->amp.nonzero >> operand & 1) || (operand == 0 && def->amp.keeps_off);
}

bool op_is_smooth(const OpDef *def, int operand)
{
    return has_bit(def->differentiable, operand);
}

bool op_reads_type(const OpDef *def, int operand)
{
    return def->access.type_only >> (operand < 31 ? operand : 31) & 1;
}

bool op_moves(const OpDef *def)
{
    return def->access.kind == ACCESS_MOVE || def->access.kind == ACCESS_GATHER;
}
