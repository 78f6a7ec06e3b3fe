/* What is attacked: a row for each verb with an output. */
#ifndef TESTS_FAULT_ATTACK_SCENES_H
#define TESTS_FAULT_ATTACK_SCENES_H

typedef struct Scene {
    const char *name;
    const char *before;  /* command lines, `;` between them, whose results are the old ones */
    const char *command; /* the one under attack */
    const char *again;   /* what is run behind it; null: the same */
    const char *probe;   /* what reads files that belong together and writes probe.npy; null: there are none */
    int code;            /* how it ends when nothing fails */
    int steps;           /* of a training: after each of them it may have stopped */
} Scene;

extern const Scene attack_scenes[];
extern const int n_attack_scenes;

/* Command lines that make what all scenes find in their folder, a null behind the last. */
extern const char *const attack_inputs[];

/* Writes the files that those read into the current folder. */
void attack_write_inputs(void);

#endif
