#include "api/session/init_codes.h"

#include <string.h>

#include "api/session/stored_states.h"
#include "ir/role.h"
#include "runtime/checkpoint/info.h"

/* ---- the note ---- */

/* Lines and what stands in them end at these. */
static bool is_plain(const char *name)
{
    return !name || !strpbrk(name, "\t\n");
}

static const char *own_name(const Node *n)
{
    return n ? n->name : NULL;
}

const char *codes_note(const qcc_step *step)
{
    Text t;
    const Graph *g = module_graph(step->module, "step");
    text_open(&t, &step->cx->scratch);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!node_stored(n) || n->type->dtype == F32)
            continue;
        const char *scale = own_name(stored_scale(g, n->name)), *zero = own_name(stored_zero(g, n->name));
        if (is_plain(n->name) && is_plain(scale) && is_plain(zero))
            text_printf(&t, "%s\t%s\t%s\t%s\n", node_stored(n), n->name, scale ? scale : "", zero ? zero : "");
    }
    return t.n ? text_get(&t) : NULL;
}

/* The words of a line, which `note` is behind then. */
static bool next_line(Arena *arena, const char **note, const char *word[4])
{
    if (!**note)
        return false;
    for (int i = 0; i < 4; i++) {
        const size_t n = strcspn(*note, "\t\n");
        word[i] = arena_copy(arena, *note, n);
        *note += n;
        if (**note == '\t' && i < 3)
            ++*note;
    }
    *note += strcspn(*note, "\n");
    *note += **note == '\n';
    return true;
}

/* ---- what the file has ---- */

/* A scale goes over codes in whole parts. */
static bool divides(const Type *codes, const Type *scale)
{
    if (scale->kind != TYPE_TENSOR || scale->rank != codes->rank || !type_known(scale))
        return false;
    for (int i = 0; i < codes->rank; i++)
        if (scale->dims[i] ? codes->dims[i] % scale->dims[i] != 0 : codes->dims[i] != 0)
            return false;
    return true;
}

static size_t append(StateSlot *slots, size_t *n, const char *name, const Type *type)
{
    slots[*n] = (StateSlot){ .name = name, .type = type, .mark = { STATE_quant, NULL } };
    return (*n)++;
}

static bool is_named(const StateSlot *s, const char *name)
{
    return strcmp(s->name, name) == 0 || (s->path_name && strcmp(s->path_name, name) == 0);
}

static size_t find_slot(const StateSlot *slots, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && !is_named(&slots[i], name))
        i++;
    return i;
}

/* Whether what a line says of codes for a slot is in the file. */
static bool is_there(const SafeTensors *file, const char *const word[4], const StoredForm *form, const StateSlot *slot)
{
    const bool scaled = form->largest != 0;
    const SafeTensor *scale = safetensors_find(file, word[2]);
    if (!safetensors_find(file, word[1]) || scaled != (*word[2] != 0) || form->zeros != (*word[3] != 0))
        return false;
    return !scaled || (scale && scale->type->dtype == F32 && divides(slot->type, scale->type));
}

/* One line: words, and the names of codes, scale and zero points.  Where the file has something else the slot stays
 * what it is, and what is there does not fit it. */
static Status take_line(InitCodes *c, const SafeTensors *file, const char *const word[4], StateSlot *slots,
                        size_t n_slots, size_t *n)
{
    Types *types = &c->step->ir->types;
    CodedSlot one = { .weight = find_slot(slots, n_slots, word[1]) };
    TRY(stored_form(&one.form, word[0], &c->step->cx->scratch, &c->step->cx->diag));
    if (one.weight == n_slots || !is_there(file, word, &one.form, &slots[one.weight]))
        return OK;
    StateSlot *slot = &slots[one.weight];
    one.wanted = slot->type;
    slot->type = type_with_dtype(types, slot->type, one.form.type);
    if (*word[2])
        one.scale = append(slots, n, word[2], safetensors_find(file, word[2])->type);
    if (*word[3])
        one.zero = append(slots, n, word[3], type_with_dtype(types, slots[one.scale].type, one.form.type));
    c->list[c->n++] = one;
    return OK;
}

