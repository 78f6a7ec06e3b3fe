/* What it costs to come from a file to the first step, inside one process: wall and processor milliseconds since the
 * process began, and the peak of resident memory so far.
 *
 *     bench_open MODEL OPTIONS [THREADS]    a step
 *     bench_open MODEL model [THREADS]      the model as it is
 *
 * One line a stage: name, wall, processor, peak MiB.  read; of a step compiled, started (every state has its first value),
 * prepared (the first step may launch), stepped, and again; of a model ran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <qcc/qcc.h>

static double began;

static double clock_ms(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void end(const char *stage)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%-10s %10.1f %10.1f %8.1f\n", stage, clock_ms(CLOCK_MONOTONIC) - began, clock_ms(CLOCK_PROCESS_CPUTIME_ID),
           (double)use.ru_maxrss / 1024);
    fflush(stdout);
}

static void check(qcc_status status)
{
    if (status != QCC_OK)
        exit((int)status);
}

static size_t bytes_of(const qcc_tensor *t)
{
    size_t n = t->dtype == QCC_I64 ? 8 : 4;
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

/* Zeros: they are tokens, classes and images alike. */
static void bind_all(const qcc_step *step, qcc_session *session)
{
    for (size_t i = 0; i < qcc_step_n_inputs(step); i++) {
        qcc_value_info info = { .size = sizeof info };
        check(qcc_step_input(step, i, &info));
        qcc_tensor t = info.shape;
        t.bytes = bytes_of(&t);
        t.data = calloc(1, t.bytes);
        check(qcc_bind(session, info.name, &t));
    }
}

static void steps(qcc_model *model, const char *options)
{
    qcc_step *step;
    qcc_session *session;
    check(qcc_compile(model, options, &step));
    end("compiled");
    check(qcc_start(step, NULL, &session));
    end("started");
    bind_all(step, session);
    qcc_request_stop(session); /* it ends before its first launch, when everything is ready */
    if (qcc_run(session, QCC_STEP, NULL) != QCC_INTERRUPTED)
        exit(1);
    end("prepared");
    check(qcc_run(session, QCC_STEP, NULL));
    end("stepped");
    check(qcc_run(session, QCC_STEP, NULL));
    end("again");
}

/* Once, on zeros: every weight was read then. */
static void run_model(qcc_model *model)
{
    const size_t n = qcc_n_inputs(model);
    qcc_tensor *inputs = calloc(n + 1, sizeof *inputs), *outputs = calloc(qcc_n_outputs(model) + 1, sizeof *outputs);
    for (size_t i = 0; i < n; i++) {
        qcc_value_info info = { .size = sizeof info };
        check(qcc_input(model, i, &info));
        inputs[i] = info.shape;
        inputs[i].bytes = bytes_of(&inputs[i]);
        inputs[i].data = calloc(1, inputs[i].bytes);
    }
    for (size_t i = 0; i < qcc_n_outputs(model); i++)
        outputs[i].size = sizeof *outputs;
    check(qcc_run_model(model, inputs, n, outputs, qcc_n_outputs(model)));
    end("ran");
}

int main(int argc, char **argv)
{
    struct timespec t;
    qcc_context *cx;
    qcc_model *model;
    clock_gettime(CLOCK_MONOTONIC, &t);
    began = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    if (argc < 3) {
        fputs("usage: bench_open MODEL OPTIONS|model [THREADS]\n", stderr);
        return 2;
    }
    const qcc_context_options o = { .size = sizeof o,
                                    .report = qcc_report_stderr,
                                    .threads = argc > 3 ? atoi(argv[3]) : 1 };
    const qcc_source source = qcc_file(argv[1]);
    check(qcc_open(&o, &cx));
    check(qcc_read(cx, &source, NULL, &model));
    end("read");
    if (strcmp(argv[2], "model") == 0)
        run_model(model);
    else
        steps(model, argv[2]);
    qcc_close(cx);
    return 0;
}
