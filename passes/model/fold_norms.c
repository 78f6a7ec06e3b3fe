/* fold-norms: a normalization by running statistics behind a product becomes a part of the product's weight and bias.
 *
 *     graph @f(
 *             %x: f32[1,1],
 *             state %w: f32[1,2] = [1, 3] trained,
 *             state %s: f32[2] = [4, 2] trained,
 *             state %b: f32[2] = [5, 1] trained,
 *             state %m: f32[2] = [1, 0] role=statistic,
 *             state %v: f32[2] = [3, 15] role=statistic) -> (%z) {
 *         %y: f32[1,2] = gemm(%x, %w) !1
 *         %z: f32[1,2] = batch_normalization(%y, %s, %b, %m, %v, epsilon=1) !2
 *     }
 *     ==>
 *     graph @f(%x: f32[1,1], state %w: f32[1,2] = [2, 1.5] trained, state %b: f32[2] = [3, 1] trained) -> (%z) {
 *         %z: f32[1,2] = gemm(%x, %w, %b) !1
 *     }
 *
 * With k = scale / sqrt(var + epsilon) for each channel the weight begins with w k and the bias with
 * shift + (b - mean) k, in f64, rounded once, when somebody reads them.  The bias is the product's own, or the one that
 * is added behind it; where there is none the norm's shift becomes it.  This is how a norm is quantized: what is
 * trained is the product that is deployed.  A norm stays, and a remark says why, where what it is folded into is read
 * elsewhere, or is not trained while the norm is.  Norms that a file has in training form are folded too.  With --bn train
 * or frozen parameters stay what they are, and a fold_norm computes the weight and the bias from them. */
#include <math.h>
#include <string.h>

#include "ir/role.h"
#include "ir/store/blob.h"
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/norm/norm.h"
#include "passes/model/modes.h"
#include "passes/recipe/choices.h"
#include "passes/recipe/quantizer.h"

enum { SCALE = 1, SHIFT, MEAN, VAR, NORM_OPERANDS }; /* operands of a norm */
enum { WEIGHT = 1, BIAS };                           /* and of a product */

/* ---- first values ---- */

/* A payload that is computed from those of a product and its norm when it is read. */
typedef struct Folded {
    Payload payload;
    Payload *from;                /* the weight or bias; null: zeros */
    Payload *norm[NORM_OPERANDS]; /* null: zeros */
    Memory *memory;
    double epsilon;
    bool shifts;                /* it is a bias */
    int64_t channels;           /* of the norm */
    int64_t parts, inner, part; /* element i is of channel i / inner % part + i / (n / parts) * part, as with groups */
} Folded;

/* The values of a payload in f64; null after a reported failure. */
static double *values_of(Payload *p, int64_t n, Heap *heap, Diag *diag)
{
    double *out = heap_alloc(heap, (size_t)(n ? n : 1) * sizeof(double));
    void *block = NULL;
    const void *bytes = p ? payload_bytes(p, heap, &block, diag) : NULL;
    if (p && !bytes)
        return NULL;
    const Tensor t = { .type = p ? p->type : NULL, .data = (void *)(uintptr_t)bytes };
    for (int64_t i = 0; i < n; i++)
        out[i] = p ? tensor_get_f64(&t, i) : 0;
    heap_free(heap, block);
    return out;
}

static int64_t channel_of(const Folded *f, int64_t i, int64_t n)
{
    return i / f->inner % f->part + i / (n / f->parts) * f->part;
}

static Status fold_values(const Folded *f, Tensor *out, Heap *heap, Diag *diag)
{
    const int64_t n = tensor_elements(out);
    const double *from = values_of(f->from, n, heap, diag), *norm[NORM_OPERANDS] = { NULL };
    for (int i = SCALE; i < NORM_OPERANDS && from; i++)
        if (!(norm[i] = values_of(f->norm[i], f->channels, heap, diag)))
            return INVALID;
    for (int64_t i = 0; i < n && from; i++) {
        const int64_t c = channel_of(f, i, n);
        const double k = norm[SCALE][c] / sqrt(norm[VAR][c] + f->epsilon);
        tensor_set_f64(out, i, f->shifts ? norm[SHIFT][c] + (from[i] - norm[MEAN][c]) * k : from[i] * k);
    }
    return from ? OK : INVALID;
}

static Status read_folded(Payload *self, void *out, size_t bytes, Diag *diag)
{
    const Folded *f = self->owner;
    Tensor t = { .type = self->type, .data = out, .bytes = bytes };
    Heap heap;
    heap_open(&heap, f->memory);
    const Status status = fold_values(f, &t, &heap, diag);
    heap_close(&heap);
    return status;
}

/* ---- what is there ---- */

