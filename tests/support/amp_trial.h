/* What tests of mixed precision share: graphs of all kinds to insert casts into, and the ways to do that. */
#ifndef TESTS_SUPPORT_AMP_TRIAL_H
#define TESTS_SUPPORT_AMP_TRIAL_H

#include "passes/amp/amp.h"
#include "testing.h"

/* One of the four ways to insert. */
typedef struct AmpWay {
    DType narrow;
    bool walks;
} AmpWay;

enum { AMP_WAYS = 4 };
extern const AmpWay amp_ways[AMP_WAYS];

/* One graph, verified; whoever changes it copies it. */
typedef struct AmpTrial {
    Context *c;
    const char *name;
    Graph *graph;
    const Tensor **inputs; /* of samples: what the graph's inputs were; null: draw them */
} AmpTrial;

/* What a test finds wrong with a graph; null: nothing. */
typedef const char *AmpCheck(AmpTrial *t);

/* Checks every model at hand, as it is read and as it is trained, and every golden file of `ops` and `passes`; the
 * number of graphs where something is wrong, all of them reported.  `*seen` counts graphs. */
int amp_check_models(AmpCheck *check, int *seen);

/* Checks the models FOLDER/SET/NAME/model.onnx, as they are read and as they are trained, where they can be; the exit
 * status of a test: 77 when there are none. */
int amp_check_folder(const char *folder, size_t n, AmpCheck *const *checks);

/* The same as amp_check_models for the samples of every card but amp_cast: on constants as they are, and on inputs where the card lets them be. */
int amp_check_samples(AmpCheck *check, int *seen);

/* The same for random graphs with products, moves, parts, own casts and bodies in bodies, each of them with a loss. */
int amp_check_random(AmpCheck *check, int n);

/* One of them. */
Graph *amp_random(Context *c, uint64_t seed);

/* Runs a pass by the way's recipe; null or what is wrong, a graph that does not verify included.  `ledger` may be null. */
const char *amp_run(const AmpTrial *t, Graph *g, const char *pass, AmpWay way, AmpLedger *ledger);

/* Whether a graph has a loss and nothing behind it: it can be differentiated. */
bool amp_is_step(Graph *g);

/* An empty ledger. */
AmpLedger *amp_ledger(const AmpTrial *t);

/* The text of a graph, large constants by name. */
const char *amp_text(const AmpTrial *t, const Graph *g);

/* A sentence about a way: "bf16 by the cut: ...". */
const char *amp_say(const AmpTrial *t, AmpWay way, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Null when both texts are the same, else the first lines that differ. */
const char *amp_differs(const AmpTrial *t, AmpWay way, const char *what, const char *want, const char *got);

#endif
