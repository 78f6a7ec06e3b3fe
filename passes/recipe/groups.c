#include "passes/recipe/groups.h"

#include "ir/role.h"
#include "ops/card/path.h"
#include "passes/recipe/selector.h"

static bool is_trained(const Node *n)
{
    return n->op == OP_state && n->flags & NODE_TRAINED;
}

/* Gives the parameters that a selector takes to a group. */
static Status assign(Recipe *r, Graph *g, const OptimizerGroup *group, const Map *paths, Map *members)
{
    Selector s;
    bool any = false;
    TRY(selector_open(&s, g, members->arena, paths, "--group", group->selector));
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!is_trained(n) || !n->name || !selector_takes_parameter(&s, n))
            continue;
        any = true;
        map_put(members, n->name, NULL)->value.i = group - r->groups;
    }
    const Status status = any ? OK : selector_missed(&s, g, true);
    selector_close(&s);
    return status;
}

Status recipe_assign_groups(Recipe *r, Graph *g, Arena *arena)
{
    Map *members = NEW(arena, Map), paths = path_names(g, arena);
    map_open(members, arena);
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].selector)
            TRY(assign(r, g, &r->groups[i], &paths, members));
    r->members = members;
    return OK;
}

const OptimizerGroup *recipe_group(const Recipe *r, const Node *parameter)
{
    const MapEntry *e = r->members && parameter->name ? map_find(r->members, parameter->name) : NULL;
    return &r->groups[e ? e->value.i : 0];
}

size_t recipe_members(const Recipe *r, const Graph *g, const OptimizerGroup *group)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        n += is_trained(g->inputs[i]) && recipe_group(r, g->inputs[i]) == group;
    return n;
}

bool group_spares(const OptimizerGroup *group, const Node *parameter)
{
    if (is_state(parameter, STATE_quant)) /* a logarithm that decays is a scale that nears 1 */
        return !group->says_decay;
    return group->spares_vectors && parameter->type->rank <= 1;
}

const void *group_attr(const OptimizerGroup *group, const Node *parameter, Arena *arena)
{
    const AttrSpec *specs = parameter->graph->ir->ops->defs[group->op]->attrs;
    const AttrSpec *decay = attr_find(specs, str("weight_decay"));
    if (!group_spares(group, parameter) || !decay)
        return group->attr;
    void *attr = attrs_copy(arena, specs, group->attr);
    *(float *)attr_at(decay, attr) = 0;
    return attr;
}
