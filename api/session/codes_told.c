#include "api/session/codes_told.h"

#include "api/hall/words.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/quant/quantize.h"
#include "passes/quant/ledger.h"

enum { FEW = 4 }; /* bits: two codes to a byte */

typedef struct Told {
    size_t weights, packed;
    size_t tables;          /* of them those that rows are looked up in, as codes */
    size_t rounded;         /* products whose data others round, too */
    size_t widened;         /* weights that others make floats of in every run */
    size_t data;            /* values besides weights that are codes */
    size_t pairs;           /* products of unsigned data whose sums of two may leave 16 bits */
    uint64_t bytes, floats; /* of codes with scales and zero points; of the same as f32 */
} Told;

static uint64_t bytes_of(const Node *n)
{
    return n ? ((uint64_t)type_elements(n->type) * (uint64_t)dtype_bits(n->type->dtype) + 7) / 8 : 0;
}

static bool is_stored(const Node *n)
{
    return n && (n->op == OP_param || n->op == OP_const) && type_known(n->type);
}

/* What codes, scales or zero points are looked up in; themselves where they are not. */
static const Node *looked_up(const Node *n)
{
    return n && op_of(n)->quant.in[0] == QUANT_GATHER ? in(n, 0) : n;
}

/* Codes with a scale that are a scale themselves: they have no reader but those who scale by them. */
static bool is_coded_scale(const Node *n)
{
    if (!op_of(n)->quant.dequantizes || !is_stored(in(n, 0)) || !is_stored(in(n, 1)))
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (!op_of(u->user)->quant.dequantizes || in(u->user, 0) == n)
            return false;
    return n->uses != NULL;
}

/* The number of a stored weight; biases of 32 bits are none. */
static bool is_weight(const Node *n)
{
    return op_of(n)->quant.dequantizes && is_stored(looked_up(in(n, 0))) && in(n, 0)->type->dtype != I32 &&
           (is_stored(looked_up(in(n, 1))) || is_coded_scale(in(n, 1))) && !is_coded_scale(n);
}

static uint64_t bytes_of_scale(const Node *n)
{
    return is_coded_scale(n) ? bytes_of(in(n, 0)) + bytes_of(in(n, 1)) : bytes_of(looked_up(n));
}

/* Whether ONNX Runtime takes blocks of that size, or a scale a column, or one for all, into MatMulNBits; it leaves alone what
 * shares its scale with others, as the codes of weights that are stored so do. */
static bool has_grain_of_bits(const Node *number)
{
    const DequantizeAttr *at = number->attr;
    const int bits = dtype_bits(in(number, 0)->type->dtype);
    const int64_t block = at->block_size;
    if (number->type->rank != 2 || node_n_uses(in(number, 1)) > 1 || (bits != FEW && bits != 8))
        return false;
    const int axis = axis_wrap(at->axis, number->type->rank);
    return block ? axis == 0 && block >= 16 && !(block & (block - 1))
                 : type_elements(in(number, 1)->type) == 1 || axis == 1;
}

/* Whether it sees data of a product as floats: where none stand for codes, or where, of three dimensions of known
 * sizes and a list added to the result, it puts a Reshape in between that scales of rows do not pass. */
static bool has_float_data(const Node *n)
{
    const Node *data = in(n, 0), *reader = n->uses && node_n_uses(n) == 1 ? n->uses->user : NULL;
    if (!op_of(data)->quant.dequantizes)
        return true;
    if (!((const DequantizeAttr *)data->attr)->block_size || n->type->rank != 3 || !type_known(n->type) || !reader ||
        reader->op != OP_add)
        return false;
    const Node *list = in(reader, in(reader, 0) == n);
    return is_stored(list) && list->type->rank == 1;
}

/* Whether ONNX Runtime makes a MatMulNBits of a product (docs/quantization.md): of float data and a weight as it is
 * read. */
static bool becomes_bits(const Node *n)
{
    if (n->op == OP_matmul) {
        const MatmulAttr *at = n->attr;
        if (at->ta || at->tb)
            return false;
    } else if (n->op == OP_gemm) {
        const GemmAttr *at = n->attr;
        if (at->transA || at->transB || at->alpha != 1)
            return false;
    } else {
        return false;
    }
    return is_weight(in(n, 1)) && has_grain_of_bits(in(n, 1)) && has_float_data(n);
}

/* Whether no reader takes the codes of a weight: neither a product of codes nor MatMulNBits. */
static bool is_widened(const Node *weight)
{
    for (const Use *u = weight->uses; u; u = u->next) {
        const Node *data = in(u->user, 0);
        if (becomes_bits(u->user) || (data && data != weight && op_of(data)->quant.dequantizes))
            return false;
    }
    return true;
}

/* Sums of two products of u8 and i8 are below 2^15 as long as the sizes of no two weights are more than that together. */
enum { MOST_OF_TWO = 32767 / 255 };

