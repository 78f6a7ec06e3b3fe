/* Everything that a host can have open at once, and every call of qcc.h as a verb that leaves it as it was: what the tests
 * of exhausted memory and of growth share. */
#ifndef TESTS_FAULT_WORLD_H
#define TESTS_FAULT_WORLD_H

#include "support/host.h"

enum { WORLD_MOST_INPUTS = 8, WORLD_MOST_BYTES = 1 << 16, WORLD_MOST_FLAT = 1 << 14 };

/* Options for the text, without a scale. */
#define WORLD_TEXT_OPTIONS "--loss mse --optimizer adamw:lr=1e-2 --ema 0.9 --clip-norm 1"

/* Bytes that a sink gathers. */
typedef struct WorldBytes {
    unsigned char p[1 << 18];
    size_t n;
} WorldBytes;

typedef struct World {
    Host host;
    const char *file;                     /* the model; null: a small one, as text in memory */
    const char *options;                  /* of the step */
    const char *folder;                   /* where files go */
    void (*opened)(qcc_context *context); /* sees the context before anything is made in it; null: nobody does */
    qcc_context *context;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session, *other; /* the second one shares the scale of the first where the step has one */
    qcc_scaler *scaler;
    qcc_session *plain; /* of a step without a scale, where the step above has one; null otherwise */
    unsigned round;     /* of the verbs so far: texts and values change with it */
    _Alignas(64) char inputs[WORLD_MOST_INPUTS][WORLD_MOST_BYTES];
    WorldBytes saved, written;
} World;

/* A call, or a few that belong together.  It answers the first status that it did not wait for. */
typedef struct Verb {
    const char *name;
    qcc_status (*run)(World *w);
    bool runs;                      /* one that ends for memory leaves the session to qcc_end */
    qcc_status (*before)(World *w); /* what it needs, with all the memory there is; null: nothing */
} Verb;

extern const Verb world_verbs[];
extern const size_t world_n_verbs;

/* Opens everything, with everything bound; what was opened before a failure stays open. */
qcc_status world_open(World *w);

/* Binds what the session wants. */
qcc_status world_bind(World *w, qcc_session *session);

/* Ends sessions and scale, and starts them anew, one step made. */
qcc_status world_restart(World *w);

/* Closes the context alone, which takes all with it; says whether every block came back whole. */
bool world_close(World *w);

/* What a session is, as one number: values, properties, step and seed. */
uint64_t world_state(World *w);

/* A sink that forgets what it is given. */
qcc_sink world_nowhere(void);

/* A sink that gathers bytes, from the first on. */
qcc_sink world_gather(WorldBytes *bytes);

/* What the model is read from. */
qcc_source world_source(const World *w);

/* Reads the model once more. */
qcc_status world_read(World *w, qcc_model **model);

/* A path in the folder, valid until the next one. */
const char *world_path(const World *w, const char *name);

#endif
