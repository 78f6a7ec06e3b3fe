#include "support/oracle.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "testing.h"

void ask_oracle(const char *modules, const char *script, const char *folder)
{
    enum { SKIPPED = 77 };
    char command[4096];
    snprintf(command, sizeof command, "'%s/tests/python/oracle' '%s' '%s' '%s'", QCC_SOURCE_DIR, modules, script,
             folder);
    fflush(stdout);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}
