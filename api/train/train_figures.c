/* Figures of quantizers for verbs that look at a step: explain, and pages. */
#include "api/session/figures.h"

#include <inttypes.h>
#include <string.h>

#include "api/session/weights.h"
#include "api/train/train.h"

enum {
    FIGURE_BATCHES = 8,         /* that are looked at */
    MOST_FIRST_VALUES = 1 << 26 /* elements of weights that are looked at unasked */
};

/* What is there before a run: the model's own weights. */
static Status of_first_values(Command *c, qcc_step *s, Figures *f)
{
    Heap heap;
    const Tensor **values;
    int64_t elements = 0;
    Arena *arena = &c->cx->scratch;
    for (size_t i = 0; i < f->graph->n_inputs; i++)
        if (f->graph->inputs[i]->op == OP_state && f->graph->inputs[i]->uses)
            elements += type_elements(f->graph->inputs[i]->type);
    if (elements > MOST_FIRST_VALUES) {
        f->n = 0;
        f->why =
            arena_printf(arena, "the weights have more than %d elements: --data, or --checkpoint", MOST_FIRST_VALUES);
        return OK;
    }
    const EvalOptions how = command_eval(c);
    heap_open(&heap, &c->cx->memory);
    Status status = figures_first_values(f, s, &heap, arena, &values);
    if (status == OK)
        status = figures_without_data(f, values);
    if (status == OK)
        status = figures_look(f, &how, &c->cx->memory, values, 0, 0);
    heap_close(&heap);
    return status;
}

static Status of_states(Trainer *t, Figures *f)
{
    const EvalOptions how = command_eval(t->c);
    const Tensor **values = figures_values(f, t->run, 0, NULL, NULL, &t->cx->scratch);
    TRY(figures_without_data(f, values));
    TRY(figures_look(f, &how, &t->cx->memory, values, 0, 0));
    figures_remembered(f, t->run, &t->cx->scratch);
    return OK;
}

Status train_figures_batch(Trainer *t, Figures *f)
{
    Arena *arena = &t->cx->scratch;
    const TrainData *data = &t->data;
    const EvalOptions how = command_eval(t->c);
    const char **names = NEWS(arena, const char *, data->n_inputs + 1);
    for (size_t i = 0; i < data->n_inputs; i++)
        names[i] = data->inputs[i].name;
    const Tensor **values =
        figures_values(f, t->run, data->n_inputs, names, (const Tensor *const *)t->batch.values, arena);
    const int64_t parts =
        t->step->recipe.accumulate > 1 ? t->step->recipe.accumulate : 1; /* of which the first is taken */
    const int64_t rows = t->batch.rows / parts;
    return figures_look(f, &how, &t->cx->memory, values, rows, t->batch.valid < rows ? t->batch.valid : rows);
}

static Status of_data(Trainer *t, Figures *f)
{
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = t->cx->options.threads };
    TRY(train_data_open_for(t->c, t->step, f->graph, OPT_data, &t->data));
    TRY(feed_open(&t->feed, t->data.set, t->d, &all));
    t->batches = feed_batches(t->feed);
    TRY(train_calibrate(t));
    for (int64_t i = 0; i < FIGURE_BATCHES && (t->batches < 0 || i < t->batches); i++) {
        TRY(feed_batch(t->feed, t->d, 0, i, &t->batch));
        if (!t->batch.rows)
            break;
        TRY(train_figures_batch(t, f));
    }
    f->observed = t->calibrated;
    return OK;
}

Status train_figures(Command *c, qcc_step *s, Figures *f)
{
    const char *words, *path = option_text(&c->line, OPT_checkpoint);
    Trainer t = { .c = c, .cx = c->cx, .d = &c->cx->diag, .step = s };
    TRY(figures_open(f, s, &c->cx->scratch));
    if (!f->n)
        return OK;
    if (!path && !option_given(&c->line, OPT_data))
        return of_first_values(c, s, f);
    TRY(session_start(s, (uint64_t)option_count(&c->line, OPT_seed, 0), &c->cx->stop, &t.session));
    t.run = t.session->run;
    if (path)
        TRY(session_take_final(t.session, path, weights_said(&c->line), &words));
    const Status status = option_given(&c->line, OPT_data) ? of_data(&t, f) : of_states(&t, f);
    feed_close(t.feed);
    dataset_close(t.data.set);
    return status;
}
