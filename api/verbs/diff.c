#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/step.h"
#include "api/model/census.h"
#include "api/verbs/diff.h"
#include "api/verbs/verbs.h"
#include "base/bytes.h"
#include "ir/text/print.h"

enum { MOST_LISTED = 12, LONGEST = 200 };

static void escaped(Text *t, const char *name)
{
    text_escape(t, name, strlen(name), LONGEST);
}

/* ---- operators ---- */

static void count_record(Diff *d, const char *of, const char *name, int64_t a, int64_t b)
{
    if (a == b || !out_is_json(d->c->out))
        return;
    d->n_differences++;
    log_record(&d->records, "difference", { "of", logged_text(of) }, { "name", logged_text(name) },
               { "before", logged_int(a) }, { "after", logged_int(b) });
}

static void count_line(Text *t, const char *op, int64_t a, int64_t b)
{
    enum { BEFORE = 40, AFTER = 50 };
    text_add(t, "  ");
    escaped(t, op);
    text_char(t, ' ');
    text_pad(t, BEFORE);
    text_printf(t, "%8" PRId64 " %8" PRId64, a, b);
    text_printf(t, a == b ? "\n" : "  %+" PRId64 "\n", b - a);
}

/* Nodes by the float type that they give: the first result decides. */
static void count_floats(qcc_model *m, int64_t counts[DTYPE_COUNT])
{
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n)) {
        const Type *type = type_results(n->type) ? type_result(n->type, 0) : n->type;
        if (!op_of(n)->structural && type->kind == TYPE_TENSOR && dtype_is_float(type->dtype))
            counts[type->dtype]++;
    }
}

/* Said where something is not f32. */
static void diff_precision(Diff *d)
{
    int64_t a[DTYPE_COUNT] = { 0 }, b[DTYPE_COUNT] = { 0 };
    bool mixed = false;
    count_floats(d->model[0], a);
    count_floats(d->model[1], b);
    for (int i = 0; i < DTYPE_COUNT; i++)
        mixed |= i != F32 && (a[i] || b[i]);
    for (int i = 0; i < DTYPE_COUNT && mixed; i++)
        if (a[i] || b[i]) {
            count_line(&d->text, arena_printf(d->arena, "nodes in %s", dtype_name((DType)i)), a[i], b[i]);
            count_record(d, "precision", dtype_name((DType)i), a[i], b[i]);
        }
}

static void diff_ops(Diff *d)
{
    const Census a = census_of(d->model[0], d->arena), b = census_of(d->model[1], d->arena);
    const OpCount *list = census_sorted(&a, d->arena);
    Text *t = &d->text;
    text_printf(t, "%-40s %8s %8s\n", "operators", "before", "after");
    for (size_t i = 0; i < a.ops.n; i++) {
        count_line(t, list[i].op, list[i].n, census_count(&b, list[i].op));
        count_record(d, "operator", list[i].op, list[i].n, census_count(&b, list[i].op));
    }
    list = census_sorted(&b, d->arena);
    for (size_t i = 0; i < b.ops.n; i++)
        if (!census_count(&a, list[i].op)) {
            count_line(t, list[i].op, 0, list[i].n);
            count_record(d, "operator", list[i].op, 0, list[i].n);
        }
    count_line(t, "all nodes", (int64_t)a.nodes, (int64_t)b.nodes);
    count_line(t, "casts", (int64_t)a.casts, (int64_t)b.casts);
    diff_precision(d);
}

/* ---- the signature ---- */

/* The values of one side of a signature. */
typedef struct Side {
    const Value *values;
    size_t n;
    const Map *names;
} Side;

static const Value *value_named(const Side *side, const char *name)
{
    const MapEntry *e = map_find(side->names, name);
    return e ? &side->values[e->value.u] : NULL;
}

