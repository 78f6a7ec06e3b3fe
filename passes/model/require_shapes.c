/* require-shapes: changes nothing; complains about values whose shape is not known, and says which inputs to bind.
 *
 *     graph @f(%x: f32[2,3], %y: f32[?]) -> (%b) {
 *         %a: f32[?] = neg(%y)
 *         %b: f32[3,2] = transpose(%x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %y: f32[?]) -> (%b) {
 *         %a: f32[?] = neg(%y)
 *         %b: f32[3,2] = transpose(%x)
 *     }
 */
#include "passes/engine/pass.h"

static Status require_shapes(Graph *g, PassRun *run)
{
    (void)run;
    return facts_check(SHAPED, g);
}

const Pass pass_require_shapes = {
    .name = "require-shapes", .needs = TYPED, .makes = SHAPED, .may = EXACT, .run = require_shapes
};
