/* The tables of tables/: each loads without a complaint, and says of calls what the lists it carries say. */
#include "testing.h"

#include "base/file.h"
#include "ir/text/parse.h"
#include "ops/card/words.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"

static const struct Row {
    const char *table;
    DType narrow;
    const char *text;
    AmpClass class;
} rows[] = {
#define ROW(table, narrow, text, class) { table, narrow, text, AMP_##class },
#include "table/amp_lists.def"
};

static AmpRole role_of_y(Context *c, const struct Row *row)
{
    static const char form[] =
        "graph @f(%%x: f32[2,3], %%w: f32[3,2], %%q: f32[1,2,4,4], %%k: f32[2,2,2,2], %%c: f32[2], %%l: f32[3], "
        "%%s: f32[2,1,3], %%t: f32[1,3,3], %%i: i64[2,3]) -> (%%y) {\n%s\n}\n";
    Module *m = NULL;
    AmpRoles *roles;
    const AmpTable *table;
    PassRun run = { .scratch = &c->arena, .diag = &c->diag };
    const char *text = arena_printf(&c->arena, form, row->text);
    if (parse_module(&c->ir, &c->arena, str(text), "t.qir", NULL, NULL, &m) != OK) {
        print_error("%s\n%s\n", text, c->last);
        return (AmpRole){ .class = AMP_UNSET };
    }
    assert_int_equal(amp_table_read(&table, row->table, amp_table_shipped(row->table), c->ir.ops, &c->arena, &c->diag),
                     OK);
    const Precision p = { .on = true, .narrow = row->narrow, .tables = &table, .n_tables = 1 };
    assert_int_equal(amp_roles_open(m->graphs[0], &run, &p, &roles), OK);
    for (Node *n = walk_first(m->graphs[0]); n; n = walk_next(m->graphs[0], n))
        if (n->name && strcmp(n->name, "y") == 0)
            return amp_role(roles, n);
    return (AmpRole){ .class = AMP_UNSET };
}

static Status each_call(void *arg)
{
    Context *c = arg;
    int bad = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const AmpRole r = role_of_y(c, &rows[i]);
        if (r.class != rows[i].class)
            print_error("%s: %s is %s, not %s\n", rows[i].table, rows[i].text, amp_word(r.class),
                        amp_word(rows[i].class)),
                bad++;
    }
    assert_int_equal(bad, 0);
    assert_int_equal(c->diag.n_warnings, 0);
    return OK;
}

static void lists_say_what_theirs_say(void **state)
{
    (void)state;
    with_context(each_call);
}

/* What is embedded is what stands in tables/, all of it. */
static Status each_file(void *arg)
{
    Context *c = arg;
    const char *names[MOST_SHIPPED_TABLES];
    const size_t n = amp_tables_shipped(names);
    for (size_t i = 0; i < n; i++) {
        Str bytes;
        const AmpTable *t;
        const char *path = arena_printf(&c->arena, "%s/tables/%s.txt", QCC_SOURCE_DIR, names[i]);
        assert_int_equal(file_read(&c->arena, &c->diag, path, 1 << 20, "string_bytes", &bytes), OK);
        assert_string_equal(bytes.p, amp_table_shipped(names[i]));
        assert_int_equal(amp_table_read(&t, path, bytes.p, c->ir.ops, &c->arena, &c->diag), OK);
        assert_true(t->n > 20);
        assert_int_equal(t->lines[0].of.kind, TABLE_LINE_DEFAULT);
    }
    assert_int_equal(n, 3);
    assert_null(amp_table_shipped("mxnet"));
    return OK;
}

static void tables_are_at_hand(void **state)
{
    (void)state;
    with_context(each_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_say_what_theirs_say),
        cmocka_unit_test(tables_are_at_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
