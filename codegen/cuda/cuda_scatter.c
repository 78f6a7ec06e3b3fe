/* Updates that go where indices say, one after the other in the order of the updates: those that meet are one list.
 *
 *     begin    a thread for each element of the result: what it is without updates
 *     where    a thread for each list's entry: where its indices lead
 *     order    a thread for each entry: whether another one before it leads there, and which is the next one that does
 *     place    a thread for each point: whoever is the first of its list walks it
 *
 * Axes are open where entries along them may meet: the coordinates of the result do not go on with them, indices alone say
 * where they are.  Entries are counted by the axes that indices are read along, the open ones fastest. */
#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/card/reduction.h"

enum { UPDATES = 2 };

typedef struct Lists {
    int open[SPACE_RANK], n_open, entry[SPACE_RANK], n_entry; /* axes; those of an entry end with the open ones */
    int64_t each, n;                                          /* entries along open axes, and of all */
    size_t next;                                              /* where in the scratch they stand behind the places */
} Lists;

static bool moves(const Iteration *it, const Access *a, int axis)
{
    for (int d = 0; d < a->rank; d++)
        if (a->step[d * it->rank + axis] && it->extent[axis] != 1)
            return true;
    return false;
}

static Lists lists_of(const CallMaker *m)
{
    const Iteration *it = &m->w.it;
    const Access *y = &it->out[0];
    const bool by = y->reach == REACH_INDEXED;
    Lists l = { .each = 1, .n = 1 };
    for (int s = 0; s < it->rank; s++)
        if (moves(it, y, s) && by && moves(it, &it->in[y->by], s))
            l.entry[l.n_entry++] = s;
    for (int s = 0; s < it->rank; s++)
        if (!moves(it, y, s)) {
            l.open[l.n_open++] = s;
            l.entry[l.n_entry++] = s;
            l.each *= it->extent[s];
        }
    for (int i = 0; i < l.n_entry; i++)
        l.n *= it->extent[l.entry[i]];
    l.next = (size_t)(l.n + l.n % 2) * sizeof(i64);
    return l;
}

static const char *check_scatter(const CallMaker *m, const Lists *l)
{
    enum { MOST_ENTRIES = 1 << 30 };
    const Iteration *it = &m->w.it;
    const bool fits = m->call->n_in == UPDATES + 1 && it->n_out == 1 && !it->n_folded && it->begins == 0;
    if (!fits || (it->out[0].reach != REACH_INDEXED && it->out[0].reach != REACH_AFFINE) || it->out[0].guard)
        return "a call of its own kind";
    if (it->in[UPDATES].reach != REACH_AFFINE || it->in[UPDATES].guard ||
        cuda_call_result(m, 0)->dtype != in(m->call, UPDATES)->type->dtype)
        return "updates that are not what they are put into";
    if (!cuda_walk_elements(&m->w))
        return "a result without elements";
    return l->n < MOST_ENTRIES ? NULL : "more updates than lists hold";
}

static void name_lists(const CallMaker *m, const Lists *l)
{
    text_printf(m->w.out, "    i64 *const where = (i64 *)scratch;\n");
    text_printf(m->w.out, "    i32 *const next = (i32 *)(scratch + %zu);\n", l->next);
}

/* What its indices add to the place of an entry's element; below 0: they lead nowhere. */
static void print_where(CallMaker *m, const Lists *l)
{
    const Access *y = &m->w.it.out[0];
    const Type *t = cuda_call_result(m, 0);
    int64_t each = 1;
    Text place;
    text_open(&place, m->w.arena);
    cuda_call_open(m, "where", l->n);
    text_printf(m->w.out, "    i64 *const where = (i64 *)scratch;\n    where[o] = -1;\n");
    cuda_walk_digits(&m->w, l->entry, l->n_entry, "o", 1);
    cuda_call_indices(m, y, t, "return;", 1);
    for (int d = t->rank - 1; d >= 0; d--) {
        if (y->reach == REACH_INDEXED && d >= y->by_dim && d < y->by_dim + y->by_n)
            cuda_walk_term(&place, each, "j", d - y->by_dim);
        each *= t->dims[d];
    }
    text_printf(m->w.out, "    where[o] = %s;\n", place.n ? text_get(&place) : "0");
    cuda_call_close(m);
}

