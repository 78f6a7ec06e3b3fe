/* One node of a file: its operands, attributes and results, and the operator that it becomes in the graph. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/attributes.h"
#include "frontends/onnx/read/dialect_read.h"
#include "frontends/onnx/read/theirs.h"
#include "frontends/onnx/read/importer.h"
#include "frontends/onnx/read/origins.h"

static const char *place_text(Importer *im, const Onnx__NodeProto *o, const char *label)
{
    const Str op = str_of(o->op_type);
    return arena_printf(im->arena, "node %u %s%s(%.*s)", im->n_src, label ? label : "", label ? " " : "", STR_ARG(op));
}

static int opset_of(const Importer *im, Str domain)
{
    if (domain.n == 0 || str_is(domain, "ai.onnx"))
        return im->frame->opset;
    const MapEntry *e = map_find_n(&im->frame->domains, domain.p, domain.n);
    return e ? (int)e->value.i : 0;
}

static Status read_operands(Importer *im, Scope *s, Call *c, const Onnx__NodeProto *o)
{
    c->in = NEWS(im->arena, Node *, o->n_input + 1);
    for (size_t i = 0; i < o->n_input; i++) {
        if (!o->input[i].len)
            continue;
        const char *name = import_name(im, o->input[i]);
        const TorchHeld *part = torch_part(im->torch, o, (int)i);
        const MapEntry *param = part ? map_find_u64(&im->torch_parts, (uintptr_t)part) : NULL;
        c->in[i] = param ? param->value.p : scope_value(im, s, name);
        if (!c->in[i] && name_is_absent(im, name))
            continue;
        if (!c->in[i])
            return fail(im->ir->diag, importer_place(im), "reads %s, which nothing before it defines", name);
        c->n_in = (int)i + 1;
    }
    return OK;
}

/* Results up to the last one that has a name. */
static int results_named(const Onnx__NodeProto *o)
{
    int n = 0;
    for (size_t i = 0; i < o->n_output; i++)
        if (o->output[i].len)
            n = (int)i + 1;
    return n;
}

/* Files of ours call QONNX's numbers as the codes that they stand for are called in the graph: "x.codes". */
static void name_codes(const Call *c, Node *number)
{
    static const char tail[] = ".codes";
    const size_t n = number->name && c->domain[0] && op_of(number)->quant.dequantizes ? strlen(number->name) : 0;
    if (n < sizeof tail || strcmp(number->name + n - (sizeof tail - 1), tail) != 0 || in(number, 0)->name)
        return;
    in(number, 0)->name = number->name;
    number->name = NULL;
}

static Status define_results(Importer *im, Scope *s, Call *c, Node *y, const Onnx__NodeProto *o)
{
    Build *b = c->build;
    const int n = results_named(o);
    const bool parts_follow = c->ours && node_note(im, o, QCC_PARTS) && y->type->kind == TYPE_TUPLE;
    for (int i = 0; i < n; i++) {
        if (!o->output[i].len)
            continue;
        if (i >= type_results(y->type))
            break; /* outputs that newer versions do not have: reading them is an error */
        if (parts_follow) {
            map_put(&s->values, import_name(im, o->output[i]), NULL)->value.p = y;
            continue;
        }
        Node *part = y->type->kind == TYPE_TUPLE ? build_part(b, y, i) : y;
        const char *name = import_name(im, o->output[i]);
        if (part->name && part->name != name && part->op != OP_part) { /* an upgrade answered with an existing value */
            Node *same = build_node(b, OP_identity, NULL, 1, &part);
            if (!same)
                return b->status;
            part = same;
        }
        TRY(scope_define(im, s, name, part));
        name_codes(c, part);
    }
    return OK;
}

