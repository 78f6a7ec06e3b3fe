#include "codegen/source/c_source.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "codegen/source/c_parts.h"
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"

/* clang-format off */
static const struct {
    Op op;
    Status (*print)(CSource *s, const Node *n);
} words[] = {
    { OP_qconv, c_print_conv },                { OP_qmatmul, c_print_matmul },
    { OP_qadd, c_print_add },                  { OP_qmul, c_print_mul },
    { OP_qaverage_pool, c_print_average_pool }, { OP_qglobal_average_pool, c_print_global_average_pool },
    { OP_max_pool, c_print_max_pool },         { OP_concat, c_print_concat },
    { OP_quantize_linear, c_print_quantize },  { OP_arg_max, c_print_arg },
    { OP_arg_min, c_print_arg },
};
/* clang-format on */

static const char *upper(CSource *s, const char *name)
{
    char *big = arena_printf(s->arena, "%s", name);
    for (char *c = big; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return big;
}

/* Parameters of the run have a scope of their own: of what is taken they may have the letters that indices have. */
static void name_port(CSource *s, CPort *p, const char *said)
{
    const bool letter = said && isalpha((unsigned char)said[0]) && !said[1] && !p->name;
    p->said = said ? said : "";
    p->name = letter ? arena_printf(s->arena, "%s", said) : c_parameter_name(s, said && *said ? said : "value");
    p->big = arena_printf(s->arena, "%s_%s", s->big, upper(s, p->name));
}

/* ---- parameters ---- */

static Status open_size(const Node *n)
{
    Message *m =
        message_new(n->graph->ir->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n),
                    "no C of it: the size of %s is open, and arrays of C have one", n->name ? n->name : "a value");
    message_try(m, "--batch 1");
    message_try(m, "--shape INPUT=1x3x32x32");
    return message_send(m);
}

/* The only quantizer that reads an input; null: others read it, too. */
static Node *quantizer_of(CSource *s, const Node *input)
{
    Node *found = input->uses && !input->uses->next ? input->uses->user : NULL;
    const bool plain = found && found->op == OP_quantize_linear && in(found, 0) == input && in(found, 2) &&
                       c_type(found->type->dtype) && c_constant(s, in(found, 1)) && c_constant(s, in(found, 2)) &&
                       type_elements(in(found, 1)->type) == 1 &&
                       ((const QuantizeAttr *)found->attr)->rounding == ROUND_RNE &&
                       !((const QuantizeAttr *)found->attr)->precision;
    return plain ? found : NULL;
}

static Status add_input(CSource *s, const Node *n)
{
    CPort *p = &s->inputs[s->n_inputs++];
    const Node *codes = n->type->dtype == F32 ? quantizer_of(s, n) : n;
    if (!type_known(n->type))
        return open_size(n);
    if (!codes || !c_type(codes->type->dtype) || codes->type->dtype == I64)
        return c_refuse(n, arena_printf(s->arena, "something reads %s as numbers, not as codes", n->name),
                        "qcc --export MODEL --quant w8a8 --calibrate FILE -o CODES.onnx; qcc CODES.onnx --emit c");
    p->value = codes;
    p->floats = codes != n;
    c_value(s, codes)->name = p->name;
    c_value(s, codes)->at = codes;
    if (!p->floats)
        return OK;
    p->scales = c_floats(s, c_constant(s, in(codes, 1)));
    p->n_scales = 1;
    p->zero = c_integer(s, in(codes, 2));
    return OK;
}

/* f32(sx * sw), one or one a column. */
static const f32 *scales_of_product(CSource *s, const Node *n, int *count)
{
    const Tensor *sw = c_constant(s, in(n, QMATMUL_B_SCALE));
    const f32 *scales = c_floats(s, sw), sx = c_float(s, in(n, QMATMUL_A_SCALE));
    *count = (int)tensor_elements(sw);
    f32 *products = NEWS(s->arena, f32, (size_t)*count);
    for (int i = 0; i < *count; i++)
        products[i] = sx * scales[i];
    return products;
}

