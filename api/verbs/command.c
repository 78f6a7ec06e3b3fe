
#include <string.h>

#include "api/hall/devices.h"
#include "api/hall/words.h"
#include "api/make/step.h"
#include "api/model/destinations.h"
#include "api/train/train.h"
#include "api/verbs/verbs.h"
#include "base/file.h"
#include "base/machine_memory.h"

/* ---- settings of the whole command ---- */

/* Models and data come from others: the command holds no more than a part of the machine unless it is told to. */
static Status bound_memory(Command *c)
{
    qcc_context *cx = c->cx;
    const char *text = option_text(&c->line, OPT_memory_limit);
    if (!text && cx->options.memory)
        return OK;
    TRY(memory_size_read(&cx->diag, "--memory-limit", text ? text : "90%", machine_memory(""), &cx->memory.budget));
    cx->bounded = true;
    return OK;
}

/* Whether time or memory counts more. */
static Status choose_lowering(Command *c)
{
    qcc_context *cx = c->cx;
    const char *remat = option_text(&c->line, OPT_remat), *most = option_text(&c->line, OPT_remat_budget);
    cx->lowering = (Lowering){ .remat = REMAT_NONE };
    while (remat && strcmp(remat, remat_name(cx->lowering.remat)) != 0)
        cx->lowering.remat++;
    if (most && remat)
        return fail_as(&cx->diag, USAGE, ON_COMMAND_LINE, "--remat %s and --remat-budget: one of the two decides",
                       remat);
    return most ? memory_size_read(&cx->diag, "--remat-budget", most, machine_memory(""), &cx->lowering.most) : OK;
}

static Status apply_settings(Command *c)
{
    qcc_context *cx = c->cx;
    const CommandLine *l = &c->line;
    const char *messages = option_text(l, OPT_messages), *limits = option_text(l, OPT_limits);
    const char *cache = option_text(l, OPT_cache);
    cx->as_json = messages && strcmp(messages, "json") == 0;
    cx->verbosity = option_given(l, OPT_quiet) ? -1 : option_given(l, OPT_verbose);
    TRY(bound_memory(c));
    TRY(choose_lowering(c));
    if (option_given(l, OPT_warning))
        cx->diag.warnings_are_errors = true;
    if (cache)
        cx->device.cache = cache_folder(cache);
    if (option_given(l, OPT_exact))
        cx->options.exact = true;
    cx->device.ranges = cx->device.ranges || option_given(l, OPT_nvtx);
    cx->device.unmeasured = cx->device.unmeasured || option_given(l, OPT_no_measure);
    if (option_text(l, OPT_matmul))
        TRY(products_read(&cx->diag, ON_COMMAND_LINE, option_text(l, OPT_matmul), &cx->device.products));
    if (option_text(l, OPT_threads) && !cx->pool)
        cx->options.threads = (int)option_count(l, OPT_threads, 0);
    if (limits) {
        static const int64_t largest = 1 << 20;
        Str text;
        TRY(file_read(&cx->scratch, &cx->diag, limits, largest, "configuration", &text));
        TRY(limits_read(&cx->diag, (Place){ .file = limits, .byte = -1 }, text, &cx->limits));
    }
    return OK;
}

static Status choose_device(Command *c)
{
    const char *device = option_text(&c->line, OPT_device);
    Place place = ON_COMMAND_LINE;
    place.where = "--device";
    return device ? device_read(&c->cx->diag, place, device, &c->cx->scratch, &c->cx->engine, &c->cx->device) : OK;
}

/* ---- dispatch ---- */

static Status verb_is_missing(Command *c)
{
    Place place = ON_COMMAND_LINE;
    place.where = verb_name(c->line.verb);
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "this build has no such verb yet");
    message_try(m, "train, eval, predict, run, check, diff, explain, export, or MODEL --emit ir|onnx|json|dot|html");
    return message_send(m);
}

/* clang-format off */
static Status (*const verbs[VERB_COUNT])(Command *c) = {
    [VERB_compile] = command_emit,  [VERB_export] = command_export,   [VERB_run] = command_run,
    [VERB_check] = command_check,   [VERB_explain] = command_explain, [VERB_diff] = command_diff,
    [VERB_predict] = command_predict, [VERB_train] = command_train,   [VERB_eval] = command_measure,
    [VERB_bench] = command_bench,
};
/* clang-format on */

