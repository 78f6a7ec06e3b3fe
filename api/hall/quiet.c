#include "api/hall/quiet.h"

static void hear(void *user, const Message *m)
{
    Quiet *q = user;
    if (m->severity == SEVERITY_ERROR && !q->first)
        q->first = m;
}

static void hear_no_more(void *user)
{
    const Quiet *q = user;
    *q->diag = q->before;
}

void quiet_begin(Quiet *q, Memory *memory, Diag *diag)
{
    *q = (Quiet){ .diag = diag, .before = *diag };
    cleanup_push(memory, &q->cleanup, hear_no_more, q);
    diag->report = hear;
    diag->user = q;
    diag->warnings_are_errors = false;
}

void quiet_end(Quiet *q)
{
    cleanup_drop(&q->cleanup);
    hear_no_more(q);
}
