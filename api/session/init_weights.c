#include "api/session/init_weights.h"

#include <string.h>
#include <sys/stat.h>

#include "api/hall/words.h"
#include "api/session/init_codes.h"
#include "api/session/init_gates.h"
#include "api/session/stored_states.h"
#include "base/bytes.h"
#include "frontends/onnx/read/torch.h"
#include "ir/aliases.h"
#include "ir/store/safetensors.h"
#include "ops/card/path.h"
#include "passes/recipe/choices.h"
#include "runtime/checkpoint/checkpoint.h"

typedef struct Initial {
    qcc_step *step;
    Session *run;
    Arena *arena;
    const char *path;
    const TorchNames *torch; /* what the exporter says; null: nothing */
    StateSlot *slots;        /* of states, behind them of parameters that are constants, and of the scales of codes */
    Node **frozen;           /* those constants */
    size_t n, n_states;
    InitCodes codes;
} Initial;

/* ---- what may be filled ---- */

static bool is_twin(const Initial *x, const char *name)
{
    const Choice *c = x->step->recipe.choices ? choice_find(x->step->recipe.choices, name) : NULL;
    return c && c->kind == CHOICE_TIED;
}

static void add_slot(Initial *x, const Node *n, const char *path, bool may_lack)
{
    const bool codes = node_stored(n) && n->type->dtype != F32; /* files of others hold numbers */
    x->slots[x->n++] = (StateSlot){ .name = n->name,
                                    .path_name = path,
                                    .type = codes ? stored_type(x->step, n) : n->type,
                                    .mark = { STATE_weight, NULL },
                                    .may_lack = may_lack,
                                    .own_order = gates_reader(n) != NULL,
                                    .pieces = gates_pieces(x->step->ir, x->arena, n, path ? path : n->name),
                                    .turned = (n->flags & NODE_TURNED) != 0,
                                    .also = aliases_of_label(x->step->model->graph, path ? path : n->name) };
}

static void add_states(Initial *x, Map *known)
{
    const Graph *g = module_graph(x->step->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!is_model_state(n))
            continue;
        map_put(known, n->name, NULL);
        add_slot(x, n, step_path(x->step, n->name), false);
    }
    x->n_states = x->n;
}

/* Parameters that this step does not train keep the model's values, which a file may contradict. */
static void add_frozen(Initial *x, const Map *known)
{
    Graph *g = x->step->model->graph;
    const Map paths = path_names(g, x->arena);
    for (Node *n = g->first; n; n = n->next) {
        const bool weight = n->op == OP_param && n->name && n->type->kind == TYPE_TENSOR &&
                            dtype_is_float(n->type->dtype) && type_known(n->type);
        if (!weight || map_find(known, n->name) || is_twin(x, n->name))
            continue;
        const char *path = path_name(&paths, n);
        x->frozen[x->n] = n;
        add_slot(x, n, strcmp(path, n->name) != 0 ? path : NULL, true);
    }
}

static void open_slots(Initial *x)
{
    Map known;
    size_t most = module_graph(x->step->module, "step")->n_inputs + 1;
    for (const Node *n = x->step->model->graph->first; n; n = n->next)
        most += n->op == OP_param;
    x->slots = NEWS(x->arena, StateSlot, 3 * most);
    x->frozen = NEWS(x->arena, Node *, most);
    map_open(&known, x->arena);
    add_states(x, &known);
    add_frozen(x, &known);
}

/* ---- what the file has ---- */

static Status contradicts(const Initial *x, size_t i, const Tensor *value, bool *other)
{
    const Tensor *have = payload_cached(node_payload(x->frozen[i]), &x->step->cx->diag);
    if (!have)
        return INVALID;
    *other = !have->data || have->bytes != value->bytes || !bytes_equal(have->data, value->data, have->bytes);
    return OK;
}

/* Parameters of the file that the model has only as what an exporter made of them. */
static size_t find_folded(const Initial *x, const StateReport *r, const char **list)
{
    const TorchNames *torch = x->torch;
    size_t n = 0;
    Map folded;
    map_open(&folded, x->arena);
    for (size_t i = 0; torch && i < torch->n_missing; i++)
        map_put(&folded, torch->missing[i], NULL);
    for (size_t k = 0; k < r->n_unexpected; k++)
        if (map_find(&folded, r->unexpected[k]))
            list[n++] = r->unexpected[k];
    return n;
}

static Status tell_lacks(const Initial *x, const StateReport *r, const char *const *kept, size_t n_kept)
{
    Message *m =
        message_new(&x->step->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .file = x->path, .byte = -1 },
                    "--init: %zu parameters are not in it, %zu do not fit, %zu would keep what they are in the "
                    "model",
                    r->n_missing, r->n_misshapen, n_kept);
    for (size_t i = 0; i < r->n_missing; i++)
        message_at(m, "%s", r->missing[i]);
    for (size_t i = 0; i < r->n_misshapen; i++)
        message_at(m, "%s", r->misshapen[i]);
    for (size_t i = 0; i < n_kept; i++)
        message_at(m, "%s", kept[i]);
    message_try(m, "--init-partial, which leaves these as the model has them");
    return message_send(m);
}