bool command_has(Verb v)
{
    return verbs[v] != NULL;
}

static Status dispatch(Command *c)
{
    const CommandLine *l = &c->line;
    if (option_given(l, OPT_version))
        return command_doctor(c);
    if (option_given(l, OPT_list_ops))
        return command_list_ops(c);
    if (option_given(l, OPT_print_table))
        return command_print_table(c);
    if (option_given(l, OPT_print_quantizer))
        return command_print_quantizer(c);
    if (!l->verb_said && !l->n_paths && !l->n_given)
        return command_help(c);
    TRY(choose_device(c));
    return verbs[l->verb](c);
}

/* A first word that is neither a verb nor a file, and nearly a verb. */
static Status check_verb(Command *c)
{
    const CommandLine *l = &c->line;
    const char *words[VERB_COUNT + 2] = { "help", "version" };
    if (l->verb_said || !l->n_paths || option_given(l, OPT_list_ops) || file_exists(l->paths[0]))
        return OK;
    for (int v = 0; v < VERB_COUNT; v++)
        words[v + 2] = verb_name((Verb)v);
    const char *near = str_nearest(l->paths[0], words, COUNT(words));
    if (!near)
        return OK;
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "'%s' is no verb, and no file either", l->paths[0]);
    const bool option = near == words[0] || near == words[1];
    message_try(m, "qcc %s%s", option ? "--" : "", near);
    return message_send(m);
}

