/* Stored models, some steps on a device beside the engine `reference`, through the library alone.
 *
 *     steps [--device NAME] [--steps N] [--seconds S] [--only RECIPE] [--same] [--shake] [--matmul WHO] MODEL...
 *
 * Each model is trained by each recipe three times side by side: by the reference, and twice on the device, whose two runs
 * have to be one in every bit of every state.  Losses, outputs, gradients and parameters of the reference and the device are
 * the same bits, or, but with --same, no further apart than the bound of the recipe: of the largest element of their kind,
 * since a value may be noise where it ought to be zero.  A line for each, the worst of them last.  With --shake the first run
 * on the device is fed something else: this program must find that.  With --matmul somebody else makes products there, in all
 * recipes but those that are exact by their name.
 *
 * Exit: 0, 1 where something differs, 5 where the device cannot be used, 2. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <qcc/qcc.h>

enum { REFERENCE, FIRST, AGAIN, SIDES, MOST_TEXT = 400, CLASSES = 3 };

typedef struct Recipe {
    const char *name, *options;
    double bound; /* of losses, outputs, gradients, parameters */
    int exact;    /* products of bf16 have the bits of the reference */
    bool codes;   /* quantizers want to see data first */
} Recipe;

/* SGD: an Adam divides noise by itself, so that its steps are bounded by nothing but their rate. */
static const Recipe recipes[] = {
    { "f32", "--optimizer sgd:momentum=0.9 --lr 1e-2 --clip-norm 1", 1e-4, 1, false },
    { "bf16", "--optimizer sgd:momentum=0.9 --lr 1e-2 --amp bf16", 4e-2, 0, false },
    { "bf16-exact", "--optimizer sgd:momentum=0.9 --lr 1e-2 --amp bf16", 4e-2, 1, false },
    { "fp16", "--optimizer sgd --lr 1e-2 --amp fp16 --loss-scale dynamic", 1e-2, 1, false },
    { "w8a8", "--optimizer sgd --lr 1e-2 --quant w8a8", 2e-2, 1, true },
};

static struct {
    const char *device, *only, *matmul;
    int steps;
    double seconds;
    bool same, shake;
} asked = { "cuda", NULL, NULL, 3, 1e9, false, false };

/* ---- what is said ---- */

typedef struct Heard {
    char text[MOST_TEXT]; /* the first error */
} Heard;

static void hear(void *user, const qcc_message *m)
{
    Heard *h = user;
    if (m->severity == QCC_ERROR && !*h->text)
        snprintf(h->text, sizeof h->text, "%.*s", (int)strcspn(m->text, "\n"), m->text);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- numbers ---- */

static double element(const qcc_tensor *t, size_t i)
{
    union {
        uint32_t bits;
        float value;
    } wide;
    uint16_t half;
    switch (t->dtype) {
    case QCC_F64:
        return ((const double *)t->data)[i];
    case QCC_F32:
        return ((const float *)t->data)[i];
    case QCC_BF16:
        wide.bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
        return wide.value;
    case QCC_F16:
        half = ((const uint16_t *)t->data)[i];
        if ((half >> 10 & 31) == 31)
            return half & 1023 ? NAN : half >> 15 ? -INFINITY : INFINITY;
        return (half >> 15 ? -1 : 1) *
               (half >> 10 & 31 ? ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25) : ldexp(half & 1023, -24));
    default:
        return NAN; /* no float: only its bits count */
    }
}

static size_t width(qcc_dtype d)
{
    return d == QCC_F64 ? 8 : d == QCC_F32 ? 4 : d == QCC_F16 || d == QCC_BF16 ? 2 : 0;
}

/* How far apart values of a kind are. */
typedef struct Apart {
    double most, largest; /* difference; element of the reference */
    size_t values, same;
    char worst[MOST_TEXT];
} Apart;

