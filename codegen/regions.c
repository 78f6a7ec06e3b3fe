#include "codegen/regions.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_text.h"
#include "codegen/tape.h"
#include "ops/card/cards.h"

static const char *heading_of(const Node *n, Arena *arena)
{
    const Node *first = n->type->kind == TYPE_TUPLE && n->uses ? n->uses->user : n;
    const char *name = first->name ? first->name : "fused";
    Text text;
    text_open(&text, arena);
    text_escape(&text, name, strlen(name), 80);
    return text_get(&text);
}

/* The kernels, below a line that says how they are launched. */
static void print_kernels(Text *out, const Tape *t, const OpTable *ops, const char *name, int number)
{
    Text kernels;
    CudaLaunch launch;
    text_open(&kernels, out->arena);
    const char *why = cuda_print(&kernels, t, ops, arena_printf(out->arena, "k%d", number), false, &launch);
    if (why) {
        text_printf(out, "// %s: no kernels: %s\n", name, why);
        return;
    }
    text_printf(out, "// %s:", name);
    for (int i = 0; i < launch.n; i++)
        text_printf(out, " %s<<<%" PRId64 ", %d>>>", launch.kernels[i].name, launch.kernels[i].blocks,
                    launch.kernels[i].threads);
    text_printf(out, ", %zu bytes of scratch\n%s", launch.scratch, text_get(&kernels));
}

void regions_print(Text *out, const Module *m, bool tapes, bool kernels)
{
    int number = 0;
    for (size_t i = 0; i < m->n_graphs; i++)
        for (Node *n = walk_first(m->graphs[i]); n; n = walk_next(m->graphs[i], n)) {
            if (n->op != OP_fused)
                continue;
            const OpTable *ops = m->graphs[i]->ir->ops;
            const Tape *t = tape_make(n->regions[0], out->arena);
            const char *name = heading_of(n, out->arena);
            text_printf(out, "%s", out->n ? "\n" : "");
            if (tapes) {
                text_printf(out, "%s: ", name);
                tape_print(out, t, ops);
            }
            text_printf(out, "%s", tapes && kernels ? "\n" : "");
            if (kernels)
                print_kernels(out, t, ops, name, number);
            number++;
        }
}
