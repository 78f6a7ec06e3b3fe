/* Where the model ends in the file of a step, and how the file says so. */
#ifndef FRONTENDS_ONNX_READ_STEP_LAYOUT_H
#define FRONTENDS_ONNX_READ_STEP_LAYOUT_H

#include "frontends/onnx/file/spine.h"
#include "frontends/onnx/file/splice.h"

typedef struct Layout {
    uint64_t model;          /* bytes of the model, from the beginning: the whole file where it is no step */
    uint64_t ir_at, ir_size; /* the field ir_version in the file; no bytes: there is none */
    bool ir_kept;            /* the model's own ir_version is noted */
    bool ir_had;             /* it had one: */
    uint64_t ir;
    size_t n_imports, n_metadata; /* that the model has, of those in the file */
} Layout;

/* Reads it; INVALID when what a step says of its file is not so. */
Status layout_read(Spine *s, Diag *d, Arena *arena, Layout *l);

/* An edit that gives the file another ir_version; false: none (has = false). */
Edit layout_edit_ir(const Layout *l, bool has, uint64_t version);

/* An edit that puts n bytes, which `write` gives, in the place of what follows the model. */
Edit layout_edit_tail(const Layout *l, const Spine *s, uint64_t n, Status (*write)(void *user, const Sink *sink),
                      void *user);

#endif
