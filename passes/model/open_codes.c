/* open-codes: a weight that a file stores as codes, in front of a DequantizeLinear, becomes the numbers that they stand for
 * and a quantizer with the scale and zero point of the file, so that it can be trained: its codes are the same, bit by
 * bit, until it is.
 *
 *     graph @f(%x: f32[2,2]) -> (%y) {
 *         param %w: i8[2,2] = [10, -20, 30, 40]
 *         param %s: f32[] = 0.5
 *         %d: f32[2,2] = dequantize_linear(%w, %s, output_dtype=f32) !1
 *         %y: f32[2,2] = matmul(%x, %d) !2
 *     }
 *     ==>
 *     graph @f(%x: f32[2,2]) -> (%y) {
 *         param %w: f32[2,2] = [5, -10, 15, 20]
 *         param %s: f32[] = 0.5
 *         %0: i8[2,2] = quantize_linear(%w, %s, output_dtype=i8, least=-127, largest=127) !1
 *         %d: f32[2,2] = dequantize_linear(%0, %s, output_dtype=f32) !1
 *         %y: f32[2,2] = matmul(%x, %d) !2
 *     }
 *
 * Weights of four bits in bytes keep to those (least, largest), and so do those without -128.  Codes of data that a Clip
 * cuts behind their quantizer, which is how files say fewer bits than a byte has, are the quantizer's own: gradients pass
 * between them.
 *
 * Not where others read the codes too, where scales are computed or are no positive numbers, or where codes of 32 bits are
 * beyond what f32 tells apart; then a remark says so, and they stay what they are. */
#include "base/heap.h"
#include "ir/store/blob.h"
#include "ops/card/make.h"
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"

enum { CODES, SCALES, ZEROS, CODE_OPERANDS };

/* A payload that is computed from codes, scales and zero points when it is read. */
typedef struct Opened {
    Payload payload;
    Payload *of[CODE_OPERANDS]; /* the last one null: zeros */
    ScaleLayout layout;
    Memory *memory;
} Opened;

/* What a payload holds, read into a heap; null after a reported failure. */
static const Tensor *values_of(Payload *p, Heap *heap, Diag *diag)
{
    void *block = NULL;
    const void *bytes = payload_bytes(p, heap, &block, diag);
    if (!bytes)
        return NULL;
    Tensor *t = heap_alloc(heap, sizeof *t);
    *t = (Tensor){ .type = p->type, .data = (void *)(uintptr_t)bytes };
    return t;
}

static Status open_values(const Opened *o, Tensor *out, Heap *heap, Diag *diag)
{
    enum { RUN = 256 };
    const Tensor *of[CODE_OPERANDS] = { NULL };
    const int64_t n = tensor_elements(out);
    for (int i = 0; i < CODE_OPERANDS; i++)
        if (o->of[i] && !(of[i] = values_of(o->of[i], heap, diag)))
            return INVALID;
    for (int64_t first = 0; first < n; first += RUN) {
        int64_t index[RUN];
        const int64_t count = n - first < RUN ? n - first : RUN;
        scale_layout_indices(&o->layout, first, count, index);
        for (int64_t i = 0; i < count; i++) {
            const int64_t z = of[ZEROS] ? tensor_get_i64(of[ZEROS], index[i]) : 0;
            const f32 code = (f32)(tensor_get_i64(of[CODES], first + i) - z);
            tensor_set_f64(out, first + i, code * (f32)tensor_get_f64(of[SCALES], index[i]));
        }
    }
    return OK;
}

static Status read_opened(Payload *self, void *out, size_t bytes, Diag *diag)
{
    const Opened *o = self->owner;
    Tensor t = { .type = self->type, .data = out, .bytes = bytes };
    Heap heap;
    heap_open(&heap, o->memory);
    const Status status = open_values(o, &t, &heap, diag);
    heap_close(&heap);
    return status;
}

/* ---- which weights ---- */

static Payload *held(const Node *n)
{
    return n && (n->op == OP_param || n->op == OP_const) && type_known(n->type) ? node_payload(n) : NULL;
}

static bool is_code(DType t)
{
    return t == I8 || t == U8 || t == I4 || t == U4 || t == I16 || t == U16 || t == I32;
}

/* The least and the largest of some codes. */
typedef struct Span {
    int64_t least, largest;
} Span;

static Span span_of(const Tensor *codes)
{
    Span s = { 0, 0 };
    for (int64_t i = 0; i < tensor_elements(codes); i++) {
        const int64_t c = tensor_get_i64(codes, i);
        s.least = c < s.least ? c : s.least;
        s.largest = c > s.largest ? c : s.largest;
    }
    return s;
}

/* The codes that a weight keeps to: bytes that hold four bits still do, and what is without the code that has no
 * counterpart stays so. */
static Span codes_kept(DType type, Span s)
{
    if (type == I8 && s.least >= -8 && s.largest <= 7)
        return (Span){ s.least < -7 ? -8 : -7, 7 };
    if (type == U8 && s.largest <= 15)
        return (Span){ 0, 15 };
    return type == I8 && s.least > -128 ? (Span){ -127, 127 } : (Span){ 0, 0 };
}

