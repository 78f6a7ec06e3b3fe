#include "runtime/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/data/lane.h"

/* A dataset that is being opened. */
typedef struct Binding {
    Dataset *ds;
    Diag *d;
    size_t n_specs, n_fills;
    const DataSpec *specs;
    const DataFill *fills;
    size_t *input_of; /* of each spec */
    Map names;        /* of the inputs, to the first of each name */
} Binding;

static Place on_spec(const DataSpec *spec)
{
    return (Place){ .file = spec->flag, .where = spec->text, .byte = -1 };
}

/* ---- which input a spec means ---- */

static Status unknown_input(Binding *b, Place place, const char *name)
{
    const Dataset *ds = b->ds;
    const char **names = NEWS(b->d->arena, const char *, ds->n + 1);
    for (size_t i = 0; i < ds->n; i++)
        names[i] = ds->inputs[i].name;
    const char *near = str_nearest(name, names, ds->n);
    Message *m = message_new(b->d, SEVERITY_ERROR, USAGE, place, "no input is called %s", name);
    for (size_t i = 0; i < ds->n; i++)
        message_at(m, "%s %s", names[i], input_shown(b->d->arena, &ds->inputs[i]));
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

static void name_inputs(Binding *b)
{
    map_open(&b->names, &b->ds->arena);
    for (size_t i = 0; i < b->ds->n; i++) {
        bool fresh;
        MapEntry *e = map_put(&b->names, b->ds->inputs[i].name, &fresh);
        if (fresh)
            e->value.u = i;
    }
}

static Status find_input(Binding *b, Place place, const char *name, size_t *input)
{
    const MapEntry *e = map_find(&b->names, name);
    if (e)
        *input = e->value.u;
    return e ? OK : unknown_input(b, place, name);
}

/* The input that a spec names.  Where there is one target, a target has whatever name it is given. */
static Status find_named(Binding *b, const DataSpec *spec, size_t *input)
{
    const Dataset *ds = b->ds;
    size_t targets = 0, only = 0;
    const MapEntry *e = map_find(&b->names, spec->name);
    if (e) {
        *input = e->value.u;
        return OK;
    }
    for (size_t i = 0; i < ds->n; i++)
        if (ds->inputs[i].target && targets++ == 0)
            only = i;
    *input = only;
    return spec->target && targets == 1 ? OK : unknown_input(b, on_spec(spec), spec->name);
}

/* Each input is fed once. */
static Status claim(Binding *b, Place place, size_t input, bool *taken)
{
    if (taken[input])
        return fail_as(b->d, USAGE, place, "input %s is given twice", b->ds->inputs[input].name);
    taken[input] = true;
    return OK;
}

static Status bind_named(Binding *b, bool *taken)
{
    for (size_t i = 0; i < b->n_specs; i++) {
        const DataSpec *spec = &b->specs[i];
        if (!spec->name)
            continue;
        TRY(find_named(b, spec, &b->input_of[i]));
        TRY(claim(b, on_spec(spec), b->input_of[i], taken));
    }
    for (size_t i = 0; i < b->n_fills; i++) {
        size_t input;
        const Place place = { .file = "--fill", .where = b->fills[i].name, .byte = -1 };
        TRY(find_input(b, place, b->fills[i].name, &input));
        TRY(claim(b, place, input, taken));
    }
    return OK;
}

static Status bind_unnamed(Binding *b, bool *taken)
{
    const Dataset *ds = b->ds;
    for (size_t i = 0; i < b->n_specs; i++) {
        const DataSpec *spec = &b->specs[i];
        size_t n = 0;
        if (spec->name)
            continue;
        for (size_t k = 0; k < ds->n; k++)
            if (!taken[k] && ds->inputs[k].target == spec->target && n++ == 0)
                b->input_of[i] = k;
        if (!n)
            return fail_as(b->d, USAGE, on_spec(spec), "there is no %s left to feed",
                           spec->target ? "target" : "input");
        if (n > 1) {
            Message *m = message_new(b->d, SEVERITY_ERROR, USAGE, on_spec(spec), "which %s is meant: %zu wait for data",
                                     spec->target ? "target" : "input", n);
            for (size_t k = 0; k < ds->n; k++)
                if (!taken[k] && ds->inputs[k].target == spec->target)
                    message_at(m, "%s %s", ds->inputs[k].name, input_shown(b->d->arena, &ds->inputs[k]));
            message_try(m, "%s %s=%s", spec->flag, ds->inputs[b->input_of[i]].name, spec->text);
            return message_send(m);
        }
        taken[b->input_of[i]] = true;
    }
    return OK;
}

static Status all_fed(Binding *b, const bool *taken)
{
    Message *m = NULL;
    const Dataset *ds = b->ds;
    for (size_t i = 0; i < ds->n; i++) {
        const DataInput *input = &ds->inputs[i];
        if (taken[i])
            continue;
        if (!m)
            m = message_new(b->d, SEVERITY_ERROR, USAGE, NOWHERE, "inputs without data");
        message_at(m, "%s %s", input->name, input_shown(b->d->arena, input));
        message_try(m, "%s %s=FILE.npy, or --fill %s=VALUE", input->target ? "--target" : "--data", input->name,
                    input->name);
    }
    return m ? message_send(m) : OK;
}

/* ---- constants ---- */

static Status fill_lane(Binding *b, const DataFill *fill)
{
    size_t input = 0;
    Dataset *ds = b->ds;
    const Place place = { .file = "--fill", .where = fill->name, .byte = -1 };
    TRY(find_input(b, place, fill->name, &input));
    Lane *lane = &ds->lanes[input];
    const Type *type = lane->input->type;
    const int64_t last = type->rank ? type->dims[type->rank - 1] : 1;
    if (!dtype_is_float(type->dtype) && !fill->range && !fill->whole)
        return fail_as(b->d, USAGE, place, "%g is no value for %s", fill->value, dtype_name(type->dtype));
    lane->kind = LANE_CONSTANT;
    lane->constant = tensor_alloc(&ds->heap, type);
    const int64_t n = tensor_elements(lane->constant);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(type->dtype))
            tensor_set_f64(lane->constant, i, fill->range ? (double)(i % last) : fill->value);
        else
            tensor_set_i64(lane->constant, i, fill->range ? i % last : fill->integer);
    }
    lane->says = fill->range ? "0, 1, 2, .." : arena_printf(&ds->arena, "%g", fill->value);
    return OK;
}

