/* What is written for people: JSON that parses, pages without foreign markup, the same bytes again. */
#include "frontends/view/view.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#include "support/language.h"
#include "unit/check.h"

typedef Status View(const Module *m, Diag *d, const Sink *sink);

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static const char *viewed(Language *l, View *view, const Module *m)
{
    Text t;
    text_open(&t, &l->arena);
    assert_int_equal(view(m, &l->diag, &(Sink){ append, &t }), OK);
    return text_get(&t);
}

static Module *parsed(Language *l, const char *text)
{
    language_open(l);
    Module *m = language_parse(l, text, NULL);
    check_that(m, "%s", text_get(&l->messages));
    return m;
}

static json_t *parsed_json(const char *text)
{
    json_error_t error;
    json_t *j = json_loads(text, 0, &error);
    check_that(j, "line %d: %s", error.line, error.text);
    return j;
}

static json_t *member(json_t *j, const char *graphs_or_ops, size_t graph, size_t node)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(j, graphs_or_ops), graph), "nodes"), node);
}

static void json_says_every_kind_of_attribute(void **state)
{
    (void)state;
    Language l;
    Module *m = parsed(&l, "graph @f(%x: f32[]) -> (%0) {\n"
                           "    %0: f32[] = every(%x, _, i=-9007199254740993, f=0x7fc00000, b=false, s=\"a\\n\\x01\", e=red, d=bf16,"
                           " is=[1, -2], fs=[0.1, 0x7f800000], ss=[\"x\", \"\"], p=f32[2] [1, 2], t=(f32[2], none), needed=0)\n"
                           "}\n");
    json_t *j = parsed_json(viewed(&l, view_json, m));
    char *text = json_dumps(json_object_get(member(j, "graphs", 0, 1), "attributes"), JSON_COMPACT | JSON_REAL_PRECISION(9));
    assert_string_equal(text, "{\"i\":\"-9007199254740993\",\"f\":\"nan\",\"b\":false,\"s\":\"a\\n\\u0001\",\"e\":\"red\","
                              "\"d\":\"bf16\",\"is\":[1,-2],\"fs\":[0.10000000000000001,\"inf\"],\"ss\":[\"x\",\"\"],"
                              "\"p\":{\"type\":\"f32[2]\",\"first\":[1,2]},\"t\":\"(f32[2], none)\",\"needed\":0}");
    free(text);
    json_decref(j);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_says_every_kind_of_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
