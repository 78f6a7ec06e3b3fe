/* What the files share that make programs: the launches of a graph (program.c), and those of the turns of a body
 * (program_turns.c). */
#ifndef CODEGEN_PROGRAM_PARTS_H
#define CODEGEN_PROGRAM_PARTS_H

#include "codegen/program.h"

typedef struct ProgramMaking {
    const Plan *plan;
    const Graph *graph;
    Arena *arena;
    Program *program;
    Facts parts;   /* int: StepPart */
    Facts makers;  /* int: the launch of a node */
    Facts made;    /* ProgramValue *: of a node that several launches make, its results */
    Facts numbers; /* int: of inputs and constants, + 1 */
    size_t cap_launches, cap_constants;
    const char *why;
    const Node *where;
} ProgramMaking;

/* Notes why there is no program; false. */
bool program_refuse(ProgramMaking *m, const Node *where, const char *why);

/* Where a result of a node lies, as a value of a type; false where that is nowhere. */
bool program_locate(ProgramMaking *m, const Node *n, int result, const Type *type, ProgramValue *to);

/* A launch behind the others, and a constant; the number of that. */
Launch *program_add_launch(ProgramMaking *m);
size_t program_add_constant(ProgramMaking *m, const Node *n);

/* Notes where a launch makes a result over an argument; false where it may not. */
bool program_lay_over(ProgramMaking *m, Launch *l);

/* The launches of all turns of a body. */
bool program_add_turns(ProgramMaking *m, const Node *call, const PlanBody *body);

#endif
