#include "runtime/host/host.h"

#include <string.h>

#include "base/bytes.h"
#include "ir/store/init.h"
#include "runtime/host/runners.h"

/* A graph that was loaded. */
typedef struct Loaded {
    Executable x;
    RunnerRoom room;         /* of what the engine makes */
    GraphRunner *runner;     /* of the run under way: one of those below */
    GraphRunner *made;       /* by the engine; null: it takes the evaluator */
    Runners *by_types;       /* made by the engine, for operands of some types; null: none is */
    GraphRunner *evaluated;  /* null: not needed so far */
    int done;                /* parts; as many as there are: nothing is under way */
    ValueAt *reads;          /* what each input reads */
    const Tensor **operands; /* of a run that begins */
    int *reader;             /* by kept value: the input that read it last */
} Loaded;

/* What one move has in hand. */
typedef struct Moving {
    Tensor *value;    /* held; null: nothing */
    const void *from; /* bytes that are copied to where the value is, once nothing can fail */
    bool stays;       /* the kept value has them already: it was made there */
} Moving;

struct Values {
    Ir *ir;
    Arena *arena;
    Heap heap;
    EngineOptions options;
    RunnerMaker *maker;
    Tensor **kept;
    Tensor **lent; /* by kept value: how we hold what is the caller's */
    Moving *moving;
    Tensor **late; /* by result: what move lets a graph make */
    int cap_late;
    int n_kept, cap_moving;
    Loaded **graphs;
    int n_graphs, cap_graphs;
    bool outlives; /* its arenas are past guarded() */
    uint64_t runs;
};

/* ---- beginning and end ---- */

Status host_open(Ir *ir, const EngineOptions *o, int n_kept, Arena *arena, RunnerMaker *maker, Values **values)
{
    Values *v = NEW(arena, Values);
    *v = (Values){ .ir = ir, .arena = arena, .n_kept = n_kept, .cap_moving = n_kept, .options = *o, .maker = maker };
    if (!v->options.kernels)
        v->options.kernels = kernels_best();
    v->kept = NEWS(arena, Tensor *, n_kept + 1);
    v->lent = NEWS(arena, Tensor *, n_kept + 1);
    v->moving = NEWS(arena, Moving, n_kept + 1);
    heap_open(&v->heap, ir->memory);
    heap_reuse(&v->heap);
    *values = v;
    return OK;
}

static void keep_graph(Loaded *l)
{
    runner_room_keep(&l->room);
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

void host_close(Values *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n_graphs; i++) {
        Loaded *l = v->graphs[i];
        runner_close(l->made);
        runner_close(l->evaluated);
        runners_close(l->by_types);
        runner_room_close(&l->room);
    }
    heap_close(&v->heap);
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

/* Room for the move of every result. */
static void grow_moving(Values *v, int n)
{
    if (n <= v->cap_moving)
        return;
    v->moving = NEWS(v->arena, Moving, n);
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
        l->evaluated = evaluated_open(&l->x, &v->options, v->arena, &v->heap);
        if (v->outlives)
            runner_keep(l->evaluated);
    }
    return l->evaluated;
}

Status host_load(Values *v, const Executable *x, int *number)
{
    Loaded *l = NEW(v->arena, Loaded);
    const size_t n = x->graph->n_inputs;
    *l = (Loaded){ .x = *x, .done = x->n_parts };
    l->reads = NEWS(v->arena, ValueAt, n + 1);
    l->operands = NEWS(v->arena, const Tensor *, n + 1);
    l->reader = NEWS(v->arena, int, v->n_kept + 1);
    grow_graphs(v);
    grow_moving(v, v->n_kept + graph_n_results(x->graph));
    grow_late(v, graph_n_results(x->graph));
    runner_room_open(&l->room, v->ir->memory);
    l->made = v->maker ? v->maker(x, &v->options, &l->room, v->arena, &v->heap) : NULL;
    if (v->maker && x->programs)
        l->by_types = runners_open(&l->x, &v->options, v->maker, &l->room, v->arena);
    l->runner = l->made ? l->made : open_evaluated(v, l);
    if (v->outlives)
        keep_graph(l);
    *number = v->n_graphs;
    v->graphs[v->n_graphs++] = l;
    return OK;
}

