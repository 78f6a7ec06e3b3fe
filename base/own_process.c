#include "base/own_process.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

OwnProcess own_process(void)
{
    OwnProcess p = { .pid = (long)getpid() };
#ifdef MADV_WIPEONFORK
    char *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return p;
    if (madvise(page, page_size(), MADV_WIPEONFORK) == 0) {
        *page = 1;
        p.page = page;
    } else {
        munmap(page, page_size());
    }
#endif
    return p;
}

bool own_process_here(const OwnProcess *p)
{
    return p->page ? *(const volatile char *)p->page != 0 : p->pid == (long)getpid();
}

void own_process_close(OwnProcess *p)
{
    if (p->page)
        munmap(p->page, page_size());
    p->page = NULL;
}
