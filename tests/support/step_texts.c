#include "support/step_texts.h"

#include "frontends/onnx/write.h"
#include "ir/role.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify.h"

/* clang-format off */
#define MLP_MODEL                                                                                                      \
    "graph @mlp(%x: f32[?,3]) -> (%y) {\n"                                                                             \
    "    param %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125]\n"                                                         \
    "    param %b: f32[2] = [0.1, -0.2]\n"                                                                             \
    "    param %\"onnx::Scale_7\": f32[2] = [1, 2]\n"                                                                  \
    "    %h: f32[?,2] = matmul(%x, %w)\n"                                                                              \
    "    %s: f32[?,2] = mul(%h, %\"onnx::Scale_7\")\n"                                                                 \
    "    %y: f32[?,2] = add(%s, %b)\n"                                                                                 \
    "}\n"

static const StepText texts[] = {
    { "momentum", MLP_MODEL,
      "graph @step(%x: f32[4,3], %target: f32[4,2], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125] !1 trained, "
      "state %b: f32[2] = [0.1, -0.2] trained, state %\"qcc.v/w\": f32[3,2], state %\"qcc.v/b\": f32[2] = zeros, "
      "state %qcc.step: i64[], state %qcc.lr_factor: f32[] = 1) -> (%loss, %w = %w1, %b = %b1, %\"qcc.v/w\" = %vw, "
      "%\"qcc.v/b\" = %vb, %qcc.step = %n, %qcc.lr_factor) {\n"
      "    const %\"onnx::Scale_7\": f32[2] = [1, 2]\n"
      "    %h: f32[4,2] = matmul(%x, %w) !1 node=\"/fc/MatMul\"\n"
      "    %s: f32[4,2] = mul(%h, %\"onnx::Scale_7\") !2\n"
      "    %y: f32[4,2] = add(%s, %b) !3\n"
      "    %d: f32[4,2] = sub(%y, %target) ours\n"
      "    %q: f32[4,2] = mul(%d, %d) ours\n"
      "    const %axes: i64[2] = [0, 1]\n"
      "    %loss: f32[] = reduce_mean(%q, %axes, keepdims=false) ours\n"
      "    const %quarter: f32[] = 0.25 ours side=backward\n"
      "    %dy: f32[4,2] = mul(%d, %quarter) ours side=backward\n"
      "    const %rows: i64[1] = [0] ours side=backward\n"
      "    %db: f32[2] = reduce_sum(%dy, %rows, keepdims=false) ours side=backward\n"
      "    %ds: f32[4,2] = mul(%dy, %\"onnx::Scale_7\") !2 ours side=backward\n"
      "    %xt: f32[3,4] = transpose(%x, perm=[1, 0]) ours side=backward\n"
      "    %dw: f32[3,2] = matmul(%xt, %ds) !1 ours side=backward\n"
      "    const %mu: f32[] = 0.9 ours side=update\n"
      "    const %lr: f32[] = 0.1 ours side=update\n"
      "    %0: f32[] = mul(%lr, %qcc.lr_factor) ours side=update\n"
      "    %1: f32[3,2] = mul(%\"qcc.v/w\", %mu) ours side=update\n"
      "    %vw: f32[3,2] = add(%1, %dw) ours side=update\n"
      "    %2: f32[3,2] = mul(%vw, %0) ours side=update\n"
      "    %w1: f32[3,2] = sub(%w, %2) ours side=update\n"
      "    %3: f32[2] = mul(%\"qcc.v/b\", %mu) ours side=update\n"
      "    %vb: f32[2] = add(%3, %db) ours side=update\n"
      "    %4: f32[2] = mul(%vb, %0) ours side=update\n"
      "    %b1: f32[2] = sub(%b, %4) ours side=update\n"
      "    const %one: i64[] = 1 ours side=update\n"
      "    %n: i64[] = add(%qcc.step, %one) ours side=update\n"
      "}\n"
      "\n"
      "graph @eval(%x: f32[4,3], %target: f32[4,2], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125], "
      "state %b: f32[2] = [0.1, -0.2]) -> (%y, %loss) {\n"
      "    const %\"onnx::Scale_7\": f32[2] = [1, 2]\n"
      "    %h: f32[4,2] = matmul(%x, %w) !1 node=\"/fc/MatMul\"\n"
      "    %s: f32[4,2] = mul(%h, %\"onnx::Scale_7\") !2\n"
      "    %y: f32[4,2] = add(%s, %b) !3\n"
      "    %d: f32[4,2] = sub(%y, %target) ours\n"
      "    %q: f32[4,2] = mul(%d, %d) ours\n"
      "    const %axes: i64[2] = [0, 1]\n"
      "    %loss: f32[] = reduce_mean(%q, %axes, keepdims=false) ours\n"
      "}\n" },
    /* Bodies: captures in an order of their own, twice, renamed, with looser types; a loop inside a branch. */
    { "bodies", MLP_MODEL,
      "graph @step(%x: f32[4,3], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125] trained, "
      "state %acc: f32[3,2] = ones) -> (%loss, %w = %w1, %acc = %s, %slices) {\n"
      "    const %turns: i64[] = 2\n"
      "    const %go: bool[] = true\n"
      "    %zero: f32[3,2] = mul(%w, %acc)\n"
      "    %0: (f32[3,2], f32[?,2]) = loop(%turns, %go, %zero, %acc, %w, %acc, operands=3) "
      "{ (%i: i64[], %c: bool[], %v: f32[3,2], %p: f32[3,2], %q: f32[?,2], %r: f32[3,2]) -> (%c, %b, %row)\n"
      "        %a: f32[3,2] = mul(%v, %q)\n"
      "        %b: f32[3,2] = add(%a, %p) side=backward\n"
      "        %t: f32[3,2] = add(%a, %r)\n"
      "        const %rows: i64[1] = [0]\n"
      "        %row: f32[2] = reduce_sum(%t, %rows, keepdims=false)\n"
      "    } side=backward\n"
      "    %s: f32[3,2] = part(%0, index=0)\n"
      "    %slices: f32[?,2] = part(%0, index=1)\n"
      "    %w1: f32[3,2] = if(%go, %s, %w) { (%s: f32[3,2], %b: f32[3,2]) -> (%o = %w)\n"
      "        %w: f32[3,2] = sub(%b, %s)\n"
      "    } { (%1: f32[3,2], %2: f32[3,2]) -> (%2)\n"
      "    }\n"
      "    const %axes: i64[2] = [0, 1]\n"
      "    %loss: f32[] = reduce_sum(%w1, %axes, keepdims=false)\n"
      "}\n" },
    /* Narrow types, drawn and shared constants, parts that stand elsewhere or are not read, names of all kinds. */
    { "odds", MLP_MODEL,
      "graph @step(%x: f32[4,3], %\"a b\": i64[2], %0: f32[2], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125], "
      "state %k: bf16[70] = kaiming(seed=3, scale=0.5) trained node=\"/k\", state %\"qcc.ema/w\": f32[3,2] = "
      "[0.5, -0.25, 1, 2, -1, 0.125]) -> (%loss, _, %again = %loss, %w, %k = %k, %\"qcc.ema/w\" = %w, %least) {\n"
      "    const %drawn: bf16[70] = normal(seed=1, scale=0.02) ours\n"
      "    const %b: f32[2] = [0.1, -0.2]\n"
      "    const %c: f32[2] = [0.1, -0.2]\n"
      "    %k1: bf16[70] = add(%k, %drawn) ours\n"
      "    %1: f32[70] = cast(%k1, to=f32)\n"
      "    const %n: i64[1] = [2]\n"
      "    %t: (f32[2], i64[2]) = top_k(%1, %n) !5 node=\"/top\"\n"
      "    %i: i64[2] = part(%t, index=1) !5 node=\"/top\"\n"
      "    %2: i64[2] = add(%i, %\"a b\")\n"
      "    %v: f32[2] = part(%t, index=0) !5 node=\"/top\"\n"
      "    %least: f32[2] = part(%t, index=0) side=backward\n"
      "    %3: (f32[2], i64[2]) = top_k(%1, %n, sorted=false)\n"
      "    %4: f32[2] = part(%3, index=0)\n"
      "    %r: f32[2] = identity(%4)\n"
      "    const %ratio: f32[] = 0.5\n"
      "    const %yes: bool[] = true\n"
      "    %drop: (f32[2], bool[2]) = dropout(%v, %ratio, %yes, stream=77) !9\n"
      "    %qcc.step: f32[2] = part(%drop, index=0) !9\n"
      "    %\"qcc%5\": f32[2] = add(%qcc.step, %0)\n"
      "    %h: f32[2] = clip(%\"qcc%5\", _, %ratio)\n"
      "    %g: f32[2] = clip(%h, _, _)\n"
      "    %u: f32[2] = add(%g, %r)\n"
      "    const %axes: i64[1] = [0]\n"
      "    %loss: f32[] = reduce_sum(%u, %axes, keepdims=false)\n"
      "}\n"
      "\n"
      "graph @eval(%x: f32[8,3], %\"a b\": i64[2], state %w: f32[3,2], state %more: f32[2]) -> (%y, %w) {\n"
      "    %y: f32[8,2] = matmul(%x, %w)\n"
      "}\n"
      "\n"
      "graph @observe(state %more: f32[2]) -> (%more = %m) {\n"
      "    const %drawn: bf16[70] = normal(seed=1, scale=0.02)\n"
      "    %m: f32[2] = identity(%more)\n"
      "}\n" },
    /* Words of ours: losses and updates, which expand. */
    { "adam", MLP_MODEL,
      "graph @step(%x: f32[4,3], %target: i64[4], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125] trained, "
      "state %b: f32[2] = [0.1, -0.2], state %\"qcc.m/w\": f32[3,2], state %\"qcc.v/w\": f32[3,2], "
      "state %qcc.step: i64[]) -> (%loss, %w = %w1, %\"qcc.m/w\" = %m1, %\"qcc.v/w\" = %v1, %qcc.step = %n) {\n"
      "    %h: f32[4,2] = matmul(%x, %w)\n"
      "    %y: f32[4,2] = add(%h, %b)\n"
      "    %loss: f32[] = cross_entropy(%y, %target, label_smoothing=0.1)\n"
      "    %e: f32[4,2] = softmax(%y) side=backward\n"
      "    %xt: f32[3,4] = transpose(%x, perm=[1, 0]) side=backward\n"
      "    %dw: f32[3,2] = matmul(%xt, %e) side=backward\n"
      "    const %one: i64[] = 1 side=update\n"
      "    const %lr: f32[] = 0.01 side=update\n"
      "    %n: i64[] = add(%qcc.step, %one) side=update\n"
      "    %u: (f32[3,2], f32[3,2], f32[3,2]) = update_adam(%w, %dw, %lr, %n, _, %\"qcc.m/w\", %\"qcc.v/w\", "
      "weight_decay=0.01, decoupled=true) side=update\n"
      "    %w1: f32[3,2] = part(%u, index=0) side=update\n"
      "    %m1: f32[3,2] = part(%u, index=1) side=update\n"
      "    %v1: f32[3,2] = part(%u, index=2) side=update\n"
      "}\n" },
    /* Mixed precision: a master with its shadow, products of narrow operands with wide results, widths that are ours
     * and one that is the model's. */
    { "narrow", MLP_MODEL,
      "graph @step(%x: f32[4,3], state %w: f32[3,2] = [0.5, -0.25, 1, 2, -1, 0.125] !1 trained, "
      "state %\"qcc.shadow/w\": f16[3,2] = [0.5, -0.25, 1, 2, -1, 0.125]) -> (%loss, %w = %w1, "
      "%\"qcc.shadow/w\" = %next) {\n"
      "    %xn: f16[4,3] = amp_cast(%x, to=f16) ours\n"
      "    %h: f16[4,2] = matmul(%xn, %\"qcc.shadow/w\") !1\n"
      "    %r: f16[4,2] = relu(%h) !2\n"
      "    %u: f32[4,2] = amp_cast(%r, to=f32) ours\n"
      "    const %axes: i64[2] = [0, 1]\n"
      "    %loss: f32[] = reduce_mean(%u, %axes, keepdims=false) ours\n"
      "    %own: f16[4,2] = cast(%u, to=f16) !3\n"
      "    %wide: f32[4,2] = matmul(%xn, %\"qcc.shadow/w\", out=f32) !1 ours side=backward\n"
      "    %again: f16[4,2] = amp_cast(%wide, to=f16) ours side=backward\n"
      "    %sum: f16[4,2] = add(%again, %own) side=backward\n"
      "    %dw: f32[3,2] = matmul(%xn, %sum, ta=true, out=f32) !1 ours side=backward\n"
      "    %w1: f32[3,2] = sub(%w, %dw) ours side=update\n"
      "    %next: f16[3,2] = amp_cast(%w1, to=f16) ours side=update\n"
      "}\n" },
    /* A model that was a text: its parameters are said, and are the model's all the same. */
    { "drawn",
      "graph @m(%x: f32[4,40]) -> (%y) {\n"
      "    param %w: f32[40,2] = kaiming(seed=7)\n"
      "    %h: f32[4,2] = matmul(%x, %w)\n"
      "    param %z: f32[4,2] = zeros\n"
      "    %y: f32[4,2] = add(%h, %z)\n"
      "}\n",
      "graph @step(%x: f32[4,40], state %w: f32[40,2] = kaiming(seed=7) trained, state %\"qcc.ema/w\": f32[40,2] = "
      "kaiming(seed=7)) -> (%loss, %w = %n) {\n"
      "    %h: f32[4,2] = matmul(%x, %w)\n"
      "    %i: f32[40,2] = mul(%w, %w)\n"
      "    %n: f32[40,2] = sub(%w, %i)\n"
      "    const %axes: i64[2] = [0, 1]\n"
      "    %loss: f32[] = reduce_sum(%h, %axes, keepdims=false)\n"
      "}\n"
      "\n"
      "graph @eval(%x: f32[4,40], state %w: f32[40,2] = kaiming(seed=7)) -> (%y) {\n"
      "    const %z: f32[4,2] = zeros\n"
      "    %h: f32[4,2] = matmul(%x, %w)\n"
      "    %y: f32[4,2] = add(%h, %z)\n"
      "}\n" },
};
/* clang-format on */

