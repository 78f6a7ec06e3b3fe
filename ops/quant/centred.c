#include "ops/quant/centred.h"

#include "base/parallel.h"

typedef struct Centring {
    const Kernels *kernels;
    const Tensor *from;
    Lanes lanes;
    int64_t zeros; /* how many */
    const f32 *zero;
    f32 *to;
} Centring;

/* The zero point of the first element of a line. */
static int64_t zero_of_line(const Centring *c, int64_t line)
{
    const int64_t lanes = c->lanes.across ? c->lanes.width : c->lanes.height;
    if (c->zeros == 1)
        return 0;
    if (c->lanes.across)
        return c->zeros == lanes ? 0 : line / c->lanes.height * lanes;
    return c->zeros == lanes ? line % lanes : line;
}

static void centre_f32(void *arg, int64_t begin, int64_t end, int worker)
{
    const Centring *c = arg;
    const int64_t width = c->lanes.width;
    (void)worker;
    for (int64_t line = begin; line < end; line++) {
        f32 *v = c->to + line * width;
        kernels_load_f32(c->kernels, v, c->from, line * width, width);
        const f32 *z = c->zero ? (const f32 *)c->zero + zero_of_line(c, line) : NULL, first = z ? *z : 0;
        if (z && c->lanes.across && c->zeros > 1)
            for (int64_t i = 0; i < width; i++)
                v[i] -= z[i];
        else if (first != 0)
            for (int64_t i = 0; i < width; i++)
                v[i] -= first;
    }
}

const f32 *codes_centred(Eval *e, int i, int zero, const Lanes *lanes)
{
    const Tensor *t = e->in[i], *z = eval_has(e, zero) ? e->in[zero] : NULL;
    const int64_t n = tensor_elements(t);
    Centring c = { e->kernels, t, *lanes, z ? tensor_elements(z) : 0, NULL, NULL };
    c.to = eval_room(e, (size_t)n, sizeof *c.to);
    if (z)
        c.zero = eval_f32(e, zero);
    if (n)
        eval_parallel(e, n / lanes->width, centre_f32, &c);
    return c.to;
}
