/* Programs, launch by launch, on stored models that train: a check that finds what is wrong with one, steps that ask for no
 * memory, and steps that are stopped behind any launch. */
#include <string.h>

#include "api/hall/lower.h"
#include "api/make/step.h"
#include "support/stored.h"

enum { CLASSES = 5, MOST_STOPS = 60 };

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    LaunchWatch watch;
    int64_t ran, stop_behind; /* launches; below 0: never */
} Case;

static int64_t broken, found, steps, stopped, kept, contracts;

static void launched(void *user, const Program *p, int launch, int n, double began, double ended)
{
    Case *k = user;
    (void)p, (void)launch, (void)n, (void)began, (void)ended;
    if (k->ran++ == k->stop_behind)
        qcc_request_stop(k->session);
}

static void open_case(Case *k, const char *options, bool watched)
{
    const qcc_context_options o = { .size = sizeof o, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path);
    k->watch = (LaunchWatch){ launched, k };
    k->stop_behind = -1;
    MUST(k, qcc_open(&o, &k->cx));
    k->cx->watch = watched ? &k->watch : NULL;
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model, options, &k->step));
    MUST(k, qcc_start(k->step, NULL, &k->session));
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const Value *v = &k->step->inputs[i];
        const qcc_tensor x = stored_draw(k->s, v->name, v->type, CLASSES);
        MUST(k, qcc_bind(k->session, v->name, &x));
    }
}

/* ---- what is wrong with a program ---- */

typedef enum Fault {
    OUTSIDE,       /* a result beyond the arena */
    UNWRITTEN,     /* an operand where nobody has written yet */
    OVER_OPERAND,  /* a result over an operand of a call */
    OVER_RESULT,   /* a result over a value that a later launch reads */
    WRONG_PART,    /* a launch of another part */
    NO_CONSTANT,   /* a constant that there is not */
    NO_STATE_NEXT, /* a next value of no state */
    EARLY_NEXT,    /* a next value before its part */
    READS_BESIDE,  /* a launch beside the one that makes what it reads */
    OVER_FACTOR,   /* a result over what the product of its launch reads, or what goes into it behind */
    PRODUCT_READ,  /* a product over what its launch reads */
    OTHER_OPERAND, /* a product beside one that multiplies something else */
    PRODUCT_MADE,  /* a product in the place of a result that does not lie over it */
    FAULTS
} Fault;

static Program *copied(const Program *p, Arena *arena)
{
    Program *c = NEW(arena, Program);
    *c = *p;
    c->launches = NEWS(arena, Launch, p->n_launches + 1);
    for (int i = 0; i < p->n_launches; i++) {
        Launch *l = &c->launches[i];
        *l = p->launches[i];
        l->in = NEWS(arena, ProgramValue, l->n_in + 1);
        l->out = NEWS(arena, ProgramValue, l->n_out + 1);
        l->over = NEWS(arena, int, l->n_out + 1);
        memcpy(l->over, p->launches[i].over, sizeof *l->over * (size_t)l->n_out);
        memcpy(l->in, p->launches[i].in, sizeof *l->in * (size_t)l->n_in);
        memcpy(l->out, p->launches[i].out, sizeof *l->out * (size_t)l->n_out);
    }
    return c;
}

static bool is_large(const ProgramValue *v)
{
    size_t bytes = 0;
    return v->home == HOME_ARENA && type_bytes(v->type, &bytes) && bytes > 0;
}

/* A launch reads in the arena what an earlier one made; another writes over it in between. */
static bool write_over(Program *p, int launch)
{
    const Launch *l = &p->launches[launch];
    for (int i = 0; i < l->n_in; i++)
        for (int k = launch - 2; k >= 0 && is_large(&l->in[i]); k--)
            for (int o = 0; o < p->launches[k].n_out; o++)
                if (p->launches[k].out[o].home == HOME_ARENA && p->launches[k].out[o].at == l->in[i].at &&
                    p->launches[launch - 1].n_out && is_large(&p->launches[launch - 1].out[0]) &&
                    p->launches[launch - 1].out[0].at != l->in[i].at) {
                    p->launches[launch - 1].out[0].at = l->in[i].at;
                    return true;
                }
    return false;
}

/* The first operand that lies in the arena; below 0: none does. */
static int read_in_arena(const Launch *l)
{
    for (int i = 0; i < l->n_in; i++)
        if (is_large(&l->in[i]))
            return i;
    return -1;
}

static bool spoil_product(Launch *l, Fault fault)
{
    const int read = read_in_arena(l);
    if (l->kind != LAUNCH_CONTRACT || (fault != PRODUCT_MADE && read < 0))
        return false;
    if (fault == PRODUCT_READ) {
        l->product.at = l->in[read].at;
    } else if (fault == OVER_FACTOR) {
        l->out[0].at = l->in[read].at;
        l->over[0] = read;
    } else {
        l->product.at = l->out[0].at;
        l->over[0] = LIES_APART;
    }
    return true;
}

