/* Whether this still is the process that something was made in, asked often: a child of fork() has the thing, but neither
 * its threads nor a right to what it shares. */
#ifndef BASE_OWN_PROCESS_H
#define BASE_OWN_PROCESS_H

#include <stdbool.h>

typedef struct OwnProcess {
    char *page; /* a page that is zero in children; null: the system has none, and is asked for its number each time */
    long pid;
} OwnProcess;

/* Remembers the process that calls. */
OwnProcess own_process(void);

/* Whether it is the one that calls now; no system call where the system can say so by a page. */
bool own_process_here(const OwnProcess *p);

/* Gives the page back, in the process or in a child of it. */
void own_process_close(OwnProcess *p);

#endif
