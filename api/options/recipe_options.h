/* Options as a recipe: what the column `field` of options.def says. */
#ifndef API_OPTIONS_RECIPE_OPTIONS_H
#define API_OPTIONS_RECIPE_OPTIONS_H

#include "api/options/options.h"
#include "passes/recipe/recipe.h"

/* How an option fills its field. */
typedef enum FillKind {
    FILL_NONE,    /* it fills none */
    FILL_TEXTS,   /* every value that is given, and how many there are */
    FILL_WORD,    /* whether the value is that word */
    FILL_NUMBER,  /* a double */
    FILL_INTEGER, /* an int64_t */
    FILL_GIVEN,   /* whether the option is given */
    FILL_READ     /* its values are lists that are read by a function of their own */
} FillKind;

typedef struct RecipeField {
    FillKind kind;
    size_t at, n_at;  /* bytes into a Recipe: the field, and the number of texts in it */
    const char *word; /* of a WORD */
} RecipeField;

extern const RecipeField recipe_fields[OPT_COUNT];

/* Writes all that a line says into a recipe, but losses and tables of classes, which name files: USAGE where a value is
 * not understood.  Texts are copied into `arena`. */
Status recipe_read_options(Recipe *r, const CommandLine *line, const OpTable *ops, Arena *arena, Diag *d);

/* Whom quantized models are for: what --for says, ONNX Runtime where it says nothing or float. */
const char *options_target(const CommandLine *line);

/* The losses of a line, without what is in the files that they name; none where it names none. */
Status recipe_read_loss_options(Recipe *r, const CommandLine *line, Arena *arena, Diag *d);

#endif
