/* The examples of the documentation: every block marked ```qir in docs/ is read, verified and printed. */
#include "support/language.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "ir/verify.h"
#include "unit/check.h"

/* Checks the blocks of one page; how many there were. */
static int check_page(const char *path)
{
    static const char fence[] = "```qir\n";
    Language l;
    Str page;
    int blocks = 0;
    language_open(&l);
    assert_int_equal(file_read(&l.arena, &l.diag, path, 1 << 24, "model_bytes", &page), OK);
    for (const char *at = strstr(page.p, fence); at; at = strstr(at, fence)) {
        at += sizeof fence - 1;
        const char *end = strstr(at, "```");
        check_that(end, "%s: a block without end", path);
        const char *text = arena_copy(&l.arena, at, (size_t)(end - at));
        Module *m = language_parse(&l, text, NULL);
        check_that(m && verify_module(m, &l.source) == OK, "%s: %s", path, text_get(&l.messages));
        const char *once = language_print(&l, m, NULL);
        m = language_parse(&l, once, NULL);
        assert_non_null(m);
        assert_string_equal(language_print(&l, m, NULL), once);
        blocks++;
    }
    language_close(&l);
    return blocks;
}

static void every_example_is_a_graph(void **state)
{
    (void)state;
    const char *folder = QCC_SOURCE_DIR "/docs";
    DIR *d = opendir(folder);
    int blocks = 0;
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[4096];
        const size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".md") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        blocks += check_page(path);
    }
    closedir(d);
    assert_true(blocks >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_example_is_a_graph) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
