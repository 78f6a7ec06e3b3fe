#include "runtime/reference/reference.h"

#include <string.h>

#include "base/bytes.h"
#include "ops/card/eval.h"

/* Who lends a tensor holds it so often: it is never given back, and known from one of ours. */
#define LENT ((int64_t)1 << 40)

/* A graph that was loaded. */
typedef struct Loaded {
    Executable x;
    Evaluation *evaluation;
    int done;                /* parts; as many as there are: nothing is under way */
    ValueAt *reads;          /* what each input reads */
    const Tensor **operands; /* of a run that begins */
    int *reader;             /* by kept value: the input that read it last */
} Loaded;

struct Values {
    Ir *ir;
    Arena *arena;
    Heap heap;
    EvalOptions options;
    Tensor **kept;
    Tensor **lent;   /* by kept value: how we hold what is the caller's */
    Tensor **moving; /* what move has in hand */
    int n_kept, cap_moving;
    Loaded **graphs;
    int n_graphs, cap_graphs;
    bool outlives; /* its arenas are past guarded() */
    uint64_t runs;
};

/* ---- beginning and end ---- */

static Status open_values(Ir *ir, const EngineOptions *o, int n_kept, Arena *arena, Values **values)
{
    Values *v = NEW(arena, Values);
    *v = (Values){ .ir = ir,
                   .arena = arena,
                   .n_kept = n_kept,
                   .cap_moving = n_kept,
                   .options = { .kernels = o->kernels,
                                .pool = o->pool,
                                .stop = o->stop,
                                .stop_too = o->stop_too,
                                .rounding = o->rounding } };
    v->kept = NEWS(arena, Tensor *, n_kept + 1);
    v->lent = NEWS(arena, Tensor *, n_kept + 1);
    v->moving = NEWS(arena, Tensor *, n_kept + 1);
    heap_open(&v->heap, ir->memory);
    heap_reuse(&v->heap);
    *values = v;
    return OK;
}

static void keep_values(Values *v)
{
    heap_keep(&v->heap);
    for (int i = 0; i < v->n_graphs; i++)
        evaluation_keep(v->graphs[i]->evaluation);
    v->outlives = true;
}

static void close_values(Values *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n_graphs; i++)
        evaluation_close(v->graphs[i]->evaluation);
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
    v->moving = NEWS(v->arena, Tensor *, n);
    v->cap_moving = n;
}

static Status load(Values *v, const Executable *x, int *number)
{
    EvalOptions options = v->options;
    Loaded *l = NEW(v->arena, Loaded);
    const size_t n = x->graph->n_inputs;
    if (x->brief) {
        options.stop = options.stop_too = NULL;
        options.rounding = NULL;
    }
    *l = (Loaded){ .x = *x, .done = x->n_parts };
    l->reads = NEWS(v->arena, ValueAt, n + 1);
    l->operands = NEWS(v->arena, const Tensor *, n + 1);
    l->reader = NEWS(v->arena, int, v->n_kept + 1);
    grow_graphs(v);
    grow_moving(v, v->n_kept + graph_n_results(x->graph));
    l->evaluation = evaluation_open(x->graph, &options, v->arena, &v->heap);
    if (v->outlives)
        evaluation_keep(l->evaluation);
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
    const Node *n = graph_result(l->x.graph, at.at);
    return n ? evaluation_value(l->evaluation, n) : NULL;
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
        const int input = l->done < l->x.n_parts ? l->reader[kept] : 0;
        const Node *n = l->done < l->x.n_parts ? l->x.graph->inputs[input] : NULL;
        const bool reads = n && l->reads[input].graph == KEPT && l->reads[input].at == kept;
        if (reads && evaluation_value(l->evaluation, n))
            evaluation_put(l->evaluation, n, v->kept[kept]);
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
    evaluation_put(l->evaluation, graph_result(l->x.graph, to.at), value);
    if (value)
        tensor_drop(&v->heap, value);
}

static Status get(Values *v, ValueAt at, const Tensor **host)
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
        v->moving[i] = copy_of(&heap, host[i]);
    for (int i = 0; i < n; i++) {
        heap_take(&v->heap, v->moving[i]);
        set_value(v, to[i], v->moving[i]);
    }
    heap_close(&heap);
    return OK;
}

static Status put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
    if (how == PUT_LEND) {
        for (int i = 0; i < n; i++)
            lend(v, to[i].at, host[i]);
        return OK;
    }
    if (how == PUT_COPY && n > 1)
        return put_copies(v, n, to, host);
    for (int i = 0; i < n; i++) {
        if (how == PUT_GIVE)
            heap_take(&v->heap, host[i]);
        set_value(v, to[i], how == PUT_GIVE ? host[i] : copy_of(&v->heap, host[i]));
    }
    return OK;
}

static Status fill(Values *v, int kept, const Type *type, Payload *initial)
{
    keep_value(v, kept, tensor_alloc(&v->heap, type));
    Tensor *t = v->kept[kept];
    if (initial)
        return payload_read(initial, t, v->ir->diag);
    if (t->bytes)
        memset(t->data, 0, t->bytes);
    return OK;
}

static Status move(Values *v, int n, const ValueMove *moves)
{
    grow_moving(v, n);
    for (int i = 0; i < n; i++) {
        const Tensor *t = value_of(v, moves[i].from);
        v->moving[i] = !t ? NULL : t->refs >= LENT ? copy_of(&v->heap, t) : tensor_hold(t);
    }
    for (int i = 0; i < n; i++)
        set_value(v, moves[i].to, v->moving[i]);
    return OK;
}

/* ---- runs ---- */

static void let_input_read(Loaded *l, int input, ValueAt value)
{
    l->reads[input] = value;
    if (value.graph == KEPT && value.at >= 0)
        l->reader[value.at] = input;
}

static Status begin(Values *v, int graph, const EngineRun *o)
{
    Loaded *l = v->graphs[graph];
    for (size_t i = 0; i < l->x.graph->n_inputs; i++) {
        let_input_read(l, (int)i, o->inputs[i]);
        l->operands[i] = value_of(v, o->inputs[i]);
    }
    evaluation_set_seed(l->evaluation, o->seed);
    evaluation_begin(l->evaluation, o->step, l->operands);
    l->done = 0;
    return OK;
}

static Status bind(Values *v, int graph, int input, ValueAt value)
{
    Loaded *l = v->graphs[graph];
    let_input_read(l, input, value);
    evaluation_put(l->evaluation, l->x.graph->inputs[input], value_of(v, value));
    return OK;
}

static Status run(Values *v, int graph, int part)
{
    Loaded *l = v->graphs[graph];
    v->runs++;
    if (part < l->done)
        return OK;
    TRY(evaluation_until(l->evaluation, l->x.ends ? l->x.ends[part] : NULL));
    l->done = part + 1;
    return OK;
}

static void end(Values *v, int graph)
{
    Loaded *l = v->graphs[graph];
    evaluation_end(l->evaluation);
    l->done = l->x.n_parts;
}

static void stats(const Values *v, EngineStats *to)
{
    *to = (EngineStats){ .runs = v->runs, .graphs = v->n_graphs };
    for (int i = 0; i < v->n_kept; i++)
        to->bytes += v->kept[i] ? v->kept[i]->bytes : 0;
}

const Engine engine_reference = {
    .name = "reference",
    .open = open_values,
    .keep = keep_values,
    .load = load,
    .begin = begin,
    .bind = bind,
    .run = run,
    .end = end,
    .get = get,
    .put = put,
    .fill = fill,
    .move = move,
    .stats = stats,
    .close = close_values,
};
