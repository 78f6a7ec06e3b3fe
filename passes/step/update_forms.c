#include "passes/step/update_forms.h"

#include <string.h>

#include "base/hash.h"
#include "ir/role.h"
#include "ops/random/random_draws.h"
#include "ops/scalar.h"
#include "passes/optimizers.def"
#include "passes/recipe/quantizer.h"

/* ---- parameters ---- */

/* The draws of a parameter's rounding: by its name, so that they are the same wherever and in whatever order it is updated. */
static Node *draw_for(Build *b, const Node *x, Arena *scratch)
{
    const char *purpose = arena_printf(scratch, "update/%s", x->name);
    const int64_t stream = (int64_t)(hash64(purpose, strlen(purpose), 0) & 0x7fffffff);
    const RandomAttr attr = {
        .shape = { x->type->rank, x->type->dims }, .dtype = (int)F32 + 1, .second = 1, .seed = NAN, .stream = stream
    };
    return build_node(b, OP_random_uniform, &attr, 0, NULL);
}

Status update_form_of(UpdateForm *form, Build *b, PassRun *run, Node *x, Node **in)
{
    Quantizer q;
    const char *words = node_stored(x);
    const bool codes = !dtype_is_float(x->type->dtype), sticky = form->sticky, decays = form->scale_decay;
    *form = (UpdateForm){ 0 };
    if (!words)
        return OK;
    TRY(quantizer_read_one(&q, OPERAND_W, node_place(x), "stored", words, run->scratch, run->diag));
    if (q.part[QUANT_ROUNDING].value == ROUNDING_SR) {
        form->rounding = ROUND_SR;
        in[UPDATE_DRAW] = draw_for(b, x, run->scratch);
    }
    if (!codes)
        return OK;
    quantizer_codes(&q, &form->least, &form->largest);
    in[UPDATE_X_SCALE] = stored_scale(x->graph, x->name);
    in[UPDATE_X_ZERO] = stored_zero(x->graph, x->name);
    form->sticky = sticky && !in[UPDATE_X_ZERO];
    form->scale_decay = decays;
    return OK;
}

/* ---- states ---- */

static const struct {
    DType code;
    int64_t block;
} kinds[] = {
#define STATES(word, kind, type, block, what) [STATES_##kind] = { type, block },
    OPTIMIZER_STATES(STATES)
#undef STATES
};

bool state_codes_of(const OptimizerGroup *group, const Node *x, DType *code, int64_t *scales)
{
    const int64_t n = type_elements(x->type), least = group->states_min ? group->states_min : STATES_LEAST,
                  block = kinds[group->states].block;
    if (!block || x->type->dtype == F64 || n < least || n % block != 0)
        return false;
    *code = kinds[group->states].code;
    *scales = n / block;
    return true;
}
