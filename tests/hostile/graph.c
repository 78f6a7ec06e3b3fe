/* M16 to M22: graphs that are none, or too much of one. */
#include "hostile/corpus.h"

#include <pthread.h>

/* clang-format off */
static const SketchCase cycles[] = {
    { "two nodes in a circle", 3, "nothing before it defines", "in x f32[2]; a = Add(x,b); b = Add(x,a); out b" },
    { "a node that feeds itself", 3, "nothing before it defines", "in x f32[2]; y = Add(x,y); out y" },
    { "used before it is defined", 3, "nothing before it defines", "in x f32[2]; y = Abs(t); t = Neg(x); out y" },
    { "an input that dangles", 3, "nothing before it defines", "in x f32[2]; y = Add(x,nowhere); out y" },
    { "an output that dangles", 3, "nothing defines it", "in x f32[2]; y = Abs(x); out nowhere" },
    { "a circle through a region", 3, "nothing before it defines", "in c bool[]; graph a; z = Abs(y); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "a dangling name in a region", 3, "nothing before it defines", "in c bool[]; graph a; z = Abs(nowhere); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "a dangling output of a region", 3, "nothing defines it", "in c bool[]; graph a; out nowhere; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "a circle in a function", 3, "nothing before it defines", "opset 20; opset local 1; func f a -> b; b = Add(a,c); c = Neg(b); end; in x f32[1]; y = local:f(x); out y" },
    { "a function that reads what is around it", 3, "nothing before it defines", "opset 20; opset local 1; func f a -> b; b = Add(a,x); end; in x f32[1]; y = local:f(x); out y" },
    { "a function without the output it has", 3, "f: nothing in its body defines output 0", "opset 20; opset local 1; func f a -> b; c = Neg(a); end; in x f32[1]; y = local:f(x); out y" },
};

static const SketchCase recursions[] = {
    { "itself", 3, "calls itself", "opset 20; opset local 1; func f a -> b; b = local:f(a); end; in x f32[1]; y = local:f(x); out y" },
    { "each other", 3, "calls itself", "opset 20; opset local 1; func f a -> b; b = local:g(a); end; func g a -> b; b = local:f(a); end; in x f32[1]; y = local:f(x); out y" },
    { "three in a circle", 3, "calls itself", "opset 20; opset local 1; func f a -> b; b = local:g(a); end; func g a -> b; b = local:h(a); end; func h a -> b; b = local:f(a); end; in x f32[1]; y = local:h(x); out y" },
    { "through a branch", 3, "calls itself", "opset 20; opset local 1; graph t; z = local:f(q); out z; end; func f q -> b; c = Cast(q) to=i:9; b = If(c) then_branch=g:t else_branch=g:t; end; in x f32[]; y = local:f(x); out y" },
    { "through a loop", 3, "calls itself", "opset 20; opset local 1; graph t; in i i64[]; in k bool[]; in v f32[]; z = local:f(v); out k; out z; end; func f q -> b; b = Loop(,,q) body=g:t; end; in x f32[]; y = local:f(x); out y" },
    { "itself, never called", 0, NULL, "opset 20; opset local 1; func f a -> b; b = local:f(a); end; in x f32[1]; y = Abs(x); out y" },
};

static const SketchCase control[] = {
    { "If without branches", 3, "_branch is missing", "in c bool[]; y = If(c); out y" },
    { "If with one branch", 3, "else_branch", "in c bool[]; in x f32[1]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a; out y" },
    { "If of a branch that is a number", 3, "attribute then_branch is of type 2, not 5", "in c bool[]; y = If(c) then_branch=i:1 else_branch=i:2; out y" },
    { "If of a number", 3, "if needs one bool to decide, not f32[]", "in c f32[]; in x f32[1]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "If of two conditions", 3, "if needs one bool to decide, not bool[2]", "in c bool[2]; in x f32[1]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "If of no condition", 3, "if needs one bool to decide, not bool[0]", "in c bool[0]; in x f32[1]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "If of branches with different counts", 0, NULL, "in c bool[]; in x f32[1]; graph a; z = Abs(x); out z; end; graph b; z = Abs(x); w = Neg(x); out z; out w; end; y = If(c) then_branch=g:a else_branch=g:b; out y" },
    { "If of branches with different types", 3, "if gives f32[1] or i64[1] as result 0", "in c bool[]; in x f32[1]; graph a; z = Abs(x); out z; end; graph b; w = Cast(x) to=i:7; out w; end; y = If(c) then_branch=g:a else_branch=g:b; out y" },
    { "If of branches with inputs", 3, "if its body takes 1 values and gives 1, it must take 0 and give 1", "in c bool[]; in x f32[1]; graph a; in q f32[1]; z = Abs(q); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "If with more results than branches have", 3, "if its body takes 1 values and gives 1, it must take 1 and give 2", "in c bool[]; in x f32[1]; graph a; z = Abs(x); out z; end; y,w = If(c) then_branch=g:a else_branch=g:a; out w" },
    { "If of empty branches", 3, "if its body takes 0 values and gives 0, it must take 0 and give 1", "in c bool[]; graph a; end; y = If(c) then_branch=g:a else_branch=g:a; out y" },
    { "Loop without a body", 3, "body", "y = Loop(); out y" },
    { "Loop of an empty body", 3, "loop takes 2 or more operands, not 0", "graph a; end; y = Loop() body=g:a; out y" },
    { "Loop of a body with too few inputs", 3, "loop its body takes 1 values and gives 1, it must take 3 and give 2", "in x f32[1]; graph a; in i i64[]; out i; end; y = Loop(,,x) body=g:a; out y" },
    { "Loop of a body with too many inputs", 3, "loop its body takes 4 values and gives 2, it must take 3 and give 2", "in x f32[1]; graph a; in i i64[]; in k bool[]; in p f32[1]; in q f32[1]; out k; out p; end; y = Loop(,,x) body=g:a; out y" },
    { "Loop of a body without results", 3, "loop its body takes 3 values and gives 0, it must take 3 and give 2", "in x f32[1]; graph a; in i i64[]; in k bool[]; in p f32[1]; end; y = Loop(,,x) body=g:a; out y" },
    { "Loop whose condition is a number", 3, "loop its body gives i64[] as condition", "in x f32[1]; init n i64[]=2; graph a; in i i64[]; in k bool[]; in p f32[1]; out i; out p; end; y = Loop(n,,x) body=g:a; out y" },
    { "Loop whose carried value changes its type", 3, "loop its body takes f32[1] and gives i64[1] for the next turn", "in x f32[1]; init n i64[]=2; graph a; in i i64[]; in k bool[]; in p f32[1]; q = Cast(p) to=i:7; out k; out q; end; y = Loop(n,,x) body=g:a; out y" },
    { "Loop of 2^63 - 1 iterations", 3, "loop_iterations", "in x f32[1]; init n i64[]=9223372036854775807; graph a; in i i64[]; in k bool[]; in p f32[1]; q = Abs(p); out k; out q; end; y = Loop(n,,x) body=g:a; out y" },
    { "Loop without an end", 3, "loop_iterations", "in x f32[1]; graph a; in i i64[]; in k bool[]; in p f32[1]; out k; out p; end; y = Loop(,,x) body=g:a; out y" },
    { "Loop of -5 iterations", 0, NULL, "in x f32[1]; init n i64[]=-5; graph a; in i i64[]; in k bool[]; in p f32[1]; out k; out p; end; y = Loop(n,,x) body=g:a; out y" },
    { "Loop of two counts", 3, "loop operand 0 must be one number, not i64[2]", "in x f32[1]; init n i64[2]=1,2; graph a; in i i64[]; in k bool[]; in p f32[1]; out k; out p; end; y = Loop(n,,x) body=g:a; out y" },
    { "Loop whose scanned shapes differ", 3, "loop takes 2 or more operands, not 1", "init n i64[]=3; graph a; in i i64[]; in k bool[]; s = Range(i,i,i); t = Reshape(i,m) ; u = Expand(t,t); out k; out u; end; init m i64[1]=1; y = Loop(n,) body=g:a; out y" },
    { "Scan without a body", 3, "body", "in x f32[2]; y = Scan(x) num_scan_inputs=i:1; out y" },
    { "Scan of no inputs", 3, "Scan: input 0 (initial_state_and_scan_inputs) is missing", "graph a; end; y = Scan() body=g:a num_scan_inputs=i:0; out y" },
    { "Scan of num_scan_inputs 0", 3, "scan num_scan_inputs is 0 of 1 operands", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:0; out y" },
    { "Scan of num_scan_inputs -1", 3, "num_scan_inputs", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:-1; out y" },
    { "Scan of num_scan_inputs 2^62", 3, "num_scan_inputs", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:4611686018427387904; out y" },
    { "Scan of num_scan_inputs 2^32 + 1", 3, "num_scan_inputs", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:4294967297; out y" },
    { "Scan of more inputs than it has", 3, "num_scan_inputs", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:2; out y" },
    { "Scan along axis 9", 3, "scan axis 9 is outside [-1, 1)", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:1 scan_input_axes=is:9; out y" },
    { "Scan along axis INT64_MIN", 3, "scan axis -9223372036854775808 is outside [-1, 1)", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:1 scan_input_axes=is:-9223372036854775808; out y" },
    { "Scan in direction 7", 3, "scan scan_input_directions has a direction 7", "in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:1 scan_input_directions=is:7; out y" },
    { "Scan of a scalar", 3, "scan axis 0 is outside [0, 0)", "in x f32[]; graph a; in p f32[]; out p; end; y = Scan(x) body=g:a num_scan_inputs=i:1; out y" },
    { "Scan of two lengths", 3, "scan operand 1 has 3 slices, those before it 2", "in x f32[2]; in w f32[3]; graph a; in p f32[]; in q f32[]; r = Add(p,q); out r; end; y = Scan(x,w) body=g:a num_scan_inputs=i:2; out y" },
    { "a batched Scan of nothing", 3, "scan axis 0 is outside [0, 0)", "opset 8; in x f32[2]; graph a; in p f32[]; out p; end; y = Scan(,x) body=g:a num_scan_inputs=i:1; out y" },
    { "SequenceMap of unequal lengths", 3, "sequence_map operand 1 has 2 items, operand 0 1", "in x f32[2]; q = SequenceConstruct(x); r = SequenceConstruct(x,x); graph a; in s f32[2]; in t f32[2]; u = Add(s,t); out u; end; m = SequenceMap(q,r) body=g:a; y = SequenceLength(m); out y" },
    { "SequenceMap of a tensor", 3, "sequence_map operand 0 must be a sequence, not f32[2]", "in x f32[2]; graph a; in s f32[2]; u = Abs(s); out u; end; m = SequenceMap(x) body=g:a; y = SequenceLength(m); out y" },
};

static const SketchCase opsets[] = {
    { "0", 3, "version 0", "opset 0; in x f32[2]; y = Abs(x); out y" },
    { "-1", 3, "version -1", "opset -1; in x f32[2]; y = Abs(x); out y" },
    { "10^9", 3, "version 1000000000", "opset 1000000000; in x f32[2]; y = Abs(x); out y" },
    { "INT64_MIN", 3, "version", "opset -9223372036854775808; in x f32[2]; y = Abs(x); out y" },
    { "2^32 + 20", 3, "version", "opset 4294967316; in x f32[2]; y = Abs(x); out y" },
    { "newer than any", 0, "newer", "opset 999; in x f32[2]; y = Abs(x); out y" },
    { "none", 0, NULL, "opset none; in x f32[2]; y = Abs(x) consumed_inputs=is:0; out y" },
    { "one domain twice, the same", 0, NULL, "opset 20; opset 20; in x f32[2]; y = Abs(x); out y" },
    { "one domain twice, differently", 3, "twice", "opset 20; opset 13; in x f32[2]; y = Abs(x); out y" },
    { "its two names, differently", 3, "twice", "opset 20; opset ai.onnx 13; in x f32[2]; y = Abs(x); out y" },
    { "another domain twice, differently", 3, "twice", "opset 20; opset com.example 1; opset com.example 2; in x f32[2]; y = Abs(x); out y" },
    { "another domain alone", 0, NULL, "opset com.example 1; in x f32[2]; y = Abs(x); out y" },
    { "1, with an operator of 24", 4, "Attention has no meaning here", "opset 1; in x f32[1,2,4]; y = Attention(x,x,x) q_num_heads=i:1 kv_num_heads=i:1; out y" },
};

static const SketchCase odd[] = {
    { "no outputs", 0, NULL, "in x f32[2]; y = Abs(x)" },
    { "no nodes", 0, NULL, "in x f32[2]; out x" },
    { "nothing at all", 0, NULL, "" },
    { "an initializer as output", 0, NULL, "init w f32[2]=1,2; out w" },
    { "an initializer that is an input too", 0, NULL, "in x f32[2]; in w f32[2]; init w f32[2]=1,2; y = Add(x,w); out y" },
    { "an initializer that nothing reads", 0, NULL, "in x f32[2]; init w f32[2]=1,2; y = Abs(x); out y" },
    { "an output declared without a type", 0, NULL, "in x f32[2]; y = Abs(x); out y" },
    { "an input of rank 0", 0, NULL, "in x f32[]; y = Abs(x); out y" },
    { "an input of no elements", 0, NULL, "in x f32[0,7]; y = ReduceSum(x); z = Abs(x); out y; out z" },
    { "an output of a region outside of it", 3, "nothing defines it", "in c bool[]; in x f32[2]; graph a; z = Abs(x); out z; end; y = If(c) then_branch=g:a else_branch=g:a; out z" },
};
/* clang-format on */

/* ---- functions that multiply ---- */

/* `depth` functions, each of which calls the next one `width` times. */
static Bytes multiplying(int depth, int width)
{
    Bytes text = { 0 };
    char line[200];
#define SAY(...) put(&text, line, (size_t)snprintf(line, sizeof line, __VA_ARGS__))
    SAY("opset 20; opset local 1; in x f32[1];");
    for (int i = 0; i < depth; i++) {
        SAY("func f%d v0 -> v%d;", i, width);
        for (int k = 0; k < width; k++) {
            if (i + 1 < depth)
                SAY("v%d = local:f%d(v%d);", k + 1, i + 1, k);
            else
                SAY("v%d = Neg(v%d);", k + 1, k);
        }
        SAY("end;");
    }
    SAY("y = local:f0(x); out y");
#undef SAY
    put(&text, "", 1);
    Bytes model = sketch_model((const char *)text.p);
    free(text.p);
    return model;
}

static void bombs(Corpus *c)
{
    corpus_bytes(c, "10^3 nodes", 0, NULL, multiplying(3, 10));
    corpus_bytes(c, "10^10 nodes", 3, "inlined_nodes", multiplying(10, 10));
    corpus_bytes(c, "2^60 nodes", 3, "inlined_nodes", multiplying(60, 2));
    corpus_bytes(c, "10^40 nodes", 3, "inlined_nodes", multiplying(40, 10));
    corpus_bytes(c, "90 calls deep", 0, NULL, multiplying(90, 1));
    corpus_bytes(c, "120 calls deep", 3, "call_depth", multiplying(120, 1));
    corpus_bytes(c, "5000 calls deep", 3, "call_depth", multiplying(5000, 1));
}

/* ---- large ---- */

typedef struct Large {
    Bytes nodes;
    int n;
} Large;

static void call(Large *l, const char *op, const char *in, int a, int b)
{
    Bytes node = { 0 };
    char name[40];
    snprintf(name, sizeof name, a < 0 ? "x" : "%s%d", in, a);
    put_text(&node, 1, name);
    if (b >= 0) {
        snprintf(name, sizeof name, "v%d", b);
        put_text(&node, 1, name);
    }
    snprintf(name, sizeof name, "v%d", l->n++);
    put_text(&node, 2, name);
    put_text(&node, 4, op);
    put_message(&l->nodes, 1, node);
}

/* The model of the nodes, with one output or every n-th as outputs. */
static Bytes large_model(Large *l, int outputs)
{
    Bytes model = { 0 }, opset = { 0 }, graph = { 0 }, x = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    char name[40];
    put_int(&model, 1, 10);
    put_int(&opset, 2, 20);
    put_message(&model, 8, opset);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&x, 1, "x");
    put_message(&x, 2, type);
    put_message(&graph, 11, x);
    put(&graph, l->nodes.p, l->nodes.n);
    free(l->nodes.p);
    for (int i = 0; i < outputs; i++) {
        Bytes y = { 0 };
        snprintf(name, sizeof name, "v%d", l->n - 1 - i);
        put_text(&y, 1, name);
        put_message(&graph, 12, y);
    }
    put_message(&model, 7, graph);
    return model;
}

static void *on_small_stack(void *arg)
{
    Corpus *c = arg;
    const int n = c->large ? 1000000 : 60000;
    Large chain = { 0 }, fan = { 0 }, ladder = { 0 }, outputs = { 0 };
    for (int i = 0; i < n; i++)
        call(&chain, "Neg", "v", i - 1, -1);
    corpus_bytes(c, "a chain", 0, NULL, large_model(&chain, 1));
    for (int i = 0; i < n; i++)
        call(&fan, "Neg", "v", -1, -1);
    corpus_bytes(c, "a fan", 0, NULL, large_model(&fan, 1));
    call(&ladder, "Neg", "v", -1, -1);
    for (int i = 0; i < n; i++)
        call(&ladder, "Add", "v", i, i);
    corpus_bytes(c, "2^n paths", 0, NULL, large_model(&ladder, 1));
    for (int i = 0; i < n; i++)
        call(&outputs, "Neg", "v", i - 1, -1);
    corpus_bytes(c, "an output a node", 0, NULL, large_model(&outputs, n));
    return NULL;
}

/* One branch that takes so many values from around it. */
static Bytes capturing(int n)
{
    Bytes text = { 0 };
    char line[100];
#define SAY(...) put(&text, line, (size_t)snprintf(line, sizeof line, __VA_ARGS__))
    SAY("opset 20; in c bool[]; in x f32[];");
    for (int i = 0; i < n; i++)
        SAY("v%d = Neg(x);", i);
    SAY("graph a;");
    for (int i = 0; i < n; i++)
        SAY("w%d = Neg(v%d);", i, i);
    SAY("out w0; end; y = If(c) then_branch=g:a else_branch=g:a; out y");
#undef SAY
    put(&text, "", 1);
    Bytes model = sketch_model((const char *)text.p);
    free(text.p);
    return model;
}

/* Branches in branches. */
static Bytes branching(int depth)
{
    Bytes text = { 0 };
    char line[200];
#define SAY(...) put(&text, line, (size_t)snprintf(line, sizeof line, __VA_ARGS__))
    SAY("opset 20; in c bool[]; in x f32[]; graph g0; z = Neg(x); out z; end;");
    for (int i = 1; i < depth; i++)
        SAY("graph g%d; z%d = If(c) then_branch=g:g%d else_branch=g:g%d; out z%d; end;", i, i, i - 1, i - 1, i);
    SAY("y = If(c) then_branch=g:g%d else_branch=g:g%d; out y", depth - 1, depth - 1);
#undef SAY
    put(&text, "", 1);
    Bytes model = sketch_model((const char *)text.p);
    free(text.p);
    return model;
}

static void large(Corpus *c)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    if (pthread_create(&thread, &attr, on_small_stack, c) != 0)
        abort();
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    corpus_bytes(c, "a branch that captures much", 0, NULL, capturing(c->large ? 60000 : 20000));
    corpus_bytes(c, "branches in branches", 0, NULL, branching(c->large ? 15 : 10));
}

void graph_classes(Corpus *c)
{
    if (corpus_class(c, 19))
        large(c);
    if (c->large)
        return;
    if (corpus_class(c, 16))
        corpus_sketches(c, cycles, COUNT(cycles));
    if (corpus_class(c, 17))
        corpus_sketches(c, recursions, COUNT(recursions));
    if (corpus_class(c, 18))
        bombs(c);
    if (corpus_class(c, 20))
        corpus_sketches(c, control, COUNT(control));
    if (corpus_class(c, 21))
        corpus_sketches(c, opsets, COUNT(opsets));
    if (corpus_class(c, 22))
        corpus_sketches(c, odd, COUNT(odd));
}
