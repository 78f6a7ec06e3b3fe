/* Parts of the general writer: graphs become GraphProtos that read back to the letter. */
#ifndef FRONTENDS_ONNX_WRITE_WRITER_H
#define FRONTENDS_ONNX_WRITE_WRITER_H

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/file/spine.h"
#include "frontends/onnx/write.h"
#include "frontends/onnx/write/encode.h"

/* Who holds the bytes of a constant. */
typedef struct Carrier {
    const char *name;   /* ONNX's */
    const Graph *graph; /* where that name is visible, and in the regions inside; null: everywhere */
    bool constant;      /* it keeps its value: others may read it */
} Carrier;

typedef struct Writer {
    Ir *ir;
    Diag *diag;
    Arena *arena;
    Heap heap;          /* bytes of constants */
    Spine *spine;       /* of a step: the model in front; null: none */
    const char *prefix; /* of every name of the graph at hand */
    Facts names;        /* ONNX names, const char *, by node of the graph at hand */
    Map taken;          /* ONNX names in use */
    Map nodes;          /* the same of nodes */
    Map of_model;       /* where the body of an initializer of the model begins -> its name */
    Map carriers;       /* payload -> Carrier * */
    Map parts;          /* tuple -> const char **, names of its results that nodes of their own read */
    uint32_t n_nameless;
    int opset;
    bool bare;            /* nothing of ours is noted: others read the file */
    const char *datapath; /* the text of a machine of somebody's own; null: it is none */
    const char *made_for; /* of such a file: whom it is computed for; null: nobody in particular */
    bool state_all;       /* the types of all values are stated */
    bool quants;          /* quantizers and their numbers are QONNX's (write_quants.c) */
    Map quant_words;      /* numbers that those say, each written once: what is asked for -> its ONNX name */
    bool needs_qcc, needs_preview, needs_qonnx;
    uint32_t dtypes; /* element types that occur, a bit each */
    SignatureNames signature;
    const Onnx__GraphProto *like; /* whose signature has these shapes; null: the types say */
} Writer;

/* A graph being filled. */
typedef struct Level {
    Graph *graph;
    const Node *next;
    Onnx__GraphProto *proto;
    size_t cap_node, cap_initializer, cap_sparse, cap_info;
} Level;

/* A writer for graphs of `ir`; ended by writer_close. */
void writer_open(Writer *w, Ir *ir, Arena *arena, Diag *d, int opset);
void writer_close(Writer *w);

/* ---- names (write_names.c) ---- */

/* A name like `wish` that nothing has yet, and nothing else will get. */
const char *claim_name(Writer *w, const char *wish);

/* The ONNX name of a value. */
const char *value_name(Writer *w, const Node *n);

/* Decides the ONNX name of a value. */
void name_value(Writer *w, const Node *n, const char *name);

/* Whether a reader takes the ONNX name for that text (null: none). */
bool name_tells(const Writer *w, const char *onnx, const char *text);

/* Adds an entry to metadata. */
void note(Writer *w, Onnx__StringStringEntryProto ***list, size_t *n, const char *key, const char *value);
void note_node(Writer *w, Onnx__NodeProto *o, const char *key, const char *value);

/* The marks of a node. */
void note_marks(Writer *w, Onnx__NodeProto *o, const Node *n);

/* Where the nodes of the model come from. */
void note_origins(Writer *w, Onnx__GraphProto *proto, const Graph *g);

/* "SRC FLAGS" */
const char *marks_text(Writer *w, const Node *n);

/* "ROLE OF" of an input or state, and of a result; null where nothing has to be said. */
const char *node_role_text(Writer *w, const Node *n);
const char *result_role_text(Writer *w, const Graph *g, int i);

/* A state, as an initializer that a reader makes a state again. */
Status write_state_tensor(Writer *w, Level *l, const Node *n);

/* Notes the roles of inputs and results in the metadata of a graph. */
void note_roles(Writer *w, Onnx__GraphProto *proto, const Graph *g);

/* ---- constants (write_value.c) ---- */

/* A tensor with the bytes of a payload, which live as long as the writer; null after a complaint. */
Onnx__TensorProto *write_payload(Writer *w, Payload *p, Place place);

/* What is said and not stored of a payload, for QCC_INIT; null: nothing. */
const char *init_text(Writer *w, const Payload *p);

/* Makes `name` the carrier of a payload, unless it has one; the one that it has already, or null. */
const Carrier *carry(Writer *w, const Payload *p, const char *name, const Graph *graph, bool constant);

/* Notes on an initializer what its name does not tell of the payload: its own name, what it shares. */
void note_payload(Writer *w, Onnx__TensorProto *t, const Payload *p, const char *text, const Carrier *same);

/* Writes a `const` or `param`. */
Status write_constant(Writer *w, Level *l, const Node *n);

/* ---- graphs (write_graph.c) ---- */

/* A fresh node. */
Onnx__NodeProto *new_node(Writer *w, const char *op, const char *domain);

/* Adds a node to a graph, an initializer, the type of a value. */
void add_node(Writer *w, Level *l, Onnx__NodeProto *o);
void add_initializer(Writer *w, Level *l, Onnx__TensorProto *t);
void add_type(Writer *w, Level *l, const char *name, const Type *type);

/* Adds an Identity. */
Onnx__NodeProto *add_identity(Writer *w, Level *l, const char *from, const char *to, const Type *type);

/* Begins a graph, whose inputs have names, at a level that has a message: its nodes go behind those there. */
void open_root(Level *l, Graph *g);

/* Writes the nodes of a graph and of its regions; the result list is left to the caller. */
Status write_nodes(Writer *w, Level *root);

/* ---- quantizers as QONNX's (write_quants.c) ---- */

/* Whether a node is part of what is one call there: a quantizer and its numbers, or codes that lose their last bits. */
bool quants_cover(const Node *n);

/* Whether a stored value is nothing but scales of an axis of those, which are written as they lie there. */
bool quants_lay(const Node *n);

/* Writes a covered node: the numbers at the end as a call of Quant, BipolarQuant, FloatQuant or Trunc, others not at all. */
Status write_quant(Writer *w, Level *l, const Node *n);

/* ---- a file (write.c) ---- */

/* An import of a domain. */
Onnx__OperatorSetIdProto *opset_import(Writer *w, const char *domain, int64_t version);

#endif
