#include "codegen/cuda/cuda_module.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_call.h"
#include "codegen/cuda/cuda_commit.h"
#include "codegen/cuda/cuda_product_end.h"
#include "ir/text/print.h"

void cuda_module_open(CudaModule *m, const OpTable *ops, Arena *arena)
{
    *m = (CudaModule){ .arena = arena, .ops = ops };
    map_open(&m->known, arena);
}

/* ---- kernels of a launch ---- */

/* Appends the kernels of one of them to those before it. */
static void join(CudaLaunch *all, const CudaLaunch *more)
{
    for (int i = 0; i < more->n; i++)
        all->kernels[all->n++] = more->kernels[i];
    all->scratch = all->scratch > more->scratch ? all->scratch : more->scratch;
    all->draws |= more->draws;
    all->refuses |= more->refuses;
    all->late |= more->late;
}

/* A product that lies in memory when what reads its blocks on a CPU begins. */
static const char *print_contract(const CudaModule *m, const Launch *l, const char *name, Text *out, CudaLaunch *launch,
                                  int *n_product)
{
    const bool late = l->part == STEP_LATE;
    CudaLaunch product, rest;
    Tape tape = *l->tape;
    Text text;
    if (cuda_product_end(l, &m->target, m->arena, launch))
        return NULL;
    *launch = (CudaLaunch){ .n = 0 };
    text_open(&text, m->arena);
    const char *why = cuda_print_call(&text, &m->target, l->contraction, name, late, &product);
    if (why)
        return why;
    tape.product = TAPE_NONE;
    if (text.n)
        text_char(&text, '\n');
    why = cuda_print(&text, &tape, m->ops, name, late, &rest);
    if (why)
        return why;
    if (product.n + rest.n > CUDA_KERNELS)
        return "more kernels than a launch has";
    join(launch, &product);
    join(launch, &rest);
    *n_product = product.n;
    text_add(out, text_get(&text));
    return NULL;
}

static const char *print_kernels(const CudaModule *m, CudaPart *part, const char *name, Text *out)
{
    const Launch *l = part->launch;
    const bool late = l->part == STEP_LATE;
    part->kernels = (CudaLaunch){ .n = 0 };
    part->n_product = 0;
    if (l->kind == LAUNCH_REGION)
        return cuda_print(out, l->tape, m->ops, name, late, &part->kernels);
    if (l->kind == LAUNCH_CONTRACT)
        return print_contract(m, l, name, out, &part->kernels, &part->n_product);
    return cuda_print_call(out, &m->target, l->node, name, late, &part->kernels);
}

/* The names of kernels whose text is another part's: what a library makes has none. */
static void take_names(CudaLaunch *to, const CudaLaunch *from)
{
    int at = 0;
    for (int i = 0; i < to->n; i++) {
        if (to->kernels[i].product)
            continue;
        while (from->kernels[at].product)
            at++;
        to->kernels[i].name = from->kernels[at++].name;
    }
}

/* Equal kernels are told by their text under one name for all, and printed once under their own. */
static void find_text(CudaModule *m, CudaPart *part)
{
    Text text;
    bool fresh;
    text_open(&text, m->arena);
    part->why = print_kernels(m, part, "k", &text);
    if (part->why || !text.n) /* without a text all of it is a library's */
        return;
    MapEntry *e = map_put(&m->known, text_get(&text), &fresh);
    if (!fresh) {
        const CudaPart *first = &m->parts[e->value.u];
        part->text = first->text;
        take_names(&part->kernels, &first->kernels); /* a text does not say how many blocks run it */
        return;
    }
    e->value.u = (uint64_t)(part - m->parts);
    part->text = (int)m->n_texts;
    text_open(&text, m->arena);
    (void)print_kernels(m, part, arena_printf(m->arena, "k%d", part->text), &text);
    GROW(m->arena, m->texts, m->n_texts, m->cap_texts);
    m->texts[m->n_texts++] = text_get(&text);
    m->n_kernels += part->kernels.n;
}

/* What a launch of a later turn does is said already. */
static void take_part(CudaPart *part, const CudaPart *first)
{
    part->text = first->text;
    part->why = first->why;
    part->kernels = first->kernels;
    part->n_product = first->n_product;
}

void cuda_module_add(CudaModule *m, const Program *p, const char *name)
{
    const size_t first = m->n;
    for (int i = 0; i < p->n_launches; i++) {
        GROW(m->arena, m->parts, m->n, m->cap);
        CudaPart *part = &m->parts[m->n++];
        *part = (CudaPart){ .launch = &p->launches[i], .program = name, .number = i, .text = CUDA_NO_TEXT };
        if (p->launches[i].like == LIKE_NONE)
            find_text(m, part);
        else
            take_part(part, &m->parts[first + (size_t)p->launches[i].like]);
        m->n_without += part->why != NULL;
    }
}

/* ---- annotations ---- */

