/* Layouts of graphs drawn by chance: what the header promises of rows, lanes and lines. */
#include "frontends/view/lanes.h"

#include <string.h>

#include "unit/check.h"

typedef struct Made {
    Memory memory;
    Arena arena;
    LaneGraph graph;
    uint64_t state;
} Made;

static uint32_t draw(Made *m, uint32_t below)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((m->state >> 33) % below);
}

static void made_open(Made *m, uint64_t seed)
{
    *m = (Made){ .state = seed };
    memory_open(&m->memory, NULL);
    arena_open(&m->arena, &m->memory);
}

/* n nodes, each reading up to `most` of the `window` before it. */
static void make(Made *m, uint32_t n, uint32_t most, uint32_t window)
{
    uint32_t *edges = NEWS(&m->arena, uint32_t, n + 1), *reads = NEWS(&m->arena, uint32_t, n * most + 1);
    bool *stays = NEWS(&m->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        edges[i + 1] = edges[i];
        for (uint32_t k = i ? draw(m, most + 1) : 0; k > 0; k--)
            reads[edges[i + 1]++] = i - 1 - draw(m, i < window ? i : window);
        stays[i] = edges[i] == edges[i + 1] && draw(m, 2);
    }
    m->graph = (LaneGraph){ n, edges, reads, stays };
}

static void check_rows(const Made *m, const Lanes *l, LaneRules rules)
{
    const LaneGraph *g = &m->graph;
    int32_t *count = NEWS((Arena *)(uintptr_t)&m->arena, int32_t, l->n_rows + 1);
    for (uint32_t i = 0; i < g->n; i++) {
        check_that(l->row[i] >= 0 && l->row[i] < l->n_rows, "node %u is in row %d of %d", i, l->row[i], l->n_rows);
        check_that(++count[l->row[i]] <= rules.row_width, "row %d is too wide", l->row[i]);
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++) {
            const int32_t down = l->row[i] - l->row[g->reads[e]];
            const int32_t aside = l->lane[i] - l->lane[g->reads[e]];
            const bool far = down > rules.most_rows || aside > rules.most_lanes || -aside > rules.most_lanes;
            check_that(down > 0, "node %u is not below %u", i, g->reads[e]);
            check_that(l->tag[e] == far, "edge %u: %d rows, %d lanes, tag %d", e, down, aside, l->tag[e]);
        }
    }
}

/* No two nodes in one place, and no line through a node. */
static void check_lanes(Made *m, const Lanes *l)
{
    const LaneGraph *g = &m->graph;
    const size_t lanes = (size_t)l->n_lanes;
    uint32_t *at = NEWS(&m->arena, uint32_t, (size_t)l->n_rows * lanes + 1);
    for (uint32_t i = 0; i < g->n; i++) {
        check_that(l->lane[i] >= 0 && l->lane[i] < l->n_lanes, "node %u is in lane %d of %d", i, l->lane[i],
                   l->n_lanes);
        uint32_t *place = &at[(size_t)l->row[i] * lanes + (size_t)l->lane[i]];
        check_that(!*place, "nodes %u and %u are in one place", *place - 1, i);
        *place = i + 1;
    }
    for (uint32_t i = 0; i < g->n; i++)
        for (int32_t row = l->row[i] + 1; row < l->reach[i]; row++) {
            uint32_t *place = &at[(size_t)row * lanes + (size_t)l->lane[i]];
            check_that(!*place, "the line of %u goes through %u in row %d", i, *place - 1, row);
            *place = i + 1;
        }
}

static void drawn_graphs_keep_the_promises(void **state)
{
    (void)state;
    const LaneRules rules = { 24, 10, 32 };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Made m;
        made_open(&m, seed);
        make(&m, 1 + draw(&m, 400), 1 + draw(&m, 4), 1 + draw(&m, 200));
        const Lanes l = lanes_of(&m.graph, rules, &m.arena);
        check_rows(&m, &l, rules);
        check_lanes(&m, &l);
        arena_close(&m.arena);
    }
}

static void a_chain_stays_in_its_lane(void **state)
{
    (void)state;
    const uint32_t edges[] = { 0, 0, 1, 2, 4, 5 }, reads[] = { 0, 1, 2, 0, 3 };
    const bool stays[5] = { true };
    const int32_t rows[] = { 0, 1, 2, 3, 4 }, lanes[] = { 0, 1, 1, 0, 0 };
    Made m;
    made_open(&m, 1);
    const Lanes l = lanes_of(&(LaneGraph){ 5, edges, reads, stays }, (LaneRules){ 24, 10, 32 }, &m.arena);
    assert_memory_equal(l.row, rows, sizeof rows);
    assert_memory_equal(l.lane, lanes, sizeof lanes);
    arena_close(&m.arena);
}

static void sources_move_down_to_their_readers(void **state)
{
    (void)state;
    /* 0 -> 1 -> 2 -> 5; 3 -> 4 -> 5, where 3 comes from constants; 6 is an input read by 5 */
    const uint32_t edges[] = { 0, 0, 1, 2, 2, 3, 3, 6 }, reads[] = { 0, 1, 3, 2, 4, 5 };
    const bool stays[] = { true, false, false, false, false, true, false };
    const int32_t rows[] = { 0, 1, 2, 1, 2, 2, 3 };
    Made m;
    made_open(&m, 1);
    const Lanes l = lanes_of(&(LaneGraph){ 7, edges, reads, stays }, (LaneRules){ 24, 10, 32 }, &m.arena);
    assert_memory_equal(l.row, rows, sizeof rows);
    arena_close(&m.arena);
}

static void large_graphs_are_laid_out(void **state)
{
    (void)state;
    const uint32_t windows[] = { 1, 100, 100000 };
    for (size_t i = 0; i < COUNT(windows); i++) {
        Made m;
        made_open(&m, 7);
        const LaneRules rules = { 24, 10, 32 };
        make(&m, 100000, 2, windows[i]);
        const Lanes l = lanes_of(&m.graph, rules, &m.arena);
        check_rows(&m, &l, rules);
        check_that(l.n_lanes <= (rules.most_rows + 2) * rules.row_width, "%d lanes", l.n_lanes);
        arena_close(&m.arena);
    }
}

static void nothing_is_laid_out(void **state)
{
    (void)state;
    const uint32_t edges[] = { 0 };
    Made m;
    made_open(&m, 1);
    const Lanes l = lanes_of(&(LaneGraph){ .edges = edges }, (LaneRules){ 24, 10, 32 }, &m.arena);
    assert_int_equal(l.n_rows, 0);
    assert_int_equal(l.n_lanes, 0);
    arena_close(&m.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_graphs_keep_the_promises),
        cmocka_unit_test(a_chain_stays_in_its_lane),
        cmocka_unit_test(sources_move_down_to_their_readers),
        cmocka_unit_test(large_graphs_are_laid_out),
        cmocka_unit_test(nothing_is_laid_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
