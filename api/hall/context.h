/* What a context holds, and how a public call enters it. */
#ifndef API_HALL_CONTEXT_H
#define API_HALL_CONTEXT_H

#include <locale.h>

#include "base/own_process.h"
#include "base/parallel.h"
#include "ops/card/cards.h"
#include "qcc/qcc.h"
#include "runtime/engine.h"

/* Something that a host holds: models, steps, sessions.  It goes with its context. */
typedef struct Held {
    struct Held *older, *newer;
    void *thing;
    void (*close)(void *thing); /* gives the thing back, with context_let_loose */
} Held;

/* What is made again for the backward side instead of being kept till then, from the least to the most (--remat). */
typedef enum Remat {
    REMAT_NONE,
    REMAT_CHEAP, /* what rows and casts make */
    REMAT_BLOCK, /* all but what is alive at borders of blocks */
    REMAT_FULL,  /* most of that, too */
    REMATS,
} Remat;

/* How programs are made. */
typedef struct Lowering {
    Remat remat;
    uint64_t most; /* bytes of the arena: the first from `remat` on that needs no more is taken; 0: no bound */
} Lowering;

/* "block". */
const char *remat_name(Remat r);

/* What is made again then, in a few words. */
const char *remat_text(Remat r);

struct qcc_context {
    Memory memory;
    Arena scratch; /* of the call that runs */
    Diag diag;     /* its messages live in scratch */
    Limits limits;
    qcc_context_options options;
    const Kernels *kernels;
    const Engine *engine;     /* of sessions that do not say another */
    DeviceUse device;         /* and where those run */
    Lowering lowering;        /* how engines' programs are made */
    bool weighs;              /* steps are made to see what they take, and never run */
    const LaunchWatch *watch; /* what sessions and models tell of their launches; null: nobody asks */
    char *cache_said;         /* of the options: a copy, of so many bytes */
    size_t cache_bytes;
    Parallel *pool;     /* opened when first wanted */
    bool no_pool;       /* it was refused */
    locale_t locale;    /* C: numbers are written and read the same everywhere */
    OwnProcess process; /* that opened it */
    _Atomic int stop;   /* times the call was asked to end */
    _Atomic int hurry;  /* not 0: at once */
    _Atomic int save;   /* a run is asked for a checkpoint */
    _Atomic int grace;  /* seconds that a run asked to end has; 0: nothing was said */
    _Atomic bool busy;  /* a call runs: of this thread, which then is in a callback, or of another */
    bool poisoned;      /* after a mistake of ours: only closing is legal */
    bool closed;        /* everything was given back */
    bool as_json;       /* messages, as the command was asked to */
    bool bounded;       /* the bound on memory is the command's own */
    int verbosity;      /* of the command: -1 errors and warnings alone, 0, 1 remarks too */
    Held *held;         /* what hosts hold, the newest first */
};

/* Takes the context for a call, in one step that no other thread can come between; false while a call runs. */
bool context_take(qcc_context *cx);

/* Ends what context_take began. */
void context_let_go(qcc_context *cx);

/* Takes the context for a call: refused in a forked child, inside callbacks, and while another thread is in a call. */
qcc_status context_enter(qcc_context *cx);

/* Runs fn(arg) as the call that was entered, with a landing point for exhausted memory, leaving errno alone. */
qcc_status context_run(qcc_context *cx, Status (*fn)(void *arg), void *arg);

/* Enters, runs fn(arg) and lets go. */
qcc_status context_call(qcc_context *cx, Status (*fn)(void *arg), void *arg);

/* Runs release(thing), which gives back something that hosts hold: it asks for no memory, so that it works where there is
 * none.  Inside a callback nothing happens; the host's errno stays. */
void context_release(qcc_context *cx, void (*release)(void *thing), void *thing);

/* The threads of the context; null for one. */
Parallel *context_pool(qcc_context *cx);

/* The thing belongs to the context from here on, which closes it at the latest when it is closed itself. */
void context_hold(qcc_context *cx, Held *held, void *thing, void (*close)(void *thing));

/* It does not any more. */
void context_let_loose(qcc_context *cx, Held *held);

/* Gives back what is held since `last` was the newest, the newest first. */
void context_forget(qcc_context *cx, const Held *last);

/* What an option like --memory-limit says, in bytes, 0: none; USAGE where it says nothing.  `machine` is what there is, 0:
 * not known. */
Status memory_size_read(Diag *d, const char *option, const char *text, uint64_t machine, uint64_t *bytes);

/* Applies "name=value" pairs, separated by commas or lines, to limits. */
Status limits_read(Diag *d, Place place, Str text, Limits *limits);

#endif
