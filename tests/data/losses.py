"""Writes losses.h: what PyTorch 1.13 gives for small calls of the losses, and for their gradients.  Run by hand with the
Python that has torch."""
import os
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def numbers(t):
    return "{ " + ", ".join(f"{float(v):.9g}" for v in t.detach().flatten().tolist()) + " }"


def waves(scale, *dims):
    n = 1
    for d in dims:
        n *= d
    return (scale * torch.sin(0.7 * torch.arange(1, n + 1, dtype=torch.float32))).reshape(dims)


def labels(classes, *dims):
    n = 1
    for d in dims:
        n *= d
    return ((torch.arange(n) * 7 + 2) % classes).reshape(dims)


def case(op, x, target, loss, class_weight=None, sample_weight=None, axis=1, ignore=-100, delta=1, more=""):
    x = x.clone().requires_grad_(True)
    value = loss(x)
    value.backward()
    gradient = x.grad
    hard = not target.is_floating_point()
    moved = x.movedim(1, axis) if x.dim() > 1 else x  # torch has its classes on axis 1
    gradient = gradient.movedim(1, axis) if x.dim() > 1 else gradient
    kept = target if hard or x.dim() < 2 else target.movedim(1, axis)
    fields = [f"OP_{op}", f".rank = {moved.dim()}", f".dims = {{ {', '.join(map(str, moved.shape))} }}", f".x = {numbers(moved)}"]
    if hard:
        fields.append(f".hard = true, .target_rank = {kept.dim()}, .target_dims = {{ {', '.join(map(str, kept.shape)) or 0} }}")
    else:
        fields.append(f".target_rank = {kept.dim()}, .target_dims = {{ {', '.join(map(str, kept.shape))} }}")
    fields.append(f".target = {numbers(kept)}")
    if class_weight is not None:
        fields.append(f".n_class_weight = {class_weight.numel()}, .class_weight = {numbers(class_weight)}")
    if sample_weight is not None:
        fields.append(f".n_sample_weight = {sample_weight.numel()}, .sample_weight = {numbers(sample_weight)}")
    if op in ("cross_entropy", "nll", "focal"):
        fields.append(f".classes = {{ .axis = {axis}, .ignore_index = {ignore}{more} }}")
    else:
        fields.append(f".sums = {{ .delta = {delta}{more} }}")
    fields.append(f".loss = {float(value):.9g}, .gradient = {numbers(gradient)}")
    return "    { " + ", ".join(fields) + " },\n"


def weighted(each, s, per=None):
    return (each * s).sum() / (s if per is None else s * per).sum()


