#include "frontends/view/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops/card/words.h"

/* Columns of text that fit: the font is 0.6 em wide. */
enum { GAP = ROW_PITCH - BOX_HEIGHT, WORD_COLUMNS = 16, SIDE_COLUMNS = 27, LINE_COLUMNS = 27, TAG_COLUMNS = 9 };
enum { TAG_WIDTH = 74, TAG_HEIGHT = 15, MOST_SHAPE = 8 };

/* What a sheet is drawn with. */
typedef struct Pen {
    Quill *q;
    const Sheet *s;
    Arena *scratch;
} Pen;

static int32_t x_of(const Pen *p, uint32_t box)
{
    return SHEET_MARGIN + p->s->lanes.lane[box] * LANE_PITCH;
}

static int32_t y_of(const Pen *p, uint32_t box)
{
    return SHEET_MARGIN + p->s->lanes.row[box] * ROW_PITCH;
}

/* What stands for a box in links: its node, or the page and number of a result. */
static void add_target(Pen *p, uint32_t box)
{
    const Box *b = &p->s->boxes[box];
    if (b->result < 0)
        text_printf(&p->q->text, "n%" PRIu32, scene_id(p->s->page, b->node));
    else
        text_printf(&p->q->text, "r%zu-%d", p->s->page->id, b->result);
}

/* ---- lines ---- */

/* All lines of a value: one down its lane, and from it one to each reader. */
static void draw_lines(Pen *p, uint32_t box, const uint32_t *readers, uint32_t n)
{
    Text *t = &p->q->text;
    const int32_t x = x_of(p, box) + BOX_WIDTH / 2, y = y_of(p, box) + BOX_HEIGHT;
    const int32_t end = SHEET_MARGIN + p->s->lanes.reach[box] * ROW_PITCH;
    if (!n)
        return;
    text_add(t, "<path id=\"e");
    add_target(p, box);
    text_add(t, "\" d=\"");
    if (end - GAP > y)
        text_printf(t, "M%" PRId32 " %" PRId32 "V%" PRId32, x, y, end - GAP);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t to = x_of(p, readers[i]) + BOX_WIDTH / 2, top = y_of(p, readers[i]);
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

static const char *title_of(Pen *p, uint32_t box)
{
    const Box *b = &p->s->boxes[box];
    const char *name = b->result >= 0 ? graph_result_name(p->s->page->graph, b->result) : NULL;
    return name ? name : b->node ? scene_title(p->s->page, b->node, p->scratch) : "";
}

static void draw_tag(Pen *p, int32_t x, int32_t y, uint32_t to, const char *arrow, const char *text)
{
    Text *t = &p->q->text;
    text_add(t, "<a class=\"tag\" href=\"#");
    add_target(p, to);
    text_printf(t, "\"><rect x=\"%" PRId32 "\" y=\"%" PRId32 "\" width=\"%d\" height=\"%d\" rx=\"7\"/>", x, y,
                TAG_WIDTH, TAG_HEIGHT);
    text_printf(t, "<text x=\"%" PRId32 "\" y=\"%" PRId32 "\">%s ", x + 6, y + 11, arrow);
    quill_html(p->q, text, TAG_COLUMNS, true);
    text_add(t, "</text></a>");
}

/* Above a box: where its far operands come from.  A third one says how many there are in its pane. */
static void draw_sources(Pen *p, uint32_t box)
{
    const LaneGraph *g = &p->s->graph;
    const int32_t x = x_of(p, box) + BOX_WIDTH / 2, y = y_of(p, box) - TAG_HEIGHT - 4;
    uint32_t n = 0, second = 0;
    for (uint32_t e = g->edges[box]; e < g->edges[box + 1]; e++) {
        if (!p->s->lanes.tag[e])
            continue;
        n++;
        if (n == 1)
            draw_tag(p, x + 8, y, g->reads[e], "\xE2\x86\x91", title_of(p, g->reads[e]));
        else if (n == 2)
            second = g->reads[e];
    }
    if (n == 2)
        draw_tag(p, x - 8 - TAG_WIDTH, y, second, "\xE2\x86\x91", title_of(p, second));
    if (n > 2)
        draw_tag(p, x - 8 - TAG_WIDTH, y, box, "\xE2\x86\x91", arena_printf(p->scratch, "+%" PRIu32, n - 1));
}

/* Below a box: where its value is read far away. */
static void draw_readers(Pen *p, uint32_t box)
{
    const uint32_t *far = p->s->far + p->s->readers[box], n = p->s->readers[box + 1] - p->s->readers[box];
    const int32_t x = x_of(p, box) + BOX_WIDTH / 2 + 8, y = y_of(p, box) + BOX_HEIGHT + 4;
    if (n == 1)
        draw_tag(p, x, y, far[0], "\xE2\x86\x93", title_of(p, far[0]));
    else if (n > 1)
        draw_tag(p, x, y, box, "\xE2\x86\x93", arena_printf(p->scratch, "%" PRIu32, n));
}

/* ---- boxes ---- */

static const char *class_of(const Box *b)
{
    if (b->result >= 0)
        return "result";
    return b->node->op == OP_input ? "input" : fuse_word(op_of(b->node)->fuse);
}

/* The shape of the first parameter that a node reads, as 64x3x7x7; null when it reads none. */
static const char *held_shape(Pen *p, const Node *n)
{
    const Type *type = NULL;
    for (int i = 0; i < n->n_in && !type; i++)
        if (in(n, i) && node_is_held(in(n, i)) && in(n, i)->op != OP_const)
            type = in(n, i)->type;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 0 || type->rank > MOST_SHAPE)
        return NULL;
    Text t;
    text_open(&t, p->scratch);
    text_add(&t, type->rank ? "" : "scalar");
    for (int i = 0; i < type->rank; i++) {
        text_add(&t, i ? "\xC3\x97" : "");
        if (type->dims[i] == DIM_UNKNOWN)
            text_char(&t, '?');
        else
            text_printf(&t, "%" PRId64, type->dims[i]);
    }
    return text_get(&t);
}

