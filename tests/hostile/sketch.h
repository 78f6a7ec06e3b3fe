/* Models out of a few words, however wrong they are.  Statements end with ; :
 *
 *     opset 13                          opset com.example 2        (24 of ai.onnx where none is given)
 *     in x f32[2,n]                     out y f32[]                vi t f32[3]       init w i64[2]=1,2
 *     y, z = Op(x, , w) axis=i:1 mode=s:linear value=t:f32[3]=0* body=g:NAME
 *     graph NAME ; ... ; end            a subgraph, for g:
 *     func NAME a,b -> c ; ... ; end    a function of domain `local`
 *
 * A type without brackets has no shape; values are of raw_data, * repeats the last one; attributes are
 * i: f: s: t: g: tp: is: fs: ss: and ref:NAME, in which KIND!N: states type N instead of its own. */
#ifndef TESTS_HOSTILE_SKETCH_H
#define TESTS_HOSTILE_SKETCH_H

#include "onnx_bytes.h"

/* The bytes of a ModelProto; the caller frees them. */
Bytes sketch_model(const char *text);

#endif
