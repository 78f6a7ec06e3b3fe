/* A program: the launches that run a graph, in their order, and where all of their values lie.
 *
 * It is data: made once, from a graph that was lowered and planned (codegen/program.h); checked, printed, and run by an
 * engine that decides nothing any more.  Each launch belongs to a part of the step; those that are late run as next
 * values of states are committed, and write them to where the states lie if they may. */
#ifndef IR_PROGRAM_H
#define IR_PROGRAM_H

#include "base/text.h"
#include "ir/step_part.h"
#include "ir/tape.h"

typedef enum ProgramHome {
    HOME_NONE,     /* nowhere: an operand that is absent */
    HOME_ARENA,    /* at a byte of the arena */
    HOME_INPUT,    /* an input of that number is it */
    HOME_CONSTANT, /* so is a constant */
    HOME_NEXT,     /* it is made late, as the result of that number */
} ProgramHome;

typedef struct ProgramValue {
    ProgramHome home;
    size_t at;
    const Type *type;
    int maker;   /* of what lies in the arena: the launch that makes it, */
    bool pieces; /* the last of those that make it, piece by piece */
} ProgramValue;

typedef enum LaunchKind {
    LAUNCH_REGION,   /* a tape */
    LAUNCH_CONTRACT, /* a product, by the card of its word, and a tape over blocks of it as they are done */
    LAUNCH_CALL,     /* by the card of its node */
} LaunchKind;

enum { LIES_APART = -1, NO_STATE = -1, LIKE_NONE = -1 };

typedef struct Launch {
    LaunchKind kind;
    StepPart part;
    const Node *node;
    const Tape *tape;        /* of a region, and of a contract */
    const Node *contraction; /* of a contract: the product in its body, */
    ProgramValue product;    /* and where it is made: apart, or in the place of a result, which then lies over it */
    int n_in, n_out;
    ProgramValue *in, *out;
    bool
        beside; /* it runs side by side with the launch before it: neither touches what the other makes; both are regions,
                    or products of one left operand */
    const Node *within; /* the call of whose body's turns it is a part; null: it is of none, */
    uint32_t turn;      /* and of which, */
    int like;           /* the launch of the first turn that does the same; LIKE_NONE: it is of that, or of none */
    int *over; /* by result: the argument of the tape that it lies over, or may lie over where it is a next value; or
                  LIES_APART */
} Launch;

/* What a result that is made late is to its state. */
typedef struct ProgramNext {
    int state;     /* the input that is the state; NO_STATE: it is no such result */
    bool in_place; /* it may be made where the state lies: nobody reads that any more, and nothing can fail any more */
} ProgramNext;

typedef struct Program {
    const Graph *graph;
    Launch *launches;
    int n_launches;
    int first[STEP_LATE + 2]; /* by part: its first launch, which may be that of the next */
    const Node **constants;
    int n_constants;
    ProgramValue *results; /* of the graph; HOME_NONE: absent */
    ProgramNext *next;     /* of each */
    int n_results;
    size_t arena, live; /* bytes; and those of the largest set of values that are needed at once */
} Program;

/* What a run takes beside the arena, in bytes. */
typedef struct ProgramBytes {
    size_t inputs, states, constants;
    size_t in_place, apart, early; /* next values: made where the state lies; beside it; in the arena, then copied */
    int n_in_place, n_apart, n_early;
} ProgramBytes;

/* Adds up the values of a program that do not lie in the arena. */
ProgramBytes program_bytes(const Program *p);

/* The call of the graph whose work a launch is. */
const Node *launch_call(const Launch *l);

/* The word for what a launch is: region, contract, or that of its operator. */
const char *launch_word(const Launch *l);

/* The launches from `launch` on that run side by side: one, or regions that do not touch what each other makes. */
int program_wave(const Program *p, int launch);

/* Checks that launches stand in the order of their parts, that what they read was written and not written over since,
 * that results lie over arguments only where they may, that what runs side by side does not touch what others make, and
 * that all of it is in the arena; null, or what is wrong. */
const char *program_check(const Program *p, Arena *arena);

/* Prints a program, a launch a line; with the tapes of its regions, if wanted. */
void program_print(Text *out, const Program *p, const OpTable *ops, bool tapes);

/* A number that programs share which do the same: types, tapes, places and all. */
uint64_t program_hash(const Program *p, const OpTable *ops, Arena *scratch);

#endif
