#include "api/train/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/session/weights.h"
#include "passes/ptq/weigh.h"

enum { BATCHES = 32 };

/* ---- batches ---- */

static const Tensor *value_of(const Trainer *t, const Node *n)
{
    if (n->op == OP_state && strncmp(n->name, WEIGH_PREFIX, strlen(WEIGH_PREFIX)) == 0)
        return payload_cached(((const StateAttr *)n->attr)->value, t->d);
    if (n->op == OP_state)
        return session_view(t->run, n->name);
    for (size_t i = 0; i < t->data.n_inputs; i++)
        if (strcmp(t->data.inputs[i].name, n->name) == 0)
            return t->batch.values[i];
    return NULL;
}

static Sensitive *named(Sensitivity *s, const char *value)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].value, value) == 0)
            return &s->list[i];
    s->list[s->n] = (Sensitive){ .value = value };
    return &s->list[s->n++];
}

/* Means of the batches so far. */
static void add_batch(Sensitivity *s, const Graph *g, Tensor *const *results)
{
    const double share = 1.0 / (double)(s->batches + 1);
    for (int i = 0; i < graph_n_results(g); i++) {
        const RoleMark mark = graph_result_mark(g, i);
        if (!results[i] || mark.role != RESULT_gradient || strncmp(mark.of, WEIGH_PREFIX, strlen(WEIGH_PREFIX)) != 0)
            continue;
        Sensitive *one = named(s, mark.of + strlen(WEIGH_PREFIX));
        one->change += (fabs(tensor_get_f64(results[i], 0)) - one->change) * share;
    }
    s->batches++;
}

static Status look(Trainer *t, Graph *g, Sensitivity *s)
{
    Heap heap;
    Arena *arena = &t->cx->scratch;
    const EvalOptions how = command_eval(t->c);
    const Tensor **values = NEWS(arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(arena, Tensor *, graph_n_results(g) + 1);
    for (size_t i = 0; i < g->n_inputs; i++)
        values[i] = value_of(t, g->inputs[i]);
    heap_open(&heap, &t->cx->memory);
    const Status status = evaluate(g, &how, &heap, values, results);
    if (status == OK)
        add_batch(s, g, results);
    heap_close(&heap);
    return status;
}

static Status look_at_all(Trainer *t, Graph *g, Sensitivity *s)
{
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = t->cx->options.threads };
    TRY(train_data_open_both(t->c, t->step, g, &t->data));
    TRY(feed_open(&t->feed, t->data.set, t->d, &all));
    t->batches = feed_batches(t->feed);
    TRY(train_calibrate(t));
    for (int64_t i = 0; i < BATCHES && (t->batches < 0 || i < t->batches); i++) {
        TRY(feed_batch(t->feed, t->d, 0, i, &t->batch));
        if (!t->batch.rows)
            break;
        TRY(look(t, g, s));
        s->rows = t->batch.rows;
    }
    s->observed = t->calibrated;
    return OK;
}

/* ---- all of them ---- */

static int worse(const void *a, const void *b)
{
    const Sensitive *x = a, *y = b;
    if (x->change != y->change)
        return x->change < y->change ? 1 : -1;
    return strcmp(x->value, y->value);
}

static void find_decisions(const qcc_step *step, Sensitivity *s)
{
    const QuantLedger *l = step->recipe.quantization.ledger;
    for (size_t i = 0; l && i < l->n; i++)
        for (size_t k = 0; k < s->n; k++)
            if (l->list[i].by && l->list[i].value && strcmp(l->list[i].value, s->list[k].value) == 0)
                s->list[k].of = &l->list[i];
}

/* What is moved from another value has its codes, and changes nothing. */
static void drop_shared(Sensitivity *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!s->list[i].of || !s->list[i].of->shared)
            s->list[n++] = s->list[i];
    s->n = n;
}

static Status refuse(Command *c, const char *why, const char *instead)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--sensitivity: %s", why);
    message_try(m, "%s", instead);
    return message_send(m);
}

Status train_sensitivity(Command *c, qcc_step *step, Sensitivity *out)
{
    const char *words, *path = option_text(&c->line, OPT_checkpoint);
    Trainer t = { .c = c, .cx = c->cx, .d = &c->cx->diag, .step = step };
    Graph *g = step ? module_graph(step->module, WEIGH_GRAPH) : NULL;
    *out = (Sensitivity){ .n = 0 };
    if (!g)
        return refuse(c, "nothing is quantized", "--quant w8a8");
    if (!option_given(&c->line, OPT_data))
        return refuse(c, "over which data?", "--data FILE --target FILE");
    out->list = NEWS(&c->cx->scratch, Sensitive, g->n_inputs + 1);
    TRY(session_start(step, (uint64_t)option_count(&c->line, OPT_seed, 0), &c->cx->stop, &t.session));
    t.run = t.session->run;
    if (path)
        TRY(session_take_final(t.session, path, weights_said(&c->line), &words));
    const Status status = look_at_all(&t, g, out);
    feed_close(t.feed);
    dataset_close(t.data.set);
    find_decisions(step, out);
    drop_shared(out);
    qsort(out->list, out->n, sizeof *out->list, worse);
    return status;
}
