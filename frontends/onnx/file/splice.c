#include "frontends/onnx/file/splice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- cuts ---- */

void cuts_open(Cuts *c, Arena *arena)
{
    *c = (Cuts){ .arena = arena };
    GROW(arena, c->level, c->n_levels, c->cap_levels);
    c->level[c->n_levels++] = (CutLevel){ 0 };
}

Cut *cuts_add(Cuts *c, uint64_t at, uint64_t length, const uint8_t *head, size_t n_head, const Edit *edit)
{
    GROW(c->arena, c->cut, c->n, c->cap);
    Cut *cut = &c->cut[c->n++];

    BUG_IF(c->arena->memory, n_head > CUT_HEAD);
    *cut = (Cut){ .at = at, .length = length, .edit = edit, .n_head = (uint8_t)n_head };
    if (n_head)
        memcpy(cut->head, head, n_head);
    c->level[c->n_levels - 1].change += n_head + (edit ? edit->n : 0) - length;
    return cut;
}

void cuts_extend(Cuts *c, uint64_t more)
{
    c->cut[c->n - 1].length += more;
    c->level[c->n_levels - 1].change -= more;
}

static uint64_t prefix_at(const WireItem *item)
{
    return item->key + (uint64_t)varint_size((uint64_t)item->number << 3 | item->wire);
}

/* The slot is taken now, so that cuts stay in file order, and filled in when the size is known. */
void cuts_enter(Cuts *c, const WireItem *item, const uint8_t *extra, size_t n_extra)
{
    GROW(c->arena, c->cut, c->n, c->cap);
    GROW(c->arena, c->level, c->n_levels, c->cap_levels);
    Cut *cut = &c->cut[c->n];

    BUG_IF(c->arena->memory, n_extra > CUT_HEAD - 10);
    *cut = (Cut){ .at = prefix_at(item), .length = item->at - prefix_at(item), .n_head = (uint8_t)n_extra };
    if (n_extra)
        memcpy(cut->head, extra, n_extra);
    c->level[c->n_levels++] =
        (CutLevel){ .body = item->at, .change = n_extra, .slot = c->n++, .n_extra = (uint8_t)n_extra };
}

void cuts_leave(Cuts *c, const WireItem *item)
{
    CutLevel level = c->level[--c->n_levels];
    Cut *cut = &c->cut[level.slot];
    uint64_t size = item->end - item->at + level.change;
    int n = varint_size(size);

    if (level.slot == c->n - 1 && level.n_extra == 0) { /* nothing was cut inside */
        c->n--;
        return;
    }
    memmove(cut->head + n, cut->head, level.n_extra);
    varint_write(cut->head, size);
    cut->n_head = (uint8_t)(n + level.n_extra);
    c->level[c->n_levels - 1].change += level.change + (uint64_t)n - cut->length;
}

uint64_t cuts_size(const Cuts *c, uint64_t size)
{
    return size + c->level[0].change;
}

static Status copy_range(Window *w, uint64_t from, uint64_t to, const Sink *sink)
{
    const uint8_t *p;

    if (w->source->bytes && from < to)
        return sink->put(sink->user, w->source->bytes + from, (size_t)(to - from));
    while (from < to) {
        size_t n = to - from < WINDOW_BYTES ? (size_t)(to - from) : WINDOW_BYTES;
        TRY(window_at(w, from, n, &p));
        TRY(sink->put(sink->user, p, n));
        from += n;
    }
    return OK;
}

/* A sink that counts what an edit's writer puts. */
typedef struct Counter {
    const Sink *sink;
    uint64_t n;
} Counter;

static Status count_and_put(void *user, const void *bytes, size_t n)
{
    Counter *c = user;

    c->n += n;
    return c->sink->put(c->sink->user, bytes, n);
}

static Status write_edit(const Edit *e, Diag *diag, const Sink *sink)
{
    Counter counter = { .sink = sink };

    if (e->n == 0)
        return OK;
    if (e->bytes)
        return sink->put(sink->user, e->bytes, (size_t)e->n);
    TRY(e->write(e->user, &(Sink){ count_and_put, &counter }));
    if (counter.n != e->n)
        return fail_as(diag, INTERNAL, NOWHERE, "%" PRIu64 " bytes were announced and %" PRIu64 " written", e->n,
                       counter.n);
    return OK;
}

Status cuts_write(const Cuts *c, Source *source, Diag *diag, const Sink *sink)
{
    uint64_t at = 0;
    Window window;

    window_open(&window, source, diag, c->arena);
    for (size_t i = 0; i < c->n; i++) {
        const Cut *cut = &c->cut[i];
        BUG_IF(c->arena->memory, cut->at < at);
        TRY(copy_range(&window, at, cut->at, sink));
        if (cut->n_head)
            TRY(sink->put(sink->user, cut->head, cut->n_head));
        if (cut->edit)
            TRY(write_edit(cut->edit, diag, sink));
        at = cut->at + cut->length;
    }
    return copy_range(&window, at, source->size, sink);
}

