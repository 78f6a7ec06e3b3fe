"""tests/data/aimet: a small network, the encodings that AIMET 2.42 (aimet-onnx) writes for it in its three forms, with weights of 8 and
of 4 bits, samples, and what AIMET's simulation gives for them; tests/data/aimet_refused: files that are refused, one fault each.

usage: aimet.py [FOLDER]    with a Python that has aimet-onnx; tests use what is stored
"""
import json
import pathlib
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
draws = numpy.random.default_rng(3)


def network():
    def stored(name, *shape):
        return numpy_helper.from_array(draws.normal(0, .5, shape).astype("f"), name)

    nodes = [helper.make_node("Conv", ["x", "c.weight", "c.bias"], ["h"], "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["h"], ["a"], "relu"),
             helper.make_node("GlobalAveragePool", ["a"], ["p"], "pool"),
             helper.make_node("Flatten", ["p"], ["f"], "flatten"),
             helper.make_node("Gemm", ["f", "l.weight", "l.bias"], ["y"], "l", transB=1)]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 6, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
                              [stored("c.weight", 6, 3, 3, 3), stored("c.bias", 6), stored("l.weight", 5, 6), stored("l.bias", 5)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def encodings():
    from aimet_onnx.quantsim import QuantizationSimModel
    to = FOLDER / "aimet"
    x = draws.normal(0, 1, (4, 3, 6, 6)).astype("f")
    onnx.save(network(), to / "net.onnx")
    numpy.save(to / "x.npy", x)
    for bits in (8, 4):
        sim = QuantizationSimModel(onnx.load(to / "net.onnx"), param_type=f"int{bits}", activation_type="int8")
        sim.compute_encodings([{"x": x}])
        numpy.save(to / f"y{bits}.npy", sim.session.run(None, {"x": x})[0])
        for version in ("0.6.1", "1.0.0", "2.0.0"):
            with tempfile.TemporaryDirectory() as folder:
                sim.export(folder, "net", encoding_version=version)
                text = json.loads((pathlib.Path(folder) / "net.encodings").read_text())
            (to / f"w{bits}.{version[0]}.encodings").write_text(json.dumps(text, indent=1) + "\n")


def refused():
    def one(**changes):
        entry = {"name": "x", "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": False, "bw": 8, "scale": [0.5], "offset": [-3]}
        entry.update(changes)
        return {"version": "1.0.0", "activation_encodings": [{k: v for k, v in entry.items() if v is not None}], "param_encodings": []}

    def old(**changes):
        entry = {"bitwidth": 8, "dtype": "int", "is_symmetric": "False", "offset": -3, "scale": 0.5}
        return {"activation_encodings": {"x": [entry, dict(entry, **changes)]}}

    def linear(**changes):
        return {"version": "2.0.0", "encodings": [dict({"name": "x", "output_dtype": "uint8", "y_scale": 0.5}, **changes)]}

    cases = {
        "no_json": "{\"encodings\": [",
        "no_sections": {"version": "1.0.0"},
        "deep": "[" * 40 + "]" * 40,
        "section": {"encodings": 3},
        "entry": {"param_encodings": {"x": 3}},
        "nameless": one(name=None),
        "twice": {"encodings": linear()["encodings"] * 2},
        "dtype": one(dtype="COMPLEX"),
        "bits": one(bw=0),
        "one_bit": one(bw=1, offset=[0]),
        "bits_24": one(bw=24),
        "scale": one(scale=[0]),
        "scale_word": one(scale=["a"]),
        "offset": one(offset=[0.5]),
        "lengths": one(enc_type="PER_CHANNEL", scale=[1, 2]),
        "tensor": one(scale=[1, 2], offset=[0, 0]),
        "no_scales": one(enc_type="PER_CHANNEL", scale=[], offset=[]),
        "blocks": one(enc_type="PER_BLOCK"),
        "above": one(offset=[3]),
        "below": one(offset=[-300]),
        "channels": one(enc_type="PER_CHANNEL", scale=[1, 2], offset=[0, 0]),
        "range": dict(one(min=[7])),
        "other_bits": old(bitwidth=4),
        "type": linear(output_dtype="int7"),
        "type_missing": linear(output_dtype=None),
        "block_size": linear(block_size=32),
        "axis": linear(axis=-1),
        "axis_length": linear(axis=1, y_scale=[1, 2], y_zero_point=[0, 0]),
        "zeros": linear(axis=1, y_scale=[1, 2, 3], y_zero_point=[0, 0]),
        "zero": linear(y_zero_point=0.5),
        "nobody": one(name="nobody"),
    }
    for name, case in cases.items():
        text = case if isinstance(case, str) else json.dumps(case)
        (FOLDER / "aimet_refused" / f"{name}.encodings").write_text(text + "\n")


refused()
encodings()
