/* A host of the library (tests/support/host.h), and what the tests of embedding share. */
#ifndef TESTS_EMBED_HOST_H
#define TESTS_EMBED_HOST_H

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>

#include "support/host.h"

#include <cmocka.h>

static inline qcc_context *open_with(Host *h)
{
    const qcc_context_options o = options_of(h);
    qcc_context *cx = NULL;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

/* A locale with a comma, made in a folder where the system has the parts for it. */
static inline bool comma_locale(const char *folder)
{
    char line[256];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(line, sizeof line, "mkdir -p %s && localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder,
             folder, folder);
    if (system(line) > 255)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

#endif
