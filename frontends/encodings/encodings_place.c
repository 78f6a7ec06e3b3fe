#include <inttypes.h>

#include "base/map.h"
#include "frontends/encodings/encodings.h"
#include "ops/card/cards.h"
#include "ops/card/words.h"
#include "ops/quant/quantize.h"

enum { LEAST_BITS = 2, HALF_BYTE = 4, BYTE = 8, MOST_BITS = 16 };

/* Where one entry goes. */
typedef struct Spot {
    const Encodings *from;
    const Encoding *e;
    Node *value;
    Build b;  /* behind the value */
    int axis; /* of channels; QUANT_WHOLE: one scale for all */
} Spot;

static Status wrong(const Spot *s, Status status, const char *text)
{
    Place place = NOWHERE;
    place.file = s->from->path;
    place.where = s->e->name;
    return fail_as(s->value->graph->ir->diag, status, place, "%s", text);
}

/* ---- channels ---- */

/* The axis that who reads a parameter has channels along. */
static int axis_of_readers(const Node *value)
{
    int axis = QUANT_WHOLE;
    for (const Use *u = value->uses; u; u = u->next) {
        const int its = quant_weight_axis(u->user, (int)(u - u->user->in));
        if (its != QUANT_WHOLE && axis != QUANT_WHOLE && its != axis)
            return QUANT_WHOLE;
        axis = its != QUANT_WHOLE ? its : axis;
    }
    return axis;
}

/* The only axis that is as long as there are scales; QUANT_WHOLE: none, or several. */
static int only_axis(const Type *t, int64_t n)
{
    int axis = QUANT_WHOLE;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] == n) {
            if (axis != QUANT_WHOLE)
                return QUANT_WHOLE;
            axis = d;
        }
    return axis;
}

/* Channels lie along the axis that the file says; else along that of who reads them, or the only one that is as long. */
static Status find_axis(Spot *s, EncodingsPlaced *placed)
{
    const Type *t = s->value->type;
    const int64_t n = (int64_t)s->e->n;
    s->axis = QUANT_WHOLE;
    if (n == 1 && s->e->axis == NO_AXIS)
        return OK;
    s->axis = s->e->axis;
    if (s->axis == NO_AXIS) {
        s->axis = axis_of_readers(s->value);
        if (s->axis == QUANT_WHOLE || s->axis >= t->rank || t->dims[s->axis] != n)
            s->axis = only_axis(t, n);
        placed->guessed++;
    }
    if (s->axis == QUANT_WHOLE || s->axis >= t->rank || t->dims[s->axis] != n)
        return wrong(s, INVALID,
                     arena_printf(s->value->graph->arena, "along which axis of %s do %zu scales lie?",
                                  type_text(s->value->graph->arena, t), s->e->n));
    return OK;
}

/* ---- codes ---- */

/* Signed codes with 0 at 0 where every offset is in the middle; else codes from 0 on. */
static bool is_signed(const Encoding *e, int64_t *least)
{
    const int64_t half = (int64_t)1 << (e->bits - 1);
    *least = e->offset[0];
    for (size_t i = 0; i < e->n; i++)
        if (e->offset[i] != *least || (*least != -half && !(e->symmetric && *least == 1 - half)))
            return false;
    return true;
}

static Status check_zeros(const Spot *s)
{
    const int64_t largest = ((int64_t)1 << s->e->bits) - 1;
    for (size_t i = 0; i < s->e->n; i++)
        if (s->e->offset[i] > 0 || -s->e->offset[i] > largest)
            return wrong(s, UNSUPPORTED,
                         arena_printf(s->value->graph->arena,
                                      "offset %" PRId64 ": 0 has no code among those of %" PRId64 " bits",
                                      s->e->offset[i], s->e->bits));
    return OK;
}

static Tensor *vector(const Spot *s, DType type)
{
    Types *types = &s->value->graph->ir->types;
    return tensor_new(s->value->graph->arena,
                      s->axis == QUANT_WHOLE ? type_scalar(types, type) : type_vector(types, type, (int64_t)s->e->n));
}

/* The type of codes of so many bits, which may have more of them. */
static DType type_of(int64_t bits, bool is_signed_code)
{
    if (bits == HALF_BYTE)
        return is_signed_code ? I4 : U4;
    if (bits <= BYTE)
        return is_signed_code ? I8 : U8;
    return is_signed_code ? I16 : U16;
}