const f32 *c_sum_scales(CSource *s, const Node *n, const Node **sums, int *count)
{
    const Type *t = n->type;
    *sums = n;
    if (n->op == OP_qmatmul && t->kind == TYPE_TENSOR && t->dtype == F32 && c_value(s, n)->at)
        return scales_of_product(s, n, count);
    if (!op_of(n)->quant.dequantizes || in(n, 0)->type->dtype != I32 || (in(n, 2) && c_integer(s, in(n, 2))) ||
        !c_constant(s, in(n, 1)) || !c_value(s, in(n, 0))->at || t->rank == 0)
        return NULL;
    const DequantizeAttr *at = n->attr;
    *sums = in(n, 0);
    *count = (int)type_elements(in(n, 1)->type);
    const bool columns = in(n, 1)->type->rank == 1 && axis_wrap(at->axis, t->rank) == t->rank - 1;
    return !at->block_size && (columns || *count == 1) ? c_floats(s, c_constant(s, in(n, 1))) : NULL;
}

static Status add_output(CSource *s, int i)
{
    CPort *p = &s->outputs[s->n_outputs++];
    const Node *n = graph_result(s->g, i), *value = n->type->dtype == F32 ? c_behind_shapes(n) : n;
    p->value = value;
    p->floats = n->type->dtype == F32;
    if (!type_known(n->type))
        return open_size(n);
    const Node *sums;
    const f32 *scales = p->floats ? c_sum_scales(s, value, &sums, &p->n_scales) : NULL;
    if (scales) {
        p->value = sums;
        p->scales = scales;
    } else if (op_of(value)->quant.dequantizes && in(value, 0)->type->dtype != I32 && c_constant(s, in(value, 1)) &&
               type_elements(in(value, 1)->type) == 1) {
        p->value = in(value, 0);
        p->scales = c_floats(s, c_constant(s, in(value, 1)));
        p->n_scales = 1;
        p->zero = c_integer(s, in(value, 2));
    } else if (p->floats)
        return c_refuse(value, arena_printf(s->arena, "its result is floats, which %s computes", op_of(value)->name),
                        "--for generic, which quantizes more; or end the model before it");
    const Node *at = c_value(s, p->value)->at;
    if (!at || c_value(s, at)->name)
        return c_refuse(n, at ? "a result is an input, or another result, as it is" : "a result is no codes", NULL);
    c_value(s, at)->name = p->name;
    return OK;
}

/* ---- calls ---- */

/* Whether a word on codes multiplies in fixed point: what is printed for such words multiplies as floats do. */
static bool is_fixed(const Node *n)
{
    const AttrSpec *a = attr_find(op_of(n)->attrs, str("factor"));
    return a && a->kind == ATTR_ENUM && op_of(n)->gives_codes && *(const int *)attr_at(a, n->attr) == FACTOR_Q31;
}

