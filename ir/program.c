#include "ir/program.h"

#include <inttypes.h>

#include "base/hash.h"
#include "ir/text/print.h"

/* ---- check ---- */

/* Bytes of the arena that hold a value, and the launch that made it. */
typedef struct Written {
    size_t at, end;
    int maker;
} Written;

typedef struct Check {
    const Program *p;
    Arena *arena;
    Written *written;
    size_t n, cap;
    bool *made; /* by result: a next value that was made */
} Check;

static size_t bytes_of(const ProgramValue *v)
{
    size_t bytes = 0;
    return v->home == HOME_NONE || type_bytes(v->type, &bytes) ? bytes : SIZE_MAX;
}

static bool is_inside(const Check *c, const ProgramValue *v)
{
    const size_t bytes = bytes_of(v);
    switch (v->home) {
    case HOME_NONE:
        return true;
    case HOME_ARENA:
        return bytes <= c->p->arena && v->at <= c->p->arena - bytes;
    case HOME_INPUT:
        return v->at < c->p->graph->n_inputs;
    case HOME_CONSTANT:
        return v->at < (size_t)c->p->n_constants;
    case HOME_NEXT:
        return v->at < (size_t)c->p->n_results && c->p->next[v->at].state != NO_STATE;
    }
    return false;
}

/* Pieces lie behind each other, each made after the one before it. */
static bool are_pieces_written(const Check *c, const ProgramValue *v)
{
    size_t at = v->at;
    int maker = -1;
    for (size_t i = 0; i < c->n && at < v->at + bytes_of(v);) {
        const Written *w = &c->written[i++];
        if (w->at != at || w->maker <= maker)
            continue;
        at = w->end;
        maker = w->maker;
        i = 0;
    }
    return at == v->at + bytes_of(v) && maker == v->maker;
}

static bool is_written(const Check *c, const ProgramValue *v)
{
    if (v->home == HOME_NEXT)
        return c->made[v->at];
    if (v->home != HOME_ARENA || !bytes_of(v))
        return true;
    for (size_t i = 0; i < c->n && !v->pieces; i++)
        if (c->written[i].at <= v->at && v->at + bytes_of(v) <= c->written[i].end)
            return c->written[i].maker == v->maker;
    return v->pieces && are_pieces_written(c, v);
}

static void write(Check *c, const ProgramValue *v)
{
    if (v->home == HOME_NEXT)
        c->made[v->at] = true;
    if (v->home != HOME_ARENA || !bytes_of(v))
        return;
    const Written now = { v->at, v->at + bytes_of(v), v->maker };
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->written[i].end <= now.at || now.end <= c->written[i].at)
            c->written[kept++] = c->written[i];
    c->n = kept;
    GROW(c->arena, c->written, c->n, c->cap);
    c->written[c->n++] = now;
}

static bool meet(const ProgramValue *a, const ProgramValue *b)
{
    return a->home == HOME_ARENA && b->home == HOME_ARENA && a->at < b->at + bytes_of(b) && b->at < a->at + bytes_of(a);
}

/* A product is made in the place of a result that lies over it, or apart from all others. */
static const char *check_product(const Check *c, const Launch *l)
{
    if (l->kind != LAUNCH_CONTRACT)
        return NULL;
    if (l->product.home != HOME_ARENA || !is_inside(c, &l->product))
        return "has a product that lies nowhere";
    for (int k = 0; k < l->n_in; k++)
        if (meet(&l->product, &l->in[k]))
            return "has a product over what it reads";
    for (int i = 0; i < l->n_out; i++)
        if (meet(&l->product, &l->out[i]) && (l->over[i] != l->n_in || l->out[i].at != l->product.at))
            return "has a product over a result";
    return NULL;
}