/* The least and the largest code, where these are not those of the type. */
static void cut_codes(QuantizeAttr *at, DType type, int64_t least, int64_t largest)
{
    double lo, hi;
    code_range(type, &lo, &hi);
    if (lo == (double)least && hi == (double)largest)
        return;
    at->least = least;
    at->largest = largest;
}

/* The quantizer, and the numbers of its codes. */
static Status place_pair(Spot *s)
{
    const Encoding *e = s->e;
    Arena *arena = s->value->graph->arena;
    const OpDef *const *defs = s->b.graph->ir->ops->defs;
    QuantizeAttr at = *(const QuantizeAttr *)attrs_default(arena, defs[OP_quantize_linear]->attrs);
    DequantizeAttr back = *(const DequantizeAttr *)attrs_default(arena, defs[OP_dequantize_linear]->attrs);
    int64_t least;
    const bool middle = is_signed(e, &least);
    const DType type = type_of(e->bits, middle);
    TRY(middle ? OK : check_zeros(s));
    at.axis = back.axis = s->axis == QUANT_WHOLE ? at.axis : s->axis;
    at.output_dtype = (int)type + 1;
    cut_codes(&at, type, middle ? least : 0, ((int64_t)1 << (e->bits - middle)) - 1);
    Tensor *scale = vector(s, F32), *zero = middle ? NULL : vector(s, type);
    for (size_t i = 0; i < e->n; i++) {
        tensor_set_f64(scale, (int64_t)i, e->scale[i]);
        if (zero)
            tensor_set_f64(zero, (int64_t)i, (double)-e->offset[i]);
    }
    Node *step = build_const(&s->b, scale), *z = zero ? build_const(&s->b, zero) : NULL;
    Node *codes = build_node(&s->b, OP_quantize_linear, &at, z ? 3 : 2, (Node *[]){ s->value, step, z });
    Node *number =
        codes ? build_node(&s->b, OP_dequantize_linear, &back, z ? 3 : 2, (Node *[]){ codes, step, z }) : NULL;
    TRY(s->b.status);
    graph_replace(s->value, number);
    node_set_in(codes, 0, s->value);
    return OK;
}

/* ---- entries ---- */

/* A builder behind a value; inputs stand in front of all nodes. */
static Build behind(Node *value)
{
    if (node_is_input(value))
        return build_at_start(value->graph);
    Build b = build_before(value);
    b.before = value->next;
    return b;
}

static Status place_one(Spot *s, EncodingsPlaced *placed)
{
    const Type *t = s->value->type;
    if (t->kind != TYPE_TENSOR || t->dtype != F32)
        return wrong(
            s, UNSUPPORTED,
            arena_printf(s->value->graph->arena, "it is %s: codes are of f32", type_text(s->value->graph->arena, t)));
    if (s->e->bits < LEAST_BITS || s->e->bits > MOST_BITS)
        return wrong(s, UNSUPPORTED,
                     arena_printf(s->value->graph->arena, "%" PRId64 " bits: wanted are %d to %d", s->e->bits,
                                  LEAST_BITS, MOST_BITS));
    TRY(find_axis(s, placed));
    s->b = behind(s->value);
    TRY(place_pair(s));
    s->value->op == OP_param ? placed->parameters++ : placed->values++;
    return OK;
}

static Map values_of(Graph *g)
{
    Map names;
    map_open(&names, g->arena);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->name)
            map_put(&names, n->name, NULL)->value.p = n;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name)
            map_put(&names, g->inputs[i]->name, NULL)->value.p = g->inputs[i];
    return names;
}

Status encodings_place(const Encodings *e, Graph *g, EncodingsPlaced *placed)
{
    enum { SUMS = 32 };
    const Map names = values_of(g);
    *placed = (EncodingsPlaced){ 0 };
    for (size_t i = 0; i < e->n; i++) {
        const Encoding *one = &e->list[i];
        const MapEntry *found = map_find(&names, one->name);
        placed->floats += found && one->is_float;
        placed->wide += found && !one->is_float && one->bits == SUMS;
        if (!found) {
            GROW(g->arena, placed->absent, placed->n_absent, placed->cap_absent);
            placed->absent[placed->n_absent++] = one->name;
        }
        if (!found || one->is_float || one->bits == SUMS)
            continue;
        Spot s = { .from = e, .e = one, .value = found->value.p };
        TRY(place_one(&s, placed));
    }
    return OK;
}
