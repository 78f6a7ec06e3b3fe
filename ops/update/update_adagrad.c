/* update_adagrad: Adagrad. */
#include "ops/update/update.h"

typedef struct UpdateAdagradAttr {
    UpdateForm form;
    float lr_decay, weight_decay, initial_accumulator_value, eps;
} UpdateAdagradAttr;

static const AttrSpec update_adagrad_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateAdagradAttr, lr_decay, FLOAT, 0),
    ATTR(UpdateAdagradAttr, weight_decay, FLOAT, 0),
    ATTR(UpdateAdagradAttr, initial_accumulator_value, FLOAT, 0),
    ATTR(UpdateAdagradAttr, eps, FLOAT, 1e-10),
    ATTR_LAST,
};

static int states_update_adagrad(const void *attr, const char **names)
{
    (void)attr;
    names[0] = "v";
    return 1;
}

/* lr / (1 + (step - 1) * lr_decay) */
static Node *decayed(Update *u, double decay)
{
    if (decay == 0)
        return u->lr;
    Node *before = CALL(u->b, sub, make_cast(u->b, u->step, u->type), update_number(u, 1));
    return CALL(u->b, div, u->lr, update_add(u, update_number(u, 1), before, decay));
}

static Node *expand_update_adagrad(Build *b, const Site *s)
{
    const UpdateAdagradAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_adagrad))
        return NULL;
    Node *g = update_add(&u, u.g, u.x, update_decimal(at->weight_decay)), *v = u.state[0];
    if (at->initial_accumulator_value != 0) /* whatever the state held before the first step */
        v = update_first(&u, update_number(&u, update_decimal(at->initial_accumulator_value)), v);
    v = CALL(b, add, v, CALL(b, mul, g, g));
    Node *under = CALL(b, add, CALL(b, sqrt, v), update_number(&u, update_decimal(at->eps)));
    Node *way = CALL(b, mul, decayed(&u, update_decimal(at->lr_decay)), g);
    return update_close(&u, s, CALL(b, sub, u.x, CALL(b, div, way, under)), &v);
}

static UpdateAdagradAttr sample_update_adagrad(int variant)
{
    return (UpdateAdagradAttr){ .lr_decay = variant % 2 ? 0.1f : 0,
                                .weight_decay = variant % 3 ? 0.01f : 0,
                                .initial_accumulator_value = variant / 2 % 2 ? 0.5f : 0,
                                .eps = 1e-10f };
}

UPDATE_CARD(update_adagrad, UpdateAdagradAttr, "A step of Adagrad.");
