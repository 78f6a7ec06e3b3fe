"""What docs/migration.md says of other tools, held to them: a row's command is done here, what stands beside it there, and
scales and codes are as the last column says.  Tools that are not installed are skipped, each with a word.

usage: migration.py QCC SOURCE FOLDER
"""
import importlib
import json
import os
import subprocess
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")
ROWS = {}
CHECKS = []


def check(module, row):
    """A function for the row whose first cell has that text; it gets what the command wrote, and the peer."""
    return lambda function: CHECKS.append((module, row, function)) or function


def read_rows(source):
    title = None
    for line in open(os.path.join(source, "docs/migration.md"), encoding="utf-8"):
        if line.startswith("## "):
            title = line[3:].strip()
        cells = line.replace("\\|", "\0").split("|")
        if len(cells) == 5 and "`qcc " in cells[2]:
            ROWS["%s %s" % (title, cells[1].strip())] = cells[2].strip().strip("`").replace("\0", "|")


def numbers_of(path):
    """Initializers and constants, by name."""
    graph = onnx.load(path).graph
    found = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    found.update({n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in graph.node if n.op_type == "Constant"})
    return found


def same(what, a, b, by=1.0):
    """Equal but for an ulp or two: a * by = b."""
    a, b = (numpy.asarray(v, numpy.float64).reshape(-1) for v in (a, b))
    if a.shape != b.shape or not numpy.allclose(a * by, b, rtol=3e-7, atol=0):
        raise AssertionError("%s: %s and %s" % (what, a[:4] * by, b[:4]))


def equal(what, a, b):
    a, b = (numpy.asarray(v).astype(numpy.int64) for v in (a, b))
    if a.shape != b.shape or (a != b).any():
        raise AssertionError("%s: %d of %d codes differ" % (what, (a != b).sum() if a.shape == b.shape else -1, a.size))


def weight():
    return numbers_of("mat.onnx")["w1"]


def linear(torch):
    """The first layer, as a module."""
    layer = torch.nn.Linear(256, 128, bias=False)
    layer.weight.data = torch.from_numpy(weight().T.copy())
    return torch.nn.Sequential(layer).eval()


def batches():
    return numpy.load("t.npy").reshape(8, 8, 256)


# ---- Brevitas ----

def brevitas_weight(name, ours):
    quant, nn = importlib.import_module("brevitas.quant"), importlib.import_module("brevitas.nn")
    torch = importlib.import_module("torch")
    layer = nn.QuantLinear(256, 128, bias=False, weight_quant=getattr(quant, name))
    layer.weight.data = torch.from_numpy(weight().T.copy())
    theirs = layer.quant_weight()
    same("scales", theirs.scale.detach(), ours["w1.scale"])
    equal("codes", theirs.int().numpy().T, ours["w1.codes"])


for quantizer in ("Int8WeightPerTensorFloat", "Int8WeightPerChannelFloat", "Int8WeightPerTensorFixedPoint"):
    check("brevitas.nn", "weight_quant=" + quantizer)(lambda ours, name=quantizer: brevitas_weight(name, ours))


# ---- torch.ao, torchao ----

@check("torch.ao.quantization", "`PerChannelMinMaxObserver")
def per_channel(ours):
    torch, ao = importlib.import_module("torch"), importlib.import_module("torch.ao.quantization")
    observer = ao.PerChannelMinMaxObserver(ch_axis=1, dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
    observer(torch.from_numpy(weight()))
    same("scales", observer.calculate_qparams()[0], ours["w1.scale"], 127.5 / 127)
    equal("largest code", numpy.abs(ours["w1.codes"].astype(int)).max(0), [127] * 128)


@check("torch.ao.quantization", "`MinMaxObserver()`")
def range_of_all(ours):
    torch, ao = importlib.import_module("torch"), importlib.import_module("torch.ao.quantization")
    observer = ao.MinMaxObserver(dtype=torch.quint8)
    for x in batches():
        observer(torch.from_numpy(x))
    scale, zero = observer.calculate_qparams()
    same("scale", scale, ours["t.scale"])
    equal("code of 0", zero.reshape(()), ours["t.zero"])


@check("torchao.quantization", "`quantize_(model, Int8WeightOnlyConfig())`")
def int8_weights(ours):
    torch, ao = importlib.import_module("torch"), importlib.import_module("torchao.quantization")
    model = linear(torch)
    ao.quantize_(model, ao.Int8WeightOnlyConfig())
    same("scales", model[0].weight.scale, ours["w1.scale"], 127.5 / 127)


@check("torchao.quantization", "`quantize_(model, IntxWeightOnlyConfig")
def int4_weights(ours):
    torch, ao = importlib.import_module("torch"), importlib.import_module("torchao.quantization")
    model = linear(torch)
    ao.quantize_(model, ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.PerGroup(32)))
    same("scales", model[0].weight.scale.reshape(128, 8).T, ours["w1.scale"], 7.5 / 7)
    equal("codes in use", [ours["w1.codes"].astype(int).min(), ours["w1.codes"].astype(int).max()], [-7, 7])


