#include "passes/lower/make_again.h"

typedef struct Again {
    PassRun *run;
    const Timeline *t;
    const Borders *borders;
    int *next,
        *next_kept;     /* by place of the forward side: the first border behind the call, and the first that is kept */
    bool *wanted;       /* by place: it is made again in its block */
    bool *wanted_first; /* it is made again for the borders of its segment */
    Node **first, **clone; /* what was made again so */
} Again;

/* Calls that are made again together: those wanted behind place `from` up to place `to`. */
typedef struct Stretch {
    int from, to;
    const bool *wanted;
    Node **clone;
    int soonest;    /* the place of who reads any of it first; */
    Node *reader;   /* that, before which they are made, */
    Node *until;    /* and the last call before it that runs by itself */
    Node **outside; /* what they read that is there, as it is read */
    Facts numbers;  /* int, by node: its number there + 1 */
    int n_outside;
} Stretch;

/* ---- what is there ---- */

static bool crosses(const Again *a, const int *next, int place)
{
    return next[place] < a->t->at[place].last_forward;
}

/* Whether a value is kept through the step. */
static bool is_kept(const Again *a, int place)
{
    return a->t->at[place].stays || crosses(a, a->next_kept, place);
}

/* Whether it is there, kept or made again with the borders of its segment, when its block is made again. */
static bool is_there(const Again *a, int place)
{
    return is_kept(a, place) || crosses(a, a->next, place);
}

static void find_next(Again *a)
{
    const int n = a->t->n_forward;
    a->next = NEWS(a->t->arena, int, n + 1);
    a->next_kept = NEWS(a->t->arena, int, n + 1);
    int next = n, kept = n, border = a->borders->n - 1;
    for (int i = n - 1; i >= 0; i--) {
        for (; border >= 0 && a->borders->at[border].place >= i; border--) {
            next = a->borders->at[border].place;
            kept = a->borders->at[border].is_kept ? next : kept;
        }
        a->next[i] = next;
        a->next_kept[i] = kept;
    }
}

/* ---- what is wanted ---- */

static bool is_reader_back(const Again *a, const Use *u)
{
    const int place = node_is_return(u->user) ? NEVER : timeline_place(a->t, u->user);
    return place != NEVER && a->t->at[place].part == STEP_BACKWARD;
}

/* The first call of the backward side that reads the value itself; the end: none does. */
static int first_reader(const Again *a, int place)
{
    int first = a->t->n;
    for (const Use *u = a->t->at[place].call->uses; u; u = u->next)
        if (is_reader_back(a, u) && timeline_place(a->t, u->user) < first)
            first = timeline_place(a->t, u->user);
    return first;
}

/* What a block is made again of, from its end to its beginning; what its segment's borders have to give is wanted of them.
 * Returns the first reader. */
static int want_block(Again *a, int from, int to)
{
    int first = a->t->n;
    for (int i = to; i > from; i--) {
        const int reader = is_kept(a, i) ? a->t->n : first_reader(a, i);
        bool *wanted = is_there(a, i) ? &a->wanted_first[i] : &a->wanted[i];
        *wanted = *wanted || reader < a->t->n;
        first = reader < first ? reader : first;
        for (int k = 0; k < a->t->at[i].call->n_in && a->wanted[i]; k++) {
            const int of = in(a->t->at[i].call, k) ? timeline_place(a->t, in(a->t->at[i].call, k)) : NEVER;
            if (of != NEVER && !is_kept(a, of))
                (is_there(a, of) ? a->wanted_first : a->wanted)[of] = true;
        }
    }
    return first;
}

static void want_borders(Again *a, int from, int to)
{
    for (int i = to; i > from; i--)
        for (int k = 0; k < a->t->at[i].call->n_in && a->wanted_first[i]; k++) {
            const int of = in(a->t->at[i].call, k) ? timeline_place(a->t, in(a->t->at[i].call, k)) : NEVER;
            if (of != NEVER && !is_kept(a, of))
                a->wanted_first[of] = true;
        }
}

/* ---- making ---- */

/* The value that a clone reads for an operand; of what is there, as it stands. */
static Node *there(const Again *a, const Stretch *s, Node *def)
{
    const int of = timeline_place(a->t, def);
    if (of == NEVER || s->clone == a->first)
        return def;
    return a->first[of] ? a->first[of] : def;
}

static bool is_made_here(const Again *a, const Stretch *s, const Node *def)
{
    const int of = timeline_place(a->t, def);
    return of != NEVER && of > s->from && s->wanted[of];
}

/* Constants are what they are wherever they stand. */
static void find_outside(const Again *a, Stretch *s)
{
    size_t n = 0, cap = 0;
    s->numbers = facts_open(a->t->arena, sizeof(int));
    for (int i = s->from + 1; i <= s->to; i++)
        for (int k = 0; k < a->t->at[i].call->n_in && s->wanted[i]; k++) {
            Node *def = in(a->t->at[i].call, k);
            if (!def || def->op == OP_const || def->op == OP_param || is_made_here(a, s, def))
                continue;
            int *number = fact(&s->numbers, def);
            if (*number)
                continue;
            GROW(a->t->arena, s->outside, n, cap);
            s->outside[n++] = there(a, s, def);
            *number = (int)n;
        }
    s->n_outside = (int)n;
}