/* ---- files ---- */

static Status open_samples(Dataset *ds, Diag *d, const DataSpec *spec, const DataInput *input, Samples **source)
{
    Samples *s = NEW(&ds->arena, Samples);
    const SamplesQuery q = { .memory = ds->memory,
                             .types = ds->types,
                             .arena = &ds->arena,
                             .d = d,
                             .limits = ds->limits,
                             .options = &ds->options,
                             .spec = spec,
                             .wanted = input->type,
                             .input = input->name,
                             .held = &ds->held };
    TRY(samples_open(s, &q));
    ds->sources[ds->n_sources++] = *source = s;
    return OK;
}

static bool any_next(const Binding *b)
{
    for (size_t i = 0; i < b->n_specs; i++)
        if (b->specs[i].kind == DATA_NEXT)
            return true;
    return false;
}

static Status wrong_rows(Binding *b, const Lane *lane)
{
    const DataInput *input = lane->input;
    return fail(b->d, (Place){ .file = lane->source->path, .byte = -1 },
                "%" PRId64 " rows, input %s %s is given as a whole", lane->samples, input->name,
                type_text(b->d->arena, input->type));
}

/* An array that is no samples: read once, and given to every step as it is. */
static Status read_whole(Binding *b, Lane *lane)
{
    Dataset *ds = b->ds;
    const Type *type = lane->input->type;
    Fault f = { 0 };
    if (lane->samples != type->dims[0])
        return wrong_rows(b, lane);
    void *room = heap_alloc(&ds->heap, 2 * ds->room + 1);
    Status status = OK;
    lane->constant = tensor_alloc(&ds->heap, type);
    for (int64_t k = 0; status == OK && k < lane->samples; k++)
        status = lane_read(lane, k, room, lane->constant, k, &f);
    heap_free(&ds->heap, room);
    lane->kind = LANE_CONSTANT;
    lane->whole = true;
    lane->says = arena_printf(&ds->arena, "%s, the whole in every step", lane->says);
    return status == OK ? OK : fault_send(&f, b->d);
}

