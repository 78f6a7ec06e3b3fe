#include "api/ptq/walk.h"

#include <math.h>
#include <string.h>

#include "api/session/export_quant.h"
#include "passes/engine/pass.h"
#include "passes/ptq/chains.h"

/* ---- the graph ---- */

static Status prepare(Walk *w)
{
    static const char *const passes[] = { "enter-inference", "stop-observing", "simplify", "drop-dead" };
    Recipe recipe = w->step->recipe;
    recipe.quantization.ledger = NULL;
    const PassOptions options = { .recipe = &recipe };
    for (size_t i = 0; i < COUNT(passes); i++) {
        PassRun run = { .options = &options, .diag = w->ir.diag, .allowed = -1 };
        TRY(pass_run(pass_find(passes[i]), w->g, &run));
    }
    return OK;
}

static WalkValue *value_of(Walk *w, const Node *n)
{
    return fact(&w->values, n);
}

/* Where each value is read last: by a reader in floats also across the quantizer between. */
static void find_readers(Walk *w)
{
    int64_t at = 0;
    for (size_t i = 0; i < w->g->n_inputs; i++)
        value_of(w, w->g->inputs[i])->data = node_is_input(w->g->inputs[i]);
    for (const Node *n = w->g->first; n; n = n->next, at++)
        for (int i = 0; i < n->n_in; i++) {
            if (!in(n, i))
                continue;
            value_of(w, in(n, i))->last = at;
            value_of(w, chain_number(in(n, i)))->last = at;
            value_of(w, n)->data |= value_of(w, in(n, i))->data;
        }
    for (int i = 0; i < graph_n_results(w->g); i++)
        if (graph_result(w->g, i)) {
            value_of(w, graph_result(w->g, i))->last = INT64_MAX;
            value_of(w, chain_number(graph_result(w->g, i)))->last = INT64_MAX;
        }
}

Status walk_open(Walk *w, qcc_step *step, Session *run, const Batches *batches)
{
    qcc_context *cx = step->cx;
    *w = (Walk){ .cx = cx, .step = step, .run = run, .batches = batches };
    arena_open(&w->arena, &cx->memory);
    heap_open(&w->heap, &cx->memory);
    ir_open(&w->ir, &w->arena, &ops_table, &cx->diag);
    w->ir.limits = step->model->ir.limits;
    w->how = (EvalOptions){ .kernels = cx->kernels, .pool = context_pool(cx), .stop = &cx->stop };
    Status status = quantized_again(step, &w->ir, &w->arena, &w->g, NULL);
    if (status == OK)
        status = prepare(w);
    w->values = facts_open(&w->arena, sizeof(WalkValue));
    machine_open(&w->machine, &w->ir, &w->how, &w->heap, NULL);
    if (status == OK)
        find_readers(w);
    return status;
}

void walk_close(Walk *w)
{
    machine_close(&w->machine);
    heap_close(&w->heap);
    arena_close(&w->arena);
}

/* ---- values ---- */

size_t walk_count(Walk *w, const Node *n)
{
    return value_of(w, n)->data ? w->batches->n : 1;
}

const Tensor *walk_value(Walk *w, const Node *n, size_t i, bool as_float)
{
    if (!n)
        return NULL;
    const WalkValue *v = value_of(w, as_float ? chain_number((Node *)(uintptr_t)n) : n);
    Tensor **all = as_float ? v->floats : v->codes;
    return all ? all[v->data ? i : 0] : NULL;
}

static void drop(Walk *w, Tensor **all, size_t n)
{
    for (size_t i = 0; all && i < n; i++)
        if (all[i])
            tensor_drop(&w->heap, all[i]);
}

/* Values that nobody reads any more; those that depend on no data stay. */
static void drop_read(Walk *w, const Node *n, int64_t at)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *both[] = { in(n, i), chain_number(in(n, i)) };
        for (size_t k = 0; k < COUNT(both); k++) {
            WalkValue *v = both[k] ? value_of(w, both[k]) : NULL;
            if (!v || !v->data || v->last > at)
                continue;
            drop(w, v->codes, w->batches->n);
            drop(w, v->floats, w->batches->n);
            v->codes = v->floats = NULL;
        }
    }
}

/* ---- inputs and states ---- */

static Tensor *copy_of(Walk *w, const Tensor *t)
{
    Tensor *own = tensor_alloc(&w->heap, t->type);
    if (own->bytes)
        memcpy(own->data, t->data, own->bytes);
    return own;
}

