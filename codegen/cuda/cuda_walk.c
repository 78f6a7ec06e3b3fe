#include "codegen/cuda/cuda_walk.h"

#include <inttypes.h>

#include "codegen/cuda/cuda_parts.h"

enum { MOST_NARROW = 1 << 30 }; /* what signed 32 bits count, sums of two coordinates too */

/* Along an axis of one point nothing moves. */
static int64_t step_of(const CudaWalk *w, const Access *a, int d, int axis)
{
    return w->it.extent[axis] == 1 ? 0 : a->step[d * w->it.rank + axis];
}

static void line(const CudaWalk *w, int indent, const char *text)
{
    text_printf(w->out, "%*s%s\n", 4 * indent, "", text);
}

void cuda_walk_term(Text *t, int64_t times, const char *what, int number)
{
    if (!times)
        return;
    if (t->n)
        text_add(t, times < 0 ? " - " : " + ");
    else if (times < 0)
        text_add(t, "-");
    text_printf(t, "%s%d", what, number);
    if (times != 1 && times != -1)
        text_printf(t, " * %" PRId64, times < 0 ? -times : times);
}

static void add_number(Text *t, int64_t number)
{
    if (t->n && number)
        text_printf(t, number < 0 ? " - %" PRId64 : " + %" PRId64, number < 0 ? -number : number);
    else if (!t->n)
        text_printf(t, "%" PRId64, number);
}

/* ---- what kernels can follow ---- */

static const char *check_access(const Access *a)
{
    if (a->reach == REACH_WHOLE)
        return "a call that may read anything for anything";
    return NULL;
}

/* A dimension of the result that two folded axes lead to: the outer one is walked, the inner one is where that leaves it. */
static void find_solved(CudaWalk *w)
{
    const Access *y = &w->it.out[0];
    for (int s = 0; s < w->it.rank; s++)
        w->solved_by[s] = NO_DIM;
    for (int d = 0; d < y->rank && y->reach == REACH_AFFINE; d++)
        for (int i = w->it.n_folded - 1; i >= 0; i--)
            if (step_of(w, y, d, w->it.folded[i])) {
                w->solved_by[w->it.folded[i]] = d;
                break;
            }
}

const char *cuda_walk_open(CudaWalk *w, Text *out, const Node *call)
{
    int64_t most = 0;
    *w = (CudaWalk){ .out = out, .arena = out->arena, .call = call };
    if (!access_iterate(call, w->arena, &w->it) || w->it.n_out < 1)
        return "a call whose card does not say how it walks";
    for (int i = 0; i < w->it.n_in; i++) {
        const char *why = in(call, i) ? check_access(&w->it.in[i]) : NULL;
        if (why)
            return why;
        if (in(call, i) && in(call, i)->type->kind == TYPE_TENSOR && type_elements(in(call, i)->type) > most)
            most = type_elements(in(call, i)->type);
    }
    for (int i = 0; i < w->it.n_out; i++) {
        const char *why = check_access(&w->it.out[i]);
        if (why)
            return why;
        if (type_elements(access_result(call, i)) > most)
            most = type_elements(access_result(call, i));
    }
    for (int i = 0; i < w->it.n_folded; i++)
        w->folded[w->it.folded[i]] = true;
    find_solved(w);
    w->index = most > MOST_NARROW || cuda_walk_points(w) > MOST_NARROW ? "i64" : "i32";
    return NULL;
}

int64_t cuda_walk_points(const CudaWalk *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->it.n_folded; i++)
        n *= w->solved_by[w->it.folded[i]] == NO_DIM ? w->it.extent[w->it.folded[i]] : 1;
    return n;
}

int64_t cuda_walk_elements(const CudaWalk *w)
{
    return type_elements(access_result(w->call, 0));
}

/* ---- coordinates ---- */

/* The axis with the least step of a dimension that is larger than `above`, among those that are not folded and have more than
 * one point; -1: none. */
static int next_axis(const CudaWalk *w, const Access *y, int d, int64_t above)
{
    int found = -1;
    for (int s = 0; s < w->it.rank; s++) {
        const int64_t step = w->folded[s] ? 0 : step_of(w, y, d, s);
        if (step > above && (found < 0 || step < step_of(w, y, d, found)))
            found = s;
    }
    return found;
}

