#include "ops/card/signature.h"

#include <string.h>

Bound signature_open(void)
{
    Bound k = { .n_rest = -1 };
    for (int i = 0; i < SIGNATURE_LETTERS; i++)
        k.extent[i] = DIM_UNKNOWN;
    return k;
}

void signature_set(Bound *k, char letter, int64_t extent)
{
    k->extent[letter - 'a'] = extent;
}

void signature_set_dtype(Bound *k, char letter, DType dtype)
{
    k->dtype[letter - 'A'] = (int)dtype + 1;
}

int64_t signature_extent(const Bound *k, char letter)
{
    return k->extent[letter - 'a'];
}

/* ---- texts ---- */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_absent_allowed(const char *part)
{
    return part[strlen(part) - 1] == '?';
}

/* A text apart: its element type, its dimensions, those before and behind the `*`. */
typedef struct Part {
    Str dtype, dims;
    int head, tail;       /* dimensions before and behind the star; without one, all are before */
    bool shaped, starred; /* has brackets; has a star */
} Part;

static Part part_of(const char *text)
{
    const size_t end = strlen(text) - is_absent_allowed(text);
    const char *open = strchr(text, '[');
    Part p = { .dtype = { text, open ? (size_t)(open - text) : end }, .shaped = open != NULL };
    if (!open)
        return p;
    p.dims = (Str){ open + 1, end - p.dtype.n - 2 };
    const char *star = memchr(p.dims.p, '*', p.dims.n);
    p.starred = star != NULL;
    p.head = (int)(star ? (size_t)(star - p.dims.p) : p.dims.n);
    p.tail = star ? (int)p.dims.n - p.head - 1 : 0;
    return p;
}

/* The character of a dimension that is not among those of the star. */
static char dim_char(const Part *p, int i, int rank)
{
    return i < p->head ? p->dims.p[i] : p->dims.p[(int)p->dims.n - (rank - i)];
}

static bool is_class(Str dtype)
{
    return dtype.p[0] >= 'A' && dtype.p[0] <= 'Z';
}

static const char *class_word(char c)
{
    return strchr("FGH", c) ? "float" : strchr("IJ", c) ? "integer" : c == 'A' ? "f32, f16 or bf16" : "any";
}

static bool class_holds(char c, DType d)
{
    return strchr("FGH", c) ? dtype_is_float(d) : strchr("IJ", c) ? dtype_is_integer(d) : c != 'A' || dtype_is_amp(d);
}

/* "float[n=3,c]": what an operand should have been, as far as others said it. */
static const char *wanted_text(Infer *q, const Bound *k, const Part *p)
{
    const char c = p->dtype.p[0];
    const int known = is_class(p->dtype) ? k->dtype[c - 'A'] : 0;
    Text t;
    text_open(&t, q->scratch);
    text_add(&t, known ? dtype_name((DType)(known - 1)) : is_class(p->dtype) ? class_word(c) : "");
    if (!is_class(p->dtype))
        text_printf(&t, "%.*s", (int)p->dtype.n, p->dtype.p);
    for (size_t i = 0; p->shaped && i < p->dims.n; i++) {
        const char d = p->dims.p[i];
        text_add(&t, i ? "," : "[");
        if (d == '*' && k->n_rest >= 0)
            for (int j = 0; j < k->n_rest; j++)
                text_printf(&t, k->rest[j] < 0 ? "%s?" : "%s%" PRId64, j ? "," : "", k->rest[j]);
        else if (is_letter(d) && signature_extent(k, d) >= 0)
            text_printf(&t, "%c=%" PRId64, d, signature_extent(k, d));
        else
            text_printf(&t, d == '*' ? ".." : "%c", d);
    }
    text_add(&t, !p->shaped ? "" : p->dims.n ? "]" : "[]");
    return t.p;
}

static bool not_wanted(Infer *q, const Bound *k, const Part *p, int i)
{
    infer_fail(q, "operand %d is %s, wanted is %s", i, type_text(q->scratch, q->in[i]), wanted_text(q, k, p));
    return false;
}

/* ---- operands ---- */

static bool match_dtype(Infer *q, Bound *k, const Part *p, int i)
{
    const DType d = q->in[i]->dtype;
    if (!is_class(p->dtype))
        return str_is(p->dtype, dtype_name(d)) || not_wanted(q, k, p, i);
    int *known = &k->dtype[p->dtype.p[0] - 'A'];
    if (!class_holds(p->dtype.p[0], d) || (*known && *known != (int)d + 1))
        return not_wanted(q, k, p, i);
    *known = (int)d + 1;
    return true;
}

static bool match_dim(Bound *k, char c, int64_t n)
{
    if (!is_letter(c))
        return dims_fit(n, c - '0');
    int64_t *known = &k->extent[c - 'a'];
    if (!dims_fit(*known, n))
        return false;
    *known = dims_meet(*known, n);
    return true;
}

/* The dimensions of the star are those that another operand has there. */
static bool match_rest(Bound *k, int n, const int64_t *dims)
{
    bool fits = k->n_rest < 0 || k->n_rest == n;
    for (int j = 0; fits && j < n; j++) {
        fits = k->n_rest < 0 || dims_fit(k->rest[j], dims[j]);
        if (fits)
            k->rest[j] = k->n_rest < 0 ? dims[j] : dims_meet(k->rest[j], dims[j]);
    }
    k->n_rest = fits ? n : k->n_rest;
    return fits;
}

