/* Which values become narrow: values whose types ONNX's schemas tie together form a set, and a set is narrow or f32
 * as a whole.  Constants tie nothing together: each reader gets them in the type it wants. */
#include <string.h>

#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/narrowing.h"
#include "ops/control/control.h"

typedef struct Slots {
    int in, out;
    bool data; /* the value comes from float data: an input, a table; not from shapes and indices alone */
} Slots;

bool holds_f32(const Type *type)
{
    while (type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL)
        type = type->parts[0];
    return type->kind == TYPE_TENSOR && type->dtype == F32;
}

const Type *narrowed(Types *types, const Type *type, DType to)
{
    enum { DEEPEST = 32 };
    TypeKind around[DEEPEST];
    int depth = 0;
    while ((type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL) && depth < DEEPEST) {
        around[depth++] = type->kind;
        type = type->parts[0];
    }
    if (type->kind == TYPE_TENSOR && type->dtype == F32)
        type = type_with_dtype(types, type, to);
    while (depth)
        type = around[--depth] == TYPE_SEQ ? type_seq(types, type) : type_optional(types, type);
    return type;
}

const AttrSpec *says_type(const Node *n)
{
    static const char *const saying[] = { "to", "dtype", "output_dtype", "output_datatype" };
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++)
        for (size_t i = 0; i < COUNT(saying); i++)
            if (s->kind == ATTR_DTYPE && strcmp(s->name, saying[i]) == 0)
                return s;
    return NULL;
}

/* ---- sets ---- */

static int set_of(Narrowing *x, int k)
{
    while (x->kin[k].set != k)
        k = x->kin[k].set = x->kin[x->kin[k].set].set;
    return k;
}

static void unite(Narrowing *x, int a, int b)
{
    a = set_of(x, a);
    b = set_of(x, b);
    x->kin[b].wide |= x->kin[a].wide;
    x->kin[b].narrow |= x->kin[a].narrow;
    x->kin[a].set = b;
}

static void want_narrow(Narrowing *x, int k)
{
    x->kin[set_of(x, k)].narrow = true;
}

static void want_wide(Narrowing *x, int k, const Node *why)
{
    x->kin[set_of(x, k)].wide = true;
    GROW(x->arena, x->forced, x->n_forced, x->cap_forced);
    x->forced[x->n_forced++] = (Forced){ (Node *)(uintptr_t)why, k };
}

static bool is_constant(const Node *n)
{
    return n->op == OP_const || n->op == OP_param;
}

static int operand(Narrowing *x, const Node *n, int i)
{
    return ((Slots *)fact(&x->slots, n))->in + i;
}

static int result(Narrowing *x, const Node *n, int i)
{
    return ((Slots *)fact(&x->slots, n))->out + i;
}

static void number(Narrowing *x, const Node *n)
{
    const int count = n->n_in + type_results(n->type);
    *(Slots *)fact(&x->slots, n) = (Slots){ .in = (int)x->n, .out = (int)x->n + n->n_in };
    for (int i = 0; i < count; i++) {
        GROW(x->arena, x->kin, x->n, x->cap);
        x->kin[x->n] = (Kin){ .set = (int)x->n };
        x->n++;
    }
}

static void number_signature(Narrowing *x, const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        number(x, g->inputs[i]);
        ((Slots *)fact(&x->slots, g->inputs[i]))->data = true;
    }
    if (g->ret)
        number(x, g->ret);
}

/* An operand is what it reads, unless that is a constant. */
static void tie_operands(Narrowing *x, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !is_constant(in(n, i)) && holds_f32(in(n, i)->type))
            unite(x, operand(x, n, i), result(x, in(n, i), 0));
}

/* ---- calls ---- */

/* The kin of a slot: operands first, then results; false when it holds no f32. */
static bool slot(Narrowing *x, const Node *n, int i, int *k, const Type **type)
{
    const int own = own_operands(n);
    const Node *def = i < own ? in(n, i) : NULL;
    if (i < own && !def)
        return false;
    *type = def ? def->type : type_result(n->type, i - own);
    *k = def ? operand(x, n, i) : result(x, n, i - own);
    return holds_f32(*type);
}

static bool is_group(const Type *type)
{
    return type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL;
}

int narrow_opset(const Node *n)
{
    const int before = ONNX_OPSET_NEWEST - 1;
    return op_of(n)->expand && encode_is_standard(n, before) ? before : ONNX_OPSET_NEWEST;
}

