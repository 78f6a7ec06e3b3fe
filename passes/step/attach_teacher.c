/* attach-teacher: the loss becomes in part how far scores are from those of a teacher, which computes them beside the
 * model from constants:  (1 - W) loss + W T^2 KL(softmax(t / T), softmax(s / T)),  the mean over all rows of classes.
 *
 *     # recipe: --loss cross_entropy:y --teacher linear.txt
 *     graph @f(%x: f32[2,3], state %w: f32[3,2] trained, %target: i64[2]) -> (%y, %loss) {
 *         %y: f32[2,2] = matmul(%x, %w)
 *         %loss: f32[] = cross_entropy(%y, %target) ours
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], state %w: f32[3,2] trained, %target: i64[2]) -> (%y, %loss) {
 *         %y: f32[2,2] = matmul(%x, %w)
 *         %0: f32[] = cross_entropy(%y, %target) ours
 *         const %1: f32[3,2] = [0.5, -1, 0.25, 2, -0.75, 1.5]
 *         %2: f32[2,2] = matmul(%x, %1)
 *         const %3: f32[] = 4 ours
 *         %4: f32[2,2] = div(%2, %3) ours
 *         %5: f32[2,2] = div(%y, %3) ours
 *         %6: f32[2,2] = log_softmax(%4, axis=1) ours
 *         %7: f32[2,2] = log_softmax(%5, axis=1) ours
 *         %8: f32[2,2] = sub(%6, %7) ours
 *         %9: f32[2,2] = softmax(%4, axis=1) ours
 *         %10: f32[2,2] = mul(%9, %8) ours
 *         const %11: i64[1] = [1] ours
 *         %12: f32[2,1] = reduce_sum(%10, %11) ours
 *         %13: f32[] = reduce_mean(%12, keepdims=false) ours
 *         const %14: f32[] = 8 ours
 *         %15: f32[] = mul(%13, %14) ours
 *         const %16: f32[] = 0.5 ours
 *         %17: f32[] = mul(%0, %16) ours
 *         %loss: f32[] = add(%17, %15) ours
 *     }
 *
 * Inputs go to the teacher by name.  Where scores are followed by a softmax, what it reads is compared, as in losses.
 * Nothing is said of samples whose weight is 0. */
#include <string.h>

#include "ir/copy.h"
#include "ops/card/make.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/loss_outputs.h"
#include "passes/recipe/loss_read.h"
#include "passes/recipe/teacher.h"

typedef struct Lesson {
    Graph *g;
    PassRun *run;
    const Recipe *recipe;
    const Teacher *teacher;
    LossTarget own, theirs; /* the scores that are compared, in the model and in a copy of the teacher */
    LossSpec spec;          /* what finds them */
    Graph *copy;            /* of the teacher */
    Build b;
} Lesson;

static Message *wrong(const Lesson *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static Message *wrong(const Lesson *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(l->run->scratch, format, args);
    va_end(args);
    return message_new(l->run->diag, SEVERITY_ERROR, USAGE, (Place){ .where = "--teacher", .byte = -1 }, "%s: %s",
                       l->teacher->file, text);
}

/* Says that a name is not there, with the one that is nearest. */
static Status no_such(const Lesson *l, const char *what, const char *name, const char *const *names, size_t n)
{
    const char *near = str_nearest(name, names, n);
    Message *m = wrong(l, "%s %s", what, name);
    for (size_t i = 0; i < n && i < 8; i++)
        if (!near || near == names[i])
            message_try(m, "%s", names[i]);
    return message_send(m);
}

static Status no_output(const Lesson *l, const Graph *g, const char *what, const char *name)
{
    const char **names = NEWS(l->run->scratch, const char *, graph_n_results(g) + 1);
    size_t n = 0;
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i) && output_is_float(graph_result(g, i)) && !output_is_scalar(graph_result(g, i)))
            names[n++] = graph_result_name(g, i);
    return no_such(l, what, name, names, n);
}

/* ---- the model's scores ---- */

/* Of several losses over classes that read different outputs nobody knows which is meant. */
static Status two_outputs(const Lesson *l, const char *a, const char *b)
{
    Message *m = wrong(l, "there are losses over classes of %s and of %s: which of them is compared?", a, b);
    message_try(m, "--teacher %s:output=%s", l->teacher->file, a);
    message_try(m, "--teacher %s:output=%s", l->teacher->file, b);
    return message_send(m);
}