/* A norm, and what stands before it. */
typedef struct Fold {
    Graph *graph;
    PassRun *run;
    Node *norm, *product;
    Node *sum;  /* where the bias is added behind the product; null: it is an operand, or there is none */
    int addend; /* operand of the sum that is the bias */
    Node *bias; /* null: there is none */
    int64_t channels;
} Fold;

static bool is_parameter(const Node *n)
{
    return n && (n->op == OP_state || n->op == OP_const) && n->type->kind == TYPE_TENSOR && type_known(n->type) &&
           dtype_is_float(n->type->dtype);
}

static bool is_trained(const Node *n)
{
    return n && n->op == OP_state && n->flags & NODE_TRAINED;
}

/* A state that others read too would be another for them; a constant is folded into a copy. */
static bool is_shared(const Node *n)
{
    return n->op == OP_state && node_n_uses(n) != 1;
}

static Payload *first_value(const Node *n)
{
    return n->op == OP_state ? state_initial(n) : node_payload(n);
}

static bool takes_bias(const Node *n)
{
    return op_of(n)->max_in > BIAS && quant_role(&op_of(n)->quant, BIAS) == QUANT_BIAS;
}

/* Products whose operand 1 has a dimension for the channels, which lie along dimension 1 of the result. */
static bool is_product(const Node *n)
{
    return op_of(n)->access.kind == ACCESS_CONTRACT && quant_role(&op_of(n)->quant, WEIGHT) == QUANT_WEIGHT &&
           n->type->kind == TYPE_TENSOR && n->type->rank >= 2 && (takes_bias(n) || n->type->rank == 2);
}

/* How many channels the slices of a weight are; with groups each has its own. */
static bool slices_fit(const Node *product, int64_t channels, int64_t *parts)
{
    const Type *w = in(product, WEIGHT)->type;
    const int axis = quant_weight_axis(product, WEIGHT);
    if (axis == QUANT_WHOLE || !w->dims[axis] || channels % w->dims[axis])
        return false;
    *parts = channels / w->dims[axis];
    return *parts == 1 || (axis > 0 && *parts > 0 && w->dims[0] % *parts == 0);
}

/* Whether a bias has one element for each channel: as a list where a filter takes it, along dimension 1 of the result
 * where it is spread over that. */
static bool bias_fits(const Fold *f)
{
    const Type *t = f->bias->type;
    const int rank = f->norm->type->rank, axis = f->sum || rank == 2 ? t->rank - rank + 1 : 0;
    return axis >= 0 && t->rank > axis && t->dims[axis] == f->channels && type_elements(t) == f->channels;
}

/* ---- why a norm stays ---- */

static Node *bias_behind(Fold *f, Node *sum)
{
    for (int i = 0; i < 2; i++) {
        Node *p = in(sum, i), *b = in(sum, 1 - i);
        if (!p || !is_product(p) || !is_parameter(b))
            continue;
        f->sum = sum;
        f->addend = 1 - i;
        f->bias = b;
        return p;
    }
    return NULL;
}

static const char *check_place(Fold *f)
{
    return f->norm->graph != f->graph ? "it is inside a body" : NULL;
}

/* The product that a norm is folded into, or why it is not. */
static const char *find_product(Fold *f)
{
    Node *y = in(f->norm, 0);
    f->product = is_product(y) ? y : y->op == OP_add ? bias_behind(f, y) : NULL;
    if (!f->product)
        return "what it normalizes is no product with a weight";
    if (node_n_uses(y) != 1 || node_n_uses(f->product) != 1)
        return "what it normalizes is read elsewhere too";
    if (!is_parameter(in(f->product, WEIGHT)))
        return "the weight before it is computed";
    if (f->sum && in(f->product, BIAS))
        return "two biases are added before it";
    if (!f->sum)
        f->bias = in(f->product, BIAS);
    return f->bias && !is_parameter(f->bias) ? "the bias before it is computed" : NULL;
}

static const char *check_norm(Fold *f)
{
    for (int i = SCALE; i < NORM_OPERANDS; i++)
        if (!is_parameter(in(f->norm, i)))
            return "its own operands are computed";
    if (is_trained(in(f->norm, SCALE)) && is_shared(in(f->norm, SCALE)))
        return "its scale is read elsewhere too";
    if (is_trained(in(f->norm, SHIFT)) && is_shared(in(f->norm, SHIFT)))
        return "its shift is read elsewhere too";
    return NULL;
}

/* beta of a gemm would scale the bias that the norm has become. */
static bool scales_bias(const Node *product)
{
    const AttrSpec *beta = attr_find(op_of(product)->attrs, str("beta"));
    return beta && *(const float *)attr_at(beta, product->attr) != 1;
}

