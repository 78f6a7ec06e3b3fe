"""Files that qcc writes for QONNX, run by onnx's reference implementation with QONNX's operators as their formulas say
(tests/data/qonnx.py): every code and every result is what `qcc predict` computes.

usage: qonnx_files.py QCC TREE FOLDER
"""
import os
import subprocess
import sys

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from qonnx import DOMAIN, by_float, by_quant, by_sign, by_trunc  # noqa: E402

SAMPLES = 8


class Quant(OpRun):
    op_domain = DOMAIN

    def _run(self, x, scale, zero, bits, signed=None, narrow=None, rounding_mode=None):
        return (by_quant(x, scale, zero, bits, signed, narrow, rounding_mode).astype(numpy.float32),)


class BipolarQuant(OpRun):
    op_domain = DOMAIN

    def _run(self, x, scale):
        return (by_sign(x, scale).astype(numpy.float32),)


class FloatQuant(OpRun):
    op_domain = DOMAIN

    def _run(self, x, scale, exponent, mantissa, bias, most, has_inf=None, has_nan=None, has_subnormal=None,
             rounding_mode=None, saturation=None):
        assert has_subnormal and saturation and rounding_mode == "ROUND"
        return (by_float(x, scale, exponent, mantissa, bias, most).astype(numpy.float32),)


class Trunc(OpRun):
    op_domain = DOMAIN

    def _run(self, x, scale, zero, bits, out_scale, out_bits, signed=None, narrow=None, rounding_mode=None):
        return (by_trunc(x, scale, zero, bits, out_scale, out_bits, signed, narrow, rounding_mode).astype(numpy.float32),)


OPERATORS = [Quant, BipolarQuant, FloatQuant, Trunc]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, "%s\n%s%s" % (" ".join(words), done.stdout, done.stderr)


def with_codes(path, to):
    """The same file, whose data are results behind each quantizer, too: their names, and their scales."""
    model = onnx.load(path)
    stored = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for n in model.graph.node:
        if n.op_type == "Constant":
            stored[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
    scales, counts = {}, {o.__name__: 0 for o in OPERATORS}
    have = {o.name for o in model.graph.output}
    for n in model.graph.node:
        if n.domain != DOMAIN:
            continue
        counts[n.op_type] += 1
        if n.input[0] in stored or n.output[0] in have:
            continue
        scales[n.output[0]] = None if n.op_type == "FloatQuant" else stored[n.input[4 if n.op_type == "Trunc" else 1]]
        known = [v for v in model.graph.value_info if v.name == n.output[0]]
        model.graph.output.append(known[0] if known else helper.make_tensor_value_info(n.output[0], 1, None))
    onnx.save(model, to)
    return model, scales, counts


def place(folder, name, shape):
    """A folder for a file, with the data that it is run on."""
    at = os.path.join(folder, name)
    os.makedirs(at)
    values = numpy.random.default_rng(len(name)).standard_normal((SAMPLES,) + shape).astype(numpy.float32)
    numpy.save(os.path.join(at, "x.npy"), values)
    return at, values


def compare(qcc, at, values, name):
    """How many codes of q.onnx are equal, and how many quantizers of each kind it has."""
    x, q, told = os.path.join(at, "x.npy"), os.path.join(at, "q.onnx"), os.path.join(at, "told.onnx")
    written, scales, counts = with_codes(q, told)
    outputs = [o.name for o in written.graph.output]
    paths = {o: os.path.join(at, "y%d.npy" % i) for i, o in enumerate(outputs)}
    run(qcc, "predict", told, "--data", "x=" + x, "-q", *[w for o in outputs for w in ("--output", o + "=" + paths[o])])
    wanted = ReferenceEvaluator(written, new_ops=OPERATORS).run(None, {"x": values})
    codes = 0
    for output, want in zip(outputs, wanted):
        got = numpy.load(paths[output])
        if output in scales:
            scale = scales[output]
            a, b = (want, got) if scale is None else (numpy.round(want / scale), numpy.round(got / scale))
            # sums near 0 that cancelled are not the same numbers in another order, and floats have codes for them
            near = abs(a - b) <= (1e-6 * abs(a).max() if scale is None else 0)
            assert near.all(), "%s: %s: %d of %d codes differ" % (name, output, (~near).sum(), a.size)
            assert len(numpy.unique(a)) > 1, "%s: %s has one code" % (name, output)
            codes += a.size
        else:
            most = abs(want).max()
            assert most > 0 and abs(want - got).max() <= 1e-6 * most, "%s: %s: %g of %g" % (
                name, output, abs(want - got).max(), most)
    assert codes, name
    return codes, counts


def check(qcc, folder, name, model, shape, loss, spec):
    at, values = place(folder, name, shape)
    run(qcc, "export", model, "--batch", str(SAMPLES), "--quant", spec, "--for", "qonnx", "--loss", loss, "--calibrate",
        "x=" + os.path.join(at, "x.npy"), "-o", os.path.join(at, "q.onnx"), "-q")
    return compare(qcc, at, values, name)


def check_arrived(qcc, folder, name, model, shape):
    """A model that arrived with quantizers, as text and then as a file for QONNX."""
    at, values = place(folder, name, shape)
    text = os.path.join(at, "text.qir")
    run(qcc, model, "--emit", "ir", "-o", text, "-q")
    run(qcc, "export", text, "--for", "qonnx", "-o", os.path.join(at, "q.onnx"), "-q")
    return compare(qcc, at, values, name)


qcc, tree, folder = sys.argv[1:]
data = os.path.join(tree, "tests", "data")
residual = (os.path.join(data, "residual.qir"), (3, 16, 16), "cross_entropy:logits")
mlp = (os.path.join(tree, "examples", "models", "mlp.qir"), (1, 16, 16), "cross_entropy")
cnn = (os.path.join(tree, "examples", "models", "cnn.qir"), (1, 16, 16), "cross_entropy")
models = {"residual": residual, "mlp": mlp, "cnn": cnn}
specs = ["w%da8" % bits for bits in range(2, 9)] + [
    "w4a4", "w3a5", "w1a1", "w8a8,w=ternary:tensor", "w8a8,w=int4:tensor:mse,a=uint6:tqt"] + [
    "w8a8,w=int8:pow2:half-up,a=int8:pow2:" + rounding for rounding in ("ceil", "floor", "zero", "away")] + [
    "w=e4m3,a=e4m3", "w=e5m2,a=e4m3", "w=e2m3,a=e3m2", "w=e2m1:tensor,a=e2m3", "w=int4,a=e5m2"]
# what is rounded to one side has scales that are powers of two: sums of products are exact then, in floats of any order
found = [check(qcc, folder, "%s-%s" % (title, spec.replace(":", "_")), model, shape, loss, spec)
         for title, (model, shape, loss) in models.items() for spec in (specs if title == "residual" else specs[2:10:2])]
for name, shape in (("cnn", (1, 8, 8)), ("channels", (3, 6, 6)), ("floats", (10,))):
    found.append(check_arrived(qcc, folder, name, os.path.join(data, "qonnx", "brevitas-" + name, "model.onnx"), shape))
total = sum(n for n, _ in found)
kinds = {o.__name__: sum(counts[o.__name__] for _, counts in found) for o in OPERATORS}
assert all(kinds.values()), kinds
print("%d codes equal, of %s" % (total, kinds))
