/* Attributes: from the file to a call, and from a call to a card's struct. */
#ifndef FRONTENDS_ONNX_READ_ATTRIBUTES_H
#define FRONTENDS_ONNX_READ_ATTRIBUTES_H

#include "frontends/onnx/read/importer.h"
#include "ops/card/cards.h"

/* Reads the attributes of a node; with a schema they are checked against it. */
Status read_attrs(Importer *im, Call *c, const Onnx__NodeProto *o, const OnnxSchema *schema);

/* The struct of a card from the attributes of a call in its newest form. */
Status fill_attrs(const Call *c, const OpDef *def, void **attr);

/* The value of a Constant node. */
Status constant_payload(Importer *im, const Call *c, const Onnx__NodeProto *o, Payload **payload);

#endif
