#include <inttypes.h>

#include "frontends/view/quill.h"
#include "frontends/view/scene.h"
#include "frontends/view/view.h"

/* A graph whose nodes are partly written. */
typedef struct Open {
    size_t page;
    const Node *next;
    int region;
} Open;

typedef struct Dot {
    Quill *q;
    const Scene *s;
    Arena *scratch;
    Open *open; /* the graphs around, outermost first */
    size_t depth, cap;
} Dot;

static void indent(Dot *d)
{
    for (size_t i = 0; i < d->depth; i++)
        text_add(&d->q->text, "  ");
}

static const char *shape_of(const Node *n)
{
    return n->op == OP_input ? "ellipse" : node_is_held(n) ? "note" : "box";
}

/* "launch 3, 7": where a node runs. */
static void add_run(Dot *d, Text *label, const Node *n)
{
    const ViewFacts *f = d->s->facts;
    const ViewRun run = f && f->run ? f->run(f->runs, n) : (ViewRun){ .n = 0 };
    for (int i = 0; i < run.n; i++)
        text_printf(label, "%s%d", i ? ", " : "\nlaunch ", run.launches[i]);
}

static void add_node(Dot *d, const Page *p, const Node *n)
{
    const ArenaMark mark = arena_mark(d->scratch);
    Text label;
    text_open(&label, d->scratch);
    text_printf(&label, "%s\n%s: %s", op_of(n)->name, scene_title(p, n, d->scratch), type_text(d->scratch, n->type));
    if (n->label)
        text_printf(&label, "\n%s", n->label);
    add_run(d, &label, n);
    indent(d);
    text_printf(&d->q->text, "n%" PRIu32 " [shape=%s, label=", scene_id(p, n), shape_of(n));
    quill_dot(d->q, text_get(&label));
    text_add(&d->q->text, n->flags & NODE_BACKWARD ? ", style=dashed];\n" : "];\n");
    for (int i = 0; i < n->n_in; i++) {
        if (!in(n, i))
            continue;
        indent(d);
        text_printf(&d->q->text, "n%" PRIu32 " -> n%" PRIu32 ";\n", scene_id(p, in(n, i)), scene_id(p, n));
    }
    arena_reset(d->scratch, mark);
    quill_rest(d->q);
}

static void add_results(Dot *d, const Page *p)
{
    for (int i = 0; i < graph_n_results(p->graph); i++) {
        const Node *n = graph_result(p->graph, i);
        const char *name = graph_result_name(p->graph, i);
        const ArenaMark mark = arena_mark(d->scratch);
        indent(d);
        text_printf(&d->q->text, "r%zu_%d [shape=ellipse, label=", p->id, i);
        quill_dot(d->q, name ? name : n ? scene_title(p, n, d->scratch) : "_");
        text_add(&d->q->text, "];\n");
        if (n) {
            indent(d);
            text_printf(&d->q->text, "n%" PRIu32 " -> r%zu_%d;\n", scene_id(p, n), p->id, i);
        }
        arena_reset(d->scratch, mark);
    }
}

static void enter(Dot *d, size_t page, int region)
{
    const Page *p = &d->s->pages[page];
    const char *name = p->graph->name ? p->graph->name : "";
    const Node *owner = p->graph->owner;
    indent(d);
    text_printf(&d->q->text, "subgraph cluster_%zu {\n", page);
    GROW(d->scratch, d->open, d->depth, d->cap);
    d->open[d->depth++] = (Open){ page, page_first(p), region };
    indent(d);
    text_add(&d->q->text, "label=");
    quill_dot(d->q, owner ? arena_printf(d->scratch, "%s {%d}", op_of(owner)->name, region) : name);
    text_add(&d->q->text, ";\n");
}

static void leave(Dot *d)
{
    add_results(d, &d->s->pages[d->open[d->depth - 1].page]);
    d->depth--;
    indent(d);
    text_add(&d->q->text, "}\n");
}

/* A graph and all inside it; what a node owns comes right behind it. */
static void add_graph(Dot *d, size_t page)
{
    const size_t bottom = d->depth;
    enter(d, page, 0);
    while (d->depth > bottom) {
        Open *top = &d->open[d->depth - 1];
        const Page *p = &d->s->pages[top->page];
        const Node *n = top->next;
        if (n) {
            top->next = page_next(p, n);
            add_node(d, p, n);
            if (n->n_regions)
                enter(d, scene_region(p, n), 0);
            continue;
        }
        const size_t at = top->page, region = (size_t)top->region + 1;
        leave(d);
        if (p->graph->owner && region < (size_t)p->graph->owner->n_regions)
            enter(d, at + 1, (int)region);
    }
}

Status view_dot(const Module *m, const ViewFacts *facts, Diag *diag, const Sink *sink)
{
    (void)diag;
    Arena arena, scratch;
    Quill q;
    arena_open(&arena, m->ir->memory);
    arena_open(&scratch, m->ir->memory);
    quill_open(&q, &arena, sink);
    Scene s = scene_of(m, &arena);
    s.facts = facts;
    Dot d = { .q = &q, .s = &s, .scratch = &scratch };
    text_add(&q.text, "digraph model {\n");
    /* the outermost text is one level deep, with no graph around it */
    GROW(&scratch, d.open, d.depth, d.cap);
    d.open[d.depth++] = (Open){ 0, NULL, 0 };
    indent(&d);
    text_add(&q.text, "node [fontname=\"monospace\", fontsize=10];\n");
    for (size_t i = 0; i < s.n_pages; i++)
        if (s.pages[i].owner == i)
            add_graph(&d, i);
    text_add(&q.text, "}\n");
    const Status status = quill_end(&q);
    arena_close(&scratch);
    arena_close(&arena);
    return status;
}
