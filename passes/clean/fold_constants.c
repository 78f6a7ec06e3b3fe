/* fold-constants: computes, with the evaluator, what depends on constants alone, and types again what this tells more
 * about.  A `param` is no constant: it may be trained.
 *
 *     graph @f(%x: f32[2,3,4]) -> (%y) {
 *         const %from: i64[1] = [1]
 *         const %to: i64[1] = [2]
 *         const %rest: i64[1] = [-1]
 *         %s: i64[3] = shape(%x)
 *         %d: i64[1] = slice(%s, %from, %to)
 *         %t: i64[2] = concat(%d, %rest, axis=0)
 *         %y: f32[?,?] = reshape(%x, %t)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3,4]) -> (%y) {
 *         const %from: i64[1] = [1]
 *         const %to: i64[1] = [2]
 *         const %rest: i64[1] = [-1]
 *         const %s: i64[3] = [2, 3, 4]
 *         const %d: i64[1] = [3]
 *         const %t: i64[2] = [3, -1]
 *         %y: f32[3,8] = reshape(%x, %t)
 *     }
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "passes/clean/constant_values.h"
#include "passes/clean/fold.h"
#include "passes/clean/table_rows.h"
#include "passes/engine/trial.h"

static bool is_counted(const Type *t)
{
    return t->kind == TYPE_TENSOR && (t->dtype == BOOL || dtype_is_integer(t->dtype));
}

static bool is_constant(const Fold *f, const Node *n)
{
    if (!n || !f->stated)
        return !n || n->op == OP_const;
    if ((n->op != OP_const && n->op != OP_param) || !node_payload(n) || n->type->kind != TYPE_TENSOR)
        return false;
    return is_counted(n->type) || ((n->op == OP_const || n->src) && type_elements(n->type) > 0 && is_one_value(n));
}

/* What shape and size ask is in the type, as far as that is known. */
static bool asks_type_only(const Node *n)
{
    return op_of(n)->told && op_of(n)->told(n);
}

static bool is_numbers(const Type *t)
{
    for (int i = 0; i < type_results(t); i++) {
        const Type *r = type_result(t, i);
        if (r->kind != TYPE_TENSOR || r->dtype == STRING)
            return false;
    }
    return true;
}

static double elements(const Type *t)
{
    return t && t->kind == TYPE_TENSOR && type_known(t) ? (double)type_elements(t) : 0;
}

/* Whether a call gives elements of its operand, and no more than that has. */
static bool takes_part(const Node *n)
{
    return op_moves(op_of(n)) && n->n_in && in(n, 0) && elements(n->type) <= elements(in(n, 0)->type);
}

static bool can_fold(const Fold *f, const Node *n)
{
    const OpDef *def = op_of(n);
    if (def->structural || def->mode != MODE_PURE || n->n_regions || !is_numbers(n->type) || def->quant.dequantizes)
        return false; /* stored codes stay codes, with their scale */
    if (f->stated && !is_counted(n->type) && !takes_part(n))
        return false;
    if (asks_type_only(n))
        return true;
    for (int i = 0; i < n->n_in; i++)
        if (!is_constant(f, in(n, i)))
            return false;
    return true;
}

static bool over(Fold *f, const Node *n, const char *limit, int64_t most, int64_t got)
{
    if (got <= most)
        return false;
    remark(f->run->diag, "fold", node_place(n), "not folded: more than the limit %s (%" PRId64 ")", limit, most);
    return true;
}

/* Scalar operations of a call, roughly: a product of two matrices of m*k and k*n elements takes sqrt(mk * kn * mn). */
static int64_t work_of(const Node *n)
{
    double sum = elements(type_result(n->type, 0)), product = sum;
    for (int i = 0; i < n->n_in; i++) {
        const double count = in(n, i) ? elements(in(n, i)->type) : 0;
        sum += count;
        product *= i < 2 && count > 1 ? count : 1;
    }
    const AccessKind c = op_of(n)->access.kind;
    const double weight = op_of(n)->weight ? op_of(n)->weight : 1;
    const double work = c == ACCESS_CONTRACT || c == ACCESS_WINDOW ? fmax(sum, sqrt(product)) : sum;
    return work * weight < 1e18 ? (int64_t)(work * weight) : INT64_MAX;
}

