/* Graphs that no text can say: the verifier finds what is wrong inside. */
#include "support/language.h"

#include <string.h>

#include "ir/build.h"
#include "ir/verify.h"
#include "unit/check.h"

typedef struct Sample {
    Language l;
    Module *m;
    Graph *g;
    Node *x, *a, *b, *c;
} Sample;

static void sample_open(Sample *s)
{
    language_open(&s->l);
    s->m = language_parse(&s->l,
                          "graph @f(%x: f32[2]) -> (%c) {\n"
                          "    %a: f32[2] = identity(%x)\n"
                          "    %b: f32[2] = identity(%a)\n"
                          "    %c: f32[2] = both(%b) { (%p: f32[2]) -> (%q)\n"
                          "        %q: f32[2] = identity(%p)\n"
                          "    }\n"
                          "}\n",
                          NULL);
    assert_non_null(s->m);
    s->g = s->m->graphs[0];
    s->x = s->g->inputs[0];
    s->a = s->g->first;
    s->b = s->a->next;
    s->c = s->b->next;
    assert_int_equal(verify(s->g, NULL), OK);
}

static void check_complaint(Sample *s, const char *says)
{
    assert_int_equal(verify(s->g, NULL), INVALID);
    check_that(strstr(text_get(&s->l.messages), says), "%s", text_get(&s->l.messages));
    language_close(&s->l);
}

static void order(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    node_move(s.a, NULL);
    check_complaint(&s, "identity reads %a before it is defined");
}

static void operand_of_another_region(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    node_set_in(s.c->regions[0]->first, 0, s.a);
    check_complaint(&s, "identity reads %a, which is outside of its region");
}

static void result_of_another_region(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    node_set_in(s.g->ret, 0, s.c->regions[0]->first);
    check_complaint(&s, "return reads %q, which is outside of its region");
}

static void removed_operand(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    Node *stray = graph_insert(s.g, NULL, OP_identity, s.x->type, 1, &s.x);
    node_remove(stray);
    node_set_in(s.b, 0, stray);
    check_complaint(&s, "identity reads %0 before it is defined");
}

static void ids(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.b->id = s.a->id;
    check_complaint(&s, "is that of two nodes");
    sample_open(&s);
    s.b->id = 1000;
    check_complaint(&s, "id 1000 was never given");
}

static void names(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.b->name = s.a->name;
    check_complaint(&s, "two values are called %a");
    sample_open(&s);
    s.c->regions[0]->first->name = s.a->name; /* another scope */
    assert_int_equal(verify(s.g, NULL), OK);
    language_close(&s.l);
}

static void use_lists(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.a->uses = NULL;
    check_complaint(&s, "%a has 1 readers, its use list another number");
    sample_open(&s);
    s.a->uses->next = s.a->uses;
    check_complaint(&s, "use list of %a is torn");
    sample_open(&s);
    s.b->in[0].user = s.c;
    check_complaint(&s, "operand 0 is in the use list of another node");
}

static void lists(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.b->prev = NULL;
    check_complaint(&s, "the list of nodes is torn before %b");
    sample_open(&s);
    s.g->last = s.b;
    check_complaint(&s, "the list of nodes does not end where it says");
    sample_open(&s);
    s.b->graph = s.c->regions[0];
    check_complaint(&s, "%b stands in the list of another graph");
}

static void ops(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.b->op = 60000;
    check_complaint(&s, "op 60000 has no card");
    sample_open(&s);
    s.b->op = OP_input;
    check_complaint(&s, "input stands among the calls");
    sample_open(&s);
    s.x->op = OP_identity;
    check_complaint(&s, "%x stands among the inputs");
    sample_open(&s);
    s.b->op = OP_cast;
    check_complaint(&s, "cast has no attributes");
    sample_open(&s);
    s.c->regions[0]->owner = s.b;
    check_complaint(&s, "region 0 belongs to another node");
}

static void initial_values(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    const StateAttr attr = { payload_of(&s.l.arena, tensor_new(&s.l.arena, type_vector(&s.l.ir.types, F32, 3))) };
    graph_state(s.g, "s", type_vector(&s.l.ir.types, F32, 2), &attr);
    check_complaint(&s, "%s is f32[2], its initial value f32[3]");
}

static void complaints_are_bounded(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    Node *v = s.x;
    for (int i = 0; i < 1000; i++)
        v = graph_insert(s.g, NULL, OP_identity, type_vector(&s.l.ir.types, F16, i + 3), 1, &v);
    assert_int_equal(verify(s.g, NULL), INVALID);
    assert_int_equal(s.l.n_list, 100);
    language_close(&s.l);
}

static void places_come_from_the_text(void **state)
{
    (void)state;
    Sample s;
    sample_open(&s);
    s.b->type = type_vector(&s.l.ir.types, F32, 3);
    assert_int_equal(verify(s.g, &s.l.source), INVALID);
    assert_non_null(strstr(text_get(&s.l.messages), "test.qir:3:5: identity gives f32[2], not f32[3]\n"
                                                    "        %b: f32[2] = identity(%a)\n"
                                                    "        ^\n"));
    language_close(&s.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(operand_of_another_region),
        cmocka_unit_test(result_of_another_region),
        cmocka_unit_test(removed_operand),
        cmocka_unit_test(ids),
        cmocka_unit_test(names),
        cmocka_unit_test(use_lists),
        cmocka_unit_test(lists),
        cmocka_unit_test(ops),
        cmocka_unit_test(initial_values),
        cmocka_unit_test(complaints_are_bounded),
        cmocka_unit_test(places_come_from_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
