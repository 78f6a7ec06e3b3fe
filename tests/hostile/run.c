/* Runs the hostile corpus: run [--large] [CLASS] */
#include "hostile/corpus.h"

#include <dirent.h>
#include <unistd.h>

#include "support/pace.h"

/* clang-format off */
static const struct { int number; const char *title; } classes[] = {
    {  1, "empty, one byte, cut off anywhere" },     {  2, "varints and lengths" },
    {  3, "groups, field 0, reserved wire types" },  {  4, "nesting, every cycle of messages" },
    {  5, "millions of empty messages" },            {  6, "one field, again and again" },
    {  7, "one of, with several arms" },             {  8, "wire types that the schema has not" },
    {  9, "packed and not" },                        { 10, "bytes before and behind" },
    { 11, "NUL in names" },                          { 12, "UTF-8 and what looks like it" },
    { 13, "names that mean something elsewhere" },   { 14, "duplicate, empty and shadowing names" },
    { 15, "unknown operators" },                     { 16, "cycles, use before definition" },
    { 17, "recursive functions" },                   { 18, "functions that multiply" },
    { 19, "long chains, wide fans, many paths" },    { 20, "If, Loop and Scan" },
    { 21, "opsets" },                                { 22, "inputs and outputs that are odd" },
    { 23, "dimensions" },                            { 24, "payloads that do not fit" },
    { 25, "raw data" },                              { 26, "sparse tensors" },
    { 27, "numbers that are none" },                 { 28, "declared types that lie" },
    { 29, "attributes out of range" },               { 30, "windows" },
    { 31, "shapes out of values" },                  { 32, "integer arithmetic" },
    { 35, "paths of external data" },                { 36, "files that are swapped" },
    { 37, "offsets and lengths" },                   { 38, "files that change" },
    { 39, "reads that fail" },                       { 40, "names in generated text" },
};
/* clang-format on */

/* Ends a step of a case: what is bounded is the longest one, since each is a verb that a user may call. */
static void lap(Corpus *c)
{
    const double now = cpu_seconds();
    if (now - c->lap > c->longest)
        c->longest = now - c->lap;
    c->lap = now;
}

static double work_again(void *seconds)
{
    return work_for(*(const double *)seconds);
}

/* The bound itself: what needs half of it passes, and what needs four times as much does not, unless the processor is given
 * to others just when it is asked how busy it is. */
static void judge_bound(Corpus *c)
{
    enum { TRIES = 5 };
    double enough = 0.02, half = enough / 2, more = 4 * enough, bound;
    bool caught = false;
    c->class = "the bound";
    corpus_judge(c, "half", !takes_longer(work_for(half), enough, work_again, &half, &bound), "half of it is too much");
    for (int i = 0; i < TRIES && !caught; i++)
        caught = takes_longer(work_for(more), enough, work_again, &more, &bound);
    corpus_judge(c, "four", caught, "four times as much passes");
}

/* ---- contexts ---- */

static void *counted_alloc(void *user, size_t size)
{
    Corpus *c = user;
    void *block;
    if (posix_memalign(&block, 64, size) != 0)
        return NULL;
    c->blocks++;
    c->bytes += (int64_t)size;
    return block;
}

static void counted_release(void *user, void *block, size_t size)
{
    Corpus *c = user;
    if (!block)
        return;
    c->blocks--;
    c->bytes -= (int64_t)size;
    free(block);
}

static void hear(void *user, const qcc_message *m)
{
    Corpus *c = user;
    const size_t n = strlen(c->said);
    snprintf(c->said + n, sizeof c->said - n, "%s", m->text);
}

qcc_context *corpus_open(Corpus *c)
{
    const qcc_context_options o = { .size = sizeof o,
                                    .report = hear,
                                    .user = c,
                                    .alloc = counted_alloc,
                                    .release = counted_release,
                                    .threads = 1,
                                    .memory = UINT64_C(3) << 30 };
    qcc_context *cx;
    c->said[0] = '\0';
    c->blocks = c->bytes = 0;
    if (qcc_open(&o, &cx) != QCC_OK)
        abort();
    return cx;
}

bool corpus_close(Corpus *c, qcc_context *cx)
{
    qcc_close(cx);
    return c->blocks == 0 && c->bytes == 0;
}

/* ---- one model ---- */

typedef struct Output {
    Bytes bytes;
    bool clean; /* no control characters */
} Output;

static qcc_status keep(void *user, const void *bytes, size_t n)
{
    Output *o = user;
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && p[i] != '\n') || p[i] == 0x7f)
            o->clean = false;
    put(&o->bytes, bytes, n);
    return QCC_OK;
}

