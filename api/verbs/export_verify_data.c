/* The data that export --verify names, NAME=FILE:opt,..,NAME=FILE: one by one, as --data and --target have them. */
#include <string.h>

#include "api/train/train.h"
#include "api/verbs/export.h"

static const Node *input_named(const Graph *g, const char *name, size_t n)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strlen(g->inputs[i]->name) == n && strncmp(g->inputs[i]->name, name, n) == 0)
            return g->inputs[i];
    return NULL;
}

/* Where the value of NAME=FILE:opt,opt ends: at a comma behind which another NAME= begins. */
static size_t piece_length(const Graph *g, const char *text)
{
    size_t n = strcspn(text, ",");
    while (text[n]) {
        const char *next = text + n + 1;
        const size_t name = strcspn(next, "=,:");
        if (next[name] == '=' && input_named(g, next, name))
            return n;
        n += 1 + strcspn(next, ",");
    }
    return n;
}

static bool is_target(const qcc_step *s, const char *piece)
{
    for (size_t i = 0; i < s->n_targets; i++) {
        const size_t n = strlen(s->targets[i].input);
        if (strncmp(piece, s->targets[i].input, n) == 0 && piece[n] == '=')
            return true;
    }
    return false;
}

static Status no_input(Command *c, const qcc_step *s, const char *name)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--verify";
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "no input is called %s", name);
    for (size_t i = 0; i < s->n_inputs; i++)
        message_at(m, "%s %s", s->inputs[i].name, s->inputs[i].text);
    return message_send(m);
}

/* --verify x=vx.npy,target=vy.npy as --data and --target; *measures: a target is given. */
static Status add_pieces(Command *c, const qcc_step *s, bool *measures)
{
    const char *text;
    bool targets = s->n_targets == 0;
    const Graph *g = module_graph(s->module, "eval");
    for (size_t at = 0; (text = option_next(&c->line, OPT_verify, &at));)
        while (*text) {
            const size_t n = piece_length(g, text);
            const char *piece = arena_copy(&c->cx->scratch, text, n);
            const size_t name = strcspn(piece, "=:");
            if (piece[name] == '=' && !input_named(g, piece, name))
                return no_input(c, s, arena_copy(&c->cx->scratch, piece, name));
            const bool target = is_target(s, piece);
            option_add(&c->cx->scratch, &c->line, target ? OPT_target : OPT_data, piece);
            targets |= target;
            text += n + (text[n] == ',');
        }
    for (size_t i = 0; i < s->n_targets && !targets; i++) /* outputs alone are compared */
        option_add(&c->cx->scratch, &c->line, OPT_fill, arena_printf(&c->cx->scratch, "%s=0", s->targets[i].input));
    *measures = targets;
    return OK;
}

Status export_verify_data(Command *c, Exported *e)
{
    TrainData data = { 0 };
    TRY(add_pieces(c, e->step, &e->measures));
    const Status status = train_data_open(c, e->step, OPT_data, OPT_target, true, &data);
    dataset_close(data.set);
    return status;
}
