/* When things happen on a simulated device: as late as they may, in the order of streams, and in graphs as often as they are
 * launched; and what the driver answers to what cannot be. */
#include "simcuda/tests/bench.h"

enum { BYTES = 64, FORBIDDEN = 900, BROKEN = 901, IMPLICIT = 906, CAPTURED_EVENT = 907, NOT_READY = 600, HANDLE = 400 };

static const char text[] = "extern \"C\" __global__ void add(float *x, float by) { x[threadIdx.x] += by; }\n";

/* A copy reads memory of the host when somebody waits for it, and not before. */
static void copies_are_late(void **state)
{
    Bench b;
    char from[BYTES] = "early", to[BYTES] = "nothing";
    (void)state;
    bench_open(&b);
    CudaAddress at = bench_alloc(&b, BYTES);
    assert_int_equal(b.cu.write(at, from, BYTES, b.stream), CUDA_OK);
    assert_int_equal(b.cu.read(to, at, BYTES, b.stream), CUDA_OK);
    strcpy(from, "late");
    assert_string_equal(to, "nothing");
    assert_int_equal(b.cu.wait(b.stream), CUDA_OK);
    assert_string_equal(to, "late");
    assert_int_equal(b.cu.give_back(at), CUDA_OK);
    bench_close(&b);
}

/* Nobody waited for the stream that writes; streams that are not apart wait for stream 0. */
static void streams_are_apart(void **state)
{
    Bench b;
    CudaStream *other, *blocking;
    unsigned char to[BYTES];
    (void)state;
    bench_open(&b);
    CudaAddress at = bench_alloc(&b, BYTES);
    assert_int_equal(b.cu.stream(&other, CUDA_STREAM_APART) | b.cu.stream(&blocking, 0), CUDA_OK);
    assert_int_equal(b.cu.set(at, 1, BYTES, other), CUDA_OK);
    bench_read(&b, to, at, BYTES);
    assert_int_equal(to[0], 0xff); /* what memory holds at first */
    assert_int_equal(b.cu.wait(other), CUDA_OK);
    bench_read(&b, to, at, BYTES);
    assert_int_equal(to[0], 1);
    assert_int_equal(b.cu.set(at, 2, BYTES, NULL), CUDA_OK);
    assert_int_equal(b.cu.read(to, at, BYTES, blocking) | b.cu.wait(blocking), CUDA_OK);
    assert_int_equal(to[0], 2);
    assert_int_equal(b.cu.give_back(at) | b.cu.end_stream(other) | b.cu.end_stream(blocking), CUDA_OK);
    bench_close(&b);
}

static void events(void **state)
{
    Bench b;
    CudaEvent *first, *second;
    float took = -1;
    (void)state;
    bench_open(&b);
    CudaAddress at = bench_alloc(&b, BYTES);
    assert_int_equal(b.cu.event(&first, CUDA_EVENT_TIMES) | b.cu.event(&second, CUDA_EVENT_TIMES), CUDA_OK);
    assert_int_equal(b.cu.elapsed(&took, first, second), HANDLE); /* never recorded */
    assert_int_equal(b.cu.record(first, b.stream) | b.cu.set(at, 0, BYTES, b.stream) | b.cu.record(second, b.stream),
                     CUDA_OK);
    assert_int_equal(b.cu.elapsed(&took, first, second), NOT_READY);
    assert_int_equal(b.cu.wait_event(second), CUDA_OK);
    assert_int_equal(b.cu.elapsed(&took, first, second), CUDA_OK);
    assert_true(took >= 0);
    assert_int_equal(b.cu.end_event(first) | b.cu.end_event(second) | b.cu.give_back(at), CUDA_OK);
    bench_close(&b);
}

/* What is captured does not run; the graph runs as often as it is launched, with the arguments of the capture. */
static void graphs(void **state)
{
    Bench b;
    CudaGraph *graph;
    CudaGraphExec *made;
    float x[2] = { 1, 2 }, by = 10;
    (void)state;
    bench_open(&b);
    CudaLoaded *m = bench_module(&b, text);
    CudaFunction *add = bench_kernel(&b, m, "add");
    CudaAddress at = bench_alloc(&b, sizeof x);
    bench_write(&b, at, x, sizeof x);
    assert_int_equal(b.cu.capture(b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(b.cu.launch(add, 1, 1, 1, 2, 1, 1, 0, b.stream, (void *[]){ &at, &by }, NULL), CUDA_OK);
    by = 1000;
    assert_int_equal(b.cu.end_capture(b.stream, &graph) | b.cu.instantiate(&made, graph, 0) | b.cu.end_graph(graph),
                     CUDA_OK);
    bench_read(&b, x, at, sizeof x);
    assert_true(x[0] == 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(b.cu.launch_graph(made, b.stream), CUDA_OK);
    bench_read(&b, x, at, sizeof x);
    assert_true(x[0] == 31 && x[1] == 32);
    assert_int_equal(bench_counts(&b).reports, 0);
    assert_int_equal(b.cu.end_made(made), CUDA_OK);
    assert_int_equal(b.cu.launch_graph(made, b.stream), HANDLE);
    assert_non_null(strstr(b.report(), "executable graph that was destroyed"));
    assert_int_equal(b.cu.give_back(at) | b.cu.unload(m), CUDA_OK);
    bench_close(&b);
}

/* A capture that is broken answers so to everything, and makes no graph. */
static void ends_broken(Bench *b, CudaAddress at)
{
    CudaGraph *graph;
    assert_int_equal(b->cu.set(at, 0, 1, b->stream), BROKEN);
    assert_int_equal(b->cu.end_capture(b->stream, &graph), BROKEN);
    assert_null(graph);
}

static void forbidden_while_capturing(void **state)
{
    Bench b;
    CudaAddress at, more;
    CudaStream *blocking;
    CudaGraph *graph;
    CudaEvent *event;
    (void)state;
    bench_open(&b);
    at = bench_alloc(&b, BYTES);
    assert_int_equal(b.cu.event(&event, CUDA_EVENT_TIMES) | b.cu.stream(&blocking, 0), CUDA_OK);
    assert_int_equal(b.cu.capture(NULL, CUDA_CAPTURE_THREAD), FORBIDDEN);
    assert_int_equal(b.cu.capture(b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(b.cu.capture(b.stream, CUDA_CAPTURE_THREAD), CUDA_INVALID);
    assert_int_equal(b.cu.wait(b.stream), FORBIDDEN);
    ends_broken(&b, at);
    assert_int_equal(b.cu.capture(b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(b.cu.alloc(&more, BYTES), FORBIDDEN);
    ends_broken(&b, at);
    assert_int_equal(b.cu.capture(b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(b.cu.record(event, b.stream), CUDA_OK);
    assert_int_equal(b.cu.wait_event(event), CAPTURED_EVENT);
    assert_int_equal(b.cu.end_capture(b.stream, &graph) | b.cu.end_graph(graph), CUDA_OK);
    assert_int_equal(b.cu.capture(blocking, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(b.cu.set(at, 0, 1, NULL), IMPLICIT);
    assert_int_equal(b.cu.end_capture(blocking, &graph) | b.cu.end_graph(graph), CUDA_OK);
    assert_int_equal(b.cu.end_capture(b.stream, &graph), CUDA_INVALID);
    assert_int_equal(b.cu.give_back(at) | b.cu.end_event(event) | b.cu.end_stream(blocking), CUDA_OK);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(copies_are_late), cmocka_unit_test(streams_are_apart),
                                        cmocka_unit_test(events), cmocka_unit_test(graphs),
                                        cmocka_unit_test(forbidden_while_capturing) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
