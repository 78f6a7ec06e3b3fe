"""What ONNX Runtime says of words on codes.

    integer_words.py FOLDER

For each NAME.case: one operator between dequantizers and a quantizer, which onnxruntime has to fuse into one integer
operator, gives in NAME.bin's data the codes that follow there.  A line of a case is "op NAME", "ints NAME NUMBERS", or
"tensor NAME TYPE SHAPE"; the file of data has the tensors one behind the other, `y` is what is compared.  Every code of
them all has to be equal.
"""
import collections
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {"u8": np.uint8, "i8": np.int8, "i32": np.int32, "f32": np.float32}
FUSED = {
    "Conv": "QLinearConv",
    "MatMul": "QLinearMatMul",
    "MatMul float": "MatMulIntegerToFloat",
    "Gemm": "QGemm",
    "Gemm float": "QGemm",
    "Add": "QLinearAdd",
    "Mul": "QLinearMul",
    "AveragePool": "QLinearAveragePool",
    "GlobalAveragePool": "QLinearGlobalAveragePool",
}
LEAST = 10_000_000


def read_case(path):
    op, attrs, tensors, at = None, {}, {}, 0
    data = open(path[: -len("case")] + "bin", "rb").read()
    for line in open(path):
        kind, name, *rest = line.split()
        if kind == "op":
            op = name
        elif kind == "ints":
            attrs[name] = [int(v) for v in rest]
        else:
            dtype, dims = np.dtype(TYPES[rest[0]]), [int(d) for d in rest[1:]]
            n = int(np.prod(dims, dtype=np.int64))
            tensors[name] = np.frombuffer(data, dtype, n, at).reshape(dims)
            at += n * dtype.itemsize
    assert at == len(data), path
    return op, attrs, tensors


def model_of(op, attrs, t):
    nodes, constants, inputs = [], [], []
    single = {"group", "transA", "transB", "ceil_mode", "count_include_pad", "axis"}
    attrs = {k: v[0] if k in single else v for k, v in attrs.items()}
    axis = attrs.pop("axis", 0)

    def constant(name, v):
        constants.append(numpy_helper.from_array(np.array(v), name))
        return name

    def number(name, scale, zero, fixed):
        v = t[name]
        if fixed:
            constant(name, v)
        else:
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
        ins = [name, constant(name + "_s", scale)] + ([constant(name + "_z", zero)] if zero is not None else [])
        nodes.append(helper.make_node("DequantizeLinear", ins, [name + "_n"], axis=axis if scale.ndim else 1))
        return name + "_n"

    ins = [number("a", t["a_scale"], t["a_zero"], False)]
    if "b" in t:
        zero = t["b_zero"] if t["b_scale"].ndim == t["b_zero"].ndim else np.full(t["b_scale"].shape, t["b_zero"])
        ins.append(number("b", t["b_scale"], zero, op not in ("Add", "Mul")))
    if "bias" in t:
        axis = 0
        scale = (t["a_scale"] * t["b_scale"]).astype(np.float32)
        ins.append(number("bias", scale, None, True))
    nodes.append(helper.make_node(op, ins, ["n"], **attrs))
    y = t["y"]
    if "y_scale" in t:
        nodes.append(helper.make_node("QuantizeLinear", ["n", constant("y_s", t["y_scale"]), constant("y_z", t["y_zero"])], ["y"]))
    else:
        nodes.append(helper.make_node("Identity", ["n"], ["y"]))
    outputs = [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(y.dtype), y.shape)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model, [v.name for v in inputs]


def run(folder, op, attrs, t):
    model, names = model_of(op, attrs, t)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
    # without VNNI onnxruntime saturates sums of u8 times i8 unless it is asked not to
    if t["a"].dtype == np.uint8:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = session.run(["y"], {n: t[n] for n in names})[0]
    fused = {n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node}
    return got, fused - {"Identity", "Transpose"}


def main(folder):
    seen, ties, bad = collections.Counter(), collections.Counter(), 0
    paths = sorted(glob.glob(os.path.join(folder, "*.case")))
    for path in paths:
        op, attrs, t = read_case(path)
        key = op if "y_scale" in t else op + " float"
        got, fused = run(folder, op, attrs, t)
        if fused != {FUSED[key]}:
            print(f"{path}: {key} became {sorted(fused)}")
            bad += 1
            continue
        y = t["y"]
        same = got.view(np.uint32) == y.view(np.uint32) if y.dtype == np.float32 else got == y
        if not same.all():
            at = tuple(int(v[0]) for v in np.nonzero(~same))
            print(f"{path}: {key}: {(~same).sum()} of {y.size} differ, first {at}: {got[at]} there, {y[at]} here")
            bad += 1
        seen[key] += y.size
        ties[key] += y.size if "tie" in os.path.basename(path) else 0
        os.remove(path[: -len("case")] + "bin")
    for key in seen:
        print(f"{key}: {seen[key]} codes, {ties[key]} of them on grids of ties")
        if seen[key] < LEAST or ties[key] < LEAST // 2:
            print(f"{key}: too few")
            bad += 1
    if not paths or bad:
        sys.exit(f"{bad} of {len(paths)} cases are not as onnxruntime has them")


main(sys.argv[1])
