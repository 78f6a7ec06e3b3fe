#!/usr/bin/python3
"""Models that PyTorch exports, and what PyTorch makes of them: logits, loss, gradients, and parameters after 20 steps.

    make.py FOLDER        writes NAME.onnx and NAME.safetensors (Debian's python3-torch)
"""
import json
import struct
import sys
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
STEPS = 20


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 24), nn.Linear(24, 16), nn.Linear(16, 5)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(F.gelu(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 8, 3, stride=2, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8 * 9, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2, stride=1)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(torch.flatten(x, 1))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        b, t, d = 4, 6, x.shape[-1]
        q, k, v = self.qkv(self.ln1(x)).split(d, dim=2)
        q, k, v = (z.reshape(b, t, self.heads, d // self.heads).transpose(1, 2) for z in (q, k, v))
        a = torch.softmax(q @ k.transpose(2, 3) * (d // self.heads) ** -0.5, dim=-1) @ v
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(11, 12), nn.Parameter(torch.randn(6, 12) * 0.1)
        self.blocks = nn.ModuleList(Block(12, 3) for _ in range(2))
        self.ln, self.head = nn.LayerNorm(12), nn.Linear(12, 11, bias=False)

    def forward(self, x):
        x = self.tok(x) + self.pos
        for b in self.blocks:
            x = b(x)
        return self.head(self.ln(x))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(5, 9, num_layers=2, batch_first=True), nn.Linear(9, 5)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 2, stride=2)
        self.dw, self.norm = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.LayerNorm(8)
        self.fc1, self.fc2, self.scale = nn.Linear(8, 32), nn.Linear(32, 8), nn.Parameter(torch.full((8,), 0.5))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        y = self.dw(x).permute(0, 2, 3, 1)
        y = self.scale * self.fc2(F.gelu(self.fc1(self.norm(y))))
        return self.head((x + y.permute(0, 3, 1, 2)).mean((2, 3)))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.expand, self.bn1 = nn.Conv2d(4, 12, 1, bias=False), nn.BatchNorm2d(12)
        self.depth, self.bn2 = nn.Conv2d(12, 12, 3, padding=1, groups=12, bias=False), nn.BatchNorm2d(12)
        self.down, self.up = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.project, self.bn3 = nn.Conv2d(12, 4, 1, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = F.hardswish(self.bn1(self.expand(x)))
        y = F.relu6(self.bn2(self.depth(y)))
        y = y * torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(y, 1)))))
        return self.head((x + self.bn3(self.project(y))).mean((2, 3)))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 10, 3, padding=1)
        self.up, self.c, self.head = nn.ConvTranspose2d(10, 6, 2, stride=2), nn.Conv2d(12, 6, 3, padding=1), nn.Conv2d(6, 3, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.avg_pool2d(a, 2)))
        return self.head(F.relu(self.c(torch.cat([a, self.up(b)], 1))))


def image(c, n):
    return torch.randn(4, c, n, n), torch.tensor([0, 3, 1, 4])


MODELS = {
    "mlp": (Mlp, lambda: (torch.randn(4, 8), torch.tensor([0, 3, 1, 4]))),
    "cnn": (Cnn, lambda: image(2, 8)),
    "transformer": (Transformer, lambda: (torch.randint(0, 11, (4, 6)), torch.randint(0, 11, (4, 6)))),
    "lstm": (Lstm, lambda: (torch.randn(4, 6, 5), torch.tensor([0, 3, 1, 4]))),
    "convnext": (ConvNext, lambda: image(2, 8)),
    "mobilenet": (MobileNet, lambda: image(4, 5)),
    "unet": (Unet, lambda: (torch.randn(4, 2, 6, 6), torch.randint(0, 3, (4, 6, 6)))),
}

OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=2e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05),
}


def loss_of(model, x, y):
    logits = model(x)
    axis = 2 if logits.dim() == 3 else 1
    return logits, F.cross_entropy(logits.movedim(axis, 1), y)


def save(path, tensors):
    """Safetensors: header length, header, tensors."""
    names = {np.dtype("float32"): "F32", np.dtype("int64"): "I64"}
    header, data = {}, b""
    for k in sorted(tensors):
        a = np.ascontiguousarray(tensors[k].numpy())
        header[k] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def make(name, folder):
    make_model, make_data = MODELS[name]
    torch.manual_seed(7)
    model = make_model().train()
    x, y = make_data()
    start = {k: v.clone() for k, v in model.state_dict().items()}
    out = {"x": x, "y": y}
    logits, loss = loss_of(model, x, y)
    loss.backward()
    out["logits"], out["loss"] = logits.detach(), loss.detach()
    for k, p in model.named_parameters():
        out["grad/" + k] = p.grad.clone()
    for kind, optimizer in OPTIMIZERS.items():
        model.load_state_dict(start)
        o = optimizer(model.parameters())
        for _ in range(STEPS):
            o.zero_grad()
            loss_of(model, x, y)[1].backward()
            o.step()
        for k, p in model.named_parameters():
            out[kind + "/" + k] = p.detach().clone()
    model.load_state_dict(start)
    torch.onnx.export(model, x, f"{folder}/{name}.onnx", input_names=["x"], output_names=["logits"], opset_version=16,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    save(f"{folder}/{name}.safetensors", out)
    print(name, sum(p.numel() for p in model.parameters()), "parameters")


if __name__ == "__main__":
    for model in MODELS:
        make(model, sys.argv[1])
