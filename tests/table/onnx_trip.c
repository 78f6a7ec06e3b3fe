/* A sample of every op as an ONNX model: written and read back it is the same text and has the same values.
 *
 *     onnx_trip           compares
 *     onnx_trip FOLDER    writes the models there, for other programs to look at */
#include <stdlib.h>

#include "frontends/onnx/import.h"
#include "frontends/onnx/write.h"
#include "ir/text/print.h"
#include "support/samples.h"
#include "testing.h"

static const char *folder; /* null: they are compared */

static void write_sample(const CardTour *k, int variant, const Text *model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%d.onnx", folder, k->def->name, variant);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(model->p, 1, model->n, f) != model->n || fclose(f) != 0)
        abort();
}

static const char *printed(Context *c, const Graph *g)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

/* Whether both graphs give the same; ops that draw are seeded by their place in the file and only have to be there. */
static bool same_values(CardTour *k, Graph *g, Graph *h)
{
    const int n = graph_n_results(g);
    Tensor **a = NEWS(&k->c->arena, Tensor *, n), **b = NEWS(&k->c->arena, Tensor *, n);
    if (k->def->mode != MODE_PURE)
        return graph_n_results(h) == n;
    if (graph_n_results(h) != n || evaluate(g, NULL, &k->c->heap, NULL, a) != OK ||
        evaluate(h, NULL, &k->c->heap, NULL, b) != OK)
        return false;
    bool same = true;
    for (int i = 0; i < n; i++) {
        same = same && tensor_same(a[i], b[i]);
        tensor_drop(&k->c->heap, a[i]);
        tensor_drop(&k->c->heap, b[i]);
    }
    return same;
}

static bool calls(Graph *g, Op op)
{
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == op)
            return true;
    return false;
}

static const char *difference(CardTour *k, Graph *g, Op op, int variant)
{
    Context *c = k->c;
    Text model;
    Module *m;
    Spine s = { 0 };
    const char *why = NULL;
    c->last = NULL;
    text_open(&model, &c->arena);
    if (onnx_write(g, &c->diag, &(Sink){ append, &model }) != OK)
        return c->last;
    if (folder) {
        write_sample(k, variant, &model);
        return NULL;
    }
    source_memory(&s.source, &c->memory, "sample", model.p, model.n);
    if (spine_read(&s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor) != OK)
        return c->last;
    if (onnx_import(&c->ir, &c->arena, &s, NULL, &m) != OK)
        why = c->last;
    else if (!calls(m->graphs[0], op))
        why = "another op comes back";
    else if (strcmp(printed(c, g), printed(c, m->graphs[0])) != 0)
        why = arena_printf(&c->arena, "comes back as\n%s", printed(c, m->graphs[0]));
    else if (!same_values(k, g, m->graphs[0]))
        why = c->last ? c->last : "has other values when it comes back";
    spine_close(&s);
    return why;
}

static Status check_op(void *arg)
{
    CardTour *k = arg;
    Op op;
    int bad = 0;
    op_find(&ops_table, str(k->def->name), &op);
    for (int v = 0; v < k->def->n_variants; v++) {
        Graph *g = sample_graph(k->c, k->def, v);
        assert_non_null(g);
        const char *why = difference(k, g, op, v);
        if (why)
            print_error("%s, variant %d: %s\n%s", k->def->name, v, why, printed(k->c, g)), bad++;
        k->n++;
    }
    return bad ? INVALID : OK;
}

static void samples_are_models(void **state)
{
    CardTour t = { .n = 0 };
    (void)state;
    const int bad = each_card(&t, check_op);
    print_message("%d samples\n", t.n);
    assert_true(t.n > 1000);
    assert_int_equal(bad, 0);
}

/* ---- attributes of ours ---- */

/* Whether a call says something that its ONNX operator has no word for; who draws, and how many operands are its own, stands
 * beside the node. */
static bool says_ours(const Node *n)
{
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++)
        if (s->ours && strcmp(s->name, "stream") != 0 && strcmp(s->name, "operands") != 0 &&
            !attr_is_default(s, n->attr))
            return true;
    return false;
}

/* Whether a node of a file is an operator of that name: the field 4, which is a text. */
static bool is_called(const Text *model, const char *op)
{
    const size_t n = strlen(op);
    for (size_t i = 0; i + n + 2 <= model->n; i++)
        if (model->p[i] == 0x22 && (unsigned char)model->p[i + 1] == n && memcmp(model->p + i + 2, op, n) == 0)
            return true;
    return false;
}

/* What a tour has seen of quantize_linear: as ONNX's, and as ours. */
typedef struct Spellings {
    CardTour tour; /* first */
    int standard, ours;
} Spellings;

static Status check_names(void *arg)
{
    Spellings *names = arg;
    CardTour *k = &names->tour;
    const OnnxName *name = &k->def->onnx;
    int bad = 0;
    for (int v = 0; v < k->def->n_variants && name->op && !name->domain; v++) {
        Graph *g = sample_graph(k->c, k->def, v);
        const Node *call = sample_call(graph_result(g, 0));
        Text model;
        text_open(&model, &k->c->arena);
        if (onnx_write(g, &k->c->diag, &(Sink){ append, &model }) != OK)
            continue;
        const bool ours = is_called(&model, k->def->name), standard = is_called(&model, name->op);
        if (says_ours(call) && (standard || !ours))
            print_error("%s, variant %d: is written as %s, which has no such attribute\n", k->def->name, v, name->op),
                bad++;
        if (call->op == OP_quantize_linear) {
            names->standard += standard && !ours;
            names->ours += ours && !standard;
        }
    }
    return bad ? INVALID : OK;
}

static void attributes_of_ours_make_a_word_of_ours(void **state)
{
    Spellings names = { .ours = 0 };
    (void)state;
    assert_int_equal(each_card(&names.tour, check_names), 0);
    print_message("quantize_linear: %d calls of ONNX's, %d of ours\n", names.standard, names.ours);
    assert_true(names.standard > 9 && names.ours > 9);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_models),
        cmocka_unit_test(attributes_of_ours_make_a_word_of_ours),
    };
    folder = argc == 2 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
