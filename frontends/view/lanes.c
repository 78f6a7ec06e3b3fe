#include "frontends/view/lanes.h"

#include <stdlib.h>

/* The layout while it is made. */
typedef struct Layout {
    const LaneGraph *g;
    LaneRules rules;
    Arena *scratch;
    Lanes *out;
    uint32_t *order;  /* nodes by row, in each by number */
    int32_t *height;  /* of each node: the longest path from it */
    uint32_t *reader; /* of each node: its first reader, from 1; 0: none */
    uint32_t *uses;   /* the edges that read node i: uses[ends[i]] to uses[ends[i + 1] - 1] */
    uint32_t *ends;
    uint32_t *who; /* reads by that edge */
    uint32_t
        *placed; /* of each node: the first of its edges that is drawn and whose value has a lane, from 1; 0: none */
    int32_t *free_at; /* of each lane: the first row that may use it */
    int32_t n_free, cap_free;
} Layout;

static int32_t longest_path(const Layout *l, uint32_t i)
{
    int32_t row = 0;
    for (uint32_t e = l->g->edges[i]; e < l->g->edges[i + 1]; e++)
        if (l->out->row[l->g->reads[e]] >= row)
            row = l->out->row[l->g->reads[e]] + 1;
    return row;
}

/* Who reads what. */
static void list_uses(Layout *l)
{
    const LaneGraph *g = l->g;
    const uint32_t n_edges = g->edges[g->n];
    uint32_t *at = NEWS(l->scratch, uint32_t, g->n + 1);
    l->uses = NEWS(l->scratch, uint32_t, n_edges + 1);
    l->ends = NEWS(l->scratch, uint32_t, g->n + 1);
    l->who = NEWS(l->scratch, uint32_t, n_edges + 1);
    l->placed = NEWS(l->scratch, uint32_t, g->n + 1);
    for (uint32_t e = 0; e < n_edges; e++)
        l->ends[g->reads[e] + 1]++;
    for (uint32_t i = 0; i < g->n; i++)
        l->ends[i + 1] += l->ends[i];
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
            const uint32_t from = g->reads[e];
            l->who[e] = i;
            l->uses[l->ends[from] + at[from]++] = e;
        }
}

/* What only comes from constants is as late as it can be; so are inputs. */
static void sink_sources(Layout *l)
{
    const LaneGraph *g = l->g;
    int32_t *row = l->out->row;
    bool *floats = NEWS(l->scratch, bool, g->n + 1);
    int32_t *least = NEWS(l->scratch, int32_t, g->n + 1); /* row of the first reader, 0: none */
    for (uint32_t i = 0; i < g->n; i++) {
        floats[i] = !g->stays[i];
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++)
            floats[i] &= floats[g->reads[e]];
    }
    for (uint32_t i = g->n; i-- > 0;) {
        if (least[i] && (floats[i] || g->edges[i] == g->edges[i + 1]))
            row[i] = least[i] - 1;
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
            const uint32_t from = g->reads[e];
            if (!least[from] || row[i] < least[from])
                least[from] = row[i];
            l->reader[from] = i + 1;
        }
    }
}

/* Nodes by row, in each row by number. */
static void sort_by_row(Layout *l)
{
    const uint32_t n = l->g->n;
    int32_t rows = 0;
    for (uint32_t i = 0; i < n; i++)
        rows = l->out->row[i] >= rows ? l->out->row[i] + 1 : rows;
    uint32_t *start = NEWS(l->scratch, uint32_t, (size_t)rows + 1);
    for (uint32_t i = 0; i < n; i++)
        start[l->out->row[i] + 1]++;
    for (int32_t r = 0; r < rows; r++)
        start[r + 1] += start[r];
    for (uint32_t i = 0; i < n; i++)
        l->order[start[l->out->row[i]]++] = i;
    l->out->n_rows = rows;
}

/* The first row from `row` on that is not full. */
static int32_t open_row(int32_t *next, int32_t row)
{
    int32_t found = row;
    while (next[found] != found)
        found = next[found];
    while (next[row] != found) {
        const int32_t step = next[row];
        next[row] = found;
        row = step;
    }
    return found;
}

/* Sends what does not fit into a row further down. */
static void widen_rows(Layout *l)
{
    const uint32_t n = l->g->n;
    const size_t most = (size_t)l->out->n_rows + n + 1;
    int32_t *next = NEWS(l->scratch, int32_t, most), *count = NEWS(l->scratch, int32_t, most);
    for (size_t r = 0; r < most; r++)
        next[r] = (int32_t)r;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = l->order[k];
        const int32_t least = longest_path(l, i);
        const int32_t row = open_row(next, l->out->row[i] > least ? l->out->row[i] : least);
        l->out->row[i] = row;
        if (++count[row] == l->rules.row_width)
            next[row] = row + 1;
    }
    sort_by_row(l);
}

/* Tags what goes down too far, and says how far each value reaches. */
static void measure_edges(Layout *l)
{
    const LaneGraph *g = l->g;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
            const uint32_t from = g->reads[e];
            const int32_t row = l->out->row[i];
            l->out->tag[e] = row - l->out->row[from] > l->rules.most_rows;
            if (!l->out->tag[e] && row > l->out->reach[from])
                l->out->reach[from] = row;
        }
}

static bool is_free(const Layout *l, int32_t lane, int32_t row)
{
    return lane >= l->n_free || l->free_at[lane] <= row;
}

