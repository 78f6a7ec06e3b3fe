/* Roles in STEP.onnx: what is said comes back whatever the names are, and files that were written before there were roles
 * are read by what their names say. */
#include "support/renamed.h"
#include "support/step_texts.h"

#include "frontends/onnx/import.h"
#include "frontends/onnx/write.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

static void must(Context *c, Status status)
{
    if (status != OK)
        print_error("%s\n", c->last ? c->last : "no message");
    assert_int_equal(status, OK);
}

static Module *read_bytes(Context *c, const Text *bytes, Spine *s)
{
    Module *m = NULL;
    source_memory(&s->source, &c->memory, "step.onnx", bytes->p, bytes->n);
    must(c, spine_read(s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    return onnx_read_step(&c->ir, &c->arena, s, &m, NULL) == OK ? m : NULL;
}

/* A step of the texts, renamed where `word` is one, as bytes. */
static Module *written(Context *c, const StepText *t, const char *word, Text *step)
{
    Text model;
    Spine s = { 0 };
    Renamer r;
    Module *m = step_module(c, t->module, step_model(c, t->model, &model, &s));
    renamer_open(&r, &c->arena, word);
    for (size_t k = 0; word && k < m->n_graphs; k++)
        rename_graph(&r, m->graphs[k]);
    text_open(step, &c->arena);
    must(c, onnx_write_step(&s, m, NULL, &c->diag, &(Sink){ step_append, step }, NULL));
    spine_close(&s);
    return m;
}

static int marks_of(const Module *m)
{
    int n = 0;
    for (size_t k = 0; k < m->n_graphs; k++) {
        const Graph *g = m->graphs[k];
        for (size_t i = 0; i < g->n_inputs; i++)
            n += node_role(g->inputs[i]).role != 0;
        for (int i = 0; i < graph_n_results(g); i++)
            n += graph_result_mark(g, i).role != 0;
    }
    return n;
}

/* ---- what is said comes back ---- */

static Status come_back(void *context)
{
    Context *c = context;
    int marks = 0;
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++)
        for (int named = 0; named < 2; named++) {
            Text step;
            Spine s = { 0 };
            const Module *m = written(c, &texts[i], named ? NULL : "z", &step), *back = read_bytes(c, &step, &s);
            assert_non_null(back);
            assert_string_equal(step_text_of(c, back), step_text_of(c, m));
            marks += marks_of(back);
            spine_close(&s);
        }
    print_message("%d marks\n", marks);
    assert_true(marks >= 20);
    return OK;
}

static void what_is_said_comes_back_whatever_the_names(void **state)
{
    (void)state;
    with_context(come_back);
}

/* ---- files without roles ---- */

static bool begins(ProtobufCBinaryData key, const char *with)
{
    return key.len > strlen(with) && memcmp(key.data, with, strlen(with)) == 0;
}

static void *from_arena(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void to_nowhere(void *arena, void *block)
{
    (void)arena, (void)block;
}

/* Takes the roles out, or says `instead` of each that a state has; how many there were. */
static int change_roles(Context *c, Text *step, const char *instead)
{
    ProtobufCAllocator allocator = { from_arena, to_nowhere, &c->arena };
    Onnx__ModelProto *p = onnx__model_proto__unpack(&allocator, step->n, (const uint8_t *)step->p);
    Onnx__GraphProto *g = p->training_info[0]->algorithm;
    size_t kept = 0;
    int n = 0;
    for (size_t i = 0; i < g->n_metadata_props; i++) {
        const ProtobufCBinaryData key = g->metadata_props[i]->key;
        const bool role = begins(key, "qcc.role.") || (!instead && begins(key, "qcc.mark."));
        n += role;
        if (role && !instead)
            continue;
        if (role)
            g->metadata_props[i]->value = (ProtobufCBinaryData){ strlen(instead), (uint8_t *)(uintptr_t)instead };
        g->metadata_props[kept++] = g->metadata_props[i];
    }
    g->n_metadata_props = kept;
    step->p = arena_alloc(&c->arena, onnx__model_proto__get_packed_size(p) + 1);
    step->n = onnx__model_proto__pack(p, (uint8_t *)step->p);
    return n;
}

static Status old_files(void *context)
{
    Context *c = context;
    int removed = 0;
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++) {
        Text step;
        Spine s = { 0 };
        const Module *m = written(c, &texts[i], NULL, &step);
        removed += change_roles(c, &step, NULL);
        const Module *back = read_bytes(c, &step, &s);
        assert_non_null(back);
        assert_string_equal(step_text_of(c, back), step_text_of(c, m));
        spine_close(&s);
    }
    print_message("%d roles removed\n", removed);
    assert_true(removed >= 10);
    return OK;
}

static void files_without_roles_are_read_by_their_names(void **state)
{
    (void)state;
    with_context(old_files);
}

static Status wrong_roles(void *context)
{
    static const char *const says[][2] = { { "momentous w", "has the role momentous w, which is none" },
                                           { "moment", "has the role moment and does not say of which state" },
                                           { "moment nobody", "which is no other state" } };
    Context *c = context;
    size_t n;
    for (size_t i = 0; i < COUNT(says); i++) {
        Text step;
        Spine s = { 0 };
        written(c, &step_texts(&n)[0], NULL, &step);
        assert_true(change_roles(c, &step, says[i][0]) > 0);
        c->last = "";
        assert_null(read_bytes(c, &step, &s));
        if (!strstr(c->last, says[i][1]))
            print_error("%s\nwanted was %s\n", c->last, says[i][1]);
        assert_non_null(strstr(c->last, says[i][1]));
        spine_close(&s);
    }
    return OK;
}

static void wrong_roles_are_refused(void **state)
{
    (void)state;
    with_context(wrong_roles);
}

/* ---- a graph with states as a model ---- */

static const char graph[] =
    "graph @g(%x: f32[2], %back: f32[2] role=gradient of=%y, state %w: f32[2] = [1, 2] trained, "
    "state %old: f32[2] role=moment of=%w, state %\"qcc.m/u\": f32[2] role=weight) -> (%y, %w = "
    "%y, %slope = %back role=gradient of=%w, %grad.w = %x role=value) {\n"
    "    %y: f32[2] = add(%x, %w)\n"
    "}\n";

static Status as_a_model(void *context)
{
    Context *c = context;
    Module *m, *back;
    Text bytes;
    Spine s = { 0 };
    text_open(&bytes, &c->arena);
    must(c, parse_module(&c->ir, &c->arena, str(graph), "g.qir", NULL, NULL, &m));
    must(c, onnx_write(m->graphs[0], &c->diag, &(Sink){ step_append, &bytes }));
    source_memory(&s.source, &c->memory, "g.onnx", bytes.p, bytes.n);
    must(c, spine_read(&s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    must(c, onnx_import(&c->ir, &c->arena, &s, NULL, &back));
    assert_int_equal(marks_of(back), marks_of(m));
    const Graph *g = back->graphs[0];
    assert_non_null(graph_state_of(g, STATE_moment, "w"));
    assert_int_equal(graph_result_of(g, RESULT_gradient, "w"), 2);
    spine_close(&s);
    return OK;
}

static void a_graph_with_states_is_a_model_with_roles(void **state)
{
    (void)state;
    with_context(as_a_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_comes_back_whatever_the_names),
        cmocka_unit_test(files_without_roles_are_read_by_their_names),
        cmocka_unit_test(wrong_roles_are_refused),
        cmocka_unit_test(a_graph_with_states_is_a_model_with_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
