#include "frontends/view/pen.h"

#include <inttypes.h>
#include <string.h>

#include "ops/card/words.h"

/* Columns of text that fit: the font is 0.6 em wide. */
enum { WORD_COLUMNS = 16, SIDE_COLUMNS = 27, LINE_COLUMNS = 27, MOST_SHAPE = 8 };

int32_t pen_x(const Pen *p, uint32_t box)
{
    return SHEET_MARGIN + p->s->lanes.lane[box] * LANE_PITCH;
}

int32_t pen_y(const Pen *p, uint32_t box)
{
    return SHEET_MARGIN + p->s->lanes.row[box] * ROW_PITCH;
}

/* What stands for a box in links: its node, its group, or the page and number of a result. */
void pen_target(Pen *p, uint32_t box)
{
    const Box *b = &p->s->boxes[box];
    if (b->group)
        text_printf(&p->q->text, "m%zu-%" PRIu32, p->s->page->id, b->group);
    else if (b->result < 0)
        text_printf(&p->q->text, "n%" PRIu32, scene_id(p->s->page, b->node));
    else
        text_printf(&p->q->text, "r%zu-%d", p->s->page->id, b->result);
}

const char *pen_title(Pen *p, uint32_t box)
{
    const Box *b = &p->s->boxes[box];
    const char *name = b->result >= 0 ? graph_result_name(p->s->page->graph, b->result) : NULL;
    if (b->group)
        return p->s->groups->list[b->group].name;
    return name ? name : b->node ? scene_title(p->s->page, b->node, p->scratch) : "";
}

/* ---- launches ---- */

static ViewRun run_of(const Pen *p, uint32_t box)
{
    const Box *b = &p->s->boxes[box];
    return p->facts && p->facts->run && b->node && b->result < 0 ? p->facts->run(p->facts->runs, b->node)
                                                                 : (ViewRun){ .n = 0 };
}

/* A colour for each launch, for who wants to see them: neighbours are far apart on the circle. */
static void add_hue(Pen *p, const ViewRun *run)
{
    if (run->n)
        text_printf(&p->q->text, " style=\"--hue:%" PRId64 "\"", (int64_t)run->main * 137 % 360);
}

/* The numbers of the launches, above the box. */
static void add_launches(Pen *p, const ViewRun *run, int x, int y)
{
    enum { MOST = 3 };
    if (!run->n)
        return;
    text_printf(&p->q->text, "<text class=\"l\" x=\"%d\" y=\"%d\">", x, y);
    for (int i = 0; i < run->n && i < MOST; i++)
        text_printf(&p->q->text, "%s%d", i ? ", " : "launch ", run->launches[i]);
    text_add(&p->q->text, run->n > MOST ? " ..</text>" : "</text>");
}

/* ---- boxes ---- */

