/* What must hold behind every attack. */
#ifndef TESTS_FAULT_ATTACK_LAWS_H
#define TESTS_FAULT_ATTACK_LAWS_H

#include "fault/attack_run.h"
#include "fault/attack_scenes.h"
#include "fault/attack_tree.h"

enum { MOST_STOPS = 16 };

/* What a scene leaves when nothing fails. */
typedef struct Reference {
    const Scene *scene;
    Tree inputs, old, new;
    Tree stops[MOST_STOPS]; /* a training that stopped behind each step, and one that had to save elsewhere */
    int n_stops;
    Outcome outcome;
    Entry probe_old, probe_new;
} Reference;

/* What an attack may leave. */
typedef struct Allowed {
    bool left;     /* temporary files */
    bool torn;     /* the last line of a log, or record of an event file */
    bool cut;      /* the last record of an event file: nobody goes on with it */
    bool dangling; /* a link that could not be moved */
    bool unjudged; /* checkpoints of a step whose validation was interrupted */
} Allowed;

/* Files: each is old or new, or what a training that stopped had; none is missing, and none is there that is not known.
 * What is wrong, or null. */
const char *law_of_files(const Reference *r, const Tree *now, const Allowed *allowed);

/* The run did all: every new file is there, but for what it `said` of.  `again`: it is the run behind an attack. */
const char *law_of_success(const Reference *r, const Tree *now, const char *said, bool again);

/* How it ended, and that it said why. */
const char *law_of_ending(const Reference *r, const Outcome *o);

/* Whether files that belong together are not those of one run, so that they must be asked what they are. */
bool law_of_sets_is_open(const Reference *r, const Tree *now);

#endif