static const OnnxSchema *schema_of(const Node *n)
{
    const OnnxName *name = &op_of(n)->onnx;
    const int opset = narrow_opset(n);
    const bool standard = name->op && !name->domain && n->op != OP_bit_cast && encode_is_standard(n, opset);
    return standard ? schema_find("", name->op, opset) : NULL;
}

/* Slots of one type variable are one set, and everything is where sequences are. */
static void tie_call(Narrowing *x, const Node *n)
{
    enum { MOST_TYPES = 32 };
    const OnnxSchema *s = schema_of(n);
    const int own = own_operands(n), count = own + type_results(n->type);
    int bound[MOST_TYPES], first = -1, k;
    bool groups = false;
    const Type *type;
    for (int i = 0; i < MOST_TYPES; i++)
        bound[i] = -1;
    for (int i = 0; i < count; i++)
        groups |= slot(x, n, i, &k, &type) && is_group(type);
    for (int i = 0; i < count; i++) {
        if (!slot(x, n, i, &k, &type))
            continue;
        const OnnxParam *p = !s ? NULL : i < own ? schema_input(s, i) : schema_output(s, i - own);
        if (!p || !encode_takes(s, p, narrowed(&x->graph->ir->types, type, x->options->to)))
            want_wide(x, k, n);
        int *same = groups ? &first : p && !(p->flags & ONNX_PARAM_MIXED) ? &bound[p->types] : NULL;
        if (same && *same >= 0)
            unite(x, k, *same);
        if (same)
            *same = k;
    }
}