static const char *check_results(const Check *c, const Launch *l)
{
    for (int i = 0; i < l->n_out; i++) {
        const ProgramValue *out = &l->out[i];
        if ((out->home != HOME_ARENA && out->home != HOME_NEXT) || !is_inside(c, out))
            return "makes a result that lies nowhere";
        if (out->home == HOME_ARENA && out->maker != (int)(l - c->p->launches))
            return "makes a result in the name of another";
        if (out->home == HOME_NEXT && l->part != STEP_LATE)
            return "makes the next value of a state too early";
        for (int k = 0; k < l->n_in; k++)
            if (meet(out, &l->in[k]) && (l->over[i] != k || out->at != l->in[k].at))
                return "makes a result over what it reads";
        for (int k = 0; k < i; k++)
            if (meet(out, &l->out[k]))
                return "makes two results in one place";
        if (l->over[i] != LIES_APART &&
            !(l->tape ? tape_may_lie_over(l->tape, i, l->over[i]) : node_goes_on(l->node) == l->over[i]))
            return "makes a result over an argument that it may not lie over";
    }
    return NULL;
}

static const char *check_launch(Check *c, const Launch *l)
{
    for (int i = 0; i < l->n_in; i++) {
        if (!is_inside(c, &l->in[i]))
            return "reads a value that lies nowhere";
        if (!is_written(c, &l->in[i]))
            return "reads what nobody wrote, or what was written over";
    }
    const char *wrong = check_product(c, l);
    wrong = wrong ? wrong : check_results(c, l);
    if (!wrong && l->kind == LAUNCH_CONTRACT)
        write(c, &l->product);
    for (int i = 0; i < l->n_out && !wrong; i++)
        write(c, &l->out[i]);
    return wrong;
}

int program_wave(const Program *p, int launch)
{
    int end = launch + 1;
    while (end < p->n_launches && p->launches[end].beside)
        end++;
    return end - launch;
}

/* Whether a result is made where a value lies that another launch reads or makes. */
static bool touches(const Program *p, const ProgramValue *out, const ProgramValue *other)
{
    const ProgramNext *next = out->home == HOME_NEXT ? &p->next[out->at] : NULL;
    if (next && other->home == HOME_NEXT)
        return other->at == out->at;
    return next ? next->in_place && other->home == HOME_INPUT && other->at == (size_t)next->state : meet(out, other);
}

/* The product of a launch, if that may run as one with others (OpDef.beside), and where its left operand lies. */
static const Node *product_of(const Launch *l, const ProgramValue **left)
{
    const Node *n = l->kind == LAUNCH_CALL ? l->node : l->contraction;
    const Graph *body = l->kind == LAUNCH_CONTRACT ? l->node->regions[0] : NULL;
    if (!n || !op_of(n)->beside)
        return NULL;
    *left = &l->in[0];
    for (int i = 0; body && i < l->n_in; i++)
        if (body->inputs[i] == in(n, 0))
            *left = &l->in[i];
    return n;
}

static bool are_of_one_operand(const Launch *a, const Launch *b)
{
    const ProgramValue *left, *other;
    const Node *x = product_of(a, &left), *y = x ? product_of(b, &other) : NULL;
    return y && x->op == y->op && attrs_equal(op_of(x)->attrs, x->attr, y->attr) && left->home == other->home &&
           left->at == other->at && left->type == other->type && x->type->dtype == y->type->dtype &&
           op_of(x)->shares(left->type, in(x, 1)->type, in(y, 1)->type);
}

/* What a launch reads and makes beside another that makes something. */
static const char *check_touched(const Program *p, const ProgramValue *made, const Launch *other)
{
    for (int a = 0; a < other->n_in; a++)
        if (touches(p, made, &other->in[a]))
            return "makes a result over what another reads beside it, or reads what is made there";
    for (int a = 0; a < other->n_out; a++)
        if (touches(p, made, &other->out[a]))
            return "makes a result in the place of one that is made beside it";
    return other->kind == LAUNCH_CONTRACT && touches(p, made, &other->product)
               ? "makes a result in the place of a product that is made beside it"
               : NULL;
}

