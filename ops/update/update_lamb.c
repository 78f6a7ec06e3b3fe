/* update_lamb: LAMB (You et al. 2019, version 3): Adam's direction, its length that of the parameter. */
#include "ops/update/update.h"

typedef struct UpdateLambAttr {
    UpdateForm form;
    float beta1, beta2, eps, weight_decay;
} UpdateLambAttr;

static const AttrSpec update_lamb_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateLambAttr, beta1, FLOAT, 0.9),
    ATTR(UpdateLambAttr, beta2, FLOAT, 0.999),
    ATTR(UpdateLambAttr, eps, FLOAT, 1e-6),
    ATTR(UpdateLambAttr, weight_decay, FLOAT, 0.01),
    ATTR_LAST,
};

static int states_update_lamb(const void *attr, const char **names)
{
    (void)attr;
    names[0] = "m";
    names[1] = "v";
    return 2;
}

/* |x| / |way|, 1 where either is zero */
static Node *trust(Update *u, Node *way)
{
    Node *zero = update_number(u, 0), *one = update_number(u, 1);
    Node *x = make_reduce_all(u->b, OP_reduce_l2, u->x), *w = make_reduce_all(u->b, OP_reduce_l2, way);
    Node *nothing = CALL(u->b, or, CALL(u->b, equal, x, zero), CALL(u->b, equal, w, zero));
    return CALL(u->b, where, nothing, one, CALL(u->b, div, x, w));
}

static Node *expand_update_lamb(Build *b, const Site *s)
{
    const UpdateLambAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_lamb))
        return NULL;
    Node *next[] = { update_average(&u, u.state[0], at->beta1, u.g),
                     update_average_square(&u, u.state[1], at->beta2, u.g) };
    Node *m = CALL(b, div, next[0], update_filled(&u, at->beta1));
    Node *v = CALL(b, div, next[1], update_filled(&u, at->beta2));
    Node *under = CALL(b, add, CALL(b, sqrt, v), update_number(&u, update_decimal(at->eps)));
    Node *way = update_add(&u, CALL(b, div, m, under), u.x, update_decimal(at->weight_decay));
    Node *rate = CALL(b, mul, u.lr, trust(&u, way));
    return update_close(&u, s, CALL(b, sub, u.x, CALL(b, mul, rate, way)), next);
}

static UpdateLambAttr sample_update_lamb(int variant)
{
    return (UpdateLambAttr){ .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-6f, .weight_decay = variant % 2 ? 0.01f : 0 };
}

UPDATE_CARD_OF(update_lamb, UpdateLambAttr, APART,
               "A step of LAMB: Adam's direction, scaled to the length of the parameter.");
