/* Which operands are weights, which calls have weights alone quantized (recurrent layers and tables, whose arithmetic
 * stays one of floats), and which weights are stored as codes. */
#include <string.h>

#include "ir/role.h"
#include "ops/card/attrs.h"
#include "ops/card/words.h"
#include "ops/norm/norm.h"
#include "passes/quant/grain.h"
#include "passes/recipe/stored.h"

/* Values that may be weights, still to be looked at. */
typedef struct Open {
    Node *list[64];
    size_t n;
} Open;

/* Adds what a call moves: all of it has to be weights. */
static bool open_moved(Open *o, Node *n)
{
    const QuantCard *card = &op_of(n)->quant;
    if (!op_moves(op_of(n)) || op_of(n)->row || op_of(n)->mode != MODE_PURE || n->n_regions ||
        card->out[0] != QUANT_AGNOSTIC || n->type->kind != TYPE_TENSOR || n->type->dtype != F32)
        return false;
    for (int i = n->n_in - 1; i >= 0; i--) {
        if (!in(n, i) || quant_role(card, i) == QUANT_NEVER)
            continue;
        if (quant_role(card, i) != QUANT_AGNOSTIC || o->n == COUNT(o->list))
            return false;
        o->list[o->n++] = in(n, i);
    }
    return true;
}

Node *quant_weight_of(Node *operand)
{
    enum { MOST_SEEN = 256 };
    Open o = { { operand }, operand != NULL };
    Node *first = NULL;
    for (int seen = 0; o.n; seen++) {
        if (seen == MOST_SEEN)
            return NULL;
        Node *n = o.list[--o.n];
        const bool stored = n->op == OP_state || n->op == OP_param || n->op == OP_const;
        if (stored)
            first = first ? first : n;
        else if (n->op == OP_part && in(n, 0)->op == OP_fold_norm)
            o.list[o.n++] = in(in(n, 0), ((const PartAttr *)n->attr)->index ? FOLD_NORM_SHIFT : FOLD_NORM_W);
        else if (!open_moved(&o, n))
            return NULL;
    }
    return first;
}

static bool is_f32(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

bool quant_is_recurrent(const Node *n)
{
    const QuantCard *card = &op_of(n)->quant;
    return op_of(n)->access.kind == ACCESS_SCAN && card->in[0] == QUANT_FLOAT && quant_role(card, 1) == QUANT_WEIGHT &&
           is_f32(in(n, 0));
}

bool quant_is_table(const Node *n)
{
    return op_of(n)->quant.in[0] == QUANT_GATHER && is_f32(n) && is_f32(in(n, 0)) && quant_weight_of(in(n, 0));
}

bool quant_is_weight(const Node *call, int i)
{
    const QuantRole role = quant_role(&op_of(call)->quant, i);
    if (!in(call, i) || !quant_weight_of(in(call, i)))
        return false;
    return quant_is_recurrent(call) || quant_is_table(call) ? role == QUANT_WEIGHT || role == QUANT_GATHER : i < 2;
}

bool quant_is_layer(const Node *n)
{
    if (quant_is_table(n))
        return false;
    return quant_is_recurrent(n) ? quant_is_weight(n, 1) || quant_is_weight(n, 2)
                                 : quant_weight_of(in(n, 0)) || quant_weight_of(in(n, 1));
}

/* Why the weights of a recurrent layer, or a table, stay as they are; null: nothing hinders. */
static const char *hindrance(const QuantCallMark *c, const Node *n)
{
    const bool table = quant_is_table(n);
    if (table && !(c->said & 1u << OPERAND_W))
        return "a table stays f32 unless --quant-op says w= of it";
    if (!table && !quant_is_layer(n))
        return "has weights that are computed from data";
    return table && (in(n, 0)->type->rank != 2 || quant_weight_axis(n, 0) != 0) ? "has no rows of a matrix" : NULL;
}

void quant_weights_alone(QuantCallMark *c, const Node *n)
{
    c->floats = !quant_is_table(n);
    c->why = hindrance(c, n);
    c->core = c->spec->of[OPERAND_W].on;
}

/* ---- weights that are stored ---- */

/* The dimensions of the scales of an operand: 1 where they are shared, of groups as many as there are. */
static void scale_dims(const QuantGrain *g, const Type *t, int64_t *dims)
{
    for (int i = 0; i < t->rank; i++)
        dims[i] = i == g->axis && g->block ? t->dims[i] / g->block : i == g->axis || g->block ? t->dims[i] : 1;
}

/* The state that an operand is, turned at most, with dimensions of the operand as those of the state; null: others. */
static Node *state_behind(Node *n, int64_t *dims)
{
    while (n->op == OP_transpose) {
        const Ints perm = ((const TransposeAttr *)n->attr)->perm;
        int64_t turned[MAX_RANK];
        const int rank = n->type->rank;
        for (int i = 0; i < rank; i++)
            turned[perm.v ? perm.v[i] : rank - 1 - i] = dims[i];
        memcpy(dims, turned, (size_t)rank * sizeof *dims);
        n = in(n, 0);
    }
    return n->op == OP_state ? n : NULL;
}

static Status refuse(Placement *p, const Quantizer *by, const Node *call, const char *why, const char *instead)
{
    Message *m = message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(call), "w=%s: %s",
                             quantizer_text(by, p->run->scratch), why);
    message_try(m, "%s", instead);
    return message_send(m);
}

