#include "passes/clean/constant_values.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "ir/store/blob.h"

/* The elements of a constant, seen through two windows: what is looked at may be a weight of gigabytes, and most questions
 * are answered by its first numbers. */
enum { WINDOW = 1 << 16, WINDOWS = 2 };

typedef struct Values {
    const Type *type, *window_type; /* of the constant; of what a window holds */
    Payload *payload;
    Diag *diag;
    Heap heap;
    int64_t n, in_window; /* elements, and how many a window has room for */
    size_t size;          /* bytes of one */
    bool all;             /* the first window is the whole */
    int last;             /* the window that was read last */
    struct {
        int64_t first, n;
        Tensor tensor;
    } window[WINDOWS];
} Values;

/* What cannot be had in parts is read as a whole, for as long as it is looked at. */
static bool open_whole(Values *v)
{
    void *block;
    const void *bytes = payload_bytes(v->payload, &v->heap, &block, v->diag);
    size_t n = 0;
    if (!bytes || !type_bytes(v->type, &n))
        return false;
    v->window[0].n = v->n;
    v->window[0].tensor = (Tensor){ .type = v->type, .data = (void *)(uintptr_t)bytes, .bytes = n, .refs = 1 };
    return v->all = true;
}

static bool read_window(Values *v, int k, int64_t first)
{
    const int64_t n = v->n - first < v->in_window ? v->n - first : v->in_window;
    v->last = k;
    v->window[k].first = first;
    v->window[k].n = n;
    return payload_part(v->payload, (uint64_t)first * v->size, v->window[k].tensor.data, (size_t)n * v->size, v->diag);
}

static bool open_windows(Values *v, Types *types)
{
    v->window_type = type_vector(types, v->type->dtype, v->in_window);
    for (int k = 0; k < WINDOWS; k++)
        v->window[k].tensor =
            (Tensor){ .type = v->window_type, .data = heap_alloc(&v->heap, WINDOW), .bytes = WINDOW, .refs = 1 };
    return read_window(v, 0, 0);
}

static void values_close(Values *v)
{
    heap_close(&v->heap);
}

/* Begins to look at a constant; false, and nothing is to be closed, where it has no numbers. */
static bool values_open(Values *v, const Node *n)
{
    Ir *ir = n->graph->ir;
    size_t bytes;
    *v = (Values){ .type = n->type, .payload = node_payload(n), .diag = ir->diag };
    if (!v->payload || !tensor_holds(n->type) || n->type->dtype == STRING || !type_bytes(n->type, &bytes))
        return false;
    v->type = v->payload->type;
    v->n = type_elements(v->type);
    v->size = v->n ? bytes / (size_t)v->n : 1;
    v->in_window = v->size ? WINDOW / (int64_t)v->size : 0;
    if (bytes <= WINDOW && !payload_cached(v->payload, v->diag)) /* what is small is asked for again */
        return false;
    heap_open(&v->heap, ir->memory);
    const bool parts = v->payload->read_part && v->size * (size_t)v->n == bytes && bytes > WINDOW;
    if (parts ? open_windows(v, &ir->types) : open_whole(v))
        return true;
    values_close(v);
    return false;
}

/* The window that has element i; null where it cannot be read. */
static const Tensor *window_of(Values *v, int64_t i, int64_t *at)
{
    for (int k = 0; k < WINDOWS; k++)
        if (i >= v->window[k].first && i < v->window[k].first + v->window[k].n) {
            *at = i - v->window[k].first;
            return &v->window[k].tensor;
        }
    if (v->all || !read_window(v, (v->last + 1) % WINDOWS, i / v->in_window * v->in_window)) {
        v->window[v->last].n = 0;
        return NULL;
    }
    *at = i - v->window[v->last].first;
    return &v->window[v->last].tensor;
}

/* Element i as a number; NaN where it cannot be read. */
static double value_at(Values *v, int64_t i)
{
    int64_t at;
    const Tensor *t = window_of(v, i, &at);
    return t ? tensor_get_f64(t, at) : NAN;
}

/* The bytes of the elements from i on that lie together, and how many elements these are; null where they cannot be
 * read. */
