/* Random graphs for mixed precision: products, sums, moves, own casts, parts and bodies in bodies, as text. */
#include "ir/text/parse.h"
#include "ir/verify.h"
#include "support/amp_trial.h"

enum { MOST_VALUES = 64, DEEPEST = 2 };

/* Values that stand: all f32[4,4]. */
typedef struct Writer {
    Text *out;
    Rng *rng;
    int names; /* given so far */
} Writer;

typedef struct Scope {
    int value[MOST_VALUES];
    int n, depth;
} Scope;

static int any(Writer *w, const Scope *s)
{
    return s->value[rng_below(w->rng, s->n)];
}

static void keep(Scope *s, int value)
{
    if (s->n < MOST_VALUES)
        s->value[s->n++] = value;
}

static const char *word_of(Writer *w, const char *const *words, size_t n)
{
    return words[rng_below(w->rng, (int64_t)n)];
}

static int write_unary(Writer *w, Scope *s)
{
    static const char *const words[] = { "relu",    "neg",  "abs",      "tanh",     "exp",    "sigmoid",
                                         "softmax", "sqrt", "identity", "softplus", "is_nan", "log_softmax" };
    const char *word = word_of(w, words, COUNT(words));
    const int v = w->names++;
    if (strcmp(word, "is_nan") == 0)
        text_printf(w->out, "%%b%d: bool[4,4] = is_nan(%%v%d)\n%%v%d: f32[4,4] = cast(%%b%d, to=f32)\n", v, any(w, s),
                    v, v);
    else
        text_printf(w->out, "%%v%d: f32[4,4] = %s(%%v%d)\n", v, word, any(w, s));
    return v;
}

static int write_binary(Writer *w, Scope *s)
{
    static const char *const words[] = { "add", "sub", "mul", "max", "min", "matmul", "matmul", "matmul", "matmul" };
    const int v = w->names++;
    text_printf(w->out, "%%v%d: f32[4,4] = %s(%%v%d, %%v%d)\n", v, word_of(w, words, COUNT(words)), any(w, s),
                any(w, s));
    return v;
}

static int write_move(Writer *w, Scope *s)
{
    const int v = w->names++, a = any(w, s), b = any(w, s);
    switch (rng_below(w->rng, 4)) {
    case 0:
        text_printf(w->out, "%%v%d: f32[4,4] = transpose(%%v%d, perm=[1, 0])\n", v, a);
        break;
    case 1: /* together and apart again, by two parts of one result */
        text_printf(w->out, "%%c%d: f32[8,4] = concat(%%v%d, %%v%d, axis=0)\n", v, a, b);
        text_printf(w->out, "%%s%d: (f32[4,4], f32[4,4]) = split(%%c%d)\n", v, v);
        text_printf(w->out, "%%v%d: f32[4,4] = part(%%s%d, index=0)\n", v, v);
        keep(s, w->names);
        text_printf(w->out, "%%v%d: f32[4,4] = part(%%s%d, index=%d)\n", w->names++, v, (int)rng_below(w->rng, 2));
        break;
    case 2:
        text_printf(w->out, "%%m%d: bool[4,4] = less(%%v%d, %%v%d)\n", v, a, b);
        text_printf(w->out, "%%v%d: f32[4,4] = where(%%m%d, %%v%d, %%v%d)\n", v, v, any(w, s), any(w, s));
        break;
    default: {
        static const char *const fills[] = { "0.5", "-1e9", "1e-12", "65520", "65519", "2.9802322e-08" };
        text_printf(w->out, "const %%k%d: f32[] = %s\n", v, word_of(w, fills, COUNT(fills)));
        text_printf(w->out, "%%v%d: f32[4,4] = %s(%%v%d, %%k%d)\n", v, rng_below(w->rng, 2) ? "max" : "add", a, v);
    }
    }
    return v;
}

/* Casts of the model's own, and a sum. */
static int write_wide(Writer *w, Scope *s)
{
    static const char *const types[] = { "f16", "bf16", "f64" };
    const char *type = word_of(w, types, COUNT(types));
    const int v = w->names++;
    if (rng_below(w->rng, 2)) {
        text_printf(w->out, "const %%x%d: i64[1] = [1]\n", v);
        text_printf(w->out, "%%r%d: f32[4,1] = reduce_sum(%%v%d, %%x%d)\n", v, any(w, s), v);
        text_printf(w->out, "%%v%d: f32[4,4] = add(%%v%d, %%r%d)\n", v, any(w, s), v);
        return v;
    }
    text_printf(w->out, "%%n%d: %s[4,4] = cast(%%v%d, to=%s)\n", v, type, any(w, s), type);
    text_printf(w->out, "%%o%d: %s[4,4] = matmul(%%n%d, %%n%d)\n", v, type, v, v);
    text_printf(w->out, "%%v%d: f32[4,4] = cast(%%o%d, to=f32)\n", v, v);
    return v;
}

