#include "frontends/view/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "frontends/view/view.h"
#include "ops/card/path.h"
#include "ops/card/words.h"

enum { MAY_READ = 1 << 27 };

static void member(Json *j, const char *name, const char *text)
{
    if (!text)
        return;
    text_printf(&j->q->text, ",\"%s\":", name);
    quill_json(j->q, text);
}

/* ---- cards ---- */

static void add_amp(Json *j, const AmpCard *card)
{
    text_printf(&j->q->text, ",\"amp\":{\"f16\":\"%s\",\"bf16\":\"%s\"", amp_word(card->f16), amp_word(card->bf16));
    member(j, "means", amp_meaning(card->f16));
    member(j, "reason", card->reason == REASON_NONE ? NULL : amp_reason(card->reason));
    text_char(&j->q->text, '}');
}

static void add_quant(Json *j, const QuantCard *card)
{
    Text *t = &j->q->text;
    text_add(t, ",\"quant\":[");
    for (size_t i = 0; i < COUNT(card->in) && card->in[i] != QUANT_UNSET; i++) {
        if (i)
            text_char(t, ',');
        quill_json(j->q, quant_word(card->in[i]));
    }
    text_char(t, ']');
    if (card->out[0] != QUANT_UNSET)
        member(j, "quant_out", quant_word(card->out[0]));
}

static void add_card(Json *j, const OpDef *def)
{
    Text *t = &j->q->text;
    quill_json(j->q, def->name);
    text_add(t, ":{\"class\":");
    quill_json(j->q, access_word(def->access.kind));
    member(j, "onnx", def->onnx.op);
    member(j, "domain", def->onnx.op ? def->onnx.domain : NULL);
    if (def->amp.f16 != AMP_UNSET)
        add_amp(j, &def->amp);
    if (def->quant.in[0] != QUANT_UNSET)
        add_quant(j, &def->quant);
    json_defaults(j, def);
    text_char(t, '}');
}

/* The cards of the ops that occur, in the order in which they first do. */
static void add_cards(Json *j, const Scene *s)
{
    Arena *a = s->arena;
    bool *seen = NEWS(a, bool, s->module->ir->ops->n), any = false;
    text_add(&j->q->text, "\"ops\":{");
    for (size_t i = 0; i < s->n_pages; i++) {
        const Page *p = &s->pages[i];
        for (const Node *n = page_first(p); n; n = page_next(p, n)) {
            if (seen[n->op])
                continue;
            seen[n->op] = true;
            text_add(&j->q->text, any ? ",\n  " : "\n  ");
            any = true;
            add_card(j, op_of(n));
        }
    }
    text_add(&j->q->text, any ? "\n},\n" : "},\n");
}

/* ---- nodes ---- */

static void add_inputs(Json *j, const Page *p, const Node *n)
{
    Text *t = &j->q->text;
    text_add(t, ",\"inputs\":[");
    for (int i = 0; i < n->n_in; i++) {
        if (i)
            text_char(t, ',');
        if (in(n, i))
            text_printf(t, "%" PRIu32, scene_id(p, in(n, i)));
        else
            text_add(t, "null");
    }
    text_char(t, ']');
}

static void add_marks(Json *j, const Page *p, const Node *n)
{
    Text *t = &j->q->text;
    if (n->n_regions) {
        const size_t first = scene_region(p, n);
        for (int r = 0; r < n->n_regions; r++)
            text_printf(t, r ? ",%zu" : ",\"regions\":[%zu", first + (size_t)r);
        text_char(t, ']');
    }
    if (n->src)
        text_printf(t, ",\"source\":%" PRIu32, n->src);
    if (n->flags & NODE_OURS)
        text_add(t, ",\"ours\":true");
    if (n->flags & NODE_BACKWARD)
        text_add(t, ",\"side\":\"backward\"");
    if (n->flags & NODE_UPDATE)
        text_add(t, ",\"side\":\"update\"");
    if (n->flags & NODE_TRAINED)
        text_add(t, ",\"trained\":true");
}

static void add_origin(Json *j, const Node *n)
{
    const CodePlace *place = node_code(n);
    member(j, "module", node_module(n));
    member(j, "line", place ? place->line : NULL);
}

