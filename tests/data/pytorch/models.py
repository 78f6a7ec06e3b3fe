"""The architectures of make.py: small, each with something that exporters do to parameters."""
import math
import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Dropout(0.1), nn.Linear(12, 4))

    def forward(self, x):
        return self.net(x)


class Cnn(nn.Module):
    """BatchNorm that exporters fold, a residual, dropout."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = F.relu(x + self.bn2(self.conv(x)))
        return self.head(self.drop(x.mean((2, 3))))


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        a = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        if self.causal:
            a = a.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), float('-inf'))
        return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.drop(self.attend(self.ln1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.ln2(x)))))


class Gpt(nn.Module):
    """Fresh LayerNorms are equal, the head is the embedding, positions are gathered."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(40, 16), nn.Embedding(8, 16)
        self.h = nn.ModuleList([Block(16, 2, True), Block(16, 2, True)])
        self.ln_f = nn.LayerNorm(16)
        self.head = nn.Linear(16, 40, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class Vit(nn.Module):
    """A class token that is expanded to the batch, a table of positions."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.cls = nn.Parameter(torch.randn(1, 1, 16) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, 5, 16) * 0.02)
        self.block = Block(16, 2, False)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.block(x))[:, 0])


class RmsNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Llama(nn.Module):
    """RMSNorm, rotary positions as buffers, grouped heads, a gated product."""

    def __init__(self):
        super().__init__()
        n, t = 16, 8
        self.embed = nn.Embedding(40, n)
        self.norm, self.norm2, self.norm_f = RmsNorm(n), RmsNorm(n), RmsNorm(n)
        self.q, self.k, self.v, self.o = (nn.Linear(n, m, bias=False) for m in (n, 8, 8, n))
        self.gate, self.up, self.down = nn.Linear(n, 24, bias=False), nn.Linear(n, 24, bias=False), nn.Linear(24, n, bias=False)
        self.head = nn.Linear(n, 40, bias=False)
        angle = torch.outer(torch.arange(t).float(), 10000 ** (-torch.arange(0, 8, 2).float() / 8))
        self.register_buffer('cos', torch.cat([angle, angle], -1).cos())
        self.register_buffer('sin', torch.cat([angle, angle], -1).sin(), persistent=False)

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos[:x.shape[-2]] + torch.cat([-b, a], -1) * self.sin[:x.shape[-2]]

    def forward(self, ids):
        x = self.embed(ids)
        b, t, c = x.shape
        y = self.norm(x)
        q = self.turn(self.q(y).view(b, t, 2, 8).transpose(1, 2))
        k = self.turn(self.k(y).view(b, t, 1, 8).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.v(y).view(b, t, 1, 8).transpose(1, 2).repeat_interleave(2, 1)
        a = (q @ k.transpose(-2, -1) * 8 ** -0.5 + torch.full((t, t), float('-inf')).triu(1)).softmax(-1)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, t, c))
        y = self.norm2(x)
        return self.head(self.norm_f(x + self.down(F.silu(self.gate(y)) * self.up(y))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, batch_first=True)
        self.head = nn.Linear(7, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.gru(x)[0].mean(1))


class Clip(nn.Module):
    """A learned temperature, exp of it in the graph; two towers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(5, 8)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, x, y):
        x, y = F.normalize(self.a(x), dim=-1), F.normalize(self.b(y), dim=-1)
        return self.logit_scale.exp() * x @ y.t()


class Distil(nn.Module):
    """The loss of a distillation in the model: temperature and weight are numbers, not parameters."""

    def __init__(self):
        super().__init__()
        self.teacher, self.student = nn.Linear(6, 4), nn.Linear(6, 4)
        self.register_buffer('temperature', torch.tensor(2.0))

    def forward(self, x, target):
        with torch.no_grad():
            t = F.softmax(self.teacher(x) / self.temperature, -1)
        s = self.student(x)
        soft = -(t * F.log_softmax(s / self.temperature, -1)).sum(-1).mean()
        return F.cross_entropy(s, target) + 4.0 * soft


class Shared(nn.Module):
    """One Linear called three times."""

    def __init__(self):
        super().__init__()
        self.enter, self.step, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.enter(x)
        for _ in range(3):
            x = torch.tanh(self.step(x))
        return self.head(x)


