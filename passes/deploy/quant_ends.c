#include "passes/deploy/quant_ends.h"

#include <string.h>

#include "ops/card/cards.h"
#include "ops/quant/quantize.h"

void quant_ends_note(QuantEnds *e, const Graph *g, Arena *arena)
{
    map_open(&e->of, arena);
    for (const Node *n = g->first; n; n = n->next)
        if (op_of(n)->quant.dequantizes && op_of(in(n, 0))->quant.quantizes)
            map_put_u64(&e->of, (uintptr_t)n, NULL)->value.p =
                attrs_copy(arena, op_of(in(n, 0))->attrs, in(n, 0)->attr);
}

/* What codes say of themselves where nobody noted more: those of their type. */
static QuantizeAttr attr_of(const QuantEnds *e, const Node *number)
{
    const MapEntry *noted = map_find_u64(&e->of, (uintptr_t)number);
    const DequantizeAttr *at = number->attr;
    QuantizeAttr q = noted ? *(const QuantizeAttr *)noted->value.p
                           : *(const QuantizeAttr *)attrs_default(
                                 number->graph->arena, number->graph->ir->ops->defs[OP_quantize_linear]->attrs);
    const DType codes = in(number, 0)->type->dtype;
    if (!noted && (codes == I4 || codes == U4))
        q.least = codes == I4 ? -8 : 0, q.largest = codes == I4 ? 7 : 15;
    q.output_dtype = (int)(codes == I4 ? I8 : codes == U4 ? U8 : codes) + 1;
    q.axis = at->axis;
    q.block_size = at->block_size;
    q.learned = q.learned_zero = q.ends = false;
    return q;
}

/* Reads a stored value whole; null after a report. */
static const Tensor *stored(const Node *n, Arena *scratch)
{
    Payload *p = n->op == OP_const || n->op == OP_param ? node_payload(n) : NULL;
    Tensor *t = p && type_known(n->type) ? tensor_new(scratch, n->type) : NULL;
    return t && payload_read(p, t, n->graph->ir->diag) == OK ? t : NULL;
}

/* "w.numbers" of "w.codes", unless that is taken: the state is called w, and those are rounded. */
static const char *name_of_numbers(const QuantEnds *e, const char *name, Arena *arena)
{
    static const char tail[] = ".codes";
    const size_t n = name ? strlen(name) : 0;
    if (n < sizeof tail || strcmp(name + n - (sizeof tail - 1), tail) != 0)
        return NULL;
    const char *own = arena_printf(arena, "%.*s.numbers", (int)(n - (sizeof tail - 1)), name);
    return map_find(&e->taken, own) ? NULL : own;
}

/* The numbers of stored codes, as something stored. */
static Node *as_numbers(Build *b, Node *codes, const Tensor *c, const Tensor *scale, const DequantizeAttr *at)
{
    const Type *type = type_with_dtype(&b->graph->ir->types, codes->type, F32);
    const ScaleLayout layout = scale_layout_of(codes->type, scale->type, at->axis, at->block_size);
    Tensor *t = tensor_new(b->graph->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        int64_t index;
        scale_layout_indices(&layout, i, 1, &index);
        const f32 s = (f32)tensor_get_f64(scale, index);
        tensor_set_f64(t, i,
                       dtype_is_float(c->type->dtype) ? dequantize_f32((f32)tensor_get_f64(c, i), s, 0)
                                                      : dequantize_i64(tensor_get_i64(c, i), s, 0));
    }
    Node *n = build_const(b, t);
    if (n) {
        n->op = codes->op;
        n->src = codes->src;
        n->flags = codes->flags;
    }
    return n;
}

/* Whether all numbers of a value lie along one dimension: however they are moved, their order stays. */
static bool is_line(const Type *t)
{
    int64_t longest = 1;
    for (int i = 0; i < t->rank; i++)
        longest = t->dims[i] > longest ? t->dims[i] : longest;
    return longest == type_elements(t);
}

/* A stored scale that is moved into a vector, as a reader of such files does, is that vector. */
static Node *laid(Build *b, Node *scale, Arena *scratch)
{
    Node *from = op_moves(op_of(scale)) ? in(scale, 0) : NULL;
    const Tensor *values = from && type_known(scale->type) ? stored(from, scratch) : NULL;
    if (!values || !is_line(from->type) || type_elements(from->type) != type_elements(scale->type))
        return scale;
    Tensor *t = tensor_new(b->graph->arena, scale->type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, tensor_get_f64(values, i));
    Node *n = build_const(b, t);
    if (n && from->uses && !from->uses->next) {
        n->name = from->name;
        from->name = NULL;
    }
    if (n)
        stand_in(scale, n);
    return n;
}

