#include "passes/step/state_blocks.h"

#include <string.h>

#include "ops/card/words.h"
#include "ops/control/control.h"
#include "passes/optimizers.def"
#include "passes/quant/grain.h"

enum {
    FARTHEST = 16,      /* calls between a weight and the product that reads it */
    LEAST_CHANNEL = 32, /* below that scales would be as large as what they are of */
};

/* ---- which ---- */

static const struct {
    DType code;
    int64_t block;
} kinds[] = {
#define STATES(word, kind, type, block, what) [STATES_##kind] = { type, block },
    OPTIMIZER_STATES(STATES)
#undef STATES
};

bool state_codes_of(const OptimizerGroup *group, const Node *x, DType *code, int64_t *block)
{
    const int64_t least = group->states_min ? group->states_min : STATES_LEAST, of = kinds[group->states].block;
    if (!of || x->type->rank < 1 || x->type->dtype == F64 || type_elements(x->type) < least)
        return false;
    *code = kinds[group->states].code;
    *block = of;
    return true;
}

/* ---- channels ---- */

/* The dimensions, of a weight, along which an output channel's elements lie, if somebody knows. */
typedef struct Channel {
    bool known;
    int first, last;
} Channel;

/* Filters and matrices that begin with their channels have one in all dimensions behind, others in what is added up. */
static Channel channel_of(const Node *call, int operand, int sum)
{
    const bool behind = quant_weight_axis(call, operand) == 0;
    return (Channel){ true, sum, behind ? in(call, operand)->type->rank - 1 : sum };
}

/* The dimension that a call adds up, or along which a row of a table lies, of whatever type and wherever it is read. */
static int sum_of(const Node *call, int operand)
{
    const int rank = in(call, operand)->type->rank;
    const bool rows = op_of(call)->quant.in[0] == QUANT_GATHER && operand == 0 && quant_weight_axis(call, 0) == 0;
    return rows && rank > 1 ? rank - 1 : quant_sum_axis(call, operand);
}

/* What is known of weights, and of each parameter of a body the operand that it is in every turn (Node *; null: none). */
typedef struct Reading {
    StateBlocks to;
    Facts outside;
} Reading;

/* Bodies read weights that they capture: micro-batches all of them. */
static void enter_bodies(Reading *r, const Node *call)
{
    const int n = call->n_regions ? direct_operands(call) : 0;
    for (int k = 0; k < call->n_regions; k++)
        for (int i = 1; i <= n && (size_t)i <= call->regions[k]->n_inputs; i++) {
            const Graph *body = call->regions[k];
            *(const Node **)fact(&r->outside, body->inputs[body->n_inputs - (size_t)i]) = in(call, call->n_in - i);
        }
}

/* The trained state whose elements an operand has in their places, cast, scaled, quantized or not; null: there is none. */
static const Node *weight_in_place(Reading *r, const Node *operand)
{
    const Node *n = operand;
    for (int i = 0; i < FARTHEST && n && n->op != OP_state && n->op != OP_transpose; i++)
        n = n->n_in ? in(n, 0) : *(const Node **)fact(&r->outside, n);
    const bool is_weight = n && n->op == OP_state && n->flags & NODE_TRAINED && n->type->rank == operand->type->rank &&
                           memcmp(n->type->dims, operand->type->dims, sizeof(int64_t) * (size_t)n->type->rank) == 0;
    return is_weight ? n : NULL;
}

static void read_call(Reading *r, const Node *n)
{
    enter_bodies(r, n);
    for (int i = 0; i < n->n_in && !(n->flags & (NODE_BACKWARD | NODE_UPDATE)) && !node_is_return(n); i++) {
        const Node *x = in(n, i);
        const bool tensor = x && x->type && x->type->kind == TYPE_TENSOR && type_known(x->type);
        const int sum = tensor ? sum_of(n, i) : QUANT_WHOLE;
        const Node *weight = sum == QUANT_WHOLE ? NULL : weight_in_place(r, x);
        Channel *channel = weight ? fact(&r->to.channels, weight) : NULL;
        if (channel && !channel->known)
            *channel = channel_of(n, i, sum);
    }
}

StateBlocks state_blocks_find(Graph *g, Arena *arena)
{
    Reading r = { { facts_open(arena, sizeof(Channel)) }, facts_open(arena, sizeof(const Node *)) };
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        read_call(&r, n);
    return r.to;
}

/* Scales of blocks that lie along dimension `first` and those behind it up to `last`. */
static const Type *scales_along(const Node *x, int first, int last, int64_t block)
{
    int64_t dims[MAX_RANK], n = 1;
    for (int i = 0; i < x->type->rank; i++) {
        const bool within = i >= first && i <= last;
        dims[i] = within ? 1 : x->type->dims[i];
        n *= within ? x->type->dims[i] : 1;
    }
    dims[first] = n / block + (n % block != 0);
    return type_tensor(&x->graph->ir->types, F32, x->type->rank, dims);
}

const Type *state_scale_type(StateBlocks *blocks, const Node *x, int64_t block)
{
    const Channel *channel = fact(&blocks->channels, x);
    int64_t n = 1;
    for (int i = channel->first; i <= channel->last; i++)
        n *= x->type->dims[i];
    return channel->known && n >= LEAST_CHANNEL ? scales_along(x, channel->first, channel->last, block)
                                                : scales_along(x, 0, x->type->rank - 1, block);
}