/* Constant, and Identity of a parameter: parameters under their own name. */
static Status read_parameter(Importer *im, Scope *s, const Call *c, const Onnx__NodeProto *o, bool *done)
{
    Payload *p = NULL;
    *done = false;
    if (c->n_out != 1 || !o->n_output || !o->output[0].len || c->domain[0])
        return OK;
    if (strcmp(c->op, "Constant") == 0) {
        TRY(constant_payload(im, c, o, &p));
    } else if (strcmp(c->op, "Identity") == 0 && c->n_in == 1 && c->in[0] && c->in[0]->op == OP_param) {
        p = node_payload(c->in[0]);
    }
    if (!p)
        return OK;
    Build b = *c->build;
    Node *n = build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type);
    *done = true;
    return scope_define(im, s, import_name(im, o->output[0]), n);
}

/* An operator without a card: kept as it is, typed by what the file says of its results. */
static Node *build_opaque(Importer *im, Call *c)
{
    const OpaqueAttr attr = { c->op, c->domain };
    Types *types = &im->ir->types;
    const Type **parts = NEWS(im->arena, const Type *, c->n_out + 1);
    for (int i = 0; i < c->n_out; i++)
        parts[i] = type_opaque(types, "unknown");
    const Type *type = c->n_out == 1 ? parts[0] : type_tuple(types, c->n_out, parts);
    return build_typed(c->build, OP_opaque, &attr, c->n_in, c->in, type);
}

/* What an operator without a card gave has no type we know, so its readers are kept as they are too. */
static bool reads_opaque(const Call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->type->kind == TYPE_OPAQUE)
            return true;
    return false;
}

static Status check_counts(const Call *c, const OnnxSchema *schema)
{
    if (schema->deprecated)
        return call_fail(c, "was removed in opset %d", schema->since);
    if (c->n_in > schema->max_in)
        return call_fail(c, "takes at most %d inputs, not %d", schema->max_in, c->n_in);
    if (c->n_out > schema->max_out)
        return call_fail(c, "has at most %d outputs, not %d", schema->max_out, c->n_out);
    for (int i = 0; i < schema->min_in; i++)
        if (!call_in(c, i) && !(schema_input(schema, i)->flags & ONNX_PARAM_OPTIONAL))
            return call_fail(c, "input %d (%s) is missing", i, schema_input(schema, i)->name);
    return OK;
}

static Status build_call(Importer *im, Scope *s, Call *c, Node **y)
{
    Op op;
    Graph **regions = NULL;
    int n_regions = 0;
    if (reads_opaque(c)) {
        *y = build_opaque(im, c);
        return c->build->status;
    }
    if (c->version == 8 && strcmp(c->op, "Scan") == 0)
        return import_batched_scan(im, s, c, y);
    if (strcmp(c->op, "Gradient") == 0 && c->domain[0])
        return import_gradient(im, s, c, y);
    TRY(upgrade(c));
    if (c->result) {
        *y = c->result;
        return OK;
    }
    if (!op_find_onnx(im->ir->ops, c->domain, c->op, &op)) {
        *y = build_opaque(im, c);
        return c->build->status;
    }
    TRY(import_regions(im, s, c, c->op, &regions, &n_regions));
    const OpDef *def = im->ir->ops->defs[op];
    void *attr;
    TRY(fill_attrs(c, def, &attr));
    *y = build_with_regions(c->build, op, attr, c->n_in, c->in, c->n_out, n_regions, regions);
    return c->build->status;
}

/* A call of an op of ours that has no standard name. */
static Status build_ours(Importer *im, Scope *s, Call *c, bool *known, Node **y)
{
    Op op;
    void *attr;
    Graph **regions = NULL;
    int n_regions = 0;
    *known = strcmp(c->domain, QCC_DOMAIN) == 0 && op_find(im->ir->ops, str(c->op), &op);
    if (!*known)
        return OK;
    const OpDef *def = im->ir->ops->defs[op];
    if (def->structural && op != OP_tuple)
        return call_fail(c, "is no call");
    if (def->n_regions)
        TRY(import_regions(im, s, c, def->onnx.op ? def->onnx.op : def->name, &regions, &n_regions));
    TRY(fill_attrs(c, def, &attr));
    *y = build_with_regions(c->build, op, attr, c->n_in, c->in, c->n_out, n_regions, regions);
    return c->build->status;
}

