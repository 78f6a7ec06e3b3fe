/* Constants in a narrower float type: rounded once, to nearest even, and refused where that would lose them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "frontends/onnx/write/narrowing.h"
#include "ir/store/blob.h"

enum { BLOCK = 4096 };

static void round_block(DType to, uint16_t *out, const float *values, size_t n)
{
    if (to == BF16)
        bf16_from_f32_block(out, values, n);
    else
        f16_from_f32_block(out, values, n);
}

/* ---- values ---- */

/* A payload that rounds another when it is read. */
typedef struct Rounded {
    Payload payload;
    Payload *from;
    Memory *memory;
} Rounded;

static Status read_rounded(Payload *self, void *out, size_t bytes, Diag *diag)
{
    const Rounded *r = self->owner;
    Heap heap;
    void *block;
    heap_open(&heap, r->memory);
    const float *values = payload_bytes(r->from, &heap, &block, diag);
    if (values)
        round_block(self->type->dtype, out, values, bytes / sizeof(uint16_t));
    heap_close(&heap);
    return values ? OK : INVALID;
}

static Payload *rounded(const Narrowing *x, Payload *from)
{
    Ir *ir = x->graph->ir;
    Rounded *r = NEW(x->graph->arena, Rounded);
    r->payload = (Payload){ .type = narrowed(&ir->types, from->type, x->options->to),
                            .arena = x->graph->arena,
                            .name = from->name,
                            .read = read_rounded,
                            .owner = r };
    r->from = from;
    r->memory = ir->memory;
    return &r->payload;
}

/* What rounding does to the values of a constant. */
typedef struct Loss {
    int64_t n, too_large, vanished, left; /* finite values that became infinite; others that became 0, or did not */
    float large, tiny;                    /* one of each */
    bool beyond_bf16;                     /* some of them are lost there too */
} Loss;

static void look_at_block(Loss *l, DType to, const float *values, size_t n)
{
    uint16_t codes[BLOCK];
    float back[BLOCK];
    round_block(to, codes, values, n);
    if (to == BF16)
        bf16_to_f32_block(back, codes, n);
    else
        f16_to_f32_block(back, codes, n);
    for (size_t i = 0; i < n; i++) {
        const float wide = bf16_to_f32(bf16_from_f32(values[i]));
        l->beyond_bf16 |= (isinf(wide) && !isinf(values[i])) || (wide == 0 && values[i] != 0);
        if (isinf(back[i]) && !isinf(values[i])) {
            l->large = l->too_large++ ? l->large : values[i];
        } else if (back[i] == 0 && values[i] != 0) {
            l->tiny = l->vanished++ ? l->tiny : values[i];
        } else {
            l->left += values[i] != 0;
        }
    }
    l->n += (int64_t)n;
}

static Status look_at(const Narrowing *x, Payload *p, Loss *l)
{
    Heap heap;
    void *block;
    size_t bytes = 0;
    heap_open(&heap, x->graph->ir->memory);
    const float *values = type_bytes(p->type, &bytes) ? payload_bytes(p, &heap, &block, x->diag) : NULL;
    for (size_t at = 0, n = bytes / sizeof(float); values && at < n; at += BLOCK)
        look_at_block(l, x->options->to, values + at, n - at < BLOCK ? n - at : BLOCK);
    heap_close(&heap);
    return values ? OK : payload_failed(p, x->diag, NOWHERE);
}

/* ---- complaints ---- */

typedef struct Losses {
    const char **list;
    size_t n, cap;
    bool beyond_bf16;
    int64_t weights, vanished; /* of constants that survive as a whole */
} Losses;

/* What divides may not become 0. */
static bool divides(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user->op == OP_div && u == &u->user->in[1])
            return true;
    return false;
}

