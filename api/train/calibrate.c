/* A quantized step sees data before its first step: ranges, and the first values of scales that are learned. */
#include "api/train/calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/make/phase_step.h"
#include "api/train/fit.h"
#include "ir/own_names.h"
#include "ops/quant/observe.h"

enum { CALIBRATION_BATCHES = 32 };

/* Who is shown what. */
typedef struct Calibration {
    Command *c;
    qcc_step *step;
    Session *run;
    const TrainData *data;
    Feed *feed;
    const char *ptq;     /* what --ptq did, lines; null: nothing */
    int64_t parts, seen; /* of a batch, each of which is shown alone; batches that were shown */
} Calibration;

/* ---- showing ---- */

/* Part `k` of `n` of the rows of a value; all of one that every micro-batch reads whole. */
static const Tensor *part_of(const Calibration *k, const char *name, const Tensor *value, int64_t rows, int64_t part)
{
    const Recipe *r = &k->step->recipe;
    Types *types = &k->step->ir->types;
    int64_t dims[MAX_RANK];
    for (size_t i = 0; i < r->n_whole; i++)
        if (strcmp(r->whole[i], name) == 0)
            return value;
    if (k->parts < 2 || value->type->rank < 1 || value->type->dims[0] != rows)
        return value;
    memcpy(dims, value->type->dims, (size_t)value->type->rank * sizeof *dims);
    dims[0] = rows / k->parts;
    Tensor *t = tensor_new(&k->c->cx->scratch, type_tensor(types, value->type->dtype, value->type->rank, dims));
    if (t->bytes)
        memcpy(t->data, (const char *)value->data + (size_t)part * t->bytes, t->bytes);
    return t;
}

/* A batch, in the parts that micro-batches are. */
static Status observe_batch(Calibration *k, const Batch *batch)
{
    for (int64_t part = 0; part < k->parts; part++) {
        for (size_t i = 0; i < k->data->n_inputs; i++) {
            const char *name = k->data->inputs[i].name;
            const Tensor *value = batch->values[i];
            if (value)
                TRY(session_bind(k->run, name, part_of(k, name, value, batch->rows, part)));
        }
        TRY(session_observe(k->run));
    }
    k->seen++;
    return OK;
}

/* The first `most` batches; of a stream as many as there are. */
static Status observe_batches(Calibration *k, int64_t most)
{
    Arena *arena = &k->c->cx->scratch;
    const int64_t have = feed_batches(k->feed);
    for (int64_t i = 0; i < most && (have < 0 || i < have); i++) {
        const ArenaMark mark = arena_mark(arena);
        Batch batch;
        TRY(feed_batch(k->feed, &k->c->cx->diag, 0, i, &batch));
        if (!batch.rows)
            return OK;
        TRY(observe_batch(k, &batch));
        arena_reset(arena, mark);
    }
    return OK;
}

/* Whether anything is to be seen: ranges, or first values of scales that are learned. */
static bool observes(const qcc_step *s)
{
    return module_graph(s->module, "observe") != NULL;
}

/* Whether that reads data: scales of weights alone, which are learned, begin with the weights. */
static bool observes_data(const qcc_step *s)
{
    const Graph *g = module_graph(s->module, "observe");
    bool reads = false;
    for (size_t i = 0; g && i < g->n_inputs; i++)
        reads |= node_is_input(g->inputs[i]) && g->inputs[i]->uses;
    return reads;
}

/* ---- what was seen ---- */

static Status saw_no_number(const Calibration *k, const State *state)
{
    Message *m = message_new(&k->c->cx->diag, SEVERITY_ERROR, INVALID, NOWHERE,
                             "%s has no range: each of %" PRId64 " batches makes a NaN or an infinity there",
                             state->name, k->seen);
    message_try(m, "--calibrate FILE of other data");
    message_try(m, "init=X in --quant: the range to start with");
    return message_send(m);
}

/* Batches that a range has left out, for numbers that are none. */
static Status left_out(const Calibration *k, const State *state, double *n)
{
    const Tensor *value;
    *n = 0;
    if (strncmp(state->name, RANGE_PREFIX, strlen(RANGE_PREFIX)) != 0)
        return OK;
    TRY(session_value(k->run, state, &value));
    *n = tensor_elements(value) > OBSERVED_BAD ? tensor_get_f64(value, OBSERVED_BAD) : 0;
    return OK;
}