static void add_note(Json *j, const Node *n)
{
    const ViewNote *note = j->facts && j->facts->note ? j->facts->note(j->facts->user, n) : NULL;
    if (!note)
        return;
    text_add(&j->q->text, ",\"width\":{\"stored\":");
    quill_json(j->q, note->stored);
    member(j, "computes", note->computes);
    member(j, "why", note->why);
    if (note->saved)
        text_printf(&j->q->text, ",\"saved\":%" PRId64, note->saved);
    text_char(&j->q->text, '}');
}

static void number(Json *j, const char *name, double x)
{
    if (isnan(x))
        return;
    text_printf(&j->q->text, ",\"%s\":", name);
    if (isfinite(x))
        text_printf(&j->q->text, "%.6g", x);
    else
        text_add(&j->q->text, x > 0 ? "\"inf\"" : "\"-inf\"");
}

static void add_bins(Json *j, const ViewQuant *q)
{
    Text *t = &j->q->text;
    if (!(q->width > 0))
        return;
    text_printf(t, ",\"bins\":{\"from\":%.9g,\"width\":%.9g,%s\"n\":[", q->from, q->width,
                q->absolute ? "\"absolute\":true," : "");
    for (int i = 0; i < VIEW_BINS; i++)
        text_printf(t, i ? ",%" PRId64 : "%" PRId64, q->bins[i]);
    text_add(t, "]}");
}

/* The quantizer of a value, at it and at its codes. */
static void add_quantizer(Json *j, const Node *n)
{
    Text *t = &j->q->text;
    const ViewQuant *q = j->facts && j->facts->quant ? j->facts->quant(j->facts->quants, n) : NULL;
    if (!q)
        return;
    text_add(t, ",\"quantizer\":{\"value\":");
    quill_json(j->q, q->value);
    member(j, "what", q->what);
    member(j, "spec", q->spec);
    member(j, "asked", q->asked);
    member(j, "state", q->state);
    if (q->bits)
        text_printf(t, ",\"bits\":%d,\"codes\":[%.0f,%.0f],\"zero\":%.0f", q->bits, q->least, q->largest, q->zero);
    number(j, "scale_least", q->scale_least);
    number(j, "scale_most", q->scale_most);
    if (q->n_scales)
        text_printf(t, ",\"scales\":%" PRId64, q->n_scales);
    if (q->numbers)
        text_printf(t, ",\"numbers\":%" PRId64, q->numbers);
    number(j, "sqnr", q->sqnr);
    number(j, "clipped", q->clipped);
    number(j, "codes_used", q->used);
    add_bins(j, q);
    text_char(t, '}');
}

/* Where a node runs, or why it does not. */
static void add_run(Json *j, const Page *p, const Node *n)
{
    Text *t = &j->q->text;
    if (!j->facts || !j->facts->run)
        return;
    const ViewRun run = j->facts->run(j->facts->runs, n);
    for (int i = 0; i < run.n; i++)
        text_printf(t, "%s%d", i ? "," : ",\"launches\":[", run.launches[i]);
    text_add(t, run.n ? "]" : "");
    if (run.n > 1)
        text_printf(t, ",\"main\":%d", run.main);
    member(j, "idle", run.none);
    if (run.one)
        text_printf(t, ",\"one\":%" PRIu32, scene_id(p, run.one));
}

static void add_node(Json *j, const Page *p, const Node *n)
{
    Text *t = &j->q->text;
    text_printf(t, "{\"id\":%" PRIu32 ",\"op\":", scene_id(p, n));
    quill_json(j->q, op_of(n)->name);
    member(j, "name", n->name);
    if (!n->name)
        text_printf(t, ",\"number\":%s", scene_title(p, n, j->scratch) + 1);
    member(j, "label", n->label);
    if (n->name && strcmp(path_name(&p->root->paths, n), n->name) != 0)
        member(j, "path", path_name(&p->root->paths, n));
    member(j, "type", type_text(j->scratch, n->type));
    if (n->n_in)
        add_inputs(j, p, n);
    json_attributes(j, n);
    json_value(j, n);
    add_marks(j, p, n);
    add_origin(j, n);
    add_note(j, n);
    add_quantizer(j, n);
    add_run(j, p, n);
    text_char(t, '}');
}

/* ---- programs ---- */

