#include "api/session/init_gates.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* A recurrent operator, and which of PyTorch's gates its own are: i o f c of i f g o, z r h of r z n. */
typedef struct Layer {
    Op op;
    int gates;
    int order[4];
} Layer;

static const Layer layers[] = { { OP_lstm, 4, { 0, 3, 1, 2 } }, { OP_gru, 3, { 1, 0, 2 } }, { OP_rnn, 1, { 0 } } };

/* What the module calls what an operand holds. */
typedef struct Operand {
    int rank;
    size_t n;
    const char *words[2];
} Operand;

static const Operand operands[] = {
    [1] = { 3, 1, { "weight_ih" } }, [2] = { 3, 1, { "weight_hh" } }, [3] = { 2, 2, { "bias_ih", "bias_hh" } }
};

static const Layer *layer_of(const Node *n)
{
    for (size_t i = 0; i < COUNT(layers); i++)
        if (layers[i].op == n->op)
            return &layers[i];
    return NULL;
}

/* All readers must read it as the same operand of the same kind of layer; `slot`: which. */
static const Node *only_reader(const Node *n, int *slot)
{
    const Node *reader = NULL;
    for (const Use *u = n->uses; u; u = u->next) {
        const int at = (int)(u - u->user->in);
        if (!layer_of(u->user) || at < 1 || at > 3)
            continue;
        if (reader && (reader->op != u->user->op || *slot != at))
            return NULL;
        reader = u->user;
        *slot = at;
    }
    return reader;
}

const Node *gates_reader(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const int at = (int)(u - u->user->in);
        if (layer_of(u->user) && u->user->op != OP_rnn && at >= 1 && at <= 3)
            return u->user;
    }
    return NULL;
}

/* Whether one of the names with + between is `name`. */
static bool lists(const char *label, const char *name)
{
    for (const char *p = label; *p; p += strcspn(p, "+"), p += *p == '+')
        if (strcspn(p, "+") == strlen(name) && strncmp(p, name, strlen(name)) == 0)
            return true;
    return false;
}

static size_t count_names(const char *label)
{
    size_t n = 1;
    for (const char *p = label; *p; p++)
        n += *p == '+';
    return n;
}

/* The module and the number of the layer in the first name: "enc.rnn." and 1 of enc.rnn.weight_ih_l1+...; false: it is no
 * such name. */
static bool read_first(const char *label, const Operand *o, Str *module, Str *number)
{
    const size_t n = strcspn(label, "+");
    size_t begin = n;
    while (begin && label[begin - 1] != '.')
        begin--;
    *module = (Str){ label, begin };
    for (size_t i = 0; i < o->n; i++) {
        const size_t word = strlen(o->words[i]);
        const char *at = label + begin + word + 2;
        if (n < begin + word + 3 || strncmp(label + begin, o->words[i], word) != 0 || strncmp(at - 2, "_l", 2) != 0)
            continue;
        *number = (Str){ at, 0 };
        while (isdigit((unsigned char)at[number->n]))
            number->n++;
        return number->n > 0;
    }
    return false;
}

/* Names of each direction in their order; false: the label lists others. */
static bool name_pieces(Arena *arena, const Operand *o, const char *label, int64_t directions, int64_t size,
                        GatePiece *pieces)
{
    Str module, number;
    if (!read_first(label, o, &module, &number) || count_names(label) != (size_t)directions * o->n)
        return false;
    for (int64_t d = 0; d < directions; d++)
        for (size_t i = 0; i < o->n; i++) {
            const size_t k = (size_t)d * o->n + i;
            const char *name = arena_printf(arena, "%.*s%s_l%.*s%s", STR_ARG(module), o->words[i], STR_ARG(number),
                                            d ? "_reverse" : "");
            pieces[k] = (GatePiece){ name, (int64_t)k * size };
            if (!lists(label, name))
                return false;
        }
    return true;
}

const StateGates *gates_pieces(Ir *ir, Arena *arena, const Node *n, const char *label)
{
    int slot = 0;
    const Type *t = n->type;
    const Node *reader = only_reader(n, &slot);
    const Operand *o = reader ? &operands[slot] : NULL;
    if (!o || t->rank != o->rank || !type_known(t) || t->dims[0] < 1 || t->dims[0] > 2)
        return NULL;
    const Layer *layer = layer_of(reader);
    const int64_t rows = t->dims[1] / (int64_t)o->n, columns = t->rank == 3 ? t->dims[2] : 1;
    if (rows * (int64_t)o->n != t->dims[1] || rows % layer->gates)
        return NULL;
    const size_t count = (size_t)t->dims[0] * o->n;
    GatePiece *pieces = NEWS(arena, GatePiece, count);
    if (!name_pieces(arena, o, label, t->dims[0], rows * columns, pieces))
        return NULL;
    StateGates *g = NEW(arena, StateGates);
    *g = (StateGates){ pieces, count, type_tensor(&ir->types, t->dtype, t->rank - 1, (int64_t[]){ rows, columns }),
                       layer->gates, layer->order };
    return g;
}
