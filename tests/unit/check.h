/* What every unit test includes: cmocka and its prerequisites, in the order it wants them. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Fails with a formatted message when `condition` is false. */
#define check_that(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg(__VA_ARGS__);                                                                                     \
    } while (0)

#endif
