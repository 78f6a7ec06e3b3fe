/* update_adam: Adam, and AdamW where weight decay is decoupled from the gradient. */
#include "ops/update/update.h"

typedef struct UpdateAdamAttr {
    UpdateForm form;
    float beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad;
} UpdateAdamAttr;

static const AttrSpec update_adam_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateAdamAttr, beta1, FLOAT, 0.9),
    ATTR(UpdateAdamAttr, beta2, FLOAT, 0.999),
    ATTR(UpdateAdamAttr, eps, FLOAT, 1e-8),
    ATTR(UpdateAdamAttr, weight_decay, FLOAT, 0),
    ATTR(UpdateAdamAttr, decoupled, BOOL, false),
    ATTR(UpdateAdamAttr, amsgrad, BOOL, false),
    ATTR_LAST,
};

static int states_update_adam(const void *attr, const char **names)
{
    names[0] = "m";
    names[1] = "v";
    names[2] = "vmax";
    return 2 + ((const UpdateAdamAttr *)attr)->amsgrad;
}

static Node *expand_update_adam(Build *b, const Site *s)
{
    const UpdateAdamAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_adam))
        return NULL;
    const double decay = update_decimal(at->weight_decay);
    Node *x = u.x, *g = u.g;
    if (at->decoupled && decay != 0)
        x = update_decayed(&u, decay);
    else
        g = update_add(&u, g, x, decay);
    Node *next[UPDATE_STATES] = { update_average(&u, u.state[0], at->beta1, g),
                                  update_average_square(&u, u.state[1], at->beta2, g) };
    Node *v = next[1];
    if (at->amsgrad)
        v = next[2] = CALL(b, max, u.state[2], v);
    /* divided by a number, but once and for all: a division of each element would cost a fifth of the step */
    Node *root = CALL(b, mul, CALL(b, sqrt, v), CALL(b, reciprocal, CALL(b, sqrt, update_filled(&u, at->beta2))));
    Node *rate = CALL(b, div, u.lr, update_filled(&u, at->beta1));
    Node *under = CALL(b, add, root, update_number(&u, update_decimal(at->eps)));
    return update_close(&u, s, CALL(b, sub, x, CALL(b, div, CALL(b, mul, rate, next[0]), under)), next);
}

static UpdateAdamAttr sample_update_adam(int variant)
{
    return (UpdateAdamAttr){ .beta1 = variant % 5 ? 0.9f : 0,
                             .beta2 = 0.999f,
                             .eps = 1e-8f,
                             .weight_decay = variant % 3 ? 0.01f : 0,
                             .decoupled = variant % 3 == 2,
                             .amsgrad = variant / 3 % 2 };
}

UPDATE_CARD(update_adam, UpdateAdamAttr,
            "A step of Adam, or of AdamW where weight decay is decoupled from the gradient.");