/* Its text reads back as what prints the same; nothing in any text moves the cursor of whoever looks at it. */
static qcc_status write_and_read(Corpus *c, qcc_context *cx, qcc_model *m, const char **bad)
{
    static const char *const others[] = { "json", "dot", "html" };
    Output once = { .clean = true }, twice = { .clean = true }, other = { .clean = true };
    qcc_model *again = NULL;
    qcc_status status = qcc_emit(m, "ir", NULL, &(qcc_sink){ .write = keep, .user = &once });
    const bool whole = once.bytes.n < 1 << 20;
    if (status == QCC_OK && whole) {
        const qcc_source text = { .bytes = once.bytes.p, .size = once.bytes.n, .name = "case.qir" };
        status = qcc_read(cx, &text, NULL, &again);
        if (status != QCC_OK)
            *bad = "its text is not read back";
    }
    if (status == QCC_OK && whole) {
        status = qcc_emit(again, "ir", NULL, &(qcc_sink){ .write = keep, .user = &twice });
        if (twice.bytes.n != once.bytes.n || memcmp(twice.bytes.p, once.bytes.p, once.bytes.n) != 0)
            *bad = "its text prints as another";
    }
    for (size_t i = 0; i < COUNT(others) && status == QCC_OK && whole; i++) {
        const size_t said = strlen(c->said);
        const qcc_status got = qcc_emit(m, others[i], NULL, &(qcc_sink){ .write = keep, .user = &other });
        if (got == QCC_USAGE) /* a form that is not built */
            c->said[said] = '\0';
        else if (got != QCC_OK)
            *bad = "a form of it is refused";
    }
    if (!once.clean || !other.clean)
        *bad = "control characters in its text";
    qcc_model_free(again);
    free(once.bytes.p);
    free(twice.bytes.p);
    free(other.bytes.p);
    return status;
}

static int element_bits(qcc_dtype t)
{
    static const int bits[] = { 8, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 4, 8, 8, 8, 8, 8, 16, 16, 32, 64 };
    return t < QCC_STRING ? bits[t] : 0;
}

/* Zeros of the declared type, unknown dimensions 2; false for what is no tensor or is too large to be made here. */
static bool zeros(const qcc_value_info *v, qcc_tensor *t)
{
    size_t n = 1;
    *t = v->shape;
    if (v->shape.rank < 0 || !element_bits(v->shape.dtype))
        return false;
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = t->dims[i] < 0 ? 2 : t->dims[i];
        if (t->dims[i] && n > (size_t)(1 << 26) / (size_t)t->dims[i])
            return false;
        n *= (size_t)t->dims[i];
    }
    t->bytes = (n * (size_t)element_bits(t->dtype) + 7) / 8;
    t->data = calloc(t->bytes + 1, 1);
    return t->data;
}

static qcc_status run_on_zeros(qcc_model *m)
{
    const size_t n_in = qcc_n_inputs(m), n_out = qcc_n_outputs(m);
    qcc_tensor *in = calloc(n_in + 1, sizeof *in), *out = calloc(n_out + 1, sizeof *out);
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    bool made = true;
    for (size_t i = 0; i < n_in && made; i++)
        made = qcc_input(m, i, &v) == QCC_OK && zeros(&v, &in[i]);
    for (size_t i = 0; i < n_out; i++)
        out[i].size = sizeof out[i];
    const qcc_status status = made ? qcc_run_model(m, in, n_in, out, n_out) : QCC_OK;
    for (size_t i = 0; i < n_in; i++)
        free(in[i].data);
    free(in);
    free(out);
    return status;
}

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

static qcc_status check_file(qcc_context *cx, const char *path)
{
    return qcc_command(cx, 3, (const char *const[]){ "qcc", "check", path }, &(qcc_sink){ .write = drop });
}

static qcc_status everything(Corpus *c, qcc_context *cx, const qcc_source *source, const char *path, const char **bad)
{
    qcc_model *m = NULL;
    qcc_status status = path ? check_file(cx, path) : QCC_OK;
    lap(c);
    if (status == QCC_OK)
        status = qcc_read(cx, source, NULL, &m);
    lap(c);
    if (status == QCC_OK)
        status = write_and_read(c, cx, m, bad);
    lap(c);
    if (status == QCC_OK)
        status = run_on_zeros(m);
    qcc_model_free(m);
    lap(c);
    return status;
}

/* ---- judging ---- */

void corpus_judge(Corpus *c, const char *name, bool good, const char *what)
{
    c->failed += !good;
    if (!good)
        printf("FAILED %s %s: %s\n", c->class, name, what);
}

