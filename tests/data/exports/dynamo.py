#!/usr/bin/env python3
"""Models in the style of torch.export's exporters, by hand: Debian's PyTorch has none of them (any Python with onnx).

    dynamo.py FOLDER
    cnn-dynamo-18-dynamic.onnx    torch.onnx.export(dynamo=True): initializers under the module's names, Conv and
                                  BatchNormalization apart, shapes read from x, metadata on every node
    vit-dynamo-18-static.onnx     the same: weights of a Linear over three axes transposed and renamed to val_N, numbers
                                  as initializers without axes, LayerNormalization, GELU taken apart
    mlp-functions-18-dynamic.onnx dynamo_export of PyTorch 2.1: one function a module, over functions of torch_lib
"""
import math
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(5)
BATCH = 4


class Writer:
    def __init__(self):
        self.nodes, self.initializers, self.n = [], [], 0

    def val(self):
        self.n += 1
        return f"val_{self.n - 1}"

    def weight(self, name, *shape):
        bound = 1 / math.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 4)
        return self.tensor(name, rng.uniform(-bound, bound, shape))

    def tensor(self, name, array):
        dtype = np.int64 if np.asarray(array).dtype == np.int64 else np.float32
        self.initializers.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def number(self, value):
        return self.tensor(self.val(), np.float32(value))

    def ints(self, *values):
        return self.tensor(self.val(), np.array(values, np.int64))

    def call(self, op, *inputs, out=None, scope="", **attributes):
        name = out or self.val()
        node = helper.make_node(op, list(inputs), [name], name=f"node_{op}_{len(self.nodes)}" if out is None else
                                f"node_{out}", **attributes)
        for k, v in (("namespace", f": Model/{scope}"), ("pkg.torch.onnx.fx_node", f"%{name} : [num_users=1]")):
            p = node.metadata_props.add()
            p.key, p.value = k, v
        self.nodes.append(node)
        return name

    def save(self, path, x, y, functions=(), domains=()):
        graph = helper.make_graph(self.nodes, "main_graph", [helper.make_tensor_value_info("x", *x)],
                                  [helper.make_tensor_value_info(self.nodes[-1].output[0], *y)], self.initializers)
        opsets = [helper.make_opsetid(d, v) for d, v in (("", 18), *domains)]
        model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), producer_name="pytorch",
                                  producer_version="2.7.1", ir_version=10)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def cnn(path):
    w = Writer()
    x = w.call("Conv", "x", w.weight("conv1.weight", 6, 2, 3, 3), out="conv2d", scope="conv1", pads=[1, 1, 1, 1],
               strides=[1, 1], dilations=[1, 1], group=1, auto_pad="NOTSET")
    for i, (name, channels) in enumerate((("bn1", 6), ("bn2", 8))):
        if i:
            x = w.call("Conv", x, w.weight("conv2.weight", 8, 6, 3, 3), w.weight("conv2.bias", 8), out="conv2d_1",
                       scope="conv2", pads=[0, 0, 0, 0], strides=[2, 2], dilations=[1, 1], group=1, auto_pad="NOTSET")
        tensors = [w.tensor(f"{name}.weight", np.ones(channels)), w.tensor(f"{name}.bias", np.zeros(channels)),
                   w.tensor(f"{name}.running_mean", rng.normal(0, 0.1, channels)),
                   w.tensor(f"{name}.running_var", rng.uniform(0.5, 1.5, channels))]
        x = w.call("BatchNormalization", x, *tensors, out="getitem" + (f"_{3 * i}" if i else ""), scope=name,
                   momentum=0.9, epsilon=1e-5, training_mode=0)
        x = w.call("Relu", x, out="relu" + (f"_{i}" if i else ""))
    batch = w.call("Shape", "x", start=0, end=1)
    sym = w.call("Squeeze", batch, out="sym_size_int_2")
    shape = w.call("Concat", w.call("Reshape", sym, w.ints(-1)), w.ints(72), axis=0)
    x = w.call("Reshape", x, shape, out="view", allowzero=1)
    w.call("Gemm", x, w.weight("fc.weight", 5, 72), w.weight("fc.bias", 5), out="linear", scope="fc", transB=1,
           alpha=1.0, beta=1.0)
    w.save(path, (TensorProto.FLOAT, ["s77", 2, 8, 8]), (TensorProto.FLOAT, ["s77", 5]))


