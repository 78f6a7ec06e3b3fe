/* Steps that the device commits by itself.  Behind the launches that may refuse a step, or make what has to be finite, one kernel
 * decides whether it is applied; late launches, and the copies behind them, look at what it said.  All that is one recorded graph,
 * which has the same arguments in each step: what changes lies in memory of the device.
 *
 * What the kernel said goes to pinned memory behind the graph, with the flags of launches that refuse, and an event says when it
 * is there.  A step that is not applied holds those behind it until somebody was told of it: they are not applied either, and
 * whoever asked for them asks again, or does not. */
#include <string.h>

#include "runtime/cuda/launches_parts.h"

static size_t told_bytes(void)
{
    return (COMMIT_TOLD + COMMIT_NUMBERS) * sizeof(uint64_t);
}

static Commit *commit_of(const ProgramRunner *p)
{
    return &launches_of(p)->commit;
}

/* ---- opening ---- */

/* Why the host has to decide about steps of the program; null: it need not. */
static const char *why_host(const ProgramRunner *p)
{
    const Program *program = p->program;
    if (p->n_parts == 1 || launches_of(p)->kernels->commit < 0)
        return "nothing of it is late";
    for (int i = 0; i < program->n_launches; i++) {
        const LaunchKernels *k = launch_of(p, i)->how;
        if (!k->launch.n)
            return "a launch runs on the host";
        if (program->launches[i].part != STEP_LATE)
            continue;
        if (k->launch.refuses)
            return "what makes the next value of a state may refuse it";
        for (int n = k->n_product; n < k->launch.n; n++)
            for (int o = 0; o < program->launches[i].n_out && k->launch.kernels[n].product; o++)
                if (program->launches[i].out[o].home == HOME_NEXT)
                    return "a library makes the next value of a state";
    }
    return NULL;
}

/* As the first step is asked for: who opens a session may be ended by a jump, and these nobody else gives back. */
static void open_answers(ProgramRunner *p, Commit *c)
{
    Device *device = launches_of(p)->device;
    c->bytes = told_bytes() + refused_bytes(p);
    for (int i = 0; i < COMMIT_ANSWERS; i++) {
        void *pinned = NULL;
        if (device_well(device) &&
            device_did(device, device->driver.alloc_host(&pinned, c->bytes), "taking pinned memory"))
            c->answers[i].pinned = pinned;
        if (device_well(device))
            (void)device_did(device, device->driver.event(&c->answers[i].there, CUDA_EVENT_ORDER), "making an event");
    }
}

void commit_open(ProgramRunner *p, bool refuses)
{
    static const uint64_t first[COMMIT_TOLD] = { [COMMIT_ALWAYS] = 1 };
    DeviceLaunches *l = launches_of(p);
    l->commit.why = why_host(p);
    if (!refuses && l->kernels->commit < 0)
        return;
    l->told = space_of(p)->does->take(space_of(p), told_bytes() + refused_bytes(p));
    l->refused = (char *)l->told + told_bytes();
    space_write(space_of(p), l->told, first, sizeof first);
    space_of(p)->does->zero(space_of(p), l->refused, refused_bytes(p));
}

void commit_close(ProgramRunner *p)
{
    Commit *c = commit_of(p);
    Driver *driver = &launches_of(p)->device->driver;
    for (int i = 0; i < COMMIT_ANSWERS; i++) {
        if (c->answers[i].there)
            (void)driver->end_event(c->answers[i].there);
        if (c->answers[i].pinned)
            (void)driver->give_back_host(c->answers[i].pinned);
    }
}

void commit_give(ProgramRunner *p)
{
    DeviceLaunches *l = launches_of(p);
    void *const blocks[] = { l->told, l->commit.asked.at, l->commit.moves.at };
    for (size_t i = 0; i < COUNT(blocks); i++)
        if (blocks[i])
            space_of(p)->does->give(space_of(p), blocks[i]);
}

const void *commit_applied(const ProgramRunner *p)
{
    const DeviceLaunches *l = launches_of(p);
    return (const uint64_t *)l->told + (l->commit.decides ? COMMIT_APPLIED : COMMIT_ALWAYS);
}

/* ---- what the two kernels read ---- */

static void add_word(const ProgramRunner *p, CommitWords *w, uint64_t word)
{
    GROW(launches_of(p)->arena, w->now, w->n, w->cap);
    w->now[w->n++] = word;
}

