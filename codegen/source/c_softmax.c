/* softmax of codes: shares are floats of 32 bits, added up and divided in integers, in the order of ops/reduce/. */
#include <inttypes.h>
#include <string.h>

#include "codegen/source/c_parts.h"
#include "ops/card/attrs.h"
#include "ops/card/cards.h"
#include "ops/card/shapes.h"

enum { LONGEST = 1024 }; /* elements of a row, which are one segment of a sum */

bool c_is_softmax(const Node *n)
{
    return n->op == OP_softmax && op_of(in(n, 0))->quant.dequantizes;
}

/* exp of how far the number of a code is below the largest, by how far the code is; false: that depends on more. */
static Status find_shares(CSource *s, const Node *number, int64_t *shares, bool *depends)
{
    Types *types = &s->g->ir->types;
    const DType dtype = in(number, 0)->type->dtype;
    const int64_t least = dtype == I8 ? INT8_MIN : 0;
    Tensor *codes = tensor_new(s->arena, type_vector(types, dtype, 256)),
           *below = tensor_new(s->arena, type_vector(types, F32, 256)), *exps = NULL;
    const Tensor *numbers, *ins[] = { codes, c_constant(s, in(number, 1)), c_constant(s, in(number, 2)) };
    for (int i = 0; i < 256; i++)
        tensor_set_i64(codes, i, least + i);
    TRY(c_evaluate(s, number, ins, &numbers));
    const f32 *v = c_floats(s, numbers);
    *depends = false;
    for (int d = 0; d < 256; d++) {
        const f32 distance = v[255 - d] - v[255];
        tensor_set_f64(below, d, (double)distance);
        for (int most = d; most < 256; most++)
            *depends |= v[most - d] - v[most] != distance;
    }
    Graph *g = graph_new(s->g->ir, s->arena, NULL);
    Build b = build_at_end(g);
    Node *y = CALL(&b, exp, build_const(&b, below));
    TRY(b.status);
    graph_return(g, 1, &y, NULL);
    TRY(evaluate(g, NULL, &s->heap, NULL, &exps));
    const f32 *e = c_floats(s, exps);
    for (int d = 0; d < 256; d++) {
        uint32_t bits;
        memcpy(&bits, &e[d], sizeof bits);
        shares[d] = bits;
    }
    return OK;
}

/* The sum of a row: 256 sums of every 256th, eight neighbours of them at a time, then halves onto each other. */
static void print_sum(CSource *s, const char *shares, int64_t n)
{
    const int depth = s->depth;
    c_line(s, "uint32_t part[32] = { 0 };");
    c_open(s, "for (int g = 0; g < %" PRId64 "; g++) {", ((n < 256 ? n : 256) + 7) / 8);
    c_line(s, "uint32_t v[8] = { 0 };");
    c_open(s, "for (int k = 0; k < 8; k++) {");
    c_open(s, "for (int i = g * 8 + k; i < %" PRId64 "; i += 256) {", n);
    c_line(s, "v[k] = add_floats(v[k], %s[most - x[r * %" PRId64 " + i]]);", shares, n);
    c_close_to(s, depth + 1);
    c_line(s, "part[g] = add_floats(add_floats(add_floats(v[0], v[4]), add_floats(v[2], v[6])),");
    c_line(s, "                     add_floats(add_floats(v[1], v[5]), add_floats(v[3], v[7])));");
    c_close_to(s, depth);
    c_open(s, "for (int h = 16; h >= 4; h /= 2) {");
    c_open(s, "for (int k = 0; k < h; k++) {");
    c_line(s, "part[k] = add_floats(part[k], part[k + h]);");
    c_close_to(s, depth);
    c_line(s, "const uint32_t sum = add_floats(add_floats(part[0], part[2]), add_floats(part[1], part[3]));");
}

static void print_rows(CSource *s, const Node *n, const char *shares, int64_t rows, int64_t length)
{
    const QuantizeAttr *at = n->attr;
    const CFixed by = c_fixed(c_float(s, in(n, 1)));
    double least, most;
    code_limits(n->type->dtype, at->least, at->largest, &least, &most);
    const CodeRange range = { .z = (f32)c_integer(s, in(n, 2)), .lo = (f32)least, .hi = (f32)most };
    c_open(s, "for (int r = 0; r < %" PRId64 "; r++) {", rows);
    const int depth = s->depth;
    c_line(s, "int most = x[r * %" PRId64 "];", length);
    c_open(s, "for (int i = 1; i < %" PRId64 "; i++) {", length);
    c_line(s, "most = x[r * %" PRId64 " + i] > most ? x[r * %" PRId64 " + i] : most;", length, length);
    c_close_to(s, depth);
    print_sum(s, shares, length);
    c_open(s, "for (int i = 0; i < %" PRId64 "; i++) {", length);
    c_line(s, "const uint32_t v = %s[most - x[r * %" PRId64 " + i]];", shares, length);
    c_store(s, arena_printf(s->arena, "r * %" PRId64 " + i", length),
            arena_printf(s->arena, "share(v, sum, INT64_C(%" PRId64 "), %d)", by.m, by.shift), &range, n->type->dtype);
    c_close_to(s, 0);
}

static Status check(CSource *s, const Node *n, const Node *softmax, int axis)
{
    const Node *number = in(softmax, 0), *codes = in(number, 0);
    const QuantizeAttr *at = n->attr;
    if (!c_constant(s, in(number, 1)) || type_elements(in(number, 1)->type) != 1 || !c_constant(s, in(n, 1)) ||
        type_elements(in(n, 1)->type) != 1 || (in(n, 2) && !c_constant(s, in(n, 2))) || at->rounding != ROUND_RNE ||
        at->precision || (codes->type->dtype != U8 && codes->type->dtype != I8) || !c_value(s, codes)->at ||
        !c_type(n->type->dtype))
        return c_refuse(softmax, "it is not between codes of 8 bits with one scale each", NULL);
    for (int d = axis + 1; d < n->type->rank; d++)
        if (n->type->dims[d] != 1)
            return c_refuse(softmax, "its shares are not those of rows", "a Transpose before it and one behind it");
    if (n->type->dims[axis] > LONGEST)
        return c_refuse(softmax, "its rows have more than 1024 elements", NULL);
    return OK;
}

Status c_print_softmax(CSource *s, const Node *n)
{
    const Node *softmax = in(n, 0), *number = in(softmax, 0), *codes = in(number, 0);
    const int axis = axis_wrap(((const AxisAttr *)softmax->attr)->axis, softmax->type->rank);
    int64_t shares[256];
    bool depends;
    TRY(check(s, n, softmax, axis));
    TRY(find_shares(s, number, shares, &depends));
    if (depends)
        return c_refuse(softmax, "its shares depend on more than how far codes are apart",
                        "a scale in front of it that is a power of two (pow2)");
    const int64_t length = n->type->dims[axis];
    const char *name = c_name(s, c_text_of(s, n)), *table = c_name(s, arena_printf(s->arena, "%s_shares", name));
    text_add(&s->code, "\n");
    c_table(s, table, "uint32_t", 256, shares);
    c_function(s, name, n, 1, &codes, arena_printf(s->arena, "shares of the exponentials of rows of %" PRId64, length));
    print_rows(s, n, table, length ? type_elements(n->type) / length : 0, length);
    c_call(s, name, 2, (const Node *const[]){ codes, n });
    return OK;
}
