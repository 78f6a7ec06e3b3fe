/* @eval once more, of the model in front of a step, for another batch than the step was compiled for. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/quiet.h"
#include "api/make/recipe.h"
#include "base/checked.h"
#include "base/number_text.h"

/* What is wanted. */
typedef struct Again {
    qcc_step *made; /* the step */
    const Graph *eval;
    const Node *input;
    const Type *type;   /* that it is to have */
    int64_t was, batch; /* samples */
} Again;

/* Which batch a value of that type is of; 0: it differs in something else. */
static int64_t batch_of(const Again *a)
{
    const Type *own = a->input->type, *type = a->type;
    int64_t batch = 0;
    if (own->kind != TYPE_TENSOR || type->kind != TYPE_TENSOR || own->dtype != type->dtype || own->rank != type->rank)
        return 0;
    for (int i = 0; i < own->rank; i++) {
        if (own->dims[i] == type->dims[i])
            continue;
        if (own->dims[i] != a->was || type->dims[i] < 1 || (batch && batch != type->dims[i]))
            return 0;
        batch = type->dims[i];
    }
    return batch;
}

/* ---- the line ---- */

/* Whether a symbolic dimension is dimension 0 of an input. */
static bool is_first(const qcc_model *m, const char *dim)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        if (m->inputs[i].type->kind == TYPE_TENSOR && m->inputs[i].type->rank > 0 && m->inputs[i].dims[0] &&
            strcmp(m->inputs[i].dims[0], dim) == 0)
            return true;
    return false;
}

/* --dim NAME=N, where that is the batch. */
static const char *other_dim(const Again *a, Arena *arena, const char *pair)
{
    const char *value;
    const char *name = pair_split(arena, pair, &value);
    int64_t n;
    if (!i64_from_text(value, strlen(value), &n) || n != a->was || !is_first(a->made->model, name))
        return pair;
    return arena_printf(arena, "%s=%" PRId64, name, a->batch);
}

/* --shape NAME:NxMx.., whose first number is the batch. */
static const char *other_shape(const Again *a, Arena *arena, const char *text)
{
    const char *colon = strrchr(text, ':'), *first = colon ? colon + 1 : "";
    const size_t n = strcspn(first, "x");
    int64_t dim;
    if (!i64_from_text(first, n, &dim) || dim != a->was)
        return text;
    return arena_printf(arena, "%.*s%" PRId64 "%s", (int)(first - text), text, a->batch, first + n);
}

/* The options of the step, with the other batch wherever they say the one that it has. */
static Status read_line(const Again *a, Arena *arena, CommandLine *line)
{
    const qcc_step *made = a->made;
    const int64_t turns = made->recipe.accumulate > 1 ? made->recipe.accumulate : 1;
    int64_t all;
    TRY(options_read_text(&made->cx->diag, arena, "options of the step", made->facts.options, TEXT_COMPILES, line));
    if (!checked_mul_i64(a->batch, turns, &all))
        return fail_as(&made->cx->diag, USAGE, NOWHERE, "more samples than can be counted");
    for (size_t i = 0; i < line->n_given; i++) {
        Given *g = &line->given[i];
        if (g->option == OPT_dim)
            g->value = other_dim(a, arena, g->value);
        else if (g->option == OPT_shape)
            g->value = other_shape(a, arena, g->value);
    }
    line_drop(line, OPT_batch);
    option_add(arena, line, OPT_batch, arena_printf(arena, "%" PRId64, all));
    return OK;
}

/* ---- what came out ---- */

static bool is_same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_input(const Node *a, const Node *b)
{
    return a->op == b->op && is_same_name(a->name, b->name) && (a->op != OP_state || a->type == b->type);
}

/* What goes in and comes out has to have its place: a session knows it by that. */
static Status check_signature(const Again *a, const Graph *g)
{
    Diag *d = &a->made->cx->diag;
    bool same = g->n_inputs == a->eval->n_inputs && graph_n_results(g) == graph_n_results(a->eval);
    for (size_t i = 0; same && i < g->n_inputs; i++)
        same = is_same_input(g->inputs[i], a->eval->inputs[i]);
    for (int i = 0; same && i < graph_n_results(g); i++)
        same = is_same_name(graph_result_name(g, i), graph_result_name(a->eval, i)) &&
               !graph_result(g, i) == !graph_result(a->eval, i);
    return same ? OK : fail_as(d, UNSUPPORTED, NOWHERE, "the model has other parameters or outputs then");
}

