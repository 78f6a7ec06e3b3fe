"""PyTorch's side of bench/cpu: the models, their export, a training step and a run of what was exported.

  cpu_torch.py export CASE FOLDER          the model as a file, and a batch of its data
  cpu_torch.py step CASE MODE THREADS      a training step: eager, autocast, fake quantizers, each compiled where MODE says so
  cpu_torch.py run FILE DATA THREADS       a file on ONNX Runtime

The last two print one object: medians of a step in milliseconds of the clock and of processors, when the first one was done by
the clock that nobody sets, and the most bytes that the process held.
"""
import json
import pathlib
import resource
import statistics
import sys
import time
import warnings

ENOUGH_S, MOST, FIRST = 2, 1000, 3


def cases():
    """name: (model, input, classes)"""
    import torch
    from torch import nn
    from torch_gpt import Gpt

    class Lstm(nn.Module):
        def __init__(self, words, d, layers):
            super().__init__()
            self.e, self.l, self.h = nn.Embedding(words, d), nn.LSTM(d, d, layers, batch_first=True), nn.Linear(d, words)

        def forward(self, i):
            return self.h(self.l(self.e(i))[0])

    def mlp():
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))

    def cnn():
        return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                             nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))

    def vision(name):
        import torchvision
        return getattr(torchvision.models, name)(num_classes=1000)

    def vit():
        from torchvision.models import VisionTransformer
        return VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192, mlp_dim=768)

    def words(n, *shape):
        return lambda: torch.randint(0, n, shape)

    def images(n):
        return lambda: torch.randn(n, 3, 224, 224)

    return {
        "mlp_b64": (mlp, lambda: torch.randn(64, 784), 10),
        "cnn_b64": (cnn, lambda: torch.randn(64, 1, 16, 16), 10),
        "transformer_2x128": (lambda: Gpt(512, 64, 128, 4, 2), words(512, 8, 64), 512),
        "lstm_b16x64": (lambda: Lstm(4096, 256, 2), words(4096, 16, 64), 4096),
        "vit_tiny_b8": (vit, images(8), 1000),
        "resnet18_b8": (lambda: vision("resnet18"), images(8), 1000),
        "mobilenetv2_b8": (lambda: vision("mobilenet_v2"), images(8), 1000),
        "gpt_6x384_b4x256": (lambda: Gpt(8192, 256, 384, 6, 6), words(8192, 4, 256), 8192),
        "gpt2_small_b1x256": (lambda: Gpt(50304, 256, 768, 12, 12), words(50304, 1, 256), 50304),
    }


def export(name, folder):
    import numpy
    import torch
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    make, data, _ = cases()[name]
    model, x = make().train(), data()
    torch.onnx.export(model, (x,), str(folder / f"{name}.onnx"), dynamo=True, optimize=False, input_names=["x"],
                      output_names=["logits"])
    numpy.save(folder / f"{name}.npy", x.numpy())


def fake_quantize(model):
    """Codes of eight bits before every linear layer and convolution: of data by their largest element, of weights by that of a
    row; straight through inside the range."""
    from torch import nn
    from torch.nn import functional as F

    def fake(x, kept=None):
        d = x.detach().abs()
        scale = ((d.amax(tuple(i for i in range(d.dim()) if i != kept), True) if kept is not None else d.amax()) / 127).clamp(min=1e-8)
        inside = (x / scale).clamp(-127, 127)
        return (inside + (inside.round() - inside).detach()) * scale

    def forward(layer):
        if isinstance(layer, nn.Linear):
            return lambda x: F.linear(fake(x), fake(layer.weight, 0), layer.bias)
        return lambda x: F.conv2d(fake(x), fake(layer.weight, 0), layer.bias, layer.stride, layer.padding, layer.dilation, layer.groups)

    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            layer.forward = forward(layer)


def measure(once):
    clock, processors, since = [], [], 0
    first = None
    while len(clock) < 5 + FIRST or (time.perf_counter() - since < ENOUGH_S and len(clock) < MOST):
        began, spent = time.perf_counter(), time.process_time()
        once()
        clock.append(time.perf_counter() - began)
        processors.append(time.process_time() - spent)
        first = first or time.monotonic()
        since = began if len(clock) == FIRST else since
    print(json.dumps({"median_ms": statistics.median(clock[FIRST:]) * 1e3,
                      "processor_ms": statistics.mean(processors[FIRST:]) * 1e3, "first_at": first,
                      "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def step(name, mode, threads):
    import torch
    from torch.nn import functional as F
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    make, data, classes = cases()[name]
    model, x = make().train(), data()
    if x.is_floating_point() and x.dim() == 4 and x.shape[1] == 3:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if "fake" in mode:
        fake_quantize(model)
    y = torch.randint(0, classes, (x.shape[0],) if x.is_floating_point() else x.shape).reshape(-1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled="bf16" in mode):
            scores = model(x)
        return F.cross_entropy(scores.float().reshape(-1, classes), y)

    run = torch.compile(loss) if "compiled" in mode else loss

    def once():
        optimizer.zero_grad()
        run().backward()
        optimizer.step()

    measure(once)


def run(file, data, threads):
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: numpy.load(data)}
    measure(lambda: session.run(None, feed))


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "export":
        export(rest[0], pathlib.Path(rest[1]))
    else:
        {"step": step, "run": run}[what](rest[0], rest[1], int(rest[2]))
