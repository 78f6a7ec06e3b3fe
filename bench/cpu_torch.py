"""PyTorch's side of bench/cpu: the models, their export, a training step and a run of what was exported.

  cpu_torch.py export CASE FOLDER          the model as a file, and a batch of its data
  cpu_torch.py step CASE MODE THREADS      a training step: eager, autocast, fake quantizers, each compiled where MODE says so
  cpu_torch.py run FILE DATA THREADS       a file on ONNX Runtime
  cpu_torch.py part CASE MODE THREADS      one product, convolution, attention or loss alone: a run, or there and back

The last three print one object: medians of a step in milliseconds of the clock and of processors, when the first one was done by
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


def parts():
    """name: (module, inputs, whether there and back: the module's result is one number then, and what it reads are its parameters)"""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Codes(nn.Module):
        def __init__(self, n, k):
            super().__init__()
            self.w = nn.Parameter(torch.randint(-127, 128, (n, k), dtype=torch.int8), requires_grad=False)

        def forward(self, x):
            return torch._int_mm(x, self.w.t())

    class WeightGradient(nn.Module):
        def forward(self, x, g):
            return x.t() @ g

    class Back(nn.Module):
        def __init__(self, f, *shapes):
            super().__init__()
            self.f = f
            self.read = nn.ParameterList([nn.Parameter(torch.randn(s)) for s in shapes])

        def forward(self):
            return self.f(*self.read).float().mean()

    class Loss(nn.Module):
        def __init__(self, rows, classes):
            super().__init__()
            self.x = nn.Parameter(torch.randn(rows, classes))

        def forward(self, y):
            return F.cross_entropy(self.x, y)

    def product(m, k, n, *behind):
        return lambda: nn.Sequential(nn.Linear(k, n), *behind), lambda: (torch.randn(m, k),), False

    def convolution(images, c, size, to, window, step=1, groups=1):
        def both(x, w):
            return F.conv2d(x, w, None, step, window // 2, 1, groups)
        return lambda: Back(both, (images, c, size, size), (to, c // groups, window, window)), lambda: (), True

    def attention(*shape):
        return lambda: Back(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), shape, shape, shape), lambda: (), True

    return {
        "product_1024x384x1536_gelu": product(1024, 384, 1536, nn.GELU()),
        "product_1024x1536x384": product(1024, 1536, 384),
        "product_1024x384x8192": product(1024, 384, 8192),
        "product_64x784x256_relu": product(64, 784, 256, nn.ReLU()),
        "weight_gradient_384x1024x1536": (WeightGradient, lambda: (torch.randn(1024, 384), torch.randn(1024, 1536)), False),
        "codes_1024x384x1536": (lambda: Codes(1536, 384), lambda: (torch.randint(-127, 128, (1024, 384), dtype=torch.int8),), False),
        "convolution_64x56x56_3x3": convolution(8, 64, 56, 64, 3),
        "convolution_128x28x28_3x3": convolution(8, 128, 28, 128, 3),
        "convolution_256x14x14_3x3": convolution(8, 256, 14, 256, 3),
        "convolution_64x56x56_3x3_step2": convolution(8, 64, 56, 128, 3, 2),
        "convolution_96x28x28_1x1": convolution(8, 96, 28, 192, 1),
        "convolution_96x56x56_depthwise": convolution(8, 96, 56, 96, 3, 1, 96),
        "attention_4x6x256x64_causal": attention(4, 6, 256, 64),
        "cross_entropy_1024x8192": (lambda: Loss(1024, 8192), lambda: (torch.randint(0, 8192, (1024,)),), True),
    }


def export_part(name, folder):
    import torch
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    make, data, back = parts()[name]
    if name.startswith("codes"):
        return export_codes(name, folder)
    x = data()
    torch.onnx.export(make().train(back), x, str(folder / f"{name}.onnx"), dynamo=True, optimize=False,
                      input_names=[f"x{i}" for i in range(len(x))], output_names=["y"])


def export_codes(name, folder):
    """The exporter has no word for a product of codes: MatMulInteger, written out."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    make, data, _ = parts()[name]
    w, (x,) = make().w.t().contiguous().numpy(), data()
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["x0", "w"], ["y"])], name,
                              [helper.make_tensor_value_info("x0", TensorProto.INT8, list(x.shape))],
                              [helper.make_tensor_value_info("y", TensorProto.INT32, [x.shape[0], w.shape[1]])],
                              [numpy_helper.from_array(numpy.ascontiguousarray(w), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(folder / f"{name}.onnx"))


def part(name, mode, threads):
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    make, data, back = parts()[name]
    module, x = make().train(back), data()
    if not back and mode == "bf16":
        module, x = module.bfloat16(), [v.bfloat16() for v in x]
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-4) if back else None

    def there():
        with torch.no_grad():
            module(*x)

    def there_and_back():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mode == "bf16"):
            y = module(*x)
        y.backward()
        optimizer.step()

    measure(there_and_back if back else there)


def export(name, folder):
    import numpy
    import torch
    if name in parts():
        return export_part(name, folder)
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
        {"step": step, "run": run, "part": part}[what](rest[0], rest[1], int(rest[2]))
