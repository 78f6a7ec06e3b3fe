/* Rows behind a product that a library makes as it makes the product (ProductEnd): read from their tape.
 *
 * A library adds and rectifies sums as they are, in f32, and rounds once, as it writes the result.  So what it does has to be what
 * the graph says: the product is of f32 there, as those are whose rows go on in f32, something is added once, and what is rounded
 * is rounded to the type of the result.  A rectifier may stand before that rounding or behind it, which comes to the same; so
 * behind a product of a narrow type, which was rounded, it may stand alone.  Whatever else is behind a product stays a kernel:
 * tanh in the place of erf, and sums in another order, would be other numbers. */
#include "codegen/cuda/cuda_product_end.h"

#include "codegen/cuda/cuda_calls.h"
#include "ops/card/cards.h"

/* What a register holds. */
typedef enum Holds { HOLDS_SOMETHING, HOLDS_ARGUMENT, HOLDS_PRODUCT } Holds;

/* What an operand of a row is, beside the product. */
typedef enum Beside { NOTHING, EACH_ELEMENT, EACH_ROW } Beside;

/* What a library does as it makes a product: the rows that are it, and what stands beside the product there. */
typedef struct EndRule {
    Op op;
    Beside beside;
} EndRule;

static const EndRule rules[] = {
    { OP_add, EACH_ELEMENT }, { OP_add, EACH_ROW }, { OP_sum, EACH_ELEMENT },
    { OP_sum, EACH_ROW },     { OP_relu, NOTHING },
};

typedef struct Register {
    Holds holds;
    int argument;
} Register;

typedef struct Reader {
    const Tape *tape;
    StackProduct *p;
    Register *registers;
    int at;          /* the register that holds what became of the product */
    bool is_rounded; /* to this type, */
    DType rounded;   /* from the beginning where the product is of a narrow one */
    bool done;
} Reader;

/* ---- what stands beside ---- */

/* Whether d is all of the space, in its order: so what lies like one lies like the other. */
static bool covers(const StackProduct *p, int64_t elements)
{
    return p->d.from == 0 && p->d.line == p->d.rows && (p->n == 1 || p->d.step == p->d.rows * p->d.columns) &&
           p->n * p->d.rows * p->d.columns == elements;
}

/* Elements of the last dimensions that two types have alike. */
static int64_t alike(const Type *a, const Type *b)
{
    int64_t n = 1;
    for (int i = 1; i <= a->rank && i <= b->rank && a->dims[a->rank - i] == b->dims[b->rank - i]; i++)
        n *= a->dims[a->rank - i];
    return n;
}

static Beside beside_of(const Reader *r, int argument)
{
    const Type *t = r->tape->in[argument];
    const int64_t n = type_elements(t);
    if (alike(t, r->tape->space) < n)
        return NOTHING;
    if (n == type_elements(r->tape->space))
        return t->dtype == r->p->d.type ? EACH_ELEMENT : NOTHING;
    return n == r->p->d.rows && dtype_is_float(t->dtype) ? EACH_ROW : NOTHING;
}

/* ---- steps ---- */

static bool load(Reader *r, const TapeStep *s)
{
    const bool product = s->in[0] == r->tape->product;
    if (s->arithmetic != F32 || (product && r->at != TAPE_NONE))
        return false;
    r->registers[s->out] = (Register){ product ? HOLDS_PRODUCT : HOLDS_ARGUMENT, s->in[0] };
    if (product)
        r->at = s->out;
    return true;
}

static bool has_rule(Op op, Beside beside)
{
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].op == op && rules[i].beside == beside)
            return true;
    return false;
}

/* Something is added once, to what was not rounded. */
static bool add(Reader *r, int argument, Beside beside)
{
    ProductEnd *end = &r->p->end;
    if (r->is_rounded || end->relu || end->added != NO_ARGUMENT || end->bias != NO_ARGUMENT)
        return false;
    if (beside == EACH_ELEMENT) {
        end->added = argument;
    } else {
        end->bias = argument;
        end->bias_type = r->tape->in[argument]->dtype;
    }
    return true;
}

