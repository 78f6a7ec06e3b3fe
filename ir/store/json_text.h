/* JSON text as jansson's tree. */
#ifndef IR_STORE_JSON_TEXT_H
#define IR_STORE_JSON_TEXT_H

#include <jansson.h>

#include "base/memory.h"
#include "base/str.h"

/* What a text says, to be given back by json_decref; null where it is no JSON.  jansson takes malloc's memory; where that
 * lacks it calls a text wrong, or leaves out characters without a word: then this jumps. */
json_t *json_text(Memory *memory, const char *text, size_t n, size_t flags, json_error_t *error);

/* Whether a text nests deeper than that: jansson recurses, so it must not see what does. */
bool json_nests(Str json, int deepest);

#endif
