/* Dropout that an exporter took apart, in a file that is deployed: x * (draw < p) / p is x. */
#include <math.h>

#include "frontends/onnx/file/payload.h"
#include "frontends/onnx/write/inference.h"
#include "ops/card/schema.h"

typedef struct Noise {
    Spine *spine;
    Diag *d;
    const Onnx__GraphProto *g;
    Map nodes, initializers; /* by the name of a result */
} Noise;

static bool is_op(const Onnx__NodeProto *o, const char *op)
{
    return o && !o->domain.len && str_is(str_of(o->op_type), op);
}

static const Onnx__NodeProto *maker(const Noise *k, Str name)
{
    const MapEntry *e = name.n ? map_find_n(&k->nodes, name.p, name.n) : NULL;
    return e ? k->g->node[e->value.u] : NULL;
}

static Str operand(const Onnx__NodeProto *o, size_t i)
{
    return o && i < o->n_input ? str_of(o->input[i]) : (Str){ "", 0 };
}

/* The name behind what only changes the type. */
static Str behind_casts(const Noise *k, Str name)
{
    enum { MOST_CASTS = 16 };
    for (int i = 0; i < MOST_CASTS; i++) {
        const Onnx__NodeProto *o = maker(k, name);
        if (!is_op(o, "Cast") && !is_op(o, "CastLike") && !is_op(o, "Identity"))
            break;
        name = operand(o, 0);
    }
    return name;
}

static bool is_stored_number(const Noise *k, const Onnx__TensorProto *t, double *v)
{
    TensorInfo info;
    float single;
    if (!t || tensor_info(k->spine, k->d, "number", t, &info) != OK || info.elements != 1)
        return false;
    if (info.dtype == ONNX_DOUBLE)
        return tensor_read(k->spine, k->d, "number", t, v, sizeof *v) == OK;
    if (info.dtype != ONNX_FLOAT || tensor_read(k->spine, k->d, "number", t, &single, sizeof single) != OK)
        return false;
    *v = (double)single;
    return true;
}

static bool is_number(const Noise *k, Str name, double *v)
{
    name = behind_casts(k, name);
    const Onnx__NodeProto *o = maker(k, name);
    const MapEntry *e = map_find_n(&k->initializers, name.p, name.n);
    if (!is_op(o, "Constant") || o->n_attribute != 1)
        return e && is_stored_number(k, k->g->initializer[e->value.u], v);
    const Onnx__AttributeProto *a = o->attribute[0];
    if (!str_is(str_of(a->name), "value_float"))
        return is_stored_number(k, a->t, v);
    *v = (double)a->f;
    return true;
}

static bool is_draw(const Noise *k, Str name)
{
    const Onnx__NodeProto *o = maker(k, behind_casts(k, name));
    if (!is_op(o, "RandomUniformLike") && !is_op(o, "RandomUniform"))
        return false;
    for (size_t i = 0; i < o->n_attribute; i++) {
        const Str attribute = str_of(o->attribute[i]->name);
        if ((str_is(attribute, "low") && o->attribute[i]->f != 0) ||
            (str_is(attribute, "high") && o->attribute[i]->f != 1))
            return false;
    }
    return true;
}

static bool is_noise(const Noise *k, Str name, double *p)
{
    const Onnx__NodeProto *o = maker(k, behind_casts(k, name));
    if (is_op(o, "Less") || is_op(o, "LessOrEqual"))
        return is_draw(k, operand(o, 0)) && is_number(k, operand(o, 1), p);
    if (is_op(o, "Greater") || is_op(o, "GreaterOrEqual")) {
        const bool fits = is_draw(k, operand(o, 0)) && is_number(k, operand(o, 1), p);
        *p = 1 - *p;
        return fits;
    }
    const Onnx__NodeProto *sum = is_op(o, "Floor") ? maker(k, behind_casts(k, operand(o, 0))) : NULL;
    return is_op(sum, "Add") && ((is_draw(k, operand(sum, 0)) && is_number(k, operand(sum, 1), p)) ||
                                 (is_draw(k, operand(sum, 1)) && is_number(k, operand(sum, 0), p)));
}

static bool makes_up(double factor)
{
    return fabs(factor - 1) < 1e-4;
}

static bool is_scaled(const Noise *k, Str name, double *by, Str *of)
{
    const Onnx__NodeProto *o = maker(k, behind_casts(k, name));
    const bool mul = is_op(o, "Mul");
    if (!mul && !is_op(o, "Div"))
        return false;
    *of = operand(o, 0);
    if (mul && is_number(k, operand(o, 0), by)) {
        *of = operand(o, 1);
        return true;
    }
    if (!is_number(k, operand(o, 1), by))
        return false;
    *by = mul ? *by : 1 / *by;
    return true;
}

/* The name of what the product is; empty for every other product. */
static Str noise_free(const Noise *k, const Onnx__NodeProto *mul)
{
    for (size_t i = 0; i < 2; i++) {
        Str x = operand(mul, i), other = operand(mul, 1 - i), of = { "", 0 };
        double p = 0, by = 0;
        if (is_scaled(k, other, &by, &of) && is_noise(k, of, &p) && makes_up(p * by))
            return x;
        if (is_noise(k, other, &p) && is_scaled(k, x, &by, &of) && makes_up(p * by))
            return of;
    }
    return (Str){ "", 0 };
}

void noise_edits(Spine *spine, Arena *arena, Diag *d, InferenceEdits *edits)
{
    Noise k = { .spine = spine, .d = d, .g = spine->model->graph };
    bool any = false;
    map_open(&k.nodes, arena);
    map_open(&k.initializers, arena);
    for (size_t i = 0; i < k.g->n_node; i++) {
        const Onnx__NodeProto *o = k.g->node[i];
        any |= is_op(o, "RandomUniform") || is_op(o, "RandomUniformLike");
        for (size_t j = 0; j < o->n_output; j++)
            map_put_n(&k.nodes, (const char *)o->output[j].data, o->output[j].len, NULL)->value.u = i;
    }
    for (size_t i = 0; i < k.g->n_initializer; i++) {
        const Str name = str_of(k.g->initializer[i]->name);
        map_put_n(&k.initializers, name.p, name.n, NULL)->value.u = i;
    }
    for (size_t i = 0; any && i < k.g->n_node; i++) {
        const Str x = is_op(k.g->node[i], "Mul") ? noise_free(&k, k.g->node[i]) : (Str){ "", 0 };
        if (!x.n)
            continue;
        Onnx__NodeProto *copy = NEW(arena, Onnx__NodeProto);
        *copy = *k.g->node[i];
        copy->has_source_at = copy->has_source_size = 0;
        copy->op_type = (ProtobufCBinaryData){ 8, (uint8_t *)arena_string(arena, "Identity") };
        copy->input = NEW(arena, ProtobufCBinaryData);
        copy->input[0] = (ProtobufCBinaryData){ x.n, (uint8_t *)(uintptr_t)x.p };
        copy->n_input = 1;
        copy->n_attribute = 0;
        GROW(arena, edits->nodes, edits->n_nodes, edits->cap_nodes);
        edits->nodes[edits->n_nodes++] = (NodeEdit){ i, copy };
    }
}