/* A coordinate of the result as its axes count it, digit by digit, the fastest first. */
static const char *print_digits(const CudaWalk *w, const Access *y, int d, int64_t dim, bool *known, int indent)
{
    int64_t each = 1;
    for (int s = next_axis(w, y, d, 0); s >= 0; s = next_axis(w, y, d, each / w->it.extent[s])) {
        const int64_t extent = w->it.extent[s];
        if (step_of(w, y, d, s) != each || y->base[d])
            return "a result whose coordinates say nothing of where it comes from";
        known[s] = true;
        text_printf(w->out, "%*sconst %s p%d = r%d", 4 * indent, "", w->index, s, d);
        if (each > 1)
            text_printf(w->out, " / %" PRId64, each);
        if (each * extent < dim)
            text_printf(w->out, " %% %" PRId64, extent);
        text_printf(w->out, ";\n");
        each *= extent;
        if (extent == 0 || each >= dim)
            break;
    }
    if (each < dim)
        return "a result that no axis leads through";
    return NULL;
}

static bool is_solved(const CudaWalk *w, int d)
{
    for (int s = 0; s < w->it.rank; s++)
        if (w->solved_by[s] == d)
            return true;
    return false;
}

const char *cuda_walk_from_result(CudaWalk *w, int indent)
{
    const Access *y = &w->it.out[0];
    const Type *t = access_result(w->call, 0);
    bool known[SPACE_RANK] = { false };
    int64_t below = 1;
    if (y->reach != REACH_AFFINE)
        return "a result that is not reached axis by axis";
    for (int d = y->rank - 1; d >= 0; d--) {
        text_printf(w->out, "%*sconst %s r%d = o", 4 * indent, "", w->index, d);
        if (below > 1)
            text_printf(w->out, " / %" PRId64, below);
        if (d > 0)
            text_printf(w->out, " %% %" PRId64, t->dims[d]);
        text_printf(w->out, ";\n");
        below *= t->dims[d];
    }
    for (int d = 0; d < y->rank; d++) {
        const char *why = is_solved(w, d) ? NULL : print_digits(w, y, d, t->dims[d], known, indent);
        if (why)
            return why;
    }
    for (int s = 0; s < w->it.rank; s++)
        if (!known[s] && !w->folded[s] && w->it.extent[s] != 1)
            return "an axis that leads to no coordinate of the result";
    return NULL;
}

void cuda_walk_digits(const CudaWalk *w, const int *axes, int n, const char *number, int indent)
{
    int64_t below = 1;
    int first = 0;
    while (first < n && w->it.extent[axes[first]] == 1)
        first++;
    for (int i = n - 1; i >= first; i--) {
        const int64_t extent = w->it.extent[axes[i]];
        if (extent == 1)
            continue;
        text_printf(w->out, "%*sconst %s p%d = %s", 4 * indent, "", w->index, axes[i], number);
        if (below > 1)
            text_printf(w->out, " / %" PRId64, below);
        if (i > first)
            text_printf(w->out, " %% %" PRId64, extent);
        text_printf(w->out, ";\n");
        below *= extent;
    }
}

void cuda_walk_from_point(const CudaWalk *w, int indent)
{
    int axes[SPACE_RANK];
    for (int s = 0; s < w->it.rank; s++)
        axes[s] = s;
    cuda_walk_digits(w, axes, w->it.rank, "o", indent);
}

const char *cuda_walk_number(const CudaWalk *w, const int *axes, int n)
{
    Text number;
    int64_t below = 1;
    text_open(&number, w->arena);
    for (int i = n - 1; i >= 0; i--) {
        if (w->it.extent[axes[i]] != 1)
            cuda_walk_term(&number, below, "p", axes[i]);
        below *= w->it.extent[axes[i]];
    }
    return number.n ? text_get(&number) : "0";
}

/* ---- loops ---- */

