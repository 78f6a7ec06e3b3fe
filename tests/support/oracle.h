/* What other programs say of our files: scripts for Python's packages. */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

/* Runs `script` over `folder` with a Python that has `modules`; the test is skipped where none has, and fails when the
 * script does. */
void ask_oracle(const char *modules, const char *script, const char *folder);

#endif