/* Makes a launch wrong; false where it cannot be wrong in this way. */
static bool spoil(Program *p, int launch, Fault fault)
{
    Launch *l = &p->launches[launch];
    ProgramValue *in = l->n_in ? &l->in[0] : NULL, *out = l->n_out ? &l->out[0] : NULL;
    switch (fault) {
    case OUTSIDE:
        if (!out || !is_large(out))
            return false;
        out->at = p->arena;
        return true;
    case UNWRITTEN:
        if (launch != 0 || !in || in->home == HOME_NONE || type_elements(in->type) == 0)
            return false;
        *in = (ProgramValue){ HOME_ARENA, 0, in->type, 0 };
        return true;
    case OVER_OPERAND:
        if (l->kind != LAUNCH_CALL || !in || !out || !is_large(in) || !is_large(out))
            return false;
        out->at = in->at;
        return true;
    case OVER_RESULT:
        return launch > 1 && write_over(p, launch);
    case WRONG_PART:
        l->part = l->part == STEP_FORWARD ? STEP_UPDATE : STEP_FORWARD;
        return true;
    case NO_CONSTANT:
        if (!in || in->home != HOME_CONSTANT)
            return false;
        in->at = (size_t)p->n_constants;
        return true;
    case NO_STATE_NEXT:
        if (!out || out->home != HOME_NEXT)
            return false;
        out->at = (size_t)p->n_results;
        return true;
    case EARLY_NEXT:
        if (!out || l->part == STEP_LATE || !is_large(out))
            return false;
        for (int i = 0; i < p->n_results; i++)
            if (p->next[i].state != NO_STATE) {
                *out = (ProgramValue){ .home = HOME_NEXT, .at = (size_t)i, .type = out->type };
                return true;
            }
        return false;
    case READS_BESIDE:
        for (int i = 0; i < l->n_in && !l->beside; i++)
            if (launch > 0 && is_large(&l->in[i]) && l->in[i].maker == launch - 1)
                return l->beside = true;
        return false;
    case OTHER_OPERAND:
        if (launch == 0 || l->beside || l->kind != LAUNCH_CALL || l->part != l[-1].part || l[-1].kind != LAUNCH_CALL ||
            !in || in->at == l[-1].in[0].at)
            return false;
        return l->beside = true;
    case OVER_FACTOR:
    case PRODUCT_READ:
    case PRODUCT_MADE:
        return spoil_product(l, fault);
    case FAULTS:
        break;
    }
    return false;
}

static Status check_faults(void *thing)
{
    Case *k = thing;
    Arena *arena = &k->s->c.arena;
    const Lowered l = lower_graph(module_graph(k->step->module, "step"), arena);
    HOLDS(k, l.program && !program_check(l.program, arena), "no program to spoil\n");
    for (int i = 0; i < l.program->n_launches; i++)
        contracts += l.program->launches[i].kind == LAUNCH_CONTRACT;
    for (int f = 0; f < FAULTS; f++) {
        int n = 0;
        for (int i = 0; i < l.program->n_launches && n < 4; i++) {
            Program *p = copied(l.program, arena);
            if (!spoil(p, i, (Fault)f))
                continue;
            n++;
            broken++;
            HOLDS(k, program_check(p, arena), "fault %d of launch %d is not found\n", f, i);
        }
        found |= (int64_t)(n > 0) << f;
    }
    return OK;
}

/* ---- no memory ---- */

static void run_steps(Case *k, int n)
{
    for (int i = 0; i < n; i++, steps++)
        MUST(k, qcc_run(k->session, QCC_STEP, NULL));
}

/* What a first step asked for serves every other one. */
static void ask_for_nothing(Case *k)
{
    run_steps(k, 2);
    const uint64_t before = k->cx->memory.requests;
    run_steps(k, 3);
    HOLDS(k, k->cx->memory.requests == before, "%d blocks asked for in three steps\n",
          (int)(k->cx->memory.requests - before));
}

/* ---- stops ---- */

static uint64_t states_hash(Case *k)
{
    size_t n;
    uint64_t h = 0;
    State *states = session_states(k->session->run, &n);
    for (size_t i = 0; i < n; i++) {
        const Tensor *t = NULL;
        assert_int_equal(session_value(k->session->run, &states[i], &t), OK);
        const unsigned char *bytes = t ? t->data : NULL;
        for (size_t b = 0; t && b < t->bytes; b++)
            h = (h ^ bytes[b]) * 0x100000001b3u;
    }
    return h;
}

/* A step that ends early has changed nothing, and is made whole by the next run. */
static void stop_anywhere(Case *k)
{
    run_steps(k, 1);
    uint64_t before = states_hash(k);
    for (k->stop_behind = 0; k->stop_behind < MOST_STOPS; k->stop_behind++) {
        k->ran = 0;
        const qcc_status status = qcc_run(k->session, QCC_STEP, NULL);
        if (status == QCC_OK)
            break; /* it was asked to stop where nothing stops it any more */
        HOLDS(k, status == QCC_INTERRUPTED && k->ran == k->stop_behind + 1, "stop behind launch %d: %d\n",
              (int)k->stop_behind, status);
        HOLDS(k, states_hash(k) == before, "stopped behind launch %d the step left something\n", (int)k->stop_behind);
        stopped++;
    }
    k->stop_behind = -1;
    if (qcc_run(k->session, QCC_STEP, NULL) == QCC_INTERRUPTED) /* what was asked too late ends this one */
        run_steps(k, 1);
    kept += states_hash(k) != before;
}

static Status visit(void *stored)
{
    Case plain = { .s = stored }, stops = { .s = stored };
    open_case(&plain, "--optimizer adamw --lr 1e-3 --clip-norm 1", false);
    assert_int_equal(guarded(plain.step->module->ir->memory, check_faults, &plain), OK);
    ask_for_nothing(&plain);
    qcc_close(plain.cx);
    open_case(&stops, "--optimizer sgd:momentum=0.9 --lr 1e-2", true);
    stop_anywhere(&stops);
    qcc_close(stops.cx);
    return OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit, &seen), 0);
    print_message("%zu models with %d products and rows, %d broken programs, %d steps, %d stops\n", seen,
                  (int)contracts, (int)broken, (int)steps, (int)stopped);
    assert_true(seen >= 57 && broken > 500 && stopped > 500 && kept > 50 && contracts > 20);
    assert_int_equal(found, (1 << FAULTS) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
