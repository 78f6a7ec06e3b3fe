#include "passes/step/state_blocks.h"

#include <string.h>

#include "ops/card/words.h"
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

/* The trained state whose elements an operand has in their places, cast, scaled, quantized or not; null: there is none. */
static const Node *weight_in_place(const Node *operand)
{
    const Node *n = operand;
    for (int i = 0; i < FARTHEST && n && n->op != OP_state && n->op != OP_transpose; i++)
        n = n->n_in ? in(n, 0) : NULL;
    const bool is_weight = n && n->op == OP_state && n->flags & NODE_TRAINED && n->type->rank == operand->type->rank &&
                           memcmp(n->type->dims, operand->type->dims, sizeof(int64_t) * (size_t)n->type->rank) == 0;
    return is_weight ? n : NULL;
}

StateBlocks state_blocks_find(const Graph *g, Arena *arena)
{
    StateBlocks to = { facts_open(arena, sizeof(Channel)) };
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in && !(n->flags & (NODE_BACKWARD | NODE_UPDATE)) && !node_is_return(n); i++) {
            const Node *x = in(n, i);
            const bool tensor = x && x->type && x->type->kind == TYPE_TENSOR && type_known(x->type);
            const int sum = tensor ? quant_sum_axis(n, i) : QUANT_WHOLE;
            const Node *weight = sum == QUANT_WHOLE ? NULL : weight_in_place(x);
            Channel *channel = weight ? fact(&to.channels, weight) : NULL;
            if (channel && !channel->known)
                *channel = channel_of(n, i, sum);
        }
    return to;
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
