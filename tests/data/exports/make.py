#!/usr/bin/python3
"""Models as PyTorch's exporter writes them: forms x opsets x static and dynamic batch.

    make.py FOLDER        writes MODEL-FORM-OPSET-static|dynamic.onnx, and tied, rotary, patches and statistics.onnx with the
                          answers of PyTorch after 20 steps beside them (.safetensors) (Debian's python3-torch)
"""
import os
import sys
import warnings

import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
from make import STEPS, loss_of, save  # noqa: E402

warnings.filterwarnings("ignore")
BATCH = 4


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.1), nn.Linear(12, 12), nn.SiLU(),
                                    nn.LayerNorm(12), nn.Linear(12, 5))

    def forward(self, x):
        return F.softmax(self.layers(x), dim=1)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 8, 3, stride=2), nn.BatchNorm2d(8)
        self.drop, self.fc = nn.Dropout(0.25), nn.Linear(8 * 9, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2, stride=1)
        x = F.hardswish(self.bn2(self.conv2(x)))
        return self.fc(self.drop(torch.flatten(x, 1)))


class Shuffle(nn.Module):
    """A unit of ShuffleNet v2 behind a stem."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 3, stride=2, padding=1)
        self.branch = nn.Sequential(nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
                                    nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(4),
                                    nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        a, b = self.stem(x).chunk(2, dim=1)
        x = torch.cat((a, self.branch(b)), dim=1)
        n, c, h, w = x.size()
        x = torch.transpose(x.view(n, 2, c // 2, h, w), 1, 2).contiguous().view(n, -1, h, w)
        return self.fc(x.mean([2, 3]))


class Attention(nn.Module):
    def __init__(self, d, heads, bias):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(d, 3 * d, bias=bias), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.softmax((q * (d // self.heads) ** -0.5) @ k.transpose(-2, -1), dim=-1)
        return self.proj((a @ v).transpose(1, 2).reshape(b, t, d))


class Vit(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        d = 12
        self.patch = nn.Conv2d(2, d, 4, stride=4)
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, d) * 0.1), nn.Parameter(torch.randn(1, 5, d) * 0.1)
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(d, eps=1e-6), Attention(d, 3, bias), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.0), nn.Linear(2 * d, d))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.head(self.norm(x)[:, 0])


class RmsNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), 1e-6

    def forward(self, x):
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class Rotary(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, d, 2).float() / d)))

    def forward(self, t, like):
        freqs = (self.inv_freq[:, None] @ torch.arange(t, dtype=torch.float32)[None, :]).transpose(0, 1)
        angles = torch.cat((freqs, freqs), dim=-1)
        return angles.cos()[None, None].to(like.dtype), angles.sin()[None, None].to(like.dtype)


def turned(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, d, heads, t):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(d), RmsNorm(d)
        self.rotary_emb = Rotary(d // heads)
        self.register_buffer("mask", torch.full((t, t), torch.finfo(torch.float32).min).triu(1))

    def forward(self, x):
        b, t, d = x.shape
        h = self.input_layernorm(x)
        q, k, v = (p(h).view(b, t, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        cos, sin = self.rotary_emb(t, v)
        q, k = q * cos + turned(q) * sin, k * cos + turned(k) * sin
        w = torch.matmul(q, k.transpose(2, 3)) / (d // self.heads) ** 0.5 + self.mask[:t, :t]
        a = torch.matmul(F.softmax(w, dim=-1), v).transpose(1, 2).contiguous().reshape(b, t, d)
        x = x + self.o_proj(a)
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens, self.layer, self.norm = nn.Embedding(260, 16), LlamaBlock(16, 2, 6), RmsNorm(16)
        self.lm_head = nn.Linear(16, 260, bias=False)
        nn.init.normal_(self.embed_tokens.weight, std=0.3)
        self.lm_head.weight = self.embed_tokens.weight

    def forward(self, x):
        return self.lm_head(self.norm(self.layer(self.embed_tokens(x))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(14, 5)

    def forward(self, x):
        y, (h, _) = self.lstm(x)
        return self.fc(y[:, -1] + torch.cat((h[-2], h[-1]), dim=1))


class GptBlock(nn.Module):
    """No bias where the loss does not depend on it (that of keys, that before a norm): Adam makes steps of its noise."""

    def __init__(self, d, heads, t):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.c_fc, self.c_out = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.register_buffer("bias_mask", torch.tril(torch.ones(t, t)).view(1, 1, t, t))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for z in self.c_attn(self.ln_1(x)).split(d, dim=2))
        w = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        w = w.masked_fill(self.bias_mask[:, :, :t, :t] == 0, float("-inf"))
        a = F.softmax(w, dim=-1) @ v
        x = x + self.c_proj(a.transpose(1, 2).contiguous().view(b, t, d))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """Its head's weight is that of its embedding."""

    def __init__(self):
        super().__init__()
        v, d, t = 130, 32, 6
        self.wte, self.wpe = nn.Embedding(v, d), nn.Embedding(t, d)
        self.h, self.ln_f = nn.ModuleList(GptBlock(d, 2, t) for _ in range(2)), nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, v, bias=False)
        nn.init.normal_(self.wte.weight, std=0.1)
        self.lm_head.weight = self.wte.weight

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(0, x.shape[1], dtype=torch.long))
        for b in self.h:
            x = b(x)
        return self.lm_head(self.ln_f(x))


