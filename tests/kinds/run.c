/* Every verb over every kind of value (kind.h).  A verb does what it is for, or says once what it cannot do, in words
 * that name the value and its type; what it says of a tensor of f32 as well has nothing to do with the kind.
 *
 * kinds [--all] [--show] [VERB]: --all takes every element type in every holder, where otherwise a few stand for the
 * rest; --show prints what each answered. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kinds/host.h"

enum { ROOM = 20000, FLOAT = 1 };

/* Command lines: MODEL is the model, PLAIN one of f32 in the same place, VALUE a value for odd_v, A an array f32[2,3],
 * OUT a file that may be written. */
static const char *const verbs[] = {
    "check MODEL",
    "check MODEL --const odd_v=VALUE",
    "check --suite suite",
    "explain MODEL",
    "explain MODEL --node odd",
    "explain MODEL --loss mse:h",
    "explain MODEL --plan",
    "run MODEL --input a=A",
    "run MODEL --input a=A --input odd_v=VALUE --input odd_x=VALUE",
    "run MODEL --input a=A --input odd_v=A",
    "run MODEL --input a=A --input odd_v=VALUE --output odd_o=OUT",
    "run MODEL --input a=A --input odd_v=VALUE --expect odd_o=VALUE",
    "diff MODEL MODEL",
    "diff MODEL PLAIN",
    "diff PLAIN MODEL",
    "diff MODEL MODEL --input a=A --input odd_v=VALUE",
    "export MODEL -o OUT",
    "export MODEL --dtype fp16 -o OUT",
    "export MODEL --dtype bf16 --keep-io * -o OUT",
    "export MODEL -o OUT --verify a=A",
    "MODEL --emit ir",
    "MODEL --emit ir -o OUT",
    "MODEL --emit onnx",
    "MODEL --emit json",
    "MODEL --emit dot",
    "MODEL --emit html",
    "MODEL --emit plan",
    "MODEL --emit program",
    "MODEL --emit program --loss mse:h",
    "MODEL --emit onnx-step --loss mse:h",
    "MODEL --emit ir --batch 6",
    "MODEL --emit ir --batch 1",
    "MODEL --emit ir --shape odd_v:4x3",
    "MODEL --emit ir --const odd_v=VALUE",
    "MODEL --emit ir --const odd_v=A",
    "MODEL --emit ir --opset 9",
    "MODEL -o OUT",
    "MODEL --loss mse:h -o OUT",
    "MODEL --loss mse:h --amp bf16 -o OUT",
    "MODEL --loss mse:h --batch 4 -o OUT",
    "MODEL --loss mse:odd_o -o OUT",
    "MODEL --loss cross_entropy:odd_o -o OUT",
    "MODEL --loss output:odd_o -o OUT",
    "MODEL --loss mse:h --train odd -o OUT",
    "train MODEL --loss mse:h --data a=A --target A --steps 1 --no-save --progress none",
    "train MODEL --loss mse:h --data a=A --data odd_v=A --target A --steps 1 --no-save --progress none",
    "train MODEL --loss mse:h --data a=A --fill odd_v=1 --target A --steps 1 --no-save --progress none",
    "train MODEL --loss mse:h --data a=A --fill odd_v=1 --target A --steps 2 --checkpoint CKPT --progress none",
    "eval MODEL --loss mse:h --data a=A --target A --progress none",
    "eval MODEL --loss mse:h --data a=A --fill odd_v=1 --target A --progress none",
};

enum { TRIED = COUNT(verbs) + HOST_CALLS };

/* Whether a line has a meaning for models of a role: what it names is there. */
static bool applies(const char *verb, Role r)
{
    const bool unnamed = r == ROLE_PASSED || r == ROLE_HELD || r == ROLE_ONLY || r == ROLE_IDLE || r == ROLE_UNREAD;
    const bool others = strstr(verb, ":h") || strstr(verb, "a=A") || strstr(verb, "MODEL -o") == verb;
    if (r == ROLE_MADE && strstr(verb, "--expect"))
        return false;
    return !(r == ROLE_ONLY && others) && !(unnamed && strstr(verb, "odd_o"));
}

typedef struct Answer {
    int status, errors;
    char text[ROOM];
    char out[ROOM];
} Answer;

typedef struct Kinds {
    char folder[64];
    bool show, all;
    const char *only;
    int cases, failed;
} Kinds;

static void hear(void *user, const qcc_message *m)
{
    Answer *a = user;
    const size_t n = strlen(a->text);
    a->errors += m->severity == QCC_ERROR;
    if (m->severity == QCC_ERROR)
        snprintf(a->text + n, sizeof a->text - n, "%s", m->text);
}