static const char *values_run(Values *v, int64_t i, int64_t *n)
{
    int64_t at;
    const Tensor *t = window_of(v, i, &at);
    *n = t ? (v->all ? v->n : v->window[t == &v->window[0].tensor ? 0 : 1].n) - at : 0;
    return t ? (const char *)t->data + (size_t)at * v->size : NULL;
}

/* ---- one constant ---- */

static bool repeats(Values *v)
{
    char first[2 * sizeof(double)];
    int64_t n;
    const char *run = v->n ? values_run(v, 0, &n) : NULL;
    if (!run || v->size > sizeof first || (v->all && v->size * (size_t)v->n != v->window[0].tensor.bytes))
        return false;
    memcpy(first, run, v->size);
    for (int64_t i = 0; i < v->n; i += n) {
        if (!(run = values_run(v, i, &n)) || memcmp(run, first, v->size) != 0 ||
            memcmp(run, run + v->size, (size_t)(n - 1) * v->size) != 0)
            return false;
    }
    return true;
}

/* Asks about the values of a constant: no, where it has none. */
static bool ask(const Node *n, bool (*holds)(Values *v))
{
    Values v;
    if (!values_open(&v, n))
        return false;
    const bool yes = holds(&v);
    values_close(&v);
    return yes;
}

bool is_one_value(const Node *n)
{
    return ask(n, repeats);
}

static bool hides(Values *v)
{
    bool shown = false, hidden = false;
    for (int64_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i);
        if (!(x == 0 || x < -50))
            return false;
        shown |= x == 0;
        hidden |= x < -50;
    }
    return shown && hidden;
}

bool is_additive_mask(const Node *n)
{
    return ask(n, hides);
}

static bool is_whole(Values *v)
{
    for (int64_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i);
        if (!(x == floor(x)))
            return false;
    }
    return !repeats(v);
}

bool is_whole_numbers(const Node *n)
{
    enum { LEAST = 16 };
    return type_elements(n->type) >= LEAST && ask(n, is_whole);
}

static bool counts(Values *v)
{
    const double first = value_at(v, 0);
    for (int64_t i = 0; i < v->n; i++)
        if (value_at(v, i) != first + (double)i)
            return false;
    return first == floor(first);
}

static int long_axes(const Type *t)
{
    int n = 0;
    for (int i = 0; i < t->rank; i++)
        n += t->dims[i] != 1;
    return n;
}

bool is_counting(const Node *n)
{
    enum { LEAST = 3 };
    const Type *t = n->type;
    return t->kind == TYPE_TENSOR && long_axes(t) == 1 && type_elements(t) >= LEAST && ask(n, counts);
}

static bool all_zero(Values *v)
{
    return v->n && value_at(v, 0) == 0 && repeats(v);
}

bool is_zeros(const Node *n)
{
    return ask(n, all_zero);
}

static bool is_identity(Values *v)
{
    const int64_t side = v->type->dims[v->type->rank - 1];
    for (int64_t i = 0; i < v->n; i++)
        if (value_at(v, i) != (i / side % side == i % side))
            return false;
    return true;
}

bool is_identity_matrix(const Node *n)
{
    const Type *type = n->type;
    const int64_t side = type->rank >= 2 ? type->dims[type->rank - 1] : 0;
    return side >= 2 && type->dims[type->rank - 2] == side && ask(n, is_identity);
}

static bool progresses(Values *v)
{
    const double first = value_at(v, 0), step = (value_at(v, v->n - 1) - first) / (double)(v->n - 1);
    const double near = 1e-5 * (fabs(first) + fabs(step) * (double)v->n);
    for (int64_t i = 0; i < v->n; i++)
        if (!(fabs(value_at(v, i) - first - step * (double)i) <= near))
            return false;
    return step != 0;
}

bool is_progression(const Node *n)
{
    enum { LEAST = 4 };
    return long_axes(n->type) == 1 && type_elements(n->type) >= LEAST && ask(n, progresses);
}

