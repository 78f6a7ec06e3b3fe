/* Products of bf16 by a level's own loops are within the bound of docs/arithmetic.md, and their bits are the same however
 * rows, columns and products beside each other are shared out. */
#include <math.h>

#include "base/half.h"
#include "ops/kernels/panel.h"
#include "testing.h"

/* Numbers of all sizes: zeros, subnormal ones and such whose products are. */
static u16 draw(Rng *rng)
{
    const uint64_t kind = rng_below(rng, 40);
    if (kind < 2)
        return (u16)(rng_below(rng, 0x80) | rng_below(rng, 2) << 15);
    return bf16_from_f32((f32)((rng_unit(rng) - 0.5) * (kind < 6 ? 0x1p-64 : 1)));
}

static bool is_subnormal(f32 x)
{
    return fabsf(x) < 0x1p-126f;
}

static Panel draw_sizes(Rng *rng)
{
    static const size_t sizes[] = { 1, 2, 3, 5, 11, 12, 13, 24, 25, 31, 32, 33, 50, 65, 243, 400 };
    static const size_t depths[] = { 0, 1, 2, 3, 7, 255, 300, 511, 513, 1100, 2048, 2049, 4097, 6203 };
    Panel p = { .m = sizes[rng_below(rng, COUNT(sizes))],
                .n = rng_below(rng, 12) ? sizes[rng_below(rng, COUNT(sizes))] : 530,
                .k = depths[rng_below(rng, COUNT(depths))],
                .is_bf16 = true };
    p.k = p.m * p.n > 4000 && p.k > 300 ? 301 : p.k;
    const bool ta = rng_below(rng, 2), tb = rng_below(rng, 2);
    p.lda = ta ? 1 : p.k + 1, p.a_step = ta ? p.m + 2 : 1;
    p.ldb = tb ? 1 : p.n + 1, p.b_step = tb ? p.k + 3 : 1;
    p.ldc = p.n + 1;
    return p;
}

/* |got - sum a b| against the bound: 2 k 2^-24 sum |a b|, what subnormal operands would have given, and for each sum that
 * may have been flushed 2^-126. */
static bool within(const Panel *p, const u16 *a, const u16 *b, size_t i, size_t j, f32 got)
{
    double sum = 0, sizes = 0, flushed = 0;
    for (size_t k = 0; k < p->k; k++) {
        const f32 x = bf16_to_f32(a[i * p->lda + k * p->a_step]), y = bf16_to_f32(b[k * p->ldb + j * p->b_step]);
        sum += (double)x * (double)y;
        sizes += fabs((double)x * (double)y);
        flushed += is_subnormal(x) || is_subnormal(y) ? fabs((double)x * (double)y) : 0;
    }
    const double k = (double)p->k;
    return fabs((double)got - sum) <= 2 * k * 0x1p-24 * sizes + flushed + k * 0x1p-126;
}

static int differ(const Panel *p, const f32 *x, const f32 *y)
{
    int bad = 0;
    for (size_t i = 0; i < p->m; i++)
        bad += memcmp(x + i * p->ldc, y + i * p->ldc, p->n * sizeof *x) != 0;
    return bad;
}

/* The same, some rows and some columns at a time. */
static void shared_out(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, Rng *rng, Arena *arena)
{
    const size_t row = 12 * (size_t)rng_below(rng, p->m / 12 + 1), col = (size_t)rng_below(rng, p->n + 1);
    for (int part = 0; part < 4; part++) {
        Panel q = *p;
        const size_t i = part & 1 ? row : 0, j = part & 2 ? col : 0;
        q.m = part & 1 ? p->m - row : row;
        q.n = part & 2 ? p->n - col : col;
        panel_bf16(level, &q, a + i * p->lda, b + j * p->b_step, c + i * p->ldc + j,
                   NEWS(arena, f32, panel_room(&q) + 1));
    }
}

static void beside(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, f32 *d, Arena *arena)
{
    const PanelSide side = { .n = p->n, .ldb = p->ldb, .b_step = p->b_step, .ldc = p->ldc, .b = b, .c = c };
    PanelSide sides[] = { side, side };
    sides[1].c = d;
    panel_sides_bf16(level, p, a, sides, 2, NEWS(arena, f32, panel_room(p) + 1));
}

static void packed_once(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, Arena *arena)
{
    Panel q = *p;
    u16 *panels = NEWS(arena, u16, panel_packed(p) + 1);
    panel_pack_bf16(level, &q, b, panels);
    panel_bf16(level, &q, a, panels, c, NEWS(arena, f32, panel_room(&q) + 1));
}

