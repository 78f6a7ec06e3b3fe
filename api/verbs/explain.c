#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/census.h"
#include "api/told/stored_told.h"
#include "api/train/train.h"
#include "api/verbs/explain.h"
#include "api/deployed/fusions.h"
#include "api/model/evaluate.h"
#include "api/verbs/verbs.h"
#include "ops/card/path.h"
#include "ops/card/schema.h"

/* "  label          " */
static void escaped(Text *t, const char *name)
{
    enum { LONGEST = 200 };
    text_escape(t, name, strlen(name), LONGEST);
}

/* ---- the first line ---- */

static int64_t opset_of(const Onnx__ModelProto *p)
{
    for (size_t i = 0; i < p->n_opset_import; i++) {
        const Str domain = str_of(p->opset_import[i]->domain);
        if (!domain.n || str_is(domain, "ai.onnx"))
            return p->opset_import[i]->version;
    }
    return 1;
}

static void tell_form(Text *t, const Census *c)
{
    text_printf(t, ", %s form", c->training ? "training" : "inference");
    if (c->norms)
        text_printf(t, ", %zu BatchNormalization", c->norms);
    if (c->dropouts)
        text_printf(t, ", %zu Dropout", c->dropouts);
    if (c->casts)
        text_printf(t, ", %zu Cast", c->casts);
}

static void tell_file(Text *t, qcc_model *m, const Census *c)
{
    escaped(t, m->file);
    text_add(t, "    ");
    if (m->has_spine) {
        const Onnx__ModelProto *p = m->spine.model;
        const Str producer = str_of(p->producer_name), version = str_of(p->producer_version);
        if (producer.n) {
            text_escape(t, producer.p, producer.n, 64);
            text_add(t, version.n ? " " : "");
            text_escape(t, version.p, version.n, 64);
            text_add(t, ", ");
        }
        text_printf(t, "opset %" PRId64 ", IR %" PRId64 ", ", opset_of(p), p->ir_version);
    } else {
        text_printf(t, "graph @%s, ", m->graph->name ? m->graph->name : "");
    }
    text_count(t, (int64_t)c->nodes);
    text_add(t, c->nodes == 1 ? " node" : " nodes");
    tell_form(t, c);
    text_char(t, '\n');
}

/* ---- the signature ---- */

static void tell_values(Text *t, const char *word, const Value *values, size_t n, const Graph *states)
{
    for (size_t i = 0; i < n; i++) {
        text_label(t, i ? "" : word);
        text_add(t, states && states->inputs[i]->op == OP_state ? "state " : "");
        escaped(t, values[i].name);
        text_printf(t, " %s\n", values[i].text);
    }
}

static void tell_ops(Text *t, const Census *c, Arena *arena)
{
    const OpCount *list = census_sorted(c, arena);
    size_t line = t->n;
    text_label(t, "operators");
    for (size_t i = 0; i < c->ops.n; i++) {
        if (t->n - line > 100) {
            text_add(t, ",\n");
            line = t->n;
            text_label(t, "");
        } else if (i) {
            text_add(t, ", ");
        }
        escaped(t, list[i].op);
        text_printf(t, " %" PRId64, list[i].n);
    }
    text_char(t, '\n');
}

/* ---- parameters ---- */

typedef struct Weights {
    Node **list;
    size_t n, cap, renamed;
    uint64_t elements, bytes;
} Weights;

/* Parameters that the file holds and somebody reads; aliases of one payload count once. */
static Weights weights_of(qcc_model *m, const Map *paths, Arena *arena)
{
    Weights w = { 0 };
    Map seen;
    map_open(&seen, arena);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n)) {
        bool fresh;
        size_t bytes = 0;
        if (n->op != OP_param || !n->uses || n->type->kind != TYPE_TENSOR || !n->name)
            continue;
        const void *what = n->flags & NODE_PARAMETER ? (const void *)n : node_payload(n); /* equal ones were merged */
        map_put_u64(&seen, (uintptr_t)what, &fresh);
        if (!fresh)
            continue;
        GROW(arena, w.list, w.n, w.cap);
        w.list[w.n++] = n;
        w.elements += (uint64_t)type_elements(n->type);
        w.bytes += type_bytes(n->type, &bytes) ? bytes : 0;
        w.renamed += strcmp(path_name(paths, n), name_in_file(n)) != 0;
    }
    return w;
}

static void tell_weight(Text *t, const Node *n, const Map *paths, Arena *arena)
{
    size_t bytes = 0;
    const char *shown = path_name(paths, n);
    text_label(t, "");
    escaped(t, shown);
    text_printf(t, " %s, ", type_text(arena, n->type));
    text_add(t, type_bytes(n->type, &bytes) ? bytes_text(arena, bytes) : "unknown size");
    if (strcmp(shown, name_in_file(n)) != 0) {
        text_add(t, ", in the file ");
        escaped(t, name_in_file(n));
    }
    text_char(t, '\n');
}