/* The same, or a call of an operator of others that is said in words of ours. */
static Status build_theirs(Importer *im, Scope *s, Call *c, bool *known, Node **y)
{
    const Theirs *row = theirs_find(c->domain, c->op);
    if (!row || reads_opaque(c))
        return build_ours(im, s, c, known, y);
    TRY(theirs_read(row, c));
    *known = true;
    *y = c->result;
    return OK;
}

static Status finish_node(Importer *im, Scope *s, Call *c, const Onnx__NodeProto *o)
{
    const Str domain = str_of(o->domain);
    const Onnx__FunctionProto *f = find_function(im, domain, str_of(o->op_type), str_of(o->overload));
    const OnnxSchema *schema = schema_find(c->domain, c->op, opset_of(im, domain));
    const int version = schema ? schema->since : 0;
    if (schema && schema->deprecated && schema_next(schema)) /* replaced, with the same signature */
        schema = schema_next(schema);
    TRY(read_attrs(im, c, o, f ? NULL : schema));
    if (f)
        return import_function(im, s, c, f, o);
    if (schema) {
        TRY(check_counts(c, schema));
        c->version = version;
        if (schema->max_out == ONNX_MANY) /* all of them count, also those without a name */
            c->n_out = (int)o->n_output;
    }
    if (c->ours)
        TRY(dialect_counts(im, c));
    else if (!c->n_out)
        c->n_out = 1;

    bool done = false;
    if (!c->ours)
        TRY(read_parameter(im, s, c, o, &done));
    if (done)
        return OK;
    Node *y;
    bool known = false;
    if (schema)
        TRY(build_call(im, s, c, &y));
    else
        TRY(build_theirs(im, s, c, &known, &y));
    if (!schema && !known) {
        y = build_opaque(im, c);
        TRY(c->build->status);
    }
    if (c->ours)
        TRY(dialect_settle(im, s, y, o));
    return define_results(im, s, c, y, o);
}

static Status import_node(Importer *im, Scope *s, const Onnx__NodeProto *o)
{
    const Str domain = str_of(o->domain);
    if (!im->frame->function)
        im->n_src++;
    const char *label = o->name.len ? import_name(im, o->name) : NULL;
    im->where = place_text(im, o, label);

    Build b = build_at_end(s->graph);
    b.src = im->n_src;
    b.label = label;
    bool ours = node_note(im, o, QCC_SRC) || node_note(im, o, QCC_RESULT), done = false;
    if (ours) {
        TRY(dialect_marks(im, o, &b));
        TRY(dialect_simple(im, s, o, &b, &done));
    } else {
        import_origin(im, s->graph, o);
    }
    if (done)
        return b.status;
    Call c = {
        .importer = im, .op = import_name(im, o->op_type), .label = label, .build = &b, .ours = ours ? o : NULL
    };
    c.domain = domain.n == 0 || str_is(domain, "ai.onnx") ? "" : import_name(im, o->domain);
    c.n_out = results_named(o);
    TRY(read_operands(im, s, &c, o));
    return finish_node(im, s, &c, o);
}
Status import_nodes(Importer *im, Scope *s, Onnx__NodeProto *const *nodes, size_t n)
{
    size_t late = 0;
    for (size_t i = 0; i < n; i++) {
        dialect_place(s, &late, i);
        if (im->n_src > (uint64_t)im->ir->limits.nodes)
            return fail(im->ir->diag, importer_place(im), "more nodes than the limit nodes (%" PRId64 ")",
                        im->ir->limits.nodes);
        TRY(import_node(im, s, nodes[i]));
    }
    dialect_place(s, &late, n);
    return OK;
}
