/* Something to learn for the models that PyTorch exported (tests/data/torch, tests/data/exports). */
#ifndef TESTS_SUPPORT_TORCH_TASKS_H
#define TESTS_SUPPORT_TORCH_TASKS_H

#include <stdint.h>

enum { TASK_ROOM = 4096, TASKS = 10 };

/* What a model takes and is to answer. */
typedef struct TorchTask {
    const char *name, *optimizer; /* of the file: "torch/mlp" */
    int64_t x[4], target[3];      /* dimensions, 0: no more */
    int64_t words;                /* x holds words below this; 0: it holds numbers */
    int64_t classes;
} TorchTask;

extern const TorchTask torch_tasks[TASKS];

typedef struct TaskBatch {
    float x[TASK_ROOM];
    int64_t words[TASK_ROOM], target[TASK_ROOM];
} TaskBatch;

/* Elements of dimensions, `most` of them at most. */
int64_t task_size(const int64_t *dims, int most);

/* A batch of a task: three answers in four follow from the inputs.  Equal seeds, equal batches. */
void task_draw(const TorchTask *t, TaskBatch *b, uint64_t seed);

#endif
