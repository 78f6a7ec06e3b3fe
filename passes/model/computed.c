/* Values that the exporter computed with parameters before it wrote the file: a copy is tied (ties.c); of any other nothing
 * says what was computed, but its numbers may. */
#include "passes/clean/constant_values.h"
#include "passes/model/candidates.h"

bool is_computed(const Candidate *k)
{
    return k->node->flags & NODE_FIXED && !k->node->label;
}

static bool stays(const Candidate *k)
{
    return is_computed(k) && k->choice.kind == CHOICE_CONSTANT && k->node->uses && k->node->type->kind == TYPE_TENSOR &&
           dtype_is_float(k->node->type->dtype);
}

/* The first parameter that the numbers may have been made of, and how many others are as likely: those in proportion to them are more so
 * than those that are only in their order. */
static const Candidate *computed_with(const Choosing *c, const Candidate *k, size_t *others)
{
    const Candidate *found = NULL;
    bool in_a_line = false;
    for (size_t i = 0; i < c->n; i++) {
        const Candidate *p = &c->list[i];
        if (p->choice.kind != CHOICE_TRAINED || !(p->node->flags & NODE_PARAMETER) ||
            !are_ordered_alike(p->node, k->node, false))
            continue;
        const bool line = are_ordered_alike(p->node, k->node, true);
        if (!found || (line && !in_a_line)) {
            found = p;
            in_a_line = line;
            *others = 0;
        } else if (line == in_a_line) {
            ++*others;
        }
    }
    return found;
}

Status tell_computed(const Choosing *c)
{
    Message *m = NULL;
    for (size_t i = 0; i < c->n; i++) {
        size_t others = 0;
        const Candidate *k = &c->list[i], *with = stays(k) ? computed_with(c, k, &others) : NULL;
        if (!with)
            continue;
        if (!m)
            m = message_new(c->run->diag, SEVERITY_WARNING, OK, NOWHERE,
                            "values that the exporter computed rise or fall with the numbers of parameters: they were "
                            "computed with those, it seems, and stay what they are while those are trained");
        const char *name = k->node->name ? k->node->name : "a Constant";
        if (others)
            message_at(m, "%s with %s or %zu other%s", name, with->choice.path, others, others == 1 ? "" : "s");
        else
            message_at(m, "%s with %s", name, with->choice.path);
    }
    if (!m)
        return OK;
    message_try(m, "torch.onnx.export(.., optimize=False), which computes them in the graph");
    return message_send(m);
}
