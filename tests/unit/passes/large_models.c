/* label: slow */
/* Models of many nodes, whole: read, imported, verified, printed, simplified and printed again, within a bound on
 * memory and on a stack of 256 KiB.  Speed is measured by bench/run, not here. */
#include "onnx_bytes.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontends/onnx/import.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "ops/card/cards.h"
#include "passes/pipelines.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { SMALL_STACK = 256 * 1024, MILLION = 1000000 };

/* A chain of calls of one operand, op[i % 2] at place i. */
typedef struct Chain {
    const char *op[2];
    int n;
    bool dead;     /* the result is the input: nobody reads the end of the chain */
    size_t simple; /* nodes once it is simplified, the input apart */
} Chain;

/* ---- writing ---- */

static Bytes value_info(const char *name)
{
    Bytes dim = { 0 }, shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    put_int(&dim, 1, 4);
    put_message(&shape, 1, dim);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    return info;
}

static const char *value_name(char name[16], int i)
{
    snprintf(name, 16, i < 0 ? "x" : "v%d", i);
    return name;
}

static Bytes chain_model(const Chain *c)
{
    char name[16];
    Bytes graph = { 0 }, opset = { 0 }, model = { 0 }, node = { 0 };
    for (int i = 0; i < c->n; i++) {
        node.n = 0;
        put_text(&node, 1, value_name(name, i - 1));
        put_text(&node, 2, value_name(name, i));
        put_text(&node, 3, value_name(name, i));
        put_text(&node, 4, c->op[i % 2]);
        put_bytes(&graph, 1, node.p, node.n);
    }
    free(node.p);
    put_text(&graph, 2, "chain");
    put_message(&graph, 11, value_info("x"));
    put_message(&graph, 12, value_info(c->dead ? "x" : value_name(name, c->n - 1)));
    put_int(&opset, 2, 17);
    put_int(&model, 1, 8);
    put_message(&model, 8, opset);
    put_message(&model, 7, graph);
    return model;
}

/* ---- the way of a model through the compiler ---- */

typedef struct Work {
    const Chain *chain;
    Bytes model;
    size_t printed[2]; /* bytes of text before and after */
    size_t nodes[2];
} Work;

static Status print_stage(Arena *arena, Module *m, Work *w, int i)
{
    Text text;
    text_open(&text, arena);
    TRY(print_module(&text, m, NULL));
    w->printed[i] = text.n;
    w->nodes[i] = graph_count(m->graphs[0]);
    return OK;
}

static Status through(Fixture *f, Ir *ir, Spine *spine, Work *w)
{
    Module *m;
    TRY(spine_read(spine, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor));
    TRY(onnx_import(ir, &f->arena, spine, NULL, &m));
    TRY(verify_module(m, NULL));
    TRY(print_stage(&f->arena, m, w, 0));
    TRY(pipeline_run_module(pipeline_find("clean"), m, NULL));
    TRY(verify_module(m, NULL));
    return print_stage(&f->arena, m, w, 1);
}

static Status whole_way(Fixture *f, void *arg)
{
    Work *w = arg;
    Ir ir;
    Spine spine = { 0 };
    ir_open(&ir, &f->arena, &ops_table, &f->diag);
    source_memory(&spine.source, &f->memory, "chain.onnx", w->model.p, w->model.n);
    const Status status = through(f, &ir, &spine, w);
    spine_close(&spine);
    return status;
}

/* ---- a small stack ---- */

static void *on_thread(void *arg)
{
    Fixture f;
    const Status status = fixture_run(&f, whole_way, arg);
    if (status != OK)
        print_error("status %d: %s\n", (int)status, f.said);
    return status == OK ? arg : NULL;
}

static void check_on_a_small_stack(const Chain *c)
{
    Work w = { .chain = c, .model = chain_model(c) };
    pthread_attr_t attr;
    pthread_t thread;
    void *passed;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, on_thread, &w), 0);
    assert_int_equal(pthread_join(thread, &passed), 0);
    pthread_attr_destroy(&attr);
    free(w.model.p);
    assert_ptr_equal(passed, &w);
    assert_int_equal(w.nodes[0], c->n);
    assert_int_equal(w.nodes[1], c->simple);
    assert_true(w.printed[0] > (size_t)c->n * 20);
}

static void a_chain_that_stays(void **state)
{
    (void)state;
    check_on_a_small_stack(&(Chain){ { "Tanh", "Sigmoid" }, MILLION, false, MILLION });
}

static void a_chain_that_folds_into_one(void **state)
{
    (void)state;
    check_on_a_small_stack(&(Chain){ { "Relu", "Relu" }, MILLION, false, 1 });
}

static void a_chain_that_vanishes(void **state)
{
    (void)state;
    check_on_a_small_stack(&(Chain){ { "Neg", "Neg" }, MILLION, false, 0 });
    check_on_a_small_stack(&(Chain){ { "Tanh", "Sigmoid" }, MILLION, true, 0 });
}

/* ---- a bound on memory ---- */

/* The peak of resident memory of a process of its own, in kB. */
static long resident(Work *w)
{
    struct rusage use;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        Fixture f;
        _exit((int)fixture_run(&f, whole_way, w));
    }
    assert_true(child > 0);
    assert_int_equal(wait4(child, &status, 0, &use), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), OK);
    return use.ru_maxrss;
}

static void a_hundred_thousand_nodes_take_little_memory(void **state)
{
    static const Chain chain = { { "Tanh", "Sigmoid" }, MILLION / 10, false, 0 };
    Work w = { .chain = &chain };
    (void)state;
    if (SANITIZED)
        skip();
    w.model = chain_model(&chain);
    const long kb = resident(&w);
    free(w.model.p);
    print_message("%d nodes: %ld kB resident\n", chain.n, kb);
    assert_true(kb > 10000); /* it did run */
    assert_true(kb < 300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_thousand_nodes_take_little_memory), /* first: while this process is small */
        cmocka_unit_test(a_chain_that_stays),
        cmocka_unit_test(a_chain_that_folds_into_one),
        cmocka_unit_test(a_chain_that_vanishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
