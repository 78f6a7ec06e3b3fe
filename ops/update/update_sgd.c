/* update_sgd: gradient descent, with momentum and Nesterov's form of it. */
#include "ops/update/update.h"

typedef struct UpdateSgdAttr {
    UpdateForm form;
    float momentum, dampening, weight_decay;
    bool nesterov;
} UpdateSgdAttr;

static const AttrSpec update_sgd_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateSgdAttr, momentum, FLOAT, 0),
    ATTR(UpdateSgdAttr, dampening, FLOAT, 0),
    ATTR(UpdateSgdAttr, weight_decay, FLOAT, 0),
    ATTR(UpdateSgdAttr, nesterov, BOOL, false),
    ATTR_LAST,
};

static int states_update_sgd(const void *attr, const char **names)
{
    names[0] = "m";
    return ((const UpdateSgdAttr *)attr)->momentum != 0;
}

static Node *expand_update_sgd(Build *b, const Site *s)
{
    const UpdateSgdAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_sgd))
        return NULL;
    Node *g = update_add(&u, u.g, u.x, update_decimal(at->weight_decay)), *m = NULL, *d = g;
    if (at->momentum != 0) {
        const double keep = update_decimal(at->momentum);
        m = update_add(&u, CALL(b, mul, u.state[0], update_number(&u, keep)), g, 1 - update_decimal(at->dampening));
        if (at->dampening != 0) /* the first gradient comes in whole */
            m = update_first(&u, g, m);
        d = at->nesterov ? update_add(&u, g, m, keep) : m;
    }
    return update_close(&u, s, CALL(b, sub, u.x, CALL(b, mul, u.lr, d)), &m);
}

static UpdateSgdAttr sample_update_sgd(int variant)
{
    return (UpdateSgdAttr){ .momentum = variant % 3 ? 0.9f : 0,
                            .dampening = variant % 3 == 1 && variant % 4 < 2 ? 0.5f : 0,
                            .weight_decay = variant % 2 ? 0.01f : 0,
                            .nesterov = variant % 3 == 2 };
}

UPDATE_CARD(update_sgd, UpdateSgdAttr, "A step of gradient descent, with momentum and Nesterov's form of it.");
