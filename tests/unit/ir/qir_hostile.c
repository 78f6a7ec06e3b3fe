/* Texts that mean harm, and graphs that are merely large: an error or a graph, never a crash, on a small stack. */
#include "support/language.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "ir/build.h"
#include "ir/verify.h"
#include "unit/check.h"

enum { SMALL_STACK = 256 * 1024 };

static void repeat(Text *t, const char *what, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        text_add(t, what);
}

/* Parses head, n times middle, n times tail; expects a message that says `says` (null: a graph). */
static void check_repeated(const char *head, const char *middle, int64_t n, const char *tail, const char *says)
{
    Language l;
    Text t;
    language_open(&l);
    text_open(&t, &l.arena);
    text_add(&t, head);
    repeat(&t, middle, n);
    repeat(&t, tail, n);
    const Module *m = language_parse(&l, text_get(&t), NULL);
    if (!says)
        check_that(m, "%s", text_get(&l.messages));
    else
        check_that(!m && strstr(text_get(&l.messages), says), "%s", m ? "accepted" : text_get(&l.messages));
    check_that(l.n_list == (says != NULL), "%zu messages", l.n_list);
    language_close(&l);
}

static void nesting(void *unused)
{
    (void)unused;
    enum { DEEP = 100000 };
    check_repeated("", "{", DEEP, "}", "graph is wanted here");
    check_repeated("graph @f() -> () ", "{", DEEP, "}", "a statement or }");
    check_repeated("graph @f() -> () {\n", "%y: f32[] = both() { () -> ()\n", DEEP, "}\n", "(limit graph_nesting)");
    check_repeated("graph @f(%x: ", "(", DEEP, ")", "(limit type_nesting)");
    check_repeated("graph @f(%x: ", "seq(", DEEP, ")", "(limit type_nesting)");
    check_repeated("graph @f(%x: ", "optional(f32[], ", DEEP, ")", "(limit type_nesting)");
    check_repeated("graph @f() -> () { const %k: f32[1] = ", "[", DEEP, "]", "no row of f32[1] starts here");
    check_repeated("graph @f() -> () { const %k: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] = ", "[", DEEP, "]", "no row of");
    check_repeated("graph @f() -> () { %y: f32[] = every(is=", "[", DEEP, "]", "an integer of 64 bits");
    check_repeated("graph @f(", "(", DEEP, ")", "a value is wanted here");
    check_repeated("", "((((", DEEP, "", "graph is wanted here");
}

static void length(void *unused)
{
    (void)unused;
    enum { LONG = 1000000 };
    check_repeated("", "#", LONG, "\n", "a graph is missing");
    check_repeated("graph @f(%x: f32[", "9", LONG, "", "an integer of 64 bits");
    check_repeated("graph @f() -> () { const %k: f32[] = 0.", "1", LONG, "", "is missing at the end");
    check_repeated("graph @f() -> () { const %k: f32[] = 1e", "9", LONG, "", "is not a value of f32");
    check_repeated("graph @f() -> () { const %k: f32[] = 0x", "f", LONG, "", "is not a value of f32");
    check_repeated("graph @f() -> () { const %k: i64[] = -", "1", LONG, "", "is not a value of i64");
    check_repeated("graph @", "f", LONG, "", "(limit name_bytes)");
    check_repeated("graph @\"", "f", LONG, "", "has no end");
    check_repeated("graph @\"", "\\", LONG, "", "has no end");
    check_repeated("graph @f(%", "1", LONG, "", "in quotes");
    check_repeated("graph @f() -> () { const %k: f33", "3", LONG, "", "(limit op_bytes)");
    check_repeated("graph @f() -> () { const %k: u8[1] = hex\"", "00", LONG, "\"", "takes 1 bytes, not 1000000");
    check_repeated("graph @f() -> () { %y: f32[] = every(is=[1", ",1", LONG, "", "(limit ints)");
    check_repeated("graph @f(%x: (f32[]", ",f32[]", LONG, "", "(limit node_io)");
    check_repeated("graph @f(%x: f32[]) -> (%x", ",%x", LONG, "", "(limit node_io)");
    check_repeated("graph @f(%x: f32[]) -> () { %y: f32[] = every(%x", ",%x", LONG, "", "(limit node_io)");
    check_repeated("graph @f(%x: f32[]) -> () { %y: f32[] = every(", ",", LONG, "", "a value or an attribute");
    check_repeated("graph @f(%x: f32[]) -> () { %y: f32[] = identity(%x)", " ours", LONG, "}", "graph is wanted here");
}

/* One byte of a good text changed, cut off or doubled: an answer, and one message when it is no. */
static void damage(void *unused)
{
    (void)unused;
    static const char good[] = "# c\ngraph @f(%x: f32[2,?], state %s: f32[2] = normal(seed=1)) -> (%y, %s = %\"t\") {\n"
                               "  const %k: f32[2] = [1, 0x7fc00000] !3 ours node=\"a\\n\"\n"
                               "  %y: (f32[], seq(i64[*])) = every(%x, _, i=-1, e=\"deep blue\", is=[1,2], p=u8[1] "
                               "hex\"00\", needed=2)\n"
                               "  %\"t\": f32[2] = both(%s) { (%a: f32[2]) -> (%0)\n %0: f32[2] = identity(%a) } "
                               "side=backward\n}\n";
    static const char bytes[] = "\0\"\\%@{}()[],:=!-_0x9#\n\xff\x80z";
    Language l;
    int accepted = 0;
    char text[sizeof good + 1];
    for (size_t i = 0; i + 1 < sizeof good; i++) {
        for (size_t k = 0; k < sizeof bytes + 1; k++) {
            memcpy(text, good, sizeof good);
            Str s = { text, sizeof good - 1 };
            if (k < sizeof bytes)
                text[i] = bytes[k];
            else
                s.n = i;
            language_open(&l);
            Module *m;
            const Status status = parse_module(&l.ir, &l.arena, s, "test.qir", NULL, &l.source, &m);
            check_that(l.n_list == (status != OK), "%zu messages", l.n_list);
            if (status == OK) {
                const char *once = language_print(&l, m, NULL);
                const Module *again = language_parse(&l, once, NULL);
                check_that(again, "%s", text_get(&l.messages));
                assert_string_equal(language_print(&l, again, NULL), once);
                accepted++;
            }
            language_close(&l);
        }
    }
    assert_true(accepted > 100);
}