w = torch.tensor([0.5, 1.5, 2.0])
s = torch.tensor([0.25, 2.0, 0.0, 1.0])
x, y = waves(2, 4, 3), labels(3, 4)
ignoring = y.clone()
ignoring[1] = -100
x4, y4 = waves(3, 2, 3, 2, 2), labels(3, 2, 2, 2)
y4[1, 0, 1] = 2
soft = torch.softmax(waves(1.5, 4, 3) * -1, 1)
cases = [
    case("cross_entropy", x, y, lambda v: F.cross_entropy(v, y)),
    case("cross_entropy", x, y, lambda v: F.cross_entropy(v, y, reduction="sum"), more=", .reduction = LOSS_SUM"),
    case("cross_entropy", x, y, lambda v: F.cross_entropy(v, y, label_smoothing=0.1), more=", .label_smoothing = 0.1f"),
    case("cross_entropy", x, y, lambda v: F.cross_entropy(v, y, w), class_weight=w),
    case("cross_entropy", x, ignoring, lambda v: F.cross_entropy(v, ignoring, w, label_smoothing=0.2), class_weight=w, more=", .label_smoothing = 0.2f"),
    case("cross_entropy", x, ignoring, lambda v: F.cross_entropy(v, ignoring)),
    case("cross_entropy", x, y, lambda v: F.cross_entropy(v, y, ignore_index=1), ignore=1),
    case("cross_entropy", x4, y4, lambda v: F.cross_entropy(v, y4, w), class_weight=w),
    case("cross_entropy", x4, y4, lambda v: F.cross_entropy(v, y4, ignore_index=2), axis=3, ignore=2),
    case("cross_entropy", waves(2, 3), torch.tensor(1), lambda v: F.cross_entropy(v, torch.tensor(1)), axis=0),
    case("cross_entropy", x * 5000, y, lambda v: F.cross_entropy(v, y)),
    case("cross_entropy", x, soft, lambda v: F.cross_entropy(v, soft)),
    case("cross_entropy", x, soft, lambda v: F.cross_entropy(v, soft, w, label_smoothing=0.2), class_weight=w, more=", .label_smoothing = 0.2f"),
    case("cross_entropy", x, soft, lambda v: F.cross_entropy(v, soft, reduction="sum"), more=", .reduction = LOSS_SUM"),
    case("cross_entropy", x, y, lambda v: weighted(F.cross_entropy(v, y, reduction="none"), s), sample_weight=s),
    case("cross_entropy", x, y, lambda v: weighted(F.cross_entropy(v, y, w, reduction="none"), s, w[y]), class_weight=w, sample_weight=s),
    case("cross_entropy", x, soft, lambda v: weighted(F.cross_entropy(v, soft, reduction="none"), s), sample_weight=s),
    case("nll", F.log_softmax(x, 1), y, lambda v: F.nll_loss(v, y)),
    case("nll", F.log_softmax(x, 1), ignoring, lambda v: F.nll_loss(v, ignoring, w), class_weight=w),
    case("nll", F.log_softmax(x4, 1), y4, lambda v: F.nll_loss(v, y4, reduction="sum"), axis=2, more=", .reduction = LOSS_SUM"),
]
t = waves(1, 4, 3).flip(0)
cases += [
    case("mse", x, t, lambda v: F.mse_loss(v, t)),
    case("mse", x, t, lambda v: F.mse_loss(v, t, reduction="sum"), more=", .reduction = LOSS_SUM"),
    case("mse", x, t, lambda v: ((v - t) ** 2 * s[:, None]).sum() / (s.sum() * 3), sample_weight=s),
    case("l1", x, t, lambda v: F.l1_loss(v, t)),
    case("huber", x, t, lambda v: F.huber_loss(v, t)),
    case("huber", x, t, lambda v: F.huber_loss(v, t, delta=0.5), delta="0.5f"),
]
b = (labels(2, 4, 3)).float()
p = torch.tensor([0.5, 3.0, 1.0])
cases += [
    case("bce_logits", x, b, lambda v: F.binary_cross_entropy_with_logits(v, b)),
    case("bce_logits", x, soft, lambda v: F.binary_cross_entropy_with_logits(v, soft)),
    case("bce_logits", x, b, lambda v: F.binary_cross_entropy_with_logits(v, b, pos_weight=p), class_weight=p),
    case("bce_logits", x * 100, b, lambda v: F.binary_cross_entropy_with_logits(v, b, reduction="sum"), more=", .reduction = LOSS_SUM"),
]



def focal(v, y, gamma, weight=None, reduction="mean", ignore=-100):
    """The usual formula: cross entropy without weights gives p; a mean divides by the weights of the targets."""
    kept = y != ignore
    at = torch.where(kept, y, torch.zeros_like(y))
    lost = F.cross_entropy(v, at, reduction="none")
    own = kept.to(v.dtype) if weight is None else weight[at] * kept
    each = own * (1 - torch.exp(-lost)) ** gamma * lost
    return each.sum() if reduction == "sum" else each.sum() / own.sum()


def sigmoid_focal(v, y, gamma, pos=None):
    """torchvision's, without alpha: p_t is the probability of what is wanted."""
    p = torch.sigmoid(v)
    p_t = p * y + (1 - p) * (1 - y)
    return (F.binary_cross_entropy_with_logits(v, y, pos_weight=pos, reduction="none") * (1 - p_t) ** gamma).mean()


cases += [
    case("focal", x, y, lambda v: F.cross_entropy(v, y, w), class_weight=w, more=", .gamma = 0"),
    case("focal", x, y, lambda v: focal(v, y, 2), more=", .gamma = 2"),
    case("focal", x, ignoring, lambda v: focal(v, ignoring, 0.5, w), class_weight=w, more=", .gamma = 0.5f"),
    case("focal", x4, y4, lambda v: focal(v, y4, 3, reduction="sum"), axis=3, more=", .gamma = 3, .reduction = LOSS_SUM"),
    case("focal", x, y, lambda v: weighted((1 - torch.exp(-F.cross_entropy(v, y, reduction="none"))) ** 2 * F.cross_entropy(v, y, reduction="none"), s),
         sample_weight=s, more=", .gamma = 2"),
    case("bce_logits", x, b, lambda v: sigmoid_focal(v, b, 2), more=", .gamma = 2"),
    case("bce_logits", x, b, lambda v: sigmoid_focal(v, b, 1.5, p), class_weight=p, more=", .gamma = 1.5f"),
]

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "losses.h"), "w") as f:
    f.write("/* Written by losses.py. */\n/* clang-format off */\nstatic const Stored stored[] = {\n")
    f.writelines(cases)
    f.write("};\n/* clang-format on */\n")
