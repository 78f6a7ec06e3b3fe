/* How much memory there is: control groups of both versions, in folders made for it. */
#include "base/machine_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/check.h"

static char root[] = "/tmp/qcc-machine-XXXXXX";

/* A file under the root, its folders made. */
static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(whole, 0777);
        *p = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void bounds_of_groups_count(void **state)
{
    (void)state;
    assert_int_equal(machine_memory(root), 0); /* nothing is known */
    put("/proc/self/cgroup", "0::/user/job\n");
    assert_int_equal(machine_memory(root), 0);
    put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    assert_int_equal(machine_memory(root), 0);
    put("/sys/fs/cgroup/user/memory.max", "8000000000\n");
    assert_int_equal(machine_memory(root), 8000000000);
    put("/sys/fs/cgroup/user/job/memory.max", "4000000000\n");
    assert_int_equal(machine_memory(root), 4000000000);
    put("/sys/fs/cgroup/memory.max", "3000000000\n"); /* of the group that is all there is to see */
    assert_int_equal(machine_memory(root), 3000000000);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(machine_memory(root), 3000000000);
    put("/proc/self/cgroup", "12:cpu,cpuacct:/a\n7:hugetlb,memory:/a/b\n");
    assert_int_equal(machine_memory(root), 0);
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000000000\n");
    assert_int_equal(machine_memory(root), 2000000000);
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(machine_memory(root), 2000000000);
    put("/proc/self/cgroup", "7:memory2:/a\nnonsense\n:\n");
    assert_int_equal(machine_memory(root), 0);
}

static void this_machine_has_some(void **state)
{
    (void)state;
    const uint64_t bytes = machine_memory("");
    assert_true(bytes > 1 << 20);
    assert_true(bytes <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

int main(void)
{
    char clean[64];
    assert_non_null(mkdtemp(root));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_groups_count),
        cmocka_unit_test(this_machine_has_some),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(clean, sizeof clean, "rm -r %s", root);
    return system(clean) != 0 || failed;
}
