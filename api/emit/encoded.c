#include "api/emit/encoded.h"

#include <string.h>

#include "api/make/step.h"
#include "base/file.h"
#include "frontends/encodings/encodings.h"
#include "passes/engine/pass.h"

enum { MOST_NAMES = 5 };

static Place file_place(const char *path)
{
    Place place = NOWHERE;
    place.file = path;
    return place;
}

/* Names that nothing in the model has: encodings of another model, or of another export of it. */
static Status tell_absent(qcc_model *m, const char *path, const EncodingsPlaced *p)
{
    Text names;
    text_open(&names, &m->cx->scratch);
    for (size_t i = 0; i < p->n_absent && i < MOST_NAMES; i++) {
        text_add(&names, i ? ", " : "");
        text_escape(&names, p->absent[i], strlen(p->absent[i]), 80);
    }
    if (p->n_absent > MOST_NAMES)
        text_printf(&names, " and %zu more", p->n_absent - MOST_NAMES);
    if (p->values + p->parameters == 0)
        return fail_as(&m->cx->diag, INVALID, file_place(path), "none of its names is a value of this model: %s",
                       text_get(&names));
    return warn(&m->cx->diag, file_place(path), "%zu of its names are no values of this model: %s", p->n_absent,
                text_get(&names));
}

static void tell_placed(qcc_model *m, const char *path, const EncodingsPlaced *p)
{
    Message *told = message_new(&m->cx->diag, SEVERITY_NOTE, OK, file_place(path),
                                "%zu values and %zu parameters are codes now", p->values, p->parameters);
    if (p->guessed)
        message_at(told, "%zu of them with channels along the axis of who reads them: the file names none", p->guessed);
    if (p->wide)
        message_at(told, "%zu of 32 bits, as biases are, stay numbers", p->wide);
    if (p->floats)
        message_at(told, "%zu of floats stay numbers", p->floats);
    (void)message_send(told);
}

static Status place_all(qcc_model *m, const char *path, Graph *g)
{
    qcc_context *cx = m->cx;
    Encodings e;
    EncodingsPlaced placed;
    Str text;
    TRY(file_read(&cx->scratch, &cx->diag, path, cx->limits.string_bytes, "string_bytes", &text));
    TRY(encodings_read(&e, path, text, &cx->scratch, &cx->diag));
    TRY(encodings_place(&e, g, &placed));
    TRY(pass_run(pass_find("deploy-quant"), g, NULL)); /* in words that files have */
    if (placed.n_absent)
        TRY(tell_absent(m, path, &placed));
    tell_placed(m, path, &placed);
    return OK;
}

static void own_graph(void *encoded)
{
    Encoded *e = encoded;
    e->m->graph = e->m->module->graphs[0] = e->graph;
}

Status encoded_open(Encoded *e, qcc_model *m, const CommandLine *line)
{
    const char *path = option_text(line, OPT_encodings);
    *e = (Encoded){ .m = m };
    if (!path)
        return OK;
    if (model_is_step(m)) {
        Place place = ON_COMMAND_LINE;
        place.where = "--encodings";
        return fail_as(&m->cx->diag, USAGE, place, "they are of a model, and this is a step");
    }
    Graph *g = graph_copy(m->graph, &m->arena);
    TRY(place_all(m, path, g));
    e->graph = m->graph;
    cleanup_push(&m->cx->memory, &e->cleanup, own_graph, e);
    m->graph = m->module->graphs[0] = g;
    return OK;
}

void encoded_close(Encoded *e)
{
    if (!e->graph)
        return;
    own_graph(e);
    cleanup_drop(&e->cleanup);
}
