/* non_max_suppression: the best boxes of every class that do not overlap a better one. */
#include "ops/card/signature.h"

typedef struct SuppressAttr {
    int64_t center_point_box;
} SuppressAttr;

static const AttrSpec suppress_attrs[] = {
    ATTR(SuppressAttr, center_point_box, INT, 0),
    ATTR_LAST,
};

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

static bool check_number(Infer *q, int i, DType dtype)
{
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    const int64_t n = type_elements(t);
    const bool fits = t->dtype == dtype && (n < 0 || n <= 1);
    if (!fits)
        infer_fail(q, "operand %d must be one %s, got %s", i, dtype_name(dtype), type_text(q->scratch, t));
    return fits;
}

static const Type *infer_non_max_suppression(Infer *q)
{
    const SuppressAttr *at = q->attr;
    Bound k = signature_open();
    if (!signature_match(q, &k) || !check_number(q, MOST, I64) || !check_number(q, OVERLAP, F32) ||
        !check_number(q, SCORE, F32))
        return NULL;
    if (at->center_point_box != 0 && at->center_point_box != 1)
        return infer_fail(q, "center_point_box is 0 or 1, not %" PRId64, at->center_point_box);
    return signature_results(q, &k);
}

typedef struct Box {
    f32 left, top, right, bottom, area;
} Box;

static Box box_of(const f32 *v, bool centre)
{
    Box b;
    if (centre) {
        const f32 w = v[2] / 2, h = v[3] / 2;
        b = (Box){ v[0] - w, v[1] - h, v[0] + w, v[1] + h, 0 };
    } else {
        b = (Box){ min_f32(v[1], v[3]), min_f32(v[0], v[2]), max_f32(v[1], v[3]), max_f32(v[0], v[2]), 0 };
    }
    b.area = (b.right - b.left) * (b.bottom - b.top);
    return b;
}

/* Whether the common part of two boxes is more than `most` of what both cover. */
static bool overlaps(const Box *a, const Box *b, f32 most)
{
    const f32 w = min_f32(a->right, b->right) - max_f32(a->left, b->left);
    const f32 h = min_f32(a->bottom, b->bottom) - max_f32(a->top, b->top);
    if (!(w > 0) || !(h > 0))
        return false;
    const f32 common = w * h, together = a->area + b->area - common;
    return common > 0 && a->area > 0 && b->area > 0 && together > 0 && common / together > most;
}

/* Whether box i comes before box j: the higher score, then the lower number. */
static bool before(const f32 *score, int64_t i, int64_t j)
{
    return score[i] > score[j] || (score[i] == score[j] && i < j);
}

/* Merge sort, bottom up; `other` has room for as many. */
static void rank_boxes(const f32 *score, int64_t *at, int64_t *other, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            const int64_t middle = low + width < n ? low + width : n, high = middle + width < n ? middle + width : n;
            int64_t i = low, j = middle;
            for (int64_t k = low; k < high; k++)
                other[k] = i < middle && (j >= high || !before(score, at[j], at[i])) ? at[i++] : at[j++];
        }
        for (int64_t k = 0; k < n; k++)
            at[k] = other[k];
    }
}

/* One call. */
typedef struct Suppress {
    int64_t boxes, most;
    f32 overlap, score;
    bool has_score;
    Box *box;              /* of the image at hand */
    int64_t *rank, *other; /* scratch of one class */
    int64_t *kept;         /* of one class */
} Suppress;

/* The boxes kept of one class, best first; their number. */
static int64_t keep_boxes(Suppress *s, const f32 *score)
{
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < s->boxes; i++)
        if (s->has_score ? score[i] > s->score : score[i] == score[i])
            s->rank[n++] = i;
    rank_boxes(score, s->rank, s->other, n);
    for (int64_t k = 0; k < n && kept < s->most; k++) {
        bool keep = true;
        for (int64_t j = 0; keep && j < kept; j++)
            keep = !overlaps(&s->box[s->rank[k]], &s->box[s->kept[j]], s->overlap);
        if (keep)
            s->kept[kept++] = s->rank[k];
    }
    return kept;
}

/* What is found, growing: three numbers a box. */
typedef struct Found {
    int64_t *v, n, room;
} Found;

