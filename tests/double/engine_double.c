#include "double/engine_double.h"

#include <string.h>

#include "runtime/reference/reference.h"

DoublePlan double_plan;

enum { MOST_GRAPHS = 256 };

/* A value that was brought, and behind it its bytes. */
typedef struct Travelling {
    struct Travelling *next;
    Tensor tensor;
    int kept;
} Travelling;

/* A tensor that was got, and behind it its bytes. */
typedef struct Got {
    struct Got *next;
    Tensor tensor;
} Got;

struct Values {
    Values *inner;
    Ir *ir;
    Heap heap; /* of what was got, or is brought */
    Travelling *brought;
    Got *got;
    bool brief[MOST_GRAPHS];
};

static Status fails(const Values *v, const char *call)
{
    if (++double_plan.calls != double_plan.fail_at)
        return OK;
    return fail_as(v->ir->diag, DEVICE, NOWHERE, "the engine fails in %s", call);
}

/* What was got is not valid any more. */
static void forget_got(Values *v)
{
    while (v->got) {
        Got *got = v->got;
        v->got = got->next;
        memset(got->tensor.data, 0xa5, got->tensor.bytes);
        heap_free(&v->heap, got);
    }
}

static Status open_double(Ir *ir, const EngineOptions *options, int n_kept, Arena *arena, Values **values)
{
    Values *v = NEW(arena, Values);
    v->ir = ir;
    TRY(fails(v, "open"));
    heap_open(&v->heap, ir->memory);
    const Status status = engine_reference.open(ir, options, n_kept, arena, &v->inner);
    if (status != OK)
        heap_close(&v->heap);
    *values = v;
    return status;
}

static void keep(Values *v)
{
    heap_keep(&v->heap);
    engine_reference.keep(v->inner);
}

static Status load(Values *v, const Executable *x, int *number)
{
    TRY(fails(v, "load"));
    TRY(engine_reference.load(v->inner, x, number));
    BUG_IF(v->ir->memory, *number >= MOST_GRAPHS);
    v->brief[*number] = x->brief;
    return OK;
}

static void unload(Values *v, int graph)
{
    engine_reference.unload(v->inner, graph);
}

static Status begin(Values *v, int graph, const EngineRun *run)
{
    TRY(fails(v, "begin"));
    forget_got(v);
    return engine_reference.begin(v->inner, graph, run);
}

static bool programmed(const Values *v, int graph)
{
    return engine_reference.programmed(v->inner, graph);
}

static Status bind(Values *v, int graph, int input, ValueAt value)
{
    TRY(fails(v, "bind"));
    return engine_reference.bind(v->inner, graph, input, value);
}

static Status run(Values *v, int graph, int part)
{
    TRY(fails(v, "run"));
    forget_got(v);
    TRY(engine_reference.run(v->inner, graph, part));
    return !v->brief[graph] && ++double_plan.runs == double_plan.late_at ? INTERRUPTED : OK;
}

static void end(Values *v, int graph)
{
    engine_reference.end(v->inner, graph);
}

static Status get(Values *v, ValueAt value, const Tensor **host)
{
    const Tensor *t;
    TRY(fails(v, "get"));
    TRY(engine_reference.get(v->inner, value, &t));
    *host = t;
    if (!t || t->type->kind != TYPE_TENSOR)
        return OK;
    Got *got = heap_alloc(&v->heap, sizeof *got + 64 + t->bytes);
    got->next = v->got;
    v->got = got;
    got->tensor = *t;
    got->tensor.refs = 1;
    got->tensor.data = (char *)got + (sizeof *got + 63) / 64 * 64;
    if (t->bytes)
        memcpy(got->tensor.data, t->data, t->bytes);
    *host = &got->tensor;
    return OK;
}

static Status answer(Values *v, int graph)
{
    TRY(fails(v, "answer"));
    return engine_reference.answer(v->inner, graph);
}

static Status get_all(Values *v, int n, const ValueAt *values, const Tensor **host)
{
    for (int i = 0; i < n; i++)
        TRY(get(v, values[i], &host[i]));
    return OK;
}

/* The place of the value that was brought for a kept one, or where it would be. */
static Travelling **brought_for(Values *v, int kept)
{
    Travelling **t = &v->brought;
    while (*t && (*t)->kept != kept)
        t = &(*t)->next;
    return t;
}

static void drop_brought(Values *v, Travelling **at)
{
    Travelling *t = *at;
    *at = t->next;
    heap_free(&v->heap, t);
}

static Status bring(Values *v, int kept, const Tensor *host)
{
    Travelling **at = brought_for(v, kept);
    TRY(fails(v, "bring"));
    if (*at)
        drop_brought(v, at);
    Travelling *t = heap_alloc(&v->heap, sizeof *t + 64 + host->bytes);
    *t = (Travelling){ .next = v->brought, .kept = kept, .tensor = *host };
    t->tensor.refs = 1;
    t->tensor.data = (char *)t + (sizeof *t + 63) / 64 * 64;
    if (host->bytes)
        memcpy(t->tensor.data, host->data, host->bytes);
    v->brought = t;
    return OK;
}

static Status take(Values *v, int kept)
{
    Travelling **at = brought_for(v, kept);
    TRY(fails(v, "take"));
    BUG_IF(v->ir->memory, !*at);
    const ValueAt to = value_kept(kept);
    Tensor *list[] = { &(*at)->tensor };
    TRY(engine_reference.put(v->inner, 1, &to, list, PUT_COPY));
    drop_brought(v, at);
    return OK;
}

static Status put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
    TRY(fails(v, "put"));
    return engine_reference.put(v->inner, n, to, host, how);
}

static Status fill(Values *v, int kept, const Type *type, Payload *initial)
{
    TRY(fails(v, "fill"));
    return engine_reference.fill(v->inner, kept, type, initial);
}

static Status move(Values *v, int n, const ValueMove *moves)
{
    TRY(fails(v, "move"));
    return engine_reference.move(v->inner, n, moves);
}

static void stats(const Values *v, EngineStats *to)
{
    engine_reference.stats(v->inner, to);
}

static void close_double(Values *v)
{
    if (!v)
        return;
    engine_reference.close(v->inner);
    heap_close(&v->heap);
}

const Engine engine_double = {
    .name = "double",
    .open = open_double,
    .keep = keep,
    .load = load,
    .unload = unload,
    .begin = begin,
    .programmed = programmed,
    .bind = bind,
    .run = run,
    .answer = answer,
    .end = end,
    .get = get,
    .get_all = get_all,
    .put = put,
    .bring = bring,
    .take = take,
    .fill = fill,
    .move = move,
    .stats = stats,
    .close = close_double,
};
