/* Graphs of several streams: what events say of the order of kernels is all that is kept, in whatever order the graph runs
 * the rest; who touches the same bytes without an order is found; and captures that do not end as they began make no graph. */
#include "simcuda/tests/bench.h"

enum { UNMATCHED = 903, UNJOINED = 904, ISOLATION = 905, MERGE = 902, N = 64 };

static const char text[] =
    "extern \"C\" __global__ void put(float *x, float v) { x[threadIdx.x] = v; }\n"
    "extern \"C\" __global__ void add(const float *x, const float *y, float *z) { z[threadIdx.x] = "
    "x[threadIdx.x] + y[threadIdx.x]; }\n";

typedef struct Scene {
    Bench b;
    CudaStream *other;
    CudaEvent *part, *join;
    CudaLoaded *m;
    CudaFunction *put, *add;
    CudaAddress x, y, z;
} Scene;

static void scene_open(Scene *s)
{
    bench_open(&s->b);
    s->m = bench_module(&s->b, text);
    s->put = bench_kernel(&s->b, s->m, "put");
    s->add = bench_kernel(&s->b, s->m, "add");
    s->x = bench_alloc(&s->b, N * sizeof(float));
    s->y = bench_alloc(&s->b, N * sizeof(float));
    s->z = bench_alloc(&s->b, N * sizeof(float));
    assert_int_equal(s->b.cu.stream(&s->other, CUDA_STREAM_APART) | s->b.cu.event(&s->part, CUDA_EVENT_ORDER) |
                         s->b.cu.event(&s->join, CUDA_EVENT_ORDER),
                     CUDA_OK);
}

static void scene_close(Scene *s)
{
    s->b.forget();
    assert_int_equal(s->b.cu.give_back(s->x) | s->b.cu.give_back(s->y) | s->b.cu.give_back(s->z) |
                         s->b.cu.unload(s->m) | s->b.cu.end_event(s->part) | s->b.cu.end_event(s->join) |
                         s->b.cu.end_stream(s->other),
                     CUDA_OK);
    bench_close(&s->b);
}

static void put(Scene *s, CudaAddress to, float v, CudaStream *stream)
{
    assert_int_equal(s->b.cu.launch(s->put, 1, 1, 1, N, 1, 1, 0, stream, (void *[]){ &to, &v }, NULL), CUDA_OK);
}

static void add(Scene *s, CudaStream *stream)
{
    assert_int_equal(s->b.cu.launch(s->add, 1, 1, 1, N, 1, 1, 0, stream, (void *[]){ &s->x, &s->y, &s->z }, NULL),
                     CUDA_OK);
}

/* x in the one stream and y in the other, and their sum in the one behind both; or, not joined before it, beside y. */
static CudaGraphExec *record(Scene *s, bool in_order)
{
    Driver *cu = &s->b.cu;
    CudaGraph *graph;
    CudaGraphExec *made;
    assert_int_equal(cu->capture(s->b.stream, CUDA_CAPTURE_THREAD) | cu->record(s->part, s->b.stream) |
                         cu->stream_waits(s->other, s->part, 0),
                     CUDA_OK);
    put(s, s->x, 1, s->b.stream);
    if (!in_order)
        add(s, s->b.stream);
    put(s, s->y, 2, s->other);
    assert_int_equal(cu->record(s->join, s->other) | cu->stream_waits(s->b.stream, s->join, 0), CUDA_OK);
    if (in_order)
        add(s, s->b.stream);
    assert_int_equal(cu->end_capture(s->b.stream, &graph) | cu->instantiate(&made, graph, 0) | cu->end_graph(graph),
                     CUDA_OK);
    return made;
}

static void join(void **state)
{
    static const char *const orders[] = { "ascending", "descending" };
    float z[N];
    Scene s;
    (void)state;
    scene_open(&s);
    CudaGraphExec *made = record(&s, true);
    for (size_t o = 0; o < COUNT(orders); o++) {
        setenv("QCC_SIM_ORDER", orders[o], 1);
        assert_int_equal(s.b.cu.set(s.z, 0, sizeof z, s.b.stream) | s.b.cu.launch_graph(made, s.b.stream), CUDA_OK);
        bench_read(&s.b, z, s.z, sizeof z);
        assert_true(z[0] == 3 && z[N - 1] == 3);
    }
    unsetenv("QCC_SIM_ORDER");
    assert_int_equal(bench_counts(&s.b).beside, 4); /* x and y, twice */
    assert_string_equal(s.b.report(), "");
    assert_int_equal(s.b.cu.end_made(made), CUDA_OK);
    scene_close(&s);
}