/* ---- edits ---- */

Edit edit_value(uint64_t within, uint64_t offset, uint64_t length, uint64_t n)
{
    uint64_t prefix = (uint64_t)varint_size(length); /* lengths that are not minimal were refused */
    Edit e = { .within = within, .offset = offset - prefix, .length = length + prefix, .n = n };

    e.n_head = (uint8_t)varint_write(e.head, n);
    return e;
}

/* Edits are matched to the messages around them while a walk goes through those messages and no others. */
typedef struct Match {
    Cuts cuts;
    const Edit **edit;
    size_t next, n;
} Match;

static uint64_t body_of(const Match *m)
{
    return m->cuts.level[m->cuts.n_levels - 1].body;
}

/* Takes the edits of the current message up to `offset`. */
static void take(Match *m, uint64_t offset)
{
    for (; m->next < m->n; m->next++) {
        const Edit *e = m->edit[m->next];
        if (e->within != body_of(m) || e->offset > offset)
            return;
        cuts_add(&m->cuts, e->offset, e->length, e->head, e->n_head, e);
    }
}

static Status match_leaf(void *user, const WireItem *item)
{
    take(user, item->key);
    return OK;
}

/* Bodies of different messages begin at different offsets, and no body outside [at, end] begins at either end: a
 * message holds the next edit exactly if that edit's `within` lies in that closed range. */
static Status match_enter(void *user, const WireItem *item, bool *skip)
{
    Match *m = user;

    take(m, item->key);
    *skip = m->next == m->n || m->edit[m->next]->within < item->at || m->edit[m->next]->within > item->end;
    if (!*skip)
        cuts_enter(&m->cuts, item, NULL, 0);
    return OK;
}

static Status match_leave(void *user, const WireItem *item)
{
    take(user, item->end);
    cuts_leave(&((Match *)user)->cuts, item);
    return OK;
}

/* By place; at one place what belongs further inside comes first, then the order given. */
static int by_place(const void *p, const void *q)
{
    const Edit *a = *(const Edit *const *)p, *b = *(const Edit *const *)q;

    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->within != b->within)
        return a->within > b->within ? -1 : 1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1; /* what is put before a field, before what replaces it */
    return a < b ? -1 : a > b;
}

static Status sort_edits(const Splice *s, Match *m)
{
    uint64_t end = 0;

    m->n = s->n_edits;
    m->edit = NEWS(s->arena, const Edit *, m->n);
    for (size_t i = 0; i < m->n; i++)
        m->edit[i] = &s->edits[i];
    if (m->n)
        qsort(m->edit, m->n, sizeof *m->edit, by_place);
    for (size_t i = 0; i < m->n; i++) {
        const Edit *e = m->edit[i];
        if (e->offset < end || e->offset > s->source->size || e->length > s->source->size - e->offset)
            return fail_as(s->diag, INTERNAL, (Place){ .file = s->source->name, .byte = (int64_t)e->offset },
                           "an edit overlaps another, or the end of the file");
        end = e->offset + e->length;
    }
    return OK;
}

static Status plan(const Splice *s, Match *m)
{
    *m = (Match){ 0 };
    cuts_open(&m->cuts, s->arena);
    TRY(source_unchanged(s->source, s->diag));
    TRY(sort_edits(s, m));
    if (m->n) {
        TRY(wire_walk(&(Wire){ .source = s->source,
                               .type = s->type,
                               .limits = s->limits,
                               .diag = s->diag,
                               .arena = s->arena,
                               .visitor = { match_leaf, match_enter, match_leave, m } }));
        take(m, s->source->size);
    }
    if (m->next < m->n)
        return fail_as(s->diag, INTERNAL, (Place){ .file = s->source->name, .byte = (int64_t)m->edit[m->next]->offset },
                       "an edit lies in no message");
    return OK;
}

Status splice_write(const Splice *s, const Sink *sink, uint64_t *size)
{
    Match m;

    TRY(plan(s, &m));
    TRY(cuts_write(&m.cuts, s->source, s->diag, sink));
    if (size)
        *size = cuts_size(&m.cuts, s->source->size);
    return source_unchanged(s->source, s->diag);
}

Status splice_size(const Splice *s, uint64_t *size)
{
    Match m;

    TRY(plan(s, &m));
    *size = cuts_size(&m.cuts, s->source->size);
    return OK;
}
