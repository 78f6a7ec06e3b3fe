#include "api/bench/bench_runs.h"

#include <string.h>

#include "api/fits/fits.h"
#include "api/hall/words.h"
#include "api/model/evaluate.h"
#include "api/train/train.h"
#include "base/clock.h"

/* ---- what is fed ---- */

static void fill_value(Bench *b, const DataFill *fill, Tensor *t)
{
    const Type *type = t->type;
    const int64_t n = tensor_elements(t), last = type->rank ? type->dims[type->rank - 1] : 1;
    for (int64_t i = 0; i < n; i++) {
        double x = 0; /* an index, a class, a mask: 0 is always one */
        if (fill)
            x = fill->range ? (double)(i % last) : fill->whole ? (double)fill->integer : fill->value;
        else if (dtype_is_float(type->dtype))
            x = (double)(rng_u64(&b->rng) >> 40) / (double)(1 << 23) - 1;
        tensor_set_f64(t, i, x);
    }
}

static const DataFill *fill_of(const DataFill *fills, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fills[i].name, name) == 0)
            return &fills[i];
    return NULL;
}

static Status make_value(Bench *b, const char *name, const Type *type, Tensor **value)
{
    DataFill *fills;
    size_t n;
    Diag *d = &b->c->cx->diag;
    if (type->kind != TYPE_TENSOR || !tensor_holds(type) || !type_known(type)) {
        Message *msg =
            message_new(d, SEVERITY_ERROR, USAGE, NOWHERE, "input %s is %s: there is nothing to measure with", name,
                        type_text(&b->c->cx->scratch, type));
        message_try(msg, "--batch N");
        message_try(msg, "--dim NAME=N");
        return message_send(msg);
    }
    TRY(train_read_fills(b->c, &fills, &n));
    const DataFill *fill = fill_of(fills, n, name);
    *value = tensor_alloc(b->heap, type);
    fill_value(b, fill, *value);
    text_label(&b->data, b->data.n ? "" : "data");
    text_printf(&b->data, "%s %s, %s\n", name, type_text(&b->c->cx->scratch, type),
                fill                          ? "as --fill says"
                : dtype_is_float(type->dtype) ? "drawn from -1 to 1   --seed --fill"
                                              : "all 0   --fill");
    return OK;
}

static Status check_fills(Bench *b, const Value *inputs, size_t n_inputs)
{
    DataFill *fills;
    size_t n;
    TRY(train_read_fills(b->c, &fills, &n));
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < n_inputs; k++)
            found = found || strcmp(inputs[k].name, fills[i].name) == 0;
        if (!found)
            return fail_as(&b->c->cx->diag, USAGE, ON_COMMAND_LINE, "--fill: there is no input %s", fills[i].name);
    }
    return OK;
}

/* ---- the two things that run ---- */

static Status open_step(Bench *b)
{
    qcc_step *s;
    TRY(step_compile(b->m, &b->c->line, &s));
    TRY(step_fits(b->c, s, NULL));
    b->step = s;
    TRY(check_fills(b, s->inputs, s->n_inputs));
    TRY(session_start(s, (uint64_t)option_count(&b->c->line, OPT_seed, 0), &b->c->cx->stop, &b->session));
    b->heap = &s->data;
    for (size_t i = 0; i < s->n_inputs; i++) {
        Tensor *t;
        TRY(make_value(b, s->inputs[i].name, s->inputs[i].type, &t));
        TRY(session_bind(b->session->run, s->inputs[i].name, t));
    }
    const State *unobserved; /* of a quantized step: what is drawn tells the ranges */
    TRY(session_unobserved(b->session->run, &unobserved));
    return unobserved ? session_observe(b->session->run) : OK;
}

static Status open_model(Bench *b)
{
    qcc_model *m = b->m;
    TRY(check_fills(b, m->inputs, m->n_inputs));
    b->heap = &m->data;
    b->inputs = NEWS(&m->arena, const Tensor *, m->n_inputs + 1);
    for (size_t i = 0; i < m->n_inputs; i++) {
        Tensor *t = NULL;
        if (m->graph->inputs[i]->op == OP_state)
            TRY(model_initial(m, i, &b->inputs[i]));
        else
            TRY(make_value(b, m->inputs[i].name, m->inputs[i].type, &t));
        if (t)
            b->inputs[i] = t;
    }
    return OK;
}

static Status run_once(Bench *b, unsigned what)
{
    RunResult result;
    if (!b->session) {
        const EvalOptions how = command_eval(b->c);
        return model_evaluate(b->m, &how, b->inputs);
    }
    TRY(session_run(b->session->run, what, &result));
    b->skipped += !result.applied;
    return OK;
}

Status bench_run(Bench *b, unsigned what, double *took)
{
    const ArenaMark mark = arena_mark(&b->c->cx->scratch);
    b->c->cx->watch = &b->times.watch; /* of a model, whose engine opens with its first run */
    const double began = clock_seconds();
    const Status status = run_once(b, what);
    *took = clock_seconds() - began;
    b->c->cx->watch = NULL;
    arena_reset(&b->c->cx->scratch, mark);
    return b->c->cx->stop ? INTERRUPTED : status;
}

Status bench_open(Bench *b, Command *c, qcc_model *m)
{
    *b = (Bench){ .c = c, .m = m, .rng = { (uint64_t)option_count(&c->line, OPT_seed, 0) } };
    launch_times_open(&b->times, &m->arena);
    text_open(&b->data, &m->arena);
    c->cx->watch = &b->times.watch;
    const Status status = model_is_step(m) || line_wants_step(&c->line) ? open_step(b) : open_model(b);
    c->cx->watch = NULL;
    return status;
}

void bench_close(Bench *b)
{
    if (b->session)
        session_end(b->session);
    if (b->step)
        step_close(b->step);
}
