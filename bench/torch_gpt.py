"""A GPT in PyTorch, of the shapes that bench/cpu and bench/gpu train beside ours."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, heads, gelu):
        super().__init__()
        self.gelu, self.heads, self.n1, self.n2 = gelu, heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = (t.view(b, s, self.heads, c // self.heads).transpose(1, 2) for t in self.qkv(self.n1(x)).split(c, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, c))
        return x + self.f2(F.gelu(self.f1(self.n2(x)), approximate=self.gelu))


class Gpt(nn.Module):
    def __init__(self, words, length, d, heads, layers, tied=False, gelu="none"):
        super().__init__()
        self.te, self.pe = nn.Embedding(words, d), nn.Embedding(length, d)
        self.b = nn.ModuleList([Block(d, heads, gelu) for _ in range(layers)])
        self.n, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)
        if tied:
            self.head.weight = self.te.weight
        self.register_buffer("pos", torch.arange(length))

    def forward(self, i):
        x = self.te(i) + self.pe(self.pos)
        for b in self.b:
            x = b(x)
        return self.head(self.n(x))