/* Who puts blocks that nobody keeps where they belong. */
typedef struct Taker {
    f32 *c;
    size_t ldc;
} Taker;

static void take_block(void *user, const PanelBlock *b)
{
    const Taker *t = user;
    for (size_t i = 0; i < b->rows; i++)
        memcpy(t->c + (b->row + i) * t->ldc + b->col, (const f32 *)b->c + i * b->ldc, b->cols * sizeof(f32));
}

/* The same without a matrix of sums. */
static void taken(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, Arena *arena)
{
    Panel q = *p;
    Taker taker = { c, p->ldc };
    const PanelWatch watch = { take_block, &taker };
    u16 *panels = NEWS(arena, u16, panel_packed(p) + 1);
    panel_pack_bf16(level, &q, b, panels);
    q.apart = true;
    const PanelSide side = { .n = p->n, .ldb = q.ldb, .b = panels, .watch = &watch };
    panel_sides_bf16(level, &q, a, &side, 1, NEWS(arena, f32, panel_room(&q) + 1));
}

/* Written past the caches, where the level can and rows begin lines: the same. */
static void written_past(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, Arena *arena)
{
    Panel q = *p;
    u16 *panels = NEWS(arena, u16, panel_packed(p) + 1);
    f32 *lines = arena_aligned(arena, (p->m * p->n + 1) * sizeof(f32));
    const bool past = kernels_packed_bf16(level)->copy_past && p->n % 16 == 0 && p->k <= PANEL_SEGMENT;
    panel_pack_bf16(level, &q, b, panels);
    q.past = past;
    const PanelSide side = { .n = p->n, .ldb = q.ldb, .ldc = p->n, .b = panels, .c = lines, .past = past };
    panel_sides_bf16(level, &q, a, &side, 1, NEWS(arena, f32, panel_room(&q) + 1));
    for (size_t i = 0; i < p->m; i++)
        memcpy(c + i * p->ldc, lines + i * p->n, p->n * sizeof *c);
}

static int panel_case(const Kernels *level, Rng *rng, Arena *arena)
{
    const Panel p = draw_sizes(rng);
    const ArenaMark mark = arena_mark(arena);
    const size_t na = (p.m + 2) * (p.k + 1), nb = (p.k + 3) * (p.n + 1), nc = p.m * p.ldc;
    u16 *a = NEWS(arena, u16, na), *b = NEWS(arena, u16, nb);
    f32 *c[7];
    for (size_t i = 0; i < na; i++)
        a[i] = draw(rng);
    for (size_t i = 0; i < nb; i++)
        b[i] = draw(rng);
    for (size_t i = 0; i < COUNT(c); i++)
        c[i] = NEWS(arena, f32, nc);
    panel_bf16(level, &p, a, b, c[0], NEWS(arena, f32, panel_room(&p) + 1));
    shared_out(level, &p, a, b, c[1], rng, arena);
    beside(level, &p, a, b, c[2], c[3], arena);
    packed_once(level, &p, a, b, c[4], arena);
    taken(level, &p, a, b, c[5], arena);
    written_past(level, &p, a, b, c[6], arena);
    int bad = 0;
    for (size_t i = 1; i < COUNT(c); i++)
        bad += differ(&p, c[0], c[i]);
    for (size_t i = 0; i < p.m; i++) {
        for (size_t j = 0; j < p.n; j++)
            bad += !within(&p, a, b, i, j, c[0][i * p.ldc + j]);
        bad += c[0][i * p.ldc + p.n] != 0;
    }
    arena_reset(arena, mark);
    return bad != 0;
}

static Status panels(void *arg)
{
    Context *k = arg;
    int bad = 0, cases = 0;
    for (size_t l = 0; kernels_levels[l]; l++) {
        const Kernels *level = kernels_named(kernels_levels[l]);
        Rng rng = { 29 };
        for (int i = 0; level && kernels_packed_bf16(level) && i < 400; i++, cases++)
            bad += panel_case(level, &rng, &k->arena);
    }
    print_message("%d products\n", cases);
    return bad ? INVALID : OK;
}

static void products_are_near(void **state)
{
    bool any = false;
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++)
        any = any || (kernels_named(kernels_levels[l]) && kernels_packed_bf16(kernels_named(kernels_levels[l])));
    if (!any)
        skip();
    with_context(panels);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_are_near) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
