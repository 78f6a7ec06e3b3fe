/* Models as PyTorch 2.15 exports them, in the four forms that it has (tests/data/pytorch, with the scripts that made
 * them): what is trained is what the module learns, under the module's names, or is warned of; outputs, first gradients
 * and ten losses of two optimizers are PyTorch's; the exported file computes what the session does.
 * QCC_EXPORT=WORD takes the files whose name has it. */
#include <math.h>

#include <jansson.h>

#include "ir/store/safetensors.h"
#include "qcc/qcc.h"
#include "testing.h"

enum { STEPS = 10, ROOM = 512, MOST_INPUTS = 3 };

static const char *const names[] = { "clip", "cnn",   "detr", "distil", "gcn", "gpt",    "gru",    "llama",
                                     "lstm", "mixer", "mlp",  "mobile", "moe", "normed", "recsys", "shared",
                                     "tied", "sine",  "ssm",  "t5",     "tcn", "unet",   "vae",    "vit" };
static const char *const forms[] = { "dyn", "dynraw", "leg", "legtrain" };
static const char *const optimizers[][2] = { { "sgd", "sgd:lr=0.1" }, { "adamw", "adamw:lr=1e-2,weight_decay=0.01" } };

typedef struct Oracle {
    Context c;
    SafeTensors answers;
    json_t *facts;
    char name[ROOM];
    const char *model, *form;
    qcc_context *cx;
    qcc_model *read;
    qcc_session *session;
    Text warned;
    bool folded; /* BatchNormalization is gone: it trains in another way than the module */
    int bad, compared;
} Oracle;

static void complain(Oracle *o, const char *what, const char *name)
{
    print_error("%s: %s %s\n", o->name, what, name);
    o->bad++;
}

static void hear(void *user, const qcc_message *m)
{
    Oracle *o = user;
    if (m->severity == QCC_ERROR && !strstr(m->text, "there is no value named")) /* which is asked for all the same */
        print_error("%s\n", m->text);
    if (m->severity == QCC_WARNING)
        text_add(&o->warned, m->text);
}

static const Tensor *answer(Oracle *o, const char *format, const char *name)
{
    const SafeTensor *t = safetensors_find(&o->answers, arena_printf(&o->c.arena, "%s%s", format, name));
    if (!t)
        return NULL;
    Tensor *x = tensor_new(&o->c.arena, t->type);
    assert_int_equal(safetensors_read(&o->answers, &o->c.diag, t, x->data), OK);
    return x;
}

static bool bind(Oracle *o, const char *input, const char *prefix, const char *name)
{
    const Tensor *x = answer(o, prefix, name);
    if (!x)
        return false;
    qcc_tensor t = { sizeof(qcc_tensor), (qcc_dtype)x->type->dtype, x->type->rank, { 0 }, x->data, x->bytes };
    for (int i = 0; i < t.rank; i++)
        t.dims[i] = x->type->dims[i];
    if (qcc_bind(o->session, input, &t) != QCC_OK)
        complain(o, "cannot bind", input);
    return true;
}

static const char *fact_text(const Oracle *o, const char *key)
{
    return json_string_value(json_object_get(o->facts, key));
}

/* ---- what is trained ---- */

/* The parameter of the module that has a name, under which it may also be known by another one. */
static const char *first_name(const Oracle *o, const char *name, size_t n)
{
    const json_t *list = json_object_get(o->facts, "parameters");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *p = json_array_get(list, i), *also = json_object_get(p, "also");
        const char *first = json_string_value(json_object_get(p, "name"));
        bool is = strlen(first) == n && memcmp(first, name, n) == 0;
        for (size_t k = 0; k < json_array_size(also); k++) {
            const char *other = json_string_value(json_array_get(also, k));
            is = is || (strlen(other) == n && memcmp(other, name, n) == 0);
        }
        if (is)
            return first;
    }
    return NULL;
}

/* The older exporter leaves three tensors of a recurrent layer without a name of their own. */
static bool is_recurrent(const char *name)
{
    return strstr(name, ".weight_ih") || strstr(name, ".weight_hh") || strstr(name, ".bias_ih") ||
           strstr(name, ".bias_hh") || strcmp(name, "lstm.bias") == 0 || strcmp(name, "gru.bias") == 0;
}