static void tell_weights(Text *t, qcc_model *m, const Map *paths, Arena *arena, bool all)
{
    enum { SOME = 12 };
    const Weights w = weights_of(m, paths, arena);
    text_label(t, "parameters");
    text_printf(t, "%zu, %s elements, %s", w.n, count_text(arena, w.elements), bytes_text(arena, w.bytes));
    if (w.renamed)
        text_printf(t, "; %zu shown by path name", w.renamed);
    text_char(t, '\n');
    for (size_t i = 0; i < w.n && (all || i < SOME); i++)
        tell_weight(t, w.list[i], paths, arena);
    if (!all && w.n > SOME) {
        text_label(t, "");
        text_printf(t, "and %zu more (-v)\n", w.n - SOME);
    }
}

/* ---- records ---- */

static void value_records(Text *t, const char *side, const Value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        log_record(t, "value", { "side", logged_text(side) }, { "name", logged_text(values[i].name) },
                   { "type", logged_text(values[i].text) });
}

static void model_records(Text *t, qcc_model *m, const Census *c, const Map *paths, Arena *arena)
{
    const Onnx__ModelProto *p = m->has_spine ? m->spine.model : NULL;
    const Weights w = weights_of(m, paths, arena);
    const OpCount *ops = census_sorted(c, arena);
    log_record(t, "model", { "file", logged_text(m->file) }, { "is_step", logged_flag(model_is_step(m)) },
               { "opset", p ? logged_int(opset_of(p)) : logged_text(NULL) },
               { "ir", p ? logged_int(p->ir_version) : logged_text(NULL) }, { "nodes", logged_int((int64_t)c->nodes) },
               { "casts", logged_int((int64_t)c->casts) }, { "training_form", logged_flag(c->training > 0) },
               { "parameters", logged_int((int64_t)w.n) }, { "elements", logged_int((int64_t)w.elements) },
               { "bytes", logged_int((int64_t)w.bytes) });
    value_records(t, "input", m->inputs, m->n_inputs);
    value_records(t, "output", m->outputs, m->n_outputs);
    for (size_t i = 0; i < c->ops.n; i++)
        log_record(t, "operator", { "name", logged_text(ops[i].op) }, { "nodes", logged_int(ops[i].n) });
    for (size_t i = 0; i < w.n; i++) {
        const char *file = name_in_file(w.list[i]), *shown = path_name(paths, w.list[i]);
        size_t bytes;
        log_record(t, "parameter", { "name", logged_text(shown) },
                   { "in_file", logged_text(strcmp(shown, file) ? file : NULL) },
                   { "type", logged_text(type_text(arena, w.list[i]->type)) },
                   { "bytes", type_bytes(w.list[i]->type, &bytes) ? logged_int((int64_t)bytes) : logged_text(NULL) });
    }
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (node_lacks_card(n))
            log_record(t, "unsupported", { "name", logged_text(op_title(arena, n)) },
                       { "node", logged_text(node_place(n).where) });
}

/* ---- what is missing ---- */

static void tell_missing(Text *t, qcc_model *m, Arena *arena)
{
    Map ops;
    map_open(&ops, arena);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (node_lacks_card(n))
            map_put(&ops, op_title(arena, n), NULL)->value.i++;
    if (!ops.n)
        return;
    text_label(t, "not supported");
    for (size_t i = 0; i < ops.n; i++) {
        text_add(t, i ? ", " : "");
        escaped(t, ops.entries[i].key);
        text_printf(t, " %" PRId64, ops.entries[i].value.i);
    }
    text_char(t, '\n');
}

/* Operators whose schema is younger than the opset by which the file asks for it: other releases read another one. */
static void tell_backdated(Text *t, const Onnx__ModelProto *p, const Census *c)
{
    for (size_t i = 0; i < c->ops.n; i++) {
        const OnnxSchema *row = schema_find("", c->ops.entries[i].key, (int)opset_of(p));
        const OnnxBackdated *b = row ? schema_backdated(row) : NULL;
        if (!b || opset_of(p) >= b->opset)
            continue;
        text_label(t, "back-dated");
        text_printf(t, "%s is read as ONNX %s defines it for opset %d on; older releases know an older one\n", b->op,
                    b->release, b->since);
    }
}