static void add_found(Eval *e, Found *f, int64_t image, int64_t class, int64_t box)
{
    if (f->n == f->room) {
        const int64_t room = f->room ? 2 * f->room : 64;
        int64_t *v = eval_scratch(e, (size_t)room, 3 * sizeof *v);
        for (int64_t i = 0; i < 3 * f->n; i++)
            v[i] = f->v[i];
        f->v = v;
        f->room = room;
    }
    int64_t *row = f->v + 3 * f->n++;
    row[0] = image;
    row[1] = class;
    row[2] = box;
}

static f32 number_or(const Eval *e, int i, f32 otherwise)
{
    return eval_has(e, i) && eval_elements(e, i) ? (f32)eval_float(e, i, 0) : otherwise;
}

static Suppress suppress_of(Eval *e)
{
    const int64_t n = e->in[BOXES]->type->dims[1];
    Suppress s = { .boxes = n,
                   .most = eval_has(e, MOST) && eval_elements(e, MOST) ? eval_int(e, MOST, 0) : 0,
                   .overlap = number_or(e, OVERLAP, 0),
                   .score = number_or(e, SCORE, 0),
                   .has_score = eval_has(e, SCORE) && eval_elements(e, SCORE) };
    s.most = s.most < n ? s.most : n;
    s.box = eval_scratch(e, (size_t)n, sizeof *s.box);
    s.rank = eval_scratch(e, (size_t)n, sizeof *s.rank);
    s.other = eval_scratch(e, (size_t)n, sizeof *s.other);
    s.kept = eval_scratch(e, (size_t)n, sizeof *s.kept);
    return s;
}

static Status eval_non_max_suppression(Eval *e)
{
    const SuppressAttr *at = e->attr;
    const int64_t images = e->in[SCORES]->type->dims[0], classes = e->in[SCORES]->type->dims[1];
    const f32 *boxes = eval_f32(e, BOXES), *scores = eval_f32(e, SCORES);
    Suppress s = suppress_of(e);
    Found found = { 0 };
    for (int64_t image = 0; image < images && s.most > 0; image++) {
        for (int64_t i = 0; i < s.boxes; i++)
            s.box[i] = box_of(boxes + (image * s.boxes + i) * 4, at->center_point_box);
        for (int64_t class = 0; class < classes; class ++) {
            const int64_t kept = keep_boxes(&s, scores + (image * classes + class) * s.boxes);
            for (int64_t i = 0; i < kept; i++)
                add_found(e, &found, image, class, s.kept[i]);
        }
    }
    const int64_t dims[] = { found.n, 3 };
    Tensor *y = eval_out_as(e, 0, type_tensor(&e->ir->types, I64, 2, dims));
    store_i64(y, 0, found.v, 3 * found.n);
    return OK;
}

static Node *sample_non_max_suppression(Build *b, Rng *rng, int variant)
{
    const SuppressAttr at = { .center_point_box = variant & 1 };
    const int64_t n = rng_below(rng, 3), classes = rng_below(rng, 4), boxes = rng_below(rng, 9);
    const int64_t db[] = { n, boxes, 4 }, ds[] = { n, classes, boxes };
    Node *ins[5] = { sample_tensor(b, rng, F32, 3, db, 0, 4), sample_tensor(b, rng, F32, 3, ds, 0, 1) };
    if (variant & 2)
        ins[2] = sample_tensor(b, rng, I64, 0, NULL, 0, 5);
    if (variant & 4)
        ins[3] = sample_tensor(b, rng, F32, 0, NULL, 0, 0.6);
    if (variant & 8)
        ins[4] = sample_tensor(b, rng, F32, (int)rng_below(rng, 2), (const int64_t[]){ 1 }, 0, 0.6);
    return build_node(b, OP_non_max_suppression, &at, variant & 8 ? 5 : variant & 4 ? 4 : variant & 2 ? 3 : 2, ins);
}

const OpDef op_non_max_suppression = {
    .name = "non_max_suppression",
    .min_in = 2,
    .max_in = 5,
    .attrs = suppress_attrs,
    .infer = infer_non_max_suppression,
    .signature = &(const Signature){ .in = { "f32[nb4]", "f32[ncb]", "i64?", "f32?", "f32?" }, .out = { "i64[k3]" } },
    .eval = eval_non_max_suppression,
    .sample = sample_non_max_suppression,
    .n_variants = 32,
    .weight = 20,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "how many boxes it gives is known when it has run",
    .amp = { AMP_F, AMP_F, 0, REASON_SCHEMA, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "NonMaxSuppression", 11, NULL },
};