static bool mirrors(Values *v)
{
    const int64_t width = v->type->rank > 1 ? v->type->dims[v->type->rank - 1] : 1, rows = v->n / width;
    for (int64_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i), mirror = value_at(v, (rows - 1 - i / width) * width + i % width);
        if (!(fabs(x + mirror) <= 1e-6 * fabs(x)))
            return false;
    }
    return !repeats(v);
}

bool is_antisymmetric(const Node *n)
{
    enum { LEAST = 3 };
    const int64_t count = type_elements(n->type), width = n->type->rank > 1 ? n->type->dims[n->type->rank - 1] : 1;
    return width > 0 && count / width >= LEAST && ask(n, mirrors);
}

/* Whether elements i and i + `apart` of each row, for i = 0, `step` .., are sine and cosine of an angle. */
static bool has_pairs(Values *v, int64_t width, int64_t apart, int64_t step)
{
    const double near = v->type->dtype == F32 || v->type->dtype == F64 ? 1e-4 : 2e-2;
    for (int64_t row = 0; row < v->n; row += width)
        for (int64_t i = 0, pairs = 0; pairs < width / 2; pairs++, i += step) {
            const double x = value_at(v, row + i), y = value_at(v, row + i + apart);
            if (!(fabs(x * x + y * y - 1) <= near))
                return false;
        }
    return true;
}

static bool are_sines(Values *v)
{
    const int64_t width = v->type->dims[v->type->rank - 1];
    return (has_pairs(v, width, 1, 2) || has_pairs(v, width, width / 2, 1)) && !repeats(v);
}

bool is_sinusoidal(const Node *n)
{
    enum { LEAST_WIDTH = 4, LEAST_ROWS = 2 };
    const int64_t width = n->type->rank >= 2 ? n->type->dims[n->type->rank - 1] : 0;
    return width >= LEAST_WIDTH && width % 2 == 0 && type_elements(n->type) / width >= LEAST_ROWS && ask(n, are_sines);
}

/* ---- two constants ---- */

/* Asks about two at once. */
static bool ask_both(const Node *a, const Node *b, bool (*hold)(Values *x, Values *y))
{
    Values x, y;
    if (!values_open(&x, a))
        return false;
    bool yes = false;
    if (values_open(&y, b)) {
        yes = hold(&x, &y);
        values_close(&y);
    }
    values_close(&x);
    return yes;
}

static bool lie_on_a_circle(Values *c, Values *s)
{
    const double near = c->type->dtype == F32 || c->type->dtype == F64 ? 1e-5 : 2e-2;
    bool between = false;
    for (int64_t i = 0; i < c->n; i++) {
        const double x = value_at(c, i), y = value_at(s, i);
        if (!(fabs(x * x + y * y - 1) <= near))
            return false;
        between |= x * x > 0.01 && x * x < 0.99;
    }
    return between;
}

bool are_cosines_and_sines(const Node *a, const Node *b)
{
    return a->type == b->type && a != b && ask_both(a, b, lie_on_a_circle);
}

/* ---- a constant that is some function of another ---- */

/* The first and the last numbers of both: where all of these are in one order, chance is no longer an explanation. */
typedef struct Sample {
    double x[256], y[256];
    int n;
} Sample;

static Sample sample_both(Values *x, Values *y)
{
    Sample s;
    s.n = x->n < (int64_t)COUNT(s.x) ? (int)x->n : (int)COUNT(s.x);
    for (int i = 0; i < s.n; i++) {
        const int64_t at = i < s.n / 2 ? i : x->n - s.n + i;
        s.x[i] = value_at(x, at);
        s.y[i] = value_at(y, at);
    }
    return s;
}

static bool are_in_one_order(const Sample *s)
{
    enum { DIFFERENT = 16 };
    int several_x = 0, several_y = 0;
    bool rises = true, falls = true;
    for (int i = 0; i < s->n && (rises || falls); i++) {
        bool new_x = true, new_y = true;
        for (int k = 0; k < i; k++) {
            const int x = (s->x[i] > s->x[k]) - (s->x[i] < s->x[k]), y = (s->y[i] > s->y[k]) - (s->y[i] < s->y[k]);
            rises &= x * y >= 0 && (x || !y);
            falls &= x * y <= 0 && (x || !y);
            new_x &= x != 0;
            new_y &= y != 0;
        }
        several_x += new_x;
        several_y += new_y;
    }
    return (rises || falls) && several_x >= DIFFERENT && several_y >= DIFFERENT;
}

