"""PyTorch's side of bench/gpu: training steps of the same shapes, all in one process, a line of JSON each.

  gpu_torch.py [--device D] [--budget SECONDS] CASE:MODE ...

Modes: f32, bf16 (autocast), w8a8 (fake quantizers on every linear layer and convolution, moving ranges), w8a8+bf16, each also
behind torch.compile (+compiled); bf16+float8 by torchao, where that is installed.  Whole steps by events of the device, after
some that are not counted; the median.  What there is no time for is said.
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from torch_gpt import Gpt

BEGAN = time.monotonic()


def option(name, default):
    if name not in sys.argv:
        return default
    i = sys.argv.index(name)
    value = sys.argv[i + 1]
    del sys.argv[i:i + 2]
    return value


DEVICE, BUDGET = option("--device", "cuda"), float(option("--budget", "300"))


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=1000)


def words(n, *shape):
    return lambda: torch.randint(0, n, shape)


CASES = {  # name: (model, data, classes, samples or tokens)
    "mlp_b64": (mlp, lambda: torch.randn(64, 784), 10, 64),
    "resnet18_b256": (resnet18, lambda: torch.randn(256, 3, 224, 224), 1000, 256),
    "gpt_6x384_b16x256": (lambda: Gpt(8192, 256, 384, 6, 6, gelu="tanh"), words(8192, 16, 256), 8192, 16 * 256),
    "gpt2_b16x1024": (lambda: Gpt(50304, 1024, 768, 12, 12, tied=True, gelu="tanh"), words(50304, 16, 1024), 50304, 16 * 1024),
    "gpt_2x32_b2x16": (lambda: Gpt(64, 16, 32, 4, 2, gelu="tanh"), words(64, 2, 16), 64, 32),
}


def fake_quantize(model):
    """What QAT in PyTorch usually is: ranges of data move, weights have a scale a row."""
    from torch.ao.quantization import (FakeQuantize, FusedMovingAvgObsFakeQuantize, MovingAverageMinMaxObserver,
                                       MovingAveragePerChannelMinMaxObserver)

    def forward(layer, data, weight):
        if isinstance(layer, nn.Linear):
            return lambda x: F.linear(data(x.float()).to(x.dtype), weight(layer.weight), layer.bias)
        return lambda x: F.conv2d(data(x.float()).to(x.dtype), weight(layer.weight), layer.bias, layer.stride, layer.padding,
                                  layer.dilation, layer.groups)

    for layer in list(model.modules()):
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            data = FusedMovingAvgObsFakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8)
            weight = FakeQuantize(MovingAveragePerChannelMinMaxObserver, quant_min=-127, quant_max=127, dtype=torch.qint8,
                                  qscheme=torch.per_channel_symmetric, ch_axis=0)
            layer.forward = forward(layer, data.to(DEVICE), weight.to(DEVICE))


def wait():
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def measure(once):
    """Milliseconds of a step, and the seconds of the first."""
    began = time.monotonic()
    once()
    wait()
    first, times = time.monotonic() - began, []
    for _ in range(3):
        once()
    wait()
    since = time.monotonic()
    while len(times) < 5 or (time.monotonic() - since < 2 and len(times) < 300):
        if DEVICE == "cpu":
            at = time.perf_counter()
            once()
            times.append(1e3 * (time.perf_counter() - at))
        else:
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            once()
            b.record()
            torch.cuda.synchronize()
            times.append(a.elapsed_time(b))
    return statistics.median(times), first


def step(name, mode):
    torch.manual_seed(0)
    make, data, classes, items = CASES[name]
    model, x = make().to(DEVICE).train(), data().to(DEVICE)
    if x.dim() == 4:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if "float8" in mode:
        from torchao.float8 import convert_to_float8_training
        convert_to_float8_training(model, module_filter_fn=lambda m, n: m.in_features % 16 == 0 and m.out_features % 16 == 0)
    if "w8a8" in mode:
        fake_quantize(model)
    y = torch.randint(0, classes, (x.shape[0],) if x.is_floating_point() else x.shape, device=DEVICE).reshape(-1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if "compiled" in mode else model
    if DEVICE != "cpu":
        torch.cuda.reset_peak_memory_stats()

    def once():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled="bf16" in mode):
            loss = F.cross_entropy(run(x).reshape(-1, classes), y)
        loss.backward()
        optimizer.step()

    ms, first = measure(once)
    peak = torch.cuda.max_memory_allocated() if DEVICE != "cpu" else 0
    return {"median_ms": ms, "per_second": 1e3 * items / ms, "first_s": first, "device_bytes": peak}


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # f32 is f32, as it is in ours
    name = torch.cuda.get_device_name() if DEVICE != "cpu" else "cpu"
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": name}), flush=True)
    for which in sys.argv[1:]:
        case, mode = which.split(":")
        told = {"case": case, "mode": mode}
        if time.monotonic() - BEGAN > BUDGET:
            told["left"] = "no time"
        else:
            try:
                told.update(step(case, mode))
            except Exception as e:  # one that a library cannot do is no reason to miss the others
                told["failed"] = f"{type(e).__name__}: {str(e)[:200]}"
        print(json.dumps(told), flush=True)
        if "compiled" in mode:
            torch._dynamo.reset()
        if DEVICE != "cpu":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
