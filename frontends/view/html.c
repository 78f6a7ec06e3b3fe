#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "frontends/view/json.h"
#include "frontends/view/memory.h"
#include "frontends/view/page.h"
#include "frontends/view/svg.h"
#include "frontends/view/view.h"
#include "ops/card/words.h"

enum { MOST_AWAKE = 4000 }; /* nodes that a page draws at once; more are drawn where they are looked at */

/* A page while it is written. */
typedef struct Html {
    Quill *q;
    const Scene *s;
    Arena *scratch;
} Html;

static void put(Html *h, const char *text)
{
    text_add(&h->q->text, text);
}

static void put_text(Html *h, const char *text)
{
    quill_html(h->q, text, INT_MAX, false);
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static const char *file_of(const Html *h)
{
    return h->s->module->file ? base_name(h->s->module->file) : "graph";
}

static const char *title_of(const Html *h)
{
    return h->s->facts && h->s->facts->title ? h->s->facts->title : file_of(h);
}

/* ---- head ---- */

/* Allows the page's own script and nothing else to run: what a model says stays text. */
static void put_hash(Html *h, const char *script)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t hash[SHA256_BYTES + 1] = { 0 };
    Sha256 sum;
    sha256_begin(&sum);
    sha256_add(&sum, script, strlen(script));
    sha256_end(&sum, hash);
    for (int i = 0; i < SHA256_BYTES; i += 3) {
        const uint32_t three = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | (i < 30 ? hash[i + 2] : 0u);
        for (int k = 0; k < 4; k++)
            text_char(&h->q->text, i == 30 && k == 3 ? '=' : digits[three >> (18 - 6 * k) & 63]);
    }
}

static void put_head(Html *h)
{
    put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\""
           "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-");
    put_hash(h, view_page_js);
    put(h, "'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    put_text(h, title_of(h));
    put(h, "</title>\n<style>\n");
    put(h, view_page_css);
    put(h, "</style>\n</head>\n");
}

/* ---- pane: what there is ---- */

typedef struct Tally {
    const OpDef *def;
    uint64_t n;
} Tally;

static int by_count(const void *a, const void *b)
{
    const Tally *p = a, *q = b;
    return p->n != q->n ? (p->n < q->n ? 1 : -1) : strcmp(p->def->name, q->def->name);
}

static void put_tally(Html *h)
{
    const OpTable *ops = h->s->module->ir->ops;
    Tally *tally = NEWS(h->scratch, Tally, ops->n);
    for (size_t i = 0; i < ops->n; i++)
        tally[i].def = ops->defs[i];
    for (size_t i = 0; i < h->s->n_pages; i++)
        for (const Node *n = page_first(&h->s->pages[i]); n; n = page_next(&h->s->pages[i], n))
            tally[n->op].n++;
    qsort(tally, ops->n, sizeof *tally, by_count);
    put(h, "<table class=\"tally\"><thead><tr><th>operator<th>class<th>nodes</thead><tbody>\n");
    for (size_t i = 0; i < ops->n && tally[i].n; i++) {
        put(h, "<tr><td><a href=\"#q=op:");
        put_text(h, tally[i].def->name);
        put(h, "\">");
        put_text(h, tally[i].def->name);
        text_printf(&h->q->text, "</a><td class=\"c-%s\">%s<td>%" PRIu64 "\n", access_word(tally[i].def->access.kind),
                    access_word(tally[i].def->access.kind), tally[i].n);
    }
    put(h, "</tbody></table>\n");
}

static void put_page_title(Html *h, size_t at)
{
    const Page *p = &h->s->pages[at];
    if (p->graph->owner) {
        put_text(h, op_of(p->graph->owner)->name);
        put(h, " ");
        put_text(h, scene_title(&h->s->pages[p->owner], p->graph->owner, h->scratch));
        text_printf(&h->q->text, " {%d}", p->region);
    } else {
        put_text(h, p->graph->name && *p->graph->name ? p->graph->name : "graph");
    }
}

/* ---- pages ---- */

/* A graph or region is section gN, a group of it section mN-G. */
static void put_section(Html *h, size_t at, const Groups *groups, uint32_t group)
{
    Text *t = &h->q->text;
    if (!group) {
        text_printf(t, "<section id=\"g%zu\" data-graph=\"%zu\" data-within=\"g%zu\"><h2>", at, at,
                    h->s->pages[at].owner);
        put_page_title(h, at);
        return;
    }
    const Group *g = &groups->list[group];
    text_printf(t, "<section id=\"m%zu-%" PRIu32 "\" data-graph=\"%zu\" data-within=\"", at, group, at);
    if (g->parent)
        text_printf(t, "m%zu-%" PRIu32, at, g->parent);
    else
        text_printf(t, "g%zu", at);
    put(h, "\"><h2>");
    put_text(h, g->name);
}