/* Has what was added lie on the device: it is written where it is not what it was. */
static void settle_words(const ProgramRunner *p, CommitWords *w)
{
    Space *space = space_of(p);
    if (w->n > w->room) {
        if (w->at)
            space->does->give(space, w->at);
        w->room = 2 * w->n;
        w->at = space->does->take(space, w->room * sizeof *w->now);
        w->was = NEWS(launches_of(p)->arena, uint64_t, w->room);
        w->n_was = 0;
    }
    if (!w->at || (w->n == w->n_was && memcmp(w->now, w->was, w->n * sizeof *w->now) == 0))
        return;
    memcpy(w->was, w->now, w->n * sizeof *w->now);
    w->n_was = w->n;
    space_write(space, w->at, w->now, w->n * sizeof *w->now);
}

/* The bits of an exponent of ones; 0: such numbers have none. */
static uint64_t exponent_of(DType d)
{
    return d == F32 ? 0x7f800000 : d == F64 ? 0x7ff0000000000000 : d == F16 ? 0x7c00 : d == BF16 ? 0x7f80 : 0;
}

/* The result that a number is an element of; null: there is none. */
static const Tensor *number_of(const ProgramRunner *p, const StepNumber *number)
{
    const Tensor *t = number->result < 0 ? NULL : program_settled(&p->runner, number->result);
    if (!t || t->type->kind != TYPE_TENSOR)
        return NULL;
    const int64_t n = tensor_elements(t);
    return (number->needed ? n > number->element : n == 1) ? t : NULL;
}

static size_t number_bytes(const Tensor *t)
{
    return t->bytes / (size_t)tensor_elements(t);
}

/* The bool that says whether a step is applied; null: there is none. */
static const Tensor *saying_of(const ProgramRunner *p, const EngineStep *step)
{
    const Tensor *t = step->says ? number_of(p, &(StepNumber){ .result = step->applied }) : NULL;
    return t && t->type->dtype == BOOL ? t : NULL;
}

bool commit_decides(const ProgramRunner *p, const EngineStep *step)
{
    if (commit_of(p)->why || (step->says && !saying_of(p, step)))
        return false;
    for (int i = 0; i < step->n_numbers; i++) {
        const StepNumber *number = &step->numbers[i];
        const Tensor *t = number_of(p, number);
        if (!t && number->needed)
            return false;
        if (t && (number_bytes(t) > sizeof(uint64_t) ||
                  (number->finite && dtype_is_float(t->type->dtype) && !exponent_of(t->type->dtype))))
            return false;
    }
    return true;
}

static void ask(ProgramRunner *p, const EngineStep *step, CommitAnswer *answer)
{
    CommitWords *w = &commit_of(p)->asked;
    uint64_t n = 0;
    w->n = 0;
    for (int i = 0; i < step->n_numbers; i++) {
        const Tensor *t = number_of(p, &step->numbers[i]);
        answer->types[i] = t ? t->type : NULL;
        n += t != NULL;
    }
    answer->n = step->n_numbers;
    const Tensor *says = saying_of(p, step);
    add_word(p, w, n);
    add_word(p, w, (uint64_t)p->program->n_launches);
    add_word(p, w, says ? device_address(says->data) : 0);
    for (int i = 0; i < step->n_numbers; i++) {
        const StepNumber *number = &step->numbers[i];
        const Tensor *t = number_of(p, number);
        if (!t)
            continue;
        add_word(p, w, device_address(t->data) + (size_t)number->element * number_bytes(t));
        add_word(p, w, number_bytes(t));
        add_word(p, w, number->finite ? exponent_of(t->type->dtype) : 0);
    }
    settle_words(p, w);
}

static void move(ProgramRunner *p, const RunnerStep *step)
{
    CommitWords *w = &commit_of(p)->moves;
    w->n = 0;
    for (int i = 0; i < step->n_copies; i++) {
        const StepCopy *copy = &step->copies[i];
        for (size_t at = 0; at < copy->to->bytes; at += COMMIT_PIECE) {
            const size_t left = copy->to->bytes - at;
            add_word(p, w, device_address(copy->to->data) + at);
            add_word(p, w, device_address(copy->from->data) + at);
            add_word(p, w, left < COMMIT_PIECE ? left : COMMIT_PIECE);
            add_word(p, w, copy->always ? COMMIT_COUNTS : COMMIT_APPLIED);
        }
    }
    settle_words(p, w);
}

