/* A quantized model and the same in floats, layer by layer side by side, over all batches of calibration: what is known
 * of a layer when it is met is what the layers before it give, as they are by then. */
#ifndef API_PTQ_WALK_H
#define API_PTQ_WALK_H

#include "api/make/step.h"
#include "ops/machine/machine.h"

/* The values of a node, batch by batch; one of them where it depends on no data. */
typedef struct WalkValue {
    Tensor **codes, **floats; /* as the quantized model has it, and as it is in floats; null: not there */
    bool data;
    int64_t last; /* the place of the node that reads it last */
} WalkValue;

typedef struct Batches {
    const char *const *names;
    size_t n_names, n, cap;
    const Tensor ***values; /* of a batch, by name; null in place of what is not there */
} Batches;

typedef struct Walk {
    qcc_context *cx;
    qcc_step *step;
    Session *run;
    const Batches *batches;
    Graph *g;
    Arena arena;
    Heap heap;
    Ir ir;
    Machine machine;
    EvalOptions how;
    Facts values;
    bool floats_alone; /* nothing is computed on codes */
} Walk;

/* The model of a step with its quantizers, on the states that the session has. */
Status walk_open(Walk *w, qcc_step *step, Session *run, const Batches *batches);
void walk_close(Walk *w);

/* Meets every node in order: `met` (null: nobody) sees it with its values there. */
Status walk_all(Walk *w, Status (*met)(void *user, Walk *w, Node *n), void *user);

/* The number of batches of a value, and the i-th of them: the only one where it depends on no data. */
size_t walk_count(Walk *w, const Node *n);
const Tensor *walk_value(Walk *w, const Node *n, size_t i, bool as_float);

/* Gives a state another value in the quantized model and the session, and computes anew what depends on it, up to the
 * node that was met last. */
Status walk_put(Walk *w, Node *state, const Tensor *value, Node *upto);

/* Sums over all batches of what a node gives in floats: of its squares, and of the squared difference to what it gives on
 * codes. */
typedef struct WalkError {
    double signal, noise;
    int64_t n;
} WalkError;
WalkError walk_error(Walk *w, const Node *n);

/* 10 log10(signal / noise). */
double walk_db(const WalkError *e);

#endif