static void put_sheet(Html *h, size_t at, const Groups *groups, uint32_t group, bool asleep)
{
    const ArenaMark mark = arena_mark(h->scratch);
    const Sheet sheet = sheet_of(&h->s->pages[at], groups, group, h->scratch);
    put_section(h, at, groups, group);
    put(h, "</h2>\n");
    svg_sheet(h->q, &sheet, h->s->facts, asleep, h->scratch);
    put(h, "</section>\n");
    arena_reset(h->scratch, mark);
    quill_rest(h->q);
}

static void put_page(Html *h, size_t at, bool asleep)
{
    const Page *p = &h->s->pages[at];
    const ArenaMark mark = arena_mark(h->scratch);
    const Groups groups = groups_of(p, h->scratch);
    for (uint32_t i = 0; i < groups.n; i++)
        put_sheet(h, at, &groups, i, asleep);
    arena_reset(h->scratch, mark);
}

/* The colours, and how many nodes of the whole have each. */
static void put_legend(Html *h)
{
    uint64_t n[VIEW_PRECISION_COUNT] = { 0 };
    for (size_t i = 0; i < h->s->n_pages; i++)
        for (const Node *x = page_first(&h->s->pages[i]); x; x = page_next(&h->s->pages[i], x))
            n[view_precision_of(x)] += node_is_drawn(x);
    put(h, "<p class=\"legend\">");
    for (int k = 0; k < VIEW_PRECISION_COUNT; k++)
        if (n[k])
            text_printf(&h->q->text, "<a class=\"p-%s\" href=\"#q=precision:%s\"><i></i>%s <b>%" PRIu64 "</b></a> ",
                        view_precision_word((ViewPrecision)k), view_precision_word((ViewPrecision)k),
                        view_precision_word((ViewPrecision)k), n[k]);
    put(h,
        "</p>\n<p class=\"legend\"><span class=\"pill\">f32 \xE2\x86\x92 bf16</span> cast <span class=\"cut\">Q, DQ</span> "
        "quantization <span class=\"dash\">backward</span></p>\n");
}

/* What is taken while each graph runs. */
static void put_programs(Html *h)
{
    for (size_t i = 0; i < h->s->n_pages; i++) {
        const ViewProgram *p = view_program(h->s->facts, h->s->pages[i].graph);
        if (p && !p->why)
            view_memory(h->q, p, i);
    }
}

static void put_body(Html *h)
{
    put(h, "<body>\n<header><h1>");
    put_text(h, title_of(h));
    if (h->s->facts && h->s->facts->line) {
        put(h, "<small>");
        put_text(h, h->s->facts->line);
        put(h, "</small>");
    }
    put(h, "</h1><nav></nav><form></form></header>\n<main>\n");
    for (size_t i = 0; i < h->s->n_pages; i++)
        put_page(h, i, h->s->n_nodes > MOST_AWAKE);
    put(h, "</main>\n<aside><div id=\"summary\">\n<p class=\"sum\"><b>");
    text_count(&h->q->text, h->s->n_nodes);
    text_printf(&h->q->text, "</b> nodes in <b>%zu</b> graph%s</p>\n", h->s->n_pages, h->s->n_pages == 1 ? "" : "s");
    put_legend(h);
    put_tally(h);
    put_programs(h);
    put(h, "</div><div id=\"detail\"></div></aside>\n");
}

static void put_script(Html *h)
{
    text_printf(&h->q->text,
                "<script type=\"application/json\" id=\"layout\">{\"lane\":%d,\"row\":%d,\"width\":%d,\"height\":%d,"
                "\"margin\":%d,\"tile_lanes\":%d,\"tile_rows\":%d}</script>\n<script>",
                LANE_PITCH, ROW_PITCH, BOX_WIDTH, BOX_HEIGHT, SHEET_MARGIN, TILE_LANES, TILE_ROWS);
    put(h, view_page_js);
    put(h, "</script>\n</body>\n</html>\n");
}

Status view_page(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink)
{
    Arena arena, scratch;
    Quill q;
    arena_open(&arena, m->ir->memory);
    arena_open(&scratch, m->ir->memory);
    quill_open(&q, &arena, sink);
    Scene s = scene_of(m, &arena);
    s.facts = facts;
    Html h = { &q, &s, &scratch };
    put_head(&h);
    put_body(&h);
    put(&h, "<script type=\"application/json\" id=\"model\">");
    json_scene(&(Json){ .q = &q, .memory = m->ir->memory, .diag = d }, &s);
    put(&h, "</script>\n");
    put_script(&h);
    const Status status = quill_end(&q);
    arena_close(&scratch);
    arena_close(&arena);
    return status;
}