static Status print_node(CSource *s, const Node *n)
{
    if (c_constant(s, n) || c_value(s, n)->at || n->type->kind != TYPE_TENSOR)
        return OK;
    if (c_is_step(s, n))
        return OK; /* whoever reads it says what becomes of it */
    if (c_ends_steps(s, n))
        return c_print_steps(s, n);
    if (is_fixed(n))
        return c_refuse(n, "its codes are made in fixed point, which files have as operators of integers",
                        "qcc --export MODEL --quant w8a8 --for integer-only -o CODES.onnx; qcc CODES.onnx --emit c");
    for (size_t i = 0; i < COUNT(words); i++)
        if (n->op == words[i].op && (n->type->dtype != F32 || n->op == OP_qmatmul))
            return words[i].print(s, n);
    if (n->type->dtype == F32) {
        const OpDef *def = op_of(n);
        if (def->quant.dequantizes || def->access.kind == ACCESS_ROW || n->op == OP_concat || c_behind_shapes(n) != n ||
            (c_picks(n) && op_of(in(n, 0))->quant.dequantizes) || c_is_softmax(n))
            return OK; /* whoever reads it says what becomes of it */
        return c_refuse(n, arena_printf(s->arena, "%s computes on floats", def->name),
                        "qcc explain MODEL --quant .., which says what stays floats, and why");
    }
    if (n->type->dtype == I64 && c_behind_shapes(n) != n && c_value(s, c_behind_shapes(n))->at) {
        c_same(s, n, c_behind_shapes(n));
        return OK;
    }
    if (c_picks(n))
        return c_print_pick(s, n, n);
    if (n->op == OP_part ? op_moves(op_of(in(n, 0))) : op_moves(op_of(n)))
        return c_print_move(s, n);
    return c_refuse(n, arena_printf(s->arena, "%s has no C yet", op_of(n)->name), NULL);
}

static Status print_nodes(CSource *s)
{
    for (const Node *n = s->g->first; n; n = n->next) {
        if (n->type->kind == TYPE_TENSOR && !type_known(n->type))
            return open_size(n);
        if (n->type->kind != TYPE_TENSOR && n->type->kind != TYPE_TUPLE)
            return c_refuse(n, "it gives what is no tensor", NULL);
        TRY(print_node(s, n));
    }
    return OK;
}

/* ---- all of it ---- */

static void print_head(Text *t, const CSource *s)
{
    text_printf(t, "/* %s: a model that computes on codes of 8 bits; made by %s.\n", s->name, s->options->made_by);
    text_printf(t,
                " * %" PRId64 " bytes of constant tables, %" PRId64
                " bytes of working memory.  C99; int has 32 bits at least. */\n",
                s->table_bytes, s->arena_bytes);
}

/* Before functions have names: parameters keep theirs. */
static void name_ports(CSource *s)
{
    for (size_t i = 0; i < s->g->n_inputs; i++)
        name_port(s, &s->inputs[i], s->g->inputs[i]->name);
    for (int i = 0; i < graph_n_results(s->g); i++) {
        const char *name = graph_result_name(s->g, i);
        name_port(s, &s->outputs[i], name ? name : graph_result(s->g, i)->name);
    }
}

static Status print(CSource *s, Text *out)
{
    name_ports(s);
    TRY(c_find_constants(s));
    for (size_t i = 0; i < s->g->n_inputs; i++)
        TRY(add_input(s, s->g->inputs[i]));
    TRY(print_nodes(s));
    for (int i = 0; i < graph_n_results(s->g); i++)
        TRY(add_output(s, i));
    c_plan(s);
    print_head(out, s);
    c_print_interface(out, s);
    if (s->options->header)
        return OK;
    if (strstr(text_get(&s->code), "memcpy("))
        text_add(out, "\n#include <string.h>\n");
    c_print_runtime(out, text_get(&s->code));
    text_bytes(out, text_get(&s->code), s->code.n);
    c_print_run(out, s);
    if (c_has_floats(s))
        c_print_float_run(out, s);
    return OK;
}

Status c_source_print(Text *out, Graph *g, const CSourceOptions *options)
{
    Arena *arena = out->arena;
    CSource s = { .g = g, .arena = arena, .options = options };
    s.values = facts_open(arena, sizeof(CValue));
    map_open(&s.names, arena);
    text_open(&s.code, arena);
    heap_open(&s.heap, g->ir->memory);
    s.name = c_parameter_name(&s, g->name && *g->name ? g->name : options->name);
    s.big = upper(&s, s.name);
    s.inputs = NEWS(arena, CPort, g->n_inputs + 1);
    s.outputs = NEWS(arena, CPort, (size_t)graph_n_results(g) + 1);
    const Status status = print(&s, out);
    heap_close(&s.heap);
    return status;
}