static void compare(Apart *a, const char *name, const qcc_tensor *x, const qcc_tensor *y)
{
    const size_t each = width(x->dtype);
    a->values++;
    if (x->dtype != y->dtype || x->bytes != y->bytes) {
        a->most = INFINITY;
        snprintf(a->worst, sizeof a->worst, "%s: of another size", name);
        return;
    }
    const bool same = x->bytes == 0 || memcmp(x->data, y->data, x->bytes) == 0;
    a->same += same;
    if (!each && !same)
        a->most = INFINITY;
    for (size_t i = 0; each && i < x->bytes / each; i++) {
        const double p = element(x, i), q = element(y, i);
        const double d = p == q || (isnan(p) && isnan(q)) ? 0 : fabs(p - q);
        a->largest = isfinite(p) && fabs(p) > a->largest ? fabs(p) : a->largest;
        if (!(d <= a->most)) {
            a->most = isnan(d) ? INFINITY : d;
            snprintf(a->worst, sizeof a->worst, "%.100s[%zu]: %.9g, not %.9g", name, i, q, p);
        }
    }
}

/* ---- a model ---- */

typedef struct Trial {
    const char *path;
    const Recipe *recipe;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session[SIDES];
    Heard heard;
    qcc_status status;
    bool started; /* whatever fails from here on is a defect */
    double loss[SIDES];
    Apart outputs, gradients, parameters;
    bool repeats;
} Trial;

typedef struct Saved {
    unsigned char *p;
    size_t n, cap;
} Saved;

static qcc_status save(void *user, const void *bytes, size_t n)
{
    Saved *s = user;
    if (s->n + n > s->cap) {
        s->cap = 2 * (s->n + n);
        unsigned char *p = realloc(s->p, s->cap);
        if (!p)
            return QCC_NO_MEMORY;
        s->p = p;
    }
    memcpy(s->p + s->n, bytes, n);
    s->n += n;
    return QCC_OK;
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Values of an input, drawn from its name; whole numbers are classes. */
static bool fill(qcc_tensor *t, const char *name)
{
    static const uint16_t halves[] = { 0x3c00, 0xb800, 0x3400, 0xbc00, 0x3a00 }; /* 1 -0.5 0.25 -1 0.75 */
    size_t n = 1;
    uint64_t state = 7;
    for (const char *p = name; *p; p++)
        state = state * 31 + (unsigned char)*p;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0)
            return false;
        n *= (size_t)t->dims[i];
    }
    t->bytes = 8 * n + 8;
    t->data = calloc(1, t->bytes);
    for (size_t i = 0; i < n && t->data; i++) {
        const int64_t whole = (int64_t)((i * 7 + i / 5) % CLASSES);
        const double x = (double)draw(&state) / 1073741824 - 1;
        const float f = (float)x;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        switch (t->dtype) {
        case QCC_F64:
            ((double *)t->data)[i] = x;
            t->bytes = 8 * n;
            break;
        case QCC_F32:
            ((float *)t->data)[i] = f;
            t->bytes = 4 * n;
            break;
        case QCC_BF16:
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
            t->bytes = 2 * n;
            break;
        case QCC_F16:
            ((uint16_t *)t->data)[i] = halves[draw(&state) % 5];
            t->bytes = 2 * n;
            break;
        case QCC_I64:
            ((int64_t *)t->data)[i] = whole;
            t->bytes = 8 * n;
            break;
        case QCC_I32:
            ((int32_t *)t->data)[i] = (int32_t)whole;
            t->bytes = 4 * n;
            break;
        case QCC_BOOL:
            ((uint8_t *)t->data)[i] = whole & 1;
            t->bytes = n;
            break;
        case QCC_I8:
        case QCC_U8:
            ((uint8_t *)t->data)[i] = (uint8_t)whole;
            t->bytes = n;
            break;
        default:
            return false;
        }
    }
    return t->data != NULL;
}

#define OR_LEAVE(call)                                                                                                 \
    do {                                                                                                               \
        if ((t->status = (call)) != QCC_OK)                                                                            \
            return false;                                                                                              \
    } while (0)

