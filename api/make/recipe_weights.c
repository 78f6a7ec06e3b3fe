/* Weights of classes are files when a step is compiled; its file holds their values, so that reading it opens nothing. */
#include <string.h>

#include "api/make/recipe.h"
#include "api/model/data.h"
#include "base/number_text.h"
#include "ir/store/json_text.h"
#include "passes/recipe/loss_read.h"

#define NOTE "qcc.loss_weights"

/* The weights may be those of a step that this one is made from again. */
static const Tensor *own_copy(qcc_step *s, const Tensor *w)
{
    Tensor *t = tensor_new(&s->arena, type_tensor(&s->ir->types, w->type->dtype, w->type->rank, w->type->dims));
    if (w->bytes)
        memcpy(t->data, w->data, w->bytes);
    return t;
}

static const Tensor *recorded(qcc_step *s, const char *file)
{
    for (size_t i = 0; i < s->facts.n_weights; i++)
        if (strcmp(s->facts.weights[i].name, file) == 0)
            return own_copy(s, s->facts.weights[i].tensor);
    return NULL;
}

static Status read_one(qcc_step *s, LossSpec *loss)
{
    Tensor *t;
    loss->weight = recorded(s, loss->weight_file);
    if (loss->weight)
        return OK;
    if (s->facts.recorded) {
        Message *m =
            message_new(&s->cx->diag, SEVERITY_ERROR, INVALID, (Place){ .where = "--loss", .byte = -1 },
                        "the step does not hold the weights %s, and names no file to be opened", loss->weight_file);
        message_try(m, "compile it again, with --loss %s", loss_text(&s->cx->scratch, loss));
        return message_send(m);
    }
    TRY(data_read(s->ir, &s->data, loss->weight_file, NULL, NULL, &t));
    loss->weight = t;
    return OK;
}

Status recipe_read_weights(qcc_step *s, LossSpec *losses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (losses[i].weight_file)
            TRY(read_one(s, &losses[i]));
    return OK;
}

static void put_weights(Text *t, const char *file, const Tensor *w)
{
    char number[NUMBER_TEXT];
    text_char(t, '[');
    text_json(t, file, strlen(file));
    text_printf(t, ",\"%s\",[", dtype_name(w->type->dtype));
    for (int i = 0; i < w->type->rank; i++)
        text_printf(t, "%s%lld", i ? "," : "", (long long)w->type->dims[i]);
    text_add(t, "],\"");
    for (int64_t i = 0; i < tensor_elements(w); i++) {
        f64_to_text(number, tensor_get_f64(w, i));
        text_printf(t, "%s%s", i ? " " : "", number);
    }
    text_add(t, "\"]");
}

/* [["w.npy","f32",[3],"1 0.5 2"]]; null: no loss has any. */
const char *recipe_weights_text(qcc_step *s)
{
    Text t;
    bool any = false;
    text_open(&t, &s->cx->scratch);
    for (size_t i = 0; i < s->recipe.n_losses; i++) {
        const LossSpec *l = &s->recipe.losses[i];
        if (!l->weight_file || !l->weight)
            continue;
        text_char(&t, any ? ',' : '[');
        any = true;
        put_weights(&t, l->weight_file, l->weight);
    }
    text_char(&t, ']');
    return any ? text_get(&t) : NULL;
}

/* As many numbers as the tensor has elements, with a space between two. */
static bool get_values(Tensor *t, const char *p)
{
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        double x;
        const size_t n = strcspn(p, " ");
        if (!f64_from_text(p, n, &x))
            return false;
        tensor_set_f64(t, i, x);
        p += n + (p[n] == ' ');
    }
    return !*p;
}

/* Values are text, so that there are at least half as many bytes of it as elements. */
static bool get_weights(qcc_step *s, json_t *one, NamedTensor *w)
{
    json_t *dims = json_array_get(one, 2);
    const char *file = json_string_value(json_array_get(one, 0)), *type = json_string_value(json_array_get(one, 1)),
               *values = json_string_value(json_array_get(one, 3));
    int64_t d[MAX_RANK], n = 1;
    DType dtype;
    if (!file || !type || !values || !dtype_from_name(str(type), &dtype) || dtype == STRING ||
        json_array_size(dims) > MAX_RANK)
        return false;
    for (size_t i = 0; i < json_array_size(dims); i++) {
        d[i] = json_integer_value(json_array_get(dims, i));
        if (d[i] < 0 || __builtin_mul_overflow(n, d[i], &n) || (uint64_t)n > strlen(values))
            return false;
    }
    Tensor *t = tensor_new(&s->arena, type_tensor(&s->ir->types, dtype, (int)json_array_size(dims), d));
    *w = (NamedTensor){ arena_string(&s->arena, file), t };
    return get_values(t, values);
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

Status recipe_weights_read(qcc_step *s, const char *text)
{
    Cleanup cleanup;
    json_error_t error;
    json_t *all = text ? json_text(&s->cx->memory, text, strlen(text), 0, &error) : NULL;
    const size_t n = json_array_size(all);
    if (!text)
        return OK;
    bool good = json_is_array(all);
    if (all)
        cleanup_push(&s->cx->memory, &cleanup, drop_json, all);
    NamedTensor *list = NEWS(&s->arena, NamedTensor, n + 1);
    for (size_t i = 0; good && i < n; i++)
        good = get_weights(s, json_array_get(all, i), &list[i]);
    if (all) {
        cleanup_drop(&cleanup);
        json_decref(all);
    }
    s->facts.weights = list;
    s->facts.n_weights = n;
    return good ? OK : fail(&s->cx->diag, NOWHERE, "metadata " NOTE " is no list of weights");
}