static size_t diff_values(Diff *d, const char *word, Side a, Side b)
{
    Text *t = &d->text;
    size_t changed = 0;
    for (size_t i = 0; i < a.n; i++) {
        const Value *other = value_named(&b, a.values[i].name);
        if (other && strcmp(other->text, a.values[i].text) == 0)
            continue;
        changed++;
        text_label(t, word);
        escaped(t, a.values[i].name);
        text_printf(t, " %s -> %s\n", a.values[i].text, other ? other->text : "absent");
        diff_record(d, word, a.values[i].name, a.values[i].text, other ? other->text : NULL, NULL);
    }
    for (size_t i = 0; i < b.n; i++) {
        if (value_named(&a, b.values[i].name))
            continue;
        changed++;
        text_label(t, word);
        escaped(t, b.values[i].name);
        text_printf(t, " absent -> %s\n", b.values[i].text);
        diff_record(d, word, b.values[i].name, NULL, b.values[i].text, NULL);
    }
    return changed;
}

static void diff_signature(Diff *d)
{
    const qcc_model *a = d->model[0], *b = d->model[1];
    text_add(&d->text, "signature\n");
    size_t n = diff_values(d, "input", (Side){ a->inputs, a->n_inputs, &a->input_names },
                           (Side){ b->inputs, b->n_inputs, &b->input_names });
    n += diff_values(d, "output", (Side){ a->outputs, a->n_outputs, &a->output_names },
                     (Side){ b->outputs, b->n_outputs, &b->output_names });
    if (!n)
        text_add(&d->text, "  equal\n");
}

/* ---- nodes ---- */

static const char *key_of(const Node *n)
{
    return n->label ? n->label : n->name;
}

static bool computes(const Node *n)
{
    return (!op_of(n)->structural || n->op == OP_opaque) && key_of(n);
}

static Map nodes_of(qcc_model *m, Arena *arena)
{
    Map map;
    map_open(&map, arena);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (computes(n))
            map_put(&map, key_of(n), NULL)->value.p = n;
    return map;
}

static const char *line_of(Arena *arena, Numbering *numbers, const Node *n)
{
    Text t;
    text_open(&t, arena);
    print_line(&t, numbers, n);
    return text_get(&t);
}

/* Names that one side has and the other lacks: `of` nodes or parameters, only there before or only after. */
static void list_missing(Diff *d, const char *of, bool before, const Map *have, const Map *other)
{
    const char *word = before ? "only before" : "only after", *there = "there";
    size_t n = 0;
    for (size_t i = 0; i < have->n; i++) {
        if (map_find(other, have->entries[i].key))
            continue;
        n++;
        diff_record(d, of, have->entries[i].key, before ? there : NULL, before ? NULL : there, NULL);
    }
    if (!n)
        return;
    text_label(&d->text, word);
    text_printf(&d->text, "%zu:", n);
    for (size_t i = 0, told = 0; i < have->n && told < MOST_LISTED; i++)
        if (!map_find(other, have->entries[i].key)) {
            text_add(&d->text, told++ ? ", " : " ");
            escaped(&d->text, have->entries[i].key);
        }
    text_add(&d->text, n > MOST_LISTED ? ", ...\n" : "\n");
}

static void tell_changed(Diff *d, const Node *a, const Node *b)
{
    Text *t = &d->text;
    text_label(t, "");
    escaped(t, key_of(a));
    const char *before = op_title(d->arena, a), *after = op_title(d->arena, b);
    if (strcmp(before, after) != 0)
        text_printf(t, ": %s -> %s", before, after);
    else if (a->type->kind == TYPE_TENSOR && b->type->kind == TYPE_TENSOR && a->type->dtype != b->type->dtype)
        text_printf(t, ": %s, %s -> %s", before, dtype_name(a->type->dtype), dtype_name(b->type->dtype));
    else
        text_printf(t, ": %s, operands, attributes or shape", before);
    text_char(t, '\n');
}

