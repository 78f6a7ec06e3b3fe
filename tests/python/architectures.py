"""Architectures of transformers, in small, as PyTorch exports them: for each the model gives what ONNX Runtime gives, its gradients are
those of PyTorch, of all parameters that the file still has as themselves, and the engine cpu has the bits of the reference: in the model,
its gradients, the model on codes (w8a8) and the gradients of its training.

usage: architectures.py QCC FOLDER [NAME ..|all]    some that differ most, unless names are given
"""
import os
import subprocess
import sys
import warnings

import numpy
import onnxruntime
import torch
import transformers

sys.dont_write_bytecode = True
from architecture_list import MODELS  # noqa: E402

warnings.filterwarnings("ignore")

USUAL = ["perceiver", "efficientnet", "bart", "llama", "whisper", "mamba", "swinv2", "deberta_v2"]
# What the exporter computed with parameters, or folded into them, so that gradients of what is in the file are others: norms folded
# into convolutions, heads joined from two parameters, 1 - x of a parameter.  ModernBERT's file computes something else than the module.
OTHERS = {"efficientnet", "mobilebert", "mobilevit", "mobilevitv2", "modernbert", "levit", "regnet", "resnet", "rwkv", "segformer"}
NEAR, GRADIENTS_NEAR = 1e-4, 2e-3  # of the largest number; where that is small beside those of other parameters, of 1e-4 of them


class Wrapped(torch.nn.Module):
    """The first result of a model, whose inputs are in an order."""

    def __init__(self, model, names):
        super().__init__()
        self.m, self.names = model, names

    def forward(self, *inputs):
        y = self.m(**dict(zip(self.names, inputs)), return_dict=False)
        while isinstance(y, (tuple, list)):
            y = next(part for part in y if part is not None)
        return y


def made(name):
    """The module, away from the zeros and ones that models begin with, and what goes in."""
    torch.manual_seed(0)
    config, model, settings, inputs = MODELS[name]
    module = getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()
    x = inputs()
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() < 2:
                p.add_(torch.randn(p.shape) * 0.05)
            else:
                p.mul_(2)
    return Wrapped(module, list(x)), x


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("%s: exit code %d: %s" % (" ".join(command[1:3]), done.returncode, done.stderr.strip()[-400:]))


def on_both(name, *command):
    """What a command writes into %s, which on both devices is the same in every bit."""
    for device in "reference", "cpu":
        run(*(part.replace("%s", device + name) for part in command), "--device", device, "-q")
    written = [numpy.load(device + name) for device in ("reference", "cpu")]
    parts = [{k: w[k] for k in w.files} if name.endswith("z") else {"": w} for w in written]
    other = [k for k in parts[0] if parts[0][k].tobytes() != parts[1][k].tobytes()]
    if other:
        raise RuntimeError("%s: cpu has other bits than the reference: %s" % (command[1], " ".join(other[:4]) or "the result"))
    return parts[0]


def apart(got, want):
    """How far the gradients of parameters that the file has are from those of PyTorch, at most; weights may lie turned."""
    everything = max(numpy.abs(g).max() for g in want.values())
    worst = 0, ""
    for key in want.keys() & got.keys():
        g, w = got[key], want[key]
        forms = [f for f in (g, g.T) if f.shape == w.shape]
        if forms:
            far = min(numpy.abs(f - w).max() for f in forms) / (numpy.abs(w).max() + 1e-4 * everything)
            worst = max(worst, (float(far), key))
    return worst


def check(qcc, name):
    module, x = made(name)
    torch.onnx.export(module, tuple(x.values()), "m.onnx", dynamo=True, opset_version=18, verbose=False, input_names=list(x),
                      output_names=["y"], external_data=False)
    for key, value in x.items():
        numpy.save(key + ".npy", value.numpy())
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession("m.onnx", options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]  # what the model does not read, the file does not have
    y = session.run(None, {key: x[key].numpy() for key in names})[0]

    def each(option):
        return [word for key in names for word in (option, "%s=%s.npy" % (key, key))]

    ours = on_both(".npy", qcc, "run", "m.onnx", *each("--input"), "--output", "y=%s")[""]
    far = float(numpy.abs(ours - y).max() / numpy.abs(y).max())
    if not far <= NEAR:
        raise RuntimeError("%.1e from ONNX Runtime" % far)

    result = module(*x.values())
    target = torch.randn(result.shape)
    numpy.save("target.npy", target.numpy())
    ((result - target) ** 2).mean().backward()
    want = {key: p.grad.numpy() for key, p in module.named_parameters() if p.grad is not None}
    train = [qcc, "train", "m.onnx", "--loss", "mse", "--target", "y=target.npy", *each("--data"), "--optimizer", "sgd:lr=0",
             "--steps", "1", "--bn", "frozen", "--no-shuffle", "--no-save", "--gradients", "%s"]
    worst, key = apart(on_both(".npz", *train), want)
    if name not in OTHERS and not worst <= GRADIENTS_NEAR:
        raise RuntimeError("the gradient of %s is %.1e from PyTorch's" % (key, worst))

    on_both(".npz", *train, "--quant", "w8a8", "--amp", "bf16", "--exact")
    run(qcc, "export", "m.onnx", "--quant", "w8a8", "--for", "ort", *each("--calibrate"), "-o", "codes.onnx", "-q")
    on_both(".npy", qcc, "run", "codes.onnx", *each("--input"), "--output", "y=%s")
    print("%-16s %.0e from ONNX Runtime, gradients %.0e from PyTorch" % (name, far, worst), flush=True)


def main(qcc, folder, *wanted):
    os.chdir(folder)
    bad = []
    for name in MODELS if wanted == ("all",) else wanted or USUAL:
        try:
            check(qcc, name)
        except Exception as e:  # the others are looked at all the same
            bad.append("%s: %s" % (name, str(e).strip()[:600]))
            print(bad[-1], flush=True)
    if bad:
        sys.exit("%d of them part" % len(bad))


main(os.path.abspath(sys.argv[1]), *sys.argv[2:])