static const char *class_of(const Box *b)
{
    if (b->result >= 0)
        return "result";
    return b->node->op == OP_input ? "input" : access_word(op_of(b->node)->access.kind);
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

/* What only changes how numbers are stored is no box: "f32 -> bf16" in a pill, Q and DQ with cut corners. */
static bool is_conversion(const Box *b)
{
    const Op op = b->node && b->result < 0 ? b->node->op : OP_return;
    return op == OP_cast || op == OP_amp_cast || op == OP_cast_like || op == OP_quantize_linear ||
           op == OP_dequantize_linear;
}

/* "i8"; "i4" of codes that are so many in a type of 8 bits. */
static const char *element_word(const Pen *p, const Node *n)
{
    if (!n || n->type->kind != TYPE_TENSOR)
        return "?";
    const int bits = view_code_bits(n);
    const char *word = dtype_name(n->type->dtype);
    return bits ? arena_printf(p->scratch, "%c%d", *word, bits) : word;
}

static void draw_conversion(Pen *p, uint32_t box)
{
    enum { WIDTH = 116, HEIGHT = 24, LEFT = (BOX_WIDTH - WIDTH) / 2, TOP = (BOX_HEIGHT - HEIGHT) / 2, CUT = 9 };
    Text *t = &p->q->text;
    const Node *n = p->s->boxes[box].node;
    const bool quant = n->op == OP_quantize_linear || n->op == OP_dequantize_linear;
    const ViewRun run = run_of(p, box);
    text_add(t, "<g id=\"");
    pen_target(p, box);
    text_printf(t, "\" class=\"n small %s p-%s%s\"", quant ? "quant" : "cast",
                view_precision_word(view_precision_of(n)), n->flags & NODE_BACKWARD ? " back" : "");
    add_hue(p, &run);
    text_printf(t, " transform=\"translate(%" PRId32 " %" PRId32 ")\">", pen_x(p, box), pen_y(p, box));
    text_printf(t, "<path d=\"M%d 0V%dM%d %dV%d\"/>", BOX_WIDTH / 2, TOP, BOX_WIDTH / 2, TOP + HEIGHT, BOX_HEIGHT);
    if (quant)
        text_printf(t, "<polygon class=\"shape\" points=\"%d,%d %d,%d %d,%d %d,%d %d,%d %d,%d\"/>", LEFT + CUT, TOP,
                    LEFT + WIDTH - CUT, TOP, LEFT + WIDTH, BOX_HEIGHT / 2, LEFT + WIDTH - CUT, TOP + HEIGHT, LEFT + CUT,
                    TOP + HEIGHT, LEFT, BOX_HEIGHT / 2);
    else
        text_printf(t, "<rect class=\"shape\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>", LEFT, TOP,
                    WIDTH, HEIGHT, HEIGHT / 2);
    add_launches(p, &run, LEFT + 4, TOP - 3);
    text_printf(t, "<text class=\"o\" x=\"%d\" y=\"%d\">%s%s \xE2\x86\x92 %s</text></g>", BOX_WIDTH / 2,
                BOX_HEIGHT / 2 + 4,
                n->op == OP_quantize_linear     ? "Q "
                : n->op == OP_dequantize_linear ? "DQ "
                                                : "",
                element_word(p, in(n, 0)), element_word(p, n));
}

/* The precisions of a group's nodes as a bar below its name. */
static void draw_mix(Pen *p, const Group *g)
{
    enum { LEFT = 8, WIDTH = BOX_WIDTH - 16, TOP = 38, HEIGHT = 7 };
    uint64_t before = 0, all = g->n_nodes ? g->n_nodes : 1;
    for (int k = 0; k < VIEW_PRECISION_COUNT; k++) {
        if (!g->mix[k])
            continue;
        const int from = (int)(before * WIDTH / all), to = (int)((before + g->mix[k]) * WIDTH / all);
        before += g->mix[k];
        text_printf(&p->q->text,
                    "<rect class=\"mix p-%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>%" PRIu32
                    " of %s</title></rect>",
                    view_precision_word((ViewPrecision)k), LEFT + from, TOP, to > from ? to - from : 1, HEIGHT,
                    g->mix[k], view_precision_word((ViewPrecision)k));
    }
}

static const char *size_text(Arena *arena, uint64_t bytes)
{
    static const char *const units[] = { "kB", "MB", "GB", "TB" };
    double v = (double)bytes / 1000;
    size_t unit = 0;
    for (; v >= 999.95 && unit + 1 < COUNT(units); unit++)
        v /= 1000;
    return bytes < 1000 ? arena_printf(arena, "%d bytes", (int)bytes) : arena_printf(arena, "%.1f %s", v, units[unit]);
}

static void draw_group(Pen *p, uint32_t box)
{
    Text *t = &p->q->text;
    const Group *g = &p->s->groups->list[p->s->boxes[box].group];
    text_add(t, "<a class=\"n group\" href=\"#");
    pen_target(p, box);
    text_printf(t, "\" transform=\"translate(%" PRId32 " %" PRId32 ")\">", pen_x(p, box), pen_y(p, box));
    text_printf(
        t, "<rect x=\"4\" y=\"-4\" width=\"%d\" height=\"%d\" rx=\"5\"/><rect width=\"%d\" height=\"%d\" rx=\"5\"/>",
        BOX_WIDTH, BOX_HEIGHT, BOX_WIDTH, BOX_HEIGHT);
    add_line(p, "o", 16, g->name, 22, true);
    add_line(p, "t", 31, arena_printf(p->scratch, "%" PRIu32 " nodes, %s", g->n_nodes, size_text(p->scratch, g->bytes)),
             LINE_COLUMNS, false);
    draw_mix(p, g);
    text_add(t, "</a>");
}

static void draw_box(Pen *p, uint32_t box)
{
    Text *t = &p->q->text;
    const Box *b = &p->s->boxes[box];
    const Node *n = b->node;
    const bool node = b->result < 0;
    const ViewRun run = run_of(p, box);
    const char *const word = node ? op_of(n)->name : "result", *side = node ? held_shape(p, n) : NULL;
    text_add(t, "<g id=\"");
    pen_target(p, box);
    text_printf(t, "\" class=\"n %s p-%s%s\"", class_of(b), view_precision_word(view_precision_of(n)),
                node && n->flags & NODE_BACKWARD ? " back" : "");
    add_hue(p, &run);
    text_printf(t, " transform=\"translate(%" PRId32 " %" PRId32 ")\">", pen_x(p, box), pen_y(p, box));
    text_printf(t, "<rect width=\"%d\" height=\"%d\" rx=\"%d\"/>", BOX_WIDTH, BOX_HEIGHT,
                node && n->op != OP_input ? 5 : 18);
    add_launches(p, &run, 4, -4);
    add_line(p, "o", 17, word, side ? WORD_COLUMNS : 22, false);
    if (node && !n->n_regions)
        add_line(p, "s", 16, side, SIDE_COLUMNS - (int)strlen(word) * 6 / 5, false);
    add_line(p, "t", 31, n ? type_text(p->scratch, n->type) : "", LINE_COLUMNS, false);
    add_line(p, "m", 44, node && n->label ? n->label : pen_title(p, box), LINE_COLUMNS, true);
    if (node)
        draw_regions(p, n);
    text_add(t, "</g>");
}

void pen_box(Pen *p, uint32_t box)
{
    if (p->s->boxes[box].group)
        draw_group(p, box);
    else if (is_conversion(&p->s->boxes[box]))
        draw_conversion(p, box);
    else
        draw_box(p, box);
}
