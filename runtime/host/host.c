#include "base/bytes.h"
#include "ir/store/init.h"
#include "runtime/host/host_parts.h"

/* ---- beginning and end ---- */

Status host_open(Ir *ir, const EngineOptions *o, int n_kept, Arena *arena, RunnerMaker *maker, Space *space,
                 Values **values)
{
    Values *v = NEW(arena, Values);
    *v = (Values){
        .ir = ir, .arena = arena, .n_kept = n_kept, .cap_moving = n_kept, .options = *o, .maker = maker, .space = space
    };
    if (!v->options.kernels)
        v->options.kernels = kernels_best();
    v->kept = NEWS(arena, Tensor *, n_kept + 1);
    v->lent = NEWS(arena, Tensor *, n_kept + 1);
    v->views = NEWS(arena, Tensor *, n_kept + 1);
    v->moving = NEWS(arena, Moving, n_kept + 1);
    v->copies = NEWS(arena, StepCopy, n_kept + 1);
    v->coming = NEWS(arena, Coming, n_kept + 1);
    heap_open(&v->heap, ir->memory);
    heap_reuse(&v->heap);
    *values = v;
    return OK;
}

Space *host_space(const Values *v)
{
    return v->space;
}

static void keep_graph(Loaded *l)
{
    if (!l)
        return;
    if (!l->shares)
        runner_room_keep(&l->room->memory);
    if (l->heap == &l->own)
        heap_keep(&l->own);
    runner_keep(l->made);
    runner_keep(l->evaluated);
    runners_keep(l->by_types);
}

void host_keep(Values *v)
{
    heap_keep(&v->heap);
    for (int i = 0; i < v->n_graphs; i++)
        keep_graph(v->graphs[i]);
    v->outlives = true;
}

static void close_graph(Loaded *l)
{
    if (!l)
        return;
    runner_close(l->made);
    runner_close(l->evaluated);
    runners_close(l->by_types);
    if (!l->shares)
        runner_room_close(&l->room->memory);
    if (l->heap == &l->own)
        heap_close(&l->own);
}

void host_close(Values *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n_graphs; i++)
        close_graph(v->graphs[i]);
    heap_close(&v->heap);
}

void host_unload(Values *v, int graph)
{
    Loaded *l = v->graphs[graph];
    l->room->user = l->room->user == l ? NULL : l->room->user;
    l->room->is_stale = true;
    close_graph(l);
    v->graphs[graph] = NULL;
}

static void grow_graphs(Values *v)
{
    if (v->n_graphs < v->cap_graphs)
        return;
    const int cap = v->cap_graphs ? 2 * v->cap_graphs : 4;
    Loaded **graphs = NEWS(v->arena, Loaded *, cap);
    for (int i = 0; i < v->n_graphs; i++)
        graphs[i] = v->graphs[i];
    v->graphs = graphs;
    v->cap_graphs = cap;
}

void host_expect_moves(Values *v, int n)
{
    if (n <= v->cap_moving)
        return;
    v->moving = NEWS(v->arena, Moving, n);
    v->copies = NEWS(v->arena, StepCopy, n);
    v->cap_moving = n;
}

static void grow_late(Values *v, int n)
{
    if (n <= v->cap_late)
        return;
    v->late = NEWS(v->arena, Tensor *, n);
    v->cap_late = n;
}

static GraphRunner *open_evaluated(Values *v, Loaded *l)
{
    if (!l->evaluated) {
        l->evaluated = evaluated_open(&l->x, &v->options, l->x.arena, l->heap);
        if (v->space)
            l->evaluated = staged_open(l->evaluated, l->x.graph, v->space, l->x.arena, l->heap);
        if (v->outlives)
            runner_keep(l->evaluated);
    }
    return l->evaluated;
}

/* Its own room and heap, or those that it works in beside others. */
static void take_room(Values *v, Loaded *l, Arena *own)
{
    l->shares = l->x.room_of != NULL;
    l->room = l->shares ? v->graphs[*l->x.room_of]->room : NEW(l->x.arena, Room);
    l->heap = own ? &l->own : &v->heap;
    if (!l->shares) {
        runner_room_open(&l->room->memory, v->ir->memory, v->space);
        l->room->memory.keeps = v->options.keeps;
    }
    if (!own)
        return;
    heap_open(&l->own, v->ir->memory);
    heap_reuse(&l->own);
}