class Stack(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.embed_tokens, self.norm, self.fc = table, nn.LayerNorm(6), nn.Linear(6, 6)

    def forward(self, ids, other=None):
        h = self.embed_tokens(ids)
        return h + self.fc(self.norm(h if other is None else h + other.mean(1, keepdim=True)))


class Tied(nn.Module):
    """One table under four names, of which the first one is never called."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(12, 6)
        self.encoder, self.decoder = Stack(self.shared), Stack(self.shared)
        self.lm_head = nn.Linear(6, 12, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, ids):
        return self.lm_head(self.decoder(ids.flip(1), self.encoder(ids)))


class Both(nn.Module):
    """Recurrent layers in both directions."""

    def __init__(self):
        super().__init__()
        self.one = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.two, self.head = nn.GRU(8, 3, bidirectional=True, batch_first=True), nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.two(self.one(x)[0])[0][:, -1])


class Tcn(nn.Module):
    """Weight norm: the convolution's weight is computed from two parameters."""

    def __init__(self):
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3, padding=2, dilation=2))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean(-1))


class Ssm(nn.Module):
    """-exp(A_log), a table of decays, a recurrence over steps."""

    def __init__(self):
        super().__init__()
        self.enter, self.head = nn.Linear(4, 6), nn.Linear(6, 3)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, 7).float() / 4))
        self.D = nn.Parameter(torch.ones(6))

    def forward(self, x):
        u = self.enter(x)
        a = torch.exp(-torch.exp(self.A_log))
        h = torch.zeros_like(u[:, 0])
        out = []
        for t in range(5):
            h = a * h + u[:, t]
            out.append(h + self.D * u[:, t])
        return self.head(torch.stack(out, 1).mean(1))


