/* read-codes: products read floats of eight bits as they lie, not copies of them in f32.
 *
 *     graph @f(%x: f8e4m3[8,4], %w: f8e4m3[6,4]) -> (%y) {
 *         %0: f32[8,4] = cast(%x, to=f32)
 *         %1: f32[6,4] = cast(%w, to=f32)
 *         %y: f32[8,6] = matmul(%0, %1, tb=true)
 *     }
 *     ==>
 *     graph @f(%x: f8e4m3[8,4], %w: f8e4m3[6,4]) -> (%y) {
 *         %y: f32[8,6] = matmul(%x, %w, tb=true, out=f32)
 *     }
 *
 * A product of narrow operands widens them and adds up in f32, so each sum is what it was.  No value in f32 has to be made and
 * kept for it, and a device that multiplies such codes sees them. */
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "passes/engine/pass.h"

/* The codes that an operand is the numbers of; null: it is something else. */
static Node *codes_behind(const Node *n, int operand)
{
    const Node *numbers = in(n, operand);
    Node *codes = numbers->op == OP_cast ? in(numbers, 0) : NULL;
    return codes && codes->type->kind == TYPE_TENSOR && contracts_codes(codes->type->dtype) ? codes : NULL;
}

static Status read_codes(Graph *g, PassRun *run)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op != OP_matmul || n->type->kind != TYPE_TENSOR || n->type->dtype != F32 || in(n, 0)->type->dtype != F32)
            continue;
        Node *x = codes_behind(n, 0), *y = codes_behind(n, 1);
        if (!x || !y)
            continue;
        MatmulAttr at = *(const MatmulAttr *)n->attr;
        at.out = F32 + 1;
        Build b = build_before(n);
        Node *by = CALL_ATTR(&b, matmul, at, x, y);
        TRY(b.status);
        stand_in(n, by);
        remove_unread(n, run->scratch, NULL, NULL);
        run->changes++;
    }
    return OK;
}

const Pass pass_read_codes = { .name = "read-codes", .needs = TYPED, .may = EXACT, .run = read_codes };