static Status no_data(Walk *w, const Node *n)
{
    Message *m = message_new(w->ir.diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--ptq: input %s of the model is none of the data of calibration", n->name);
    message_try(m, "--calibrate %s=FILE beside the others", n->name);
    return message_send(m);
}

static Status put_input(Walk *w, const Node *n)
{
    WalkValue *v = value_of(w, n);
    const Batches *b = w->batches;
    size_t at = 0;
    while (at < b->n_names && strcmp(b->names[at], n->name) != 0)
        at++;
    if (at == b->n_names || !b->n || !b->values[0][at])
        return no_data(w, n);
    v->floats = NEWS(&w->arena, Tensor *, b->n);
    v->codes = NEWS(&w->arena, Tensor *, b->n);
    for (size_t i = 0; i < b->n; i++) {
        v->floats[i] = copy_of(w, b->values[i][at]);
        v->codes[i] = tensor_hold(v->floats[i]);
    }
    return OK;
}

static Status put_state(Walk *w, const Node *n)
{
    WalkValue *v = value_of(w, n);
    const Tensor *t = session_view(w->run, n->name);
    if (!t)
        return fail_as(w->ir.diag, INTERNAL, node_place(n), "%s is no state of the step", n->name);
    v->floats = NEWS(&w->arena, Tensor *, 1);
    v->codes = NEWS(&w->arena, Tensor *, 1);
    v->floats[0] = copy_of(w, t);
    v->codes[0] = tensor_hold(v->floats[0]);
    return OK;
}

/* ---- calls ---- */

static Status run_structure(Walk *w, const Node *n, const Tensor *const *ins, Tensor **value)
{
    if (n->op == OP_part) {
        *value = tensor_hold(ins[0]->items[((const PartAttr *)n->attr)->index]);
        return OK;
    }
    if (n->op == OP_tuple) {
        *value = tensor_group(&w->heap, n->type, (size_t)n->n_in, (Tensor *const *)(uintptr_t)ins);
        return OK;
    }
    Payload *p = node_payload(n);
    const Tensor *t = p ? payload_cached(p, w->ir.diag) : NULL;
    if (!t)
        return payload_failed(p, w->ir.diag, node_place(n));
    *value = copy_of(w, t);
    return OK;
}

static Status run_call(Walk *w, const Node *n, size_t i, bool as_float, Tensor **value)
{
    Arena *scratch = w->machine.scratch;
    const ArenaMark mark = arena_mark(scratch);
    const Tensor **ins = NEWS(scratch, const Tensor *, n->n_in + 1);
    for (int k = 0; k < n->n_in; k++)
        ins[k] = walk_value(w, in(n, k), i, as_float);
    const Status status =
        op_of(n)->structural ? run_structure(w, n, ins, value) : machine_call(&w->machine, n, ins, value);
    arena_reset(scratch, mark);
    return status;
}

static Status run_side(Walk *w, const Node *n, bool as_float)
{
    WalkValue *v = value_of(w, n);
    const size_t many = walk_count(w, n);
    Tensor ***all = as_float ? &v->floats : &v->codes;
    drop(w, *all, many);
    if (!*all)
        *all = NEWS(&w->arena, Tensor *, many);
    for (size_t i = 0; i < many; i++)
        (*all)[i] = NULL;
    for (size_t i = 0; i < many; i++)
        TRY(run_call(w, n, i, as_float, &(*all)[i]));
    return OK;
}

/* What quantizers give has no value in floats: who reads it reads what they quantize. */
static Status run_both(Walk *w, const Node *n)
{
    const bool placed = n->flags & NODE_OURS && op_of(n)->quant.quantizes;
    if (!placed && chain_number((Node *)(uintptr_t)n) == n)
        TRY(run_side(w, n, true));
    return w->floats_alone ? OK : run_side(w, n, false);
}

Status walk_all(Walk *w, Status (*met)(void *user, Walk *w, Node *n), void *user)
{
    int64_t at = 0;
    for (size_t i = 0; i < w->g->n_inputs; i++)
        TRY(node_is_input(w->g->inputs[i]) ? put_input(w, w->g->inputs[i]) : put_state(w, w->g->inputs[i]));
    for (Node *n = w->g->first; n; n = n->next, at++) {
        if (w->cx->stop)
            return INTERRUPTED;
        TRY(run_both(w, n));
        if (met)
            TRY(met(user, w, n));
        drop_read(w, n, at);
    }
    return OK;
}

Status walk_put(Walk *w, Node *state, const Tensor *value, Node *upto)
{
    Arena *arena = &w->cx->scratch;
    Facts changed = facts_open(arena, sizeof(bool));
    WalkValue *v = value_of(w, state);
    Tensor *own = copy_of(w, value);
    own->type = v->codes[0]->type; /* as the session has it, whose types are its own */
    tensor_drop(&w->heap, v->codes[0]);
    v->codes[0] = own;
    *(bool *)fact(&changed, state) = true;
    for (Node *n = w->g->first; n && n != upto->next; n = n->next) {
        bool any = false;
        for (int i = 0; i < n->n_in; i++)
            any |= in(n, i) && *(bool *)fact(&changed, in(n, i));
        if (!any || (value_of(w, n)->data && n != upto))
            continue;
        *(bool *)fact(&changed, n) = true;
        TRY(run_side(w, n, false));
    }
    return session_put(w->run, state->name, v->codes[0]);
}

/* ---- errors ---- */

WalkError walk_error(Walk *w, const Node *n)
{
    WalkError e = { 0 };
    const size_t many = walk_count(w, n);
    for (size_t i = 0; i < many; i++) {
        const Tensor *f = walk_value(w, n, i, true), *q = walk_value(w, n, i, false);
        for (int64_t k = 0; f && q && k < tensor_elements(f); k++) {
            const double x = tensor_get_f64(f, k), d = x - tensor_get_f64(q, k);
            e.signal += x * x;
            e.noise += d * d;
            e.n++;
        }
    }
    return e;
}

double walk_db(const WalkError *e)
{
    return e->noise > 0 ? 10 * log10(e->signal / e->noise) : (double)INFINITY;
}
