#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/select_nodes.h"
#include "api/verbs/explain.h"
#include "ir/aliases.h"
#include "ir/text/print.h"
#include "ops/card/path.h"

enum { LONGEST = 200 };

typedef struct Page {
    Text text;
    Arena *arena;
    const Map *paths;
    Numbering numbers;
    const qcc_step *step; /* null: nothing is said of training */
    Numbering step_numbers;
} Page;

static void escaped(Page *p, const char *name)
{
    text_escape(&p->text, name, strlen(name), LONGEST);
}

/* Where a value comes from: the name and the node behind it. */
static void tell_value(Page *p, const Node *n)
{
    if (!n) {
        text_add(&p->text, "absent");
        return;
    }
    print_value(&p->text, &p->numbers, n);
    text_printf(&p->text, " %s", type_text(p->arena, n->type));
    if (n->op == OP_param && n->name) {
        text_add(&p->text, ", parameter ");
        escaped(p, path_name(p->paths, n));
    } else {
        text_add(&p->text, ", ");
        escaped(p, op_title(p->arena, n));
        if (n->label) {
            text_char(&p->text, ' ');
            escaped(p, n->label);
        }
    }
}

/* The module and the line of source that a node comes from. */
static void tell_origin(Page *p, const Node *n)
{
    const CodePlace *o = node_code(n);
    const char *module = node_module(n);
    if (module) {
        text_label(&p->text, "module");
        escaped(p, module[0] ? module : "the model itself");
        text_char(&p->text, '\n');
    }
    if (o && o->line) {
        text_label(&p->text, "source");
        escaped(p, o->line);
        text_char(&p->text, '\n');
    }
}

static void tell_operator(Page *p, const Node *n)
{
    const OpDef *def = op_of(n);
    text_label(&p->text, "operator");
    escaped(p, op_title(p->arena, n));
    if (def->onnx.op)
        text_printf(&p->text, ", here %s, as of opset %d", def->name, def->onnx.since);
    else if (n->op == OP_opaque)
        text_add(&p->text, node_lacks_card(n) ? ", kept as it is: it has no meaning here"
                                              : ", kept as it is: it reads what has no meaning here");
    text_char(&p->text, '\n');
    text_label(&p->text, "text");
    print_line(&p->text, &p->numbers, n);
    text_char(&p->text, '\n');
}

static void tell_operands(Page *p, const Node *n)
{
    const OpDef *def = op_of(n);
    for (int i = 0; i < n->n_in; i++) {
        text_label(&p->text, i ? "" : "operands");
        text_printf(&p->text, "%d ", i);
        tell_value(p, in(n, i));
        if (def->quant.in[0] != QUANT_UNSET)
            text_printf(&p->text, "; role %s", quant_word(quant_role(&def->quant, i)));
        if (i < 32 && def->amp.wide >> i & 1)
            text_add(&p->text, "; stays wide");
        text_char(&p->text, '\n');
    }
    for (int i = 0; i < n->n_regions; i++) {
        text_label(&p->text, i ? "" : "regions");
        text_printf(&p->text, "%zu nodes\n", graph_count(n->regions[i]));
    }
}

/* Readers in the order in which they were linked. */
static void tell_readers(Page *p, const Node *n)
{
    enum { MOST = 12 };
    const Use *u = n->uses;
    int k = 0;
    if (!u)
        return;
    while (u->next)
        u = u->next;
    text_label(&p->text, "read by");
    for (; u && k < MOST; u = u == n->uses ? NULL : u->prev, k++) {
        text_add(&p->text, k ? ", " : "");
        escaped(p, node_place(u->user).where);
    }
    const int all = node_n_uses(n);
    if (all > MOST)
        text_printf(&p->text, " and %d more", all - MOST);
    text_char(&p->text, '\n');
}

static void tell_class(Page *p, const Node *n, const char *type, AmpClass c, DType target)
{
    const AmpCard *card = &op_of(n)->amp;
    text_label(&p->text, type);
    text_printf(&p->text, "%s: %s", amp_word(c), amp_meaning(c));
    if (c == AMP_C && card->when) {
        c = card->when(n, target);
        text_printf(&p->text, "; here %s: %s", amp_word(c), amp_meaning(c));
    }
    if (card->reason != REASON_NONE && amp_keeps_wide(c))
        text_printf(&p->text, " (%s)", amp_reason(card->reason));
    text_char(&p->text, '\n');
}

static void tell_roles(Page *p, const Node *n)
{
    const QuantCard *q = &op_of(n)->quant;
    text_label(&p->text, "quantization");
    text_printf(&p->text, "result %s: %s", quant_word(q->out[0]), quant_meaning(q->out[0]));
    for (int i = 0; i < n->n_in; i++) {
        const int axis = quant_weight_axis(n, i);
        if (axis != QUANT_WHOLE && (n->in[i].def->op == OP_param || n->in[i].def->op == OP_state))
            text_printf(&p->text, "; operand %d by axis %d", i, axis);
    }
    if (q->same_scale)
        text_add(&p->text, "; one scale for operands and result");
    text_char(&p->text, '\n');
}

/* Nodes of the step that stand for the gradient of a model's node. */
static void tell_gradient(Page *p, const Node *n)
{
    bool any = false;
    Graph *g = p->step ? module_graph(p->step->module, "step") : NULL;
    for (Node *k = g ? walk_first(g) : NULL; k; k = walk_next(g, k)) {
        const bool same = n->label ? k->label && strcmp(k->label, n->label) == 0 : n->src && k->src == n->src;
        if (!same || !(k->flags & NODE_BACKWARD) || k->op == OP_const)
            continue;
        text_label(&p->text, any ? "" : "gradient");
        any = true;
        print_line(&p->text, &p->step_numbers, k);
        text_char(&p->text, '\n');
    }
    if (g && !any) {
        text_label(&p->text, "gradient");
        text_add(&p->text, "no nodes of its own\n");
    }
}

