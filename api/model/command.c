#include "api/model/command.h"

#include <string.h>

Status command_wants(Command *c, size_t n)
{
    if (c->line.n_paths == n)
        return OK;
    Place place = ON_COMMAND_LINE;
    place.where = verb_name(c->line.verb);
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "wants %zu model%s: got %zu", n,
                             n == 1 ? "" : "s", c->line.n_paths);
    static const char *const forms[] = {
#define FORM(word, form, help) form,
        VERBS(FORM)
#undef FORM
    };
    message_try(m, "qcc %s %s", verb_name(c->line.verb), forms[c->line.verb]);
    return message_send(m);
}

Status command_model(Command *c, size_t i, qcc_model **model)
{
    const qcc_source source = { .path = c->line.paths[i] };
    return model_read(c->cx, &source, &c->line, model);
}

EvalOptions command_eval(Command *c)
{
    const char *rng = option_text(&c->line, OPT_rng);
    return (EvalOptions){
        .kernels = c->cx->kernels,
        .pool = context_pool(c->cx),
        .seed = (uint64_t)option_count(&c->line, OPT_seed, 0),
        .random = rng && strcmp(rng, "numpy") == 0 ? RANDOM_NUMPY : RANDOM_PHILOX,
        .stop = &c->cx->stop,
    };
}