/* Twice the number of the next entry that leads to the same place, and 1 where this is the first one. */
static void print_order(CallMaker *m, const Lists *l)
{
    Text *out = m->w.out;
    cuda_call_open(m, "order", l->n);
    name_lists(m, l);
    text_printf(out, "    const %s from = o / %" PRId64 " * %" PRId64 ", to = from + %" PRId64 ";\n", m->w.index,
                l->each, l->each, l->each);
    text_printf(out, "    %s before = from, behind = o + 1;\n", m->w.index);
    text_printf(out, "    while (before < o && where[before] != where[o])\n        before++;\n");
    text_printf(out, "    while (behind < to && where[behind] != where[o])\n        behind++;\n");
    text_printf(out, "    next[o] = 2 * (i32)(behind - from) + (before == o);\n");
    cuda_call_close(m);
}

/* The place of a result's element but for what indices add. */
static const char *place_without_indices(const CallMaker *m)
{
    Access y = m->w.it.out[0];
    y.reach = REACH_AFFINE;
    return cuda_walk_place(&m->w, &y, cuda_call_result(m, 0));
}

static void print_list(const CallMaker *m, const Lists *l)
{
    const Type *t = cuda_call_result(m, 0);
    const char *raw = cuda_storage(t->dtype), *type = m->w.it.joins ? dtype_name(m->arithmetic) : raw;
    const char *from = arena_printf(m->w.arena, "in%d[%s]", cuda_call_argument(m, UPDATES),
                                    cuda_walk_place(&m->w, &m->w.it.in[UPDATES], in(m->call, UPDATES)->type));
    Text *out = m->w.out;
    text_printf(out, "    typedef %s T;\n", type);
    text_printf(out, "    T x = %s;\n",
                m->w.it.joins ? cuda_load(&m->words, t->dtype, m->arithmetic, "in0[to]") : "in0[to]");
    text_printf(out, "    for (%s k = first; k < %" PRId64 "; k = next[list + k] / 2) {\n", m->w.index, l->each);
    cuda_walk_digits(&m->w, l->open, l->n_open, "k", 2);
    text_printf(out, "        const T y = %s;\n",
                m->w.it.joins ? cuda_load(&m->words, t->dtype, m->arithmetic, from) : from);
    text_printf(out, "        x = (T)(%s);\n    }\n", m->w.it.joins ? m->w.it.joins : "y");
    text_printf(out, "    out0[to] = %s;\n", m->w.it.joins ? cuda_store(&m->words, m->arithmetic, t->dtype, "x") : "x");
}

static void print_place(CallMaker *m, const Lists *l)
{
    Text *out = m->w.out;
    int closed[SPACE_RANK], n_closed = 0;
    int64_t points = l->each;
    for (int s = 0, open = 0; s < m->w.it.rank; s++) {
        if (open < l->n_open && l->open[open] == s) {
            open++;
            continue;
        }
        closed[n_closed++] = s;
        points *= m->w.it.extent[s];
    }
    cuda_call_open(m, "place", points);
    name_lists(m, l);
    text_printf(out, "    const %s inner = o %% %" PRId64 ", first = o / %" PRId64 ";\n", m->w.index, points / l->each,
                points / l->each);
    cuda_walk_digits(&m->w, closed, n_closed, "inner", 1);
    text_printf(out, "    const %s list = (%s) * %" PRId64 ";\n", m->w.index,
                cuda_walk_number(&m->w, l->entry, l->n_entry - l->n_open), l->each);
    text_printf(out, "    if (where[list + first] < 0 || next[list + first] %% 2 == 0)\n        return;\n");
    text_printf(out, "    const i64 to = where[list + first] + %s;\n", place_without_indices(m));
    print_list(m, l);
    cuda_call_close(m);
}

const char *cuda_scatter(CallMaker *m)
{
    const Lists l = lists_of(m);
    const char *why = check_scatter(m, &l);
    if (why)
        return why;
    m->arithmetic = dtype_wide(cuda_call_result(m, 0)->dtype);
    cuda_call_open(m, "begin", cuda_walk_elements(&m->w));
    text_printf(m->w.out, "    out0[o] = in0[o];\n");
    cuda_call_close(m);
    if (!l.n || !type_elements(in(m->call, UPDATES)->type))
        return NULL;
    m->launch->scratch = l.next + (size_t)l.n * sizeof(i32);
    print_where(m, &l);
    print_order(m, &l);
    print_place(m, &l);
    return NULL;
}
