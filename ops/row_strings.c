/* The rows that also take strings. */
#include "base/str.h"
#include "ops/cards.h"
#include "ops/row.h"
#include "ops/space.h"

static int64_t offset_at(const Space *s, int i, int64_t at)
{
    int64_t offset = 0;
    for (int d = s->rank - 1; d >= 0; d--) {
        offset += at % s->dims[d] * s->strides[i][d];
        at /= s->dims[d];
    }
    return offset;
}

static Str string_at(const Eval *e, const Space *s, int i, int64_t at)
{
    return ((const Str *)e->in[i]->data)[offset_at(s, i, at)];
}

Status eval_row_strings(Eval *e)
{
    Space s;
    const Type **types = eval_scratch(e, (size_t)e->n_in, sizeof *types);
    for (int i = 0; i < e->n_in; i++)
        types[i] = e->in[i]->type;
    space_open(&s, eval_type(e, 0), e->n_in, types, eval_scratch(e, (size_t)e->n_in, sizeof *s.strides));

    Tensor *y = eval_out(e, 0);
    for (int64_t k = 0; k < s.total; k++) {
        if (e->def->row->test)
            ((uint8_t *)y->data)[k] = str_equal(string_at(e, &s, 0, k), string_at(e, &s, 1, k));
        else
            ((Str *)y->data)[k] = string_at(e, &s, ((const uint8_t *)e->in[0]->data)[offset_at(&s, 0, k)] ? 1 : 2, k);
    }
    return OK;
}
