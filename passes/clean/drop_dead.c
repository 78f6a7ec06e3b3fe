/* drop-dead: removes what nobody reads.  Inputs and states stay: they are the signature.
 *
 *     graph @f(%x: f32[2], %w: f32[2]) -> (%y) {
 *         %u: f32[2] = neg(%w)
 *         %v: f32[2] = exp(%u)
 *         %y: f32[2] = abs(%x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %w: f32[2]) -> (%y) {
 *         %y: f32[2] = abs(%x)
 *     }
 */
#include "passes/engine/pass.h"

/* From the end: readers stand behind what they read.  A region is entered only when its owner is read. */
static Status drop_dead(Graph *top, PassRun *run)
{
    Graph **graphs = NULL;
    size_t n_graphs = 0, cap = 0;
    GROW(run->scratch, graphs, n_graphs, cap);
    graphs[n_graphs++] = top;
    while (n_graphs) {
        Graph *g = graphs[--n_graphs];
        for (Node *n = g->last, *prev; n; n = prev) {
            prev = n->prev;
            if (!n->uses) {
                node_remove(n);
                run->changes++;
            }
            for (int r = 0; n->uses && r < n->n_regions; r++) {
                GROW(run->scratch, graphs, n_graphs, cap);
                graphs[n_graphs++] = n->regions[r];
            }
        }
    }
    return OK;
}

const Pass pass_drop_dead = { .name = "drop-dead", .may = EXACT, .run = drop_dead };
