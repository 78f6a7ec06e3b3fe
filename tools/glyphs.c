/* Renders small images of the ten digits, turned, moved and with noise, as a set to learn from:
 *
 *     glyphs [--color] FOLDER [TRAIN [TEST]]
 *
 * writes train_x.npy u8[TRAIN,1,16,16], train_y.npy i64[TRAIN], test_x.npy and test_y.npy; with --color images of
 * u8[3,32,32]: a digit of one color on a ground that goes from one into another.  The same numbers on every machine. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, COLOR_SIDE = 32, CHANNELS = 3, MOST_STROKES = 10, DIGITS = 10, COLOR_NOISE = 4 };

typedef struct Stroke {
    double x0, y0, x1, y1; /* in a unit square, y downwards */
} Stroke;

/* clang-format off */
static const Stroke digits[DIGITS][MOST_STROKES] = {
    { {.35,.10,.65,.10}, {.65,.10,.80,.35}, {.80,.35,.80,.65}, {.80,.65,.65,.90}, {.65,.90,.35,.90}, {.35,.90,.20,.65}, {.20,.65,.20,.35}, {.20,.35,.35,.10} },
    { {.30,.25,.52,.10}, {.52,.10,.52,.90}, {.32,.90,.72,.90} },
    { {.22,.28,.40,.10}, {.40,.10,.65,.10}, {.65,.10,.78,.30}, {.78,.30,.22,.90}, {.22,.90,.80,.90} },
    { {.22,.12,.75,.12}, {.75,.12,.48,.44}, {.48,.44,.75,.56}, {.75,.56,.75,.78}, {.75,.78,.55,.90}, {.55,.90,.22,.86} },
    { {.62,.10,.18,.64}, {.18,.64,.82,.64}, {.64,.40,.64,.92} },
    { {.76,.10,.28,.10}, {.28,.10,.25,.45}, {.25,.45,.60,.42}, {.60,.42,.78,.60}, {.78,.60,.70,.84}, {.70,.84,.45,.92}, {.45,.92,.22,.84} },
    { {.68,.10,.40,.25}, {.40,.25,.22,.60}, {.22,.60,.28,.85}, {.28,.85,.55,.92}, {.55,.92,.76,.78}, {.76,.78,.70,.56}, {.70,.56,.45,.50}, {.45,.50,.24,.62} },
    { {.20,.12,.80,.12}, {.80,.12,.42,.90}, {.36,.50,.72,.50} },
    { {.38,.10,.62,.10}, {.62,.10,.74,.28}, {.74,.28,.26,.66}, {.26,.66,.30,.88}, {.30,.88,.70,.88}, {.70,.88,.74,.66}, {.74,.66,.26,.28}, {.26,.28,.38,.10} },
    { {.74,.38,.52,.50}, {.52,.50,.28,.42}, {.28,.42,.26,.20}, {.26,.20,.48,.08}, {.48,.08,.72,.16}, {.72,.16,.76,.40}, {.76,.40,.66,.75}, {.66,.75,.36,.92} },
};
/* clang-format on */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [lo, hi). */
static double draw(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * (double)(next_random(state) >> 11) * 0x1p-53;
}

static double distance(const Stroke *s, double x, double y)
{
    const double dx = s->x1 - s->x0, dy = s->y1 - s->y0;
    double t = ((x - s->x0) * dx + (y - s->y0) * dy) / (dx * dx + dy * dy);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const double ex = x - s->x0 - t * dx, ey = y - s->y0 - t * dy;
    return sqrt(ex * ex + ey * ey);
}

/* How one image differs from the drawing of its digit. */
typedef struct Pose {
    double turn, scale, shift_x, shift_y, shear, width, ink, noise;
} Pose;

/* How much of pixel (row, column) of `side` the strokes of a digit cover, from 0 to 1. */
static double cover_of(const Pose *p, int digit, int side, int row, int column)
{
    const double c = cos(p->turn) / p->scale, s = sin(p->turn) / p->scale;
    const double u = (column + 0.5) / side - 0.5 - p->shift_x, v = (row + 0.5) / side - 0.5 - p->shift_y;
    const double x = c * u + s * v + p->shear * v + 0.5, y = -s * u + c * v + 0.5;
    double near = 1;
    for (const Stroke *k = digits[digit]; k < digits[digit] + MOST_STROKES && (k->x0 != 0 || k->y0 != 0); k++)
        near = fmin(near, distance(k, x, y));
    return fmin(1, fmax(0, (p->width + 0.04 - near) / 0.08));
}