static bool apply(Reader *r, const TapeStep *s)
{
    Register beside = { HOLDS_SOMETHING, TAPE_NONE };
    int n = 0, of_product = 0;
    for (; n < TAPE_OPERANDS && s->in[n] != TAPE_NONE; n++) {
        const Register x = r->registers[s->in[n]];
        of_product += x.holds == HOLDS_PRODUCT && s->in[n] == r->at;
        if (x.holds == HOLDS_ARGUMENT)
            beside = x;
    }
    if (s->arithmetic != F32 || of_product != 1 || n != 1 + (beside.holds == HOLDS_ARGUMENT))
        return false;
    const Beside what = n == 2 ? beside_of(r, beside.argument) : NOTHING;
    if ((n == 2 && what == NOTHING) || !has_rule(s->op, what) || (n == 2 && !add(r, beside.argument, what)))
        return false;
    r->p->end.relu = r->p->end.relu || n == 1;
    r->at = s->out;
    r->registers[s->out] = (Register){ HOLDS_PRODUCT, TAPE_NONE };
    return true;
}

static bool round_to(Reader *r, const TapeStep *s)
{
    if (s->in[0] != r->at || s->arithmetic != F32 || s->to != F32 || (r->is_rounded && r->rounded != s->through))
        return false;
    r->is_rounded = r->is_rounded || s->through != F32;
    r->rounded = s->through;
    r->at = s->out;
    r->registers[s->out] = (Register){ HOLDS_PRODUCT, TAPE_NONE };
    return true;
}

static bool store(Reader *r, const TapeStep *s)
{
    if (s->in[0] != r->at || r->done || (r->is_rounded && r->rounded != r->p->d.type))
        return false;
    r->done = true;
    return true;
}

static bool take_step(Reader *r, const TapeStep *s)
{
    if (r->done)
        return false;
    switch (s->word) {
    case TAPE_LOAD:
        return load(r, s);
    case TAPE_ROW:
        return apply(r, s);
    case TAPE_ROUND:
        return round_to(r, s);
    case TAPE_STORE:
        return store(r, s);
    case TAPE_FILL:
    case TAPE_DRAW:
    case TAPE_SPREAD:
    case TAPE_HIT:
    case TAPE_FOLD_ROW:
    case TAPE_PICK:
    case TAPE_FOLD_COLUMN:
    case TAPE_FOLD_ALL:
        break;
    }
    return false;
}

/* ---- the whole ---- */

static int argument_of(const Graph *body, const Node *n)
{
    for (int i = 0; i < (int)body->n_inputs; i++)
        if (body->inputs[i] == n)
            return i;
    return NO_ARGUMENT;
}

/* The arguments of rows are what the region reads, the place of the product, and what it makes. */
static bool count_arguments(const Launch *l, StackProduct *p)
{
    const Graph *body = l->node->regions[0];
    for (int i = 0; i < l->n_in; i++)
        if (!in(l->node, i))
            return false;
    p->a.argument = argument_of(body, in(l->contraction, p->a.argument));
    p->b.argument = argument_of(body, in(l->contraction, p->b.argument));
    p->d.argument = l->tape->n_in;
    return p->a.argument != NO_ARGUMENT && p->b.argument != NO_ARGUMENT;
}

/* Whether a library may round what it has: sums of f32. */
static bool reads_rows(const Launch *l, StackProduct *p, Arena *arena)
{
    const Tape *t = l->tape;
    Reader r = { t, p, NEWS(arena, Register, t->n_registers + 1), TAPE_NONE, p->d.type != F32, p->d.type, false };
    if (t->n_out != 1 || !dtype_is_float(p->d.type) || !covers(p, type_elements(t->space)) ||
        type_elements(t->out[0]) != type_elements(t->space))
        return false;
    p->d.type = t->out[0]->dtype;
    if (p->d.type != F32 && p->d.type != p->a.type)
        return false;
    for (int i = 0; i < t->n_steps; i++)
        if (!take_step(&r, &t->steps[i]))
            return false;
    return r.done;
}

bool cuda_product_end(const Launch *l, const KernelTarget *target, Arena *arena, CudaLaunch *launch)
{
    ProductMaker *maker = target->products;
    const CallMaker m = { .w = { .arena = arena }, .call = l->contraction, .target = *target, .launch = launch };
    StackProduct p;
    size_t scratch = 0;
    if (!maker)
        return false;
    *launch = (CudaLaunch){ .refuses = op_of(l->contraction)->access.refuses };
    if (!cuda_product_of(&m, &p) || !count_arguments(l, &p) || !reads_rows(l, &p, arena))
        return false;
    const KernelProduct *by = maker->take(maker, &p, &scratch);
    if (!by)
        return false;
    *launch = (CudaLaunch){ .kernels = { { .blocks = 1, .threads = 1, .product = by } }, .n = 1, .scratch = scratch };
    return true;
}
