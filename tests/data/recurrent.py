"""Writes recurrent.h: what ONNX Runtime gives for small recurrent calls.  Run by hand; needs onnx, onnxruntime."""
import os
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

# op, gates, activations, C initializer of the attributes, ONNX attributes
CASES = [
    ("LSTM", 4, [], "0", {}),
    ("LSTM", 4, [], "1", {"input_forget": 1}),
    ("LSTM", 4, ["HardSigmoid", "Elu", "Softsign"], "2", {"clip": 0.5, "activation_alpha": [0.5, 0.25], "activation_beta": [0.75]}),
    ("GRU", 3, [], "0", {}),
    ("GRU", 3, [], "3", {"linear_before_reset": 1}),
    ("GRU", 3, ["Affine", "ScaledTanh"], "4", {"activation_alpha": [0.5, 0.25], "activation_beta": [0.75, 0.125]}),
    ("RNN", 1, [], "0", {}),
    ("RNN", 1, ["LeakyRelu"], "5", {"activation_alpha": [0.5], "direction": "reverse"}),
]
FIELDS = {
    "0": ".layout = 0",
    "1": ".input_forget = true",
    "2": ".clip = 0.5f, .activation_alpha = { 2, stored_alpha }, .activation_beta = { 1, stored_beta }",
    "3": ".linear_before_reset = true",
    "4": ".activation_alpha = { 2, stored_alpha }, .activation_beta = { 2, stored_beta }",
    "5": ".direction = RUN_REVERSE, .activation_alpha = { 1, stored_alpha }",
}


def sines(step, *dims):
    n = int(np.prod(dims))
    return np.sin(step * np.arange(1, n + 1)).astype(np.float32).reshape(dims)


def last_state(op, gates, activations, more):
    wide = 2 * gates
    ins = [sines(0.3, 3, 2, 2), sines(0.7, 1, wide, 2), sines(1.1, 1, wide, 2), sines(1.3, 1, 2 * wide), None, sines(0.9, 1, 2, 2)]
    if op == "LSTM":
        ins += [sines(1.7, 1, 2, 2), sines(1.9, 1, 6)]
    names = ["" if v is None else f"i{k}" for k, v in enumerate(ins)]
    if activations:
        more = dict(more, activations=activations)
    node = helper.make_node(op, names, ["y", "h"], hidden_size=2, **more)
    values = [(n, v) for n, v in zip(names, ins) if n]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in values],
                              [helper.make_tensor_value_info("h", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, dict(values))[0].ravel()


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurrent.h"), "w") as f:
    f.write("/* Written by recurrent.py. */\n/* clang-format off */\nstatic const Stored stored[] = {\n")
    for op, gates, activations, fields, more in CASES:
        names = ", ".join(f'"{a}"' for a in activations) or "NULL"
        numbers = ", ".join(f"{v:.9g}" for v in last_state(op, gates, activations, more))
        f.write(f"    {{ OP_{op.lower()}, {gates}, {{ {names} }}, {{ {FIELDS[fields]} }}, {{ {numbers} }} }},\n")
    f.write("};\n/* clang-format on */\n")