/* What became of a parameter when the step was made. */
static void tell_choice(Page *p, const Node *n)
{
    const Choices *all = p->step ? p->step->recipe.choices : NULL;
    const Choice *c = all ? choice_find(all, n->name) : NULL;
    if (!c)
        return;
    text_label(&p->text, "training");
    text_printf(&p->text, "%s", choice_word(c->kind));
    if (c->reason) {
        text_add(&p->text, ": ");
        escaped(p, c->reason);
    }
    text_char(&p->text, '\n');
    if (c->kind != CHOICE_TRAINED)
        return;
    text_label(&p->text, "optimizer");
    explain_group(&p->text, p->step, n->name);
    text_char(&p->text, '\n');
}

static void tell_aliases(Page *p, const Node *n)
{
    const char *const *alias = aliases_of(n);
    if (!*alias)
        return;
    text_label(&p->text, "also");
    for (size_t i = 0; alias[i]; i++) {
        text_add(&p->text, i ? ", " : "");
        escaped(p, alias[i]);
    }
    text_char(&p->text, '\n');
}

static void tell_parameter(Page *p, const Node *n)
{
    size_t bytes = 0;
    text_add(&p->text, "parameter ");
    escaped(p, path_name(p->paths, n));
    text_char(&p->text, '\n');
    if (strcmp(path_name(p->paths, n), name_in_file(n)) != 0) {
        text_label(&p->text, "in the file");
        escaped(p, name_in_file(n));
        text_char(&p->text, '\n');
    }
    tell_aliases(p, n);
    text_label(&p->text, "type");
    text_add(&p->text, type_text(p->arena, n->type));
    if (type_bytes(n->type, &bytes))
        text_printf(&p->text, ", %s", bytes_text(p->arena, bytes));
    text_char(&p->text, '\n');
    tell_readers(p, n);
    tell_choice(p, n);
}

static void tell_node(Page *p, const Node *n)
{
    if (n->op == OP_param && n->name) {
        tell_parameter(p, n);
        return;
    }
    escaped(p, node_place(n).where);
    text_char(&p->text, '\n');
    tell_origin(p, n);
    tell_operator(p, n);
    tell_operands(p, n);
    text_label(&p->text, "result");
    text_printf(&p->text, "%s\n", type_text(p->arena, n->type));
    tell_readers(p, n);
    const OpDef *def = op_of(n);
    if (def->structural)
        return;
    tell_class(p, n, "fp16", def->amp.f16, F16);
    tell_class(p, n, "bf16", def->amp.bf16, BF16);
    tell_roles(p, n);
    if (p->step)
        explain_widths(&p->text, p->step, n);
    tell_gradient(p, n);
}

/* ---- records ---- */

static void node_record(Page *p, const Node *n)
{
    const OpDef *def = op_of(n);
    const CodePlace *o = node_code(n);
    const bool parameter = n->op == OP_param && n->name;
    const Choices *all = p->step ? p->step->recipe.choices : NULL;
    const Choice *c = parameter && all ? choice_find(all, n->name) : NULL;
    Text line;
    text_open(&line, p->arena);
    print_line(&line, &p->numbers, n);
    log_record(&p->text, parameter ? "parameter" : "node",
               { "name", logged_text(parameter ? path_name(p->paths, n) : node_place(n).where) },
               { "op", logged_text(parameter ? NULL : op_title(p->arena, n)) },
               { "type", logged_text(type_text(p->arena, n->type)) }, { "module", logged_text(node_module(n)) },
               { "source", logged_text(o ? o->line : NULL) }, { "readers", logged_int(node_n_uses(n)) },
               { "fp16", logged_text(parameter || def->structural ? NULL : amp_word(def->amp.f16)) },
               { "bf16", logged_text(parameter || def->structural ? NULL : amp_word(def->amp.bf16)) },
               { "quantization", logged_text(parameter || def->structural ? NULL : quant_word(def->quant.out[0])) },
               { "training", logged_text(c ? choice_word(c->kind) : NULL) },
               { "reason", logged_text(c ? c->reason : NULL) },
               { "text", logged_text(parameter ? NULL : text_get(&line)) });
}

Status explain_nodes(Command *c, qcc_model *m, const Map *paths, const qcc_step *s)
{
    const char *selector;
    Page p = { .arena = &c->cx->scratch, .paths = paths, .step = s };
    p.numbers = numbering_of(m->graph, p.arena);
    if (s)
        p.step_numbers = numbering_of(module_graph(s->module, "step"), p.arena);
    text_open(&p.text, p.arena);
    for (size_t at = 0; (selector = option_next(&c->line, OPT_node, &at));) {
        Selection s;
        TRY(select_nodes(m, paths, "--node", selector, &s));
        for (size_t i = 0; i < s.n; i++) {
            if (out_is_json(c->out)) {
                node_record(&p, s.nodes[i]);
                continue;
            }
            if (p.text.n)
                text_char(&p.text, '\n');
            tell_node(&p, s.nodes[i]);
        }
    }
    return out_is_json(c->out) ? out_objects(c->out, &p.text) : out_bytes(c->out, p.text.p, p.text.n);
}