static void write_calls(Writer *w, Scope *s, int n);

/* A body of two parameters and its results. */
static void write_body(Writer *w, int depth, const char *head, int n_results, const char *first)
{
    Scope s = { .depth = depth };
    Text inner, *out = w->out;
    for (int i = 0; i < 2; i++)
        keep(&s, w->names++);
    text_printf(out, "{ (%s%%v%d: f32[4,4], %%v%d: f32[4,4]) -> (%s", head, s.value[0], s.value[1], first);
    text_open(&inner, out->arena);
    w->out = &inner;
    write_calls(w, &s, (int)rng_range(w->rng, 1, 5));
    w->out = out;
    for (int i = 0; i < n_results; i++)
        text_printf(out, "%s%%v%d = %%v%d", i || *first ? ", " : "", w->names++, any(w, &s));
    text_printf(out, ")\n%s}", inner.n ? text_get(&inner) : "");
}

static int write_call_with_body(Writer *w, Scope *s)
{
    const int v = w->names++, a = any(w, s), b = any(w, s);
    const bool loops = rng_below(w->rng, 2);
    if (loops) {
        text_printf(w->out, "const %%t%d: i64[] = 2\n", v);
        text_printf(w->out, "%%l%d: (f32[4,4], f32[4,4]) = loop(%%t%d, _, %%v%d, %%v%d) ", v, v, a, b);
        char head[64], first[32];
        snprintf(head, sizeof head, "%%i%d: i64[], %%q%d: bool[], ", v, v);
        snprintf(first, sizeof first, "%%q%d", v);
        write_body(w, s->depth + 1, head, 2, first);
    } else {
        text_printf(w->out, "%%g%d: bool[4,4] = less(%%v%d, %%v%d)\n", v, a, b);
        text_printf(w->out, "const %%t%d: bool[] = true\n", v);
        text_printf(w->out, "%%l%d: (f32[4,4], f32[4,4]) = if(%%t%d, %%v%d, %%v%d) ", v, v, a, b);
        write_body(w, s->depth + 1, "", 2, "");
        text_printf(w->out, " ");
        write_body(w, s->depth + 1, "", 2, "");
    }
    text_printf(w->out, "\n%%v%d: f32[4,4] = part(%%l%d, index=0)\n", v, v);
    keep(s, w->names);
    text_printf(w->out, "%%v%d: f32[4,4] = part(%%l%d, index=1)\n", w->names++, v);
    return v;
}

static void write_calls(Writer *w, Scope *s, int n)
{
    for (int i = 0; i < n; i++) {
        const int64_t kind = rng_below(w->rng, 12);
        int v;
        if (kind < 4)
            v = write_binary(w, s);
        else if (kind < 7)
            v = write_unary(w, s);
        else if (kind < 9)
            v = write_move(w, s);
        else if (kind < 10 || s->depth == DEEPEST)
            v = write_wide(w, s);
        else
            v = write_call_with_body(w, s);
        keep(s, v);
    }
}

/* A graph of three inputs, one of them a weight, with a loss. */
static const char *write_graph(Arena *arena, Rng *rng)
{
    Text out, body;
    Writer w = { .out = &body, .rng = rng };
    Scope s = { .n = 0 };
    text_open(&out, arena);
    text_open(&body, arena);
    for (int i = 0; i < 3; i++)
        keep(&s, w.names++);
    write_calls(&w, &s, (int)rng_range(rng, 3, 25));
    text_printf(&out, "graph @f(%%v0: f32[4,4], %%v1: f32[4,4], state %%v2: f32[4,4] = normal(seed=1) trained) -> (");
    for (int i = 0; i < 3; i++)
        text_printf(&out, "%%y%d = %%v%d, ", i, any(&w, &s));
    text_printf(&out, "%%loss) {\n%s%%loss: f32[] = reduce_mean(%%v%d, keepdims=false)\n}\n", text_get(&body),
                s.value[s.n - 1]);
    return text_get(&out);
}

Graph *amp_random(Context *c, uint64_t seed)
{
    Module *m;
    Rng rng = { seed };
    const char *text = write_graph(&c->arena, &rng);
    if (parse_module(&c->ir, &c->arena, str(text), "random", NULL, NULL, &m) != OK || verify_module(m, NULL) != OK) {
        fprintf(stderr, "%s", text);
        return NULL;
    }
    return m->graphs[0];
}