/* Whether these numbers become these codes again, whatever they are; *span: what they keep to. */
static bool return_to_codes(Payload *codes, Payload *scales, Heap *heap, Diag *diag, Span *span)
{
    static const double least = 1e-30, most = 1e30;
    enum { EXACT_IN_F32 = 1 << 24 };
    const Tensor *s = values_of(scales, heap, diag), *c = values_of(codes, heap, diag);
    bool good = s && c;
    for (int64_t i = 0; good && i < tensor_elements(s); i++)
        good = tensor_get_f64(s, i) >= least && tensor_get_f64(s, i) <= most;
    if (!good)
        return false;
    *span = span_of(c);
    good = span->least >= -EXACT_IN_F32 && span->largest <= EXACT_IN_F32;
    *span = codes_kept(codes->type->dtype, *span);
    return good;
}

/* Why the codes in front of a call stay codes; null: they may be opened. */
static const char *objection(Node *n, Span *span)
{
    Node *codes = in(n, CODES);
    Diag *diag = n->graph->ir->diag;
    if (n->type->dtype != F32 || in(n, SCALES)->type->dtype != F32)
        return "they stand for numbers of another type than f32";
    if (!held(in(n, SCALES)) || (in(n, ZEROS) && !held(in(n, ZEROS))))
        return "their scale is computed";
    if (node_n_uses(codes) != 1)
        return "others read them too";
    if (!codes->name || codes->graph->owner)
        return "they are stated inside the body of a node, or have no name";
    Heap heap;
    heap_open(&heap, n->graph->arena->memory);
    const bool good = return_to_codes(held(codes), held(in(n, SCALES)), &heap, diag, span);
    heap_close(&heap);
    return good ? NULL : "f32 does not tell them apart";
}

/* ---- the graph ---- */

static Status open_weight(Node *n, PassRun *run, Span span)
{
    Graph *g = n->graph;
    Node *codes = in(n, CODES);
    const DequantizeAttr *at = n->attr;
    Opened *o = NEW(g->arena, Opened);
    const Type *type = type_with_dtype(&g->ir->types, codes->type, F32);
    *o = (Opened){ .payload = { .type = type, .name = codes->name, .arena = g->arena, .read = read_opened },
                   .of = { held(codes), held(in(n, SCALES)), held(in(n, ZEROS)) },
                   .layout = scale_layout_of(type, in(n, SCALES)->type, at->axis, at->block_size),
                   .memory = g->arena->memory };
    o->payload.owner = o;
    Build b = build_before(n);
    b.src = n->src;
    b.label = n->label;
    ValueAttr *value = NEW(g->arena, ValueAttr);
    const QuantizeAttr quantize = { .axis = at->axis,
                                    .block_size = at->block_size,
                                    .output_dtype = (int)codes->type->dtype + 1,
                                    .saturate = true,
                                    .least = span.least,
                                    .largest = span.largest,
                                    .mask = MASK_BY_CODE,
                                    .gain = 1 };
    *value = (ValueAttr){ .value = &o->payload };
    codes->attr = value;
    codes->type = type;
    Node *again = build_node(&b, OP_quantize_linear, &quantize, in(n, ZEROS) ? 3 : 2,
                             (Node *[]){ codes, in(n, SCALES), in(n, ZEROS) });
    TRY(b.status);
    node_set_in(n, CODES, again);
    run->changes++;
    return OK;
}

/* A code that a file states; false: it is computed. */
static bool stated_code(const Node *n, Heap *heap, int64_t *code)
{
    const Tensor *t = held(n) && type_elements(n->type) == 1 ? values_of(held(n), heap, n->graph->ir->diag) : NULL;
    if (t)
        *code = tensor_get_i64(t, 0);
    return t != NULL;
}

/* The codes between which a call cuts those of its operand, which nobody else reads; false: it does not. */
static bool cuts_codes(const Node *n, Span *span)
{
    const Node *codes = in(n, 0);
    if (n->op != OP_clip || !is_code(n->type->dtype) || !op_of(codes)->quant.quantizes || node_n_uses(codes) != 1 ||
        !in(n, 1) || !in(n, 2))
        return false;
    const QuantizeAttr *at = codes->attr;
    Heap heap;
    heap_open(&heap, n->graph->arena->memory);
    const bool good = stated_code(in(n, 1), &heap, &span->least) && stated_code(in(n, 2), &heap, &span->largest);
    heap_close(&heap);
    return good && at->least == at->largest && span->least < span->largest;
}

/* The quantizer gives no others itself. */
static void take_cut(Node *n, Span span, PassRun *run)
{
    Node *codes = in(n, 0);
    QuantizeAttr *at = attrs_copy(n->graph->arena, op_of(codes)->attrs, codes->attr);
    at->least = span.least;
    at->largest = span.largest;
    codes->attr = at;
    graph_replace(n, codes);
    node_remove(n);
    run->changes++;
}

static Status open_codes(Graph *g, PassRun *run)
{
    Span cut;
    for (Node *n = walk_first(g), *next; n; n = next) {
        next = walk_next(g, n);
        if (cuts_codes(n, &cut))
            take_cut(n, cut, run);
    }
    for (Node *n = walk_first(g), *next; n; n = next) {
        next = walk_next(g, n);
        Node *codes = in(n, CODES);
        if (!op_of(n)->quant.dequantizes || codes->op != OP_param || !held(codes) || !is_code(codes->type->dtype))
            continue;
        Span span;
        const char *why = objection(n, &span);
        if (!why)
            TRY(open_weight(n, run, span));
        else
            remark(run->diag, "open_codes", node_place(n), "the codes %s are not trained: %s",
                   codes->name ? codes->name : "", why);
    }
    return OK;
}

const Pass pass_open_codes = { .name = "open-codes", .needs = TYPED, .may = EXACT, .run = open_codes };
