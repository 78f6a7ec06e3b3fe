#include "support/torch_tasks.h"

#include <math.h>

/* Those that normalize by batches of 4 learn slowly: at a faster rate f32 itself ends up to 2 % apart when its inputs
 * move by a thousandth. */
const TorchTask torch_tasks[TASKS] = {
    { "torch/mlp", "adam:lr=5e-3", { 4, 8 }, { 4 }, 0, 5 },
    { "torch/cnn", "adam:lr=2e-3", { 4, 2, 8, 8 }, { 4 }, 0, 5 },
    { "torch/transformer", "adam:lr=5e-3", { 4, 6 }, { 4, 6 }, 11, 11 },
    { "torch/convnext", "adam:lr=5e-3", { 4, 2, 8, 8 }, { 4 }, 0, 5 },
    { "torch/mobilenet", "adam:lr=2e-3", { 4, 4, 5, 5 }, { 4 }, 0, 5 },
    { "torch/unet", "adam:lr=5e-3", { 4, 2, 6, 6 }, { 4, 6, 6 }, 0, 3 },
    { "torch/lstm", "adam:lr=5e-3", { 4, 6, 5 }, { 4 }, 0, 5 },
    { "exports/tied", "adam:lr=5e-3", { 4, 6 }, { 4, 6 }, 130, 130 },
    { "exports/rotary", "adam:lr=5e-3", { 4, 6 }, { 4, 6 }, 260, 260 },
    { "exports/patches", "adam:lr=5e-3", { 4, 2, 8, 8 }, { 4 }, 0, 5 },
};

int64_t task_size(const int64_t *dims, int most)
{
    int64_t n = 1;
    for (int i = 0; i < most && dims[i]; i++)
        n *= dims[i];
    return n;
}

static double gauss(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 40) / (double)(1 << 24);
    }
    return sum - 6;
}

/* One answer in four is drawn; the others are read off the inputs. */
static int64_t answer(const TorchTask *t, const TaskBatch *b, int64_t i, int64_t n, uint64_t *seed)
{
    const int64_t per = task_size(t->x, 4) / n;
    double sum = 0;
    if (gauss(seed) > 0.7)
        return (int64_t)(fabs(gauss(seed)) * 1000) % t->classes;
    if (t->words)
        return (b->words[i] * 3 + 1) % t->classes;
    for (int64_t k = 0; k < per; k++)
        sum += (double)b->x[i * per + k] * (k % 3 == 0 ? 1 : 0.3);
    return (int64_t)fabs(floor(sum / sqrt((double)per) * 1.5)) % t->classes;
}

void task_draw(const TorchTask *t, TaskBatch *b, uint64_t seed)
{
    const int64_t n = task_size(t->x, 4), targets = task_size(t->target, 3);
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < n; i++) {
        b->x[i] = (float)gauss(&seed);
        b->words[i] = t->words ? (int64_t)(fabs(gauss(&seed)) * 1000) % t->words : 0;
    }
    for (int64_t i = 0; i < targets; i++)
        b->target[i] = answer(t, b, i, targets, &seed);
}
