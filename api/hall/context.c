#include "api/hall/context.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "api/hall/devices.h"
#include "api/hall/report.h"
#include "base/fp_env.h"

/* The options as this version knows them; a caller built for an older one gave fewer. */
static bool take_options(const qcc_context_options *given, qcc_context_options *o)
{
    *o = (qcc_context_options){ .size = sizeof *o };
    if (given) {
        if (given->size < offsetof(qcc_context_options, alloc))
            return false;
        memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    }
    if (!o->alloc != !o->release || o->threads < 0)
        return false;
    if (!o->alloc) {
        o->alloc = memory_host.alloc;
        o->release = memory_host.release;
    }
    return true;
}

static void *pool_alloc(void *user, size_t size)
{
    return memory_try_block(user, size);
}

static void pool_release(void *user, void *block, size_t size)
{
    memory_release(user, block, size);
}

Parallel *context_pool(qcc_context *cx)
{
    const ParallelMemory memory = { pool_alloc, pool_release, &cx->memory };
    const int threads = cx->options.threads ? cx->options.threads : parallel_processors();
    if (!cx->pool && !cx->no_pool && threads > 1) {
        cx->pool = parallel_open(threads, &memory);
        cx->no_pool = !cx->pool;
    }
    return cx->pool;
}

static void keep_kernels(qcc_context *cx, const char *folder)
{
    cx->cache_bytes = strlen(folder) + 1;
    cx->cache_said = memory_block(&cx->memory, cx->cache_bytes);
    memcpy(cx->cache_said, folder, cx->cache_bytes);
    cx->device.cache = cache_folder(cx->cache_said);
}

/* What the options say in words. */
static Status read_options(void *arg)
{
    qcc_context *cx = arg;
    cx->device.version = qcc_version();
    cx->device.unmeasured = cx->options.no_measure != 0;
    if (cx->options.cache)
        keep_kernels(cx, cx->options.cache);
    Place place = { .file = "qcc_open", .where = "limits", .byte = -1 };
    if (cx->options.limits)
        TRY(limits_read(&cx->diag, place, str(cx->options.limits), &cx->limits));
    place.where = "matmul";
    if (cx->options.matmul)
        TRY(products_read(&cx->diag, place, cx->options.matmul, &cx->device.products));
    place.where = "device";
    return device_read(&cx->diag, place, cx->options.device, &cx->scratch, &cx->engine, &cx->device);
}

qcc_status qcc_open(const qcc_context_options *options, qcc_context **context)
{
    qcc_context_options o;
    if (!context || !take_options(options, &o))
        return QCC_USAGE;
    qcc_context *cx = o.alloc(o.user, sizeof *cx);
    if (!cx)
        return QCC_NO_MEMORY;
    *cx = (qcc_context){
        .options = o, .limits = LIMITS_DEFAULT, .kernels = kernels_best(), .process = own_process(), .verbosity = 1
    };
    memory_open(&cx->memory, &(Allocator){ o.alloc, o.release, o.user });
    cx->memory.strict = true;
    cx->memory.budget = o.memory;
    cx->memory.used = cx->memory.peak = sizeof *cx;
    arena_open(&cx->scratch, &cx->memory);
    arena_keep(&cx->scratch);
    diag_open(&cx->diag, &cx->scratch, report_message, cx);
    cx->diag.warnings_are_errors = o.warnings_are_errors != 0;
    cx->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const qcc_status status = cx->locale ? context_call(cx, read_options, cx) : QCC_NO_MEMORY;
    if (status != QCC_OK) {
        qcc_close(cx);
        return status;
    }
    *context = cx;
    return QCC_OK;
}

void context_hold(qcc_context *cx, Held *held, void *thing, void (*close)(void *thing))
{
    *held = (Held){ .older = cx->held, .thing = thing, .close = close };
    if (held->older)
        held->older->newer = held;
    cx->held = held;
}

void context_let_loose(qcc_context *cx, Held *held)
{
    if (held->newer)
        held->newer->older = held->older;
    else if (cx->held == held) /* a thing that is given up before it was held is not there */
        cx->held = held->older;
    if (held->older)
        held->older->newer = held->newer;
}

typedef struct Forget {
    qcc_context *cx;
    const Held *last;
} Forget;

static Status do_forget(void *arg)
{
    const Forget *f = arg;
    while (f->cx->held != f->last)
        f->cx->held->close(f->cx->held->thing);
    return OK;
}

void context_forget(qcc_context *cx, const Held *last)
{
    Forget f = { cx, last };
    if (memory_closing(&cx->memory, do_forget, &f) != OK)
        cx->poisoned = true; /* as in context_release */
}