static const char *check_made(const Program *p, const Launch *l, const Launch *other)
{
    const char *wrong = l->kind == LAUNCH_CONTRACT ? check_touched(p, &l->product, other) : NULL;
    for (int i = 0; i < l->n_out && !wrong; i++)
        wrong = check_touched(p, &l->out[i], other);
    return wrong;
}

/* A launch against those before it that it runs side by side with. */
static const char *check_beside(const Program *p, int launch)
{
    const Launch *l = &p->launches[launch];
    const char *wrong = NULL;
    int k = launch;
    for (; p->launches[k].beside && !wrong;) {
        const Launch *other = k > 0 ? &p->launches[--k] : l;
        const bool regions = l->kind == LAUNCH_REGION && other->kind == LAUNCH_REGION;
        if (other == l || other->part != l->part || (!regions && !are_of_one_operand(l, other)))
            return "runs beside what is neither a region of its part nor a product of its operand";
        wrong = check_made(p, l, other);
        wrong = wrong ? wrong : check_made(p, other, l);
    }
    return !wrong && l->kind != LAUNCH_REGION && launch - k >= PRODUCTS_BESIDE ? "runs beside too many products"
                                                                               : wrong;
}

/* What is made in a state's place comes after the last read of the state, and nothing that can fail comes after it. */
static const char *check_in_place(const Program *p, int launch)
{
    const Launch *l = &p->launches[launch];
    for (int i = 0; i < l->n_out; i++) {
        const ProgramNext *next = l->out[i].home == HOME_NEXT ? &p->next[l->out[i].at] : NULL;
        for (int k = launch; next && next->in_place && k < p->n_launches; k++) {
            const Launch *later = &p->launches[k];
            if (later->kind != LAUNCH_REGION)
                return "makes a next value in its state's place before a call that can fail";
            for (int a = 0; a < later->n_in; a++)
                if (later->in[a].home == HOME_INPUT && later->in[a].at == (size_t)next->state &&
                    (k != launch || l->over[i] != a))
                    return "makes a next value over a state that is still read";
        }
    }
    return NULL;
}

const char *program_check(const Program *p, Arena *arena)
{
    Check c = { .p = p, .arena = arena, .made = NEWS(arena, bool, p->n_results + 1) };
    for (int i = 0; i < p->n_launches; i++) {
        const Launch *l = &p->launches[i];
        const char *wrong = i < p->first[l->part] || i >= p->first[l->part + 1] ? "stands in another part of the step"
                                                                                : check_launch(&c, l);
        wrong = wrong ? wrong : check_in_place(p, i);
        wrong = wrong ? wrong : check_beside(p, i);
        if (wrong)
            return arena_printf(arena, "launch %d (%s) %s", i, op_of(l->node)->name, wrong);
    }
    for (int i = 0; i < p->n_results; i++)
        if (!is_inside(&c, &p->results[i]) || !is_written(&c, &p->results[i]))
            return arena_printf(arena, "result %d was not made, or written over", i);
    return NULL;
}

/* ---- sizes ---- */

static size_t bytes_known(const Type *t)
{
    size_t bytes = 0;
    return t->kind == TYPE_TENSOR && type_bytes(t, &bytes) ? bytes : 0;
}

ProgramBytes program_bytes(const Program *p)
{
    ProgramBytes b = { 0 };
    for (size_t i = 0; i < p->graph->n_inputs; i++)
        *(p->graph->inputs[i]->op == OP_state ? &b.states : &b.inputs) += bytes_known(p->graph->inputs[i]->type);
    for (int i = 0; i < p->n_constants; i++)
        b.constants += bytes_known(p->constants[i]->type);
    for (int i = 0; i < p->n_results; i++) {
        const ProgramValue *v = &p->results[i];
        const bool late = v->home == HOME_NEXT, in_place = late && p->next[i].in_place;
        if (p->next[i].state == NO_STATE || (!late && v->home != HOME_ARENA))
            continue;
        *(in_place ? &b.in_place : late ? &b.apart : &b.early) += bytes_known(v->type);
        *(in_place ? &b.n_in_place : late ? &b.n_apart : &b.n_early) += 1;
    }
    return b;
}

