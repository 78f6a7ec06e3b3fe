#include "passes/step/update_forms.h"

#include <string.h>

#include "base/hash.h"
#include "ir/role.h"
#include "ops/random/random_draws.h"
#include "ops/scalar.h"
#include "passes/recipe/quantizer.h"

/* ---- parameters ---- */

/* The draws of a parameter's rounding: by its name, so that they are the same wherever and in whatever order it is updated. */
static Node *draw_for(Build *b, const Node *x, Arena *scratch)
{
    const char *purpose = arena_printf(scratch, "update/%s", x->name);
    return random_draws(b, x->type, (int64_t)(hash64(purpose, strlen(purpose), 0) & 0x7fffffff));
}

/* Where settings of a group were said. */
static Place place_of(const OptimizerGroup *group, Arena *arena)
{
    const char *where = group->selector ? arena_printf(arena, "--group '%s'", group->selector) : "--optimizer";
    return (Place){ .where = where, .byte = -1 };
}

static Status refuse_decay(PassRun *run, const OptimizerGroup *group)
{
    Message *m =
        message_new(run->diag, SEVERITY_ERROR, USAGE, place_of(group, run->scratch),
                    "scale_decay=true: this optimizer adds weight decay to the gradient, and no scale takes it");
    message_try(m, "adamw or lion, or the same without scale_decay");
    return message_send(m);
}

static Status refuse_counting(PassRun *run)
{
    Message *m = message_new(run->diag, SEVERITY_ERROR, USAGE, (Place){ .where = "--telemetry", .byte = -1 },
                             "nothing that is updated is kept in few bits: there is nothing to count");
    message_try(m, "--quant int8-weights, or another form that is stored; or the same without it");
    return message_send(m);
}

Status update_forms_unused(PassRun *run, const Recipe *recipe, FormsUsed used)
{
    const OptimizerGroup *by = NULL;
    bool sticky = false, decay = false;
    if (recipe->asks_counted && !used.counts)
        return refuse_counting(run);
    for (size_t i = recipe->n_groups; i-- > 0;) {
        const UpdateForm *said = recipe->groups[i].attr;
        const bool idle = (said->sticky && !used.sticky) || (said->scale_decay && !used.scale_decay);
        sticky |= said->sticky && !used.sticky;
        decay |= said->scale_decay && !used.scale_decay;
        by = idle ? &recipe->groups[i] : by;
    }
    if (!by)
        return OK;
    const char *what = sticky && decay ? "sticky=true and scale_decay=true"
                       : sticky        ? "sticky=true"
                                       : "scale_decay=true";
    Message *m = message_new(run->diag, SEVERITY_WARNING, OK, place_of(by, run->scratch),
                             "%s: no parameter that is updated is stored as codes%s, so nothing changes", what,
                             sticky ? " without zero points" : "");
    message_try(m, "--quant int8-weights, or the same without it");
    return message_send(m);
}

Status update_form_of(UpdateForm *form, Build *b, PassRun *run, const OptimizerGroup *group, Node *x, Node **in)
{
    Quantizer q;
    const char *words = node_stored(x);
    const bool codes = !dtype_is_float(x->type->dtype), sticky = form->sticky, decays = form->scale_decay;
    const bool counts = run->options->recipe && run->options->recipe->counted;
    *form = (UpdateForm){ .counts = counts && (words || x->type->dtype == BF16) };
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
    if (decays && !update_decays_apart(x->graph->ir->ops->defs[group->op], group->attr))
        return refuse_decay(run, group);
    return OK;
}