/* A few small ones among many are rounding; a constant that is gone, or infinite, is another one. */
static void note_loss(const Narrowing *x, Losses *all, const Node *n, const Loss *l)
{
    const char *name = n->name ? n->name : node_place(n).where, *type = x->options->to == BF16 ? "bf16" : "fp16";
    all->weights += l->n;
    if (!l->too_large && (!l->vanished || (l->left && !divides(n)))) {
        all->vanished += l->vanished;
        return;
    }
    all->beyond_bf16 |= l->beyond_bf16;
    GROW(x->arena, all->list, all->n, all->cap);
    all->list[all->n++] =
        l->too_large ? arena_printf(x->arena, "%s: %g is beyond %s and becomes infinite (%" PRId64 " of %" PRId64 ")",
                                    name, (double)l->large, type, l->too_large, l->n)
                     : arena_printf(x->arena, "%s: %g is too small for %s and becomes 0 (%" PRId64 " of %" PRId64 ")",
                                    name, (double)l->tiny, type, l->vanished, l->n);
}

static Status tell_losses(const Narrowing *x, const Losses *all)
{
    const bool f16 = x->options->to == F16, rounds = x->options->rounds;
    const char *type = f16 ? "fp16" : "bf16";
    if (all->vanished) {
        Message *note = message_new(x->diag, SEVERITY_NOTE, OK, NOWHERE,
                                    "%" PRId64 " of %" PRId64 " constant values are below the smallest %s and become 0",
                                    all->vanished, all->weights, type);
        (void)message_send(note);
    }
    if (!all->n)
        return OK;
    Message *m = message_new(x->diag, rounds ? SEVERITY_WARNING : SEVERITY_ERROR, rounds ? OK : UNSUPPORTED, NOWHERE,
                             "%zu constant%s would not survive as %s", all->n, all->n == 1 ? "" : "s", type);
    for (size_t i = 0; i < all->n; i++)
        message_at(m, "%s", all->list[i]);
    if (!rounds && f16 && !all->beyond_bf16)
        message_try(m, "--dtype bf16");
    if (!rounds)
        message_try(m, "--round-constants, which writes them as they are rounded");
    return message_send(m);
}

/* ---- readers ---- */

static int slot_of(const Use *u)
{
    return (int)(u - u->user->in);
}

/* Where readers differ the wide ones get a constant of their own. */
static void split(Narrowing *x, Node *n)
{
    const char *name = n->name ? arena_printf(x->arena, "%s.f32", n->name) : NULL;
    Node *wide = graph_insert(n->graph, n, n->op, n->type, 0, NULL);
    wide->attr = n->attr;
    wide->src = n->src;
    wide->flags = n->flags;
    wide->label = n->label;
    wide->name = name ? name_of(&x->graph->ir->names, name, strlen(name)) : NULL;
    for (Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        if (!operand_narrows(x, u->user, slot_of(u)))
            node_set_in(u->user, slot_of(u), wide);
    }
}

static Status narrow_constant(Narrowing *x, Node *n, Losses *all, Map *done)
{
    int narrow = 0, wide = 0;
    bool fresh;
    Loss loss = { 0 };
    Payload *from = node_payload(n);
    for (const Use *u = n->uses; u; u = u->next) {
        const bool narrows = operand_narrows(x, u->user, slot_of(u));
        narrow += narrows;
        wide += !narrows;
    }
    if (!narrow || !from)
        return OK;
    TRY(look_at(x, from, &loss));
    note_loss(x, all, n, &loss);
    if (wide)
        split(x, n);
    MapEntry *e = map_put_u64(done, (uintptr_t)from, &fresh); /* what was shared stays so */
    if (fresh)
        e->value.p = rounded(x, from);
    ValueAttr *attr = NEW(n->graph->arena, ValueAttr);
    attr->value = e->value.p;
    n->attr = attr;
    n->type = attr->value->type;
    return OK;
}

Status narrow_constants(Narrowing *x)
{
    Losses all = { 0 };
    Map done;
    map_open(&done, x->arena);
    for (Node *n = walk_first(x->graph), *next; n; n = next) {
        next = walk_next(x->graph, n);
        if (n->op != OP_const && n->op != OP_param)
            continue;
        if (!n->uses)
            node_remove(n);
        else if (holds_f32(n->type))
            TRY(narrow_constant(x, n, &all, &done));
    }
    return tell_losses(x, &all);
}

Payload *narrow_payload(Narrowing *x, Payload *p)
{
    Losses all = { 0 };
    Loss loss = { 0 };
    if (look_at(x, p, &loss) != OK)
        return NULL;
    note_loss(x, &all, x->graph->ret, &loss);
    return tell_losses(x, &all) == OK ? rounded(x, p) : NULL;
}