static void note_trained(Oracle *o, Map *trained, const char *path)
{
    while (*path) {
        const size_t n = strcspn(path, "+");
        const char *first = first_name(o, path, n);
        if (first)
            map_put(trained, first, NULL);
        else if (!is_recurrent(path) && !o->folded)
            complain(o, "trains", path);
        path += n + (path[n] == '+');
    }
}

static void compare_choice(Oracle *o, const qcc_step *step)
{
    const json_t *list = json_object_get(o->facts, "parameters");
    Map trained;
    map_open(&trained, &o->c.arena);
    for (size_t i = 0; i < qcc_n_parameters(step); i++) {
        qcc_value_info info = { .size = sizeof(qcc_value_info) };
        assert_int_equal(qcc_parameter(step, i, &info), QCC_OK);
        note_trained(o, &trained, info.name);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        const bool said = o->warned.n && strstr(text_get(&o->warned), name);
        if (!map_find(&trained, name) && !said && !o->folded && !(o->form[0] == 'l' && is_recurrent(name)) &&
            strncmp(name, "teacher.", 8) != 0)
            complain(o, "does not train", name);
    }
}

/* ---- what it computes ---- */

/* Within 1e-5 of the larger of an element and the typical one; `turned`: theirs is ours transposed. */
static void compare(Oracle *o, const char *what, const char *name, const qcc_tensor *got, const Tensor *want,
                    bool turned)
{
    const float *a = got->data, *b = want->data;
    double most = 0, size = 0;
    if (got->bytes != want->bytes) {
        complain(o, "another size:", name);
        return;
    }
    const int64_t n = tensor_elements(want), rows = turned ? got->dims[0] : 0, columns = turned ? got->dims[1] : 0;
    for (int64_t i = 0; i < n; i++)
        size += fabs((double)b[i]);
    size = fmax(n ? size / (double)n : 0, 1e-3);
    for (int64_t i = 0; i < n; i++) {
        const double w = (double)b[turned ? i % columns * rows + i / columns : i];
        most = fmax(most, fabs((double)a[i] - w) / fmax(fabs(w), size));
    }
    o->compared++;
    if (!(most <= 2e-5)) {
        print_error("%s: %s %s differs by %g\n", o->name, what, name, most);
        o->bad++;
    }
}

/* Whether a state holds a tensor of the module transposed; `same`: as it is, or reshaped. */
static bool is_turned(const qcc_tensor *ours, const Tensor *theirs, bool *same)
{
    const float *a = ours->data, *b = theirs->data;
    *same = ours->bytes == theirs->bytes && memcmp(a, b, ours->bytes) == 0;
    if (*same || ours->rank != 2 || theirs->type->rank != 2 || ours->bytes != theirs->bytes)
        return false;
    for (int64_t i = 0; i < tensor_elements(theirs); i++)
        if (a[i] != b[i % ours->dims[1] * ours->dims[0] + i / ours->dims[1]])
            return false;
    return true;
}

/* What one name of a tensor is given, every other name has, and so does its gradient. */
static void compare_aliases(Oracle *o, const char *name, const json_t *also, qcc_tensor *state)
{
    for (size_t i = 0; o->form[0] == 'd' && i < json_array_size(also); i++) {
        qcc_tensor other = { .size = sizeof(qcc_tensor) }, given = *state;
        float *copy = arena_alloc(&o->c.arena, state->bytes);
        const char *alias = json_string_value(json_array_get(also, i));
        memcpy(copy, state->data, state->bytes);
        given.data = copy;
        const float was = copy[0];
        copy[0] = was + 1;
        if (qcc_put(o->session, alias, &given) != QCC_OK || qcc_view(o->session, name, state) != QCC_OK ||
            memcmp(state->data, copy, state->bytes) != 0)
            complain(o, "is not given as", alias);
        copy[0] = was;
        assert_int_equal(qcc_put(o->session, name, &given), QCC_OK);
        if (qcc_view(o->session, alias, &other) != QCC_OK || memcmp(other.data, copy, other.bytes) != 0)
            complain(o, "is not seen as", alias);
        if (qcc_view(o->session, arena_printf(&o->c.arena, "grad.%s", alias), &other) != QCC_OK)
            complain(o, "has no gradient as", alias);
        assert_int_equal(qcc_view(o->session, name, state), QCC_OK);
    }
}