static Status open_lane(Binding *b, const DataSpec *spec, Lane *lane)
{
    Dataset *ds = b->ds;
    lane->spec = spec;
    if (spec->kind == DATA_NONE || spec->kind == DATA_NEXT || spec->kind == DATA_SAME)
        return OK;
    if (strcmp(spec->path, "-") == 0) {
        TRY(samples_stream_options(b->d, spec));
        lane->kind = LANE_STREAM;
        lane->says = "a stream";
        ds->streams = true;
        return OK;
    }
    TRY(open_samples(ds, b->d, spec, lane->input, &lane->source));
    lane->kind = LANE_FILE;
    lane->tail = any_next(b) ? 1 : 0;
    TRY(lane_fit(ds, lane, b->d));
    return data_given(spec, DATA_static) ? read_whole(b, lane) : OK;
}

/* The lane whose tokens `next` shifts. */
static Status find_tokens(Binding *b, const DataSpec *spec, const Lane **from)
{
    size_t n = 0;
    for (size_t i = 0; i < b->ds->n; i++) {
        const Lane *l = &b->ds->lanes[i];
        if (l->kind == LANE_FILE && l->source->tokens && l->spec->kind == DATA_FILE && n++ == 0)
            *from = l;
    }
    return n == 1 ? OK
                  : fail_as(b->d, USAGE, on_spec(spec),
                            "next wants one input that a token file (.bin) feeds: there are %zu", n);
}

static Status derive_lane(Binding *b, const DataSpec *spec, Lane *lane)
{
    const Lane *from = NULL;
    if (spec->kind == DATA_NEXT) {
        TRY(find_tokens(b, spec, &from));
        lane->shift = lane->tail = 1;
    } else if (spec->kind == DATA_SAME) {
        size_t input = 0;
        TRY(find_input(b, on_spec(spec), spec->same, &input));
        from = &b->ds->lanes[input];
        if (from->kind != LANE_FILE || from->spec->kind != DATA_FILE)
            return fail_as(b->d, USAGE, on_spec(spec), "input %s is not fed from a file", spec->same);
        lane->tail = from->tail;
    } else {
        return OK;
    }
    lane->kind = LANE_FILE;
    lane->source = from->source;
    lane->spec = from->spec;
    TRY(lane_fit(b->ds, lane, b->d));
    lane->spec = spec;
    return OK;
}

/* ---- what belongs together ---- */

/* One of the two may be no samples: edges of a graph, a mask, a table. */
static Status other_length(Binding *b, const Lane *l, const Lane *first)
{
    Message *m = message_new(b->d, SEVERITY_ERROR, INVALID, (Place){ .file = l->source->path, .byte = -1 },
                             "%" PRId64 " samples, %s has %" PRId64, l->samples, first->source->path, first->samples);
    const Lane *both[] = { l, first };
    for (size_t i = 0; i < COUNT(both); i++)
        if (both[i]->spec->kind == DATA_FILE && both[i]->samples == both[i]->input->type->dims[0])
            message_try(m, "%s, if every step is to be given the whole array; or --const %s=%s for good",
                        data_spec_with(b->d->arena, both[i]->spec, both[i]->input->name, "static"),
                        both[i]->input->name, both[i]->spec->path);
    return message_send(m);
}

/* Where nothing has samples, all arrays together are one batch: of as many rows as the target has. */
static const Lane *whole_rows(const Dataset *ds)
{
    const Lane *rows = NULL;
    for (size_t i = 0; i < ds->n; i++)
        if (ds->lanes[i].whole && (!rows || (ds->inputs[i].target && !rows->input->target)))
            rows = &ds->lanes[i];
    return rows;
}

static Status check_lengths(Binding *b)
{
    Dataset *ds = b->ds;
    const Lane *first = NULL;
    ds->samples = ds->streams ? -1 : 0;
    for (size_t i = 0; i < ds->n; i++) {
        const Lane *l = &ds->lanes[i];
        if (l->kind != LANE_FILE)
            continue;
        if (ds->streams)
            return fail_as(b->d, USAGE, on_spec(l->spec),
                           "a stream cannot run beside files: it has no samples by number");
        if (!l->samples)
            return fail(b->d, (Place){ .file = l->source->path, .byte = -1 }, "holds no samples");
        if (first && l->samples != first->samples)
            return other_length(b, l, first);
        first = first ? first : l;
        ds->samples = l->samples;
    }
    const Lane *rows = first ? NULL : whole_rows(ds);
    if (rows)
        ds->samples = ds->batch = rows->input->type->dims[0];
    if (!first && !rows && !ds->streams)
        return fail_as(b->d, USAGE, NOWHERE, "no input is fed from a file");
    return OK;
}

