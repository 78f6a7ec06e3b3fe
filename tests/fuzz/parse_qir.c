/* Any bytes as .qir text: an error or a graph; a graph prints, and its text reads back and prints the same. */
#include "fuzz/fuzz.h"
#include "ir/verify.h"
#include "support/language.h"

#include <stdlib.h>
#include <string.h>

const FuzzForm fuzz_form = FUZZ_TEXT;

enum { MOST = 1 << 16 }; /* bytes of constants that are printed back: initial values are cheap to say */

static int64_t bytes_said(const Module *m)
{
    int64_t sum = 0;
    for (size_t i = 0; i < m->n_graphs; i++) {
        Graph *g = m->graphs[i];
        for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
            const Payload *p = node_payload(n);
            size_t bytes = 0;
            if (p && type_bytes(p->type, &bytes))
                sum += (int64_t)(bytes < MOST ? bytes : MOST);
        }
    }
    return sum;
}

static Status once(void *arg)
{
    Language *l = arg;
    Module *m, *again;
    const char *text = text_get(&l->input), *twice;
    l->ir.limits.eval_bytes = MOST;
    if (parse_module(&l->ir, &l->arena, (Str){ text, l->input.n }, "fuzz.qir", NULL, &l->source, &m) != OK) {
        if (l->n_list != 1)
            abort();
        return OK;
    }
    (void)verify_module(m, &l->source);
    if (bytes_said(m) >= MOST)
        return OK;
    const char *printed = language_print(l, m, NULL);
    if (!printed)
        return OK;
    again = language_parse(l, printed, NULL);
    twice = again ? language_print(l, again, NULL) : NULL;
    if (!twice || strcmp(printed, twice) != 0)
        abort();
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Language l;
    language_open(&l);
    l.memory.budget = (uint64_t)1 << 30;
    text_open(&l.input, &l.arena);
    text_bytes(&l.input, data, size);
    (void)guarded(&l.memory, once, &l);
    language_close(&l);
    return 0;
}
