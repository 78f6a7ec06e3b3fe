#!/usr/bin/env python3
"""Element types below 16 bits, against onnx and its reference implementation.

    narrow_types.py QCC FOLDER

For each type and several lengths: an initializer in raw_data and in int32_data is read, Cast goes there and back,
QuantizeLinear and DequantizeLinear where the type is one of theirs; the same after qcc has written the model anew, which
onnx's checker then takes.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TYPES = ("FLOAT4E2M1 FLOAT6E2M3 FLOAT6E3M2 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ UINT4 INT4 UINT2 INT2"
         ).split()
LENGTHS = (1, 3, 6, 65)


def model(name, n, raw):
    dtype = getattr(TensorProto, name)
    numpy_type = helper.tensor_dtype_to_np_dtype(dtype)
    low, high = {"UINT4": (0, 15), "INT4": (-8, 7), "UINT2": (0, 3), "INT2": (-2, 1)}.get(name, (-7, 7))
    values = (np.linspace(low, high, n).round(1)).astype(numpy_type)
    w = numpy_helper.from_array(values, "w") if raw else helper.make_tensor("w", dtype, [n], values.astype(np.float32))
    assert w.HasField("raw_data") == raw
    s = numpy_helper.from_array(np.array(0.5, np.float32), "s")
    nodes = [("Cast", ["w"], ["stored"], {"to": TensorProto.FLOAT}), ("Cast", ["x"], ["there"], {"to": dtype}),
             ("Cast", ["there"], ["back"], {"to": TensorProto.FLOAT}),
             ("QuantizeLinear", ["x", "s"], ["codes"], {"output_dtype": dtype}),
             ("DequantizeLinear", ["codes", "s"], ["real"], {})]
    outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, [n]) for o in ("stored", "back", "real")]
    graph = helper.make_graph([helper.make_node(op, i, o, **at) for op, i, o, at in nodes], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n])],
                              outputs + [helper.make_tensor_value_info("there", dtype, [n])], [w, s])
    x = np.linspace(low, high, n).astype(np.float32)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=14), x


def run(qcc, folder, path, x):
    names = [o.name for o in onnx.load(path).graph.output]
    np.save(os.path.join(folder, "x.npy"), x)
    saved = [word for o in names for word in ("--output", "%s=%s/%s.npy" % (o, folder, o))]
    subprocess.run([qcc, "run", path, "--input", "x=%s/x.npy" % folder, *saved], check=True, stdout=subprocess.DEVNULL)
    return [np.load("%s/%s.npy" % (folder, o)) for o in names]


def bits(x):
    """Integers by value: NumPy keeps a narrow one in the low bits of a byte, or with copies of its sign."""
    x = np.asarray(x)
    return x.astype(np.int8) if "int" in x.dtype.name else x.view(np.uint8)


def same(what, wanted, got):
    if not np.array_equal(bits(wanted), bits(got)):
        sys.exit("%s: %s, not %s" % (what, got, wanted))


def main(qcc, folder):
    first, again = os.path.join(folder, "six.onnx"), os.path.join(folder, "again.onnx")
    for name in TYPES:
        for n in LENGTHS:
            for raw in (True, False):
                m, x = model(name, n, raw)
                onnx.checker.check_model(m, full_check=True)
                onnx.save(m, first)
                subprocess.run([qcc, first, "--emit", "onnx", "-o", again], check=True, stdout=subprocess.DEVNULL)
                onnx.checker.check_model(onnx.load(again), full_check=True)
                wanted = ReferenceEvaluator(m).run(None, {"x": x})
                for path in (first, again):
                    for o, y, z in zip(m.graph.output, wanted, run(qcc, folder, path, x)):
                        same("%s[%d], %s, %s of %s" % (name, n, "raw" if raw else "typed", o.name, path), y, z)
    print("%d types, %d models" % (len(TYPES), 4 * len(TYPES) * len(LENGTHS)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
