/* After training: a model whose floats are made fit for codes, from data of calibration and without a loss. */
#ifndef API_PTQ_PTQ_H
#define API_PTQ_PTQ_H

#include "api/model/command.h"
#include "api/ptq/walk.h"

enum { ROUNDING_STEPS = 500 };

/* What --ptq asks for. */
typedef struct PtqPlan {
    bool on, equalizes, corrects, rounds;
    int64_t steps; /* of rounding, for each layer */
} PtqPlan;

/* Reads --ptq of a line; all of it off where it is not there; USAGE where a step cannot be made fit. */
Status ptq_plan(const Command *c, const qcc_step *step, PtqPlan *plan);

/* Moves factors between layers that follow each other, before ranges are seen.  What is done is told in `told`. */
Status ptq_equalize(qcc_step *step, Session *run, const Batches *batches, Text *told);

/* How far the results on codes are from those of floats, in dB, once ranges are known; `corrects`: behind a correction of
 * biases, which stays. */
Status ptq_results(qcc_step *step, Session *run, const Batches *batches, bool corrects, double *db);

/* Copies of all states of a session, in `heap`, and what puts them back. */
NamedTensor *ptq_states(Session *run, Heap *heap, Arena *arena, size_t *n);
Status ptq_put_back(Session *run, const NamedTensor *states, size_t n);

/* Rounds weights and corrects biases, layer by layer, once ranges are known. */
Status ptq_layers(qcc_step *step, Session *run, const Batches *batches, const PtqPlan *plan, uint64_t seed, Text *told);

/* Puts a value into a weight of a session and into the average that is kept of it. */
Status ptq_put(Session *run, const char *name, const Tensor *value);

/* ---- api/ptq/round.c ---- */

/* What became of a layer. */
typedef struct PtqLayer {
    Node *call;
    double nearest, rounded, corrected; /* dB of what it gives, NAN: not done */
    int64_t moved;                      /* weights that are not rounded to nearest */
    const char *why;                    /* its weights stay rounded to nearest; null: they do not */
} PtqLayer;

/* Finds which way each weight of a layer is rounded best; keeps it where that is better than to nearest. */
Status ptq_round(Walk *w, PtqLayer *l, const PtqPlan *plan, uint64_t seed);

#endif