static bool begin(Trial *t)
{
    const int exact = asked.matmul ? strstr(t->recipe->name, "exact") != NULL : t->recipe->exact;
    const qcc_context_options options = {
        .size = sizeof options, .report = hear, .user = &t->heard, .exact = exact, .matmul = asked.matmul
    };
    const qcc_source source = qcc_file(t->path);
    OR_LEAVE(qcc_open(&options, &t->cx));
    OR_LEAVE(qcc_read(t->cx, &source, NULL, &t->model));
    OR_LEAVE(qcc_compile(t->model, t->recipe->options, &t->step));
    for (int i = 0; i < SIDES; i++) {
        const qcc_session_options o = { sizeof o, i == REFERENCE ? "reference" : asked.device };
        OR_LEAVE(qcc_start(t->step, &o, &t->session[i]));
    }
    t->started = true;
    return true;
}

static bool bind(Trial *t, qcc_tensor *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        qcc_value_info info = { .size = sizeof info };
        OR_LEAVE(qcc_step_input(t->step, i, &info));
        data[i] = info.shape;
        data[i].size = sizeof data[i];
        OR_LEAVE(fill(&data[i], info.name) ? QCC_OK : QCC_UNSUPPORTED);
        if (i == 0) {
            data[n] = info.shape;
            data[n].size = sizeof data[n];
            OR_LEAVE(fill(&data[n], "shaken") ? QCC_OK : QCC_UNSUPPORTED);
        }
        for (int k = 0; k < SIDES; k++)
            OR_LEAVE(qcc_bind(t->session[k], info.name, &data[asked.shake && k == FIRST && i == 0 ? n : i]));
    }
    return true;
}

static void view(Trial *t, Apart *a, const char *name)
{
    qcc_tensor x = { .size = sizeof x }, y = { .size = sizeof y };
    if (qcc_view(t->session[REFERENCE], name, &x) != QCC_OK)
        return; /* a parameter that is not trained has no gradient */
    if (qcc_view(t->session[FIRST], name, &y) != QCC_OK)
        y.bytes = x.bytes + 1;
    compare(a, name, &x, &y);
}

static bool look(Trial *t)
{
    char name[MOST_TEXT];
    qcc_value_info info = { .size = sizeof info };
    for (size_t i = 0; i < qcc_n_outputs(t->model); i++) {
        OR_LEAVE(qcc_output(t->model, i, &info));
        view(t, &t->outputs, info.name);
    }
    for (size_t i = 0; i < qcc_n_parameters(t->step); i++) {
        OR_LEAVE(qcc_parameter(t->step, i, &info));
        snprintf(name, sizeof name, "grad.%s", info.name);
        view(t, &t->parameters, info.name);
        view(t, &t->gradients, name);
    }
    t->heard = (Heard){ "" };
    return true;
}

static bool repeat(Trial *t)
{
    Saved saved[SIDES] = { { NULL, 0, 0 } };
    for (int i = FIRST; i < SIDES && t->status == QCC_OK; i++) {
        const qcc_sink sink = { .write = save, .user = &saved[i] };
        t->status = qcc_save(t->session[i], &sink);
    }
    t->repeats = saved[FIRST].n == saved[AGAIN].n && saved[FIRST].n &&
                 memcmp(saved[FIRST].p, saved[AGAIN].p, saved[FIRST].n) == 0;
    free(saved[FIRST].p);
    free(saved[AGAIN].p);
    return t->status == QCC_OK;
}

static bool steps(Trial *t)
{
    for (int k = 0; k < SIDES && t->recipe->codes; k++)
        OR_LEAVE(qcc_run(t->session[k], QCC_OBSERVE, NULL));
    for (int i = 0; i < asked.steps; i++)
        for (int k = 0; k < SIDES; k++) {
            qcc_result r = { .size = sizeof r };
            OR_LEAVE(qcc_run(t->session[k], QCC_STEP, &r));
            t->loss[k] = r.loss;
        }
    return look(t) && repeat(t);
}