static void compare_gradients(Oracle *o)
{
    const json_t *list = json_object_get(o->facts, "parameters");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        const Tensor *value = answer(o, "param.", name), *gradient = answer(o, "grad.", name);
        qcc_tensor state = { .size = sizeof(qcc_tensor) }, got = { .size = sizeof(qcc_tensor) };
        bool same;
        if (!gradient || qcc_view(o->session, name, &state) != QCC_OK)
            continue; /* what is tied has one name, and what is missing was warned of */
        compare_aliases(o, name, json_object_get(json_array_get(list, i), "also"), &state);
        const bool turned = is_turned(&state, value, &same);
        if (!turned && !same)
            continue; /* a recurrent layer: another order */
        if (qcc_view(o->session, arena_printf(&o->c.arena, "grad.%s", name), &got) == QCC_OK)
            compare(o, "gradient", name, &got, gradient, turned);
        else
            complain(o, "no gradient of", name);
    }
}

/* Ten losses, no further from PyTorch's than a change of its input by 1e-7 moves those. */
static void compare_losses(Oracle *o, const char *optimizer, const float *losses)
{
    const Tensor *want = answer(o, "loss.", optimizer),
                 *moved = answer(o, arena_printf(&o->c.arena, "loss.%s", optimizer), ".moved");
    const float *w = want->data, *m = moved->data;
    double noise = 0, ulp = 0;
    for (int i = 0; i < STEPS; i++) {
        ulp = fmax(ulp, fabs((double)w[i]) * 1.2e-7);
        noise = fmax(noise, fabs((double)m[i] - (double)w[i]));
        if (!(fabs((double)losses[i] - (double)w[i]) <= 6 * noise + 6 * ulp)) {
            print_error("%s: %s, loss %d is %.9g and not %.9g (noise %.2g)\n", o->name, optimizer, i, (double)losses[i],
                        (double)w[i], noise);
            o->bad++;
            return;
        }
    }
}

/* ---- the exported file ---- */

static qcc_status take(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return QCC_OK;
}

static bool run_model(Oracle *o, qcc_model *model, qcc_tensor *y)
{
    qcc_tensor in[MOST_INPUTS];
    const size_t n = qcc_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const Tensor *x = answer(o, "in.", arena_printf(&o->c.arena, "%zu", i));
        in[i] = (qcc_tensor){ sizeof(qcc_tensor), (qcc_dtype)x->type->dtype, x->type->rank, { 0 }, x->data, x->bytes };
        for (int k = 0; k < in[i].rank; k++)
            in[i].dims[k] = x->type->dims[k];
    }
    return qcc_run_model(model, in, n, y, 1) == QCC_OK;
}

/* What is deployed is what was trained: the file, read again, gives the evaluation's output to the bit. */
static void compare_export(Oracle *o)
{
    Text bytes;
    qcc_model *deployed;
    qcc_tensor y = { .size = sizeof(qcc_tensor) }, seen = { .size = sizeof(qcc_tensor) };
    const qcc_sink sink = { .write = take, .user = &bytes };
    text_open(&bytes, &o->c.arena);
    assert_int_equal(qcc_export_session(o->session, NULL, &sink), QCC_OK);
    const qcc_source source = qcc_bytes(bytes.p, bytes.n);
    assert_int_equal(qcc_read(o->cx, &source, NULL, &deployed), QCC_OK);
    assert_int_equal(qcc_run(o->session, QCC_EVAL, NULL), QCC_OK);
    assert_int_equal(qcc_view(o->session, "y", &seen), QCC_OK);
    if (!run_model(o, deployed, &y) || y.bytes != seen.bytes || memcmp(y.data, seen.data, y.bytes) != 0)
        complain(o, "the exported file gives", "something else");
    qcc_model_free(deployed);
}

/* ---- one file ---- */

/* What a file does not say: gradients that the module stopped, and a small table that is a head as well. */
static const struct {
    const char *model, *form, *options;
} told[] = {
    { "distil", "", " --freeze ^teacher" },
    { "gpt", "leg", " --tie wte.weight=head.weight" },
    { "tied", "leg", " --tie shared.weight=lm_head.weight" },
};