/* With --init-partial what the file says of them is left out, which is said. */
static Status put(const Initial *x, Tensor *const *values, const StateReport *r, bool partial, Text *kept)
{
    const char **other = NEWS(x->arena, const char *, x->n + r->n_unexpected + 1);
    size_t n_other = find_folded(x, r, other);
    for (size_t i = x->n_states; i < x->n; i++) {
        bool differs = false;
        if (values[i])
            TRY(contradicts(x, i, values[i], &differs));
        if (differs)
            other[n_other++] = x->slots[i].path_name ? x->slots[i].path_name : x->slots[i].name;
    }
    if (!partial && (r->n_missing || r->n_misshapen || n_other))
        return tell_lacks(x, r, other, n_other);
    for (size_t i = 0; i < n_other; i++)
        text_printf(kept, "  %-11s %s\n", i ? "" : "kept", other[i]);
    for (size_t i = 0; i < x->n_states; i++)
        if (values[i])
            TRY(stored_init(x->step, x->run, x->slots[i].name, values[i]));
    return init_codes_put(&x->codes, x->run, x->slots, values);
}

/* Weights into which norms were folded are not those that files of the model hold under the same names. */
static Status check_folded(const qcc_step *step, const char *path)
{
    const Choices *c = step->recipe.choices;
    Place place = { .where = "--init", .byte = -1 };
    for (size_t i = 0; c && i < c->n; i++) {
        if (c->list[i].kind != CHOICE_FOLDED)
            continue;
        Message *m =
            message_new(&step->cx->diag, SEVERITY_ERROR, USAGE, place,
                        "%s is folded into the product before it, since the step is quantized: the weights of %s "
                        "are of the model with its norms",
                        c->list[i].path, path);
        message_try(m, "qcc --export MODEL --checkpoint %s -o TRAINED.onnx, and TRAINED.onnx with --quant", path);
        return message_send(m);
    }
    return OK;
}

/* The teacher has the values that the model arrived with, and whoever gives others wants these to be imitated. */
static Status check_teacher(const qcc_step *step, const char *path)
{
    const Teacher *t = &step->recipe.teacher;
    if (!t->file || strcmp(t->file, TEACHER_SELF) != 0)
        return OK;
    Message *m = message_new(&step->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .where = "--init", .byte = -1 },
                             "--teacher self has the weights of the model's file, not those of %s", path);
    message_try(m, "qcc --export MODEL --checkpoint %s -o TRAINED.onnx, and --teacher TRAINED.onnx", path);
    return message_send(m);
}

/* What the file has for the slots, codes as the numbers that they stand for. */
static Status read(Initial *x, const CheckpointReader *from, Tensor ***values, StateReport *r)
{
    size_t n = x->n; /* with slots of what codes have beside them */
    TRY(init_codes_find(&x->codes, x->step, x->path, x->slots, &n));
    *values = NEWS(x->arena, Tensor *, n + 1);
    TRY(checkpoint_init(from, x->path, x->slots, n, *values, r));
    init_codes_settle(&x->codes, x->slots, *values, from->heap, r);
    return OK;
}

Status init_weights(qcc_step *step, Session *run, const char *path, bool partial, Out *out)
{
    Heap heap;
    Text text, kept;
    StateReport r;
    qcc_context *cx = step->cx;
    TRY(check_folded(step, path));
    TRY(check_teacher(step, path));
    Initial x = { .step = step, .run = run, .arena = &cx->scratch, .path = path };
    x.torch = step->model->has_spine ? torch_names(step->model->spine.model, x.arena) : NULL;
    open_slots(&x);
    text_open(&kept, x.arena);
    heap_open(&heap, &cx->memory);
    const CheckpointReader from = { &step->ir->types, &heap, &cx->scratch, &cx->diag, &cx->limits };
    Tensor **values;
    Status status = read(&x, &from, &values, &r);
    if (status == OK)
        status = put(&x, values, &r, partial, &kept);
    heap_close(&heap);
    TRY(status);
    text_open(&text, x.arena);
    state_report_print(&text, &r);
    text_add(&text, text_get(&kept));
    return out_printf(out, "%-16s %s: %s\n", "weights", path, text_get(&text));
}

bool is_checkpoint(qcc_context *cx, Types *types, const char *path)
{
    struct stat st;
    SafeTensors s;
    Diag quiet;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    diag_open(&quiet, &cx->scratch, NULL, NULL);
    return safetensors_open(&s, types, &cx->scratch, &quiet, &cx->limits, path) == OK &&
           safetensors_metadata(&s, "qcc.format");
}