/* A number that no graph has. */
static int free_number(Values *v)
{
    int number = 0;
    while (number < v->n_graphs && v->graphs[number])
        number++;
    if (number == v->n_graphs)
        grow_graphs(v);
    return number;
}

Status host_load(Values *v, const Executable *x, int *number)
{
    Arena *arena = x->arena ? x->arena : v->arena;
    Loaded *l = NEW(arena, Loaded);
    const size_t n = x->graph->n_inputs;
    *l = (Loaded){ .x = *x, .done = x->n_parts };
    l->x.arena = arena;
    l->reads = NEWS(arena, ValueAt, n + 1);
    l->operands = NEWS(arena, const Tensor *, n + 1);
    l->reader = NEWS(arena, int, v->n_kept + 1);
    l->views = NEWS(arena, Tensor *, graph_n_results(x->graph) + 1);
    const int at = free_number(v);
    host_expect_moves(v, v->n_kept + graph_n_results(x->graph));
    grow_late(v, graph_n_results(x->graph));
    take_room(v, l, x->arena);
    l->made = v->maker ? v->maker(x, &v->options, &l->room->memory, arena, l->heap) : NULL;
    if (v->maker && x->programs)
        l->by_types = runners_open(&l->x, &v->options, v->maker, &l->room->memory, arena);
    l->runner = l->made ? l->made : open_evaluated(v, l);
    if (v->outlives)
        keep_graph(l);
    v->graphs[at] = l;
    v->n_graphs += at == v->n_graphs;
    *number = at;
    return space_status(v->space);
}

/* ---- values ---- */

const Tensor *host_value(const Values *v, ValueAt at)
{
    if (at.at < 0)
        return NULL;
    if (at.graph == KEPT)
        return v->kept[at.at];
    const Loaded *l = v->graphs[at.graph];
    return graph_result(l->x.graph, at.at) ? l->runner->does->result(l->runner, at.at) : NULL;
}

/* A value of the bytes that a tensor of the host has. */
static Tensor *copy_of(Values *v, Heap *heap, const Tensor *host)
{
    Tensor *copy = space_tensor(v->space, heap, host->type);
    space_write(v->space, copy->data, host->data, host->bytes);
    return copy;
}

void host_drop(Values *v, Tensor *value)
{
    space_drop(v->space, &v->heap, value);
}

/* Runs under way that still read it read the new one. */
static void let_read(Values *v, int kept)
{
    for (int i = 0; i < v->n_graphs; i++) {
        const Loaded *l = v->graphs[i];
        const int input = l ? l->reader[kept] : 0;
        if (l && l->done < l->x.n_parts && (size_t)input < l->x.graph->n_inputs && l->reads[input].graph == KEPT &&
            l->reads[input].at == kept && l->runner->does->reads(l->runner, input))
            l->runner->does->reread(l->runner, input, v->kept[kept]);
    }
}

/* Takes the tensor over; null: nothing. */
static void keep_value(Values *v, int kept, Tensor *value)
{
    Tensor *before = v->kept[kept];
    v->kept[kept] = value;
    let_read(v, kept);
    if (before)
        host_drop(v, before);
}

void host_set_value(Values *v, ValueAt to, Tensor *value)
{
    if (to.graph == KEPT) {
        keep_value(v, to.at, value);
        return;
    }
    Loaded *l = v->graphs[to.graph];
    l->runner->does->put(l->runner, to.at, value);
    if (value)
        host_drop(v, value);
}

/* Where a value of a space is shown on the host: a place of its own for each. */
static Tensor *view_of(Values *v, ValueAt at, const Type *type)
{
    Tensor **view = at.graph == KEPT ? &v->views[at.at] : &v->graphs[at.graph]->views[at.at];
    Heap *heap = at.graph == KEPT ? &v->heap : v->graphs[at.graph]->heap;
    if (*view && (*view)->type != type) {
        tensor_drop(heap, *view);
        *view = NULL;
    }
    if (!*view)
        *view = tensor_alloc(heap, type);
    return *view;
}

/* So many at once. */
enum { READS = 8 };