static void take(Layout *l, uint32_t i, int32_t lane)
{
    while (lane >= l->n_free) {
        GROW(l->scratch, l->free_at, l->n_free, l->cap_free);
        l->free_at[l->n_free++] = 0;
    }
    const int32_t row = l->out->row[i], reach = l->out->reach[i];
    l->out->lane[i] = lane;
    for (uint32_t k = l->ends[i]; k < l->ends[i + 1]; k++) {
        const uint32_t e = l->uses[k], who = l->who[e];
        if (!l->out->tag[e] && (!l->placed[who] || e + 1 < l->placed[who]))
            l->placed[who] = e + 1;
    }
    l->free_at[lane] = reach > row ? reach : row + 1;
}

/* The leftmost lane of a value that ends at this node; -1 when another node of the row has it already. */
static int32_t inherited_lane(const Layout *l, uint32_t i)
{
    const LaneGraph *g = l->g;
    const int32_t row = l->out->row[i];
    int32_t best = -1;
    for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
        const uint32_t from = g->reads[e];
        const int32_t lane = l->out->lane[from];
        if (!l->out->tag[e] && l->out->reach[from] == row && is_free(l, lane, row) && (best < 0 || lane < best))
            best = lane;
    }
    return best;
}

/* A lane that a node would like to be near: that of what it reads, or of what its reader reads as well. */
static int32_t wished_lane(const Layout *l, uint32_t i)
{
    const LaneGraph *g = l->g;
    for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++)
        if (!l->out->tag[e])
            return l->out->lane[g->reads[e]];
    const uint32_t reader = l->reader[i], placed = reader ? l->placed[reader - 1] : 0;
    return placed ? l->out->lane[g->reads[placed - 1]] + 1 : 0;
}

static int32_t nearest_lane(const Layout *l, int32_t wish, int32_t row)
{
    for (int32_t d = 0;; d++) {
        if (d <= wish && is_free(l, wish - d, row))
            return wish - d;
        if (is_free(l, wish + d, row))
            return wish + d;
    }
}

static void measure_heights(Layout *l)
{
    const LaneGraph *g = l->g;
    for (uint32_t i = g->n; i-- > 0;)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++)
            if (l->height[g->reads[e]] <= l->height[i])
                l->height[g->reads[e]] = l->height[i] + 1;
}

/* The nodes of a row, which are few, by height; the highest first. */
static void sort_by_height(const Layout *l, uint32_t *nodes, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++) {
        const uint32_t node = nodes[k];
        uint32_t at = k;
        for (; at > 0 && l->height[nodes[at - 1]] < l->height[node]; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
}

/* Those who inherit a lane choose first. */
static void place_row(Layout *l, uint32_t *nodes, uint32_t n, int32_t row)
{
    sort_by_height(l, nodes, n);
    for (uint32_t k = 0; k < n; k++) {
        const int32_t lane = inherited_lane(l, nodes[k]);
        if (lane >= 0)
            take(l, nodes[k], lane);
    }
    for (uint32_t k = 0; k < n; k++)
        if (l->out->lane[nodes[k]] < 0)
            take(l, nodes[k], nearest_lane(l, wished_lane(l, nodes[k]), row));
}

static void place_all(Layout *l)
{
    const uint32_t n = l->g->n;
    for (uint32_t i = 0; i < n; i++)
        l->out->lane[i] = -1;
    for (uint32_t k = 0, end; k < n; k = end) {
        const int32_t row = l->out->row[l->order[k]];
        for (end = k; end < n && l->out->row[l->order[end]] == row;)
            end++;
        place_row(l, l->order + k, end - k, row);
    }
    l->out->n_lanes = l->n_free;
}

/* Tags what goes aside too far; what is left says how far each value is drawn. */
static void cut_wide_edges(Layout *l)
{
    const LaneGraph *g = l->g;
    for (uint32_t i = 0; i < g->n; i++)
        l->out->reach[i] = 0;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
            const uint32_t from = g->reads[e];
            l->out->tag[e] |= abs(l->out->lane[i] - l->out->lane[from]) > l->rules.most_lanes;
            if (!l->out->tag[e] && l->out->row[i] > l->out->reach[from])
                l->out->reach[from] = l->out->row[i];
        }
}

Lanes lanes_of(const LaneGraph *g, LaneRules rules, Arena *arena)
{
    Lanes out = {
        .row = NEWS(arena, int32_t, g->n + 1),
        .lane = NEWS(arena, int32_t, g->n + 1),
        .tag = NEWS(arena, bool, g->edges[g->n] + 1),
        .reach = NEWS(arena, int32_t, g->n + 1),
    };
    Arena scratch;
    arena_open(&scratch, arena->memory);
    Layout l = {
        .g = g,
        .rules = rules,
        .scratch = &scratch,
        .out = &out,
        .height = NEWS(&scratch, int32_t, g->n + 1),
        .order = NEWS(&scratch, uint32_t, g->n + 1),
        .reader = NEWS(&scratch, uint32_t, g->n + 1),
    };
    list_uses(&l);
    for (uint32_t i = 0; i < g->n; i++)
        out.row[i] = longest_path(&l, i);
    sink_sources(&l);
    sort_by_row(&l);
    widen_rows(&l);
    measure_edges(&l);
    measure_heights(&l);
    place_all(&l);
    cut_wide_edges(&l);
    arena_close(&scratch);
    return out;
}