/* Without the order one of the two orders of the graph shows, and where accesses are looked at, both do. */
static void races(void **state)
{
    float z[N];
    Scene s;
    (void)state;
    setenv("QCC_SIM_CHECKS", "off", 1);
    scene_open(&s);
    CudaGraphExec *made = record(&s, false);
    bench_write(&s.b, s.y, (float[N]){ 0 }, sizeof z);
    for (int i = 0, seen = 0; i < 2; i++) { /* every other launch runs the other way round */
        assert_int_equal(s.b.cu.launch_graph(made, s.b.stream), CUDA_OK);
        bench_read(&s.b, z, s.z, sizeof z);
        seen += z[0] == 3;
        bench_write(&s.b, s.y, (float[N]){ 0 }, sizeof z);
        assert_true(i == 0 || seen == 1);
    }
    assert_int_equal(s.b.cu.end_made(made), CUDA_OK);
    scene_close(&s);
    setenv("QCC_SIM_CHECKS", "on", 1);
    scene_open(&s);
    made = record(&s, false);
    bench_write(&s.b, s.y, (float[N]){ 0 }, sizeof z);
    assert_int_equal(s.b.cu.launch_graph(made, s.b.stream), CUDA_OK);
    assert_int_equal(s.b.cu.wait(s.b.stream), 719);
    bench_that(strstr(s.b.report(), "that the graph lets run beside it") != NULL, "\"%s\"\n", s.b.report());
    s.b.forget();
    assert_int_equal(s.b.cu.end_made(made), CUDA_OK);
    scene_close(&s);
    unsetenv("QCC_SIM_CHECKS");
}

static void captures_that_make_no_graph(void **state)
{
    CudaGraph *graph;
    Scene s;
    (void)state;
    scene_open(&s);
    Driver *cu = &s.b.cu;
    /* what the other stream did is not waited for */
    assert_int_equal(cu->capture(s.b.stream, CUDA_CAPTURE_THREAD) | cu->record(s.part, s.b.stream) |
                         cu->stream_waits(s.other, s.part, 0),
                     CUDA_OK);
    put(&s, s.y, 2, s.other);
    assert_int_equal(cu->end_capture(s.b.stream, &graph), UNJOINED);
    /* it ends in a stream that did not begin it */
    assert_int_equal(cu->capture(s.b.stream, CUDA_CAPTURE_THREAD) | cu->record(s.part, s.b.stream) |
                         cu->stream_waits(s.other, s.part, 0),
                     CUDA_OK);
    assert_int_equal(cu->end_capture(s.other, &graph), UNMATCHED);
    assert_int_equal(cu->end_capture(s.b.stream, &graph), 901);
    /* it waits for what is of no capture, or of another one */
    assert_int_equal(cu->record(s.join, s.other) | cu->capture(s.b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(cu->stream_waits(s.b.stream, s.join, 0), ISOLATION);
    assert_int_equal(cu->end_capture(s.b.stream, &graph), 901);
    assert_int_equal(cu->capture(s.b.stream, CUDA_CAPTURE_THREAD) | cu->capture(s.other, CUDA_CAPTURE_THREAD) |
                         cu->record(s.part, s.b.stream),
                     CUDA_OK);
    assert_int_equal(cu->stream_waits(s.other, s.part, 0), MERGE);
    assert_int_equal(cu->end_capture(s.other, &graph), 901);
    assert_int_equal(cu->end_capture(s.b.stream, &graph) | cu->end_graph(graph), CUDA_OK);
    assert_int_equal(cu->wait(s.other), CUDA_OK);
    scene_close(&s);
}

/* Outside of a capture a stream waits, too. */
static void streams_wait(void **state)
{
    float z[N];
    Scene s;
    (void)state;
    scene_open(&s);
    put(&s, s.x, 1, s.other);
    put(&s, s.y, 2, s.b.stream);
    assert_int_equal(s.b.cu.record(s.join, s.other) | s.b.cu.stream_waits(s.b.stream, s.join, 0), CUDA_OK);
    add(&s, s.b.stream);
    bench_read(&s.b, z, s.z, sizeof z);
    assert_true(z[0] == 3);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(join), cmocka_unit_test(races),
                                        cmocka_unit_test(captures_that_make_no_graph), cmocka_unit_test(streams_wait) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