static Status get_some(Values *v, int n, const ValueAt *at, const Tensor **host)
{
    SpaceRead reads[READS];
    int n_reads = 0;
    for (int i = 0; i < n; i++) {
        if (at[i].graph != KEPT && at[i].at >= 0)
            TRY(host_answered(v->graphs[at[i].graph]));
        const Tensor *t = host[i] = host_value(v, at[i]);
        if (!t || !space_holds(v->space, t->type))
            continue;
        Tensor *view = view_of(v, at[i], t->type);
        if (t->bytes)
            reads[n_reads++] = (SpaceRead){ view->data, t->data, t->bytes };
        host[i] = view;
    }
    space_read_all(v->space, n_reads, reads);
    return space_status(v->space);
}

Status host_get_all(Values *v, int n, const ValueAt *at, const Tensor **host)
{
    for (int i = 0; i < n; i += READS)
        TRY(get_some(v, n - i < READS ? n - i : READS, at + i, host + i));
    return OK;
}

Status host_get(Values *v, ValueAt at, const Tensor **host)
{
    return get_some(v, 1, &at, host);
}

static void lend(Values *v, int kept, const Tensor *host)
{
    if (!v->lent[kept]) {
        v->lent[kept] = NEW(v->arena, Tensor);
        v->lent[kept]->refs = LENT;
    }
    Tensor *t = v->lent[kept]; /* an evaluation may hold it still */
    t->type = host->type;
    t->data = host->data;
    t->bytes = host->bytes;
    if (v->kept[kept] != t)
        keep_value(v, kept, tensor_hold(t));
}

/* Whether a kept value in a space can take other bytes where it is: what runs again finds it there. */
static bool may_be_put_over(const Values *v, ValueAt to, const Tensor *host)
{
    const Tensor *t = v->space && to.graph == KEPT ? v->kept[to.at] : NULL;
    return t && t->type == host->type && t->refs == 1;
}

Status host_bring(Values *v, int kept, const Tensor *host)
{
    Coming *c = &v->coming[kept];
    c->type = NULL;
    c->bytes = v->space->does->bring(v->space, c->bytes, host->data, host->bytes);
    TRY(space_status(v->space));
    c->type = host->type;
    return OK;
}

Status host_take(Values *v, int kept)
{
    Coming *c = &v->coming[kept];
    Tensor *t = v->kept[kept];
    if (!t || t->type != c->type || t->refs != 1) {
        t = space_tensor(v->space, &v->heap, c->type);
        host_set_value(v, value_kept(kept), t);
    }
    if (t->bytes)
        v->space->does->take_brought(v->space, c->bytes, t->data);
    c->type = NULL;
    return space_status(v->space);
}

/* All copies first: where memory ends, none of them stays. */
static Status put_copies(Values *v, int n, const ValueAt *to, Tensor *const *host)
{
    Heap heap;
    host_expect_moves(v, n);
    heap_open(&heap, v->ir->memory);
    for (int i = 0; i < n; i++)
        v->moving[i].value = may_be_put_over(v, to[i], host[i]) ? NULL : copy_of(v, &heap, host[i]);
    for (int i = 0; i < n; i++) {
        if (!v->moving[i].value) {
            space_write(v->space, v->kept[to[i].at]->data, host[i]->data, host[i]->bytes);
            continue;
        }
        heap_take(&v->heap, v->moving[i].value);
        host_set_value(v, to[i], v->moving[i].value);
    }
    heap_close(&heap);
    return space_status(v->space);
}

/* Into a space all of them are copies; what is given goes. */
static Status put_into_space(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
    const Status status = put_copies(v, n, to, host);
    for (int i = 0; i < n && how == PUT_GIVE && status == OK; i++) {
        heap_take(&v->heap, host[i]);
        tensor_drop(&v->heap, host[i]);
    }
    return status;
}

Status host_put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
    if (v->space)
        return put_into_space(v, n, to, host, how);
    if (how == PUT_LEND) {
        for (int i = 0; i < n; i++)
            lend(v, to[i].at, host[i]);
        return OK;
    }
    if (how == PUT_COPY && n > 1)
        return put_copies(v, n, to, host);
    for (int i = 0; i < n; i++) {
        GraphRunner *runner = how == PUT_COPY && to[i].graph != KEPT ? v->graphs[to[i].graph]->runner : NULL;
        if (runner && runner->does->copies) {
            runner->does->put(runner, to[i].at, host[i]);
            continue;
        }
        if (how == PUT_GIVE)
            heap_take(&v->heap, host[i]);
        host_set_value(v, to[i], how == PUT_GIVE ? host[i] : copy_of(v, &v->heap, host[i]));
    }
    return OK;
}

