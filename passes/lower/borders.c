#include "passes/lower/borders.h"

/* Of a long forward side, so many cuts are candidates: in each of as many stretches that keep equal bytes, the one across
 * which the fewest live. */
enum { MOST_CUTS = 160, HALVINGS = 24 };

/* What 1 / SLACK more would take may be given for fewer borders. */
enum { SLACK = 64 };

static const uint64_t never = UINT64_MAX / 4;

/* What is made between a cut and the one before. */
typedef struct Piece {
    uint64_t staying, reread; /* bytes made up to the cut that the backward side reads: there anyway, or not */
    uint64_t back;            /* most that the backward side holds while it reads what is made here */
    uint64_t forth;           /* most that the forward side holds */
    uint64_t wave;            /* with all that is read back of what was made so far since the beginning */
    int first;                /* the first call of the backward side that reads any of it; the end: none does */
} Piece;

/* Cut 0 is the beginning, cut n + 1 the end of the forward side; a block (p, c) is what is between two of them. */
typedef struct Cuts {
    const Timeline *t;
    Arena *arena;
    int n, *place;
    Piece *piece;     /* before each cut */
    uint64_t *kept;   /* by block: what a border at its end keeps, and what of it stays anyway */
    uint64_t *needs;  /* by block: what is there at once while it runs, without what was kept before it */
    uint64_t *begins; /* by block: what the backward side holds when it comes to it */
} Cuts;

static uint64_t *of_block(const Cuts *k, uint64_t *table, int p, int c)
{
    return &table[(size_t)p * (size_t)(k->n + 2) + (size_t)c];
}

/* ---- what is alive ---- */

static bool is_read_back(const Moment *m)
{
    return m->first_back != NEVER && m->bytes && !m->outlives;
}

/* Sums of steps up and down that were noted where they happen. */
static void add_up(uint64_t *v, int n)
{
    for (int i = 1; i < n; i++)
        v[i] += v[i - 1];
}

typedef enum Whose { FORTH, BACK, REREAD } Whose;

static bool is_of(const Moment *m, Whose whose)
{
    if (whose == BACK)
        return m->part != STEP_FORWARD || m->outlives;
    return m->part == STEP_FORWARD && (whose == FORTH || (!m->stays && is_read_back(m)));
}

/* The first place at which the bytes of a call are free again: a region may make its result where it reads as much. */
static int end_of(const Timeline *t, int place, int last)
{
    if (last == t->n)
        return last;
    return last > place && !t->at[last].alone && t->at[last].bytes == t->at[place].bytes ? last : last + 1;
}

/* By place: the bytes that are alive on the backward side, those of the forward side that outlive it included; on the
 * forward side, as long as that reads them; of these, what is read back and does not stay. */
static uint64_t *alive(const Timeline *t, Arena *arena, Whose whose)
{
    uint64_t *v = NEWS(arena, uint64_t, t->n + 2);
    for (int i = 0; i < t->n; i++) {
        const Moment *m = &t->at[i];
        const int first = whose == BACK && i < t->n_forward ? t->n_forward : i;
        if (!m->stored || !is_of(m, whose))
            continue;
        v[first] += m->bytes;
        v[end_of(t, i, whose == BACK ? m->last : m->last_forward)] -= m->bytes;
    }
    add_up(v, t->n + 1);
    return v;
}

/* By place of the forward side: the bytes that a border behind it keeps. */
static uint64_t *crossing(const Timeline *t, Arena *arena)
{
    uint64_t *v = NEWS(arena, uint64_t, t->n_forward + 1);
    for (int i = 0; i < t->n_forward; i++)
        if (!t->at[i].stays) {
            v[i] += t->at[i].bytes;
            v[t->at[i].last_forward] -= t->at[i].bytes;
        }
    add_up(v, t->n_forward);
    return v;
}

/* ---- candidates ---- */