class Unet(nn.Module):
    """GroupNorm, a transposed convolution, a skip connection, PReLU."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 8, 3, stride=2, padding=1)
        self.norm, self.act = nn.GroupNorm(2, 8), nn.PReLU(8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        return self.head(torch.cat([self.up(self.act(self.norm(self.down(x)))), x], 1))


class T5(nn.Module):
    """A bias of attention by bucketed distance."""

    def __init__(self):
        super().__init__()
        self.embed, self.bias = nn.Embedding(30, 8), nn.Embedding(4, 2)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        x = self.embed(ids)
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, 2, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        at = torch.arange(t)
        bucket = (at[None] - at[:, None]).abs().clamp(max=3)
        a = (q @ k.transpose(-2, -1) + self.bias(bucket).permute(2, 0, 1)).softmax(-1)
        return self.head(self.o((a @ v).transpose(1, 2).reshape(b, t, c)).mean(1))


class Gcn(nn.Module):
    """Messages along edges, which are no samples."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x, src, dst):
        def gather(h):
            return torch.zeros_like(h).index_add(0, dst, h[src]) + h
        return self.two(gather(F.relu(self.one(gather(x)))))


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.w1, self.w2 = nn.Parameter(torch.randn(3, 6, 8) * 0.3), nn.Parameter(torch.randn(3, 8, 4) * 0.3)

    def forward(self, x):
        weight, at = self.gate(x).topk(2, -1)
        weight = torch.zeros(x.shape[0], 3).scatter(1, at, weight.softmax(-1))
        y = torch.einsum('bd,edh->beh', x, self.w1).relu()
        return (torch.einsum('beh,eho->beo', y, self.w2) * weight[..., None]).sum(1)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.mean, self.spread = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.leave = nn.Linear(2, 6)

    def forward(self, x, noise):
        h = torch.tanh(self.enter(x))
        return self.leave(self.mean(h) + torch.exp(0.5 * self.spread(h)) * noise)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.ln2 = nn.LayerNorm(6), nn.LayerNorm(6)
        self.tokens, self.channels = nn.Linear(5, 5), nn.Linear(6, 6)
        self.gamma = nn.Parameter(0.1 * torch.ones(6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = x + self.tokens(self.ln(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.gamma * F.gelu(self.channels(self.ln2(x)))
        return self.head(x.mean(1))


class Recsys(nn.Module):
    """Tables of embeddings, a product of pairs, a number that is learned."""

    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(20, 6), nn.Embedding(30, 6)
        self.user_bias, self.item_bias = nn.Embedding(20, 1), nn.Embedding(30, 1)
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1) + self.user_bias(user)[:, 0] + self.item_bias(item)[:, 0] \
            + self.offset


class Mobile(nn.Module):
    """Depthwise convolutions, squeeze and excitation, hard swish."""

    def __init__(self):
        super().__init__()
        self.expand, self.bn = nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8)
        self.depth, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.squeeze, self.excite = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.hardswish(self.bn(self.expand(x)))
        x = F.hardswish(self.bn2(self.depth(x)))
        x = x * F.hardsigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return self.head(x.mean((2, 3)))


class Normed(nn.Module):
    """Constants of normalisation in the model, a mask, a grid."""

    def __init__(self):
        super().__init__()
        self.register_buffer('pixel_mean', torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1))
        self.register_buffer('pixel_std', torch.tensor([0.2, 0.3, 0.25]).view(1, 3, 1, 1))
        self.conv, self.head = nn.Conv2d(3, 6, 3), nn.Linear(6, 4)
        self.register_buffer('window', torch.hann_window(6, periodic=False).outer(torch.hann_window(6, periodic=False)) + 0.1)

    def forward(self, x):
        return self.head((F.relu(self.conv((x - self.pixel_mean) / self.pixel_std)) * self.window).mean((2, 3)))


class Sine(nn.Module):
    """Positions by sine, scaled tokens: neither learns."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(30, 8), nn.Linear(8, 8), nn.Linear(8, 30)
        at, rate = torch.arange(6).float()[:, None], torch.exp(-torch.arange(0, 8, 2).float() * math.log(100) / 8)
        table = torch.zeros(1, 6, 8)
        table[0, :, 0::2], table[0, :, 1::2] = torch.sin(at * rate), torch.cos(at * rate)
        self.register_buffer('table', table)
        self.register_buffer('final_logits_bias', torch.zeros(1, 30))
        self.embed_scale = math.sqrt(8)

    def forward(self, ids):
        return self.head(F.silu(self.mix(self.embed(ids) * self.embed_scale + self.table))) + self.final_logits_bias


class Detr(nn.Module):
    """Learned queries and two heads."""

    def __init__(self):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(3, 8) * 0.3)
        self.k, self.v, self.classes, self.boxes = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        a = (self.queries @ self.k(x).transpose(1, 2) * 8 ** -0.5).softmax(-1) @ self.v(x)
        return self.classes(a).mean(1) + self.boxes(a).sigmoid().mean(1)


class Digits(nn.Module):
    """The network of docs/pytorch.md."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.drop(self.body(x).flatten(1)))


def image(n=4, c=3, s=8):
    return torch.randn(n, c, s, s)


def ids(n=4, t=8, v=40):
    return torch.randint(0, v, (n, t))


# name: (class, inputs, kind of target, which inputs have the batch in front)
MODELS = {
    'mlp': (Mlp, lambda: (torch.randn(4, 6),), 'class'),
    'cnn': (Cnn, lambda: (image(),), 'class'),
    'gpt': (Gpt, lambda: (ids(),), 'next'),
    'vit': (Vit, lambda: (image(),), 'class'),
    'llama': (Llama, lambda: (ids(),), 'next'),
    'lstm': (Lstm, lambda: (torch.randn(4, 6, 5),), 'class'),
    'gru': (Gru, lambda: (torch.randn(4, 6, 5),), 'class'),
    'clip': (Clip, lambda: (torch.randn(4, 6), torch.randn(4, 5)), 'mse'),
    'distil': (Distil, lambda: (torch.randn(4, 6), torch.randint(0, 4, (4,))), 'own'),
    'shared': (Shared, lambda: (torch.randn(4, 6),), 'class'),
    'tied': (Tied, lambda: (ids(4, 5, 12),), 'next'),
    'both': (Both, lambda: (torch.randn(4, 5, 3),), 'class'),
    'tcn': (Tcn, lambda: (torch.randn(4, 4, 9),), 'class'),
    'ssm': (Ssm, lambda: (torch.randn(4, 5, 4),), 'class'),
    'unet': (Unet, lambda: (image(4, 2, 8),), 'mse'),
    't5': (T5, lambda: (ids(4, 6, 30),), 'class'),
    'gcn': (Gcn, lambda: (torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4]), torch.tensor([1, 2, 3, 4, 5])), 'class'),
    'moe': (Moe, lambda: (torch.randn(4, 6),), 'class'),
    'vae': (Vae, lambda: (torch.randn(4, 6), torch.randn(4, 2)), 'mse'),
    'mixer': (Mixer, lambda: (torch.randn(4, 5, 6),), 'class'),
    'recsys': (Recsys, lambda: (torch.randint(0, 20, (4,)), torch.randint(0, 30, (4,))), 'mse'),
    'mobile': (Mobile, lambda: (image(),), 'class'),
    'normed': (Normed, lambda: (image(),), 'class'),
    'sine': (Sine, lambda: (ids(4, 6, 30),), 'next'),
    'detr': (Detr, lambda: (torch.randn(4, 5, 6),), 'class'),
}