/* ---- verdicts ---- */

static double relative(const Apart *a)
{
    return a->most == 0 ? 0 : a->largest > 0 ? a->most / a->largest : INFINITY;
}

typedef struct Totals {
    int tried, same, near, apart, cannot, left;
} Totals;

static void judge(const Trial *t, Totals *all)
{
    const Apart *kinds[] = { &t->outputs, &t->gradients, &t->parameters };
    const char *worst = "";
    double most = 0;
    size_t values = 0, same = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        values += kinds[i]->values;
        same += kinds[i]->same;
        if (relative(kinds[i]) > most) {
            most = relative(kinds[i]);
            worst = kinds[i]->worst;
        }
    }
    const double a = t->loss[REFERENCE], b = t->loss[FIRST];
    const bool losses = (isnan(a) && isnan(b)) || fabs(a - b) <= t->recipe->bound * (fabs(a) + 1);
    const bool bits = same == values && (a == b || (isnan(a) && isnan(b)));
    const bool good = t->repeats && values && losses && (bits || (!asked.same && most <= t->recipe->bound));
    all->same += good && bits;
    all->near += good && !bits;
    all->apart += !good;
    printf("%-5s %-10s %s: %zu of %zu values same, furthest %.3g, loss %.9g and %.9g%s%s%s\n",
           !good  ? "APART"
           : bits ? "same"
                  : "near",
           t->recipe->name, t->path, same, values, most, a, b, t->repeats ? "" : "; TWO RUNS DIFFER",
           *worst ? "; " : "", worst);
}

/* Whether the device is there. */
static bool run(const char *path, const Recipe *recipe, Totals *all)
{
    Trial t = { .path = path, .recipe = recipe };
    const bool begun = begin(&t);
    const size_t n = begun ? qcc_step_n_inputs(t.step) : 0;
    qcc_tensor *data = calloc(n + 1, sizeof *data);
    const bool ran = data && begun && bind(&t, data, n) && steps(&t);
    all->tried++;
    if (ran) {
        judge(&t, all);
    } else {
        all->cannot += !t.started;
        all->apart += t.started;
        printf("%-5s %-10s %s: %s: %s\n", t.started ? "FAILS" : "none", recipe->name, path, qcc_status_name(t.status),
               t.heard.text);
    }
    fflush(stdout);
    qcc_close(t.cx);
    for (size_t i = 0; data && i <= n; i++)
        free(data[i].data);
    free(data);
    return t.status != QCC_DEVICE;
}

static int read_options(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--same") == 0)
            asked.same = true;
        else if (strcmp(argv[i], "--shake") == 0)
            asked.shake = true;
        else if (i + 1 < argc && strcmp(argv[i], "--device") == 0)
            asked.device = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--only") == 0)
            asked.only = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--matmul") == 0)
            asked.matmul = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
            asked.steps = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            asked.seconds = atof(argv[++i]);
        else
            return argc;
    }
    return i;
}

int main(int argc, char **argv)
{
    const size_t n_recipes = sizeof recipes / sizeof *recipes;
    const double began = now();
    Totals all = { 0 };
    const int first = read_options(argc, argv);
    if (first >= argc)
        return fprintf(stderr,
                       "usage: %s [--device NAME] [--steps N] [--seconds S] [--only RECIPE] [--same] [--shake] "
                       "[--matmul WHO] MODEL...\n",
                       argv[0]),
               2;
    for (size_t r = 0; r < n_recipes; r++)
        for (int i = first; i < argc; i++) {
            if (asked.only && strcmp(asked.only, recipes[r].name) != 0)
                continue;
            if (now() - began > asked.seconds)
                all.left++;
            else if (!run(argv[i], &recipes[r], &all))
                return 5;
        }
    printf("%d tried on %s: %d same, %d near, %d APART, %d that cannot be run, %d left for want of time\n", all.tried,
           asked.device, all.same, all.near, all.apart, all.cannot, all.left);
    return all.apart || !(all.same + all.near);
}
