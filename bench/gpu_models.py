"""The models of bench/gpu as .qir text, with first values that are said and not stored: nothing but Python makes them.

  gpu_models.py FOLDER [CASE ...]        CASE.qir of each
"""
import pathlib
import sys


def shape(*dims):
    return f"f32[{','.join(map(str, dims))}]"


class Graph:
    def __init__(self, name, given, result):
        self.head, self.params, self.lines, self.seed = f"graph @{name}({given}) -> (%{result}) {{", [], [], 0

    def param(self, name, how, *dims):
        self.seed += how.startswith(("normal", "kaiming"))
        self.params.append(f"    param %{name}: {shape(*dims)} = {how.replace('SEED', f'seed={self.seed}')}")
        return f"%{name}"

    def constant(self, name, kind, value):
        self.params.append(f"    const %{name}: {kind} = {value}")
        return f"%{name}"

    def node(self, name, dims, call, place=None):
        self.lines.append(f"    %{name}: {shape(*dims)} = {call} node=\"/{(place or name).replace('.', '/')}\"")
        return f"%{name}"

    def text(self):
        return "\n".join([self.head, *self.params, *self.lines, "}"]) + "\n"


def mlp(batch=64):
    g = Graph("mlp", f"%x: {shape(batch, 784)}", "logits")
    x, wide = "%x", 784
    for i, n in enumerate((256, 128, 10)):
        w, b = g.param(f"fc{i}.weight", "kaiming(SEED)", n, wide), g.param(f"fc{i}.bias", "zeros", n)
        x = g.node("logits" if n == 10 else f"fc{i}", (batch, n), f"gemm({x}, {w}, {b}, transB=true)")
        x, wide = (x if n == 10 else g.node(f"relu{i}", (batch, n), f"relu({x})")), n
    return g.text()


def resnet18(batch=256, size=224):
    g = Graph("resnet18", f"%x: {shape(batch, 3, size, size)}", "logits")

    def conv(x, name, into, out, kernel, stride, size):
        pad, to = kernel // 2, (size + stride - 1) // stride
        w = g.param(f"{name}.weight", "kaiming(SEED)", out, into, kernel, kernel)
        x = g.node(name, (batch, out, to, to), f"conv({x}, {w}, kernel_shape=[{kernel},{kernel}], pads=[{pad},{pad},{pad},{pad}], "
                                               f"strides=[{stride},{stride}])")
        norm = [g.param(f"{name}.norm.{what}", first, out) for what, first in
                (("scale", "ones"), ("shift", "zeros"), ("mean", "zeros"), ("variance", "ones"))]
        return g.node(f"{name}.norm", (batch, out, to, to), f"batch_normalization({x}, {', '.join(norm)})"), to

    def relu(x, name, channels, size):
        return g.node(name, (batch, channels, size, size), f"relu({x})")

    x, size = conv("%x", "stem", 3, 64, 7, 2, size)
    x = relu(x, "stem.relu", 64, size)
    size //= 2
    x = g.node("pool", (batch, 64, size, size), f"max_pool({x}, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2])")
    wide = 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            y, to = conv(x, f"{name}.a", wide, out, 3, stride, size)
            y, _ = conv(relu(y, f"{name}.relu", out, to), f"{name}.b", out, out, 3, 1, to)
            if stride == 2:
                x, _ = conv(x, f"{name}.skip", wide, out, 1, 2, size)
            size, wide = to, out
            x = relu(g.node(f"{name}.sum", (batch, out, size, size), f"add({y}, {x})"), f"{name}.out", out, size)
    x = g.node("mean", (batch, wide, 1, 1), f"global_average_pool({x})")
    x = g.node("flat", (batch, wide), f"flatten({x})")
    g.node("logits", (batch, 1000), f"gemm({x}, {g.param('fc.weight', 'kaiming(SEED)', 1000, wide)}, "
                                    f"{g.param('fc.bias', 'zeros', 1000)}, transB=true)")
    return g.text()