static Pose pose(uint64_t *state)
{
    return (Pose){ draw(state, -0.35, 0.35), draw(state, 0.72, 1.0),  draw(state, -0.1, 0.1), draw(state, -0.1, 0.1),
                   draw(state, -0.2, 0.2),   draw(state, 0.05, 0.09), draw(state, 170, 255),  draw(state, 5, 35) };
}

static uint8_t pixel(double value)
{
    return (uint8_t)fmin(255, fmax(0, value));
}

static void render(uint8_t *image, int digit, uint64_t *state)
{
    const Pose p = pose(state);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double cover = cover_of(&p, digit, SIDE, i / SIDE, i % SIDE);
        image[i] = pixel(cover * p.ink + draw(state, -p.noise, p.noise));
    }
}

/* Ink, and the two ends of the ground, in each channel; at least one channel of the ink stands out, if only a little. */
static void draw_colors(double colors[CHANNELS][3], uint64_t *state)
{
    const int stands_out = (int)(next_random(state) % CHANNELS);
    for (int c = 0; c < CHANNELS; c++) {
        colors[c][1] = draw(state, 0, 140);
        colors[c][2] = draw(state, 0, 140);
        colors[c][0] = c == stands_out ? draw(state, 180, 255) : draw(state, 60, 200);
    }
}

static void render_color(uint8_t *image, int digit, uint64_t *state)
{
    const Pose p = pose(state);
    const double noise = COLOR_NOISE * p.noise;
    double colors[CHANNELS][3];
    draw_colors(colors, state);
    for (int i = 0; i < COLOR_SIDE * COLOR_SIDE; i++) {
        const int row = i / COLOR_SIDE, column = i % COLOR_SIDE;
        const double cover = cover_of(&p, digit, COLOR_SIDE, row, column), way = (row + column) / (2.0 * COLOR_SIDE);
        for (int c = 0; c < CHANNELS; c++) {
            const double ground = colors[c][1] + way * (colors[c][2] - colors[c][1]);
            image[c * COLOR_SIDE * COLOR_SIDE + i] =
                pixel(ground + cover * (colors[c][0] - ground) + draw(state, -noise, noise));
        }
    }
}

static void put_header(FILE *f, const char *descr, const char *shape)
{
    char text[128], head[10] = "\x93NUMPY\x01";
    const int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    const int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    memset(text + n, ' ', (size_t)(padded - n));
    text[padded - 1] = '\n';
    head[8] = (char)padded;
    head[9] = 0;
    fwrite(head, 1, sizeof head, f);
    fwrite(text, 1, (size_t)padded, f);
}

static FILE *create(const char *folder, const char *part, const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s_%s.npy", folder, part, what);
    FILE *f = fopen(path, "wb");
    if (!f)
        perror(path);
    return f;
}

static int write_part(const char *folder, const char *part, long n, uint64_t seed, bool color)
{
    char shape[64];
    uint64_t state = seed;
    FILE *x = create(folder, part, "x"), *y = create(folder, part, "y");
    if (!x || !y)
        return 5;
    const int side = color ? COLOR_SIDE : SIDE, channels = color ? CHANNELS : 1;
    snprintf(shape, sizeof shape, "%ld, %d, %d, %d", n, channels, side, side);
    put_header(x, "|u1", shape);
    snprintf(shape, sizeof shape, "%ld,", n);
    put_header(y, "<i8", shape);
    for (long i = 0; i < n; i++) {
        uint8_t image[CHANNELS * COLOR_SIDE * COLOR_SIDE], label[8] = { 0 };
        label[0] = (uint8_t)(next_random(&state) % DIGITS);
        (color ? render_color : render)(image, label[0], &state);
        fwrite(image, 1, (size_t)(channels * side * side), x);
        fwrite(label, 1, sizeof label, y);
    }
    const int bad = ferror(x) | ferror(y);
    return fclose(x) | fclose(y) | bad ? 5 : 0;
}

int main(int argc, char **argv)
{
    const bool color = argc > 1 && strcmp(argv[1], "--color") == 0;
    argc -= color;
    argv += color;
    if (argc < 2 || argc > 4) {
        fputs("usage: glyphs [--color] FOLDER [TRAIN [TEST]]\n", stderr);
        return 2;
    }
    const long train = argc > 2 ? strtol(argv[2], NULL, 10) : 8000, test = argc > 3 ? strtol(argv[3], NULL, 10) : 2000;
    if (train < 1 || test < 1) {
        fputs("glyphs: the numbers of images are positive\n", stderr);
        return 2;
    }
    const int bad = write_part(argv[1], "train", train, 1, color);
    return bad ? bad : write_part(argv[1], "test", test, 2, color);
}