/* The last call before a place that runs by itself: once it ran, what the backward side did before is done. */
static Node *last_before(const Again *a, int place)
{
    for (int i = place - 1; i >= a->t->n_forward; i--) {
        const Moment *m = &a->t->at[i];
        if (m->part == STEP_BACKWARD && m->alone && m->bytes)
            return m->call;
    }
    return NULL;
}

/* Who reads these values may not run before another was made: they are read out of a tuple with it, which costs nothing and
 * which no pass looks through. */
static void hold(const Again *a, Node **values, int n, Node *until, Node *reader)
{
    Build b = { .graph = a->t->graph, .before = reader, .flags = NODE_OURS | NODE_BACKWARD };
    if (!until || !n)
        return;
    Node **held = NEWS(a->t->arena, Node *, n + 1);
    for (int i = 0; i < n; i++)
        held[i] = values[i];
    held[n] = until;
    Node *holder = build_tuple(&b, n + 1, held);
    for (int i = 0; i < n; i++)
        values[i] = build_part(&b, holder, i);
}

static Node *operand(const Again *a, const Stretch *s, Node *def)
{
    const int *number = def ? fact_known(&s->numbers, def) : NULL;
    if (number && *number)
        return s->outside[*number - 1];
    return def && is_made_here(a, s, def) ? s->clone[timeline_place(a->t, def)] : def;
}

static void make(const Again *a, const Stretch *s, int place)
{
    Node *n = a->t->at[place].call;
    Build b = { .graph = n->graph, .before = s->reader, .src = n->src, .flags = NODE_OURS | NODE_BACKWARD };
    Node **ins = NEWS(a->t->arena, Node *, n->n_in + 1);
    b.label = n->label;
    for (int i = 0; i < n->n_in; i++)
        ins[i] = operand(a, s, in(n, i));
    s->clone[place] = build_typed(&b, n->op, n->attr, n->n_in, ins, n->type);
    a->run->changes++;
}

static bool has_fusible_reader(const Again *a, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (is_reader_back(a, u) && !a->t->at[timeline_place(a->t, u->user)].alone)
            return true;
    return false;
}

/* Fused with what is made again, who reads it would make what it makes of it as early. */
static void read_clone(const Again *a, const Stretch *s, int place)
{
    const int first = first_reader(a, place);
    Node *n = a->t->at[place].call, *clone = s->clone[place], *until = last_before(a, first);
    if (first == a->t->n)
        return;
    if (until != s->until && has_fusible_reader(a, n))
        hold(a, &clone, 1, until, a->t->at[first].call);
    for (Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        if (is_reader_back(a, u))
            node_set_in(u->user, (int)(u - u->user->in), clone);
    }
}

static void make_stretch(const Again *a, Stretch *s)
{
    s->reader = a->t->at[s->soonest].call;
    s->until = last_before(a, s->soonest);
    find_outside(a, s);
    hold(a, s->outside, s->n_outside, s->until, s->reader);
    for (int i = s->from + 1; i <= s->to; i++)
        if (s->wanted[i])
            make(a, s, i);
    for (int i = s->from + 1; i <= s->to; i++) /* on the way to borders more is made than is alive there */
        if (s->wanted[i] && (s->clone == a->clone || is_there(a, i)))
            read_clone(a, s, i);
}

/* ---- blocks ---- */

static int begin_of(const Again *a, int border, int from, int first_border)
{
    return border > first_border ? a->borders->at[border - 1].place : from;
}

/* Border b ends a segment if it is kept; what is behind the last one is there yet. */
static void make_segment(Again *a, int from, int first_border, int last_border)
{
    int *readers = NEWS(a->t->arena, int, last_border - first_border + 1), soonest = a->t->n;
    for (int b = last_border; b >= first_border; b--) {
        int *reader = &readers[b - first_border];
        *reader = want_block(a, begin_of(a, b, from, first_border), a->borders->at[b].place);
        soonest = *reader < soonest ? *reader : soonest;
    }
    if (soonest == a->t->n)
        return;
    Stretch borders = { .from = from,
                        .to = a->borders->at[last_border].place,
                        .wanted = a->wanted_first,
                        .clone = a->first,
                        .soonest = soonest };
    want_borders(a, borders.from, borders.to);
    make_stretch(a, &borders);
    for (int b = first_border; b <= last_border; b++) {
        const int reader = readers[b - first_border];
        Stretch block = { .from = begin_of(a, b, from, first_border),
                          .to = a->borders->at[b].place,
                          .wanted = a->wanted,
                          .clone = a->clone,
                          .soonest = reader };
        if (reader < a->t->n)
            make_stretch(a, &block);
    }
}

Status make_blocks_again(PassRun *run, const Timeline *t, const Borders *borders)
{
    Again a = { .run = run, .t = t, .borders = borders };
    int from = -1, first = 0;
    if (!borders->n)
        return OK;
    timeline_apply(t);
    find_next(&a);
    a.wanted = NEWS(t->arena, bool, t->n_forward + 1);
    a.wanted_first = NEWS(t->arena, bool, t->n_forward + 1);
    a.clone = NEWS(t->arena, Node *, t->n_forward + 1);
    a.first = NEWS(t->arena, Node *, t->n_forward + 1);
    for (int b = 0; b < borders->n; b++) {
        if (!borders->at[b].is_kept)
            continue;
        make_segment(&a, from, first, b);
        from = borders->at[b].place;
        first = b + 1;
    }
    return OK;
}
