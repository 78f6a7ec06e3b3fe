/* What closes needs no memory: after every call, done or ended half way by memory that ran out and stays away, whatever
 * gives back or asks no status is called with an allocator that refuses everything.  It is never asked, every block comes
 * back, and the process lives. */
#include "fault/world.h"

/* ---- the calls that answer no status ---- */

static void ask_context(World *w)
{
    qcc_interrupt(w->context);
    qcc_request_save(w->context);
    qcc_grace(w->context);
}

static void ask_names(World *w)
{
    (void)w;
    qcc_version();
    qcc_status_name(QCC_NO_MEMORY);
    qcc_dtype_name(QCC_F32);
    qcc_file("x");
    qcc_bytes("x", 1);
    qcc_to_file("x");
    qcc_report_stderr(NULL, &(qcc_message){ .severity = QCC_NOTE, .text = "" });
}

static void ask_model(World *w)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_n_inputs(w->model); i++)
        (void)!qcc_input(w->model, i, &v);
    for (size_t i = 0; i < qcc_n_outputs(w->model); i++)
        (void)!qcc_output(w->model, i, &v);
}

static void ask_step(World *w)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_step_n_inputs(w->step); i++)
        (void)!qcc_step_input(w->step, i, &v);
    for (size_t i = 0; i < qcc_n_parameters(w->step); i++)
        (void)!qcc_parameter(w->step, i, &v);
}

static void ask_session(World *w)
{
    qcc_flat_size(w->session);
    qcc_request_stop(w->session);
}

static void (*const questions[])(World *w) = { ask_context, ask_names, ask_model, ask_step, ask_session };

static void end_session(World *w)
{
    qcc_end(w->session);
}

static void end_other(World *w)
{
    qcc_end(w->other);
}

static void close_scaler(World *w)
{
    qcc_scaler_close(w->scaler);
}

static void free_step(World *w)
{
    qcc_step_free(w->step);
}

static void free_model(World *w)
{
    qcc_model_free(w->model);
}

enum { MOST_CLOSING = 5 };

/* The orders in which a host may let go, before the context goes. */
static void (*const orders[][MOST_CLOSING])(World *w) = {
    { end_session, end_other, close_scaler, free_step, free_model },
    { free_model, free_step, close_scaler, end_other, end_session },
    { close_scaler, free_step, end_session },
    { NULL },
};

enum { N_ORDERS = sizeof orders / sizeof *orders };

/* The names above; a test looks that the header has no other. */
static const char *const called[] = {
    "qcc_interrupt",    "qcc_request_save", "qcc_grace",         "qcc_version",      "qcc_status_name",
    "qcc_dtype_name",   "qcc_file",         "qcc_bytes",         "qcc_to_file",      "qcc_report_stderr",
    "qcc_n_inputs",     "qcc_n_outputs",    "qcc_step_n_inputs", "qcc_n_parameters", "qcc_flat_size",
    "qcc_request_stop", "qcc_end",          "qcc_scaler_close",  "qcc_step_free",    "qcc_model_free",
    "qcc_close",
};

/* Declarations of the header that are QCC_API, not QCC_CHECKED: each must be among the names. */
static int forgotten(const char *header)
{
    char line[512];
    int missing = 0;
    size_t found = 0;
    FILE *f = fopen(header, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *name = strncmp(line, "QCC_API ", 8) == 0 ? strstr(line, "qcc_") : NULL;
        char *end = name ? strchr(line, '(') : NULL;
        if (!end)
            continue;
        *end = 0;
        for (char *p = name; (p = strstr(p, "qcc_")); p++)
            name = p;
        size_t i = 0;
        while (i < sizeof called / sizeof *called && strcmp(called[i], name) != 0)
            i++;
        found++;
        if (i == sizeof called / sizeof *called) {
            printf("%s is called nowhere here\n", name);
            missing++;
        }
    }
    if (f)
        fclose(f);
    if (found != sizeof called / sizeof *called)
        printf("%s declares %zu such calls\n", header, found);
    return missing || found != sizeof called / sizeof *called;
}

/* ---- trials ---- */

/* The n-th call with memory that ends after `served` requests and stays away, or (SIZE_MAX) without a failure; then all
 * that closes.  False after something was wrong. */
static bool trial(World *w, const Verb *verb, size_t served, size_t order, bool *failed)
{
    const Host fresh = { 0 };
    w->host = fresh;
    *failed = false;
    if (world_open(w) != QCC_OK) {
        printf("%s: %s\n", w->file ? w->file : "text", w->host.text);
        return false;
    }
    if (verb->before && verb->before(w) != QCC_OK)
        return false;
    if (served != SIZE_MAX)
        host_refuse(&w->host, served, true);
    const qcc_status status = verb->run(w);
    *failed = w->host.refused != 0;
    host_refuse(&w->host, 0, true);
    const size_t before = w->host.requests;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        questions[i](w);
    for (size_t i = 0; i < MOST_CLOSING && orders[order][i]; i++)
        orders[order][i](w);
    const bool back = world_close(w);
    const size_t asked = w->host.requests - before;
    if (asked || !back || (status != QCC_OK && status != QCC_NO_MEMORY))
        printf("%s, %s, %zu requests served, order %zu: status %d, asked %zu times, %zu blocks left, %zu broken: %s\n",
               w->file ? w->file : "text", verb->name, served, order, (int)status, asked, w->host.blocks,
               w->host.broken, w->host.text);
    return !asked && back && (status == QCC_OK || status == QCC_NO_MEMORY);
}

/* Every call, done; and ended after 0, 1, 2, 4, 7, 11 ... requests. */
static int sweep(World *w, size_t *trials)
{
    int bad = 0;
    for (size_t v = 0; v < world_n_verbs; v++) {
        bool failed = true;
        bad += !trial(w, &world_verbs[v], SIZE_MAX, v % N_ORDERS, &failed);
        ++*trials;
        for (size_t n = 0, step = 1, k = 0; failed || !k; n += step, step += n / 4, k++, ++*trials)
            bad += !trial(w, &world_verbs[v], n, (v + k) % N_ORDERS, &failed);
    }
    return bad;
}

int main(int argc, char **argv)
{
    static World w;
    size_t trials = 0;
    if (argc < 4)
        return 2;
    int bad = forgotten(argv[1]);
    w.folder = argv[2];
    w.options = WORLD_TEXT_OPTIONS " --amp fp16";
    bad += sweep(&w, &trials);
    w.file = argv[3];
    w.options = "--optimizer sgd:lr=1e-2";
    bad += sweep(&w, &trials);
    printf("%zu trials, %d bad\n", trials, bad);
    return bad || trials < 200;
}
