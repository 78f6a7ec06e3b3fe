#include "api/ptq/ptq.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/ptq/chains.h"
#include "passes/recipe/quantizer.h"

/* ---- --ptq ---- */

static Status no_word(Diag *d, Str word)
{
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--ptq: there is no %.*s", (int)word.n, word.p);
    message_try(m, "--ptq equalize+adaround+bias-correct, or some of them");
    message_try(m, "--ptq all");
    return message_send(m);
}

static bool is_word(Str word, const char *text)
{
    return word.n == strlen(text) && memcmp(word.p, text, word.n) == 0;
}

static bool take_word(PtqPlan *plan, Str word)
{
    static const char steps[] = "adaround=";
    const size_t n = sizeof steps - 1;
    const bool all = is_word(word, "all"), numbered = word.n > n && memcmp(word.p, steps, n) == 0;
    plan->equalizes |= all || is_word(word, "equalize");
    plan->corrects |= all || is_word(word, "bias-correct");
    plan->rounds |= all || numbered || is_word(word, "adaround");
    if (!numbered)
        return all || is_word(word, "equalize") || is_word(word, "bias-correct") || is_word(word, "adaround");
    int64_t count = 0;
    for (size_t i = n; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9' || count > 100000)
            return false;
        count = 10 * count + (word.p[i] - '0');
    }
    plan->steps = count;
    return count > 0;
}

static Status read_plan(const Command *c, PtqPlan *plan)
{
    const char *text = option_text(&c->line, OPT_ptq);
    *plan = (PtqPlan){ .on = text != NULL, .steps = ROUNDING_STEPS };
    while (text) {
        const char *end = strchr(text, '+');
        const Str word = { text, end ? (size_t)(end - text) : strlen(text) };
        if (!take_word(plan, word))
            return no_word(&c->cx->diag, word);
        text = end ? end + 1 : NULL;
    }
    return OK;
}