const StepText *step_texts(size_t *n)
{
    *n = COUNT(texts);
    return texts;
}

Status step_append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

Module *step_model(Context *c, const char *text, Text *bytes, Spine *s)
{
    Module *m;
    text_open(bytes, &c->arena);
    assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "model.qir", NULL, NULL, &m), OK);
    assert_int_equal(onnx_write(m->graphs[0], &c->diag, &(Sink){ step_append, bytes }), OK);
    source_memory(&s->source, &c->memory, "model.onnx", bytes->p, bytes->n);
    assert_int_equal(spine_read(s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_import(&c->ir, &c->arena, s, NULL, &m), OK);
    return m;
}

static Payload *param_named(Context *c, const Module *model, const Node *n)
{
    Payload *own = n->op == OP_state ? state_initial(n) : node_payload(n);
    for (const Node *p = model ? model->graphs[0]->first : NULL; p && own; p = p->next) {
        const Tensor *a, *b;
        if (p->op != OP_param || !n->name || !p->name || strcmp(p->name, n->name) != 0)
            continue;
        a = payload_cached(own, &c->diag);
        b = payload_cached(node_payload(p), &c->diag);
        if (a && b && tensor_same(a, b))
            return node_payload(p);
    }
    return own;
}

Module *step_module(Context *c, const char *text, const Module *model)
{
    Module *m;
    const Status status = parse_module(&c->ir, &c->arena, str(text), "step.qir", NULL, NULL, &m);
    if (status != OK)
        print_error("%s\n", c->last);
    assert_int_equal(status, OK);
    for (size_t k = 0; k < m->n_graphs; k++) {
        Graph *g = m->graphs[k];
        for (size_t i = 0; i < g->n_inputs; i++)
            if (g->inputs[i]->op == OP_state)
                ((StateAttr *)(uintptr_t)g->inputs[i]->attr)->value = param_named(c, model, g->inputs[i]);
        for (Node *n = g->first; n; n = n->next)
            if (n->op == OP_const)
                ((ValueAttr *)(uintptr_t)n->attr)->value = param_named(c, model, n);
    }
    if (verify_module(m, NULL) != OK)
        print_error("%s\n", c->last);
    return m;
}

const char *step_text_of(Context *c, const Module *m)
{
    Text t;
    Blobs blobs;
    text_open(&t, &c->arena);
    blobs_open(&blobs, &c->arena);
    assert_int_equal(print_module(&t, m, &blobs), OK);
    return text_get(&t);
}
