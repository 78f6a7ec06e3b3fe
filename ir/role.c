#include "ir/role.h"

#include <string.h>

#include "ir/own_names.h"

#define WORD(word, of, what) #word,
static const char *const state_words[] = { STATE_ROLES(WORD) NULL },
                         *const result_words[] = { RESULT_ROLES(WORD) NULL },
                         *const input_words[] = { INPUT_ROLES(WORD) NULL };
#undef WORD
#define OF(word, of, what) of,
static const RoleOf state_of[] = { STATE_ROLES(OF) }, result_of[] = { RESULT_ROLES(OF) },
                    input_of[] = { INPUT_ROLES(OF) };
#undef OF

const char *const *role_words(RoleKind kind)
{
    return kind == ROLES_OF_STATES ? state_words : kind == ROLES_OF_RESULTS ? result_words : input_words;
}

RoleOf role_may_be_of(RoleKind kind, int role)
{
    return (kind == ROLES_OF_STATES ? state_of : kind == ROLES_OF_RESULTS ? result_of : input_of)[role];
}

RoleMark node_role(const Node *n)
{
    if (n->op == OP_state && n->attr)
        return ((const StateAttr *)n->attr)->mark;
    if (n->op == OP_input && n->attr)
        return ((const InputAttr *)n->attr)->mark;
    return (RoleMark){ 0, NULL };
}

Payload *state_initial(const Node *n)
{
    return n->op == OP_state && n->attr ? ((const StateAttr *)n->attr)->value : NULL;
}

void node_set_role(Node *n, int role, const char *of)
{
    Graph *g = n->graph;
    const RoleMark mark = { role, of ? name_of(&g->ir->names, of, strlen(of)) : NULL };
    void *attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
    *(n->op == OP_state ? &((StateAttr *)attr)->mark : &((InputAttr *)attr)->mark) = mark;
    n->attr = attr;
}

const char *node_stored(const Node *n)
{
    return n->op == OP_state && n->attr ? ((const StateAttr *)n->attr)->stored : NULL;
}

void node_set_stored(Node *n, const char *stored)
{
    Graph *g = n->graph;
    StateAttr *attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
    attr->stored = stored ? name_of(&g->ir->names, stored, strlen(stored)) : NULL;
    n->attr = attr;
}

bool is_model_state(const Node *n)
{
    return n->op == OP_state && role_is_of_model(node_role(n).role);
}

/* ---- results ---- */

static RoleMark *own_marks(Graph *g, int n, const RoleMark *marks)
{
    RoleMark *own = NEWS(g->arena, RoleMark, n + 1);
    for (int i = 0; i < n; i++) {
        own[i] = marks[i];
        own[i].of = marks[i].of ? name_of(&g->ir->names, marks[i].of, strlen(marks[i].of)) : NULL;
    }
    return own;
}

void graph_return_marked(Graph *g, int n, Node *const *results, const char *const *names, const RoleMark *marks)
{
    node_set_ins(g->ret, n, results);
    g->results = NEWS(g->arena, const char *, n ? n : 1);
    for (int i = 0; i < n; i++)
        if (names && names[i])
            g->results[i] = name_of(&g->ir->names, names[i], strlen(names[i]));
    g->marks = marks ? own_marks(g, n, marks) : NULL;
}

RoleMark graph_result_mark(const Graph *g, int i)
{
    return g->marks && i < g->ret->n_in ? g->marks[i] : (RoleMark){ 0, NULL };
}

/* ---- looking ---- */

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

Node *graph_state_of(const Graph *g, StateRole role, const char *of)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_state(g->inputs[i], role) && same(node_role(g->inputs[i]).of, of))
            return g->inputs[i];
    return NULL;
}

static Node *beside(const Graph *g, const char *state, bool floats)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *n = g->inputs[i];
        if (is_state(n, STATE_quant) && same(node_role(n).of, state) && dtype_is_float(n->type->dtype) == floats)
            return n;
    }
    return NULL;
}

