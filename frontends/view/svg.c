#include "frontends/view/svg.h"

#include <inttypes.h>
#include <stdlib.h>

#include "frontends/view/pen.h"

enum { GAP = ROW_PITCH - BOX_HEIGHT, TAG_COLUMNS = 9, TAG_WIDTH = 74, TAG_HEIGHT = 15 };

/* ---- lines ---- */

/* All lines of a value: one down its lane, and from it one to each reader. */
static void draw_lines(Pen *p, uint32_t box, const uint32_t *readers, uint32_t n)
{
    Text *t = &p->q->text;
    const int32_t x = pen_x(p, box) + BOX_WIDTH / 2, y = pen_y(p, box) + BOX_HEIGHT;
    const int32_t end = SHEET_MARGIN + p->s->lanes.reach[box] * ROW_PITCH;
    if (!n)
        return;
    text_add(t, "<path id=\"e");
    pen_target(p, box);
    text_add(t, "\" d=\"");
    if (end - GAP > y)
        text_printf(t, "M%" PRId32 " %" PRId32 "V%" PRId32, x, y, end - GAP);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t to = pen_x(p, readers[i]) + BOX_WIDTH / 2, top = pen_y(p, readers[i]);
        text_printf(t, "M%" PRId32 " %" PRId32, x, top - GAP);
        if (to == x)
            text_printf(t, "V%" PRId32, top);
        else
            text_printf(t, "C%" PRId32 " %d %" PRId32 " %d %" PRId32 " %" PRId32, x, top - GAP / 4, to,
                        top - GAP * 3 / 4, to, top);
    }
    text_add(t, "\"/>");
}

/* ---- tags ---- */

/* The other ends of a box's values that are not drawn: far boxes of the sheet, nodes of other sheets. */
typedef struct Ends {
    uint32_t n, box[2];
    const Node *node[2]; /* null: the box */
} Ends;

static void add_end(Ends *e, uint32_t box, const Node *node)
{
    for (uint32_t i = 0; i < e->n && i < 2 && node; i++)
        if (e->node[i] == node)
            return;
    if (e->n < 2) {
        e->box[e->n] = box;
        e->node[e->n] = node;
    }
    e->n++;
}

static void draw_tag(Pen *p, int32_t x, int32_t y, const char *arrow, const Ends *e, uint32_t i)
{
    Text *t = &p->q->text;
    text_add(t, "<a class=\"tag\" href=\"#");
    if (e->node[i])
        text_printf(t, "n%" PRIu32, scene_id(p->s->page, e->node[i]));
    else
        pen_target(p, e->box[i]);
    text_printf(t, "\"><rect x=\"%" PRId32 "\" y=\"%" PRId32 "\" width=\"%d\" height=\"%d\" rx=\"7\"/>", x, y,
                TAG_WIDTH, TAG_HEIGHT);
    text_printf(t, "<text x=\"%" PRId32 "\" y=\"%" PRId32 "\">%s ", x + 6, y + 11, arrow);
    quill_html(p->q, e->node[i] ? scene_title(p->s->page, e->node[i], p->scratch) : pen_title(p, e->box[i]),
               TAG_COLUMNS, true);
    text_add(t, "</text></a>");
}

/* Leads to the box itself, whose pane has all of them. */
static void draw_more(Pen *p, int32_t x, int32_t y, const char *arrow, uint32_t box, const char *text)
{
    Text *t = &p->q->text;
    text_add(t, "<a class=\"tag\" href=\"#");
    pen_target(p, box);
    text_printf(t, "\"><rect x=\"%" PRId32 "\" y=\"%" PRId32 "\" width=\"%d\" height=\"%d\" rx=\"7\"/>", x, y,
                TAG_WIDTH, TAG_HEIGHT);
    text_printf(t, "<text x=\"%" PRId32 "\" y=\"%" PRId32 "\">%s %s</text></a>", x + 6, y + 11, arrow, text);
}

/* Above a box: where its far operands come from.  A third one says how many there are in its pane. */
static void draw_sources(Pen *p, uint32_t box)
{
    static const char up[] = "\xE2\x86\x91";
    const LaneGraph *g = &p->s->graph;
    const Node *n = p->s->boxes[box].node;
    const int32_t x = pen_x(p, box) + BOX_WIDTH / 2, y = pen_y(p, box) - TAG_HEIGHT - 4;
    Ends ends = { 0 };
    for (uint32_t e = g->edges[box]; e < g->edges[box + 1]; e++)
        if (p->s->lanes.tag[e])
            add_end(&ends, g->reads[e], NULL);
    for (int i = 0; n && p->s->boxes[box].result < 0 && i < n->n_in; i++) {
        const Node *from = in(n, i) ? node_behind(in(n, i)) : NULL;
        if (from && node_is_drawn(from) && !sheet_box(p->s, from))
            add_end(&ends, 0, from);
    }
    if (ends.n)
        draw_tag(p, x + 8, y, up, &ends, 0);
    if (ends.n == 2)
        draw_tag(p, x - 8 - TAG_WIDTH, y, up, &ends, 1);
    if (ends.n > 2)
        draw_more(p, x - 8 - TAG_WIDTH, y, up, box, arena_printf(p->scratch, "+%" PRIu32, ends.n - 1));
}

/* Readers in other sheets, also those of its parts. */
static void add_readers_outside(const Pen *p, const Node *n, Ends *ends)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const Node *by = u->user;
        for (const Use *v = by->op == OP_part ? by->uses : NULL; v; v = v->next)
            if (node_is_drawn(v->user) && v->user->op != OP_return && !sheet_box(p->s, v->user))
                add_end(ends, 0, v->user);
        if (node_is_drawn(by) && by->op != OP_return && !sheet_box(p->s, by))
            add_end(ends, 0, by);
    }
}

