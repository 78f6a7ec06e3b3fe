#!/usr/bin/env python3
"""Writes attention25.onnx: windowed attention at opset 25, which ONNX 1.23 defined after 1.22 had published that opset.
The file beside it holds what onnx's reference implementation computes from zeros, ones and counts."""
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(7)
keys, values = (numpy_helper.from_array(rng.integers(-2, 3, (1, 1, 4, 2)).astype(np.float32), n) for n in ("k", "v"))
node = helper.make_node("Attention", ["q", "k", "v"], ["y"], name="/look", left_window_size=1, right_window_size=1)
graph = helper.make_graph([node], "look", [helper.make_tensor_value_info("q", 1, [1, 1, 4, 2])],
                          [helper.make_tensor_value_info("y", 1, [1, 1, 4, 2])], [keys, values])
model = helper.make_model(graph, producer_name="test", opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "attention25.onnx")
q = np.arange(8, dtype=np.float32).reshape(1, 1, 4, 2) / 4
np.save("attention25_q.npy", q)
np.save("attention25_y.npy", ReferenceEvaluator(model).run(None, {"q": q})[0])
