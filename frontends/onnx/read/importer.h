/* The state of an import, shared by its parts. */
#ifndef FRONTENDS_ONNX_READ_IMPORTER_H
#define FRONTENDS_ONNX_READ_IMPORTER_H

#include "frontends/onnx/import.h"
#include "frontends/onnx/read/call.h"
#include "frontends/onnx/read/torch.h"

/* Names visible at a point: a graph's own, and outwards those of the graphs around it. */
typedef struct Scope {
    struct Scope *outer; /* null: outermost, or the body of a function */
    Graph *graph;
    Map values; /* name -> Node * (null pointer: declared absent) */
    /* of a region: what it took from outside */
    Node **captured; /* in the outer graph */
    Node **inside;   /* the region's parameter for it */
    size_t n_captured, cap_captured, cap_inside;
    const Onnx__GraphProto *proto; /* what states the types of its values; null: nothing */
    Map types;                     /* name -> ValueInfoProto, once one is asked for */
    struct LateParam *late;        /* initializers that a text has between its nodes, ascending */
    size_t n_late, cap_late;
} Scope;

typedef struct LateParam {
    Node *node;
    uint64_t at; /* nodes before it */
} LateParam;

/* A function body on its way in: attributes of the call stand in for references. */
typedef struct Frame {
    struct Frame *caller;
    const Onnx__FunctionProto *function; /* null: the model itself */
    const Call *call;
    int opset;   /* of ai.onnx, in this frame */
    Map domains; /* domain -> version */
} Frame;

struct Importer {
    Ir *ir;
    Arena *arena;
    Spine *spine;
    const ImportOptions *options;
    Frame *frame;
    const TorchNames *torch;  /* what PyTorch's exporter says; null: nothing */
    Map torch_parts;          /* TorchHeld -> its param node */
    Map dims, shapes, values; /* of the options, by name: DimBinding, ShapeBinding, Tensor */
    Map functions;            /* "domain\nname\noverload" -> FunctionProto */
    uint32_t n_src;           /* nodes of the file so far */
    int depth;                /* of graphs in graphs */
    const char *where;        /* place of the node at hand */
    /* of files of ours */
    const char *prefix; /* of every name of the graph at hand */
    Map texts;          /* name in the file -> name of the value, null for none */
    Map payloads;       /* name in the file -> Payload * of a constant */
    /* an initializer of the model in front of a step, null where it has none; null: there is no model */
    Status (*find_payload)(Importer *im, const char *name, Payload **payload);
    void *model; /* for find_payload */
};

/* Prepares an import into `arena`. */
void importer_open(Importer *im, Ir *ir, Arena *arena, Spine *spine, const ImportOptions *options);

/* The place of the node at hand. */
Place importer_place(const Importer *im);

/* The type of an input once --dim, --batch and --shape had their say. */
const Type *bound_type(Importer *im, const Onnx__ValueInfoProto *v, const Type *type, const char *name);

/* The value of a name in a scope, captured into it when it lives outside; null when there is none. */
Node *scope_value(Importer *im, Scope *s, const char *name);

/* The name that a value shows: null for those that our writer made up. */
const char *shown_name(const Importer *im, const char *name);

/* Adds a value that a region takes from outside, and what it is inside. */
void scope_capture(Importer *im, Scope *s, Node *outside, Node *inside);

/* Defines a name; INVALID when it is taken. */
Status scope_define(Importer *im, Scope *s, const char *name, Node *value);

/* Imports nodes into a scope (graph or function body). */
Status import_nodes(Importer *im, Scope *s, Onnx__NodeProto *const *nodes, size_t n);

/* The regions of a call of that operator, if it has subgraphs: appends what they capture to the call's operands. */
Status import_regions(Importer *im, Scope *s, Call *c, const char *op, Graph ***regions, int *n_regions);

/* Builds a Scan of opset 8, which has a batch axis. */
Status import_batched_scan(Importer *im, Scope *s, Call *c, Node **y);

/* Builds a Gradient, which names values of the graph. */
Status import_gradient(Importer *im, Scope *s, Call *c, Node **y);

/* Inlines a call of a model-local function; results are defined in the scope. */
Status import_function(Importer *im, Scope *s, Call *c, const Onnx__FunctionProto *f, const Onnx__NodeProto *node);

/* The model-local function of that name, or null. */
const Onnx__FunctionProto *find_function(const Importer *im, Str domain, Str name, Str overload);

/* The place in the model's list of the function that a node calls; false when it calls none. */
bool function_index(const Importer *im, Arena *scratch, const Onnx__NodeProto *o, size_t *index);

/* OK when inlining every function stays within the limit. */
Status check_inlining(Importer *im, const Onnx__ModelProto *model);

/* Whether a name that nothing defines is an operand that the call of the current function left out. */
bool name_is_absent(const Importer *im, const char *name);

/* Reads the opset imports of a frame. */
Status frame_open(Importer *im, Frame *f, Onnx__OperatorSetIdProto *const *imports, size_t n);

/* Initializers, and then nodes and results, of a graph into its scope. */
Status import_initializers(Importer *im, Scope *s, const Onnx__GraphProto *g);
Status import_graph_body(Importer *im, Scope *s, const Onnx__GraphProto *g);

/* A param node over a tensor of the file; in a file of ours it may be a state. */
Status import_tensor(Importer *im, Graph *g, const Onnx__TensorProto *t, const char *name, Node **node);

/* The payload of a tensor of the file. */
Status import_payload(Importer *im, const Onnx__TensorProto *t, Payload **payload);

/* The same for a sparse one, made dense. */
Status import_sparse(Importer *im, const Onnx__SparseTensorProto *t, Payload **payload);

/* A NUL-terminated, checked name. */
const char *import_name(Importer *im, ProtobufCBinaryData b);

#endif
