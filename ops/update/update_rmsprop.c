/* update_rmsprop: RMSprop, with momentum and centered. */
#include "ops/update/update.h"

typedef struct UpdateRmspropAttr {
    UpdateForm form;
    float alpha, eps, weight_decay, momentum;
    bool centered;
} UpdateRmspropAttr;

static const AttrSpec update_rmsprop_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateRmspropAttr, alpha, FLOAT, 0.99),
    ATTR(UpdateRmspropAttr, eps, FLOAT, 1e-8),
    ATTR(UpdateRmspropAttr, weight_decay, FLOAT, 0),
    ATTR(UpdateRmspropAttr, momentum, FLOAT, 0),
    ATTR(UpdateRmspropAttr, centered, BOOL, false),
    ATTR_LAST,
};

static int states_update_rmsprop(const void *attr, const char **names)
{
    const UpdateRmspropAttr *at = attr;
    int n = 0;
    names[n++] = "v";
    if (at->momentum != 0)
        names[n++] = "m";
    if (at->centered)
        names[n++] = "mean";
    return n;
}

static Node *expand_update_rmsprop(Build *b, const Site *s)
{
    const UpdateRmspropAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_rmsprop))
        return NULL;
    Node *g = update_add(&u, u.g, u.x, update_decimal(at->weight_decay)), *next[UPDATE_STATES];
    Node *v = next[0] = update_average_square(&u, u.state[0], at->alpha, g);
    if (at->centered) {
        const int i = at->momentum != 0 ? 2 : 1;
        next[i] = update_average(&u, u.state[i], at->alpha, g);
        v = CALL(b, sub, v, CALL(b, mul, next[i], next[i]));
    }
    Node *under = CALL(b, add, CALL(b, sqrt, v), update_number(&u, update_decimal(at->eps)));
    if (at->momentum == 0)
        return update_close(&u, s, CALL(b, sub, u.x, CALL(b, div, CALL(b, mul, u.lr, g), under)), next);
    Node *kept = CALL(b, mul, u.state[1], update_number(&u, update_decimal(at->momentum)));
    next[1] = CALL(b, add, kept, CALL(b, div, g, under));
    return update_close(&u, s, CALL(b, sub, u.x, CALL(b, mul, u.lr, next[1])), next);
}

static UpdateRmspropAttr sample_update_rmsprop(int variant)
{
    return (UpdateRmspropAttr){ .alpha = 0.99f,
                                .eps = 1e-8f,
                                .weight_decay = variant % 3 ? 0.01f : 0,
                                .momentum = variant % 2 ? 0.9f : 0,
                                .centered = variant / 2 % 2 };
}

UPDATE_CARD(update_rmsprop, UpdateRmspropAttr, "A step of RMSprop, with momentum, and centered.");
