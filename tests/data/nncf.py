"""Makes the models of tests/data/nncf: calls of OpenVINO's FakeQuantize, as NNCF exports them, with what its formula computes.

usage: nncf.py FOLDER [refused]      refused: calls that no codes can hold, a file each, into another folder
"""
import os
import sys

import numpy
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "org.openvinotoolkit"
F = numpy.float32
SHAPE = (4, 3, 5)


def formula(x, low, high, out_low, out_high, levels):
    within = numpy.round((x - low) / (high - low) * F(levels - 1)) / F(levels - 1) * (out_high - out_low) + out_low
    return numpy.where(x <= numpy.minimum(low, high), out_low, numpy.where(x > numpy.maximum(low, high), out_high, within))


def ends(least, largest, step):
    return F(least) * step, F(largest) * step


def channels(shape):
    return (F(.125) * F(2) ** numpy.arange(max(shape), dtype=F)).reshape(shape)


def calls():
    """The range, the levels, whether ties are among the data: where 0 is an odd level they are not, for there codes counted from 0 and
    those of the formula part."""
    yield "int8", ends(-128, 127, F(.25)), 256, True
    yield "int8-narrow", ends(-127, 127, F(.25)), 255, False
    yield "uint8", ends(0, 255, F(.125)), 256, True
    yield "even-level", ends(-40, 215, F(.125)), 256, True
    yield "odd-level", ends(-41, 214, F(.125)), 256, False
    yield "int4", ends(-8, 7, F(.5)), 16, True
    yield "int4-narrow", ends(-7, 7, F(.5)), 15, False
    yield "uint2", ends(0, 3, F(1)), 4, True
    yield "uint1", ends(0, 1, F(2)), 2, True
    yield "int12", ends(-2048, 2047, F(.0078125)), 4096, True
    yield "uint16", ends(0, 65535, F(.000244140625)), 65536, True
    yield "weights", ends(-128, 127, channels((4, 1, 1))), 256, True
    yield "channels", ends(-8, 7, channels((1, 3, 1))), 16, True
    yield "channel-levels", ends(numpy.array([[[0]], [[-2]], [[-8]], [[-14]]]), numpy.array([[[15]], [[13]], [[7]], [[1]]]),
                                 channels((4, 1, 1))), 16, True


def numbers(step, seed, ties):
    """Numbers of which every third lies halfway between two codes, or none does, and some beyond them."""
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal(SHAPE) * 90
    kind = rng.integers(0, 3, SHAPE)
    return (numpy.where(kind == 0, numpy.floor(x) + (.5 if ties else .25), x) * step).astype(F)


def model_of(name, operands, at, kind=TensorProto.FLOAT):
    """None as an operand: one that is given when it runs."""
    inputs = ["x"] + ["end%d" % i for i in range(len(operands))]
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ()) for v, n in zip(operands, inputs[1:]) if v is None]
    graph = helper.make_graph(
        [helper.make_node("FakeQuantize", inputs, ["y"], "/fake", domain=DOMAIN, **at)], name,
        [helper.make_tensor_value_info("x", kind, SHAPE)] + given, [helper.make_tensor_value_info("y", kind, SHAPE)],
        [numpy_helper.from_array(numpy.asarray(v, F), n) for v, n in zip(operands, inputs[1:]) if v is not None])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def make_calls(folder):
    for k, (name, (low, high), levels, ties) in enumerate(calls()):
        x = numbers((high - low) / F(levels - 1), k, ties)
        at = os.path.join(folder, name)
        os.makedirs(os.path.join(at, "test_data_set_0"), exist_ok=True)
        with open(os.path.join(at, "model.onnx"), "wb") as f:
            f.write(model_of(name, (low, high, low, high), {"levels": levels}))
        for i, v in (("input_0", x), ("output_0", formula(x, low, high, low, high, levels))):
            with open(os.path.join(at, "test_data_set_0", i + ".pb"), "wb") as f:
                f.write(numpy_helper.from_array(numpy.ascontiguousarray(v, F)).SerializeToString())


def refused():
    yield "levels", (-8, 7, -8, 7), {"levels": 14}
    yield "many-levels", (-8, 7, -8, 7), {"levels": 2 ** 17}
    yield "unsaid", (-8, 7, -8, 7), {}
    yield "other-low", (-8, 7, -16, 7), {"levels": 16}
    yield "other-high", (-8, 7, -8, 14), {"levels": 16}
    yield "above", (1, 16, 1, 16), {"levels": 16}
    yield "turned", (7, -8, 7, -8), {"levels": 16}
    yield "between", (-7.5, 7.5, -7.5, 7.5), {"levels": 16}
    yield "tiny", (0, 1e-44, 0, 1e-44), {"levels": 256}
    yield "given", (None, 7, -8, 7), {"levels": 16}
    yield "lies", (-8, numpy.full((4, 1, 1), 7), -8, 7), {"levels": 16}
    yield "four", (-8, 7, -8), {"levels": 16}
    yield "unknown", (-8, 7, -8, 7), {"levels": 16, "blocks": 4}
    yield "halves", (-8, 7, -8, 7), {"levels": 16}


def make_refused(folder):
    os.makedirs(folder, exist_ok=True)
    for name, operands, at in refused():
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(model_of(name, operands, at, TensorProto.FLOAT16 if name == "halves" else TensorProto.FLOAT))


if __name__ == "__main__":
    (make_refused if "refused" in sys.argv[2:] else make_calls)(sys.argv[1])