static void judge(Corpus *c, const char *name, int want, const char *says, const char *file, int got)
{
    char what[22000];
    const char *colon = strstr(c->said, ": ");
    bool good = got == want;
    if (got != QCC_OK)
        good = good && colon && strncmp(c->said, file, strlen(file)) == 0;
    if (says)
        good = good && strstr(c->said, says);
    snprintf(what, sizeof what, "wanted %s%s%s, got %s\n    %s", qcc_status_name((qcc_status)want), says ? ": " : "",
             says ? says : "", qcc_status_name((qcc_status)got), c->said[0] ? c->said : "nothing was said\n");
    corpus_judge(c, name, good, what);
    if (good && getenv("QCC_CORPUS_SHOW"))
        printf("%s\t%s\t%d\t%s%s", c->class, name, got, c->said[0] ? strstr(c->said, "case.onnx") : "\n", "");
}

typedef struct Case {
    Corpus *c;
    const qcc_source *source;
    const char *path;
    const char *bad;
    qcc_status got;
    bool left; /* memory */
} Case;

static double time_case(void *user)
{
    Case *k = user;
    k->c->longest = 0;
    k->c->lap = cpu_seconds();
    k->bad = NULL;
    qcc_context *cx = corpus_open(k->c);
    k->got = everything(k->c, cx, k->source, k->path, &k->bad);
    k->left = !corpus_close(k->c, cx);
    return k->c->longest;
}

static void run_case(Corpus *c, const char *name, int want, const char *says, const qcc_source *source,
                     const char *path, size_t n)
{
    Case k = { .c = c, .source = source, .path = path };
    const double enough = (1 + (double)n / 1e7) * slowness();
    const double took = time_case(&k);
    double bound;
    c->cases[atoi(c->class + 1)]++;
    judge(c, name, want, says, path ? path : source->name, (int)k.got);
    if (k.bad)
        corpus_judge(c, name, false, k.bad);
    if (k.left)
        corpus_judge(c, name, false, "memory is left");
    if (took > enough && takes_longer(took, enough, time_case, &k, &bound)) {
        snprintf(c->said, sizeof c->said, "a verb took %.2f s, where %.2f s are enough", c->longest, bound);
        corpus_judge(c, name, false, c->said);
    }
}

void corpus_write(Corpus *c, const char *name, const void *bytes, size_t n, char path[4096])
{
    snprintf(path, 4096, "%s/%s", c->folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

void corpus_bytes(Corpus *c, const char *name, int want, const char *says, Bytes bytes)
{
    char path[4096];
    corpus_write(c, "case.onnx", bytes.n ? (const void *)bytes.p : "", bytes.n, path);
    const qcc_source source = { .bytes = bytes.n ? (const void *)bytes.p : "", .size = bytes.n, .name = path };
    run_case(c, name, want, says, &source, path, bytes.n);
    free(bytes.p);
    unlink(path);
}

void corpus_file(Corpus *c, const char *name, int want, const char *says, const char *path)
{
    const qcc_source source = qcc_file(path);
    run_case(c, name, want, says, &source, path, 0);
}

void corpus_sketches(Corpus *c, const SketchCase *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        corpus_bytes(c, cases[i].name, cases[i].want, cases[i].says, sketch_model(cases[i].text));
}

bool corpus_class(Corpus *c, int number)
{
    static const char names[][4] = { "M01", "M02", "M03", "M04", "M05", "M06", "M07", "M08", "M09", "M10",
                                     "M11", "M12", "M13", "M14", "M15", "M16", "M17", "M18", "M19", "M20",
                                     "M21", "M22", "M23", "M24", "M25", "M26", "M27", "M28", "M29", "M30",
                                     "M31", "M32", "M33", "M34", "M35", "M36", "M37", "M38", "M39", "M40" };
    c->class = names[number - 1];
    return !c->filter || strcmp(c->filter, c->class) == 0;
}

static int tell(const Corpus *c)
{
    int all = 0, failed = c->failed;
    for (size_t i = 0; i < COUNT(classes); i++) {
        const int n = c->cases[classes[i].number];
        all += n;
        if (n)
            printf("M%02d %s: %d cases\n", classes[i].number, classes[i].title, n);
        if (!n && !c->filter && !c->large) {
            printf("M%02d %s: NO CASES\n", classes[i].number, classes[i].title);
            failed++;
        }
    }
    printf("%d cases, %d failed\n", all, failed);
    return failed || !all;
}

int main(int argc, char **argv)
{
    Corpus c = { 0 };
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--large") == 0)
            c.large = true;
        else
            c.filter = argv[i];
    }
    snprintf(c.folder, sizeof c.folder, "/tmp/qcc.hostile.XXXXXX");
    if (!mkdtemp(c.folder))
        return 2;
    judge_bound(&c);
    wire_classes(&c);
    string_classes(&c);
    graph_classes(&c);
    tensor_classes(&c);
    attribute_classes(&c);
    value_classes(&c);
    file_classes(&c);
    if (rmdir(c.folder) != 0) {
        perror(c.folder);
        return 2;
    }
    return tell(&c);
}
