/* Turning by a Hadamard matrix of 16 whose columns have signs: the same for whatever is multiplied with each other, so that
 * products stay what they are, and numbers that stand out are shared by 16. */
#include "base/hash.h"
#include "base/philox.h"
#include "ir/own_names.h"
#include "ir/role.h"
#include "passes/lowbit/dynamic_parts.h"

enum { WIDE = 16 };

static const char signs_name[] = HADAMARD_NAME;

/* +1 or -1 by chance, the same wherever the name is. */
static Node *signs_of(Graph *g)
{
    const char *name = name_of(&g->ir->names, signs_name, sizeof signs_name - 1);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name == name)
            return g->inputs[i];
    const Type *type = type_vector(&g->ir->types, F32, WIDE);
    const uint32_t stream = (uint32_t)hash64(signs_name, sizeof signs_name - 1, 0);
    Tensor *t = tensor_new(g->arena, type);
    for (int i = 0; i < WIDE; i++)
        tensor_set_f64(t, i, philox_at(0, stream, (uint64_t)i, 0, 0, PHILOX_INIT) & 1 ? -1 : 1);
    return graph_state(g, name, type, &(StateAttr){ payload_of(g->arena, t), { STATE_quant, NULL } });
}

/* Sylvester's matrix over 4: an entry is negative where its row and column share an odd number of bits. */
static Node *hadamard(Build *b)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, 2, (int64_t[]){ WIDE, WIDE }));
    for (int i = 0; i < WIDE; i++)
        for (int j = 0; j < WIDE; j++)
            tensor_set_f64(t, i * WIDE + j, __builtin_parity((unsigned)(i & j)) ? -0.25 : 0.25);
    return build_const(b, t);
}

/* Dimension `axis` last, or back from there. */
static Node *swapped(Build *b, Node *x, int axis)
{
    const int rank = x->type->rank;
    int64_t order[MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    return axis == rank - 1 ? x : make_transpose(b, x, rank, order);
}

/* The signs of the state, some of them turned by draws. */
static Node *signs_for(Build *b, Node *draws)
{
    Node *signs = signs_of(b->graph);
    if (!draws)
        return signs;
    Node *flips = CALL(b, less, draws, build_scalar(b, F32, 0.5));
    return CALL(b, where, flips, CALL(b, neg, signs), signs);
}

Node *dynamic_turned(AtHand *h, Node *x, Node *draws)
{
    Build *b = h->b;
    int64_t dims[2] = { type_elements(x->type) / WIDE, WIDE };
    x = swapped(b, make_cast(b, x, F32), h->axis);
    if (!x)
        return NULL;
    const Type *type = x->type;
    Node *rows = CALL(b, mul, make_reshape(b, x, 2, dims), signs_for(b, draws));
    Node *turned = CALL(b, matmul, rows, hadamard(b));
    return turned ? swapped(b, make_reshape(b, turned, type->rank, type->dims), h->axis) : NULL;
}
