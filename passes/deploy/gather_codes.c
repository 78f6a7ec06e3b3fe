/* gather-codes: rows of a table are looked up as codes, and are numbers behind that: whoever runs it widens the rows
 * that are asked for, and not the table.
 *
 *     graph @f(%i: i64[2], %t: i8[5,4], %s: f32[5]) -> (%y) {
 *         %d: f32[5,4] = dequantize_linear(%t, %s, axis=0)
 *         %y: f32[2,4] = gather(%d, %i)
 *     }
 *     ==>
 *     graph @f(%i: i64[2], %t: i8[5,4], %s: f32[5]) -> (%y) {
 *         %0: i8[2,4] = gather(%t, %i)
 *         const %1: i64[2] = [5, 1]
 *         %2: f32[5,1] = reshape(%s, %1, allowzero=true)
 *         %3: f32[2,1] = gather(%2, %i)
 *         %y: f32[2,4] = dequantize_linear(%0, %3, block_size=4)
 *     }
 *
 * Files have no lookup of codes of 4 bits: those of such a table are of 8 from here on.
 */
#include "passes/deploy/gather_codes.h"

#include "ops/card/shapes.h"
#include "ops/card/words.h"
#include "ops/quant/quantize.h"
#include "passes/quant/placement.h"

Node *codes_in_bytes(Build *b, Node *codes)
{
    const DType type = codes ? codes->type->dtype : I8;
    return type == I4 ? build_cast(b, codes, I8) : type == U4 ? build_cast(b, codes, U8) : codes;
}

/* Whether rows of numbers with such scales are rows of codes with rows of scales. */
static bool has_rows(const Node *number)
{
    const DequantizeAttr *at = number->attr;
    const Type *table = in(number, 0)->type, *scale = in(number, 1)->type;
    if (number->type->dtype != F32 || table->rank != 2 || !type_known(table) || !type_known(scale))
        return false;
    if (scale->rank == 0 || (type_elements(scale) == 1 && !at->block_size))
        return true;
    return axis_wrap(at->axis, table->rank) == (at->block_size ? 1 : 0);
}

static bool looks_up_numbers(const Node *n)
{
    const Node *table = in(n, 0);
    return op_of(n)->quant.in[0] == QUANT_GATHER && table && op_of(table)->quant.dequantizes && n->type->rank > 0 &&
           quant_weight_axis(n, 0) == 0 && has_rows(table);
}

/* Of scales or zero points, those of the rows that are asked for; one for all stays. */
static Node *rows_of(Build *b, Node *of, Node *at, const DequantizeAttr *how)
{
    if (!of || of->type->rank == 0 || (type_elements(of->type) == 1 && !how->block_size))
        return of;
    if (!how->block_size)
        of = make_reshape(b, of, 2, (const int64_t[]){ of->type->dims[0], 1 });
    return make_gather(b, of, at, 0);
}

static Status gather_codes(Node *n, PassRun *run)
{
    const Node *number = in(n, 0);
    Node *at = in(n, 1);
    DequantizeAttr how = *(const DequantizeAttr *)number->attr;
    Build b = build_before(n);
    b.src = n->src;
    b.label = n->label;
    Node *codes = make_gather(&b, codes_in_bytes(&b, in(number, 0)), at, 0);
    Node *scale = rows_of(&b, in(number, 1), at, &how);
    Node *zero = rows_of(&b, codes_in_bytes(&b, in(number, 2)), at, &how);
    TRY(b.status);
    if (scale->type->rank > 0 && !how.block_size && scale != in(number, 1))
        how.block_size = number->type->dims[1];
    if (how.block_size)
        how.axis = n->type->rank - 1;
    Node *rows = build_node(&b, number->op, &how, zero ? 3 : 2, (Node *[]){ codes, scale, zero });
    TRY(b.status);
    stand_in(n, rows);
    remove_unread(n, run->scratch, NULL, NULL);
    run->changes++;
    return OK;
}

static Status gather_all(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options ? run->options->recipe : NULL;
    const QuantTarget *t = recipe ? quantization_target(&recipe->quantization) : NULL;
    if (t && t->quants) /* its tables are numbers in front of a quantizer, like other weights */
        return OK;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (looks_up_numbers(n))
            TRY(gather_codes(n, run));
    }
    return OK;
}

const Pass pass_gather_codes = { .name = "gather-codes", .needs = TYPED, .may = EXACT, .run = gather_all };
