#include "api/make/quant_launches.h"

#include "api/make/launches.h"

enum { LEAST_ELEMENTS = 256 }; /* of a value that counts as a batch of data */

/* What is known of a node: it only says numbers in codes, or codes in numbers; it is made of data. */
typedef struct Known {
    bool quantizes, of_data;
} Known;

typedef struct Finder {
    Arena *arena;
    Facts facts;
} Finder;

static Known *known(Finder *f, const Node *n)
{
    return fact(&f->facts, n);
}

static bool is_tensor(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type);
}

/* What a word on codes says beside them, for backward and for observers. */
static bool is_told(const Node *n)
{
    return n->op == OP_part && ((const PartAttr *)n->attr)->index > 0 && op_of(in(n, 0))->gives_codes;
}

static bool is_codes(const Node *n)
{
    return is_tensor(n) && dtype_is_integer(n->type->dtype) && dtype_bits(n->type->dtype) <= 16;
}

/* Whether an operand speaks of codes: it holds some, or was made of some by rows alone. */
static bool speaks_of_codes(Finder *f, const Node *n)
{
    return is_codes(n) || is_told(n) || (known(f, n)->quantizes && !op_of(n)->quant.dequantizes);
}

/* A row of which every operand as large as its result speaks of codes; of a choice what decides does. */
static bool is_row_on_codes(Finder *f, const Node *n)
{
    const int last = n->op == OP_where ? 1 : n->n_in;
    bool any = false;
    if (!is_tensor(n) || !(op_of(n)->row || n->op == OP_cast || n->op == OP_amp_cast))
        return false;
    for (int i = 0; i < last; i++) {
        const bool large = in(n, i) && is_tensor(in(n, i)) && type_elements(in(n, i)->type) == type_elements(n->type);
        if (large && in(n, i)->op != OP_const && !speaks_of_codes(f, in(n, i)))
            return false;
        any = any || (large && speaks_of_codes(f, in(n, i)));
    }
    return any;
}

static bool quantizes(Finder *f, const Node *n)
{
    const OpDef *d = op_of(n);
    if (d->quant.quantizes || d->quant.dequantizes || n->op == OP_observe || n->op == OP_observed_range ||
        n->op == OP_range_scale)
        return true;
    return !d->gives_codes && is_row_on_codes(f, n);
}

static void look_at(Finder *f, const Node *n)
{
    Known k = { .of_data = n->op == OP_input };
    for (int i = 0; i < n->n_in; i++)
        k.of_data = k.of_data || (in(n, i) && known(f, in(n, i))->of_data);
    k.quantizes = quantizes(f, n);
    *known(f, n) = k;
}

static bool is_batch(Finder *f, const Node *n)
{
    return n && known(f, n)->of_data && is_tensor(n) && type_elements(n->type) >= LEAST_ELEMENTS;
}

static bool touches_data(Finder *f, const Node *n)
{
    bool touches = is_batch(f, n);
    for (int i = 0; i < n->n_in; i++)
        touches = touches || is_batch(f, in(n, i));
    return touches;
}

static bool is_large(const ProgramValue *v, int n)
{
    bool large = false;
    for (int i = 0; i < n; i++)
        large = large || (v[i].home != HOME_NONE && type_elements(v[i].type) >= LEAST_ELEMENTS);
    return large;
}

QuantLaunches quant_launches(const LaunchMap *m, Arena *arena)
{
    Finder f = { .arena = arena, .facts = facts_open(arena, sizeof(Known)) };
    const Program *p = m->low.program;
    QuantLaunches q = { 0 };
    int *list = NEWS(arena, int, p->n_launches + 1);
    for (size_t i = 0; i < m->graph->n_inputs; i++)
        look_at(&f, m->graph->inputs[i]);
    for (const Node *n = m->graph->first; n; n = n->next)
        look_at(&f, n);
    for (int i = 0; i < p->n_launches; i++) {
        const LaunchNodes *nodes = &m->list[i];
        bool only = nodes->n > 0, data = false;
        for (int k = 0; k < nodes->n && only; k++) {
            only = known(&f, nodes->nodes[k])->quantizes;
            data = data || touches_data(&f, nodes->nodes[k]);
        }
        if (!only)
            continue;
        const Launch *l = &p->launches[i];
        const double bytes = launch_bytes(l->in, l->n_in) + launch_bytes(l->out, l->n_out);
        q.n++;
        q.bytes += bytes;
        if (data && (is_large(l->in, l->n_in) || is_large(l->out, l->n_out))) {
            list[q.n_over_data++] = i;
            q.data_bytes += bytes;
        }
    }
    q.over_data = list;
    return q;
}