/* Below a box: where its value is read far away. */
static void draw_readers(Pen *p, uint32_t box)
{
    static const char down[] = "\xE2\x86\x93";
    const uint32_t *far = p->s->far + p->s->readers[box], n = p->s->readers[box + 1] - p->s->readers[box];
    const Box *b = &p->s->boxes[box];
    const int32_t x = pen_x(p, box) + BOX_WIDTH / 2 + 8, y = pen_y(p, box) + BOX_HEIGHT + 4;
    Ends ends = { 0 };
    for (uint32_t i = 0; i < n; i++)
        add_end(&ends, far[i], NULL);
    if (b->node && b->result < 0)
        add_readers_outside(p, b->node, &ends);
    if (ends.n == 1)
        draw_tag(p, x, y, down, &ends, 0);
    else if (ends.n > 1)
        draw_more(p, x, y, down, box, arena_printf(p->scratch, "%" PRIu32, ends.n));
}

/* ---- tiles ---- */

/* A box, to be sorted by tile; in each by number. */
typedef struct Placed {
    int32_t down, aside;
    uint32_t box;
} Placed;

static int by_tile(const void *a, const void *b)
{
    const Placed *p = a, *q = b;
    if (p->down != q->down)
        return p->down < q->down ? -1 : 1;
    if (p->aside != q->aside)
        return p->aside < q->aside ? -1 : 1;
    return p->box < q->box ? -1 : p->box > q->box;
}

/* Near readers of each box: near[start[b]] to near[start[b + 1] - 1]. */
typedef struct Near {
    uint32_t *start, *near;
} Near;

static Near near_readers(const Sheet *s, Arena *arena)
{
    const LaneGraph *g = &s->graph;
    Near r = { NEWS(arena, uint32_t, (size_t)g->n + 3), NEWS(arena, uint32_t, g->edges[g->n] + 1) };
    for (uint32_t e = 0; e < g->edges[g->n]; e++)
        if (!s->lanes.tag[e])
            r.start[g->reads[e] + 2]++;
    for (uint32_t i = 2; i < g->n + 2; i++)
        r.start[i] += r.start[i - 1];
    uint32_t *end = r.start + 1;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++)
            if (!s->lanes.tag[e])
                r.near[end[g->reads[e]]++] = i;
    return r;
}

static void draw_tile(Pen *p, const Near *near, const Placed *boxes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t b = boxes[i].box;
        draw_lines(p, b, near->near + near->start[b], near->start[b + 1] - near->start[b]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const ArenaMark mark = arena_mark(p->scratch);
        pen_box(p, boxes[i].box);
        draw_sources(p, boxes[i].box);
        draw_readers(p, boxes[i].box);
        arena_reset(p->scratch, mark);
        quill_rest(p->q);
    }
}

static Placed *sorted_boxes(const Sheet *s, Arena *arena)
{
    Placed *boxes = NEWS(arena, Placed, s->graph.n + 1);
    for (uint32_t i = 0; i < s->graph.n; i++)
        boxes[i] = (Placed){ s->lanes.row[i] / TILE_ROWS, s->lanes.lane[i] / TILE_LANES, i };
    qsort(boxes, s->graph.n, sizeof *boxes, by_tile);
    return boxes;
}

/* For the script, which finds what is not drawn yet: number, row and lane of each node. */
static void add_spots(Pen *p)
{
    const Sheet *s = p->s;
    bool any = false;
    text_add(&p->q->text, " data-spots=\"[");
    for (uint32_t i = 0; i < s->graph.n; i++) {
        if (s->boxes[i].result >= 0 || s->boxes[i].group)
            continue;
        text_printf(&p->q->text, "%s%" PRIu32 ",%" PRId32 ",%" PRId32, any ? "," : "",
                    scene_id(s->page, s->boxes[i].node), s->lanes.row[i], s->lanes.lane[i]);
        any = true;
    }
    text_add(&p->q->text, "]\">\n");
}

void svg_sheet(Quill *q, const Sheet *s, const ViewFacts *facts, bool asleep, Arena *scratch)
{
    Text *t = &q->text;
    Arena words;
    arena_open(&words, scratch->memory);
    arena_alloc(&words, 1); /* its first chunk stays when what a box needed is forgotten */
    Pen p = { q, s, facts, &words };
    const uint32_t n = s->graph.n;
    const ArenaMark mark = arena_mark(scratch);
    const Near near = near_readers(s, scratch);
    const Placed *boxes = sorted_boxes(s, scratch);
    const int64_t width = 2 * SHEET_MARGIN + (int64_t)s->lanes.n_lanes * LANE_PITCH - (LANE_PITCH - BOX_WIDTH);
    const int64_t height = 2 * SHEET_MARGIN + (int64_t)s->lanes.n_rows * ROW_PITCH - GAP;
    text_printf(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRId64 "\" height=\"%" PRId64 "\"",
                width > 0 ? width : 1, height > 0 ? height : 1);
    add_spots(&p);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && boxes[end].down == boxes[i].down && boxes[end].aside == boxes[i].aside;)
            end++;
        text_printf(t, "<g class=\"tile\" data-row=\"%" PRId32 "\" data-lane=\"%" PRId32 "\">%s",
                    boxes[i].down * TILE_ROWS, boxes[i].aside * TILE_LANES, asleep ? "<!--" : "");
        draw_tile(&p, &near, boxes + i, end - i);
        text_add(t, asleep ? "--></g>\n" : "</g>\n");
    }
    text_add(t, "</svg>\n");
    arena_close(&words);
    arena_reset(scratch, mark);
}
