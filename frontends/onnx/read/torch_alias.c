#include "frontends/onnx/read/torch_alias.h"

#include <stdlib.h>
#include <string.h>

/* All names of one tensor. */
typedef struct Family {
    TorchTensor **list; /* in the end in the order of the module */
    size_t n, cap;
    Map tables; /* modules that look something up in it */
} Family;

typedef struct Finding {
    const TorchKnown *known;
    Map families; /* TorchTensor that the calls name -> Family */
    Map members;  /* names that are in one */
    Map called;   /* modules, and what they stand in */
} Finding;

static Str module_of(const TorchTensor *x)
{
    const char *leaf = torch_leaf(x->target);
    return (Str){ x->target, leaf > x->target ? (size_t)(leaf - x->target) - 1 : 0 };
}

static Str parent_of(Str module)
{
    size_t n = module.n;
    while (n && module.p[n - 1] != '.')
        n--;
    return (Str){ module.p, n ? n - 1 : 0 };
}

static bool is_within(Str module, Str outer)
{
    return !outer.n || (module.n > outer.n && memcmp(module.p, outer.p, outer.n) == 0 && module.p[outer.n] == '.');
}

/* ---- what modules say that read it ---- */

static Family *family_of(Finding *f, TorchTensor *x)
{
    bool fresh;
    MapEntry *e = map_put_u64(&f->families, (uintptr_t)x, &fresh);
    if (!fresh)
        return e->value.p;
    Family *family = e->value.p = NEW(f->known->arena, Family);
    map_open(&family->tables, f->known->arena);
    GROW(f->known->arena, family->list, family->n, family->cap);
    family->list[family->n++] = x;
    map_put(&f->members, x->target, NULL);
    return family;
}

static void add_member(Finding *f, Family *family, TorchTensor *x)
{
    bool fresh;
    map_put(&f->members, x->target, &fresh);
    if (!fresh)
        return;
    GROW(f->known->arena, family->list, family->n, family->cap);
    family->list[family->n++] = x;
}

/* A module that reads a tensor of another one has it under a name of its own. */
static void heed_reader(Finding *f, const TorchSlot *s)
{
    const Str module = torch_module(s->read.node);
    if (!s->tensor || !module.n)
        return;
    const char *name = arena_printf(f->known->arena, "%.*s.%s", STR_ARG(module), torch_leaf(s->tensor->target));
    const MapEntry *e = map_find(f->known->targets, name);
    TorchTensor *other = e ? e->value.p : NULL;
    if (!other || (other != s->tensor && other->held))
        return;
    Family *family = family_of(f, s->tensor);
    add_member(f, family, other);
    if (str_is(str_of(s->read.node->op_type), "Gather"))
        map_put_n(&family->tables, module.p, module.n, NULL);
}

static void find_called(Finding *f)
{
    const Onnx__GraphProto *g = f->known->graph;
    for (size_t i = 0; i < g->n_node; i++)
        for (Str m = torch_module(g->node[i]); m.n; m = parent_of(m))
            map_put_n(&f->called, m.p, m.n, NULL);
}

/* ---- the module that is handed to others ---- */

/* Whether a module has no tensor but this one. */
static bool is_alone(const Finding *f, const TorchTensor *x)
{
    const Str module = module_of(x);
    const Map *targets = f->known->targets;
    for (size_t i = 0; i < targets->n; i++) {
        const TorchTensor *other = targets->entries[i].value.cp;
        if (other != x && is_within((Str){ other->target, strlen(other->target) }, module))
            return false;
    }
    return true;
}

static bool stands_over(const TorchTensor *x, const Family *family)
{
    const Str parent = parent_of(module_of(x));
    for (size_t i = 0; i < family->n; i++) {
        const TorchTensor *other = family->list[i];
        if (other->order <= x->order || strcmp(torch_leaf(other->target), torch_leaf(x->target)) != 0 ||
            !is_within(module_of(other), parent))
            return false;
    }
    return true;
}

/* A table that two modules look things up in was made outside of both; where one module that is never called stands over
 * them and has nothing but such a tensor, it is the one that they were given. */
static void find_owner(Finding *f, Family *family)
{
    TorchTensor *owner = NULL;
    const Map *targets = f->known->targets;
    if (family->tables.n < 2)
        return;
    for (size_t i = 0; i < targets->n; i++) {
        TorchTensor *x = targets->entries[i].value.p;
        const Str module = module_of(x);
        if (!x->parameter || x->held || !module.n || map_find(&f->members, x->target) ||
            map_find_n(&f->called, module.p, module.n) || !stands_over(x, family) || !is_alone(f, x))
            continue;
        if (owner)
            return;
        owner = x;
    }
    if (owner)
        add_member(f, family, owner);
}

/* ---- their order ---- */

static int by_order(const void *a, const void *b)
{
    const TorchTensor *x = *(TorchTensor *const *)a, *y = *(TorchTensor *const *)b;
    return (x->order > y->order) - (x->order < y->order);
}

static void settle(const Family *family, Map *aliases)
{
    if (family->n < 2)
        return;
    qsort(family->list, family->n, sizeof(TorchTensor *), by_order);
    family->list[0]->held = true;
    for (size_t i = 1; i < family->n; i++)
        map_put(aliases, family->list[i]->target, NULL)->value.cp = family->list[0]->target;
}

void torch_aliases(const TorchKnown *k, Map *aliases)
{
    Finding f = { .known = k };
    map_open(&f.families, k->arena);
    map_open(&f.members, k->arena);
    map_open(&f.called, k->arena);
    map_open(aliases, k->arena);
    for (size_t i = 0; i < k->initials->n; i++) {
        const TorchInitial *x = k->initials->entries[i].value.cp;
        for (const TorchSlot *s = x->slots; s; s = s->next_of_initial)
            heed_reader(&f, s);
    }
    find_called(&f);
    for (size_t i = 0; i < f.families.n; i++)
        find_owner(&f, f.families.entries[i].value.p);
    for (size_t i = 0; i < f.families.n; i++)
        settle(f.families.entries[i].value.p, aliases);
}