static void add_launch(Json *j, const Page *p, const ViewLaunch *l, int number)
{
    Text *t = &j->q->text;
    text_printf(t, "{\"number\":%d,\"kind\":", number);
    quill_json(j->q, l->kind);
    member(j, "part", l->part);
    member(j, "name", l->name);
    member(j, "what", l->what);
    text_printf(t, ",\"reads\":%.0f,\"writes\":%.0f,\"alive\":%zu", l->reads, l->writes, l->alive);
    if (l->n_beside > 1)
        text_printf(t, ",\"beside\":[%d,%d]", l->first_beside, l->first_beside + l->n_beside - 1);
    text_add(t, l->n_nodes ? ",\"nodes\":[" : ",\"ours\":true,\"nodes\":[");
    for (int i = 0; i < l->n_nodes; i++)
        text_printf(t, "%s%" PRIu32, i ? "," : "", scene_id(p, l->nodes[i]));
    text_add(t, "]}");
}

static void add_program(Json *j, const Page *p)
{
    const ViewProgram *program = view_program(j->facts, p->graph);
    if (!program)
        return;
    member(j, "no_program", program->why);
    if (program->why)
        return;
    text_printf(&j->q->text, ",\"arena\":%zu,\"launches\":[\n", program->arena);
    for (int i = 0; i < program->n; i++) {
        text_add(&j->q->text, i ? ",\n  " : "  ");
        add_launch(j, p, &program->launches[i], i);
        quill_rest(j->q);
    }
    text_add(&j->q->text, program->n ? "\n]" : "]");
}

static void add_results(Json *j, const Page *p)
{
    Text *t = &j->q->text;
    const Graph *g = p->graph;
    text_add(t, ",\"results\":[");
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *n = graph_result(g, i);
        text_add(t, i ? ",{\"node\":" : "{\"node\":");
        if (n)
            text_printf(t, "%" PRIu32, scene_id(p, n));
        else
            text_add(t, "null");
        member(j, "name", graph_result_name(g, i));
        text_char(t, '}');
    }
    text_char(t, ']');
}

static void add_page(Json *j, const Scene *s, size_t at)
{
    const Page *p = &s->pages[at];
    Text *t = &j->q->text;
    text_printf(t, "{\"id\":%zu", at);
    if (p->graph->owner)
        text_printf(t, ",\"owner\":%" PRIu32 ",\"region\":%d,\"within\":%zu",
                    scene_id(&s->pages[p->owner], p->graph->owner), p->region, p->owner);
    else
        member(j, "name", p->graph->name ? p->graph->name : "");
    add_results(j, p);
    add_program(j, p);
    text_add(t, ",\"nodes\":[\n");
    bool any = false;
    for (const Node *n = page_first(p); n; n = page_next(p, n)) {
        const ArenaMark mark = arena_mark(j->scratch);
        text_add(t, any ? ",\n  " : "  ");
        any = true;
        add_node(j, p, n);
        arena_reset(j->scratch, mark);
        quill_rest(j->q);
    }
    text_add(t, any ? "\n]}" : "]}");
}

void json_scene(Json *j, const Scene *s)
{
    Text *t = &j->q->text;
    Arena words;
    arena_open(&words, j->memory);
    arena_alloc(&words, 1); /* its first chunk stays when what a node needed is forgotten */
    j->scratch = &words;
    j->facts = s->facts;
    j->may_read = MAY_READ;
    text_add(t, "{\"format\":\"qcc-graph\",\"version\":1,\n");
    if (s->module->file) {
        text_add(t, "\"file\":");
        quill_json(j->q, s->module->file);
        text_add(t, ",\n");
    }
    add_cards(j, s);
    text_add(t, "\"graphs\":[");
    for (size_t i = 0; i < s->n_pages; i++) {
        text_add(t, i ? ",\n" : "\n");
        add_page(j, s, i);
    }
    text_add(t, "\n]}\n");
    arena_close(&words);
}

Status view_json(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink)
{
    Arena arena;
    Quill q;
    arena_open(&arena, m->ir->memory);
    quill_open(&q, &arena, sink);
    Scene s = scene_of(m, &arena);
    s.facts = facts;
    json_scene(&(Json){ .q = &q, .memory = m->ir->memory, .diag = d }, &s);
    const Status status = quill_end(&q);
    arena_close(&arena);
    return status;
}