static Status other_batch(const Binding *b, const DataInput *in, const DataInput *first)
{
    Message *m = message_new(b->d, SEVERITY_ERROR, USAGE, NOWHERE,
                             "input %s has %" PRId64 " samples in a batch, input %s has %" PRId64, in->name,
                             in->type->dims[0], first->name, first->type->dims[0]);
    message_try(m, "--batch %" PRId64 " or --batch %" PRId64 ", where the file leaves the batch open",
                in->type->dims[0], first->type->dims[0]);
    return message_send(m);
}

static Status check_batch(Binding *b)
{
    Dataset *ds = b->ds;
    const DataInput *first = NULL;
    for (size_t i = 0; i < ds->n; i++) {
        const DataInput *in = &ds->inputs[i];
        const Lane *l = &ds->lanes[i];
        if (l->kind != LANE_FILE && l->kind != LANE_STREAM)
            continue;
        if (first && in->type->dims[0] != ds->batch)
            return other_batch(b, in, first);
        if (!first && ds->batch && in->type->dims[0] != ds->batch)
            return fail_as(b->d, USAGE, NOWHERE,
                           "input %s has %" PRId64 " samples in a batch, static ones have %" PRId64, in->name,
                           in->type->dims[0], ds->batch);
        first = first ? first : in;
        ds->batch = in->type->dims[0];
    }
    return OK;
}