static const char *check_product(Fold *f)
{
    Node *w = in(f->product, WEIGHT);
    int64_t parts;
    f->channels = in(f->norm, SCALE)->type->dims[0];
    if (is_shared(w))
        return "the weight before it is read elsewhere too";
    if (f->bias && is_shared(f->bias))
        return "the bias before it is read elsewhere too";
    if (!is_trained(w) && is_trained(in(f->norm, SCALE)))
        return "its scale is trained, and the weight before it is not";
    if (!slices_fit(f->product, f->channels, &parts))
        return "its channels are not those of the weight before it";
    if (f->bias && !bias_fits(f))
        return "the bias before it is not one number for each channel";
    return scales_bias(f->product) ? "the bias before it is multiplied by beta" : NULL;
}

/* Who becomes the bias: the one that is there, or the shift, whichever is trained. */
static Node *heir_of_bias(const Fold *f)
{
    Node *shift = in(f->norm, SHIFT);
    return f->bias && (is_trained(f->bias) || !is_trained(shift)) ? f->bias : shift;
}

static const char *check_heir(Fold *f)
{
    const Node *heir = heir_of_bias(f);
    const bool fits = !f->sum || f->norm->type->rank == 2;
    return heir != f->bias && is_trained(heir) && (!fits || heir->type->dtype != f->product->type->dtype)
               ? "its shift is trained and has another type than the bias before it"
               : NULL;
}

/* ---- the graph ---- */

static Folded *fold_of(const Fold *f, Payload *from, const Type *type, const char *name)
{
    Graph *g = f->graph;
    Folded *x = NEW(g->arena, Folded);
    *x = (Folded){ .from = from, .memory = g->ir->memory, .channels = f->channels };
    x->payload = (Payload){ .type = type, .name = name, .arena = g->arena, .read = read_folded, .owner = x };
    x->epsilon = (double)((const BatchNormAttr *)f->norm->attr)->epsilon;
    for (int i = SCALE; i < NORM_OPERANDS; i++)
        x->norm[i] = first_value(in(f->norm, i));
    return x;
}

static Payload *weight_of(const Fold *f)
{
    const Node *w = in(f->product, WEIGHT);
    const int axis = quant_weight_axis(f->product, WEIGHT);
    Folded *x = fold_of(f, first_value(w), w->type, w->name);
    (void)slices_fit(f->product, f->channels, &x->parts);
    x->part = w->type->dims[axis];
    x->inner = 1;
    for (int i = axis + 1; i < w->type->rank; i++)
        x->inner *= w->type->dims[i];
    return &x->payload;
}

static Payload *bias_of(const Fold *f, const Node *heir)
{
    Types *types = &f->graph->ir->types;
    const Type *own = type_vector(types, f->product->type->dtype, f->channels);
    Payload *from = f->bias ? first_value(f->bias) : NULL;
    Folded *x = fold_of(f, from, heir == f->bias ? heir->type : own, heir->name);
    x->shifts = true;
    x->parts = x->inner = 1;
    x->part = f->channels;
    return &x->payload;
}

/* The parameter with another first value: a state begins otherwise, of a constant there is a copy. */
static Node *begin_with(const Fold *f, Node *n, Payload *p)
{
    Graph *g = f->graph;
    if (n->op == OP_state) {
        StateAttr *attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
        attr->value = p;
        n->attr = attr;
        n->type = p->type;
        return n;
    }
    Node *copy = graph_insert(g, f->product, OP_const, p->type, 0, NULL);
    copy->attr = attrs_copy(g->arena, op_of(copy)->attrs, &(ValueAttr){ p });
    copy->flags = n->flags;
    copy->src = n->src;
    copy->label = n->label;
    if (!n->uses || node_n_uses(n) == 1) {
        copy->name = n->name;
        n->name = NULL;
    }
    return copy;
}

/* The product with its new operands, or the sum with it. */
static Status put_together(const Fold *f, Node *w, Node *b, Node **y)
{
    Node *p = f->product;
    node_set_in(p, WEIGHT, w);
    *y = f->sum ? f->sum : p;
    if (f->sum) {
        node_set_in(f->sum, f->addend, b);
    } else if (takes_bias(p)) {
        node_set_ins(p, BIAS + 1, (Node *[]){ in(p, 0), w, b });
    } else {
        Build at = build_before(f->norm);
        at.src = p->src;
        at.label = p->label;
        at.flags = p->flags;
        *y = CALL(&at, add, p, b);
        return at.status;
    }
    (*y)->name = NULL;
    return OK;
}