Node *stored_scale(const Graph *g, const char *state)
{
    return beside(g, state, true);
}

Node *stored_zero(const Graph *g, const char *state)
{
    return beside(g, state, false);
}

int graph_result_of(const Graph *g, ResultRole role, const char *of)
{
    for (int i = 0; i < graph_n_results(g); i++) {
        const RoleMark mark = graph_result_mark(g, i);
        if (mark.role == (int)role && same(mark.of, of))
            return i;
    }
    return -1;
}

/* ---- what names say ---- */

/* How names of a role begin, or, where nothing may follow, read. */
typedef struct NameRule {
    const char *text;
    int role;
    bool whole;     /* nothing follows */
    const char *of; /* of a whole name */
} NameRule;

static const NameRule states[] = {
    { SHADOW_PREFIX, STATE_shadow, false, NULL },      { EMA_PREFIX, STATE_ema, false, NULL },
    { SCALE_NAME, STATE_scaler, true, NULL },          { SCALER_NAME, STATE_scaler, true, SCALE_NAME },
    { STEP_NAME, STATE_counter, true, NULL },          { LR_FACTOR, STATE_rate, true, NULL },
    { TOTAL_STEPS_NAME, STATE_length, true, NULL },    { RANGE_PREFIX, STATE_quant, false, NULL },
    { STEP_SIZE_PREFIX, STATE_quant, false, NULL },    { OBSERVED_PREFIX, STATE_quant, false, NULL },
    { OFFSET_PREFIX, STATE_quant, false, NULL },       { THRESHOLD_PREFIX, STATE_quant, false, NULL },
    { BITS_PREFIX, STATE_quant, false, NULL }, { BUDGET_NAME, STATE_quant, true, NULL },
}, results[] = {
    { GRADIENT_PREFIX, RESULT_gradient, false, NULL }, { CLIPPED_PREFIX, RESULT_clipped, false, NULL },
    { GRADIENT_SCALE, RESULT_factor, true, NULL },     { LATCHED_SCALE, RESULT_latched, true, NULL },
    { FOUND_NAME, RESULT_found, true, NULL },          { APPLIED_NAME, RESULT_applied, true, NULL },
    { COUNTS_PREFIX, RESULT_counts, false, NULL },
}, inputs[] = {
    { GRADIENT_PREFIX, INPUT_gradient, false, NULL },  { VALID_INPUT, INPUT_valid, true, NULL },
};

static RoleMark by_rules(const NameRule *rules, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(rules[i].text);
        if (rules[i].whole ? strcmp(name, rules[i].text) == 0 : strncmp(name, rules[i].text, length) == 0)
            return (RoleMark){ rules[i].role, rules[i].whole ? rules[i].of : name + length };
    }
    return (RoleMark){ 0, NULL };
}

/* qcc.lr_factor/SELECTOR, and qcc.WORD/NAME: what an optimizer keeps of a state. */
static RoleMark of_optimizer(const char *name)
{
    const char *slash = strchr(name, '/');
    if (strncmp(name, LR_FACTOR "/", strlen(LR_FACTOR "/")) == 0)
        return (RoleMark){ STATE_rate, NULL };
    if (strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0 && slash)
        return (RoleMark){ STATE_moment, slash + 1 };
    return (RoleMark){ 0, NULL };
}

RoleMark role_by_name(RoleKind kind, const char *name)
{
    if (!name)
        return (RoleMark){ 0, NULL };
    if (kind == ROLES_OF_RESULTS)
        return by_rules(results, COUNT(results), name);
    if (kind == ROLES_OF_INPUTS)
        return by_rules(inputs, COUNT(inputs), name);
    const RoleMark mark = by_rules(states, COUNT(states), name);
    if (mark.role == STATE_quant) /* what follows is the name of a value, not of a state */
        return (RoleMark){ STATE_quant, NULL };
    return mark.role ? mark : of_optimizer(name);
}

bool role_is_said(RoleKind kind, const char *name, RoleMark mark)
{
    return mark.role || role_by_name(kind, name).role;
}
