/* The model whose outputs a step imitates: what --teacher says. */
#ifndef PASSES_RECIPE_TEACHER_H
#define PASSES_RECIPE_TEACHER_H

#include "ir/graph.h"

#define TEACHER_SELF "self" /* the model itself, as it arrived */

typedef struct Teacher {
    const char *file;    /* as it was named, TEACHER_SELF among them; null: there is none */
    double temperature;  /* scores are divided by it before they are compared */
    double weight;       /* of the comparison in the loss; the task has the rest */
    const char *output;  /* whose scores are compared; null: those that the loss over classes reads */
    const Graph *graph;  /* what it computes, all of it from constants; null: nobody reads it */
    const char *content; /* stands for what it computes in the identity of a step */
} Teacher;

/* Reads "FILE:temperature=4,weight=0.5,output=logits": USAGE with the nearest word where one is not known. */
Status teacher_read(Teacher *t, const char *text, Arena *arena, Diag *diag);

/* The file that such a text names; null: it names none, but the model itself. */
const char *teacher_file(Arena *arena, const char *text);

/* All of it in words: "self:temperature=4,weight=0.5". */
const char *teacher_text(Arena *arena, const Teacher *t);

#endif
