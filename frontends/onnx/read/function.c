/* Model-local functions are inlined where they are called. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/read/importer.h"

static Status check_depth(Importer *im, const Onnx__FunctionProto *f, const Call *c)
{
    int depth = 0;
    for (const Frame *at = im->frame; at; at = at->caller) {
        if (at->function == f)
            return call_fail(c, "calls itself");
        depth++;
    }
    if (depth > im->ir->limits.call_depth)
        return call_fail(c, "functions call each other deeper than the limit call_depth (%" PRId64 ")",
                         im->ir->limits.call_depth);
    return OK;
}

/* Names inside the body must not meet names outside: values of an inlined body lose theirs. */
static void forget_names(const Map *values)
{
    for (size_t i = 0; i < values->n; i++) {
        Node *n = values->entries[i].value.p;
        if (n && n->name == values->entries[i].key && n->op != OP_input && n->op != OP_state)
            n->name = NULL;
    }
}

static Status bind_operands(Importer *im, Scope *inner, const Call *c, const Onnx__FunctionProto *f)
{
    if ((size_t)c->n_in > f->n_input)
        return call_fail(c, "takes %zu inputs, not %d", f->n_input, c->n_in);
    for (size_t i = 0; i < f->n_input; i++) {
        Node *in = call_in(c, (int)i);
        if (in)
            map_put(&inner->values, import_name(im, f->input[i]), NULL)->value.p = in;
    }
    return OK;
}

/* An operand that the call left out stays absent inside. */
bool name_is_absent(const Importer *im, const char *name)
{
    const Onnx__FunctionProto *f = im->frame->function;
    for (size_t i = 0; f && i < f->n_input; i++)
        if (str_is(str_of(f->input[i]), name))
            return true;
    return false;
}

Status import_function(Importer *im, Scope *s, Call *c, const Onnx__FunctionProto *f, const Onnx__NodeProto *node)
{
    TRY(check_depth(im, f, c));
    Frame frame = { .caller = im->frame, .function = f, .call = c };
    TRY(frame_open(im, &frame, f->opset_import, f->n_opset_import));
    if (!frame.opset)
        frame.opset = im->frame->opset;
    Scope inner = { .graph = s->graph };
    map_open(&inner.values, im->arena);
    TRY(bind_operands(im, &inner, c, f));

    const char *where = im->where;
    im->frame = &frame;
    TRY(import_nodes(im, &inner, f->node, f->n_node));
    im->frame = frame.caller;
    im->where = where;

    if (node->n_output > f->n_output)
        return call_fail(c, "has %zu outputs, not %zu", f->n_output, node->n_output);
    forget_names(&inner.values);
    for (size_t i = 0; i < node->n_output; i++) {
        if (!node->output[i].len)
            continue;
        Node *y = scope_value(im, &inner, import_name(im, f->output[i]));
        if (!y)
            return call_fail(c, "nothing in its body defines output %zu", i);
        if (y->name) { /* an operand handed through */
            y = build_node(c->build, OP_identity, NULL, 1, &y);
            TRY(c->build->status);
        }
        TRY(scope_define(im, s, import_name(im, node->output[i]), y));
    }
    return OK;
}
