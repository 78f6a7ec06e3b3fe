/* What later steps read, given while others are to run: it is `next` until a step runs, then it comes, and is bound as the step
 * behind that begins.  So what runs, or is replayed, reads what it was given.  To a device it travels while it comes; where
 * values do not travel it is lent as its own step begins. */
#include "runtime/session/session_parts.h"

static bool travels(const Session *s)
{
    return s->engine->bring != NULL;
}

Status session_bind_next_value(Session *s, const SessionValue *v, const Tensor *value)
{
    Input *input = v->input;
    if (!input || input->slot[0] < 0)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is no input of the step", v->name);
    const Type *want = session_step_graph(s)->inputs[input->slot[0]]->type;
    if (value && !type_agrees(value->type, want))
        return session_wrong_type(s, input->name, value->type, want);
    input->next = value ? (Given){ value->type, value->data, value->bytes } : (Given){ .type = NULL };
    if (!value)
        input->coming.type = NULL;
    return OK;
}

void session_forget_next(Session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        s->inputs[i].next.type = s->inputs[i].coming.type = NULL;
}

void session_while_it_runs(Session *s, void (*meanwhile)(void *user), void *user)
{
    s->meanwhile = travels(s) ? meanwhile : NULL;
    s->meanwhile_user = user;
}

bool session_comes(const Session *s, const char *name)
{
    const Input *input = session_input_named(s, name);
    return input && input->coming.type;
}

/* ---- steps ---- */

static Status bound_twice(Session *s, const Input *input)
{
    return fail_as(s->ir->diag, USAGE, NOWHERE,
                   "%s was bound for this step before the last one, and again since: which of the two is it to read?",
                   input->name);
}

Status next_take(Session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].coming.type && s->inputs[i].rebound)
            return bound_twice(s, &s->inputs[i]);
    for (size_t i = 0; i < s->n_inputs; i++) {
        Input *input = &s->inputs[i];
        const Given *g = &input->coming;
        const Tensor value = { .type = g->type, .data = g->data, .bytes = g->bytes };
        if (!g->type)
            continue;
        if (travels(s)) {
            TRY(s->engine->take(s->values, (int)i));
            input->bound = g->type;
        } else {
            TRY(session_lend(s, input, &value));
        }
        input->counts_all = false;
        input->coming.type = NULL;
    }
    return OK;
}

Status next_bring(Session *s)
{
    if (s->meanwhile)
        s->meanwhile(s->meanwhile_user);
    for (size_t i = 0; i < s->n_inputs; i++) {
        Input *input = &s->inputs[i];
        const Given *g = &input->next;
        const Tensor value = { .type = g->type, .data = g->data, .bytes = g->bytes };
        if (!g->type)
            continue;
        if (travels(s))
            TRY(s->engine->bring(s->values, (int)i, &value));
        input->coming = *g;
        input->next.type = NULL;
        input->rebound = false;
    }
    return OK;
}

void next_undo(Session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        Input *input = &s->inputs[i];
        if (!input->coming.type)
            continue;
        input->next = input->coming;
        input->coming.type = NULL;
    }
}

void next_evaluated(Session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        s->inputs[i].rebound = false;
}