static void choose_cuts(Cuts *k)
{
    const Timeline *t = k->t;
    const uint64_t *across = crossing(t, k->arena);
    uint64_t all = 1, so_far = 0;
    int stretch = -1;
    k->place = NEWS(k->arena, int, MOST_CUTS + 3);
    k->place[0] = -1;
    for (int i = 0; i < t->n_forward; i++)
        all += is_read_back(&t->at[i]) ? t->at[i].bytes : 0;
    for (int i = 0; i + 1 < t->n_forward; i++) {
        so_far += is_read_back(&t->at[i]) ? t->at[i].bytes : 0;
        const int in_stretch = (int)((double)so_far / (double)all * MOST_CUTS);
        if (in_stretch != stretch)
            k->n++;
        else if (across[i] > across[k->place[k->n]])
            continue;
        stretch = in_stretch;
        k->place[k->n] = i;
    }
    k->place[k->n + 1] = t->n_forward - 1;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void measure_piece(Cuts *k, int c, const uint64_t *back, const uint64_t *forth, const uint64_t *reread)
{
    const Timeline *t = k->t;
    Piece *of = &k->piece[c];
    int last = -1;
    *of = (Piece){ .staying = k->piece[c - 1].staying, .reread = k->piece[c - 1].reread, .first = t->n };
    for (int i = k->place[c - 1] + 1; i <= k->place[c]; i++) {
        const Moment *m = &t->at[i];
        if (is_read_back(m)) {
            *(m->stays ? &of->staying : &of->reread) += m->bytes;
            of->first = m->first_back < of->first ? m->first_back : of->first;
            last = m->first_back > last ? m->first_back : last;
        }
        of->forth = larger(of->forth, forth[i]);
        of->wave = larger(of->wave, forth[i] + of->reread - (reread[i] < of->reread ? reread[i] : of->reread));
    }
    for (int i = of->first; i <= last; i++)
        of->back = larger(of->back, back[i]);
}

/* The first cut at or behind a place. */
static int cut_behind(const Cuts *k, int place)
{
    int low = 1, high = k->n + 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (k->place[middle] >= place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A value that crosses cuts i to l is new at each of them for blocks that begin before i: it is noted at the corners of
 * that rectangle, and the sums along both sides fill it. */
static void measure_kept(Cuts *k)
{
    const int n = k->n + 2;
    k->kept = NEWS(k->arena, uint64_t, (size_t)n * (size_t)n);
    for (int i = 0; i < k->t->n_forward; i++) {
        const Moment *m = &k->t->at[i];
        const int from = cut_behind(k, i), to = cut_behind(k, m->last_forward);
        if (m->stays || !m->bytes || from >= to)
            continue;
        *of_block(k, k->kept, 0, from) += m->bytes;
        *of_block(k, k->kept, 0, to) -= m->bytes;
        *of_block(k, k->kept, from, from) -= m->bytes;
        *of_block(k, k->kept, from, to) += m->bytes;
    }
    for (int p = 0; p < n; p++)
        add_up(of_block(k, k->kept, p, 0), n);
    for (int p = 1; p < n; p++)
        for (int c = 0; c < n; c++)
            *of_block(k, k->kept, p, c) += *of_block(k, k->kept, p - 1, c);
    for (int p = 0; p < n; p++)
        for (int c = p + 1; c < n; c++)
            *of_block(k, k->kept, p, c) += k->piece[c].staying - k->piece[p].staying;
}

/* The backward side goes through a block from its end: what is made behind a piece is done with when it comes there. */
static void measure_blocks(Cuts *k, const uint64_t *back)
{
    const int n = k->n + 2;
    k->needs = NEWS(k->arena, uint64_t, (size_t)n * (size_t)n);
    k->begins = NEWS(k->arena, uint64_t, (size_t)n * (size_t)n);
    for (int p = 0; p < n; p++) {
        const Piece *before = &k->piece[p];
        uint64_t held = 0, wave = 0;
        int first = k->t->n;
        for (int c = p + 1; c < n; c++) {
            const Piece *of = &k->piece[c];
            held = larger(held, of->reread - before->reread + of->staying - before->staying + of->back);
            wave = larger(wave, of->wave - (before->reread < of->wave ? before->reread : of->wave));
            first = of->first < first ? of->first : first;
            const uint64_t begins = first < k->t->n && first > k->t->n_forward ? back[first - 1] : 0;
            *of_block(k, k->begins, p, c) = begins;
            *of_block(k, k->needs, p, c) = larger(held, of->staying - before->staying + wave + begins);
        }
    }
}

static void measure(Cuts *k, double share)
{
    uint64_t *back = alive(k->t, k->arena, BACK);
    const uint64_t *forth = alive(k->t, k->arena, FORTH), *reread = alive(k->t, k->arena, REREAD);
    for (int i = 0; i < k->t->n; i++)
        back[i] = (uint64_t)(share * (double)back[i]);
    choose_cuts(k);
    k->piece = NEWS(k->arena, Piece, k->n + 2);
    for (int c = 1; c <= k->n + 1; c++)
        measure_piece(k, c, back, forth, reread);
    measure_kept(k);
    measure_blocks(k, back);
}

/* ---- the choice ---- */

/* By cut: the fewest bytes that are kept before it when it is a border, the border before it then, and the most that is
 * there at once, beside the backward side's, while all borders so far are made one after the other. */
typedef struct Way {
    uint64_t *bytes, *making;
    int *from;
} Way;

static Way way_open(const Cuts *k)
{
    return (Way){ NEWS(k->arena, uint64_t, k->n + 2), NEWS(k->arena, uint64_t, k->n + 2),
                  NEWS(k->arena, int, k->n + 2) };
}

/* Borders from cut `begin` on, such that no block takes more than `most`, `base` bytes being there anyway. */
static void find_way(const Cuts *k, int begin, uint64_t base, uint64_t most, Way *w)
{
    w->bytes[begin] = w->making[begin] = 0;
    for (int c = begin + 1; c < k->n + 2; c++) {
        uint64_t forth = 0;
        w->bytes[c] = never;
        for (int p = c - 1; p >= begin; p--) {
            forth = larger(forth, k->piece[p + 1].forth);
            if (w->bytes[p] == never || base + w->bytes[p] + *of_block(k, k->needs, p, c) > most)
                continue;
            const uint64_t bytes = w->bytes[p] + *of_block(k, k->kept, p, c);
            if (bytes <= w->bytes[c]) {
                w->bytes[c] = bytes;
                w->from[c] = p;
                w->making[c] = larger(w->making[p], w->bytes[p] + forth);
            }
        }
    }
}

/* Whether the borders inside of a segment can be made again; those of the last one are there. */
static bool can_make_borders(const Cuts *k, int begin, int end, uint64_t base, uint64_t most, const Way *inside)
{
    return inside->bytes[end] != never &&
           (end == k->n + 1 || inside->from[end] == begin ||
            base + inside->making[inside->from[end]] + *of_block(k, k->begins, begin, end) <= most);
}

/* The same of segments, in each of which there is such a way. */
static void find_ways(const Cuts *k, uint64_t most, Way *segments, Way *inside)
{
    for (int c = 1; c < k->n + 2; c++)
        segments->bytes[c] = never;
    segments->bytes[0] = 0;
    for (int p = 0; p <= k->n; p++) {
        if (segments->bytes[p] == never)
            continue;
        find_way(k, p, segments->bytes[p], most, inside);
        for (int c = p + 1; c < k->n + 2; c++) {
            const uint64_t bytes = segments->bytes[p] + *of_block(k, k->kept, p, c);
            if (bytes >= segments->bytes[c] || !can_make_borders(k, p, c, segments->bytes[p], most, inside))
                continue;
            segments->bytes[c] = bytes;
            segments->from[c] = p;
        }
    }
}

typedef struct Choice {
    const Cuts *cuts;
    bool twice;
    uint64_t most;
    Way way, inside;
} Choice;

static bool fits(Choice *c, uint64_t most)
{
    if (c->twice)
        find_ways(c->cuts, most, &c->way, &c->inside);
    else
        find_way(c->cuts, 0, 0, most, &c->way);
    return c->way.bytes[c->cuts->n + 1] != never;
}

/* The least that can hold all of it, and a way that takes little more. */
static bool find_least(Choice *c)
{
    uint64_t low = 0, high = *of_block(c->cuts, c->cuts->needs, 0, c->cuts->n + 1);
    for (int i = 0; i < HALVINGS; i++) {
        const uint64_t middle = low + (high - low) / 2;
        *(fits(c, middle) ? &high : &low) = middle;
    }
    c->most = high + high / SLACK;
    return fits(c, c->most);
}

/* What is behind the last border that is kept need not be made again: all of its borders are kept. */
static void add_inside(Choice *c, int p, int end, Borders *to)
{
    const bool is_last = end == c->cuts->n + 1;
    find_way(c->cuts, p, c->way.bytes[p], c->most, &c->inside);
    for (int q = c->inside.from[end]; q > p; q = c->inside.from[q])
        to->at[to->n++] = (Border){ c->cuts->place[q], is_last };
}

static void reverse(Borders *b)
{
    for (int i = 0, k = b->n - 1; i < k; i++, k--) {
        const Border t = b->at[i];
        b->at[i] = b->at[k];
        b->at[k] = t;
    }
}

Borders borders_find(const Timeline *t, bool twice, double share)
{
    Cuts cuts = { .t = t, .arena = t->arena };
    Borders to = { 0 };
    if (t->n_forward < 2)
        return to;
    measure(&cuts, share);
    Choice c = { .cuts = &cuts, .twice = twice, .way = way_open(&cuts), .inside = way_open(&cuts) };
    if (!find_least(&c))
        return to;
    to.at = NEWS(t->arena, Border, cuts.n + 2);
    for (int end = cuts.n + 1; end > 0; end = c.way.from[end]) {
        if (end <= cuts.n)
            to.at[to.n++] = (Border){ cuts.place[end], true };
        if (twice)
            add_inside(&c, c.way.from[end], end, &to);
    }
    reverse(&to);
    return to;
}
