/* quantize-products: products with trained weights, and those that make the gradients of their data and weights, are of
 * codes that are made as they are needed.
 *
 *     # recipe: --quant int8-matmul:output,last=8
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %y: f32[4,2] = matmul(%x, %w)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %0: f32[4,8] = abs(%x) ours
 *         const %1: i64[1] = [1] ours
 *         %2: f32[4,1] = reduce_max(%0, %1) ours
 *         const %3: f32[] = 1e-12 ours
 *         %4: f32[4,1] = max(%2, %3) ours
 *         const %5: f32[] = 127 ours
 *         %6: f32[4,1] = div(%4, %5) ours
 *         %7: i8[4,8] = quantize_linear(%x, %6, block_size=8, output_dtype=i8, least=-127, largest=127, mask=pass) ours
 *         %8: f32[8,2] = abs(%w) ours
 *         const %9: i64[1] = [0] ours
 *         %10: f32[1,2] = reduce_max(%8, %9) ours
 *         const %11: f32[] = 1e-12 ours
 *         %12: f32[1,2] = max(%10, %11) ours
 *         const %13: f32[] = 127 ours
 *         %14: f32[1,2] = div(%12, %13) ours
 *         %15: i8[8,2] = quantize_linear(%w, %14, axis=0, block_size=8, output_dtype=i8, least=-127, largest=127, mask=pass) ours
 *         %16: i32[4,2] = matmul_integer(%7, %15) ours
 *         %17: f32[4,2] = cast(%16, to=f32) ours
 *         %18: f32[4,2] = mul(%17, %6) ours
 *         %y: f32[4,2] = mul(%18, %14) ours
 *     }
 *
 * The forward side and the way back are there already: gradients are those of the floats, and scales are constants to
 * them.  What the way back reads of the data are codes, made beside those of the forward side of one read. */
#include "ops/card/make.h"
#include "ops/region/region.h"
#include "passes/lowbit/products.h"

/* ---- products ---- */

/* Nobody reads numbers where there are codes. */
static void drop(Products *p, DynamicCodes *c)
{
    if (c->number)
        remove_unread(c->number, p->run->scratch, NULL, NULL);
}

static Status multiply(Products *p, Layer *l, QuantProduct k, DynamicCodes *of)
{
    Node *call = l->call[k], *x[2], *sums;
    const ProductWay *way = product_way(call);
    Build b = product_build(call, k != PRODUCT_OUTPUT);
    const bool scaled = of[0].codes && of[0].scale && of[1].codes && of[1].scale;
    const int64_t most = scaled ? product_most(layer_record(l, k, 0), layer_record(l, k, 1)) : 0;
    for (int i = 0; i < 2; i++)
        x[i] = !scaled ? of[i].number : most ? of[i].codes : build_cast(&b, of[i].codes, F32);
    sums = way->multiply(&b, call, x[0], x[1], most);
    if (scaled)
        sums = CALL(&b, mul, CALL(&b, mul, sums, of[way->first].scale), of[1 - way->first].scale);
    Node *result = way->finish(&b, call, sums);
    TRY(b.status);
    for (int i = 0; i < 2; i++)
        drop(p, &of[i]);
    stand_in(call, result);
    p->run->changes++;
    return OK;
}

static Status quantize_layer(Products *p, Layer *l)
{
    DynamicCodes of[QUANT_PRODUCT_COUNT][2] = { 0 };
    TRY(products_codes(p, l, of));
    for (int k = 0; k < QUANT_PRODUCT_COUNT; k++)
        if (layer_quantizes(l, (QuantProduct)k))
            TRY(multiply(p, l, (QuantProduct)k, of[k]));
    return OK;
}

/* ---- where gradients pass ---- */

/* Whether a condition of the way back is made of a float of the forward side. */
static bool is_condition(const Node *n)
{
    bool reads = false;
    if (!(n->flags & NODE_BACKWARD) || n->type->kind != TYPE_TENSOR || n->type->dtype != BOOL || !region_maps(n))
        return false;
    for (int i = 0; i < n->n_in; i++)
        reads = reads || (in(n, i) && !(in(n, i)->flags & NODE_BACKWARD) && dtype_is_float(in(n, i)->type->dtype));
    return reads;
}

/* Lets keep-bits keep it as a bit a value, so that the float need not be kept. */
static Status offer_bits(Graph *g)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!is_condition(n))
            continue;
        Build b = product_build(n, true);
        b.before = next;
        Node *bits = build_cast(&b, n, BIT), *back = bits ? build_cast(&b, bits, BOOL) : NULL;
        TRY(b.status);
        for (Use *u = n->uses, *after; u; u = after) {
            after = u->next;
            if (u->user != bits)
                node_set_in(u->user, (int)(u - u->user->in), back);
        }
    }
    return OK;
}

/* ---- the graph ---- */

static Status quantize_products(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    if (!recipe || !recipe->quantization.products)
        return OK;
    Products p = { .g = g, .run = run, .recipe = &recipe->quantization };
    int64_t place = 0;
    p.places = facts_open(run->scratch, sizeof(int64_t));
    for (const Node *n = g->first; n; n = n->next)
        *(int64_t *)fact(&p.places, n) = ++place;
    layers_find(&p.layers, g, run->scratch);
    TRY(products_say(&p));
    products_tell(&p);
    for (size_t i = 0; i < p.layers.n; i++)
        TRY(quantize_layer(&p, &p.layers.list[i]));
    for (size_t i = 0; i < p.layers.n; i++)
        for (int k = 0; k < QUANT_PRODUCT_COUNT; k++)
            if (layer_quantizes(&p.layers.list[i], (QuantProduct)k))
                remove_unread(p.layers.list[i].call[k], run->scratch, NULL, NULL);
    return offer_bits(g);
}

const Pass pass_quantize_products = {
    .name = "quantize-products", .needs = TYPED, .may = MEANING, .run = quantize_products
};