static int64_t bytes_of(const Type *t)
{
    int64_t sum = 0;
    for (int i = 0; i < type_results(t); i++) {
        size_t bytes;
        const Type *r = type_result(t, i);
        if (r->kind == TYPE_TENSOR && type_known(r) &&
            (!type_bytes(r, &bytes) || bytes > INT64_MAX / 2 || !checked_add_i64(sum, (int64_t)bytes, &sum)))
            return INT64_MAX;
    }
    return sum;
}

static bool within_limits(Fold *f, const Node *n)
{
    const Limits *l = &f->ir->limits;
    const int64_t bytes = bytes_of(n->type), work = asks_type_only(n) ? 1 : work_of(n);
    if (over(f, n, "fold_output", l->fold_output, bytes) || over(f, n, "fold_total", l->fold_total - f->bytes, bytes) ||
        over(f, n, "fold_work", l->fold_work - f->work, work))
        return false;
    f->work += work;
    return true;
}

/* The call alone, its operands as inputs. */
static Status compute(Fold *f, const Node *n, Tensor **results)
{
    Graph *g = graph_new(f->ir, &f->arena, NULL);
    Node **ins = NEWS(&f->arena, Node *, n->n_in + 1);
    const Tensor **values = NEWS(&f->arena, const Tensor *, n->n_in + 1);
    const int n_out = type_results(n->type);
    int k = 0;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        if (!def)
            continue;
        if (is_constant(f, def)) {
            values[k] = node_constant(def, 0);
        } else {
            Tensor *header = NEW(&f->arena, Tensor);
            *header = (Tensor){ .type = def->type, .refs = 1 };
            values[k] = header;
        }
        if (!values[k])
            return IO;
        ins[i] = graph_input(g, NULL, values[k++]->type);
    }
    Node *call = graph_insert(g, NULL, n->op, n->type, n->n_in, ins);
    call->attr = n->attr;
    Build b = build_at_end(g);
    Node **outs = NEWS(&f->arena, Node *, n_out);
    for (int i = 0; i < n_out; i++)
        outs[i] = n->type->kind == TYPE_TUPLE ? build_part(&b, call, i) : call;
    graph_return(g, n_out, outs, NULL);
    return evaluate(g, NULL, &f->heap, values, results);
}

static Node *constant_before(Node *n, const Tensor *value)
{
    Tensor *own = tensor_new(n->graph->arena, value->type);
    Build b = build_before(n);
    if (value->bytes)
        bytes_copy(own->data, value->data, value->bytes);
    return build_const(&b, own);
}

/* Parts of a call with several results become constants each. */
static void replace(Node *n, Tensor **results)
{
    if (n->type->kind != TYPE_TUPLE) {
        stand_in(n, constant_before(n, results[0]));
        return;
    }
    for (Use *u = n->uses, *next; u; u = next) {
        Node *part = u->user;
        next = u->next;
        if (part->op != OP_part)
            continue;
        stand_in(part, constant_before(n, results[((const PartAttr *)part->attr)->index]));
    }
}

