/* Mistakes of our own inside a public call: the call answers, says what it was where there is memory to say it, the context
 * is good for closing alone, and the host lives. */
#include "testing.h"

#include "api/hall/context.h"
#include "support/host.h"

#ifdef QCC_DEBUG
/* Debug builds abort at a mistake. */
int main(void)
{
    puts("skipped: mistakes that are answered; a release build");
    return 0;
}
#else
static Status stumble(void *arg)
{
    qcc_context *cx = arg;
    memory_bug(&cx->memory, "tests/unit/api/mistakes.c: on purpose");
}

static Status fine(void *arg)
{
    (void)arg;
    return OK;
}

/* What gives back must not ask; one that does is cut off. */
static void greedy(void *thing)
{
    qcc_context *cx = thing;
    memory_release(&cx->memory, memory_block(&cx->memory, 1000), 1000);
}

static qcc_context *opened(Host *h)
{
    const qcc_context_options o = options_of(h);
    qcc_context *cx;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

static void a_mistake_is_told_and_ends_the_context(void **state)
{
    (void)state;
    Host h = { 0 };
    qcc_context *cx = opened(&h);
    assert_int_equal(context_call(cx, stumble, cx), QCC_INTERNAL);
    assert_string_equal(h.text, "a mistake of qcc's own, please report it: tests/unit/api/mistakes.c: on purpose\n");
    assert_int_equal(context_call(cx, fine, cx), QCC_INTERNAL);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void a_mistake_without_memory_is_told_too(void **state)
{
    (void)state;
    Host h = { 0 };
    qcc_context *cx = opened(&h);
    host_refuse(&h, 0, true);
    assert_int_equal(context_call(cx, stumble, cx), QCC_INTERNAL);
    assert_string_equal(h.text, "qcc: a mistake of qcc's own, and no memory to say which\n");
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void closing_has_a_landing(void **state)
{
    (void)state;
    Host h = { 0 };
    qcc_context *cx = opened(&h);
    host_refuse(&h, 0, true);
    context_release(cx, greedy, cx);
    assert_int_equal(h.refused, 1);
    assert_int_equal(context_call(cx, fine, cx), QCC_INTERNAL);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_told_and_ends_the_context),
        cmocka_unit_test(a_mistake_without_memory_is_told_too),
        cmocka_unit_test(closing_has_a_landing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
