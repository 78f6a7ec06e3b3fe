/* The JSON of docs/view.md, which also carries what a page knows. */
#ifndef FRONTENDS_VIEW_JSON_H
#define FRONTENDS_VIEW_JSON_H

#include "base/heap.h"
#include "frontends/view/quill.h"
#include "frontends/view/scene.h"

/* What writing JSON needs. */
typedef struct Json {
    Quill *q;
    Memory *memory;
    Diag *diag;
    const struct ViewFacts *facts; /* null: nothing is known beside the graphs */
    Arena *scratch;                /* of json_scene, reset after each node */
    uint64_t may_read;             /* the same: bytes of constants that may still be read from files */
} Json;

/* Appends the whole module. */
void json_scene(Json *j, const Scene *s);

/* Appends ,"attributes":{..} with those that are not the default; nothing where there are none. */
void json_attributes(Json *j, const Node *n);

/* Appends ,"defaults":{..} of a card; nothing where there are none. */
void json_defaults(Json *j, const OpDef *def);

/* Appends ,"value":{..} of a constant, parameter or state; nothing where it has none. */
void json_value(Json *j, const Node *n);

#endif