/* ---- values ---- */

static const Tensor *value_of(const Values *v, ValueAt at)
{
    if (at.at < 0)
        return NULL;
    if (at.graph == KEPT)
        return v->kept[at.at];
    const Loaded *l = v->graphs[at.graph];
    return graph_result(l->x.graph, at.at) ? l->runner->does->result(l->runner, at.at) : NULL;
}

static Tensor *copy_of(Heap *heap, const Tensor *t)
{
    Tensor *copy = tensor_alloc(heap, t->type);
    if (t->bytes)
        bytes_copy(copy->data, t->data, t->bytes);
    return copy;
}

/* Runs under way that still read it read the new one. */
static void let_read(Values *v, int kept)
{
    for (int i = 0; i < v->n_graphs; i++) {
        const Loaded *l = v->graphs[i];
        const int input = l->reader[kept];
        if (l->done < l->x.n_parts && (size_t)input < l->x.graph->n_inputs && l->reads[input].graph == KEPT &&
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
        tensor_drop(&v->heap, before);
}

static void set_value(Values *v, ValueAt to, Tensor *value)
{
    if (to.graph == KEPT) {
        keep_value(v, to.at, value);
        return;
    }
    Loaded *l = v->graphs[to.graph];
    l->runner->does->put(l->runner, to.at, value);
    if (value)
        tensor_drop(&v->heap, value);
}

Status host_get(Values *v, ValueAt at, const Tensor **host)
{
    *host = value_of(v, at);
    return OK;
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

/* All copies first: where memory ends, none of them stays. */
static Status put_copies(Values *v, int n, const ValueAt *to, Tensor *const *host)
{
    Heap heap;
    grow_moving(v, n);
    heap_open(&heap, v->ir->memory);
    for (int i = 0; i < n; i++)
        v->moving[i].value = copy_of(&heap, host[i]);
    for (int i = 0; i < n; i++) {
        heap_take(&v->heap, v->moving[i].value);
        set_value(v, to[i], v->moving[i].value);
    }
    heap_close(&heap);
    return OK;
}

Status host_put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
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
        set_value(v, to[i], how == PUT_GIVE ? host[i] : copy_of(&v->heap, host[i]));
    }
    return OK;
}

Status host_fill(Values *v, int kept, const Type *type, Payload *initial)
{
    keep_value(v, kept, tensor_alloc(&v->heap, type));
    Tensor *t = v->kept[kept];
    Init said;
    const bool zeros = !initial || (payload_is_init(initial, &said) && said.kind == INIT_ZEROS);
    if (!zeros)
        return payload_read(initial, t, v->ir->diag);
    if (t->bytes)
        memory_zero(v->ir->memory, t->data, t->bytes);
    return OK;
}

/* ---- moves ----
 *
 * What can fail comes first: values are held, or room is made for their copies.  Then graphs make what they left for last,
 * then all is there and nothing fails any more. */

/* The kept value that a move goes to, if its bytes may be written over: nobody else holds them. */
static Tensor *own_target(const Values *v, ValueAt to, const Type *type)
{
    Tensor *t = to.graph == KEPT ? v->kept[to.at] : NULL;
    return t && t->type == type && t->refs == 1 ? t : NULL;
}

/* Holds a value of ours; of another's memory says where its bytes are. */
static Moving take(const Tensor *t)
{
    if (t && t->refs >= LENT)
        return (Moving){ .from = t };
    return (Moving){ .value = t ? tensor_hold(t) : NULL };
}

/* Gives what is to be copied room, where the target is not it. */
static void make_room(Values *v, const ValueMove *move, Moving *m, const Type *type, bool in_place)
{
    Tensor *own = in_place ? own_target(v, move->to, type) : NULL;
    m->stays = own != NULL;
    m->value = own ? own : tensor_alloc(&v->heap, type);
}

static int late_number(const Values *v, ValueAt from)
{
    const GraphRunner *r = from.graph == KEPT || from.at < 0 ? NULL : v->graphs[from.graph]->runner;
    return r && r->does->late ? r->does->late(r, from.at) : -1;
}

/* Whether the graph may make a result right where it goes to: it is the state's own place, or nobody's that it reads. */
static bool may_be_made_in(const Loaded *l, int late, ValueAt to)
{
    const int state = l->runner->does->made_over(l->runner, late), input = to.graph == KEPT ? l->reader[to.at] : -1;
    if (state < 0 || input < 0)
        return false;
    const bool reads =
        (size_t)input < l->x.graph->n_inputs && l->reads[input].graph == KEPT && l->reads[input].at == to.at;
    return !reads || input == state;
}

/* Lets the graph that left results for last make them; two moves of one result: the second is a copy. */
static Status make_late(Values *v, int graph, int n, const ValueMove *moves)
{
    GraphRunner *r = v->graphs[graph]->runner;
    const Graph *g = v->graphs[graph]->x.graph;
    bool any = false;
    memset(v->late, 0, (size_t)v->cap_late * sizeof *v->late);
    for (int i = 0; i < n; i++) {
        const int late = moves[i].from.graph == graph ? late_number(v, moves[i].from) : -1;
        if (late < 0)
            continue;
        Moving *m = &v->moving[i];
        const bool first = !v->late[late];
        make_room(v, &moves[i], m, graph_result(g, late)->type,
                  first && may_be_made_in(v->graphs[graph], late, moves[i].to));
        m->from = first ? NULL : v->late[late];
        if (first)
            v->late[late] = m->value;
        any = true;
    }
    return any ? r->does->make_late(r, v->late) : OK;
}

/* All that is moved is there, or nothing is. */
static Status gather(Values *v, int n, const ValueMove *moves)
{
    for (int i = 0; i < n; i++)
        v->moving[i] = late_number(v, moves[i].from) < 0 ? take(value_of(v, moves[i].from)) : (Moving){ .value = NULL };
    for (int i = 0; i < n; i++)
        if (v->moving[i].from)
            make_room(v, &moves[i], &v->moving[i], ((const Tensor *)v->moving[i].from)->type, true);
    for (int g = 0; g < v->n_graphs; g++)
        TRY(make_late(v, g, n, moves));
    return OK;
}

static void let_go(Values *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v->moving[i].value && !v->moving[i].stays)
            tensor_drop(&v->heap, v->moving[i].value);
}

