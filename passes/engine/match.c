/* Patterns against nodes: a search over goals that backs out of commutative choices.  The depth of its calls is that
 * of the pattern, which is ours, never that of the graph. */
#include <string.h>

#include "passes/engine/pattern.h"

#define LEAF(i)                                                                                                        \
    {                                                                                                                  \
        .kind = PATTERN_LEAF, .index = (i)                                                                             \
    }
const Pattern pattern_leaves[MATCH_LEAVES] = { LEAF(0), LEAF(1), LEAF(2), LEAF(3), LEAF(4), LEAF(5) };
const Pattern pattern_const = { .kind = PATTERN_CONST };
const Pattern pattern_none = { .kind = PATTERN_NONE };

enum { LARGEST_COMPARED = 1 << 16 }; /* bytes of a constant whose elements are looked at */

typedef struct Goal {
    const Pattern *pattern;
    Node *node;
    const struct Goal *next;
} Goal;

static bool meet(Match *m, const Goal *goal);

/* `value` as the element type holds it. */
static double held(const Type *type, double value)
{
    const int64_t one[] = { 1 };
    int64_t buffer[2] = { 0 };
    const Type scalar = { .kind = TYPE_TENSOR, .dtype = type->dtype, .rank = 1, .dims = one };
    Tensor t = { .type = &scalar, .data = buffer, .bytes = sizeof buffer };
    tensor_set_f64(&t, 0, value);
    return tensor_get_f64(&t, 0);
}