/* ---- text ---- */

static void print_place(Text *out, const ProgramValue *v)
{
    static const char *const homes[] = { "-", "arena", "input", "const", "next" };
    text_printf(out, "%s", homes[v->home]);
    if (v->home == HOME_NONE)
        return;
    text_printf(out, "@%zu ", v->at);
    type_print(out, v->type);
}

const Node *launch_call(const Launch *l)
{
    return l->within ? l->within : l->node;
}

const char *launch_word(const Launch *l)
{
    return l->kind == LAUNCH_REGION ? "region" : l->kind == LAUNCH_CONTRACT ? "contract" : op_of(l->node)->name;
}

static bool is_under_result(const Launch *l)
{
    for (int i = 0; i < l->n_out; i++)
        if (l->over[i] == l->n_in)
            return true;
    return false;
}

static void print_launch(Text *out, const Program *p, int i)
{
    const Launch *l = &p->launches[i];
    const char *name = l->node->label ? l->node->label : l->node->name;
    text_printf(out, "%4d %c%s", i, l->beside ? '|' : ' ', launch_word(l));
    if (l->kind == LAUNCH_CONTRACT)
        text_printf(out, " %s", op_of(l->contraction)->name);
    if (name)
        text_printf(out, " %s", name);
    if (l->within)
        text_printf(out, " turn %" PRIu32, l->turn);
    text_printf(out, ":");
    for (int k = 0; k < l->n_in; k++) {
        text_printf(out, k ? ", " : " ");
        print_place(out, &l->in[k]);
    }
    text_printf(out, " ->");
    for (int k = 0; k < l->n_out; k++) {
        text_printf(out, k ? ", " : " ");
        print_place(out, &l->out[k]);
        if (l->over[k] != LIES_APART && l->over[k] == l->n_in)
            text_printf(out, " over product");
        else if (l->over[k] != LIES_APART)
            text_printf(out, " over %d", l->over[k]);
        if (l->out[k].home == HOME_NEXT && p->next[l->out[k].at].in_place)
            text_printf(out, " in place");
    }
    if (l->kind == LAUNCH_CONTRACT && !is_under_result(l)) {
        text_printf(out, ", product ");
        print_place(out, &l->product);
    }
    text_printf(out, "\n");
}

void program_print(Text *out, const Program *p, const OpTable *ops, bool tapes)
{
    text_printf(out, "program of %d launches: %zu bytes, %zu live at once, %d constants\n", p->n_launches, p->arena,
                p->live, p->n_constants);
    for (int i = 0, part = -1; i < p->n_launches; i++) {
        if ((int)p->launches[i].part != part) {
            part = (int)p->launches[i].part;
            text_printf(out, "%s\n", step_part_name((StepPart)part));
        }
        print_launch(out, p, i);
        if (tapes && p->launches[i].tape)
            tape_print(out, p->launches[i].tape, ops);
    }
    for (int i = 0; i < p->n_results; i++) {
        const char *name = graph_result_name(p->graph, i);
        text_printf(out, "result %s = ", name ? name : "");
        print_place(out, &p->results[i]);
        text_printf(out, "\n");
    }
}

uint64_t program_hash(const Program *p, const OpTable *ops, Arena *scratch)
{
    Graph *g = (Graph *)(uintptr_t)p->graph; /* a walk does not change it */
    Numbering numbers = numbering_of(g, scratch);
    Text t;
    text_open(&t, scratch);
    program_print(&t, p, ops, true);
    for (const Node *n = walk_first(g); n; n = walk_next(g, (Node *)(uintptr_t)n))
        print_line(&t, &numbers, n);
    return hash64(t.p, t.n, 0);
}
