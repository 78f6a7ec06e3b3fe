/* Other batches than the step was compiled for: @eval is made again for what is bound, and the last few stay. */
#include <string.h>

#include "runtime/session/session_parts.h"

void batches_open(Session *s)
{
    Batches *b = &s->batches;
    *b = (Batches){ .graph = -1 };
    for (int g = 1; g < s->n_graphs && s->options.again.make; g++)
        if (strcmp(s->graphs[g].graph->name, "eval") == 0)
            b->graph = g;
    b->own = b->graph < 0 ? -1 : s->graphs[b->graph].number;
}

void batches_close(Session *s)
{
    for (int i = 0; i < BATCHES_KEPT; i++)
        if (s->batches.list[i].made.graph)
            s->options.again.drop(&s->batches.list[i].made);
}

/* ---- what is made ---- */

static Batch *find(Session *s, int slot, const Type *type)
{
    for (int i = 0; i < BATCHES_KEPT; i++) {
        const Graph *g = s->batches.list[i].made.graph;
        if (g && type_agrees(type, g->inputs[slot]->type))
            return &s->batches.list[i];
    }
    return NULL;
}

/* Where nothing is, or what was not wanted for longest; what was evaluated last may be looked at still. */
static Batch *make_place(Session *s)
{
    Batches *b = &s->batches;
    Batch *oldest = NULL;
    for (int i = 0; i < BATCHES_KEPT; i++) {
        Batch *x = &b->list[i];
        if (!x->made.graph)
            return x;
        if (x->number != s->graphs[b->graph].number && (!oldest || x->wanted < oldest->wanted))
            oldest = x;
    }
    s->engine->unload(s->values, oldest->number);
    s->options.again.drop(&oldest->made);
    oldest->made.graph = NULL;
    return oldest;
}

/* Until all of it is there a jump takes what there is, and the place stays free. */
static Status make(Session *s, int slot, const Type *type, Batch **batch)
{
    const AgainMaker *again = &s->options.again;
    const Batches *b = &s->batches;
    const Graph *own = s->graphs[b->graph].graph;
    GraphAgain made = { .graph = NULL };
    int number;
    *batch = NULL;
    TRY(again->make(again->user, own, own->inputs[slot], type, &made));
    if (!made.graph)
        return OK;
    Batch *place = make_place(s);
    const Executable x = { .graph = made.graph, .n_parts = 1, .arena = made.arena, .room_of = &b->own };
    const Status status = session_load(s, x, &number);
    if (status != OK) {
        again->drop(&made);
        return status;
    }
    again->keep(&made);
    *place = (Batch){ .made = made, .number = number };
    *batch = place;
    return OK;
}

/* Null: there is none for such a value. */
static Status find_or_make(Session *s, const Input *input, const Type *type, Batch **batch)
{
    Batches *b = &s->batches;
    const int slot = b->graph < 0 ? -1 : input->slot[b->graph];
    *batch = slot < 0 ? NULL : find(s, slot, type);
    if (slot >= 0 && !*batch)
        TRY(make(s, slot, type, batch));
    if (*batch)
        (*batch)->wanted = ++b->times;
    return OK;
}

Status batches_take(Session *s, const Input *input, const Type *type, bool *taken)
{
    Batch *batch;
    TRY(find_or_make(s, input, type, &batch));
    *taken = batch != NULL;
    return OK;
}

/* ---- what runs ---- */

/* The first input that is bound to what a graph does not take. */
static const Input *misfit(const Session *s, int graph, const Graph *g)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        const int slot = input->slot[graph];
        if (slot >= 0 && input->bound && !input->counts_all && !type_agrees(input->bound, g->inputs[slot]->type))
            return input;
    }
    return NULL;
}

static Status mixed(Session *s, int graph)
{
    Message *m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE, "what is bound is not of one batch");
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        if (input->slot[graph] >= 0 && input->bound && !input->counts_all)
            message_at(m, "%s %s", input->name, type_text(s->ir->diag->arena, input->bound));
    }
    return message_send(m);
}

Status batches_choose(Session *s, int graph, const Graph **chosen)
{
    SessionGraph *g = &s->graphs[graph];
    Batch *batch;
    *chosen = g->graph;
    if (graph != s->batches.graph)
        return OK;
    const Input *odd = misfit(s, graph, g->graph);
    if (!odd) {
        g->number = s->batches.own;
        return OK;
    }
    TRY(find_or_make(s, odd, odd->bound, &batch));
    if (!batch)
        return session_wrong_type(s, odd->name, odd->bound, g->graph->inputs[odd->slot[graph]]->type);
    *chosen = batch->made.graph;
    if (misfit(s, graph, *chosen))
        return mixed(s, graph);
    g->number = batch->number;
    return OK;
}

/* ---- masks ---- */

static float *ones(Session *s, int64_t n)
{
    Batches *b = &s->batches;
    if (b->n_ones >= n)
        return b->ones;
    const int64_t room = n > 2 * b->n_ones ? n : 2 * b->n_ones;
    b->ones = NEWS(s->arena, float, room);
    b->n_ones = room;
    for (int64_t i = 0; i < room; i++)
        b->ones[i] = 1;
    return b->ones;
}

Status batches_mask(Session *s, int graph, const Graph *g)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        Input *input = &s->inputs[i];
        const int slot = input->slot[graph];
        const Type *type = slot >= 0 ? g->inputs[slot]->type : NULL;
        if (!input->counts_all || !type || input->bound == type || !type_known(type) || type->dtype != F32)
            continue;
        const int64_t n = type_elements(type);
        const Tensor mask = { .type = type, .data = ones(s, n), .bytes = (size_t)n * sizeof(float), .refs = 1 };
        TRY(session_lend(s, input, &mask));
    }
    return OK;
}

Status batches_refuse(Session *s, const Input *input, const Type *want)
{
    const Batches *b = &s->batches;
    const int slot = b->graph < 0 ? -1 : input->slot[b->graph];
    Arena *arena = s->ir->diag->arena;
    if (slot < 0 || !find(s, slot, input->bound))
        return session_wrong_type(s, input->name, input->bound, want);
    return fail_as(s->ir->diag, USAGE, NOWHERE,
                   "%s: got %s, wanted %s: a step trains on batches as it was compiled for; others are evaluated alone",
                   input->name, type_text(arena, input->bound), type_text(arena, want));
}