def tokens(n):
    return torch.randint(0, n, (BATCH, 6))


def image():
    return torch.randn(BATCH, 2, 8, 8)


MODELS = {
    "mlp": (Mlp, lambda: torch.randn(BATCH, 6)),
    "cnn": (Cnn, image),
    "shuffle": (Shuffle, image),
    "vit": (Vit, image),
    "llama": (Llama, lambda: tokens(260)),
    "lstm": (Lstm, lambda: torch.randn(BATCH, 6, 5)),
}

MODES = {  # of the module, of the exporter, with folding
    "eval": (False, torch.onnx.TrainingMode.EVAL, True),
    "preserve": (False, torch.onnx.TrainingMode.PRESERVE, False),
    "training": (True, torch.onnx.TrainingMode.TRAINING, False),
}

# Every pair of form and opset, of form and batch, of opset and batch.
FORMS = [
    ("eval", 11, "dynamic"), ("eval", 13, "static"), ("eval", 16, "dynamic"),
    ("preserve", 11, "static"), ("preserve", 13, "dynamic"), ("preserve", 16, "static"),
    ("training", 11, "static"), ("training", 13, "dynamic"), ("training", 16, "static"),
]

OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05),
}


def write(model, x, path, form, opset, batch):
    train, mode, folds = MODES[form]
    model.train(train)
    axes = {"x": {0: "batch"}, "logits": {0: "batch"}} if batch == "dynamic" else None
    torch.onnx.export(model, x, path, input_names=["x"], output_names=["logits"], opset_version=opset, training=mode,
                      do_constant_folding=folds, dynamic_axes=axes)


def make_matrix(folder):
    for name, (make_model, make_data) in MODELS.items():
        for form, opset, batch in FORMS:
            torch.manual_seed(7)
            write(make_model(), make_data(), f"{folder}/{name}-{form}-{opset}-{batch}.onnx", form, opset, batch)


def make_external(folder):
    """One of them, with its data beside it."""
    m = onnx.load(f"{folder}/cnn-preserve-16-static.onnx")
    if os.path.exists(f"{folder}/cnn-external-16-static.data"):
        os.remove(f"{folder}/cnn-external-16-static.data")  # or it would be appended to
    onnx.save(m, f"{folder}/cnn-external-16-static.onnx", save_as_external_data=True, all_tensors_to_one_file=True,
              location="cnn-external-16-static.data", size_threshold=64)


def names_in_file(model, path):
    """The names under which the exported file holds what the model calls by others; (name, whether transposed)."""
    g = onnx.load(path).graph
    tensors = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in g.initializer}
    own = set(tensors) | {name for n in g.node if n.op_type == "Identity" for name in n.output}
    names = {}
    for k, v in model.state_dict().items():
        found = [(n, False) for n, t in tensors.items() if t.shape == v.shape and torch.equal(t, v)]
        found += [(n, True) for n, t in tensors.items() if v.dim() == 2 and torch.equal(t, v.t())]
        names[k] = (k, False) if k in own or not found else found[0]
    return names


def make_answers(folder, name, make_model, make_data, form):
    """A model, and what it is after 20 steps in training mode, under the names of its file."""
    torch.manual_seed(11)
    model = make_model().train()
    x, y = make_data()
    start = {k: v.clone() for k, v in model.state_dict().items()}
    path = f"{folder}/{name}.onnx"
    write(model, x, path, form, 16, "static")
    names, learned = names_in_file(model, path), dict(model.named_parameters())
    out = {"x": x, "y": y}
    for kind, optimizer in OPTIMIZERS.items():
        model.load_state_dict(start)
        model.train()
        o = optimizer(model.parameters())
        for _ in range(STEPS):
            o.zero_grad()
            loss_of(model, x, y)[1].backward()
            o.step()
        for k, v in model.state_dict().items():
            if (k in learned or ".running_" in k) and k != "lm_head.weight":
                n, transposed = names[k]
                out[f"{kind}/{n}"] = (v.t() if transposed else v).detach().clone()
    save(f"{folder}/{name}.safetensors", out)


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn1 = nn.Conv2d(2, 6, 3, bias=False), nn.BatchNorm2d(6)
        self.fc, self.bn2 = nn.Linear(6 * 36, 10, bias=False), nn.BatchNorm1d(10, momentum=0.3)
        self.out = nn.Linear(10, 5)

    def forward(self, x):
        x = torch.flatten(F.relu(self.bn1(self.conv(x))), 1)
        return self.out(torch.relu(self.bn2(self.fc(x))))


if __name__ == "__main__":
    torch.set_num_threads(1)
    make_matrix(sys.argv[1])
    make_external(sys.argv[1])
    make_answers(sys.argv[1], "tied", Gpt, lambda: (tokens(130), tokens(130)), "eval")
    make_answers(sys.argv[1], "rotary", Llama, lambda: (tokens(260), tokens(260)), "preserve")
    make_answers(sys.argv[1], "patches", lambda: Vit(False), lambda: (image(), torch.tensor([0, 3, 1, 4])), "eval")
    make_answers(sys.argv[1], "statistics", Normalized, lambda: (image(), torch.tensor([0, 3, 1, 4])), "preserve")