static bool may_leave_16_bits(const Node *codes)
{
    const Tensor *t = codes->type->dtype == I8 ? node_constant(codes, INT64_MAX) : NULL;
    int64_t most = 0, second = 0;
    for (int64_t i = 0; t && i < tensor_elements(t); i++) {
        const int64_t v = tensor_get_i64(t, i), size = v < 0 ? -v : v;
        second = size > most ? most : size > second ? size : second;
        most = size > most ? size : most;
    }
    return most + second > MOST_OF_TWO;
}

/* Whether it is a product of unsigned data and a weight so large. */
static bool has_large_pairs(const Node *n)
{
    const Node *data = n->n_in > 1 ? in(n, 0) : NULL, *weight = data ? in(n, 1) : NULL;
    return weight && op_of(data)->quant.dequantizes && in(data, 0)->type->dtype == U8 && is_weight(weight) &&
           may_leave_16_bits(in(weight, 0));
}

static Told count(Graph *g)
{
    Told t = { 0 };
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        t.rounded += becomes_bits(n);
        t.data += op_of(n)->quant.quantizes;
        t.pairs += has_large_pairs(n);
        if (!is_weight(n))
            continue;
        const Node *codes = looked_up(in(n, 0));
        t.weights++;
        t.widened += is_widened(n);
        t.tables += codes != in(n, 0);
        t.packed += dtype_bits(codes->type->dtype) <= FEW;
        t.bytes += bytes_of(codes) + bytes_of_scale(in(n, 1)) + bytes_of(looked_up(in(n, 2)));
        t.floats += (uint64_t)type_elements(codes->type) * sizeof(f32);
    }
    return t;
}

/* Weights whose codes four bits would hold. */
static size_t count_few(const QuantLedger *l)
{
    size_t few = 0;
    for (size_t i = 0; l && i < l->n; i++)
        few += l->list[i].kind == QUANTIZED_WEIGHT && l->list[i].by->bits <= FEW;
    return few;
}

/* What its kernels without VNNI do. */
static void tell_pairs(Text *t, const Told *told)
{
    text_label(t, "without VNNI");
    text_printf(
        t,
        "ONNX Runtime adds up pairs of u8 x i8 in 16 bits there (x86-64), which saturate, in up to %zu product%s; session "
        "option session.x64quantprecision=1, or weights of 7 bits: --quant w7a8\n",
        told->pairs, told->pairs == 1 ? "" : "s");
}

/* What ONNX Runtime does with weights beside floats. */
static void tell_floats(Text *t, const Told *told, bool is_ort)
{
    if (is_ort && told->widened) {
        text_label(t, "widened");
        text_printf(t, "ONNX Runtime makes floats of the codes of %zu weight%s in every run (DequantizeLinear)%s\n",
                    told->widened, told->widened == 1 ? "" : "s",
                    told->data || told->rounded
                        ? ""
                        : "; session option session.disable_quant_qdq=1 does so once, as the file is loaded");
    }
    if (told->rounded) {
        text_label(t, "accuracy");
        text_printf(
            t,
            "ONNX Runtime rounds the data of %zu products to 8 bits, too (MatMulNBits, accuracy_level=4); session "
            "option session.qdq_matmulnbits_accuracy_level=1 leaves them f32\n",
            told->rounded);
    }
}

/* Those of 4 bits that are not packed, since nobody reads them so. */
static void tell_unpacked(Text *t, size_t n, size_t tables)
{
    const size_t looked_up = n < tables ? n : tables, others = n - looked_up;
    if (others) {
        text_label(t, "");
        text_printf(t,
                    "%zu of 4 bits and fewer take 8 each: products of codes are of 8 bits in ONNX Runtime; --for "
                    "generic packs them\n",
                    others);
    }
    if (looked_up) {
        text_label(t, "");
        text_printf(t, "%zu of 4 bits and fewer take%s 8 each: files look up rows of codes of 8 bits\n", looked_up,
                    looked_up == 1 ? "s" : "");
    }
}

const char *codes_told(Arena *arena, const qcc_step *s, Graph *g)
{
    const Told told = count(g);
    const size_t few = count_few(s->recipe.quantization.ledger);
    Text t;
    if (!told.weights)
        return NULL;
    text_open(&t, arena);
    text_label(&t, "weights");
    text_printf(&t, "%s: codes, scales and zero points of %zu; as f32 %s\n", bytes_text(arena, told.bytes),
                told.weights, bytes_text(arena, told.floats));
    if (few > told.packed)
        tell_unpacked(&t, few - told.packed, told.tables);
    tell_floats(&t, &told, quantization_target(&s->recipe.quantization)->predicts == PREDICTS_ORT);
    if (told.pairs && quantization_target(&s->recipe.quantization)->predicts == PREDICTS_ORT)
        tell_pairs(&t, &told);
    return text_get(&t);
}
