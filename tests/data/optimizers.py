"""Writes optimizers.h: parameters after 1, 10 and 100 steps of PyTorch's optimizers, and of LAMB's and Lion's formulas
in NumPy.  Run by hand; needs torch (1.13 wrote what is stored)."""
import os
import numpy as np
import torch

# op, states, attributes as in .qir, lr, (PyTorch's class, its options) or a function
N = 4
CASES = [
    ("sgd", 0, "", 0.05, ("SGD", {})),
    ("sgd", 0, "weight_decay=0.1", 0.05, ("SGD", dict(weight_decay=0.1))),
    ("sgd", 1, "momentum=0.9", 0.05, ("SGD", dict(momentum=0.9))),
    ("sgd", 1, "momentum=0.9, dampening=0.3, weight_decay=0.1", 0.05, ("SGD", dict(momentum=0.9, dampening=0.3, weight_decay=0.1))),
    ("sgd", 1, "momentum=0.8, weight_decay=0.01, nesterov=true", 0.05, ("SGD", dict(momentum=0.8, weight_decay=0.01, nesterov=True))),
    ("adam", 2, "", 0.01, ("Adam", {})),
    ("adam", 2, "beta1=0.8, beta2=0.99, eps=1e-6, weight_decay=0.1", 0.01, ("Adam", dict(betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1))),
    ("adam", 3, "amsgrad=true", 0.01, ("Adam", dict(amsgrad=True))),
    ("adam", 2, "weight_decay=0.01, decoupled=true", 0.01, ("AdamW", {})),
    ("adam", 3, "weight_decay=0.3, decoupled=true, amsgrad=true", 0.01, ("AdamW", dict(weight_decay=0.3, amsgrad=True))),
    ("adagrad", 1, "", 0.1, ("Adagrad", {})),
    ("adagrad", 1, "lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-6", 0.1,
     ("Adagrad", dict(lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-6))),
    ("rmsprop", 1, "", 0.01, ("RMSprop", {})),
    ("rmsprop", 2, "momentum=0.9", 0.01, ("RMSprop", dict(momentum=0.9))),
    ("rmsprop", 2, "alpha=0.9, centered=true", 0.01, ("RMSprop", dict(alpha=0.9, centered=True))),
    ("rmsprop", 3, "weight_decay=0.1, momentum=0.5, centered=true", 0.01, ("RMSprop", dict(weight_decay=0.1, momentum=0.5, centered=True))),
    ("lamb", 2, "", 0.01, "lamb"),
    ("lamb", 2, "beta1=0.8, weight_decay=0", 0.01, "lamb0"),
    ("lion", 1, "", 0.01, "lion"),
    ("lion", 1, "beta1=0.95, beta2=0.98, weight_decay=0.1", 0.01, "lion1"),
]
STEPS = (1, 10, 100)


def begin():
    return np.cos(1.3 * np.arange(1, N + 1))


def gradient(step):
    return np.sin(0.7 * np.arange(1, N + 1) + 0.3 * step) + 0.25


def lamb(lr, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.01):
    x, m, v = begin(), 0, 0
    for t in range(1, 101):
        g = gradient(t)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        way = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + decay * x
        x = x - lr * np.linalg.norm(x) / np.linalg.norm(way) * way
        if t in STEPS:
            yield x


def lion(lr, beta1=0.9, beta2=0.99, decay=0.0):
    x, m = begin(), 0
    for t in range(1, 101):
        g = gradient(t)
        x = x - lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * x)
        m = beta2 * m + (1 - beta2) * g
        if t in STEPS:
            yield x


FORMULAS = {
    "lamb": lamb,
    "lamb0": lambda lr: lamb(lr, beta1=0.8, decay=0),
    "lion": lion,
    "lion1": lambda lr: lion(lr, 0.95, 0.98, 0.1),
}


def torch_steps(name, lr, options, dtype):
    x = torch.tensor(begin(), dtype=dtype, requires_grad=True)
    optimizer = getattr(torch.optim, name)([x], lr=lr, **options)
    for t in range(1, 101):
        x.grad = torch.tensor(gradient(t), dtype=dtype)
        optimizer.step()
        if t in STEPS:
            yield x.detach().double().numpy().copy()


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.h"), "w") as f:
    f.write("/* Written by optimizers.py. */\n/* clang-format off */\nstatic const Stored stored[] = {\n")
    for op, states, attributes, lr, how in CASES:
        f.write(f'    {{ "{op}", {states}, "{attributes}", {lr}, {{\n')
        for dtype in (torch.float32, torch.float64):  # the formulas: in f64 for both
            answers = FORMULAS[how](lr) if isinstance(how, str) else torch_steps(how[0], lr, how[1], dtype)
            digits = ".9g" if dtype == torch.float32 else ".17g"
            numbers = ",\n        ".join("{ " + ", ".join(format(v, digits) for v in a) + " }" for a in answers)
            f.write(f"      {{ {numbers} }},\n")
        f.write("    } },\n")
    f.write("};\n/* clang-format on */\n")


def rates(schedule, **options):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = schedule(optimizer, **options)
    for _ in range(20):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()


def rates_of(schedule, **options):
    values = rates(schedule, **options)
    return [next(values) for _ in range(20)]


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedules.h"), "w") as f:
    f.write("/* Written by optimizers.py: rates of 20 steps. */\n/* clang-format off */\nstatic const StoredRates stored[] = {\n")
    for words, values in [
        ("cosine:min_lr=0.01,total=20", rates_of(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=20, eta_min=0.01)),
        ("linear:min_lr=0.02,total=20", rates_of(torch.optim.lr_scheduler.LinearLR, start_factor=1, end_factor=0.2, total_iters=20)),
        ("onecycle:total=20", rates_of(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=20, cycle_momentum=False)),
        ("onecycle:total_steps=20,pct_start=0.25,div_factor=10,final_div_factor=100",
         rates_of(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=20, pct_start=0.25, div_factor=10, final_div_factor=100,
                  cycle_momentum=False)),
        ("step:every=6,factor=0.3", rates_of(torch.optim.lr_scheduler.StepLR, step_size=6, gamma=0.3)),
        ("multistep:at=2/7/8/19,factor=0.5", rates_of(torch.optim.lr_scheduler.MultiStepLR, milestones=[2, 7, 8, 19], gamma=0.5)),
    ]:
        f.write(f'    {{ "{words}", {{ ' + ", ".join(f"{v:.17g}" for v in values) + " } },\n")
    f.write("};\n/* clang-format on */\n")