static void diff_nodes(Diff *d)
{
    const Map a = nodes_of(d->model[0], d->arena), b = nodes_of(d->model[1], d->arena);
    Numbering in_a = numbering_of(d->model[0]->graph, d->arena), in_b = numbering_of(d->model[1]->graph, d->arena);
    size_t changed = 0, before = d->text.n;
    text_add(&d->text, "nodes\n");
    list_missing(d, "node", true, &a, &b);
    list_missing(d, "node", false, &b, &a);
    for (size_t i = 0; i < a.n; i++) {
        const MapEntry *other = map_find(&b, a.entries[i].key);
        const char *was = other ? line_of(d->arena, &in_a, a.entries[i].value.p) : NULL;
        const char *is = other ? line_of(d->arena, &in_b, other->value.p) : NULL;
        if (!other || strcmp(was, is) == 0)
            continue;
        diff_record(d, "node", a.entries[i].key, was, is, NULL);
        if (changed++ < MOST_LISTED) {
            if (changed == 1)
                text_add(&d->text, "  changed\n");
            tell_changed(d, a.entries[i].value.p, other->value.p);
        }
    }
    if (changed > MOST_LISTED)
        text_printf(&d->text, "  and %zu more changed\n", changed - MOST_LISTED);
    if (d->text.n == before + strlen("nodes\n"))
        text_add(&d->text, "  equal\n");
}

/* ---- initializers ---- */

static Map weights_of(qcc_model *m, Arena *arena)
{
    Map map;
    map_open(&map, arena);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (n->op == OP_param && n->name && n->type->kind == TYPE_TENSOR)
            map_put(&map, n->name, NULL)->value.p = node_payload(n);
    return map;
}

/* A text of a graph keeps names of strings, not what they are. */
static Status string_change(Diff *d, Payload *a, Payload *b, const char **change)
{
    Payload *const both[2] = { a, b };
    const Str *texts[2];
    for (int k = 0; k < 2; k++) {
        texts[k] = payload_strings(both[k], d->arena, &d->c->cx->diag);
        if (both[k]->failed)
            return both[k]->failed;
    }
    const char *what = texts[0] && texts[1] ? NULL : "not all values are there to be compared";
    const int64_t n = type_elements(a->type);
    for (int64_t i = 0; !what && i < n; i++)
        if (!str_equal(texts[0][i], texts[1][i]))
            what = "other values";
    if (what)
        *change = arena_printf(d->arena, "%s, %s", type_text(d->arena, a->type), what);
    return OK;
}

/* What differs between two payloads; null: nothing. */
static Status payload_change(Diff *d, Payload *a, Payload *b, const char **change)
{
    size_t bytes;
    void *block[2] = { NULL, NULL };
    *change = NULL;
    const char *before = type_text(d->arena, a->type), *after = type_text(d->arena, b->type);
    if (strcmp(before, after) != 0) {
        *change = arena_printf(d->arena, "%s -> %s", before, after);
        return OK;
    }
    if (a->type->dtype == STRING)
        return string_change(d, a, b, change);
    if (!type_bytes(a->type, &bytes))
        return OK;
    const void *x = payload_bytes(a, &d->heap, &block[0], &d->c->cx->diag);
    const void *y = x ? payload_bytes(b, &d->heap, &block[1], &d->c->cx->diag) : NULL;
    if (y && !bytes_equal(x, y, bytes))
        *change = arena_printf(d->arena, "%s, other values", before);
    heap_free(&d->heap, block[0]);
    heap_free(&d->heap, block[1]);
    return y || !bytes ? OK : a->failed ? a->failed : b->failed ? b->failed : INVALID;
}