static bool are_on_a_line(const Sample *s)
{
    const double near = 1e-5;
    int least = 0, most = 0;
    for (int i = 1; i < s->n; i++) {
        least = s->x[i] < s->x[least] ? i : least;
        most = s->x[i] > s->x[most] ? i : most;
    }
    const double slope = (s->y[most] - s->y[least]) / (s->x[most] - s->x[least]);
    for (int i = 0; i < s->n; i++) {
        const double step = slope * (s->x[i] - s->x[least]);
        if (!(fabs(s->y[least] + step - s->y[i]) <= near * (fabs(s->y[least]) + fabs(step))))
            return false;
    }
    return true;
}

static bool rise_or_fall_together(Values *x, Values *y)
{
    const Sample s = sample_both(x, y);
    return are_in_one_order(&s);
}

static bool rise_or_fall_in_a_line(Values *x, Values *y)
{
    const Sample s = sample_both(x, y);
    return are_in_one_order(&s) && are_on_a_line(&s);
}

bool are_ordered_alike(const Node *a, const Node *b, bool in_a_line)
{
    return type_known(a->type) && type_known(b->type) && type_elements(a->type) == type_elements(b->type) &&
           ask_both(a, b, in_a_line ? rise_or_fall_in_a_line : rise_or_fall_together);
}

/* ---- constants that are equal ---- */

static bool have_same_bytes(Values *x, Values *y)
{
    int64_t n, m;
    if (x->size != y->size || x->n != y->n)
        return false;
    if (x->all && y->all)
        return x->window[0].tensor.bytes == y->window[0].tensor.bytes &&
               bytes_equal(x->window[0].tensor.data, y->window[0].tensor.data, x->window[0].tensor.bytes);
    for (int64_t i = 0; i < x->n; i += n) {
        const char *p = values_run(x, i, &n), *q = values_run(y, i, &m);
        n = n < m ? n : m;
        if (!p || !q || memcmp(p, q, (size_t)n * x->size) != 0)
            return false;
    }
    return true;
}

/* A square of a few elements in the corner says no to nearly all that are not; the columns of large ones are read as a
 * whole. */
static bool are_transposed(Values *x, Values *y)
{
    enum { CORNER = 4 };
    const int64_t rows = x->type->dims[0], columns = x->type->dims[1];
    const size_t size = x->size;
    int64_t n;
    if (size != y->size || x->n != y->n || !x->n)
        return x->n == 0 && y->n == 0;
    for (int64_t i = 0; i < rows && i < CORNER; i++)
        for (int64_t k = 0; k < columns && k < CORNER; k++) {
            const char *p = values_run(x, i * columns + k, &n), *q = values_run(y, k * rows + i, &n);
            if (!p || !q || memcmp(p, q, size) != 0)
                return false;
        }
    if ((!x->all && !open_whole(x)) || (!y->all && !open_whole(y)))
        return false;
    const char *p = x->window[0].tensor.data, *q = y->window[0].tensor.data;
    if (size * (size_t)x->n != x->window[0].tensor.bytes)
        return false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (memcmp(p + (size_t)(i * columns + k) * size, q + (size_t)(k * rows + i) * size, size) != 0)
                return false;
    return true;
}

static bool same_type(const Type *t, const Type *u, bool transposed)
{
    if (t->rank != u->rank || t->dtype != u->dtype || (transposed && t->rank != 2))
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != u->dims[transposed ? 1 - i : i])
            return false;
    return true;
}

bool are_equal(const Node *a, const Node *b, bool transposed)
{
    return same_type(a->type, b->type, transposed) && ask_both(a, b, transposed ? are_transposed : have_same_bytes);
}

bool is_copy(const Node *a, const Node *b, bool transposed)
{
    return a->type->rank == 2 && are_equal(a, b, transposed) && !is_one_value(a);
}
