/* What reaches an operand of an einsum: the einsum of dy with all other operands, that operand's indices as result.
 *
 * An index that nobody else has is left out and repeated by who reads; an index that the operand names twice has its
 * result on the diagonal. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/contract/einsum.h"

/* Writes the terms of an equation, a letter an index, whatever it was called. */
static void write_labels(char **to, const Labels *l)
{
    for (int i = 0; i < l->n; i++)
        *(*to)++ = (char)(l->v[i] < 26 ? 'A' + l->v[i] : 'a' + l->v[i] - 26);
}

/* Letters of their own for what an ellipsis stood for. */
static void name_all(Equation *q, int n_in)
{
    int free = 0, name[LABELS];
    for (int l = 0; l < LABELS; l++)
        name[l] = l;
    for (int l = LETTERS; l < LABELS; l++) {
        if (q->extent[l] == -2)
            continue;
        while (q->extent[free] != -2)
            free++;
        name[l] = free++;
    }
    for (int i = 0; i <= n_in; i++) {
        Labels *to = i < n_in ? &q->in[i] : &q->out;
        for (int k = 0; k < to->n; k++)
            to->v[k] = (uint8_t)name[to->v[k]];
    }
}

static bool others_have(const Equation *q, int n_in, int operand, uint8_t label)
{
    bool found = labels_have(&q->out, label);
    for (int i = 0; i < n_in; i++)
        found = found || (i != operand && labels_have(&q->in[i], label));
    return found;
}

/* The einsum with dy in place of an operand; its result has the labels `to`. */
static Node *swapped(Build *b, const Site *s, const Equation *q, int operand, const Labels *to)
{
    Node **terms = NEWS(b->graph->arena, Node *, s->n_in);
    if (s->n_in == 1 && to->n == q->out.n && (!to->n || memcmp(to->v, q->out.v, (size_t)to->n) == 0))
        return s->dout[0];
    char *text = NEWS(b->graph->arena, char, (s->n_in + 1) * (MAX_RANK + 1) + 3), *end = text;
    for (int i = 0; i < s->n_in; i++) {
        terms[i] = i == operand ? s->dout[0] : s->in[i];
        if (i)
            *end++ = ',';
        write_labels(&end, i == operand ? &q->out : &q->in[i]);
    }
    *end++ = '-', *end++ = '>';
    write_labels(&end, to);
    return build_node(b, OP_einsum, &(EinsumAttr){ .equation = text }, s->n_in, terms);
}

/* x on the diagonal of dimensions `first` and `again`, of n elements each. */
static Node *on_diagonal(Build *b, Node *x, int rank, int first, int again, int64_t n)
{
    Node *same = CALL(b, equal, make_count(b, rank, first, n), make_count(b, rank, again, n));
    return CALL(b, where, same, x, build_scalar(b, x->type->dtype, 0));
}

static Node *operand_gradient(Build *b, const Site *s, const Equation *q, int operand)
{
    const Labels *own = &q->in[operand];
    Labels to = { 0 };
    for (int i = 0; i < own->n; i++)
        if (!labels_have(&to, own->v[i]) && others_have(q, s->n_in, operand, own->v[i]))
            to.v[to.n++] = own->v[i];
    Node *y = swapped(b, s, q, operand, &to);
    if (!y)
        return NULL;
    int64_t dims[MAX_RANK];
    for (int i = 0, k = 0; i < own->n; i++)
        dims[i] =
            k < to.n && to.v[k] == own->v[i] && !(i && memchr(own->v, own->v[i], (size_t)i)) ? y->type->dims[k++] : 1;
    y = make_reshape(b, y, own->n, dims);
    for (int i = 1; i < own->n && y; i++) {
        const uint8_t *first = memchr(own->v, own->v[i], (size_t)i);
        const int64_t n = s->in[operand]->type->dims[i];
        if (first && n != 1)
            y = on_diagonal(b, y, own->n, (int)(first - own->v), i, n);
    }
    return y;
}

void adjoint_einsum(Build *b, const Site *s, Node **dx)
{
    const EinsumAttr *at = s->attr;
    Equation q;
    const Type **types = NEWS(b->graph->arena, const Type *, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        types[i] = s->in[i]->type;
    BUG_IF(b->graph->ir->memory, equation_read(&q, at->equation, s->n_in, types, b->graph->arena));
    name_all(&q, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        if (s->want[i])
            dx[i] = operand_gradient(b, s, &q, i);
}