# ---- ModelOpt ----

def modelopt(config):
    torch, mtq = importlib.import_module("torch"), importlib.import_module("modelopt.torch.quantization")
    x = torch.from_numpy(numpy.load("t.npy"))
    return mtq.quantize(linear(torch), getattr(mtq, config), lambda model: model(x))[0]


@check("modelopt.torch.quantization", "mtq.INT8_DEFAULT_CFG")
def modelopt_int8(ours):
    layer = modelopt("INT8_DEFAULT_CFG")
    same("scales", layer.weight_quantizer.amax / 127, ours["w1.scale"])
    same("scale of data", layer.input_quantizer.amax / 127, ours["t.scale"])


@check("modelopt.torch.quantization", "mtq.INT4_BLOCKWISE_WEIGHT_ONLY_CFG")
def modelopt_int4(ours):
    layer = modelopt("INT4_BLOCKWISE_WEIGHT_ONLY_CFG")
    same("scales", layer.weight_quantizer.amax.reshape(128, 2).T / 7, ours["w1.scale"])


# ---- NNCF ----

def compressed(mode, **words):
    nncf = importlib.import_module("nncf")
    model = nncf.compress_weights(onnx.load("mat.onnx"), mode=getattr(nncf.CompressWeightsMode, mode), **words)
    onnx.save(model, "theirs.onnx")
    return numbers_of("theirs.onnx")


@check("nncf", "mode=INT8_ASYM")
def nncf_asym(ours):
    theirs = compressed("INT8_ASYM")
    same("scales", theirs["w1_scale"], ours["w1.scale"])
    equal("codes of 0", theirs["w1_zero_point"], ours["w1.zero"])
    equal("codes", theirs["w1_quantized"], ours["w1.codes"])


@check("nncf", "mode=INT8_SYM")
def nncf_sym(ours):
    same("scales", numpy.abs(compressed("INT8_SYM")["w1_scale"]), ours["w1.scale"], 128 / 127)


@check("nncf", "mode=INT4_SYM")
def nncf_int4(ours):
    theirs = compressed("INT4_SYM", group_size=32, all_layers=True, ratio=1)
    scales = numpy.abs(theirs["w1_scale"])
    same("scales", scales.T if scales.shape == (128, 8) else scales, ours["w1.scale"], 8 / 7)


@check("nncf", "`nncf.quantize(model, dataset)`")
def nncf_quantize(ours):
    nncf = importlib.import_module("nncf")
    model = nncf.quantize(onnx.load("mat.onnx"), nncf.Dataset([{"t": x} for x in batches()]))
    onnx.save(model, "theirs.onnx")
    theirs = numbers_of("theirs.onnx")
    same("scales", theirs["scale_w1_1"], ours["w1.scale"])
    equal("codes", theirs["q_output_w1_1"], ours["w1.codes"])


# ---- AIMET ----