Status init_codes_find(InitCodes *c, const qcc_step *step, const char *path, StateSlot *slots, size_t *n)
{
    Arena *arena = &step->cx->scratch;
    SafeTensors file;
    CheckpointInfo info;
    Diag quiet; /* a file that is none of ours is read, or refused, by others */
    const char *word[4];
    const size_t n_slots = *n;
    *c = (InitCodes){ .step = step, .list = NEWS(arena, CodedSlot, *n + 1) };
    diag_open(&quiet, arena, NULL, NULL);
    if (safetensors_open(&file, &step->ir->types, arena, &quiet, &step->cx->limits, path) != OK)
        return OK;
    const char *note = info_read(arena, &file, &info) ? NULL : info.stored;
    while (note && c->n < n_slots && next_line(arena, &note, word))
        TRY(take_line(c, &file, word, slots, n_slots, n));
    return OK;
}

/* ---- what becomes of it ---- */

static bool stays(const InitCodes *c, const CodedSlot *one, const StateSlot *slots)
{
    StoredKind kept;
    const StoredKind read = { slots[one->weight].type, one->scale ? slots[one->scale].type : NULL,
                              one->zero ? slots[one->zero].type : NULL, one->form.least, one->form.largest };
    const Node *state = stored_node(c->step, slots[one->weight].name);
    return state && stored_kind(c->step, state, &kept) == OK && stored_alike(&kept, &read);
}

/* The numbers that codes stand for, in the type that is wanted. */
static Tensor *numbers_of(const InitCodes *c, const CodedSlot *one, Tensor *const *values, Heap *heap)
{
    const Type *f32s = type_with_dtype(&c->step->ir->types, one->wanted, F32);
    Tensor *numbers = tensor_alloc(heap, f32s);
    stored_numbers(values[one->weight], one->scale ? values[one->scale] : NULL, one->zero ? values[one->zero] : NULL,
                   numbers);
    if (one->wanted == f32s)
        return numbers;
    Tensor *other = tensor_alloc(heap, one->wanted);
    for (int64_t i = 0; i < tensor_elements(other); i++)
        tensor_set_f64(other, i, tensor_get_f64(numbers, i));
    tensor_drop(heap, numbers);
    return other;
}

static void drop(Tensor **values, size_t i, Heap *heap)
{
    tensor_drop(heap, values[i]);
    values[i] = NULL;
}

/* The tensors of one: its codes, scale and zero points. */
static size_t parts_of(const CodedSlot *one, size_t part[3])
{
    size_t n = 0;
    part[n++] = one->weight;
    if (one->scale)
        part[n++] = one->scale;
    if (one->zero)
        part[n++] = one->zero;
    return n;
}

/* What was read of it counts as one; codes without what they stand for are none. */
static void settle(const InitCodes *c, const CodedSlot *one, StateSlot *slots, Tensor **values, Heap *heap,
                   StateReport *report)
{
    size_t part[3], n_read = 0;
    const size_t n = parts_of(one, part);
    for (size_t k = 0; k < n; k++)
        n_read += values[part[k]] != NULL;
    const bool whole = n_read == n;
    report->n_matched -= n_read - whole;
    report->n_coded += whole;
    if (whole && stays(c, one, slots))
        return;
    Tensor *numbers = whole ? numbers_of(c, one, values, heap) : NULL;
    for (size_t k = 0; k < n; k++)
        drop(values, part[k], heap);
    values[one->weight] = numbers;
    slots[one->weight].type = one->wanted;
}

void init_codes_settle(const InitCodes *c, StateSlot *slots, Tensor **values, Heap *heap, StateReport *report)
{
    for (size_t i = 0; i < c->n; i++)
        settle(c, &c->list[i], slots, values, heap, report);
}

Status init_codes_put(const InitCodes *c, Session *run, const StateSlot *slots, Tensor *const *values)
{
    for (size_t i = 0; i < c->n; i++) {
        const CodedSlot *one = &c->list[i];
        const Node *state = stored_node(c->step, slots[one->weight].name);
        if (one->scale && values[one->scale])
            TRY(session_put(run, stored_scale(state->graph, state->name)->name, values[one->scale]));
        if (one->zero && values[one->zero])
            TRY(session_put(run, stored_zero(state->graph, state->name)->name, values[one->zero]));
    }
    return OK;
}