static void note_gone(const Fold *f, const char *name, const char *into)
{
    const Recipe *r = f->run->options ? f->run->options->recipe : NULL;
    for (size_t i = 0; name && r && r->choices && i < r->choices->n; i++) {
        Choice *c = &r->choices->list[i];
        if (strcmp(c->name, name) != 0 || c->kind == CHOICE_CONSTANT)
            continue;
        c->kind = CHOICE_FOLDED;
        c->reason = arena_printf(f->graph->arena, "part of %s", into);
    }
}

/* A state that only the norm read leaves the graph; a constant is dead then, which drop-dead sees. */
static void drop_unread(const Fold *f, const Node *n, const char *into)
{
    Graph *g = f->graph;
    for (size_t i = g->n_inputs; n && !n->uses && i-- > 0;) {
        if (g->inputs[i] != n)
            continue;
        note_gone(f, n->name, into);
        graph_drop_input(g, i);
    }
}

static Status fold(Fold *f)
{
    Node *const gone[] = { f->bias, in(f->norm, SCALE), in(f->norm, SHIFT), in(f->norm, MEAN), in(f->norm, VAR) };
    Node *w = in(f->product, WEIGHT), *heir = heir_of_bias(f), *y;
    Payload *of_weight = weight_of(f), *of_bias = bias_of(f, heir);
    w = begin_with(f, w, of_weight);
    heir = begin_with(f, heir, of_bias);
    TRY(put_together(f, w, heir, &y));
    stand_in(f->norm, y);
    node_remove(f->norm);
    for (size_t i = 0; i < COUNT(gone); i++)
        drop_unread(f, gone[i], w->name ? w->name : "a weight");
    f->run->changes++;
    return OK;
}

/* ---- norms that keep their parameters ---- */

static bool keeps(const Fold *f)
{
    const Recipe *r = f->run->options ? f->run->options->recipe : NULL;
    return r && r->kept_norms;
}

static const char *check_kept(Fold *f)
{
    int64_t parts;
    return keeps(f) && slices_fit(f->product, f->channels, &parts) && parts != 1 ? "its channels lie in groups" : NULL;
}

static Status keep(Fold *f)
{
    Build b = build_before(f->product);
    b.src = f->norm->src;
    b.label = f->norm->label;
    const BatchNormAttr *norm = f->norm->attr;
    const FoldNormAttr at = { .epsilon = norm->epsilon,
                              .momentum = norm->momentum,
                              .axis = quant_weight_axis(f->product, WEIGHT) };
    Node *ins[FOLD_NORM_OPERANDS] = { in(f->product, WEIGHT), in(f->norm, SCALE), in(f->norm, SHIFT), in(f->norm, MEAN),
                                      in(f->norm, VAR) };
    if (f->bias)
        ins[FOLD_NORM_BIAS] = make_reshape(&b, f->bias, 1, &f->channels);
    Node *both = build_node_n(&b, OP_fold_norm, &at, f->bias ? FOLD_NORM_OPERANDS : FOLD_NORM_BIAS, ins, 2), *y;
    TRY(b.status);
    Node *weight = build_part(&b, both, 0), *shift = build_part(&b, both, 1);
    if (f->bias)
        shift = make_reshape(&b, shift, f->bias->type->rank, f->bias->type->dims);
    TRY(b.status);
    TRY(put_together(f, weight, shift, &y));
    stand_in(f->norm, y);
    node_remove(f->norm);
    f->run->changes++;
    return OK;
}

/* ---- the pass ---- */

static const char *why_it_stays(Fold *f)
{
    static const char *(*const checks[])(Fold * f) = { check_place,   find_product, check_norm,
                                                       check_product, check_kept,   check_heir };
    const char *why = NULL;
    for (size_t i = 0; i < COUNT(checks) && !why; i++)
        why = checks[i](f);
    return why;
}

/* Whether weights are codes, which take no norm in: it stays a call of its own. */
static bool stores_weights(const PassRun *run)
{
    const Recipe *r = run->options->recipe;
    return r && r->quantization.spec && quantizer_is_stored(&r->quantization.spec->of[OPERAND_W]);
}

static Status fold_norms(Graph *g, PassRun *run)
{
    if (stores_weights(run))
        return OK;
    TRY(modes_infer(g, run, true, false)); /* a file may have them in training form */
    for (Node *n = walk_first(g), *next; n; n = next) {
        next = walk_next(g, n);
        if (!op_of(n)->statistics)
            continue;
        Fold f = { .graph = g, .run = run, .norm = n };
        const char *why = why_it_stays(&f);
        if (why)
            remark(run->diag, "fold-norms", node_place(n), "stays: %s", why);
        else
            TRY(keeps(&f) ? keep(&f) : fold(&f));
    }
    return OK;
}

const Pass pass_fold_norms = {
    .name = "fold-norms", .needs = TYPED | CHOSEN, .may = MEANING, .rebinds = true, .run = fold_norms
};