/* The scores that a loss over classes reads: those of the output that is named, or of the only one. */
static Status find_by_loss(Lesson *l)
{
    const Recipe *r = l->recipe;
    for (size_t i = 0; i < r->n_losses; i++) {
        LossTarget t;
        Status status;
        if (r->losses[i].kind == LOSS_EXTERNAL)
            return message_send(wrong(l, "with --loss external the loss is the host's, and nothing is added to it"));
        const bool found = loss_target(l->g, r, i, l->g->arena, l->run->diag, &t, &status);
        TRY(status);
        if (!found || !loss_has_classes(t.kind) || (l->teacher->output && strcmp(t.output, l->teacher->output) != 0))
            continue;
        if (l->own.scores && strcmp(l->own.output, t.output) != 0)
            return two_outputs(l, l->own.output, t.output);
        if (!l->own.scores) {
            l->own = t;
            l->spec = r->losses[i];
        }
    }
    return OK;
}

static Status yes_or_no(const Lesson *l, const char *output, const char *where)
{
    return message_send(
        wrong(l, "output %s says yes or no for each element %s: there are no classes to compare", output, where));
}

/* The scores of an output that no loss over classes reads. */
static Status find_by_name(Lesson *l)
{
    Status status;
    const char *name = l->teacher->output;
    const Node *y = name ? loss_output(l->g, name) : NULL;
    if (!name) {
        Message *m = wrong(l, "no loss is over classes: of which output are scores compared?");
        message_try(m, "--teacher %s:output=NAME", l->teacher->file);
        return message_send(m);
    }
    if (!y || !output_is_float(y) || output_is_scalar(y))
        return no_output(l, l->g, "the model has no output of scores that is called", name);
    const Node *last = output_activation(y);
    if (last && op_of(last)->likelihood == LIKELIHOOD_YES)
        return yes_or_no(l, name, "in the model");
    const char **outputs = NEW(l->g->arena, const char *);
    *outputs = name;
    l->spec = loss_of(LOSS_CROSS_ENTROPY);
    l->spec.outputs = outputs;
    l->spec.n_outputs = 1;
    (void)loss_target(l->g, &(Recipe){ .losses = &l->spec, .n_losses = 1 }, 0, l->g->arena, l->run->diag, &l->own,
                      &status);
    return status;
}

/* ---- the teacher's ---- */

static Status check_scores(const Lesson *l)
{
    const Type *own = l->own.scores->type, *theirs = l->theirs.scores->type;
    if (!type_same_shape(own, theirs))
        return message_send(wrong(l, "output %s is %s there, and %s in the model", l->own.output,
                                  type_text(l->run->scratch, theirs), type_text(l->run->scratch, own)));
    if (l->own.axis != l->theirs.axis)
        return message_send(wrong(l, "classes of output %s are along axis %d there, and along axis %d in the model",
                                  l->own.output, l->theirs.axis, l->own.axis));
    if (own->dims[l->own.axis] == 1)
        return message_send(wrong(l, "output %s is of one class: there is nothing to compare", l->own.output));
    return OK;
}

static Status find_theirs(Lesson *l)
{
    Status status;
    l->copy = graph_copy(l->teacher->graph, l->g->arena);
    const char *name = l->own.output;
    const Node *y = loss_output(l->copy, name);
    if (!y || !output_is_float(y) || output_is_scalar(y))
        return no_output(l, l->copy, "it has no output of scores that is called", name);
    const Node *last = output_activation(y);
    LossSpec spec = l->spec;
    if (last && op_of(last)->likelihood == LIKELIHOOD_YES)
        return yes_or_no(l, name, "there");
    spec.kind = LOSS_CROSS_ENTROPY;
    spec.has_axis = spec.has_axis && !last; /* the one of a softmax is looked behind, and compared */
    spec.outputs = &name;
    spec.n_outputs = 1;
    (void)loss_target(l->copy, &(Recipe){ .losses = &spec, .n_losses = 1 }, 0, l->g->arena, l->run->diag, &l->theirs,
                      &status);
    TRY(status);
    return check_scores(l);
}

/* Whether an input is what a loss wants. */
static bool is_target(const Lesson *l, const Node *n)
{
    return l->own.input && strcmp(n->name, l->own.input) == 0;
}

/* What the teacher reads, by name. */
static Status find_inputs(const Lesson *l, Node **values)
{
    const char **names = NEWS(l->run->scratch, const char *, l->g->n_inputs + 1);
    size_t n = 0;
    for (size_t i = 0; i < l->g->n_inputs; i++)
        if (node_is_input(l->g->inputs[i]) && l->g->inputs[i]->name && !is_target(l, l->g->inputs[i]))
            names[n++] = l->g->inputs[i]->name;
    for (size_t i = 0; i < l->copy->n_inputs; i++) {
        const Node *theirs = l->copy->inputs[i];
        Node *own = theirs->name ? input_named(l->g, theirs->name) : NULL;
        if (!theirs->uses)
            continue;
        if (!own || !node_is_input(own))
            return no_such(l, "the model has no input that is called", theirs->name ? theirs->name : "", names, n);
        if (own->type != theirs->type)
            return message_send(wrong(l, "input %s is %s there, and %s in the model", theirs->name,
                                      type_text(l->run->scratch, theirs->type), type_text(l->run->scratch, own->type)));
        values[i] = own;
    }
    return OK;
}