/* What a step was compiled with, as comments: a run of it cannot say them, and can say another rate. */
static Status print_compiled(Command *c, Text *text)
{
    CommandLine was;
    Text all;
    qcc_model *m;
    qcc_step *s;
    Arena *a = &c->cx->scratch;
    TRY(command_model(c, 0, &m));
    TRY(step_compile(m, &c->line, &s));
    TRY(options_read_text(&c->cx->diag, a, "options of the step", s->facts.options, TEXT_RECORDED, &was));
    for (size_t i = 0; i < c->line.n_given; i++)
        line_drop(&was, c->line.given[i].option);
    text_open(&all, a);
    config_print(&all, &was);
    text_printf(text, "# compiled into %s\n", name_text(a, m->file));
    for (const char *p = text_get(&all); *p;) {
        const size_t n = strcspn(p, "\n");
        text_printf(text, "# %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    return OK;
}

static Status print_config(Command *c)
{
    Text text;
    bool is_step = false;
    const CommandLine *l = &c->line;
    text_open(&text, &c->cx->scratch);
    if (l->n_paths == 1 && V_STEP >> l->verb & 1 && file_exists(l->paths[0]))
        TRY(model_file_is_step(c->cx, l->paths[0], &is_step));
    if (is_step)
        TRY(print_compiled(c, &text));
    config_print(&text, l);
    return out_bytes(c->out, text.p, text.n);
}

/* Help and unknown verbs come before whatever else may be wrong with the line. */
static Status carry_out(Command *c)
{
    if (option_given(&c->line, OPT_help))
        return command_help(c);
    TRY(check_verb(c));
    TRY(verbs[c->line.verb] ? OK : verb_is_missing(c));
    TRY(options_allowed(&c->cx->diag, &c->line));
    if (option_given(&c->line, OPT_print_config))
        return print_config(c);
    return dispatch(c);
}

/* Verbs whose results are words beside the file that they write. */
static bool writes_itself(const CommandLine *l)
{
    if (option_given(l, OPT_help) || option_given(l, OPT_version) || option_given(l, OPT_print_config))
        return false;
    return l->verb == VERB_train || l->verb == VERB_eval || l->verb == VERB_export || l->verb == VERB_predict ||
           (l->verb == VERB_compile && l->n_paths && !option_given(l, OPT_emit));
}

/* -q: such a verb says nothing but errors. */
static qcc_status say_nothing(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

/* Whether files are written beside what is printed: they are worth the work even where nobody can read the words. */
static bool has_files(const CommandLine *l)
{
    return writes_itself(l) || option_given(l, OPT_output);
}

/* Whether results are words, which --messages json turns to objects, and no document that somebody asked for. */
static bool speaks_json(const Command *c)
{
    const CommandLine *l = &c->line;
    const char *path = option_text(l, OPT_output_path), *output = option_text(l, OPT_output);
    const bool piped = (path && strcmp(path, "-") == 0) || (output && strcmp(output + strcspn(output, "="), "=-") == 0);
    return c->cx->as_json && !piped && !option_given(l, OPT_emit) && !option_given(l, OPT_help) &&
           !option_given(l, OPT_print_config) && !option_given(l, OPT_print_table) &&
           !option_given(l, OPT_print_quantizer);
}

static bool is_silent(const Command *c)
{
    const CommandLine *l = &c->line;
    if (speaks_json(c))
        return false;
    const char *path = option_text(l, OPT_output_path);
    return option_given(l, OPT_quiet) && writes_itself(l) && l->verb != VERB_eval && !(path && strcmp(path, "-") == 0);
}

/* No verb ends badly without a word: where neither results nor an error say what happened, the status does. */
static Status say_something(Command *c, Status status)
{
    const bool said = c->cx->diag.n_errors || (status == MISMATCH && !is_silent(c)) || status == INTERRUPTED ||
                      (status == IO && c->out->lost);
    if (status == OK || said)
        return status;
    return fail_as(&c->cx->diag, status, (Place){ .file = c->line.n_paths ? c->line.paths[0] : NULL, .byte = -1 },
                   "%s: %s", verb_name(c->line.verb), exit_text(status));
}

typedef struct Call {
    qcc_context *cx;
    int argc;
    const char *const *argv;
    const qcc_sink *sink;
} Call;

static Status do_line(const Call *call, FileSet *files)
{
    Command c = { .cx = call->cx };
    Out out;
    qcc_sink sink = *call->sink;
    const int n = call->argc > 1 ? call->argc - 1 : 0;
    TRY(options_read(&c.cx->diag, &c.cx->scratch, n, n ? call->argv + 1 : NULL, &c.line));
    TRY(apply_settings(&c));
    const char *path = option_text(&c.line, OPT_output_path);
    if (path && strcmp(path, "-") != 0 && !writes_itself(&c.line))
        sink = qcc_to_file(path);
    if (is_silent(&c))
        sink = (qcc_sink){ .write = say_nothing };
    TRY(destinations_check(&c, files, sink.path && strcmp(sink.path, "-") == 0));
    TRY(out_open(&out, c.cx, &sink));
    if (speaks_json(&c))
        out_speak_json(&out);
    out.if_lost = has_files(&c.line) ? OUT_GOES_ON : OUT_ENDS;
    c.out = &out;
    return say_something(&c, out_close(&out, carry_out(&c)));
}

static Status do_command(void *arg)
{
    const Call *call = arg;
    Arena arena;
    FileSet files;
    arena_open(&arena, &call->cx->memory);
    file_set_open(&files, &arena);
    call->cx->diag.files = &files;
    const Status status = do_line(call, &files);
    arena_close(&arena);
    return status;
}

static bool all_there(int argc, const char *const *argv)
{
    for (int i = 1; i < argc; i++) /* what argv[0] is does not matter */
        if (!argv || !argv[i])
            return false;
    return true;
}

/* Models that the command read go with it, whatever happened. */
qcc_status qcc_command(qcc_context *context, int argc, const char *const *argv, const qcc_sink *out)
{
    Call call = { context, argc, argv, out };
    if (!context || !out || !all_there(argc, argv))
        return QCC_USAGE;
    qcc_status status = context_enter(context);
    if (status != QCC_OK)
        return status;
    const Held *last = context->held;
    const Limits limits = context->limits;
    const int threads = context->options.threads;
    const bool strict = context->diag.warnings_are_errors;
    const int verbosity = context->verbosity;
    const uint64_t budget = context->memory.budget;
    const Engine *engine = context->engine;
    const DeviceUse device = context->device;
    context->memory.stop = &context->stop;
    status = context_run(context, do_command, &call);
    context->memory.stop = NULL;
    context->diag.files = NULL; /* they lay in frames that a jump may have passed */
    context_forget(context, last);
    context->limits = limits;
    context->options.threads = threads;
    context->diag.warnings_are_errors = strict;
    context->verbosity = verbosity;
    context->memory.budget = budget;
    context->engine = engine;
    context->device = device;
    context->bounded = false;
    context->as_json = false;
    context_let_go(context);
    return status;
}