static qcc_status count(void *user, const void *bytes, size_t n)
{
    Answer *a = user;
    const size_t used = strlen(a->out);
    snprintf(a->out + used, sizeof a->out - used, "%.*s", (int)(n < ROOM ? n : ROOM), (const char *)bytes);
    return QCC_OK;
}

static qcc_context *context(Answer *a)
{
    const qcc_context_options o = { .size = sizeof o, .report = hear, .user = a, .threads = 1 };
    qcc_context *cx = NULL;
    *a = (Answer){ 0 };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

static void write_file(const char *path, Bytes b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
    assert_int_equal(fclose(f), 0);
    free(b.p);
}

static void command(const char *line, Answer *a)
{
    static const char *const stands[][2] = {
        { "MODEL", "model.onnx" }, { "PLAIN", "plain.onnx" }, { "OUT", "out.onnx" }, { "CKPT", "out.ckpt" }
    };
    char words[400], *at = words;
    const char *argv[32] = { "qcc" };
    int n = 1;
    size_t used = 0;
    for (const char *p = line; *p;) {
        static const char *const inside[][2] = { { "=VALUE", "=v.pb" }, { "=A", "=a.npy" }, { "=OUT", "=out.npy" } };
        const size_t len = strcspn(p, " ");
        char word[100];
        snprintf(word, sizeof word, "%.*s", (int)len, p);
        p += len + (p[len] == ' ');
        for (size_t i = 0; i < COUNT(stands); i++)
            if (strcmp(word, stands[i][0]) == 0)
                snprintf(word, sizeof word, "%s", stands[i][1]);
        if (strcmp(word, "A") == 0)
            snprintf(word, sizeof word, "a.npy");
        for (size_t i = 0; i < COUNT(inside); i++) {
            char *eq = strchr(word, '=');
            if (eq && strcmp(eq, inside[i][0]) == 0)
                snprintf(eq, sizeof word - (size_t)(eq - word), "%s", inside[i][1]);
        }
        argv[n++] = at;
        used = strlen(word) + 1;
        memcpy(at, word, used);
        at += used;
    }
    qcc_context *cx = context(a);
    a->status = (int)qcc_command(cx, n, argv, &(qcc_sink){ .write = count, .user = a });
    qcc_close(cx);
}

/* What f32 in this place answers as well has nothing to do with the kind. */
static bool same_as_plain(const Answer *a, const Answer *plain)
{
    return a->status == plain->status && strcmp(a->text, plain->text) == 0 &&
           (a->errors || strcmp(a->out, plain->out) == 0);
}

/* A type by the word of its element, of what holds it, or of those that nothing here computes with. */
static bool names_type(Kind k, const char *text)
{
    static const char *const holders[N_HOLDERS] = {
        [HOLD_SPARSE] = "sparse tensor",  [HOLD_SEQ] = "seq", [HOLD_SEQ_SEQ] = "seq", [HOLD_OPTIONAL] = "optional",
        [HOLD_OPTIONAL_SEQ] = "optional", [HOLD_MAP] = "map", [HOLD_SEQ_MAP] = "map", [HOLD_OPAQUE] = "opaque",
    };
    char number[40];
    snprintf(number, sizeof number, "element type %d", k.element);
    return strstr(text, element_name(k.element)) || strstr(text, number) || strstr(text, "opaque") ||
           (holders[k.holder] && strstr(text, holders[k.holder]));
}

static const char *wrong(Kind k, const Answer *a, const Answer *plain)
{
    const bool suite = a->status == QCC_MISMATCH && a->out[0]; /* it tells of its models on the output */
    if (a->status == QCC_OK || suite)
        return a->errors ? "an error was said, and the status says otherwise" : NULL;
    if (a->status > QCC_UNSUPPORTED || a->status < 0)
        return "a status that is none of these";
    if (!a->errors)
        return "failed without a word";
    if (a->errors > 1)
        return "more than one error";
    if (same_as_plain(a, plain))
        return NULL;
    if (k.element == FLOAT && k.holder <= HOLD_SYMBOLIC)
        return NULL; /* what is said there is of its shape, or of other things */
    if (!strstr(a->text, "odd_"))
        return "the value is not named";
    if ((k.element == FLOAT && strstr(a->text, "no form with")) || strstr(a->text, "is missing") ||
        strstr(a->text, "no value named") || strstr(a->text, "given is string") || strstr(a->text, "samples") ||
        strstr(a->text, "cannot guess a loss"))
        return NULL; /* of that, of what a host gave or of how many samples, and not of its type */
    return names_type(k, a->text) ? NULL : "the type is not named";
}

static void judge(Kinds *s, Kind k, const char *verb, const Answer *a, const Answer *plain)
{
    const char *bad = wrong(k, a, plain);
    s->cases++;
    s->failed += bad != NULL;
    if (bad || s->show)
        printf("%s%s %s %s | %s | %s | %s\n    %s%s", bad ? "FAILED " : "", role_name(k.role), holder_name(k.holder),
               element_name(k.element), verb, qcc_status_name((qcc_status)a->status), bad ? bad : "", a->text,
               a->text[0] ? "" : "\n");
}

static void clear(void)
{
    unlink("out.onnx");
    unlink("out.npy");
    unlink("out.onnx.data");
    if (access("out.ckpt", F_OK) == 0)
        (void)!system("rm -rf out.ckpt");
}

static void prepare(Kind k, const char *path)
{
    mkdir("suite", 0700);
    mkdir("suite/test_one", 0700);
    mkdir("suite/test_one/test_data_set_0", 0700);
    write_file(path, kind_model(k));
    write_file("v.pb", kind_value(k));
    write_file("suite/test_one/model.onnx", kind_model(k));
}

/* The i-th thing that is done with a model: a verb, or a call of a host. */
static const char *try_one(Kind k, size_t i, Answer *a)
{
    if (i < COUNT(verbs)) {
        command(verbs[i], a);
        clear();
        return verbs[i];
    }
    qcc_context *cx = context(a);
    a->status = host_call(cx, k, i - COUNT(verbs));
    return host_calls[i - COUNT(verbs)];
}

static bool is_tried(const Kinds *s, Kind k, size_t i)
{
    const char *name = i < COUNT(verbs) ? verbs[i] : host_calls[i - COUNT(verbs)];
    const bool any = i < COUNT(verbs) ? applies(name, k.role) : k.role != ROLE_ONLY;
    return any && (!s->only || strstr(name, s->only));
}

static void one_kind(Kinds *s, Kind k, const Answer *plain)
{
    static Answer a;
    prepare(k, "model.onnx");
    for (size_t i = 0; i < TRIED; i++)
        if (is_tried(s, k, i))
            judge(s, k, try_one(k, i, &a), &a, &plain[i]);
}

/* What a tensor of f32 in this place answers. */
static void plain_kind(Kinds *s, Role r, Answer *plain)
{
    const Kind k = { FLOAT, HOLD_TENSOR, r == ROLE_MADE ? ROLE_INPUT : r };
    prepare(k, "model.onnx");
    write_file("plain.onnx", kind_model(k));
    for (size_t i = 0; i < TRIED; i++) {
        if (!is_tried(s, k, i))
            continue;
        const char *name = try_one(k, i, &plain[i]);
        if (plain[i].status > QCC_UNSUPPORTED || (plain[i].status && !plain[i].errors && !plain[i].out[0])) {
            printf("FAILED %s f32 | %s | %d\n    %s", role_name(r), name, plain[i].status, plain[i].text);
            s->failed++;
        }
    }
}

static bool stands_for_others(Kind k)
{
    static const int few[] = { 1, 7, 8, 9, 14, 17, 22 };
    if (k.holder == HOLD_TENSOR)
        return true;
    for (size_t i = 0; i < COUNT(few); i++)
        if (few[i] == k.element && (i == 2 || k.holder == HOLD_SCALAR || k.holder == HOLD_SEQ || i == 0))
            return true;
    return false;
}

static void write_array(void)
{
    static const float values[6] = { 1, 0, 1, 0, 1, 1 };
    Bytes b = { 0 };
    char head[128];
    snprintf(head, sizeof head, "%-117s", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    put(&b, "\x93NUMPY\x01\0\x76\0", 10);
    put(&b, head, 117);
    put(&b, "\n", 1);
    put(&b, values, sizeof values);
    write_file("a.npy", b);
}

int main(int argc, char **argv)
{
    static Answer plain[TRIED];
    Kinds s = { 0 };
    snprintf(s.folder, sizeof s.folder, "%s/qcc.kinds.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--all") == 0)
            s.all = true;
        else if (strcmp(argv[i], "--show") == 0)
            s.show = true;
        else
            s.only = argv[i];
    if (!mkdtemp(s.folder) || chdir(s.folder) != 0)
        return 2;
    write_array();
    for (int r = 0; r < N_ROLES; r++) {
        plain_kind(&s, (Role)r, plain);
        for (int h = 0; h < N_HOLDERS; h++)
            for (int e = 1; e <= ELEMENTS; e++) {
                const Kind k = { e, (Holder)h, (Role)r };
                if (kind_exists(k) && (s.all || stands_for_others(k)))
                    one_kind(&s, k, plain);
            }
    }
    printf("%d cases, %d failed\n", s.cases, s.failed);
    if (chdir("/") != 0)
        return 2;
    char line[100];
    snprintf(line, sizeof line, "rm -rf %s", s.folder);
    (void)!system(line);
    return s.failed || !s.cases;
}