/* What computes the scores, in the graph. */
static Status bring_in(Lesson *l, Node **scores)
{
    Node **values = NEWS(l->run->scratch, Node *, l->copy->n_inputs + 1);
    Results r = { .g = l->copy, .arena = l->run->scratch };
    Build plain = build_at_end(l->g);
    results_add(&r, l->own.output, l->theirs.scores);
    results_set(&r);
    TRY(pass_run(pass_find("drop-dead"), l->copy, NULL));
    TRY(find_inputs(l, values));
    copy_body(&plain, l->copy, values, scores);
    return plain.status;
}

/* ---- the loss ---- */

/* The weights of samples, to multiply what is kept of scores; null: all count. */
static Node *weights_of(Lesson *l, const Type *each)
{
    Node *w = l->spec.sample_weight ? input_named(l->g, l->spec.sample_weight) : NULL;
    int64_t dims[MAX_RANK];
    if (!w)
        return NULL;
    const int first = l->own.axis == 0 && each->rank > 1;
    const bool all = type_elements(w->type) == type_elements(each);
    for (int i = 0; i < each->rank; i++)
        dims[i] = all || i == first ? each->dims[i] : 1;
    return make_reshape(&l->b, make_cast(&l->b, w, each->dtype), each->rank, dims);
}

/* The mean of a value of each row. */
static Node *mean_of(Lesson *l, Node *each)
{
    Build *b = &l->b;
    Node *w = each ? weights_of(l, each->type) : NULL;
    if (!w)
        return make_reduce_all(b, OP_reduce_mean, each);
    const double times = (double)type_elements(each->type) / (double)type_elements(w->type);
    Node *sum = make_reduce_all(b, OP_reduce_sum, CALL(b, mul, each, w)), *all = make_reduce_all(b, OP_reduce_sum, w);
    return CALL(b, div, sum, times == 1 ? all : CALL(b, mul, all, build_scalar(b, each->type->dtype, times)));
}

static Node *divergence(Lesson *l, Node *theirs)
{
    Build *b = &l->b;
    const int64_t axis = l->own.axis;
    const DType own = make_width(l->own.scores->type->dtype), t = own == F64 ? F64 : make_width(theirs->type->dtype);
    Node *heat = build_scalar(b, t, l->teacher->temperature);
    Node *want = CALL(b, div, make_cast(b, theirs, t), heat),
         *have = CALL(b, div, make_cast(b, l->own.scores, t), heat);
    Node *off = CALL(b, sub, make_log_softmax(b, want, l->own.axis), make_log_softmax(b, have, l->own.axis));
    Node *each = CALL(b, mul, make_softmax(b, want, l->own.axis), off);
    return mean_of(l, build_reduce(b, OP_reduce_sum, each, 1, &axis));
}

static Node *times(Build *b, Node *x, double factor)
{
    return x && factor != 1 ? CALL(b, mul, x, build_scalar(b, x->type->dtype, factor)) : x;
}

static Status set_loss(Lesson *l, Results *results, Node *apart)
{
    Build *b = &l->b;
    const double t = l->teacher->temperature, w = l->teacher->weight;
    const int at = results_find(results, "loss");
    Node *task = at >= 0 ? results->node[at] : NULL;
    if (!apart || !task)
        return b->status != OK ? b->status : fail_as(l->run->diag, INTERNAL, NOWHERE, "there is no loss to add to");
    const char *name = results->name[at] ? results->name[at] : task->name;
    if (task->name == name)
        task->name = NULL;
    Node *sum = times(b, make_cast(b, apart, task->type->dtype), w * t * t);
    if (w < 1)
        sum = CALL(b, add, times(b, task, 1 - w), sum);
    TRY(b->status);
    if (!sum->name)
        sum->name = name;
    results->node[at] = sum;
    results->name[at] = name;
    results_set(results);
    return OK;
}

static Status attach_teacher(Graph *g, PassRun *run)
{
    Node *theirs;
    const Recipe *recipe = run->options ? run->options->recipe : NULL;
    if (!recipe || !recipe->teacher.graph)
        return OK;
    Lesson l = { .g = g, .run = run, .recipe = recipe, .teacher = &recipe->teacher };
    Results results = results_of(g, run->scratch);
    TRY(find_by_loss(&l));
    if (!l.own.scores)
        TRY(find_by_name(&l));
    TRY(find_theirs(&l));
    TRY(bring_in(&l, &theirs));
    l.b = build_at_end(g);
    l.b.flags = NODE_OURS;
    Node *apart = divergence(&l, theirs);
    run->changes++;
    return set_loss(&l, &results, apart);
}

const Pass pass_attach_teacher = { .name = "attach-teacher", .needs = TYPED, .may = MEANING, .run = attach_teacher };