/* What the card would say of a call with narrow operands; null: nothing. */
static const Type *imagined(Narrowing *x, const Node *n)
{
    Ir *ir = x->graph->ir;
    const Type **types = NEWS(x->arena, const Type *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        types[i] = in(n, i) ? narrowed(&ir->types, in(n, i)->type, x->options->to) : NULL;
    Infer q = { .ir = ir,
                .types = &ir->types,
                .def = op_of(n),
                .attr = n->attr,
                .n_in = n->n_in,
                .in = types,
                .value = NEWS(x->arena, const Tensor *, n->n_in + 1),
                .n_out = type_results(n->type),
                .scratch = x->arena };
    return op_of(n)->infer(&q);
}

/* Results with a type variable of their own: an attribute says what they are, or they follow the operands, or they are
 * f32 in any case. */
static void tie_results(Narrowing *x, const Node *n)
{
    const int own = own_operands(n), count = type_results(n->type);
    int k, lead;
    const Type *type;
    if (count < 2 || n->n_regions || says_type(n))
        return;
    const bool leads = slot(x, n, own, &lead, &type);
    const Type *like = imagined(x, n);
    for (int i = 1; like && i < count; i++) {
        if (!slot(x, n, own + i, &k, &type) || (leads && set_of(x, k) == set_of(x, lead)))
            continue;
        if (type_result(like, i)->dtype == F32)
            want_wide(x, k, n);
        else if (leads)
            unite(x, k, lead);
    }
}

/* What a body is given and gives is of one type on both sides. */
static void tie_body(Narrowing *x, const Node *n, const Graph *body)
{
    const int first = n->n_in - (int)body->n_inputs, cond = n->op == OP_loop;
    int from, to;
    for (int j = 0; j < (int)body->n_inputs; j++)
        if (first + j >= 0 && in(n, first + j))
            unite(x, operand(x, n, first + j), result(x, body->inputs[j], 0));
    for (int j = cond; j < body->ret->n_in && j - cond < type_results(n->type); j++)
        unite(x, operand(x, body->ret, j), result(x, n, j - cond));
    for (int i = 0; (n->op == OP_loop || n->op == OP_scan) && state_of_call(n, i, &from, &to); i++)
        unite(x, result(x, body->inputs[from], 0), operand(x, body->ret, to));
}

/* Matrices and more that an operator reads are weights. */
static bool reads_weight(const Node *n, int i)
{
    enum { LEAST = 16 };
    const Node *def = in(n, i);
    return def && is_constant(def) && def->type->kind == TYPE_TENSOR && def->type->rank > 1 &&
           type_elements(def->type) >= LEAST;
}

static bool is_float(const Node *n)
{
    return n->type->kind != TYPE_TENSOR || dtype_is_float(n->type->dtype);
}

/* Looked up in a table, drawn, or computed from what is. */
static bool is_data(Narrowing *x, const Node *n)
{
    const bool looks_up = n->op == OP_gather || n->op == OP_gather_nd || n->op == OP_gather_elements;
    bool data = op_of(n)->mode == MODE_RANDOM || (looks_up && is_float(in(n, 0)));
    for (int i = 0; i < n->n_in && !data; i++)
        data = in(n, i) && is_float(in(n, i)) && ((Slots *)fact(&x->slots, in(n, i)))->data;
    return data;
}

/* Products of weights and data are what the type is chosen for; those of positions and frequencies keep their bits. */
static void mark_weights(Narrowing *x, const Node *n)
{
    const AmpCard *amp = &op_of(n)->amp;
    const bool product = amp->f16 == AMP_T || amp->bf16 == AMP_T || op_of(n)->access.kind == ACCESS_CONTRACT;
    const int own = own_operands(n);
    int k;
    const Type *type;
    if (!((Slots *)fact(&x->slots, n))->data)
        return;
    for (int i = 0; i < own + type_results(n->type); i++)
        if (slot(x, n, i, &k, &type) && (i < own ? reads_weight(n, i) : product))
            want_narrow(x, k);
}

/* A constant of a type variable of its own follows the rest. */
static void tie_constants(Narrowing *x, const Node *n)
{
    int k, lead = -1;
    const Type *type;
    const int own = own_operands(n);
    for (int i = own + type_results(n->type) - 1; i >= 0; i--)
        if (slot(x, n, i, &k, &type) && (i >= own || !is_constant(in(n, i))) && !x->kin[set_of(x, k)].wide)
            lead = k;
    for (int i = 0; i < own && lead >= 0; i++)
        if (slot(x, n, i, &k, &type) && is_constant(in(n, i)) && !x->kin[set_of(x, k)].wide)
            unite(x, k, lead);
}

static void tie_node(Narrowing *x, const Node *n)
{
    if (n->op == OP_part) {
        unite(x, result(x, n, 0), result(x, in(n, 0), (int)((const PartAttr *)n->attr)->index));
        ((Slots *)fact(&x->slots, n))->data = is_data(x, n);
        return;
    }
    tie_operands(x, n);
    ((Slots *)fact(&x->slots, n))->data = is_data(x, n);
    for (int i = 0; n->op == OP_tuple && i < n->n_in; i++)
        unite(x, operand(x, n, i), result(x, n, i));
    if (op_of(n)->structural && n->op != OP_opaque)
        return;
    tie_call(x, n);
    for (int r = 0; r < n->n_regions; r++) {
        tie_operands(x, n->regions[r]->ret);
        tie_body(x, n, n->regions[r]);
    }
    tie_results(x, n);
    if (!n->n_regions)
        tie_constants(x, n);
    mark_weights(x, n);
}

/* ---- the graph ---- */

static bool is_kept(const Narrowing *x, const char *name)
{
    return name && narrow_keeps(x, name);
}

static void mark_signature(Narrowing *x)
{
    const Graph *g = x->graph;
    tie_operands(x, g->ret);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (holds_f32(g->inputs[i]->type) && !is_kept(x, g->inputs[i]->name))
            want_narrow(x, result(x, g->inputs[i], 0));
    for (int i = 0; i < g->ret->n_in; i++)
        if (in(g->ret, i) && holds_f32(in(g->ret, i)->type) && !is_kept(x, graph_result_name(g, i)))
            want_narrow(x, operand(x, g->ret, i));
}

void narrow_sort(Narrowing *x)
{
    Graph *g = x->graph;
    x->slots = facts_open(x->arena, sizeof(Slots));
    x->n = x->n_forced = 0;
    number_signature(x, g);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        number(x, n);
        for (int r = 0; r < n->n_regions; r++)
            number_signature(x, n->regions[r]);
    }
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        tie_node(x, n);
    mark_signature(x);
}

static bool narrows(Narrowing *x, int k)
{
    const Kin *set = &x->kin[set_of(x, k)];
    return set->narrow && !set->wide;
}

bool operand_narrows(Narrowing *x, const Node *n, int i)
{
    return in(n, i) && holds_f32(in(n, i)->type) && narrows(x, operand(x, n, i));
}

bool result_narrows(Narrowing *x, const Node *n, int i)
{
    return holds_f32(type_result(n->type, i)) && narrows(x, result(x, n, i));
}

size_t narrow_conflicts(Narrowing *x, Node ***list)
{
    size_t n = 0;
    Map seen;
    map_open(&seen, x->arena);
    *list = NEWS(x->arena, Node *, x->n_forced + 1);
    for (size_t i = 0; i < x->n_forced; i++) {
        bool fresh;
        if (!x->kin[set_of(x, x->forced[i].kin)].narrow)
            continue;
        map_put_u64(&seen, x->forced[i].node->id, &fresh);
        if (fresh)
            (*list)[n++] = x->forced[i].node;
    }
    return n;
}