static bool fold(Fold *f, Node *n)
{
    Hush hush;
    const int n_out = type_results(n->type);
    int64_t bytes = 0;
    Tensor **results = NEWS(&f->arena, Tensor *, n_out);
    hush_begin(&hush, f->ir, &f->arena);
    const Status status = compute(f, n, results);
    hush_end(&hush);
    if (status != OK) {
        remark(f->run->diag, "fold", node_place(n), "not folded: its evaluation fails");
        return false;
    }
    bool good = true;
    for (int i = 0; i < n_out; i++) {
        good = good && results[i] && is_numbers(results[i]->type) &&
               type_agrees(results[i]->type, type_result(n->type, i));
        bytes += good ? (int64_t)results[i]->bytes : 0;
    }
    good = good && !over(f, n, "fold_output", f->ir->limits.fold_output, bytes);
    if (good)
        replace(n, results);
    f->bytes += good ? bytes : 0;
    for (int i = 0; i < n_out; i++)
        if (results[i])
            tensor_drop(&f->heap, results[i]);
    return good;
}

/* Values of constants may tell more of a type than was known. */
static Status type_again(Node *n)
{
    const char *complaint = NULL;
    Ir *ir = n->graph->ir;
    if (type_known(n->type) || (op_of(n)->structural && !node_is_holder(n)))
        return OK;
    const Type *type = node_infer(n, &complaint);
    if (!type)
        return fail(ir->diag, node_place(n), "%s %s", op_of(n)->name, complaint);
    if (type_agrees(type, n->type))
        n->type = type_meet(&ir->types, type, n->type);
    return OK;
}

/* The parts of a folded tuple stand behind it: they and it are gone when the walk gets there. */
static void drop_parts(Node *n)
{
    for (Node *p = n->next, *next; p && p->op == OP_part && in(p, 0) == n; p = next) {
        next = p->next;
        if (!p->uses)
            node_remove(p);
    }
}

void fold_open(Fold *f, Ir *ir, PassRun *run, bool stated)
{
    *f = (Fold){ .run = run, .ir = ir, .stated = stated };
    heap_open(&f->heap, ir->memory);
    arena_open(&f->arena, ir->memory);
}

void fold_close(Fold *f)
{
    arena_close(&f->arena);
    heap_close(&f->heap);
}

Status fold_node(Fold *f, Node *n, bool *folded)
{
    *folded = false;
    TRY(type_again(n));
    if (!n->uses || !can_fold(f, n) || !within_limits(f, n))
        return OK;
    const ArenaMark mark = arena_mark(&f->arena);
    *folded = fold(f, n);
    arena_reset(&f->arena, mark);
    drop_parts(n);
    f->run->changes += *folded;
    return OK;
}

Status fold_graph(Fold *f, Graph *g)
{
    const Tables t = f->stated ? tables_open(g, f->run->scratch) : (Tables){ .slices = NULL };
    for (Node *n = walk_first(g), *next; n; n = next) {
        bool folded;
        if (f->stated)
            TRY(tables_check(&t, n));
        TRY(fold_node(f, n, &folded));
        next = walk_next(g, n);
        if (folded && !n->uses)
            node_remove(n);
    }
    return OK;
}

Status fold_types(Graph *g, Arena *arena)
{
    PassRun run = { .diag = g->ir->diag, .scratch = arena };
    const size_t n_nodes = graph_count(g);
    Node **copies = NEWS(arena, Node *, n_nodes + 1);
    Graph *copy = graph_copy(g, arena);
    size_t i = 0;
    Fold f;
    for (Node *n = copy->first; n; n = n->next)
        copies[i++] = n;
    fold_open(&f, g->ir, &run, true);
    const Status status = fold_graph(&f, copy);
    fold_close(&f);
    i = 0;
    for (Node *n = g->first; status == OK && n; n = n->next, i++)
        if ((!op_of(n)->structural || n->op == OP_part) && type_agrees(copies[i]->type, n->type))
            n->type = type_meet(&g->ir->types, copies[i]->type, n->type);
    return status;
}

static Status fold_constants(Graph *g, PassRun *run)
{
    Fold f;
    fold_open(&f, g->ir, run, false);
    const Status status = fold_graph(&f, g);
    fold_close(&f);
    return status;
}

const Pass pass_fold_constants = { .name = "fold-constants", .needs = TYPED, .may = EXACT, .run = fold_constants };