static void add_line(Pen *p, const char *class, int y, const char *text, int most, bool tail)
{
    if (!text || !*text)
        return;
    text_printf(&p->q->text, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, *class == 's' ? BOX_WIDTH - 8 : 8, y);
    quill_html(p->q, text, most, tail);
    text_add(&p->q->text, "</text>");
}

static void draw_regions(Pen *p, const Node *n)
{
    const size_t first = scene_region(p->s->page, n);
    const int shown = n->n_regions < 4 ? n->n_regions : 4;
    for (int r = 0; r < shown; r++) {
        const int x = BOX_WIDTH - 30 - 28 * (shown - 1 - r);
        text_printf(&p->q->text,
                    "<a class=\"open\" href=\"#g%zu\"><rect x=\"%d\" y=\"4\" width=\"24\" height=\"16\" rx=\"3\"/>"
                    "<text x=\"%d\" y=\"16\">{%d}</text></a>",
                    first + (size_t)r, x, x + 3, r);
    }
}

static void draw_box(Pen *p, uint32_t box)
{
    Text *t = &p->q->text;
    const Box *b = &p->s->boxes[box];
    const Node *n = b->node;
    const bool node = b->result < 0;
    const char *const word = node ? op_of(n)->name : "result", *side = node ? held_shape(p, n) : NULL;
    text_add(t, "<g id=\"");
    add_target(p, box);
    text_printf(t, "\" class=\"n %s%s\" transform=\"translate(%" PRId32 " %" PRId32 ")\">", class_of(b),
                node && n->flags & NODE_BACKWARD ? " back" : "", x_of(p, box), y_of(p, box));
    text_printf(t, "<rect width=\"%d\" height=\"%d\" rx=\"%d\"/>", BOX_WIDTH, BOX_HEIGHT,
                node && n->op != OP_input ? 5 : 18);
    add_line(p, "o", 17, word, side ? WORD_COLUMNS : 22, false);
    if (node && !n->n_regions)
        add_line(p, "s", 16, side, SIDE_COLUMNS - (int)strlen(word) * 6 / 5, false);
    add_line(p, "t", 31, n ? type_text(p->scratch, n->type) : "", LINE_COLUMNS, false);
    add_line(p, "m", 44, node && n->label ? n->label : title_of(p, box), LINE_COLUMNS, true);
    if (node)
        draw_regions(p, n);
    text_add(t, "</g>");
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
        draw_box(p, boxes[i].box);
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
        if (s->boxes[i].result >= 0)
            continue;
        text_printf(&p->q->text, "%s%" PRIu32 ",%" PRId32 ",%" PRId32, any ? "," : "",
                    scene_id(s->page, s->boxes[i].node), s->lanes.row[i], s->lanes.lane[i]);
        any = true;
    }
    text_add(&p->q->text, "]\">\n");
}

void svg_sheet(Quill *q, const Sheet *s, bool asleep, Arena *scratch)
{
    Text *t = &q->text;
    Arena words;
    arena_open(&words, scratch->memory);
    arena_alloc(&words, 1); /* its first chunk stays when what a box needed is forgotten */
    Pen p = { q, s, &words };
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
