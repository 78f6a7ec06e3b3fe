/* States that a quantizer writes: codes with a scale, or floats of fewer bits, instead of numbers of 32 bits.
 *
 * A scale has the rank of the codes; in each dimension it is 1, as long as they are, or a part of that: so many codes
 * side by side have one then.  A number is (code - zero) * scale. */
#ifndef PASSES_RECIPE_STORED_H
#define PASSES_RECIPE_STORED_H

#include "ir/tensor.h"
#include "passes/recipe/quantizer.h"

typedef struct StoredForm {
    Quantizer by;
    DType type;             /* of what is stored */
    int64_t least, largest; /* codes; both 0: floats, which have no scale */
    bool zeros;             /* there are zero points */
} StoredForm;

/* What the words of a state say (ir/role.h, node_stored). */
Status stored_form(StoredForm *form, const char *words, Arena *arena, Diag *diag);

/* The same of a quantizer; false: no state is stored so. */
bool stored_form_of(StoredForm *form, const Quantizer *q);

/* Rounds numbers of f32 to the nearest: into codes with their scale and zero points (null where the form has none). */
void stored_round(const StoredForm *form, const Tensor *numbers, Tensor *codes, Tensor *scale, Tensor *zero,
                  Arena *scratch);

/* Lets floats of f32 become the codes that a state of that name begins with: to the nearest, or by chance where the form
 * says from=sr.  The draws are those of the name and of the place in the whole: the same in each run, wherever it is. */
void stored_begin(const StoredForm *form, const char *name, const Tensor *numbers, Tensor *codes, Tensor *scale,
                  Tensor *zero, Arena *scratch);

/* The numbers in f32 that codes stand for. */
void stored_numbers(const Tensor *codes, const Tensor *scale, const Tensor *zero, Tensor *numbers);

#endif