static Status refuse(const qcc_step *step, const char *why, const char *instead)
{
    Message *m = message_new(&step->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--ptq: %s", why);
    message_try(m, "%s", instead);
    return message_send(m);
}

Status ptq_plan(const Command *c, const qcc_step *step, PtqPlan *plan)
{
    const Recipe *r = &step->recipe;
    TRY(read_plan(c, plan));
    if (!plan->on)
        return OK;
    if (!r->quantization.spec)
        return refuse(step, "nothing of this model is deployed as codes", "--quant w8a8");
    if (quantizer_is_stored(&r->quantization.spec->of[OPERAND_W]))
        return refuse(step, "weights of this step are stored as codes, and have no floats to be made fit",
                      "--quant w8");
    if (r->kept_norms)
        return refuse(step, "norms are parameters of their own in this step", "--bn fold");
    return OK;
}

/* ---- layers ---- */

Status ptq_put(Session *run, const char *name, const Tensor *value)
{
    const State *average = session_state_of(run, STATE_ema, name);
    TRY(session_put(run, name, value));
    return average ? session_put(run, average->name, value) : OK;
}

NamedTensor *ptq_states(Session *run, Heap *heap, Arena *arena, size_t *n)
{
    const State *states = session_states(run, n);
    NamedTensor *list = NEWS(arena, NamedTensor, *n + 1);
    for (size_t i = 0; i < *n; i++) {
        const Tensor *value = session_view(run, states[i].name);
        Tensor *own = value ? tensor_alloc(heap, value->type) : NULL;
        if (own && own->bytes)
            memcpy(own->data, value->data, own->bytes);
        list[i] = (NamedTensor){ states[i].name, own };
    }
    return list;
}

Status ptq_put_back(Session *run, const NamedTensor *states, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (states[i].tensor)
            TRY(session_put(run, states[i].name, states[i].tensor));
    return OK;
}

typedef struct Layers {
    const PtqPlan *plan;
    uint64_t seed;
    Arena *arena;
    PtqLayer *list;
    size_t n, cap;
    size_t n_rounded, n_corrected;
} Layers;

/* What a layer gives too much, a number a channel of dimension 1, is taken off its bias. */
static Status correct(Layers *s, Walk *w, PtqLayer *l)
{
    const int operand = chain_bias(l->call);
    Node *bias = operand >= 0 ? chain_state(in(l->call, operand)) : NULL;
    const size_t many = walk_count(w, l->call);
    if (!bias || bias->type->rank != 1)
        return OK;
    const int64_t channels = bias->type->dims[0];
    double *off = NEWS(s->arena, double, channels), count = 0;
    for (size_t i = 0; i < many; i++) {
        const Tensor *f = walk_value(w, l->call, i, true), *q = walk_value(w, l->call, i, false);
        const int64_t inner = f->type->rank < 2 ? 1 : type_elements(f->type) / f->type->dims[0] / f->type->dims[1];
        if (f->type->rank < 2 || f->type->dims[1] != channels)
            return OK;
        for (int64_t k = 0; k < tensor_elements(f); k++)
            off[k / inner % channels] += tensor_get_f64(f, k) - tensor_get_f64(q, k);
        count += (double)tensor_elements(f) / (double)channels;
    }
    const WalkError before = walk_error(w, l->call);
    const Tensor *b = walk_value(w, bias, 0, false);
    Tensor *old = tensor_new(s->arena, bias->type), *moved = tensor_new(s->arena, bias->type);
    for (int64_t i = 0; i < channels; i++) {
        tensor_set_f64(old, i, tensor_get_f64(b, i));
        tensor_set_f64(moved, i, tensor_get_f64(b, i) + off[i] / count);
    }
    TRY(walk_put(w, bias, moved, l->call));
    const WalkError after = walk_error(w, l->call);
    l->corrected = walk_db(&after);
    if (after.noise < before.noise) {
        s->n_corrected++;
        return OK;
    }
    l->corrected = NAN;
    return walk_put(w, bias, old, l->call);
}

static Status met(void *user, Walk *w, Node *n)
{
    Layers *s = user;
    const int weight = chain_weight(n);
    if (weight < 0 || !walk_value(w, n, 0, true) || chain_number(in(n, weight)) == in(n, weight))
        return OK;
    GROW(s->arena, s->list, s->n, s->cap);
    PtqLayer *l = &s->list[s->n++];
    *l = (PtqLayer){ .call = n, .rounded = NAN, .corrected = NAN };
    const WalkError e = walk_error(w, n);
    l->nearest = walk_db(&e);
    if (s->plan->rounds)
        TRY(ptq_round(w, l, s->plan, s->seed));
    s->n_rounded += l->moved > 0;
    return s->plan->corrects ? correct(s, w, l) : OK;
}

/* ---- what is told ---- */

static const char *db(Arena *arena, double x)
{
    return isinf(x) ? "exact" : arena_printf(arena, "%.1f dB", x);
}

static void tell_layer(Arena *arena, Text *told, const PtqLayer *l)
{
    const char *name = l->call->label ? l->call->label : l->call->name ? l->call->name : "?";
    text_printf(told, "  layer          %s: %s", name, db(arena, l->nearest));
    if (l->moved)
        text_printf(told, ", rounded %s (%" PRId64 " weights the other way)", db(arena, l->rounded), l->moved);
    else if (l->why)
        text_printf(told, ", rounded to nearest: %s", l->why);
    if (!isnan(l->corrected))
        text_printf(told, ", bias corrected %s", db(arena, l->corrected));
    text_add(told, "\n");
}

/* All results of the model. */
static WalkError results_error(Walk *w)
{
    WalkError all = { 0 };
    for (int i = 0; i < graph_n_results(w->g); i++) {
        const Node *n = graph_result(w->g, i);
        if (!n || n->type->kind != TYPE_TENSOR || !dtype_is_float(n->type->dtype))
            continue;
        const WalkError e = walk_error(w, n);
        all.signal += e.signal;
        all.noise += e.noise;
        all.n += e.n;
    }
    return all;
}

/* Every weight and bias as it is now, for averages that are kept of it. */
static Status keep_averages(Walk *w)
{
    for (size_t i = 0; i < w->g->n_inputs; i++) {
        const Node *n = w->g->inputs[i];
        if (n->op == OP_state && session_state_of(w->run, STATE_ema, n->name))
            TRY(ptq_put(w->run, n->name, walk_value(w, n, 0, false)));
    }
    return OK;
}

static Status layers(Walk *w, Layers *s, Text *told)
{
    TRY(walk_all(w, met, s));
    TRY(keep_averages(w));
    for (size_t i = 0; i < s->n; i++)
        tell_layer(s->arena, told, &s->list[i]);
    const WalkError e = results_error(w);
    text_printf(told, "  results        %s", db(s->arena, walk_db(&e)));
    text_printf(told, "; %zu layers, %zu rounded otherwise than to nearest, %zu biases corrected\n", s->n, s->n_rounded,
                s->n_corrected);
    return OK;
}

Status ptq_results(qcc_step *step, Session *run, const Batches *batches, bool corrects, double *db)
{
    Walk w;
    WalkError e = { 0 };
    const PtqPlan plan = { .on = true, .corrects = corrects };
    Status status = walk_open(&w, step, run, batches);
    Layers s = { .plan = &plan, .arena = &w.arena };
    if (status == OK)
        status = walk_all(&w, corrects ? met : NULL, &s);
    if (status == OK)
        e = results_error(&w);
    walk_close(&w);
    *db = walk_db(&e);
    return status;
}

Status ptq_layers(qcc_step *step, Session *run, const Batches *batches, const PtqPlan *plan, uint64_t seed, Text *told)
{
    Walk w;
    Status status = walk_open(&w, step, run, batches);
    Layers s = { .plan = plan, .seed = seed, .arena = &w.arena };
    if (status == OK)
        status = layers(&w, &s, told);
    walk_close(&w);
    return status;
}