static void close_all(void *context)
{
    qcc_context *cx = context;
    context_forget(cx, NULL);
    parallel_close(cx->pool);
    memory_release(&cx->memory, cx->cache_said, cx->cache_bytes);
    arena_close(&cx->scratch);
    if (cx->locale)
        freelocale(cx->locale);
    cx->closed = true;
}

void qcc_close(qcc_context *cx)
{
    if (!cx)
        return;
    context_release(cx, close_all, cx);
    if (!cx->closed)
        return;
    own_process_close(&cx->process);
    cx->options.release(cx->options.user, cx, sizeof *cx);
}

void qcc_interrupt(qcc_context *cx)
{
    cx->stop = cx->stop ? 2 : 1;
    cx->hurry = cx->stop > 1;
}

unsigned qcc_grace(const qcc_context *cx)
{
    enum { USUAL = 25 };
    const unsigned all = cx->grace > 0 ? (unsigned)cx->grace : USUAL, saving = all / 5;
    return all - saving ? all - saving : 1;
}

void qcc_request_save(qcc_context *cx)
{
    cx->save = 1;
}

/* What was said first tells why: a value that could not be read, where it was not needed after all, or a file whose bytes
 * did not come, which is not what it would be to hold the wrong ones. */
static Status outcome_of(Status status, Status first)
{
    return status == OK || first == IO ? first : status;
}

bool context_take(qcc_context *cx)
{
    return !atomic_exchange_explicit(&cx->busy, true, memory_order_acquire);
}

void context_let_go(qcc_context *cx)
{
    atomic_store_explicit(&cx->busy, false, memory_order_release);
}

typedef struct Release {
    void (*release)(void *thing);
    void *thing;
} Release;

static Status do_release(void *arg)
{
    const Release *r = arg;
    r->release(r->thing);
    return OK;
}

void context_release(qcc_context *cx, void (*release)(void *thing), void *thing)
{
    Release r = { release, thing };
    if (!context_take(cx)) /* the host's own release may not call back either */
        return;
    const int error = errno;
    if (memory_closing(&cx->memory, do_release, &r) != OK)
        cx->poisoned = true; /* a mistake of ours left it half closed: the rest is lost, the host lives */
    if (!cx->closed)
        context_let_go(cx);
    errno = error;
}

static Status tell_mistake(void *arg)
{
    qcc_context *cx = arg;
    return fail_as(&cx->diag, INTERNAL, NOWHERE, "a mistake of qcc's own, please report it: %s", cx->memory.mistake);
}

qcc_status context_enter(qcc_context *cx)
{
    if (!cx)
        return QCC_USAGE;
    if (!own_process_here(&cx->process))
        return QCC_FORKED;
    if (!context_take(cx))
        return QCC_BUSY;
    if (!cx->poisoned)
        return QCC_OK;
    context_let_go(cx);
    return QCC_INTERNAL;
}

qcc_status context_run(qcc_context *cx, Status (*fn)(void *arg), void *arg)
{
    const int error = errno;
    const FpEnv environment = fp_env_enter();      /* the host may round otherwise, */
    const locale_t locale = uselocale(cx->locale); /* and write its numbers otherwise */
    cx->stop = cx->hurry = cx->save = cx->grace = 0;
    cx->memory.held = 0;
    cx->diag.n_errors = cx->diag.n_warnings = 0;
    cx->diag.files = NULL;
    const Held *last = cx->held;
    Status status = guarded(&cx->memory, fn, arg);
    if (status != OK) /* what was made on the way belongs to nobody */
        context_forget(cx, last);
    if (status == NO_MEMORY)
        report_no_memory(cx);
    if (cx->memory.mistake && status == INTERNAL) { /* what it left behind is not to be trusted */
        if (guarded(&cx->memory, tell_mistake, cx) == NO_MEMORY)
            report_mistake(cx);
        cx->poisoned = true;
    }
    if ((status == OK || status == INVALID) && cx->diag.n_errors)
        status = outcome_of(status, cx->diag.first);
    arena_close(&cx->scratch);
    arena_keep(&cx->scratch);
    cx->diag.file = NULL;
    cx->diag.files = NULL; /* of a command that a jump left */
    uselocale(locale);
    fp_env_leave(environment);
    errno = error;
    return (qcc_status)status;
}

qcc_status context_call(qcc_context *cx, Status (*fn)(void *arg), void *arg)
{
    qcc_status status = context_enter(cx);
    if (status != QCC_OK)
        return status;
    cx->memory.stop = &cx->stop; /* calls of sessions end between two nodes instead, so that they may go on */
    status = context_run(cx, fn, arg);
    cx->memory.stop = NULL;
    context_let_go(cx);
    return status;
}
