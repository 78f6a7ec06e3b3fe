#include "api/model/rows.h"

#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/fit.h"
#include "base/number_text.h"
#include "runtime/data/npy.h"

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* ---- what is asked for ---- */

static Status which_output(Command *c, const qcc_model *m, const char *path)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--output";
    Message *msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "%s: of which output, the model has %zu",
                               path, m->n_outputs);
    for (size_t i = 0; i < m->n_outputs; i++)
        message_try(msg, "--output %s=%s", m->outputs[i].name, path);
    return message_send(msg);
}

static Status check_form(Command *c, const Rows *r)
{
    if (r->is_csv || ends_in(r->path, ".npy"))
        return OK;
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .file = r->path, .byte = -1 },
                             "is neither .npy nor .csv");
    message_try(m, "--output %s=%s.npy", r->name, r->path);
    return message_send(m);
}

/* --output [NAME=]FILE, or -o FILE. */
static Status read_one(Command *c, qcc_model *m, const char *first, const char *text, Rows *r)
{
    size_t i;
    *r = (Rows){ .cx = c->cx, .path = text };
    if (strchr(text, '='))
        r->name = pair_split(&c->cx->scratch, text, &r->path);
    else
        r->name = first ? first : m->n_outputs == 1 ? m->outputs[0].name : NULL;
    if (!r->name)
        return which_output(c, m, text);
    TRY(find_output(m, r->name, "--output", &i));
    r->is_csv = ends_in(r->path, ".csv");
    return check_form(c, r);
}

Status rows_read(Command *c, qcc_model *m, const char *first, Rows **rows, size_t *n)
{
    const CommandLine *l = &c->line;
    *n = 0;
    *rows = NEWS(&c->cx->scratch, Rows, l->n_given + 1);
    for (size_t k = 0; k < l->n_given; k++)
        if (l->given[k].option == OPT_output || (l->given[k].option == OPT_output_path && l->verb != VERB_run))
            TRY(read_one(c, m, first, l->given[k].value, &(*rows)[(*n)++]));
    return OK;
}

/* ---- writing ---- */

static Status put(void *user, const void *bytes, size_t n)
{
    return n ? out_bytes(user, bytes, n) : OK;
}

/* The head of an array of all rows; its elements follow as they come. */
static Status begin_npy(Rows *r, const Type *type, Types *types)
{
    int64_t dims[MAX_RANK];
    if (dtype_bits(type->dtype) < 8)
        return fail_as(&r->cx->diag, UNSUPPORTED, (Place){ .file = r->path, .byte = -1 },
                       "output %s is %s: only a .csv holds these", r->name, type_text(&r->cx->scratch, type));
    memcpy(dims, type->dims, sizeof *dims * (size_t)type->rank);
    dims[0] = r->wanted;
    const Tensor head = { .type = type_tensor(types, type->dtype, type->rank, dims) };
    return npy_write(&r->cx->scratch, &head, put, &r->out);
}

/* "logits_0,logits_1": a name for each column. */
static Status begin_csv(Rows *r, int64_t columns)
{
    Text t;
    text_open(&t, &r->cx->scratch);
    for (int64_t i = 0; i < columns; i++)
        if (columns == 1)
            text_add(&t, r->name);
        else
            text_printf(&t, "%s%s_%" PRId64, i ? "," : "", r->name, i);
    text_char(&t, '\n');
    return out_bytes(&r->out, t.p, t.n);
}

static void add_number(Text *t, const Tensor *value, int64_t i)
{
    char digits[NUMBER_TEXT];
    if (dtype_is_integer(value->type->dtype)) {
        text_printf(t, "%" PRId64, tensor_get_i64(value, i));
        return;
    }
    if (value->type->dtype == F64)
        f64_to_text(digits, tensor_get_f64(value, i));
    else
        f32_to_text(digits, (float)tensor_get_f64(value, i));
    text_add(t, digits);
}

static Status add_csv(Rows *r, const Tensor *value, int64_t valid, int64_t columns)
{
    Text t;
    text_open(&t, &r->cx->scratch);
    for (int64_t i = 0; i < valid * columns; i++) {
        add_number(&t, value, i);
        text_char(&t, (i + 1) % columns ? ',' : '\n');
    }
    return out_bytes(&r->out, t.n ? t.p : "", t.n);
}

static Status begin(Rows *r, const Tensor *value, int64_t columns, Types *types)
{
    const qcc_sink sink = qcc_to_file(r->path);
    TRY(out_open(&r->out, r->cx, &sink));
    r->begun = true;
    return r->is_csv ? begin_csv(r, columns) : begin_npy(r, value->type, types);
}

Status rows_add(Rows *r, const Tensor *value, int64_t rows, int64_t valid, int64_t wanted)
{
    Types types;
    const Type *t = value ? value->type : NULL;
    if (!t || t->kind != TYPE_TENSOR || t->rank < 1 || t->dims[0] != rows || !tensor_holds(t))
        return fail_as(&r->cx->diag, UNSUPPORTED, (Place){ .file = r->path, .byte = -1 },
                       "output %s is %s: it has no row for each sample", r->name,
                       t ? type_text(&r->cx->scratch, t) : "absent");
    const int64_t columns = rows ? tensor_elements(value) / rows : 0;
    r->wanted = wanted;
    if (!r->begun) {
        types_open(&types, &r->cx->scratch);
        TRY(begin(r, value, columns, &types));
    }
    r->n += valid;
    if (r->is_csv)
        return add_csv(r, value, valid, columns ? columns : 1);
    return put(&r->out, value->data, rows ? value->bytes / (size_t)rows * (size_t)valid : 0);
}

Status rows_close(Command *c, Rows *rows, size_t n, Status status)
{
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].begun)
            continue;
        const Status closed = out_close(&rows[i].out, status);
        const LogExtra fields[] = { { "file", logged_text(rows[i].path) },
                                    { "bytes", logged_int((int64_t)rows[i].out.bytes) },
                                    { "output", logged_text(rows[i].name) },
                                    { "samples", logged_int(rows[i].n) } };
        if (status == OK && closed == OK && out_is_json(c->out))
            (void)out_event(c->out, "wrote", fields, COUNT(fields));
        else if (status == OK && closed == OK)
            (void)out_printf(c->out, "wrote %s (%s): %s, %" PRId64 " samples\n", rows[i].path,
                             bytes_text(&c->cx->scratch, rows[i].out.bytes), rows[i].name, rows[i].n);
        status = status == OK ? closed : status;
    }
    return status;
}