static bool same_number(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool is_whole(double value)
{
    return value >= -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value;
}

bool constant_is(const Node *n, double value)
{
    if (!n || n->op != OP_const || n->type->kind != TYPE_TENSOR || n->type->dtype == STRING)
        return false;
    const Tensor *t = node_constant(n, LARGEST_COMPARED);
    const int64_t count = t ? tensor_elements(t) : 0;
    if (count == 0 || (dtype_is_integer(n->type->dtype) && !is_whole(value)))
        return false;
    const double want = dtype_is_float(n->type->dtype) ? held(n->type, value) : value + 0.0;
    for (int64_t i = 0; i < count; i++)
        if (!same_number(tensor_get_f64(t, i), want))
            return false;
    return true;
}

static bool is_absent(const Pattern *p)
{
    return !p || p->kind == PATTERN_NONE;
}

static bool same_op(const Pattern *p, const Node *n)
{
    if (p->fits)
        return p->fits(op_of(n));
    return p->word ? strcmp(p->word, op_of(n)->name) == 0 : p->op == n->op;
}

static bool in_order(Match *m, const Pattern *p, Node *n, bool swapped, const Goal *then)
{
    Goal goals[PATTERN_OPERANDS];
    int last = PATTERN_OPERANDS - 1, operands = n->n_in;
    const Goal *next = then;
    while (last >= 0 && !p->in[last])
        last--;
    if (last >= 0 && p->in[last]->kind == PATTERN_REST) {
        if (n->n_in < last + p->in[last]->index)
            return false;
        m->rest_of = n;
        m->rest = operands = last;
        last--;
    }
    for (int i = last + 1; i < operands; i++)
        if (in(n, i))
            return false;
    for (int i = last; i >= 0; i--) {
        Node *operand = in(n, swapped ? 1 - i : i);
        if (is_absent(p->in[i]) != !operand)
            return false;
        if (!operand)
            continue;
        goals[i] = (Goal){ p->in[i], operand, next };
        next = &goals[i];
    }
    return meet(m, next);
}

static bool meet_call(Match *m, const Pattern *p, Node *n, const Goal *then)
{
    if (!same_op(p, n) || m->n_nodes == MATCH_NODES)
        return false;
    m->node[m->n_nodes] = n;
    m->attr[m->n_nodes++] = n->attr;
    if (!op_of(n)->commutative || n->n_in != 2 || !p->in[1] || p->in[1]->kind == PATTERN_REST)
        return in_order(m, p, n, false, then);
    const Match before = *m;
    if (in_order(m, p, n, false, then))
        return true;
    *m = before;
    return in_order(m, p, n, true, then);
}

static bool meet_leaf(Match *m, const Pattern *p, Node *n)
{
    if (m->x[p->index])
        return m->x[p->index] == n;
    m->x[p->index] = n;
    return true;
}

static bool meet_constant(Match *m, const Pattern *p, Node *n)
{
    if (n->op != OP_const || m->n_constants == MATCH_CONSTANTS)
        return false;
    if (p->kind == PATTERN_EQ && !constant_is(n, p->value))
        return false;
    m->constant[m->n_constants++] = n;
    return true;
}

/* The end of an initializer's value: the next comma outside of brackets. */
static const char *behind_value(const char *at)
{
    for (int depth = 0; *at && (depth || *at != ','); at++) {
        depth += *at == '(' || *at == '{' || *at == '[';
        depth -= *at == ')' || *at == '}' || *at == ']';
    }
    return at;
}

/* The next field that an initializer names, from `*at` on; null at its end. */
static const AttrSpec *next_field(const AttrSpec *specs, const char **at)
{
    const char *dot = *at + strspn(*at, ", ");
    if (*dot != '.')
        return NULL;
    const Str name = { dot + 1, strcspn(dot + 1, " =") };
    *at = behind_value(dot);
    const AttrSpec *spec = attr_find(specs, name);
    DEBUG_IF(!spec); /* the attributes of another op */
    return spec;
}

static bool meet_fields(const Pattern *p, const Node *n)
{
    const Pattern *call = p;
    while (call->kind == PATTERN_WITH || call->kind == PATTERN_ONCE)
        call = call->in[0];
    if (!same_op(call, n))
        return false;
    const char *at = p->fields;
    for (const AttrSpec *s; (s = next_field(op_of(n)->attrs, &at)) != NULL;) {
        const AttrSpec only[] = { *s, ATTR_LAST };
        if (!attrs_equal(only, p->attr, n->attr))
            return false;
    }
    return true;
}

static bool meet(Match *m, const Goal *goal)
{
    for (; goal; goal = goal->next) {
        const Pattern *p = goal->pattern;
        Node *n = goal->node;
        while (p->kind == PATTERN_ONCE || p->kind == PATTERN_WITH) {
            if (p->kind == PATTERN_ONCE ? !n->uses || n->uses->next : !meet_fields(p, n))
                return false;
            p = p->in[0];
        }
        switch (p->kind) {
        case PATTERN_LEAF:
            if (!meet_leaf(m, p, n))
                return false;
            break;
        case PATTERN_CONST:
        case PATTERN_EQ:
            if (!meet_constant(m, p, n))
                return false;
            break;
        case PATTERN_OP:
            return meet_call(m, p, n, goal->next);
        default:
            return false;
        }
    }
    return true;
}

bool pattern_match(const Pattern *p, Node *root, Match *m)
{
    const Goal goal = { p, root, NULL };
    *m = (Match){ .root = root };
    return meet(m, &goal);
}

int pattern_depth(const Pattern *p)
{
    int deepest = 0;
    if (!p)
        return 0;
    for (int i = 0; i < PATTERN_OPERANDS; i++) {
        const int depth = pattern_depth(p->in[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (p->kind == PATTERN_OP);
}

/* ---- replacements ---- */

typedef struct Plan {
    const Pattern *call;
    const void *like;
    const Pattern *with[4];
    int n_with;
} Plan;

static Plan plan_of(const Pattern *p, const Match *m)
{
    Plan plan = { p, NULL, { NULL }, 0 };
    for (; plan.call->kind == PATTERN_WITH || plan.call->kind == PATTERN_LIKE; plan.call = plan.call->in[0]) {
        if (plan.call->kind == PATTERN_LIKE)
            plan.like = m->attr[plan.call->index];
        else if (plan.n_with < (int)COUNT(plan.with))
            plan.with[plan.n_with++] = plan.call;
    }
    return plan;
}

static const void *attr_of(const Plan *plan, const OpDef *def, Arena *arena)
{
    char *attr = plan->like ? attrs_copy(arena, def->attrs, plan->like) : attrs_default(arena, def->attrs);
    for (int i = 0; i < plan->n_with; i++) {
        const char *at = plan->with[i]->fields;
        for (const AttrSpec *s; (s = next_field(def->attrs, &at)) != NULL;)
            attr_copy_field(s, attr, plan->with[i]->attr);
    }
    return attr;
}

static Op op_named(const Pattern *p, const Ir *ir)
{
    Op op = p->op;
    DEBUG_IF(p->fits);
    BUG_IF(ir->memory, p->word && !op_find(ir->ops, str(p->word), &op));
    return op;
}

static Node *build_call(const Pattern *p, Build *b, const Match *m)
{
    const Plan plan = plan_of(p, m);
    const Op op = op_named(plan.call, b->graph->ir);
    Arena *arena = b->graph->arena;
    const void *attr = attr_of(&plan, b->graph->ir->ops->defs[op], arena);
    const int rest = m->rest_of ? m->rest_of->n_in - m->rest : 0;
    Node **ins = NEWS(arena, Node *, PATTERN_OPERANDS + rest);
    int n = 0;
    for (int i = 0; i < PATTERN_OPERANDS && plan.call->in[i]; i++) {
        const Pattern *operand = plan.call->in[i];
        if (operand->kind == PATTERN_REST)
            for (int k = 0; k < rest; k++)
                ins[n++] = in(m->rest_of, m->rest + k);
        else
            ins[n++] = is_absent(operand) ? NULL : pattern_build(operand, b, m);
    }
    return build_node(b, op, attr, n, ins);
}

Node *pattern_build(const Pattern *p, Build *b, const Match *m)
{
    switch (p->kind) {
    case PATTERN_LEAF:
        return m->x[p->index];
    case PATTERN_NODE:
        return m->node[p->index];
    case PATTERN_CONST:
        return m->constant[0];
    case PATTERN_EQ:
        return build_scalar(b, m->root->type->dtype, p->value);
    case PATTERN_OP:
    case PATTERN_WITH:
    case PATTERN_LIKE:
        return build_call(p, b, m);
    default:
        return NULL;
    }
}