static Status diff_weights(Diff *d)
{
    const Map a = weights_of(d->model[0], d->arena), b = weights_of(d->model[1], d->arena);
    size_t changed = 0, before = d->text.n;
    text_add(&d->text, "parameters\n");
    list_missing(d, "parameter", true, &a, &b);
    list_missing(d, "parameter", false, &b, &a);
    for (size_t i = 0; i < a.n; i++) {
        const MapEntry *other = map_find(&b, a.entries[i].key);
        const char *change = NULL;
        if (other)
            TRY(payload_change(d, a.entries[i].value.p, other->value.p, &change));
        if (change)
            diff_record(d, "parameter", a.entries[i].key, NULL, NULL, change);
        if (!change || changed++ >= MOST_LISTED)
            continue;
        text_label(&d->text, changed == 1 ? "changed" : "");
        escaped(&d->text, a.entries[i].key);
        text_printf(&d->text, " %s\n", change);
    }
    if (changed > MOST_LISTED)
        text_printf(&d->text, "  and %zu more changed\n", changed - MOST_LISTED);
    if (d->text.n == before + strlen("parameters\n"))
        text_add(&d->text, "  equal\n");
    return OK;
}

/* ---- steps ---- */

static const char *module_text(Diff *d, const Module *m)
{
    Text t;
    Blobs blobs;
    text_open(&t, d->arena);
    blobs_open(&blobs, d->arena);
    return print_module(&t, m, &blobs) == OK ? text_get(&t) : "";
}

/* Behind the models: whether there are steps, and what made them differ. */
static Status diff_steps(Diff *d)
{
    const CommandLine nothing = { .verb = VERB_diff };
    qcc_step *s[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++)
        if (model_is_step(d->model[i]))
            TRY(step_compile(d->model[i], &nothing, &s[i]));
    d->c->cx->diag.file = NULL;
    if (!s[0] && !s[1])
        return OK;
    text_add(&d->text, "step\n");
    if (!s[0] || !s[1]) {
        text_printf(&d->text, "  only %s\n", s[0] ? "before" : "after");
        diff_record(d, "step", NULL, s[0] ? "there" : NULL, s[1] ? "there" : NULL, NULL);
        return OK;
    }
    const bool options = strcmp(s[0]->facts.options, s[1]->facts.options) != 0;
    const bool graphs = strcmp(module_text(d, s[0]->module), module_text(d, s[1]->module)) != 0;
    if (!options && !graphs)
        text_add(&d->text, "  equal\n");
    if (options)
        diff_record(d, "step", "options", s[0]->facts.options, s[1]->facts.options, NULL);
    if (graphs)
        diff_record(d, "step", "graphs", NULL, NULL, "the graphs differ");
    for (int i = 0; i < 2 && options; i++) {
        text_label(&d->text, i ? "after" : "before");
        text_printf(&d->text, " %s\n", s[i]->facts.options);
    }
    if (graphs)
        text_printf(&d->text, "  graphs differ: %zu nodes, %zu after\n", s[0]->facts.nodes, s[1]->facts.nodes);
    return OK;
}

Status command_diff(Command *c)
{
    Diff d = { .c = c, .arena = &c->cx->scratch };
    TRY(command_wants(c, 2));
    for (int i = 0; i < 2; i++)
        TRY(command_model(c, (size_t)i, &d.model[i]));
    c->cx->diag.file = NULL;
    heap_open(&d.heap, &c->cx->memory);
    text_open(&d.text, d.arena);
    text_open(&d.records, d.arena);
    diff_ops(&d);
    diff_signature(&d);
    diff_nodes(&d);
    Status status = diff_weights(&d);
    if (status == OK)
        status = diff_steps(&d);
    if (status == OK)
        status = diff_numbers(&d);
    heap_close(&d.heap);
    if (status != OK && status != MISMATCH)
        return status;
    if (out_is_json(c->out))
        log_record(&d.records, "diff", { "differences", logged_int((int64_t)d.n_differences) });
    const Status written =
        out_is_json(c->out) ? out_objects(c->out, &d.records) : out_bytes(c->out, d.text.p, d.text.n);
    return written == OK ? status : written;
}