static Status check_form(Placement *p, const Quantizer *by, const Node *call, const QuantGrain *grain, const Type *t)
{
    StoredForm form;
    if (!stored_form_of(&form, by))
        return refuse(
            p, by, call,
            "no weights are stored so: wanted are integers of 8 or 4 bits, narrow or asym, scales in f32 of the "
            "largest, rne or sr; or bf16",
            quant_call(p, call)->data ? "w=int8:row:sr:stored,a=off" : "w=int8:row:sr:stored");
    if (quant_call(p, call)->data)
        return refuse(p, by, call, "of weights that are stored products are of floats", "a=off");
    if (grain->axis != QUANT_WHOLE && grain->block && t->dims[grain->axis] % grain->block)
        return refuse(p, by, call, "the last block of a row has fewer: stored ones are all as long",
                      "w=int8:row:sr:stored");
    return OK;
}

/* Why a weight stays as it is; null: nothing hinders. */
static const char *why_not_stored(const Node *call, const Node *state)
{
    if (quant_is_recurrent(call))
        return "is a recurrent layer, which reads numbers: its weights stay as they are";
    if (!state)
        return "its weight is computed from states, and is none";
    return state->flags & NODE_TRAINED ? NULL : "its weight is not trained";
}

static bool is_taken(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return true;
    for (const Node *n = g->first; n; n = n->next)
        if (n->name && strcmp(n->name, name) == 0)
            return true;
    return false;
}

/* A state of that of another: its name with an ending. */
static void state_beside(Node *state, const char *ending, DType type, const int64_t *dims)
{
    Graph *g = state->graph;
    const char *name = arena_printf(g->arena, "%s%s", state->name, ending);
    for (int k = 2; is_taken(g, name); k++)
        name = arena_printf(g->arena, "%s%s.%d", state->name, ending, k);
    const StateAttr attr = { NULL, { STATE_quant, state->name }, NULL };
    graph_state(g, name_of(&g->ir->names, name, strlen(name)),
                type_tensor(&g->ir->types, type, state->type->rank, dims), &attr);
}

Status quant_store(Placement *p, const Quantizer *by, Node *call, int i, bool *first)
{
    QuantGrain grain = quant_whole;
    StoredForm form;
    int64_t dims[MAX_RANK];
    const Type *t = in(call, i)->type;
    QuantCallMark *c = quant_call(p, call);
    const char *words = quantizer_text(by, p->g->arena);
    *first = false;
    if (by->format != FORMAT_BF16)
        TRY(quant_grain_of_weight(p, by, call, i, &grain));
    TRY(check_form(p, by, call, &grain, t));
    (void)stored_form_of(&form, by);
    scale_dims(&grain, t, dims);
    Node *state = state_behind(in(call, i), dims);
    c->why = why_not_stored(call, state);
    c->core = !c->why;
    if (c->why)
        return OK;
    const char *before = node_stored(state);
    if (before && strcmp(before, words) != 0)
        return refuse(p, by, call,
                      arena_printf(p->run->scratch, "%s is stored as %s, as another layer asks", state->name, before),
                      arena_printf(p->run->scratch, "w=%s for both", before));
    if (before)
        return OK;
    *first = true;
    node_set_stored(state, words);
    if (form.largest)
        state_beside(state, ".scale", F32, dims);
    if (form.zeros)
        state_beside(state, ".zero", form.type, dims);
    return OK;
}