/* What labels that are no classes may mean: all of them from 1 on, or one value that is not to count. */
static Status bad_classes(Binding *b, const Lane *l, const Fault *f)
{
    Dataset *ds = b->ds;
    Fault none = { 0 };
    const Samples *s = l->source;
    int64_t least = INT64_MAX, most = INT64_MIN, outside = 0, odd = 0;
    const int64_t n = samples_elements(s), count = l->input->count;
    Message *m = message_new(b->d, SEVERITY_ERROR, f->status, (Place){ .file = f->file, .where = f->where, .byte = -1 },
                             "%s", f->text);
    Tensor *one = tensor_alloc(&ds->heap, type_vector(ds->types, s->dtype, 1));
    for (int64_t i = 0; i < n && dtype_is_integer(s->dtype) && samples_read(s, &none, i, 1, one->data) == OK; i++) {
        const int64_t x = tensor_get_i64(one, 0);
        const bool counts = x >= 0 && x < count;
        outside += !counts && (!outside || x != odd);
        odd = counts ? odd : x;
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    tensor_drop(&ds->heap, one);
    if (least == 1 && most == count)
        message_try(m, "numpy.save(path, y - 1): the labels are 1..%" PRId64 ", classes begin at 0", count);
    else if (outside == 1 && (odd < 0 || odd == 255)) /* what markers usually are */
        message_try(m, "--loss cross_entropy:ignore_index=%" PRId64 ", if %" PRId64 " marks labels that do not count",
                    odd, odd);
    return message_send(m);
}

/* Classes are looked at before training begins: they are few bytes, and the last one may be the wrong one. */
static Status check_classes(Binding *b)
{
    Dataset *ds = b->ds;
    Fault f = { 0 };
    for (size_t i = 0; i < ds->n; i++) {
        const Lane *l = &ds->lanes[i];
        if (l->kind != LANE_FILE || l->input->role != DATA_CLASSES || !l->input->count || !l->source->elements.p)
            continue;
        void *room = heap_alloc(&ds->heap, 2 * ds->room + 1);
        Tensor *one = tensor_alloc(&ds->heap, type_vector(ds->types, l->convert.to, l->convert.n));
        Status status = OK;
        for (int64_t k = 0; status == OK && k < l->samples; k++)
            status = lane_read(l, k, room, one, 0, &f);
        tensor_drop(&ds->heap, one);
        heap_free(&ds->heap, room);
        if (status != OK)
            return status == INVALID ? bad_classes(b, l, &f) : fault_send(&f, b->d);
    }
    return OK;
}

static Status check_inputs(Binding *b)
{
    for (size_t i = 0; i < b->ds->n; i++) {
        const DataInput *in = &b->ds->inputs[i];
        if (!in->type || !tensor_holds(in->type))
            return fail_as(b->d, UNSUPPORTED, NOWHERE, "input %s %s: data are for tensors of numbers of a known shape",
                           in->name, in->type ? type_text(b->d->arena, in->type) : "without a type");
    }
    for (size_t i = 0; i < b->n_specs; i++)
        if (b->specs[i].kind == DATA_FILE && b->ds->inputs[b->input_of[i]].type->rank < 1)
            return fail_as(b->d, USAGE, on_spec(&b->specs[i]), "input %s %s is one number: --fill gives it",
                           b->ds->inputs[b->input_of[i]].name,
                           input_shown(b->d->arena, &b->ds->inputs[b->input_of[i]]));
    return OK;
}

static Status bind_all(Binding *b)
{
    Dataset *ds = b->ds;
    bool *taken = NEWS(&ds->arena, bool, ds->n + 1);
    b->input_of = NEWS(&ds->arena, size_t, b->n_specs + 1);
    TRY(bind_named(b, taken));
    TRY(bind_unnamed(b, taken));
    TRY(all_fed(b, taken));
    TRY(check_inputs(b));
    for (size_t i = 0; i < b->n_fills; i++)
        TRY(fill_lane(b, &b->fills[i]));
    for (size_t i = 0; i < b->n_specs; i++)
        TRY(open_lane(b, &b->specs[i], &ds->lanes[b->input_of[i]]));
    for (size_t i = 0; i < b->n_specs; i++)
        TRY(derive_lane(b, &b->specs[i], &ds->lanes[b->input_of[i]]));
    TRY(check_lengths(b));
    TRY(check_batch(b));
    return check_classes(b);
}

/* ---- opening and closing ---- */

static void release(void *thing)
{
    Dataset *ds = thing;
    memory_release(ds->memory, ds, sizeof *ds);
}

Status dataset_open(Dataset **dataset, Memory *m, Types *types, Diag *d, const Limits *limits,
                    const DataOptions *options, size_t n_inputs, const DataInput *inputs, size_t n_specs,
                    const DataSpec *specs, size_t n_fills, const DataFill *fills)
{
    Dataset *ds = memory_block(m, sizeof *ds);
    *ds = (Dataset){ .memory = m, .types = types, .limits = limits, .n = n_inputs };
    if (options)
        ds->options = *options;
    cleanup_push(m, &ds->cleanup, release, ds);
    arena_open(&ds->arena, m);
    heap_open(&ds->heap, m);
    ds->inputs = NEWS(&ds->arena, DataInput, n_inputs + 1);
    ds->lanes = NEWS(&ds->arena, Lane, n_inputs + 1);
    ds->sources = NEWS(&ds->arena, Samples *, n_specs + 1);
    DataSpec *kept = NEWS(&ds->arena, DataSpec, n_specs + 1);
    if (n_specs)
        memcpy(kept, specs, n_specs * sizeof *kept);
    if (n_inputs)
        memcpy(ds->inputs, inputs, n_inputs * sizeof *inputs);
    for (size_t i = 0; i < n_inputs; i++)
        ds->lanes[i].input = &ds->inputs[i];
    Binding b = { .ds = ds, .d = d, .n_specs = n_specs, .n_fills = n_fills, .specs = kept, .fills = fills };
    name_inputs(&b);
    const Status status = bind_all(&b);
    if (status != OK)
        dataset_close(ds);
    else
        *dataset = ds;
    return status;
}

void dataset_close(Dataset *ds)
{
    if (!ds)
        return;
    for (size_t i = ds->n_sources; i > 0; i--)
        samples_close(ds->sources[i - 1]);
    heap_close(&ds->heap);
    arena_close(&ds->arena);
    cleanup_drop(&ds->cleanup);
    release(ds);
}

int64_t dataset_samples(const Dataset *ds)
{
    return ds->samples;
}

int64_t dataset_batch(const Dataset *ds)
{
    return ds->batch;
}

bool dataset_is_one(const Dataset *ds)
{
    return ds->samples == ds->batch && whole_rows(ds);
}

const char *dataset_says(const Dataset *ds, size_t input)
{
    return ds->lanes[input].says;
}

const char *dataset_path(const Dataset *ds, size_t input)
{
    const Lane *l = &ds->lanes[input];
    return l->kind == LANE_FILE || l->whole ? l->source->path : l->kind == LANE_STREAM ? "-" : NULL;
}