/* Codes that a Clip cuts behind their quantizer, or those themselves. */
static Node *uncut(Node *codes)
{
    return codes->op == OP_clip && op_of(in(codes, 0))->quant.quantizes ? in(codes, 0) : codes;
}

static Status fail_at(const Node *n, const char *what)
{
    return fail_as(n->graph->ir->diag, UNSUPPORTED, node_place(n), "%s", what);
}

static bool is_same(const Node *a, const Node *b, Arena *scratch)
{
    const Tensor *x = a == b ? NULL : stored(a, scratch), *y = x ? stored(b, scratch) : NULL;
    return a == b || (y && a->type == b->type && tensor_same(x, y));
}

/* A zero point that is there, and known, has to be 0. */
static Status check_zero(const Node *number, const Node *zero, Arena *scratch)
{
    const Tensor *t = zero ? stored(zero, scratch) : NULL;
    if (zero && !t)
        return fail_at(number, "its zero point is computed");
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        if (tensor_get_f64(t, i) != 0)
            return fail_at(number, "the code of 0 is not 0: QONNX adds a zero point before it rounds, so codes at ties "
                                   "would be others");
    return OK;
}

/* The ends of a Clip that a model arrived with behind a quantizer; those that were put there are noted. */
static Status take_clip(QuantizeAttr *at, const Node *number, const Node *clip, Arena *scratch)
{
    const Tensor *least = in(clip, 1) ? stored(in(clip, 1), scratch) : NULL,
                 *largest = in(clip, 2) ? stored(in(clip, 2), scratch) : NULL;
    if ((in(clip, 1) && !least) || (in(clip, 2) && !largest))
        return fail_at(number, "what its codes are cut to is computed");
    double ends[2];
    code_limits(clip->type->dtype, at->least, at->largest, &ends[0], &ends[1]);
    if (least && tensor_get_f64(least, 0) > ends[0])
        ends[0] = tensor_get_f64(least, 0);
    if (largest && tensor_get_f64(largest, 0) < ends[1])
        ends[1] = tensor_get_f64(largest, 0);
    at->least = (int64_t)ends[0];
    at->largest = (int64_t)ends[1];
    return OK;
}

static Status restore(QuantEnds *e, Node *number, Arena *scratch)
{
    Node *codes = uncut(in(number, 0)), *scale = in(number, 1), *x;
    const bool quantizes = op_of(codes)->quant.quantizes;
    if (quantizes && !is_same(in(codes, 1), scale, scratch))
        return OK; /* codes and numbers of two scales: no quantizer, but a shift (a Trunc) */
    Build b = build_before(quantizes ? codes : number);
    scale = laid(&b, scale, scratch);
    TRY(b.status);
    b = build_before(number);
    QuantizeAttr at = attr_of(e, number);
    b.src = number->src;
    b.label = number->label;
    TRY(check_zero(number, in(number, 2), scratch));
    if (quantizes)
        TRY(check_zero(number, in(codes, 2), scratch));
    if (codes != in(number, 0) && !map_find_u64(&e->of, (uintptr_t)number)) {
        at = *(const QuantizeAttr *)codes->attr;
        TRY(take_clip(&at, number, in(number, 0), scratch));
        at.output_dtype = (int)codes->type->dtype + 1;
    }
    if (quantizes) {
        x = in(codes, 0);
    } else {
        const Tensor *c = stored(codes, scratch), *s = stored(scale, scratch);
        if (!c || !s)
            return fail_at(number, "its codes are computed, or their scale is");
        x = as_numbers(&b, codes, c, s, number->attr);
        at.rounding = ROUND_RNE; /* what codes stand for lies next to them, on either side */
    }
    Node *q = CALL_ATTR(&b, quantize_linear, at, x, scale);
    TRY(b.status);
    q->name = codes->name;
    codes->name = NULL;
    if (!op_of(codes)->quant.quantizes && (x->name = name_of_numbers(e, q->name, number->graph->arena)))
        map_put(&e->taken, x->name, NULL);
    node_set_ins(number, 2, (Node *[]){ q, scale });
    return OK;
}

Status quant_ends_restore(QuantEnds *e, Graph *g, Arena *scratch)
{
    map_open(&e->taken, scratch);
    for (Node *n = g->first; n; n = n->next)
        if (n->name)
            map_put(&e->taken, n->name, NULL);
    for (Node *n = g->first; n; n = n->next)
        if (op_of(n)->quant.dequantizes)
            TRY(restore(e, n, scratch));
    return OK;
}
