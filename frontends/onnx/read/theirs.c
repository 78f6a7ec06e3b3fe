#include "frontends/onnx/read/theirs.h"

#include <string.h>

#include "base/str.h"
#include "frontends/onnx/read/importer.h"

#define NNCF  "org.openvinotoolkit"
#define QONNX "qonnx.custom_op.general onnx.brevitas finn.custom_op.general"

/* clang-format off */
static const Theirs rows[] = {
    /* domains  operator        inputs  attributes                                                     how */
    { QONNX,    "Quant",        4, 4,   "signed narrow rounding_mode",                                 read_qonnx_quant   },
    { QONNX,    "BipolarQuant", 2, 2,   "",                                                            read_qonnx_bipolar },
    { QONNX,    "Trunc",        5, 6,   "signed narrow rounding_mode",                                 read_qonnx_trunc   },
    { QONNX,    "FloatQuant",   6, 6,   "has_inf has_nan has_subnormal rounding_mode saturation",      read_qonnx_float   },
    { NNCF,     "FakeQuantize", 5, 5,   "levels",                                                      read_nncf_fake     },
};
/* clang-format on */

const Theirs *theirs_find(const char *domain, const char *op)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].op, op) == 0 && str_listed(rows[i].domains, domain))
            return &rows[i];
    return NULL;
}

Status theirs_fail(const Call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(call_arena(c), format, args);
    va_end(args);
    return fail_as(call_ir(c)->diag, UNSUPPORTED, importer_place(c->importer), "%s: %s", c->op, text);
}

const Tensor *theirs_values(const Call *c, int i, const char *word, Status *status)
{
    enum { MOST = 1 << 20 };
    Node *n = call_in(c, i);
    Payload *p = n && (n->op == OP_param || n->op == OP_const) && type_known(n->type) ? node_payload(n) : NULL;
    if (!p || type_elements(n->type) > MOST) {
        *status = theirs_fail(c, "its %s is computed, or not there: it has to be stored", word);
        return NULL;
    }
    Tensor *t = tensor_new(call_arena(c), n->type);
    *status = payload_read(p, t, call_ir(c)->diag);
    return *status == OK ? t : NULL;
}

Status theirs_read(const Theirs *row, Call *c)
{
    if (c->n_in > row->most_in)
        return call_fail(c, "takes at most %d inputs, not %d", row->most_in, c->n_in);
    for (int i = 0; i < row->least_in; i++)
        if (!call_in(c, i))
            return call_fail(c, "input %d is missing", i);
    for (size_t i = 0; i < c->n_attrs; i++)
        if (!str_listed(row->attrs, c->attrs[i].name))
            return theirs_fail(c, "attribute %s is not understood", c->attrs[i].name);
    TRY(row->read(c));
    return c->build->status;
}