/* Through the host. */
static Status read_into_space(Values *v, Payload *initial, Tensor *t)
{
    Tensor *host = tensor_alloc(&v->heap, t->type);
    const Status status = payload_read(initial, host, v->ir->diag);
    if (status == OK)
        space_write(v->space, t->data, host->data, t->bytes);
    tensor_drop(&v->heap, host);
    return status == OK ? space_status(v->space) : status;
}

Status host_fill(Values *v, int kept, const Type *type, Payload *initial)
{
    keep_value(v, kept, space_tensor(v->space, &v->heap, type));
    Tensor *t = v->kept[kept];
    Init said;
    const bool zeros = !initial || (payload_is_init(initial, &said) && said.kind == INIT_ZEROS);
    if (!zeros)
        return v->space ? read_into_space(v, initial, t) : payload_read(initial, t, v->ir->diag);
    if (t->bytes && v->space)
        v->space->does->zero(v->space, t->data, t->bytes);
    else if (t->bytes)
        memory_zero(v->ir->memory, t->data, t->bytes);
    return space_status(v->space);
}

/* ---- runs ---- */

static void let_input_read(Loaded *l, int input, ValueAt value)
{
    l->reads[input] = value;
    if (value.graph == KEPT && value.at >= 0)
        l->reader[value.at] = input;
}

/* The engine's own way, where it can take what is bound now. */
static GraphRunner *choose_runner(Values *v, Loaded *l)
{
    GraphRunner *made = l->by_types ? runners_for(l->by_types, l->operands) : l->made;
    if (made && (!made->does->fits || made->does->fits(made, l->operands)))
        return made;
    return open_evaluated(v, l);
}

/* What another graph left in the room goes. */
static void enter_room(Loaded *l)
{
    Room *room = l->room;
    Loaded *before = room->user;
    if (before && before != l) {
        before->runner->does->end(before->runner);
        before->done = before->x.n_parts;
    }
    if (room->is_stale)
        runner_room_empty(&room->memory);
    room->is_stale = false;
    room->user = l;
}

Status host_begin(Values *v, int graph, const EngineRun *o)
{
    Loaded *l = v->graphs[graph];
    for (size_t i = 0; i < l->x.graph->n_inputs; i++) {
        let_input_read(l, (int)i, o->inputs[i]);
        l->operands[i] = host_value(v, o->inputs[i]);
    }
    l->done = l->x.n_parts;
    l->unanswered = false;
    l->runner->does->end(l->runner);
    enter_room(l);
    l->runner = l->made ? l->made : l->evaluated; /* those made for some types may have to go for others */
    l->runner = choose_runner(v, l);
    TRY(l->runner->does->begin(l->runner, o->seed, o->step, l->operands));
    l->done = 0;
    return space_status(v->space);
}

bool host_programmed(const Values *v, int graph)
{
    const Loaded *l = v->graphs[graph];
    return l->runner != l->evaluated;
}

Status host_bind(Values *v, int graph, int input, ValueAt value)
{
    Loaded *l = v->graphs[graph];
    let_input_read(l, input, value);
    l->runner->does->reread(l->runner, input, host_value(v, value));
    return space_status(v->space);
}

Status host_run(Values *v, int graph, int part)
{
    Loaded *l = v->graphs[graph];
    v->runs++;
    if (part < l->done)
        return OK;
    l->unanswered = l->runner->does->answer != NULL;
    TRY(l->runner->does->until(l->runner, part));
    l->done = part + 1;
    return space_status(v->space);
}

Status host_answered(Loaded *l)
{
    if (!l->unanswered)
        return OK;
    l->unanswered = false;
    return l->runner->does->answer(l->runner);
}

Status host_answer(Values *v, int graph)
{
    return host_answered(v->graphs[graph]);
}

void host_end(Values *v, int graph)
{
    Loaded *l = v->graphs[graph];
    l->runner->does->end(l->runner);
    l->done = l->x.n_parts;
}

void host_stats(const Values *v, EngineStats *to)
{
    *to = (EngineStats){ .runs = v->runs };
    for (int i = 0; i < v->n_kept; i++)
        to->bytes += v->kept[i] ? v->kept[i]->bytes : 0;
    for (int i = 0; i < v->n_graphs; i++) {
        to->graphs += v->graphs[i] != NULL;
        to->made += v->graphs[i] ? runners_made(v->graphs[i]->by_types) : 0;
    }
}
