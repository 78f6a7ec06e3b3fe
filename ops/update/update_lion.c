/* update_lion: Lion (Chen et al. 2023): the sign of an average. */
#include "ops/update/update.h"

typedef struct UpdateLionAttr {
    UpdateForm form;
    float beta1, beta2, weight_decay;
} UpdateLionAttr;

static const AttrSpec update_lion_attrs[] = {
    UPDATE_FORM_ATTRS,
    ATTR(UpdateLionAttr, beta1, FLOAT, 0.9),
    ATTR(UpdateLionAttr, beta2, FLOAT, 0.99),
    ATTR(UpdateLionAttr, weight_decay, FLOAT, 0),
    ATTR_LAST,
};

static int states_update_lion(const void *attr, const char **names)
{
    (void)attr;
    names[0] = "m";
    return 1;
}

static Node *expand_update_lion(Build *b, const Site *s)
{
    const UpdateLionAttr *at = s->attr;
    Update u;
    if (!update_open(&u, b, s, states_update_lion))
        return NULL;
    Node *way = CALL(b, sign, update_average(&u, u.state[0], at->beta1, u.g));
    const double decay = update_decimal(at->weight_decay);
    const bool apart = update_decays_scale(&u);
    way = update_add(&u, way, u.x, apart ? 0 : decay);
    Node *x = apart ? update_decayed(&u, decay) : u.x;
    Node *m = update_average(&u, u.state[0], at->beta2, u.g);
    return update_close(&u, s, CALL(b, sub, x, CALL(b, mul, u.lr, way)), &m);
}

static UpdateLionAttr sample_update_lion(int variant)
{
    return (UpdateLionAttr){ .beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = variant % 2 ? 0.01f : 0 };
}

UPDATE_CARD(update_lion, UpdateLionAttr, "A step of Lion: the sign of an average of gradients.");