/* Where along a folded axis the element lies, and that it does. */
static void print_solved(const CudaWalk *w, int axis, int indent)
{
    const Access *y = &w->it.out[0];
    const int d = w->solved_by[axis];
    const int64_t step = step_of(w, y, d, axis), extent = w->it.extent[axis];
    Text at;
    text_open(&at, w->arena);
    cuda_walk_term(&at, 1, "r", d);
    for (int s = 0; s < w->it.rank; s++)
        if (s != axis)
            cuda_walk_term(&at, -step_of(w, y, d, s), "p", s);
    add_number(&at, -y->base[d]);
    if (step == 1) {
        text_printf(w->out, "%*sconst %s p%d = %s;\n", 4 * indent, "", w->index, axis, text_get(&at));
        text_printf(w->out, "%*sif (p%d >= 0 && p%d < %" PRId64 ") {\n", 4 * indent, "", axis, axis, extent);
    } else {
        text_printf(w->out, "%*sconst %s q%d = %s, p%d = q%d / %" PRId64 ";\n", 4 * indent, "", w->index, axis,
                    text_get(&at), axis, axis, step);
        text_printf(w->out, "%*sif (q%d >= 0 && q%d %% %" PRId64 " == 0 && p%d < %" PRId64 ") {\n", 4 * indent, "",
                    axis, axis, step, axis, extent);
    }
}

static void print_loop(const CudaWalk *w, int axis, int indent)
{
    line(w, indent,
         arena_printf(w->arena, "for (%s p%d = 0; p%d < %" PRId64 "; p%d++) {", w->index, axis, axis,
                      w->it.extent[axis], axis));
}

int cuda_walk_loops(const CudaWalk *w, int indent)
{
    int open = 0;
    for (int i = 0; i < w->it.n_folded; i++) {
        const int s = w->it.folded[i];
        if (w->it.extent[s] == 1)
            continue;
        if (w->solved_by[s] != NO_DIM)
            print_solved(w, s, indent + open++);
        else
            print_loop(w, s, indent + open++);
    }
    return open;
}

/* ---- places ---- */

static const char *coordinate(const CudaWalk *w, const Access *a, int d)
{
    Text t;
    text_open(&t, w->arena);
    for (int s = 0; s < w->it.rank; s++)
        cuda_walk_term(&t, step_of(w, a, d, s), "p", s);
    add_number(&t, a->base[d]);
    return text_get(&t);
}

const char *cuda_walk_place(const CudaWalk *w, const Access *a, const Type *t)
{
    Text place;
    int64_t each = 1, base = 0, times[SPACE_RANK] = { 0 }, by[MAX_RANK] = { 0 };
    text_open(&place, w->arena);
    if (a->reach == REACH_FLAT)
        return "o";
    for (int d = a->rank - 1; d >= 0; d--) {
        base += each * a->base[d];
        for (int s = 0; s < w->it.rank; s++)
            times[s] += each * step_of(w, a, d, s);
        if (a->reach == REACH_INDEXED && d >= a->by_dim && d < a->by_dim + a->by_n)
            by[d - a->by_dim] = each;
        each *= t->dims[d];
    }
    for (int s = 0; s < w->it.rank; s++)
        cuda_walk_term(&place, times[s], "p", s);
    for (int k = 0; a->reach == REACH_INDEXED && k < a->by_n; k++)
        cuda_walk_term(&place, by[k], "j", k);
    add_number(&place, base);
    return text_get(&place);
}

const char *cuda_walk_inside(const CudaWalk *w, const Access *a, const Type *t)
{
    Text c;
    text_open(&c, w->arena);
    if (a->piece_dim != NO_PIECE && w->it.extent[a->piece_dim] == 1)
        text_add(&c, a->from <= 0 && a->to > 0 ? "" : "false");
    else if (a->piece_dim != NO_PIECE)
        text_printf(&c, "p%d >= %" PRId64 " && p%d < %" PRId64, a->piece_dim, a->from, a->piece_dim, a->to);
    for (int d = 0; d < a->rank && a->reach == REACH_AFFINE; d++) {
        int64_t least = a->base[d], most = a->base[d];
        for (int s = 0; s < w->it.rank; s++) {
            const bool piece = s == a->piece_dim;
            const int64_t step = step_of(w, a, d, s), from = step * (piece ? a->from : 0),
                          to = step * ((piece ? a->to : w->it.extent[s]) - 1);
            least += from < to ? from : to;
            most += from < to ? to : from;
        }
        if (least < 0)
            text_printf(&c, "%s%s >= 0", c.n ? " && " : "", coordinate(w, a, d));
        if (most >= t->dims[d])
            text_printf(&c, "%s%s < %" PRId64, c.n ? " && " : "", coordinate(w, a, d), t->dims[d]);
    }
    return c.n ? text_get(&c) : NULL;
}