/* ---- the two kernels ---- */

static void launch(const ProgramRunner *p, CudaFunction *function, size_t blocks, unsigned threads, void **arguments)
{
    Device *device = launches_of(p)->device;
    if (device_well(device) && blocks)
        (void)device_did(
            device,
            device->driver.launch(function, (unsigned)blocks, 1, 1, threads, 1, 1, 0, device->stream, arguments, NULL),
            "launching a kernel");
}

void commit_decide(const ProgramRunner *p)
{
    const DeviceLaunches *l = launches_of(p);
    CudaAddress asked = device_address(l->commit.asked.at), refused = device_address(l->refused),
                told = device_address(l->told);
    launch(p, l->commit.decide, 1, COMMIT_DECIDERS, (void *[]){ &asked, &refused, &told });
}

void commit_move(const ProgramRunner *p)
{
    const DeviceLaunches *l = launches_of(p);
    CudaAddress moves = device_address(l->commit.moves.at), told = device_address(l->told);
    launch(p, l->commit.move, l->commit.moves.n / 4, COMMIT_MOVERS, (void *[]){ &moves, &told });
}

/* ---- steps ---- */

/* On its way to the host, behind what the step runs. */
static void send(const ProgramRunner *p, const CommitAnswer *answer)
{
    Device *device = launches_of(p)->device;
    if (device_well(device) && device_did(device,
                                          device->driver.read(answer->pinned, device_address(launches_of(p)->told),
                                                              commit_of(p)->bytes, device->stream),
                                          "copying from it"))
        (void)device_did(device, device->driver.record(answer->there, device->stream), "noting that a step ended");
}

Status commit_step(ProgramRunner *p, const RunnerStep *step)
{
    DeviceLaunches *l = launches_of(p);
    Commit *c = &l->commit;
    BUG_IF(p->ir->memory, c->n == COMMIT_ANSWERS);
    CommitAnswer *answer = &c->answers[(c->first + c->n) % COMMIT_ANSWERS];
    if (!answer->pinned)
        open_answers(p, c);
    c->decides = true;
    ask(p, step->asked, answer);
    move(p, step);
    launches_run(p, 0, p->program->n_launches);
    c->decides = false;
    send(p, answer);
    answer->step = l->step + 1;
    c->n++;
    return space_status(space_of(p));
}

/* What was asked for behind a step that was not applied never was. */
static void let_go(ProgramRunner *p)
{
    uint64_t *told = launches_of(p)->told;
    commit_of(p)->n = 0;
    space_of(p)->does->zero(space_of(p), told + COMMIT_HELD, sizeof *told);
}

/* What a step was told to be, out of what came. */
static void take_numbers(const CommitAnswer *answer, EngineTold *told)
{
    uint64_t *numbers = (uint64_t *)(void *)answer->pinned + COMMIT_TOLD;
    for (int i = 0; i < answer->n; i++) {
        told->there[i] = answer->types[i] != NULL;
        if (!told->there[i])
            continue;
        const Tensor number = { .type = answer->types[i], .data = numbers++, .bytes = sizeof *numbers };
        told->numbers[i] = tensor_get_f64(&number, 0);
        if (!dtype_is_float(answer->types[i]->dtype))
            told->integers[i] = tensor_get_i64(&number, 0);
    }
}

Status commit_told(ProgramRunner *p, EngineTold *told)
{
    Commit *c = commit_of(p);
    Device *device = launches_of(p)->device;
    const CommitAnswer *answer = &c->answers[c->first];
    BUG_IF(p->ir->memory, !c->n);
    if (device_well(device))
        (void)device_did(device, device->driver.wait_event(answer->there), "waiting for a step");
    c->first = (c->first + 1) % COMMIT_ANSWERS;
    c->n--;
    TRY(space_status(space_of(p)));
    const uint32_t *flags = (const uint32_t *)(const void *)((const char *)answer->pinned + told_bytes());
    *told = (EngineTold){ .applied = ((const uint64_t *)(const void *)answer->pinned)[COMMIT_APPLIED] != 0 };
    if (!told->applied)
        let_go(p);
    for (int i = 0; i < p->program->n_launches; i++)
        if (flags[i])
            return launch_refused(p, i, answer->step);
    take_numbers(answer, told);
    return space_status(space_of(p));
}
