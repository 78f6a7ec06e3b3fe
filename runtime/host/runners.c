#include "runtime/host/runners.h"

/* After so many lists of types in a row that have no program, of those that come it is asked for one in 16, then in 32, and
 * in 1024 at last: it may be that they were too large, but most likely none has one. */
enum { REFUSALS = 4, RAREST = 10 };

/* What was made for operands of some types. */
typedef struct Typed {
    const Type **types;  /* null: nothing */
    GraphRunner *runner; /* null: there is no program for them */
    uint64_t wanted;     /* the last time */
    Arena arena;         /* the program, and what runs it */
    Heap heap;           /* values inside of calls */
} Typed;

struct Runners {
    Executable x;
    const EngineOptions *options;
    RunnerMaker *maker;
    RunnerRoom *room;
    Memory *memory;
    Typed typed[RUNNERS_KEPT];
    uint64_t times, made;
    int refusals, skips; /* in a row; so many that come are not asked for */
    bool told, outlives; /* why there is none; its arenas are past guarded() */
};

/* ---- the room ---- */

static void open_calls(RunnerRoom *room, Memory *memory)
{
    arena_open(&room->calls, memory);
    arena_reuse(&room->calls);
    if (room->outlives)
        arena_keep(&room->calls);
}

void runner_room_open(RunnerRoom *room, Memory *memory, Space *space)
{
    *room = (RunnerRoom){ .space = space };
    open_calls(room, memory);
    heap_open(&room->heap, memory);
}

void runner_room_keep(RunnerRoom *room)
{
    arena_keep(&room->calls);
    heap_keep(&room->heap);
    room->outlives = true;
}

static void empty(RunnerRoom *room, int block)
{
    if (!room->space)
        heap_free(&room->heap, room->block[block].at);
    else if (room->block[block].at)
        room->space->does->give(room->space, room->block[block].at);
    room->block[block].at = NULL;
    room->block[block].bytes = 0;
}

void runner_room_close(RunnerRoom *room)
{
    for (int i = 0; i < 2 && room->space; i++)
        empty(room, i);
    heap_close(&room->heap);
    arena_close(&room->calls);
}

void *runner_room(RunnerRoom *room, int block, size_t bytes)
{
    if (room->block[block].bytes >= bytes)
        return room->block[block].at;
    empty(room, block); /* a jump leaves none */
    room->block[block].at = room->space ? room->space->does->take(room->space, bytes) : heap_alloc(&room->heap, bytes);
    room->block[block].bytes = bytes;
    return room->block[block].at;
}

void runner_room_empty(RunnerRoom *room)
{
    Memory *memory = room->heap.memory;
    for (int i = 0; i < 2; i++)
        empty(room, i);
    arena_close(&room->calls);
    open_calls(room, memory);
}

/* ---- the runners ---- */

Runners *runners_open(const Executable *x, const EngineOptions *options, RunnerMaker *maker, RunnerRoom *room,
                      Arena *arena)
{
    Runners *r = NEW(arena, Runners);
    *r = (Runners){ .x = *x, .options = options, .maker = maker, .room = room, .memory = x->graph->ir->memory };
    return r;
}

static void keep(Typed *t)
{
    arena_keep(&t->arena);
    heap_keep(&t->heap);
    runner_keep(t->runner);
}

void runners_keep(Runners *r)
{
    for (int i = 0; r && i < RUNNERS_KEPT; i++)
        if (r->typed[i].types)
            keep(&r->typed[i]);
    if (r)
        r->outlives = true;
}

static void drop(Typed *t)
{
    if (!t->types)
        return;
    t->types = NULL;
    runner_close(t->runner);
    heap_close(&t->heap);
    arena_close(&t->arena);
}

void runners_close(Runners *r)
{
    for (int i = 0; r && i < RUNNERS_KEPT; i++)
        drop(&r->typed[i]);
}

uint64_t runners_made(const Runners *r)
{
    return r ? r->made : 0;
}

static bool is_for(const Typed *t, const Graph *g, const Tensor *const *operands)
{
    for (size_t i = 0; i < g->n_inputs && t->types; i++)
        if (t->types[i] != (operands[i] ? operands[i]->type : NULL))
            return false;
    return t->types != NULL;
}

/* Where nothing is, or what was not wanted for longest.  The room is taken anew: it may have been that one's alone. */
static Typed *make_place(Runners *r)
{
    Typed *oldest = &r->typed[0];
    for (int i = 0; i < RUNNERS_KEPT; i++) {
        if (!r->typed[i].types)
            return &r->typed[i];
        if (r->typed[i].wanted < oldest->wanted)
            oldest = &r->typed[i];
    }
    drop(oldest);
    runner_room_empty(r->room);
    return oldest;
}

static const Type **types_of(const Graph *g, const Tensor *const *operands, Arena *arena)
{
    const Type **types = NEWS(arena, const Type *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++)
        types[i] = operands[i] ? operands[i]->type : NULL;
    return types;
}

/* Until all of it is there a jump takes what there is, and the place is empty then. */
static Typed *make(Runners *r, const Tensor *const *operands)
{
    Typed *t = make_place(r);
    Executable x = r->x;
    *t = (Typed){ .types = NULL };
    arena_open(&t->arena, r->memory);
    heap_open(&t->heap, r->memory);
    heap_reuse(&t->heap);
    const Type **types = types_of(x.graph, operands, &t->arena);
    const ArenaMark mark = arena_mark(&t->arena);
    x.program = x.programs(x.maker, x.graph, types, !r->told, &t->arena);
    t->runner = x.program ? r->maker(&x, r->options, r->room, &t->arena, &t->heap) : NULL;
    if (!t->runner)
        arena_reset(&t->arena, mark);
    r->refusals = t->runner ? 0 : r->refusals + 1;
    r->skips = r->refusals < REFUSALS ? 0 : 1 << (r->refusals < RAREST ? r->refusals : RAREST);
    r->told = r->told || !t->runner;
    r->made += t->runner != NULL;
    t->types = types;
    if (r->outlives)
        keep(t);
    return t;
}

GraphRunner *runners_for(Runners *r, const Tensor *const *operands)
{
    Typed *t = NULL;
    for (int i = 0; i < RUNNERS_KEPT && !t; i++)
        if (is_for(&r->typed[i], r->x.graph, operands))
            t = &r->typed[i];
    if (!t && r->skips) {
        r->skips--;
        return NULL;
    }
    if (!t)
        t = make(r, operands);
    t->wanted = ++r->times;
    return t->runner;
}