static void tell_extras(Text *t, qcc_model *m, const Census *c)
{
    const Onnx__ModelProto *p = m->has_spine ? m->spine.model : NULL;
    if (p)
        tell_backdated(t, p, c);
    if (p && p->n_functions) {
        text_label(t, "functions");
        text_printf(t, "%zu of the model's own, inlined\n", p->n_functions);
    }
    if (p && p->n_training_info) {
        text_label(t, "training info");
        text_printf(t, "%zu\n", p->n_training_info);
    }
}

/* The step of a file, compiled once more so that its reasons are known, or that of a model if it were trained as the
 * line says; null: nothing was said of training. */
static Status step_of(Command *c, qcc_model *m, qcc_step **s)
{
    qcc_step *made;
    *s = NULL;
    if (!model_is_step(m) && !line_wants_step(&c->line))
        return OK;
    TRY(step_compile(m, &c->line, &made));
    *s = made;
    return model_is_step(m) && !made->facts.silent ? step_again(made, "", s) : OK;
}

static Status step_records(Text *t, Command *c, qcc_step *s)
{
    if (s) {
        explain_step_records(t, s);
        TRY(step_stored_told(t, s, true));
        TRY(explain_fusions(t, s, true));
    }
    return explain_figures(t, c, s, true);
}

static Status tell_step(Text *t, Command *c, qcc_step *s)
{
    if (s) {
        explain_step(t, s);
        TRY(step_stored_told(t, s, false));
        TRY(explain_fusions(t, s, false));
    }
    return explain_figures(t, c, s, false);
}

/* Who is asked what becomes of the pairs of a file: whom --for names, or the file, and who fuses for ONNX Runtime otherwise. */
static TargetPredictor predictor_of(Command *c, const QuantTarget *of_file)
{
    const QuantTarget *said = option_given(&c->line, OPT_for_) ? quant_target(option_text(&c->line, OPT_for_)) : NULL;
    const QuantTarget *t = said ? said : of_file;
    return t && t->predicts != PREDICTS_NOTHING ? t->predicts : PREDICTS_ORT;
}

static Status check_arch(Command *c)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--arch";
    if (!option_given(&c->line, OPT_arch) || option_given(&c->line, OPT_kernels))
        return OK;
    Message *m =
        message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "it says what kernels are compiled for: --kernels");
    message_try(m, "qcc explain %s --kernels --arch %s", c->line.n_paths ? c->line.paths[0] : "MODEL",
                option_text(&c->line, OPT_arch));
    return message_send(m);
}

Status command_explain(Command *c)
{
    qcc_model *m;
    qcc_step *s;
    Text t;
    Arena *a = &c->cx->scratch;
    TRY(command_wants(c, 1));
    TRY(check_arch(c));
    if (diverged_is_folder(c->line.paths[0]))
        return diverged_explain(c, c->line.paths[0]);
    if (explain_is_states(a, c->line.paths[0]))
        return explain_states(c, c->line.paths[0]);
    TRY(command_model(c, 0, &m));
    if (!model_is_step(m) || option_given(&c->line, OPT_node) || option_given(&c->line, OPT_plan) ||
        option_given(&c->line, OPT_kernels))
        TRY(command_dims(c, m)); /* of a step data are for figures alone */
    TRY(step_of(c, m, &s));
    const Map paths = path_names(m->graph, &m->arena);
    if (option_given(&c->line, OPT_node))
        return explain_nodes(c, m, &paths, s);
    if (option_given(&c->line, OPT_plan))
        return explain_plan(c, m, s);
    if (option_given(&c->line, OPT_kernels))
        return explain_kernels(c, m, s);
    const Census census = census_of(m, a);
    Fusions fused;
    bool has_pairs;
    const QuantTarget *of_file;
    TRY(model_target(m, &of_file, a));
    TRY(fusions_of(m, predictor_of(c, of_file), a, &fused, &has_pairs));
    text_open(&t, a);
    if (out_is_json(c->out)) {
        model_records(&t, m, &census, &paths, a);
        if (has_pairs)
            fusions_records(&t, &fused);
        TRY(step_records(&t, c, s));
        return out_objects(c->out, &t);
    }
    tell_file(&t, m, &census);
    tell_values(&t, m->n_inputs == 1 ? "input" : "inputs", m->inputs, m->n_inputs, m->graph);
    tell_values(&t, m->n_outputs == 1 ? "output" : "outputs", m->outputs, m->n_outputs, NULL);
    tell_ops(&t, &census, a);
    tell_weights(&t, m, &paths, a, option_given(&c->line, OPT_verbose) > 0);
    tell_extras(&t, m, &census);
    tell_missing(&t, m, a);
    if (has_pairs)
        fusions_tell(&t, a, &fused, true);
    TRY(tell_step(&t, c, s));
    return out_bytes(c->out, t.p, t.n);
}