def vit(path):
    w, d, heads, t = Writer(), 12, 3, 5

    def linear(x, name, n, k, out):
        y = w.call("MatMul", x, w.weight(w.val(), k, n), scope=name)
        return w.call("Add", y, w.weight(f"{name}.bias", n), out=out, scope=name)

    def norm(x, name, out):
        return w.call("LayerNormalization", x, w.tensor(f"{name}.weight", np.ones(d)),
                      w.tensor(f"{name}.bias", np.zeros(d)), out=out, scope=name, axis=-1, epsilon=1e-5, stash_type=1)

    x = w.call("Conv", "x", w.weight("patch.weight", d, 2, 4, 4), w.weight("patch.bias", d), out="conv2d",
               scope="patch", strides=[4, 4])
    x = w.call("Reshape", x, w.ints(BATCH, d, 4), out="flatten")
    x = w.call("Transpose", x, out="transpose", perm=[0, 2, 1])
    cls = w.call("Expand", w.weight("cls_token", 1, 1, d), w.ints(BATCH, 1, d), out="expand")
    x = w.call("Add", w.call("Concat", cls, x, out="cat", axis=1), w.weight("pos_embed", 1, t, d), out="add")
    h = norm(x, "blocks.0.norm1", "layer_norm")
    qkv = w.call("Reshape", linear(h, "blocks.0.attn.qkv", 3 * d, d, "linear"), w.ints(BATCH, t, 3, heads, d // heads))
    qkv = w.call("Transpose", qkv, out="permute", perm=[2, 0, 3, 1, 4])
    q, k, v = (w.call("Squeeze", w.call("Gather", qkv, w.ints(i), axis=0), w.ints(0)) for i in range(3))
    k = w.call("Transpose", k, perm=[0, 1, 3, 2])
    root = math.sqrt(math.sqrt(heads / d))
    a = w.call("MatMul", w.call("Mul", q, w.number(root)), w.call("Mul", k, w.number(root)))
    a = w.call("MatMul", w.call("Softmax", a, axis=-1), v, out="scaled_dot_product_attention")
    a = w.call("Reshape", w.call("Transpose", a, perm=[0, 2, 1, 3]), w.ints(BATCH, t, d))
    x = w.call("Add", x, linear(a, "blocks.0.attn.proj", d, d, "linear_1"), out="add_1")
    h = linear(norm(x, "blocks.0.norm2", "layer_norm_1"), "blocks.0.mlp.fc1", 2 * d, d, "linear_2")
    e = w.call("Erf", w.call("Div", h, w.number(math.sqrt(2))))
    h = w.call("Mul", w.number(0.5), w.call("Mul", h, w.call("Add", e, w.number(1))), out="gelu")
    x = w.call("Add", x, linear(h, "blocks.0.mlp.fc2", d, 2 * d, "linear_3"), out="add_2")
    x = w.call("Gather", norm(x, "norm", "layer_norm_2"), w.tensor(w.val(), np.int64(0)), axis=1, out="select")
    w.call("Gemm", x, w.weight("head.weight", 5, d), w.weight("head.bias", 5), out="linear_4", scope="head", transB=1)
    w.save(path, (TensorProto.FLOAT, [BATCH, 2, 8, 8]), (TensorProto.FLOAT, [BATCH, 5]))


LIB, OURS = "pkg.onnxscript.torch_lib", "pkg.torch.2.1.0"
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid(LIB, 1), helper.make_opsetid(OURS, 1)]


def function(domain, name, inputs, outputs, nodes, attributes=()):
    return helper.make_function(domain, name, inputs, outputs, nodes, OPSETS, attributes)


def by_reference(node, name, attribute, kind):
    a = node.attribute.add()
    a.name, a.ref_attr_name, a.type = name, attribute, kind
    return node


def library():
    node = helper.make_node
    two = node("Constant", [], ["two"], value_float=2.0)
    gelu = [node("Constant", [], ["half"], value_float=0.5), node("Constant", [], ["one"], value_float=1.0), two,
            node("CastLike", ["half", "self"], ["h"]), node("CastLike", ["one", "self"], ["o"]),
            node("CastLike", ["two", "self"], ["t"]), node("Sqrt", ["t"], ["root"]),
            node("Div", ["self", "root"], ["q"]), node("Erf", ["q"], ["e"]), node("Add", ["e", "o"], ["p"]),
            node("Mul", ["self", "p"], ["m"]), node("Mul", ["h", "m"], ["result"])]
    gemm = by_reference(by_reference(node("Gemm", ["mat1", "mat2", "self"], ["result"]), "alpha", "alpha",
                                     onnx.AttributeProto.FLOAT), "beta", "beta", onnx.AttributeProto.FLOAT)
    softmax = by_reference(node("Softmax", ["self"], ["result"]), "axis", "dim", onnx.AttributeProto.INT)
    return [function(LIB, "aten_t", ["self"], ["result"], [node("Transpose", ["self"], ["result"], perm=[1, 0])]),
            function(LIB, "aten_addmm", ["self", "mat1", "mat2"], ["result"], [gemm], ["alpha", "beta"]),
            function(LIB, "_aten_gelu_approximate_none", ["self"], ["result"], gelu),
            function(LIB, "aten_softmax_no_dtype", ["self"], ["result"], [softmax], ["dim"])]


def module_linear(name):
    nodes = [helper.make_node("aten_t", ["weight"], ["t"], domain=LIB),
             helper.make_node("aten_addmm", ["bias", "input", "t"], ["addmm"], domain=LIB, alpha=1.0, beta=1.0)]
    return function(OURS, f"torch_nn_modules_linear_Linear_{name}", ["input", "weight", "bias"], ["addmm"], nodes)


def mlp(path):
    w, functions = Writer(), library()
    x = "x"
    for name, n, k in (("layers_0_1", 12, 6), ("layers_2_1", 12, 12), ("layers_4_1", 5, 12)):
        key = name[:-2].replace("_", ".")
        functions.append(module_linear(name))
        x = w.call(f"torch_nn_modules_linear_Linear_{name}", x, w.weight(f"{key}.weight", n, k),
                   w.weight(f"{key}.bias", n), out=name, domain=OURS)
        if n == 12:
            x = w.call("_aten_gelu_approximate_none", x, out=name + "_gelu", domain=LIB)
    w.call("aten_softmax_no_dtype", x, out="softmax", domain=LIB, dim=1)
    w.save(path, (TensorProto.FLOAT, ["arg0_dynamic_axes_0", 6]), (TensorProto.FLOAT, ["arg0_dynamic_axes_0", 5]),
           functions, ((LIB, 1), (OURS, 1)))


if __name__ == "__main__":
    cnn(f"{sys.argv[1]}/cnn-dynamo-18-dynamic.onnx")
    vit(f"{sys.argv[1]}/vit-dynamo-18-static.onnx")
    mlp(f"{sys.argv[1]}/mlp-functions-18-dynamic.onnx")
