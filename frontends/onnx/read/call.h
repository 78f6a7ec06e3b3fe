/* One operator call of an ONNX model on its way into the graph: operands are already nodes, attributes are plain
 * values.  The upgrade rewrites calls of old operator versions into calls of the newest. */
#ifndef FRONTENDS_ONNX_READ_CALL_H
#define FRONTENDS_ONNX_READ_CALL_H

#include "frontends/onnx/file/spine.h"
#include "ir/build.h"
#include "ops/card/schema.h"

typedef struct CallAttr {
    const char *name;
    int type; /* ONNX_ATTR_... */
    int64_t i;
    float f;
    const char *s; /* of STRING: NUL-terminated */
    Ints ints;
    Floats floats;
    Strs strings;
    Payload *t;
    Onnx__GraphProto *g;
    const Type *tp;
} CallAttr;

typedef struct Importer Importer;

typedef struct Call {
    Importer *importer;
    const char *op, *domain; /* "" is ai.onnx */
    const char *label;
    int version; /* of the operator: the schema's since */
    int n_in;
    Node **in; /* null: absent */
    int n_out;
    CallAttr *attrs;
    size_t n_attrs, cap_attrs;
    Build *build;                /* for the nodes that an upgrade adds */
    Node *result;                /* set by an upgrade that built the whole call itself */
    const Onnx__NodeProto *ours; /* the node, where our writer wrote it; null otherwise */
} Call;

/* The attribute of that name, or null. */
CallAttr *call_attr(const Call *c, const char *name);

/* Its integer or float, or `fallback` when it is not there. */
int64_t call_int(const Call *c, const char *name, int64_t fallback);
float call_float(const Call *c, const char *name, float fallback);

/* Its string, or `fallback`. */
const char *call_string(const Call *c, const char *name, const char *fallback);

/* Its integers; v is null when it is not there. */
Ints call_ints(const Call *c, const char *name);

/* Sets or adds attributes. */
void call_set_int(Call *c, const char *name, int64_t value);
void call_set_float(Call *c, const char *name, float value);
void call_set_ints(Call *c, const char *name, int n, const int64_t *v);
void call_set_string(Call *c, const char *name, const char *value);

/* Removes an attribute, if it is there. */
void call_drop(Call *c, const char *name);

/* Operand i, null when absent. */
Node *call_in(const Call *c, int i);

/* Makes operand i read `def`, lengthening the list with absent ones. */
void call_set_in(Call *c, int i, Node *def);

/* Arena, and the context of the import. */
Arena *call_arena(const Call *c);
Ir *call_ir(const Call *c);

/* Reports what is wrong with the call; returns INVALID. */
Status call_fail(const Call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- upgrade.c ---- */

/* One change of one operator: what brings a call written before `version` to it. */
typedef struct Upgrade {
    const char *op;
    int version; /* the call is at this version afterwards */
    Status (*apply)(Call *c);
    const char *change; /* what changed, in a few words */
} Upgrade;

/* Brings a call to the newest version of its operator. */
Status upgrade(Call *c);

/* All rows, for the table test and the manual. */
const Upgrade *upgrades(size_t *n);

#endif