/* A launch as --emit program counts it, by its name. */
static void print_part(const CudaPart *part, Text *out)
{
    const Launch *l = part->launch;
    const char *name = l->node->label ? l->node->label : l->node->name;
    text_printf(out, "// %s %d, %s: %s", part->program, part->number, step_part_name(l->part), launch_word(l));
    if (name) {
        text_char(out, ' ');
        text_quote(out, name, strlen(name));
    }
}

static void print_launches(const CudaPart *part, Text *out)
{
    text_add(out, ",");
    for (int k = 0; k < part->kernels.n; k++)
        text_printf(out, " %s<<<%" PRId64 ", %d>>>", part->kernels.kernels[k].name, part->kernels.kernels[k].blocks,
                    part->kernels.kernels[k].threads);
    if (part->kernels.scratch)
        text_printf(out, ", %zu bytes of scratch", part->kernels.scratch);
    text_char(out, '\n');
}

/* The numbers of one graph, made once for all calls of it. */
typedef struct Numbered {
    const Graph *graph;
    Numbering numbers;
} Numbered;

static void print_node(Numbering *numbers, const Node *n, Text *out)
{
    text_add(out, "//     ");
    print_line(out, numbers, n);
    if (out->p[out->n - 1] != '\n')
        text_char(out, '\n');
}

/* What a text computes: a call, or the body of a region. */
static void print_body(const CudaModule *m, const CudaPart *part, Numbered *of_calls, Text *out)
{
    const Node *call = part->launch->node;
    if (part->launch->kind != LAUNCH_CALL) {
        Numbering numbers = numbering_of(call->regions[0], m->arena);
        for (const Node *n = call->regions[0]->first; n; n = n->next)
            print_node(&numbers, n, out);
        return;
    }
    if (of_calls->graph != call->graph)
        *of_calls = (Numbered){ call->graph, numbering_of(call->graph, m->arena) };
    print_node(&of_calls->numbers, call, out);
}

/* By text its first part, and by part the next one with its text; where there is none, that is how many parts there are. */
typedef struct Users {
    size_t *first, *next;
} Users;

static Users users_of(const CudaModule *m)
{
    const Users u = { NEWS(m->arena, size_t, m->n_texts + 1), NEWS(m->arena, size_t, m->n + 1) };
    for (size_t t = 0; t < m->n_texts; t++)
        u.first[t] = m->n;
    for (size_t i = m->n; i > 0; i--) {
        const int text = m->parts[i - 1].text;
        if (text == CUDA_NO_TEXT || m->parts[i - 1].launch->like != LIKE_NONE) /* later turns go without saying */
            continue;
        u.next[i - 1] = u.first[text];
        u.first[text] = i - 1;
    }
    return u;
}

static void print_without(const CudaModule *m, Text *out)
{
    if (m->n_without)
        text_printf(out, "%s// Launches without kernels here:\n", out->n ? "\n" : "");
    for (size_t i = 0; i < m->n; i++) {
        if (!m->parts[i].why || m->parts[i].launch->like != LIKE_NONE)
            continue;
        print_part(&m->parts[i], out);
        text_printf(out, ": %s\n", m->parts[i].why);
    }
}

void cuda_module_print(const CudaModule *m, bool annotated, Text *out)
{
    const Users users = users_of(m);
    Numbered of_calls = { .graph = NULL };
    for (size_t t = 0; t < m->n_texts; t++) {
        text_add(out, out->n ? "\n" : "");
        for (size_t i = users.first[t]; annotated && i < m->n; i = users.next[i]) {
            print_part(&m->parts[i], out);
            print_launches(&m->parts[i], out);
        }
        if (annotated)
            print_body(m, &m->parts[users.first[t]], &of_calls, out);
        text_add(out, m->texts[t]);
    }
    if (annotated)
        print_without(m, out);
}

static int add_commit(CudaModule *m)
{
    Text text;
    text_open(&text, m->arena);
    cuda_commit_print(&text);
    GROW(m->arena, m->texts, m->n_texts, m->cap_texts);
    m->texts[m->n_texts] = text_get(&text);
    return (int)m->n_texts++;
}

const ProgramKernels *cuda_kernels_of(const Program *p, const KernelTarget *target, const OpTable *ops, Arena *arena)
{
    CudaModule m;
    Text prelude;
    ProgramKernels *made = NEW(arena, ProgramKernels);
    LaunchKernels *launches = NEWS(arena, LaunchKernels, p->n_launches + 1);
    cuda_module_open(&m, ops, arena);
    m.target = *target;
    cuda_module_add(&m, p, "program");
    for (size_t i = 0; i < m.n; i++)
        launches[i] = (LaunchKernels){ m.parts[i].kernels, m.parts[i].why, m.parts[i].n_product, m.parts[i].text };
    const int commit = p->first[STEP_LATE] < p->n_launches ? add_commit(&m) : CUDA_NO_TEXT;
    text_open(&prelude, arena);
    cuda_prelude(&prelude);
    *made = (ProgramKernels){ text_get(&prelude), m.texts, m.n_texts, launches, m.n_without, commit };
    return made;
}