static Status check_seen(const Calibration *k)
{
    const State *state;
    size_t n;
    TRY(session_unobserved(k->run, &state));
    if (state)
        return saw_no_number(k, state);
    const State *all = session_states(k->run, &n);
    for (size_t i = 0; i < n; i++) {
        double bad;
        TRY(left_out(k, &all[i], &bad));
        if (bad > 0)
            return warn(&k->c->cx->diag, NOWHERE,
                        "%s leaves out %.0f of %" PRId64 " batches of calibration: they hold a NaN or an infinity",
                        all[i].name, bad, k->seen * k->parts);
    }
    return OK;
}

/* ---- --ptq ---- */

static Status see(void *user, int64_t most)
{
    Calibration *k = user;
    k->seen = 0;
    if (!observes(k->step))
        return OK;
    TRY(observe_batches(k, most));
    return check_seen(k);
}

/* Quantizers see the data; with --ptq the model is made fit for codes around that. */
static Status see_batches(Calibration *k, int64_t most)
{
    PtqPlan plan;
    TRY(ptq_plan(k->c, k->step, &plan));
    if (!plan.on)
        return see(k, most);
    const Fit fit = { .c = k->c,
                      .step = k->step,
                      .run = k->run,
                      .data = k->data,
                      .feed = k->feed,
                      .most = most,
                      .plan = &plan,
                      .see = see,
                      .user = k };
    return fit_codes(&fit, &k->ptq);
}

/* ---- --calibrate ---- */

static int64_t most_batches(const Command *c)
{
    return option_count(&c->line, OPT_calibrate_batches, CALIBRATION_BATCHES);
}

static const char *told_of(const Calibration *k, const char *of)
{
    if (k->seen == 1 && !*of)
        return "ranges of what is quantized are those of the first batch";
    return arena_printf(&k->step->arena, "ranges of what is quantized are those of %s%" PRId64 " batch%s%s",
                        *of ? "" : "the first ", k->seen, k->seen == 1 ? "" : "es", of);
}

/* Nobody observes in this step. */
static Status not_wanted(const Command *c)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--calibrate: no range of this step comes from data");
    message_try(m, "--quant w8a8, or the line without --calibrate");
    return message_send(m);
}

/* The graph whose inputs data are for: --ptq sees them all, also where nobody observes any. */
static const Graph *shown_to(const Calibration *k)
{
    return module_graph(k->step->module, option_given(&k->c->line, OPT_ptq) ? "eval" : "observe");
}

/* Opens what --calibrate names for the model's inputs, whose samples are those of one micro-batch. */
static Status calibrate_on(Calibration *k, uint64_t seed, bool shuffle, const char **told)
{
    TrainData data = { 0 };
    Command *c = k->c;
    const Graph *g = shown_to(k);
    if (!g || (!observes_data(k->step) && !option_given(&c->line, OPT_ptq)))
        return not_wanted(c);
    TRY(train_data_open_for(c, k->step, g, OPT_calibrate, &data));
    const FeedOptions options = { .shuffle = shuffle && !dataset_is_one(data.set),
                                  .last = FEED_PAD,
                                  .seed = seed,
                                  .once = true,
                                  .threads = c->cx->options.threads };
    Status status = feed_open(&k->feed, data.set, &c->cx->diag, &options);
    k->data = &data;
    if (status == OK)
        status = see_batches(k, most_batches(c));
    feed_close(k->feed);
    dataset_close(data.set);
    TRY(status);
    if (observes_data(k->step))
        *told = told_of(k, arena_printf(&c->cx->scratch, " of %s   --calibrate", option_text(&c->line, OPT_calibrate)));
    return OK;
}

/* ---- a run ---- */

static Status no_data(Trainer *t, const State *state)
{
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "%s has seen no data, and a stream is read once", state->name);
    message_try(m, "--calibrate FILE");
    message_try(m, "--data of a file, or init=X in --quant: the range to start with");
    return message_send(m);
}

static Status read_once(Trainer *t)
{
    Message *m =
        message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--ptq: by which data? A stream is read once");
    message_try(m, "--calibrate FILE");
    return message_send(m);
}