static void train(Oracle *o, const char *loss, size_t optimizer)
{
    char options[ROOM];
    float losses[STEPS];
    qcc_step *step;
    const Tensor *x = answer(o, "in.", "0");
    snprintf(options, sizeof options, "--loss %s --optimizer %s --dropout off%s", loss, optimizers[optimizer][1],
             strcmp(o->model, "gcn") == 0 ? "" : arena_printf(&o->c.arena, " --batch %d", (int)x->type->dims[0]));
    for (size_t i = 0; i < COUNT(told); i++)
        if (strcmp(told[i].model, o->model) == 0 && (!*told[i].form || strcmp(told[i].form, o->form) == 0))
            snprintf(options + strlen(options), sizeof options - strlen(options), "%s", told[i].options);
    o->warned.n = 0;
    if (qcc_compile(o->read, options, &step) != QCC_OK) {
        complain(o, "does not compile", options);
        return;
    }
    o->folded = o->warned.n && strstr(text_get(&o->warned), "folded BatchNormalization");
    if (optimizer == 0)
        compare_choice(o, step);
    assert_int_equal(qcc_start(step, NULL, &o->session), QCC_OK);
    for (int i = 0; i < MOST_INPUTS; i++)
        (void)bind(o, arena_printf(&o->c.arena, "x%d", i), "in.", arena_printf(&o->c.arena, "%d", i));
    (void)bind(o, "target", "target", "");
    const bool missing = o->folded || (o->warned.n && strstr(text_get(&o->warned), "not in the file"));
    for (int i = 0; i < STEPS; i++) {
        qcc_result result = { .size = sizeof result };
        if (i == 0 && optimizer == 0 && !missing) {
            assert_int_equal(qcc_run(o->session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
            compare_gradients(o);
        }
        assert_int_equal(qcc_run(o->session, QCC_STEP, &result), QCC_OK);
        losses[i] = (float)result.loss;
    }
    if (!missing)
        compare_losses(o, optimizers[optimizer][0], losses);
    compare_export(o);
    qcc_end(o->session);
    qcc_step_free(step);
}

static Status check_file(void *arg)
{
    Oracle *o = arg;
    qcc_tensor y = { .size = sizeof(qcc_tensor) };
    const qcc_context_options options = { .size = sizeof options, .report = hear, .user = o, .threads = 1 };
    const char *path = arena_printf(&o->c.arena, QCC_SOURCE_DIR "/tests/data/pytorch/%s", o->model);
    const char *kind, *loss;
    json_error_t error;
    text_open(&o->warned, &o->c.arena);
    o->facts = json_load_file(arena_printf(&o->c.arena, "%s.json", path), 0, &error);
    assert_non_null(o->facts);
    kind = fact_text(o, "loss");
    loss = strcmp(kind, "class") == 0  ? "cross_entropy:y,axis=1"
           : strcmp(kind, "next") == 0 ? "cross_entropy:y,axis=2"
           : strcmp(kind, "mse") == 0  ? "mse:y"
                                       : "output:y";
    TRY(safetensors_open(&o->answers, &o->c.ir.types, &o->c.arena, &o->c.diag, &o->c.ir.limits,
                         arena_printf(&o->c.arena, "%s.safetensors", path)));
    assert_int_equal(qcc_open(&options, &o->cx), QCC_OK);
    const qcc_source source = qcc_file(arena_printf(&o->c.arena, "%s-%s.onnx", path, o->form));
    assert_int_equal(qcc_read(o->cx, &source, NULL, &o->read), QCC_OK);
    if (strcmp(o->form, "dyn") == 0 || strcmp(o->form, "leg") == 0) {
        assert_true(run_model(o, o->read, &y));
        compare(o, "output", "y", &y, answer(o, "out", ""), false);
    }
    for (size_t k = 0; k < COUNT(optimizers); k++)
        train(o, loss, k);
    qcc_close(o->cx);
    json_decref(o->facts);
    return o->bad ? MISMATCH : OK;
}

static void pytorch_agrees(void **state)
{
    (void)state;
    const char *word = getenv("QCC_EXPORT");
    int bad = 0, files = 0, compared = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(forms); k++) {
            Oracle o = { .model = names[i], .form = forms[k] };
            snprintf(o.name, sizeof o.name, "%s-%s", names[i], forms[k]);
            if (word && !strstr(o.name, word))
                continue;
            context_open(&o.c);
            bad += guarded(&o.c.memory, check_file, &o) != OK;
            context_close(&o.c);
            compared += o.compared;
            files++;
        }
    print_message("%d files, %d tensors compared, %d files differ\n", files, compared, bad);
    assert_int_equal(bad, 0);
    assert_true(files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pytorch_agrees) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