@check("aimet_onnx.quantsim", "`QuantizationSimModel(model)`")
def aimet(ours):
    sim = importlib.import_module("aimet_onnx.quantsim").QuantizationSimModel(
        onnx.load("mat.onnx"), param_type="int8", activation_type="int8", quant_scheme="min_max")
    sim.compute_encodings([{"t": x} for x in batches()])
    sim.export(".", "theirs")
    said = json.load(open("theirs.encodings", encoding="utf-8"))
    data = next(e for e in said["activation_encodings"] if e["name"] == "t")
    same("scale of data", data["scale"], ours["t.scale"])
    equal("code of 0", -int(data["offset"][0]), ours["t.zero"])
    theirs, w = next(e for e in said["param_encodings"] if e["name"] == "w1")["scale"], weight()
    same("their scales", numpy.maximum(w.max(0) / 127, -w.min(0) / 128), theirs)
    same("our scales", numpy.abs(w).max(0) / 127, ours["w1.scale"])


# ---- ONNX Runtime, onnxsim ----

@check("onnxruntime.quantization", "`quantize_static(")
def static(ours):
    quantization = importlib.import_module("onnxruntime.quantization")

    class Reader(quantization.CalibrationDataReader):
        rest = iter([{"t": x} for x in batches()])

        def get_next(self):
            return next(self.rest, None)

    quantization.quantize_static("mat.onnx", "theirs.onnx", Reader(), per_channel=True,
                                 weight_type=quantization.QuantType.QInt8, activation_type=quantization.QuantType.QUInt8)
    theirs = numbers_of("theirs.onnx")
    same("scales", theirs["w1_scale"], ours["w1.scale"])
    equal("codes", theirs["w1_quantized"], ours["w1.codes"])
    for name in ("t", "hidden"):
        same("scale of " + name, theirs[name + "_scale"], ours[name + ".scale"])
        equal("code of 0 of " + name, theirs[name + "_zero_point"], ours[name + ".zero"])


@check("onnxruntime.quantization.matmul_nbits_quantizer", "`MatMulNBitsQuantizer(")
def bits(ours):
    module = importlib.import_module("onnxruntime.quantization.matmul_nbits_quantizer")
    quantizer = module.MatMulNBitsQuantizer(onnx.load("mat.onnx"), block_size=32, is_symmetric=True,
                                            quant_format=module.QuantFormat.QDQ)
    quantizer.process()
    onnx.save(quantizer.model.model, "theirs.onnx")
    same("scales", numpy.abs(numbers_of("theirs.onnx")["w1_DQ_scales"]), ours["w1.scale"], 8 / 7)


@check("onnxsim", "`onnxsim.simplify(model)`")
def simplified(_):
    runtime = importlib.import_module("onnxruntime")
    onnx.save(importlib.import_module("onnxsim").simplify(onnx.load("net.onnx"))[0], "theirs.onnx")
    results = [runtime.InferenceSession(f, providers=["CPUExecutionProvider"]).run(None, {"x": numpy.load("x.npy")})[0]
               for f in ("theirs.onnx", "out.onnx")]
    if not numpy.allclose(*results, rtol=1e-4, atol=1e-5):
        raise AssertionError("results differ")


def main():
    qcc, source, folder = (os.path.abspath(p) for p in sys.argv[1:4])
    subprocess.run([os.path.join(source, "tests/docs/migration"), qcc, source, folder], check=True)
    os.chdir(folder)
    os.environ["PATH"] = os.path.dirname(qcc) + os.pathsep + os.environ["PATH"]
    read_rows(source)
    done, missing = 0, set()
    for module, row, function in CHECKS:
        rows = [r for r in ROWS if row in r]
        if len(rows) != 1:
            sys.exit("docs/migration.md: %d rows have %s" % (len(rows), row))
        try:
            importlib.import_module(module)
        except ImportError:
            missing.add(module)
            continue
        made = subprocess.run(ROWS[rows[0]], shell=True, capture_output=True, text=True)
        if made.returncode:
            sys.exit("%s\n%s%s" % (ROWS[rows[0]], made.stdout, made.stderr))
        try:
            function(numbers_of("out.onnx"))
        except AssertionError as why:
            sys.exit("docs/migration.md: %s: %s" % (rows[0], why))
        done += 1
    for name in sorted(missing):
        print("skipped: rows of docs/migration.md: no %s here; QCC_PYTHON names a Python that has it" % name)
    print("%d rows agree with the tools themselves" % done)


main()