/* A result whose first dimension is still the old batch, though it changed, has that in its computation. */
static Status check_results(const Again *a, const Graph *g)
{
    qcc_context *cx = a->made->cx;
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *n = graph_result(g, i);
        const Type *was = n ? graph_result(a->eval, i)->type : NULL;
        if (!n || n->type == was || was->kind != TYPE_TENSOR || was->rank < 1 || was->dims[0] != a->was)
            continue;
        if (n->type->kind != TYPE_TENSOR || n->type->rank != was->rank || n->type->dims[0] != a->batch)
            return fail_as(&cx->diag, UNSUPPORTED, node_place(n), "%s would be %s: its first dimension does not follow",
                           graph_result_name(g, i) ? graph_result_name(g, i) : "a result",
                           type_text(&cx->scratch, n->type));
    }
    return OK;
}

static Status build(const Again *a, qcc_step *s, Graph **g)
{
    CommandLine line;
    TRY(read_line(a, &s->arena, &line));
    TRY(step_build_eval(s, &line, g));
    TRY(check_signature(a, *g));
    return check_results(a, *g);
}

/* ---- what is said ---- */

/* Everything that making the step had to say it said; only why this fails is new. */
static Status tell(const Again *a, const Message *first, Status status)
{
    Diag *d = &a->made->cx->diag;
    if (!first)
        return status;
    Message *m =
        message_new(d, SEVERITY_ERROR, status == INVALID || status == USAGE ? UNSUPPORTED : status, first->place,
                    "%s: a batch of %" PRId64 " cannot be evaluated, the step was compiled for %" PRId64 ": %s",
                    a->input->name, a->batch, a->was, first->text);
    for (size_t i = 0; i < first->n_at; i++)
        message_at(m, "%s", first->at[i]);
    for (size_t i = 0; i < first->n_try; i++)
        if (strncmp(first->try[i], "--", 2) != 0) /* an option would compile another step */
            message_try(m, "%s", first->try[i]);
    return message_send(m);
}

static Status build_quietly(const Again *a, qcc_step *s, Graph **g)
{
    Quiet quiet;
    quiet_begin(&quiet, &a->made->cx->memory, &a->made->cx->diag);
    const Status status = build(a, s, g);
    quiet_end(&quiet);
    return status == OK ? OK : tell(a, quiet.first, status);
}

/* ---- for sessions ---- */

/* The weights of classes are those that the step has: files are not asked again. */
static void know_weights(const qcc_step *made, qcc_step *s)
{
    NamedTensor *list = NEWS(&s->arena, NamedTensor, made->recipe.n_losses + 1);
    for (size_t i = 0; i < made->recipe.n_losses; i++) {
        const LossSpec *l = &made->recipe.losses[i];
        if (l->weight_file && l->weight)
            list[s->facts.n_weights++] = (NamedTensor){ l->weight_file, l->weight };
    }
    s->facts.weights = list;
}

static Status make(void *step, const Graph *eval, const Node *input, const Type *type, GraphAgain *again)
{
    Again a = { .made = step, .eval = eval, .input = input, .type = type, .was = step_batch_of(eval) };
    Graph *g;
    *again = (GraphAgain){ .graph = NULL };
    a.batch = a.was > 0 && !a.made->facts.silent ? batch_of(&a) : 0;
    if (!a.batch)
        return OK;
    qcc_step *s = step_new(a.made->model);
    s->ir = a.made->ir; /* states are known by their types */
    memcpy(s->facts.tables, a.made->facts.tables, sizeof s->facts.tables);
    s->facts.recorded = true;
    know_weights(a.made, s);
    const Status status = build_quietly(&a, s, &g);
    bool takes = false;
    for (size_t i = 0; status == OK && i < g->n_inputs; i++)
        takes = takes || (eval->inputs[i] == input && g->inputs[i]->type == type);
    if (!takes) {
        step_drop(s);
        return status;
    }
    *again = (GraphAgain){ .graph = g, .arena = &s->arena, .owner = s };
    return OK;
}

static void keep(GraphAgain *again)
{
    qcc_step *s = again->owner;
    cleanup_drop(&s->cleanup);
    arena_keep(&s->arena);
    heap_keep(&s->data);
}

static void drop(GraphAgain *again)
{
    step_drop(again->owner);
}

AgainMaker step_again_maker(qcc_step *step)
{
    return (AgainMaker){ make, keep, drop, step };
}