static void zero_bytes(void **state)
{
    (void)state;
    static const char in_string[] = "graph @\"a\0b\"() -> () {}", outside[] = "graph \0 @f() -> () {}";
    Language l;
    Module *m;
    language_open(&l);
    assert_int_equal(parse_module(&l.ir, &l.arena, (Str){ in_string, sizeof in_string - 1 }, "t", NULL, NULL, &m),
                     INVALID);
    assert_non_null(strstr(text_get(&l.messages), "the string holds a zero byte"));
    assert_int_equal(parse_module(&l.ir, &l.arena, (Str){ outside, sizeof outside - 1 }, "t", NULL, NULL, &m), INVALID);
    assert_non_null(strstr(text_get(&l.messages), "a stray byte 0x00"));
    language_close(&l);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static Graph *chain(Language *l, int n)
{
    Graph *g = graph_new(&l->ir, &l->arena, "chain");
    const Type *type = type_vector(&l->ir.types, F32, 4);
    Node *v = graph_input(g, "x", type);
    Build b = build_at_end(g);
    for (int i = 0; i < n; i++)
        v = build_node(&b, OP_identity, NULL, 1, &v);
    graph_return(g, 1, &v, NULL);
    return g;
}

static void large_chain(void *unused)
{
    (void)unused;
    enum { NODES = 1000000 };
    Language l;
    language_open(&l);
    Module *m = module_new(&l.ir, &l.arena);
    module_add(m, chain(&l, NODES));
    assert_int_equal(verify_module(m, NULL), OK);
    double at = seconds();
    const char *text = language_print(&l, m, NULL);
    print_message("print %d nodes: %.2f s\n", NODES, seconds() - at);
    at = seconds();
    Module *again = language_parse(&l, text, NULL);
    check_that(again, "%s", text_get(&l.messages));
    print_message("parse: %.2f s\n", seconds() - at);
    at = seconds();
    assert_int_equal(verify_module(again, &l.source), OK);
    print_message("verify: %.2f s\n", seconds() - at);
    assert_string_equal(language_print(&l, again, NULL), text);
    assert_int_equal(graph_count(again->graphs[0]), NODES);
    language_close(&l);
}

typedef struct Errand {
    void (*run)(void *arg);
} Errand;

static void *on_thread(void *arg)
{
    ((Errand *)arg)->run(NULL);
    return NULL;
}

/* cmocka's jumps stay inside of the thread's own calls only when nothing fails: a failure ends the program. */
static void on_small_stack(void (*run)(void *arg))
{
    Errand errand = { run };
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, on_thread, &errand), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}

static void nesting_is_refused_on_a_small_stack(void **state)
{
    (void)state;
    on_small_stack(nesting);
}

static void length_is_bounded(void **state)
{
    (void)state;
    on_small_stack(length);
}

static void damaged_text_is_refused_or_read(void **state)
{
    (void)state;
    damage(NULL);
}

static void a_million_nodes_on_a_small_stack(void **state)
{
    (void)state;
    on_small_stack(large_chain);
}

/* Memory that runs out at any request ends in NO_MEMORY with everything given back. */
static Status parse_and_print(void *arg)
{
    Language *l = arg;
    Memory *memory = &l->memory;
    Arena arena;
    arena_open(&arena, memory);
    diag_open(&l->diag, &arena, NULL, NULL);
    ir_open(&l->ir, &arena, &l->ops, &l->diag);
    Module *m;
    Text out;
    Status status = parse_module(&l->ir, &arena,
                                 str("graph @f(%x: f32[2], state %s: f32[2] = ones) -> (%y) {\n"
                                     "    %y: f32[2] = both(%x) { (%a: f32[2]) -> (%b)\n"
                                     "        %b: f32[2] = identity(%a)\n    }\n"
                                     "    const %k: f64[100] = normal(seed=1)\n}\n"),
                                 "test.qir", NULL, &l->source, &m);
    text_open(&out, &arena);
    if (status == OK)
        status = print_module(&out, m, NULL);
    if (status == OK)
        status = verify_module(m, &l->source);
    arena_close(&arena);
    return status;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    Language l;
    int failures = 0;
    language_open(&l);
    for (uint64_t i = 1;; i++) {
        const uint64_t used = l.memory.used;
        l.memory.fail_at = l.memory.requests + i;
        const Status status = guarded(&l.memory, parse_and_print, &l);
        l.memory.fail_at = 0;
        assert_true(l.memory.used == used);
        if (status == OK)
            break;
        assert_int_equal(status, NO_MEMORY);
        failures++;
    }
    assert_true(failures >= 2);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_is_refused_on_a_small_stack), cmocka_unit_test(length_is_bounded),
        cmocka_unit_test(damaged_text_is_refused_or_read),     cmocka_unit_test(a_million_nodes_on_a_small_stack),
        cmocka_unit_test(memory_may_run_out_anywhere),         cmocka_unit_test(zero_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