def gpt(batch, length, words, wide, heads, layers, tied=False):
    each, data = wide // heads, (batch, length)
    g = Graph("gpt", f"%tokens: i64[{batch},{length}]", "logits")
    wte, wpe = (g.param(n, "normal(SEED, scale=0.02)", d, wide) for n, d in (("wte", words), ("wpe", length)))
    g.constant("heads", "i64[4]", f"[0, 0, {heads}, {each}]")
    g.constant("merged", "i64[3]", f"[0, 0, {wide}]")
    g.constant("scale", "f32[]", repr(each ** -0.5))
    g.constant("length", "i64[2]", f"[{length}, {length}]")
    g.constant("low", "f32[1]", "[-1e9]")
    g.constant("one", "i64[]", "1")

    def linear(x, name, n, m):
        w, b = g.param(f"{name}.weight", "normal(SEED, scale=0.02)", n, m), g.param(f"{name}.bias", "zeros", m)
        return g.node(f"{name}.add", (*data, m), f"add({g.node(name, (*data, m), f'matmul({x}, {w})')}, {b})")

    def norm(x, name):
        return g.node(name, (*data, wide), f"layer_normalization({x}, {g.param(f'{name}.weight', 'ones', wide)}, "
                                           f"{g.param(f'{name}.bias', 'zeros', wide)})")

    def split(x, name, perm, dims):
        x = g.node(f"{name}.split", (*data, heads, each), f"reshape({x}, %heads)")
        return g.node(f"{name}.heads", (batch, heads, *dims), f"transpose({x}, perm={perm})")

    x = g.node("sum", (*data, wide), f"add({g.node('tok', (*data, wide), f'gather({wte}, %tokens)')}, {wpe})")
    full = g.node("full", (length, length), "expand(%low, %length)")
    mask = g.node("mask", (length, length), f"trilu({full}, %one, upper=true)")
    square = (batch, heads, length, length)
    for i in range(layers):
        h = f"h.{i}"
        n = norm(x, f"{h}.n1")
        q = split(linear(n, f"{h}.q", wide, wide), f"{h}.q", "[0,2,1,3]", (length, each))
        k = split(linear(n, f"{h}.k", wide, wide), f"{h}.k", "[0,2,3,1]", (each, length))
        v = split(linear(n, f"{h}.v", wide, wide), f"{h}.v", "[0,2,1,3]", (length, each))
        s = g.node(f"{h}.s", square, f"matmul({q}, {k})")
        s = g.node(f"{h}.scaled", square, f"mul({s}, %scale)")
        s = g.node(f"{h}.p", square, f"softmax({g.node(f'{h}.masked', square, f'add({s}, {mask})')})")
        a = g.node(f"{h}.a", (batch, heads, length, each), f"matmul({s}, {v})")
        a = g.node(f"{h}.back", (*data, heads, each), f"transpose({a}, perm=[0,2,1,3])")
        a = linear(g.node(f"{h}.joined", (*data, wide), f"reshape({a}, %merged)"), f"{h}.proj", wide, wide)
        x = g.node(f"{h}.r1", (*data, wide), f"add({x}, {a})")
        f = linear(norm(x, f"{h}.n2"), f"{h}.fc", wide, 4 * wide)
        f = linear(g.node(f"{h}.gelu", (*data, 4 * wide), f"gelu({f}, approximate=tanh)"), f"{h}.out", 4 * wide, wide)
        x = g.node(f"{h}.r2", (*data, wide), f"add({x}, {f})")
    x = norm(x, "last")
    if tied:
        head = g.node("head", (wide, words), f"transpose({wte}, perm=[1,0])")
    else:
        head = g.param("head.weight", "normal(SEED, scale=0.02)", wide, words)
    g.node("logits", (*data, words), f"matmul({x}, {head})")
    return g.text()


CASES = {  # name: (text, samples or tokens of a step)
    "mlp_b64": (mlp, 64),
    "resnet18_b256": (resnet18, 256),
    "gpt_6x384_b16x256": (lambda: gpt(16, 256, 8192, 384, 6, 6), 16 * 256),
    "gpt2_b16x1024": (lambda: gpt(16, 1024, 50304, 768, 12, 12, tied=True), 16 * 1024),
    # for machines without a GPU, to look at the scripts alone
    "gpt_2x32_b2x16": (lambda: gpt(2, 16, 64, 32, 4, 2), 2 * 16),
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        (folder / f"{name}.qir").write_text(CASES[name][0]())