Status host_move(Values *v, int n, const ValueMove *moves)
{
    grow_moving(v, n);
    const Status status = gather(v, n, moves);
    if (status != OK) {
        let_go(v, n);
        return status;
    }
    for (int i = 0; i < n; i++) {
        const Tensor *from = v->moving[i].from;
        if (from && from->bytes)
            bytes_copy(v->moving[i].value->data, from->data, from->bytes);
    }
    for (int i = 0; i < n; i++)
        if (!v->moving[i].stays)
            set_value(v, moves[i].to, v->moving[i].value);
    return OK;
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

Status host_begin(Values *v, int graph, const EngineRun *o)
{
    Loaded *l = v->graphs[graph];
    for (size_t i = 0; i < l->x.graph->n_inputs; i++) {
        let_input_read(l, (int)i, o->inputs[i]);
        l->operands[i] = value_of(v, o->inputs[i]);
    }
    l->done = l->x.n_parts;
    l->runner->does->end(l->runner);
    l->runner = l->made ? l->made : l->evaluated; /* those made for some types may have to go for others */
    l->runner = choose_runner(v, l);
    TRY(l->runner->does->begin(l->runner, o->seed, o->step, l->operands));
    l->done = 0;
    return OK;
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
    l->runner->does->reread(l->runner, input, value_of(v, value));
    return OK;
}

Status host_run(Values *v, int graph, int part)
{
    Loaded *l = v->graphs[graph];
    v->runs++;
    if (part < l->done)
        return OK;
    TRY(l->runner->does->until(l->runner, part));
    l->done = part + 1;
    return OK;
}

void host_end(Values *v, int graph)
{
    Loaded *l = v->graphs[graph];
    l->runner->does->end(l->runner);
    l->done = l->x.n_parts;
}

void host_stats(const Values *v, EngineStats *to)
{
    *to = (EngineStats){ .runs = v->runs, .graphs = v->n_graphs };
    for (int i = 0; i < v->n_kept; i++)
        to->bytes += v->kept[i] ? v->kept[i]->bytes : 0;
    for (int i = 0; i < v->n_graphs; i++)
        to->made += runners_made(v->graphs[i]->by_types);
}