Status train_calibrate(Trainer *t)
{
    const State *state;
    const Recipe *r = &t->step->recipe;
    Calibration k = { .c = t->c, .step = t->step, .run = t->run, .data = &t->data, .feed = t->feed, .parts = 1 };
    const bool own = option_given(&t->c->line, OPT_calibrate) > 0;
    const bool fits = option_given(&t->c->line, OPT_ptq) > 0;
    const bool sees = observes(t->step), alone = fits && !sees && !t->done;
    PtqPlan plan;
    TRY(ptq_plan(t->c, t->step, &plan));
    if (own && !fits && !sees)
        return not_wanted(t->c);
    TRY(session_unobserved(t->run, &state));
    if (!state && !alone) {
        if (fits)
            t->ptq = sees ? "ptq              ranges are known already: the model stays as it is\n"
                          : "ptq              the run goes on: the model stays as it is\n";
        if (own)
            t->calibrated = "ranges are known already: --calibrate is not read";
        return OK;
    }
    if (own) {
        TRY(calibrate_on(&k, t->o.seed, t->o.shuffle, &t->calibrated));
        t->ptq = k.ptq;
        return OK;
    }
    if (t->batches < 0)
        return state ? no_data(t, state) : read_once(t);
    k.parts = r->accumulate > 1 ? r->accumulate : 1;
    TRY(see_batches(&k, most_batches(t->c)));
    t->calibrated = sees ? told_of(&k, "") : NULL;
    t->ptq = k.ptq;
    return OK;
}

/* Steps of another kind: a run that ends with them never trains what it deploys. */
static Status tell_phases(Trainer *t)
{
    const int64_t steps = phase_steps(t->step);
    if (!steps || t->done >= steps)
        return OK;
    TRY(out_printf(t->c->out, "%-16s data are floats for %" PRId64 " steps; they are codes where it is validated\n",
                   "phases", steps - t->done));
    if (!t->steps || t->steps > steps)
        return OK;
    Message *m = message_new(t->d, SEVERITY_WARNING, OK, ON_COMMAND_LINE,
                             "phase=weights-first:%" PRId64 ": the run ends after %" PRId64
                             " steps, and none trains with data as codes",
                             steps, t->steps);
    message_try(m, "fewer steps for weights alone, or --steps %" PRId64 " and more", 2 * steps);
    return message_send(m);
}

Status train_tell_quant(Trainer *t)
{
    if (t->calibrated)
        TRY(out_printf(t->c->out, "%-16s %s\n", "calibration", t->calibrated));
    if (t->ptq)
        TRY(out_bytes(t->c->out, t->ptq, strlen(t->ptq)));
    return tell_phases(t);
}

/* ---- a step that is written ---- */

/* What quantizers remember is the first value of their states, in every graph. */
static Status keep_ranges(qcc_step *s, Session *run)
{
    for (size_t k = 0; k < s->module->n_graphs; k++) {
        Graph *g = s->module->graphs[k];
        for (size_t i = 0; i < g->n_inputs; i++) {
            Node *n = g->inputs[i];
            const Tensor *value = is_state(n, STATE_quant) && !node_role(n).of ? session_view(run, n->name) : NULL;
            if (!value)
                continue;
            Tensor *own = tensor_new(&s->arena, n->type);
            if (own->bytes)
                memcpy(own->data, value->data, own->bytes);
            StateAttr *attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
            attr->value = payload_of(g->arena, own);
            n->attr = attr;
        }
    }
    return OK;
}

/* Ranges that are there would count among those of the data. */
static Status known_already(const Command *c)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--calibrate: the ranges of this step are known already");
    message_try(m, "the model that it was made of, without init=X in --quant");
    return message_send(m);
}

static Status calibrate(Command *c, qcc_session *session, const char **told, const char **ptq)
{
    const uint64_t seed = (uint64_t)option_count(&c->line, OPT_seed, 0);
    Calibration k = { .c = c, .step = session->step, .run = session->run, .parts = 1 };
    const State *state;
    TRY(session_unobserved(session->run, &state));
    if (!state && module_graph(session->step->module, "observe"))
        return known_already(c);
    TRY(calibrate_on(&k, seed, true, told));
    *ptq = k.ptq;
    return OK;
}

Status calibrate_by_weights(qcc_session *session)
{
    const State *state;
    TRY(session_unobserved(session->run, &state));
    return state && !observes_data(session->step) ? session_observe(session->run) : OK;
}

Status calibrate_session(Command *c, qcc_session *session, const char **ptq)
{
    const char *told;
    return calibrate(c, session, &told, ptq);
}

Status calibrate_step(Command *c, qcc_step *s, const char **told)
{
    qcc_session *session;
    const char *ptq;
    *told = NULL;
    if (!option_given(&c->line, OPT_calibrate))
        return OK;
    TRY(session_start(s, 0, NULL, &session));
    TRY(calibrate(c, session, told, &ptq));
    TRY(keep_ranges(s, session->run));
    session_end(session);
    return OK;
}