static bool match_dims(Infer *q, Bound *k, const Part *p, int i)
{
    const Type *t = q->in[i];
    const int rest = t->rank - p->head - p->tail;
    if (!p->shaped || t->rank < 0)
        return true;
    bool fits = p->starred ? rest >= 0 : rest == 0;
    for (int d = 0; fits && d < t->rank; d++)
        if (d < p->head || d >= p->head + rest)
            fits = match_dim(k, dim_char(p, d, t->rank), t->dims[d]);
    return (fits && (!p->starred || match_rest(k, rest, t->dims + p->head))) || not_wanted(q, k, p, i);
}

bool signature_match(Infer *q, Bound *k)
{
    const Signature *s = q->def->signature;
    for (int i = 0; i < SIGNATURE_INS && s->in[i]; i++) {
        const Part p = part_of(s->in[i]);
        if (!infer_has(q, i) && is_absent_allowed(s->in[i]))
            continue;
        if (!infer_tensor(q, i) || !match_dtype(q, k, &p, i) || !match_dims(q, k, &p, i))
            return false;
    }
    return true;
}

/* ---- results ---- */

static DType result_dtype(const Bound *k, Str name)
{
    DType d = F32;
    if (is_class(name))
        return (DType)(k->dtype[name.p[0] - 'A'] - 1);
    dtype_from_name(name, &d);
    return d;
}

static const Type *result_of(Infer *q, const Bound *k, const char *text)
{
    const Part p = part_of(text);
    const DType dtype = result_dtype(k, p.dtype);
    const int rest = p.starred ? k->n_rest : 0, rank = p.head + rest + p.tail;
    int64_t dims[MAX_RANK];
    if (rest < 0)
        return type_unranked(q->types, dtype);
    if (rank > MAX_RANK)
        return infer_dims(q, dtype, rank, NULL);
    for (int d = 0; d < rank; d++) {
        const bool starred = d >= p.head && d < p.head + rest;
        const char c = starred ? '*' : dim_char(&p, d, rank);
        dims[d] = starred ? k->rest[d - p.head] : is_letter(c) ? signature_extent(k, c) : c - '0';
    }
    return infer_dims(q, dtype, rank, dims);
}

const Type *signature_results(Infer *q, const Bound *k)
{
    const Signature *s = q->def->signature;
    const Type *results[SIGNATURE_OUTS];
    int n = 0;
    for (; n < SIGNATURE_OUTS && s->out[n]; n++)
        if (!(results[n] = result_of(q, k, s->out[n])))
            return NULL;
    return infer_results(q, n, results);
}

const Type *infer_by_signature(Infer *q)
{
    Bound k = signature_open();
    return signature_match(q, &k) ? signature_results(q, &k) : NULL;
}

/* ---- samples ---- */

static DType sampled_dtype(Rng *rng, Bound *k, Str name, int variant)
{
    static const DType integers[] = { I64, I32, U8, I8 }, narrow[] = { F32, F16, BF16 };
    const char c = name.p[0];
    if (is_class(name) && !k->dtype[c - 'A'])
        k->dtype[c - 'A'] = 1 + (int)(strchr("FGH", c)  ? sample_float(rng)
                                      : c == 'A'        ? narrow[variant % (int)COUNT(narrow)]
                                      : strchr("IJ", c) ? integers[variant % (int)COUNT(integers)]
                                                        : sample_dtype(variant));
    return result_dtype(k, name);
}

static Node *sampled(Build *b, Rng *rng, Bound *k, const char *text, int variant)
{
    const Part p = part_of(text);
    const DType dtype = sampled_dtype(rng, k, p.dtype, variant);
    const int rank = p.head + p.tail + (p.starred ? k->n_rest : 0);
    int64_t dims[MAX_RANK];
    for (int d = 0; d < rank; d++) {
        const bool starred = d >= p.head && d < rank - p.tail;
        const char c = starred ? '*' : dim_char(&p, d, rank);
        dims[d] = starred ? k->rest[d - p.head] : is_letter(c) ? signature_extent(k, c) : c - '0';
    }
    const bool floats = dtype_is_float(dtype);
    return sample_tensor(b, rng, dtype, rank, dims, floats ? -2 : 0, floats ? 2 : 3);
}

Node *sample_by_signature(Build *b, Rng *rng, int variant, Op op, const void *attr)
{
    const OpDef *def = b->graph->ir->ops->defs[op];
    const Signature *s = def->signature;
    Node *ins[SIGNATURE_INS] = { NULL };
    Bound k = signature_open();
    int n = 0;
    k.n_rest = variant % 4;
    sample_dims(rng, k.n_rest, 4, k.rest);
    sample_dims(rng, SIGNATURE_LETTERS, 4, k.extent);
    for (; n < SIGNATURE_INS && s->in[n]; n++)
        if (!is_absent_allowed(s->in[n]) || rng_below(rng, 2))
            ins[n] = sampled(b, rng, &k, s->in[n], variant);
    return build_node_n(b, op, attr, n, ins, def->max_out > 0 ? def->max_out : 1);
}
