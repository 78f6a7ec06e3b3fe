/* store-weights: weights that are to be stored are codes from here on, and who read numbers reads codes and scales.
 *
 *     graph @f(
 *             %x: f32[4,2],
 *             state %w: f32[3,2] = [0, 127, 1, -1, 0.5, 0.25] stored="int8:row:dynamic:sr:stored" trained,
 *             state %w.scale: f32[3,1] role=quant of=%w) -> (%y) {
 *         %y: f32[4,3] = matmul(%x, %w, tb=true)
 *     }
 *     ==>
 *     graph @f(
 *             %x: f32[4,2],
 *             state %w: i8[3,2] = [0, 127, 127, -127, 127, 64] stored="int8:row:dynamic:sr:stored" trained,
 *             state %w.scale: f32[3,1] = [1, 0.007874016, 0.003937008] role=quant of=%w) -> (
 *             %y) {
 *         %0: f32[3,2] = cast(%w, to=f32) ours
 *         %1: f32[4,3] = matmul(%x, %0, tb=true) ours
 *         const %2: i64[1] = [3] ours
 *         %3: f32[3] = reshape(%w.scale, %2, allowzero=true) ours
 *         %y: f32[4,3] = mul(%1, %3) ours
 *     }
 *
 * A product reads codes as floats, and the scale leaves it: it multiplies the result where rows stay apart, and the
 * other operand where they are added up, so that there is no other copy of the weight.  What begins as numbers is
 * rounded to the nearest, or by chance where its words say from=sr. */
#include <string.h>

#include "ir/role.h"
#include "passes/engine/pass.h"
#include "passes/lowbit/stored_readers.h"
#include "passes/recipe/stored.h"

static int axis_of(const Type *codes, const Type *scale)
{
    int axis = STORED_WHOLE;
    for (int i = 0; scale && i < codes->rank; i++) {
        if (scale->dims[i] == 1)
            continue;
        if (axis != STORED_WHOLE || scale->dims[i] != codes->dims[i])
            return STORED_PARTS;
        axis = i;
    }
    return axis;
}

static void set_initial(Node *state, Tensor *value)
{
    Graph *g = state->graph;
    StateAttr *attr = attrs_copy(g->arena, op_of(state)->attrs, state->attr);
    attr->value = payload_of(g->arena, value);
    state->attr = attr;
}

static Tensor *made(Node *state)
{
    return state ? tensor_new(state->graph->arena, state->type) : NULL;
}

/* What it begins with, as codes; nothing is read of zeros. */
static Status convert(Stored *s, const StoredForm *form, const Type *numbers)
{
    Heap heap;
    Payload *p = state_initial(s->state);
    Tensor *codes = made(s->state), *scale = made(s->scale), *zero = made(s->zero);
    heap_open(&heap, s->graph->ir->memory);
    Tensor *value = tensor_alloc(&heap, numbers);
    const Status status = p ? payload_read(p, value, s->run->diag) : OK;
    if (!p)
        memset(value->data, 0, value->bytes);
    if (status == OK)
        stored_begin(form, s->state->name, value, codes, scale, zero, s->run->scratch);
    heap_close(&heap);
    TRY(status);
    set_initial(s->state, codes);
    if (scale)
        set_initial(s->scale, scale);
    if (zero)
        set_initial(s->zero, zero);
    return OK;
}

static Status store(Graph *g, PassRun *run, Node *state)
{
    StoredForm form;
    const Type *numbers = state->type;
    Stored s = { .graph = g,
                 .run = run,
                 .state = state,
                 .scale = stored_scale(g, state->name),
                 .zero = stored_zero(g, state->name) };
    TRY(stored_form(&form, node_stored(state), run->scratch, run->diag));
    if (!s.scale != !form.largest || !s.zero != !form.zeros)
        return fail_as(run->diag, INVALID, node_place(state), "%s is stored as %s, and has %s", state->name,
                       node_stored(state), s.scale ? "a scale or zero points too many" : "no scale or zero points");
    s.axis = axis_of(numbers, s.scale ? s.scale->type : NULL);
    state->type = type_with_dtype(&g->ir->types, numbers, form.type);
    TRY(convert(&s, &form, numbers));
    return stored_readers(&s);
}

static Status store_weights(Graph *g, PassRun *run)
{
    const size_t n = g->n_inputs;
    for (size_t i = 0; i < n; i++) {
        Node *state = g->inputs[i];
        if (node_stored(state) && state->type->dtype == F32 && type_known(state->type))
            TRY(store(g, run, state));
    }
    return OK;
}

const Pass pass_store_weights = {
    .name = "store-weights", .needs = TYPED, .may = MEANING, .rebinds = true, .run = store_weights
};
