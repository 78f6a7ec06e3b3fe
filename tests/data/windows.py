"""Writes windows.h: what PyTorch 1.13 gives in f64 for calls with windows and places, and for their gradients.  Run by hand
with the Python that has torch.

Operands are waves that the test makes again: element k of operand i is scale * sin(0.7 * (k + 1) + i) + shift.  What reaches
the result is cos(0.3 * (k + 1))."""
import os

import torch
import torch.nn.functional as F


def wave(i, dims, scale=1.0, shift=0.0):
    n = 1
    for d in dims:
        n *= d
    return (scale * torch.sin(0.7 * torch.arange(1, n + 1, dtype=torch.float64) + i) + shift).reshape(dims)


def numbers(t):
    return "{ " + ", ".join(f"{float(v):.17g}" for v in t.detach().flatten().tolist()) + " }"


cases = []


def case(call, f, *dims, scale=(1, 1, 1), shift=(0, 0, 0), results=None, before=""):
    x = [wave(i, d, scale[i], shift[i]).requires_grad_(True) for i, d in enumerate(dims)]
    y = f(*x)
    k = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)
    (y * torch.cos(0.3 * k)).sum().backward()
    inputs = ", ".join(f"%x{i}: f64[{','.join(map(str, d))}]" for i, d in enumerate(dims))
    shape = f"f64[{','.join(map(str, y.shape))}]"
    text = f"graph @f({inputs}) -> (%y) {{\\n{before}%y: {shape} = {call}\\n}}\\n"
    gradients = ", ".join("{ .scale = %r, .shift = %r, .gradient = (const double[])%s }" % (float(scale[i]), float(shift[i]), numbers(v.grad)) for i, v in enumerate(x))
    cases.append(f'    {{ "{text}", (const double[]){numbers(y)}, {{ {gradients} }} }},\n')


def i64s(name, *v):
    return f"const %{name}: i64[{len(v)}] = [{', '.join(map(str, v))}]\\n"


# convolutions
case("conv(%x0, %x1, %x2, pads=[1, 1], strides=[2])", lambda x, w, b: F.conv1d(x, w, b, 2, 1), (2, 2, 7), (3, 2, 3), (3,))
case("conv(%x0, %x1, %x2, pads=[1, 1, 1, 1])", lambda x, w, b: F.conv2d(x, w, b, 1, 1), (2, 2, 4, 5), (2, 2, 3, 3), (2,))
case("conv(%x0, %x1, dilations=[2, 1], group=2, pads=[2, 0, 2, 0], strides=[1, 2])", lambda x, w: F.conv2d(x, w, None, (1, 2), (2, 0), (2, 1), 2), (1, 4, 5, 6), (4, 2, 3, 2))
case("conv(%x0, %x1, group=3, pads=[1, 1, 1, 1], strides=[2, 2])", lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 3), (2, 3, 6, 5), (3, 1, 3, 3))
case("conv(%x0, %x1, strides=[2, 1, 2])", lambda x, w: F.conv3d(x, w, None, (2, 1, 2)), (1, 2, 4, 3, 5), (2, 2, 2, 2, 2))
case("conv_transpose(%x0, %x1, %x2, strides=[3], output_padding=[1], pads=[1, 1])", lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 1), (2, 2, 4), (2, 3, 3), (3,))
case("conv_transpose(%x0, %x1, group=2, pads=[1, 1, 1, 1], strides=[2, 2], output_padding=[1, 0])", lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, (1, 0), 2), (1, 4, 3, 4), (4, 2, 3, 3))
case("conv_transpose(%x0, %x1, dilations=[2, 1])", lambda x, w: F.conv_transpose2d(x, w, None, 1, 0, 0, 1, (2, 1)), (2, 2, 3, 3), (2, 2, 2, 3))
case("conv_transpose(%x0, %x1, strides=[2, 2, 1])", lambda x, w: F.conv_transpose3d(x, w, None, (2, 2, 1)), (1, 2, 2, 2, 3), (2, 2, 2, 3, 2))
# pools
case("max_pool(%x0, kernel_shape=[3], strides=[2], pads=[1, 1])", lambda x: F.max_pool1d(x, 3, 2, 1), (2, 2, 7))
case("max_pool(%x0, kernel_shape=[2, 2], strides=[2, 2])", lambda x: F.max_pool2d(x, 2), (2, 2, 4, 6))
case("max_pool(%x0, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 1], dilations=[1, 2], ceil_mode=true)", lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), ceil_mode=True), (1, 2, 6, 6))
case("average_pool(%x0, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=true)", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (1, 2, 6, 5))
case("average_pool(%x0, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=true, count_include_pad=true)", lambda x: F.avg_pool2d(x, (3, 2), 2, 1, True, True), (1, 2, 6, 5))
case("average_pool(%x0, kernel_shape=[2, 2, 2])", lambda x: F.avg_pool3d(x, 2, 1), (1, 2, 3, 3, 3))
case("lp_pool(%x0, kernel_shape=[2, 3], strides=[2, 2])", lambda x: F.lp_pool2d(x, 2, (2, 3), 2), (1, 2, 4, 7))
case("global_average_pool(%x0)", lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 3, 4))
case("global_max_pool(%x0)", lambda x: F.adaptive_max_pool2d(x, 1), (2, 3, 3, 4))
case("col2im(%x0, %image, %block, pads=[1, 0, 1, 0], strides=[1, 2])", lambda x: F.fold(x, (4, 5), (3, 3), 1, (1, 0), (1, 2)), (1, 18, 8), before=i64s("image", 4, 5) + i64s("block", 3, 3))
# places; the grid leaves [-1, 1] on both sides
for padding in ("zeros", "border", "reflection"):
    for corners in (False, True):
        torch_corners = corners
        for mode, theirs in (("linear", "bilinear"), ("nearest", "nearest")):
            case(f"grid_sample(%x0, %x1, mode={mode}, padding_mode={padding}, align_corners={str(corners).lower()})",
                 lambda x, g: F.grid_sample(x, g, theirs, padding, torch_corners), (1, 2, 3, 4), (1, 3, 2, 2), scale=(1, 1.6))
case("grid_sample(%x0, %x1, mode=cubic)", lambda x, g: F.grid_sample(x, g, "bicubic", "zeros", False), (1, 2, 3, 4), (1, 3, 2, 2), scale=(1, 1.3))
case("grid_sample(%x0, %x1, mode=cubic, align_corners=true)", lambda x, g: F.grid_sample(x, g, "bicubic", "zeros", True), (1, 2, 3, 4), (1, 3, 2, 2), scale=(1, 1.3))
case("grid_sample(%x0, %x1)", lambda x, g: F.grid_sample(x, g, "bilinear", "zeros", False), (1, 2, 2, 3, 2), (1, 2, 2, 2, 3), scale=(1, 1.2))
case("affine_grid(%x0, %size)", lambda t: F.affine_grid(t, (2, 1, 3, 4), False), (2, 2, 3), before=i64s("size", 2, 1, 3, 4))
case("affine_grid(%x0, %size, align_corners=true)", lambda t: F.affine_grid(t, (1, 1, 2, 3, 2), True), (1, 3, 4), before=i64s("size", 1, 1, 2, 3, 2))
# resize
sizes = i64s("sizes", 1, 2, 5, 7)
less = i64s("sizes", 1, 2, 3, 4)
case("resize(%x0, _, _, %sizes, mode=linear)", lambda x: F.interpolate(x, (5, 7), mode="bilinear", align_corners=False), (1, 2, 3, 4), before=sizes)
case("resize(%x0, _, _, %sizes, mode=linear, coordinate_transformation_mode=align_corners)", lambda x: F.interpolate(x, (5, 7), mode="bilinear", align_corners=True), (1, 2, 3, 4), before=sizes)
case("resize(%x0, _, _, %sizes, mode=cubic)", lambda x: F.interpolate(x, (5, 7), mode="bicubic", align_corners=False), (1, 2, 3, 4), before=sizes)
case("resize(%x0, _, _, %sizes, mode=cubic, coordinate_transformation_mode=align_corners)", lambda x: F.interpolate(x, (5, 7), mode="bicubic", align_corners=True), (1, 2, 3, 4), before=sizes)
case("resize(%x0, _, _, %sizes, mode=linear, antialias=true, exclude_outside=true)", lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), (1, 2, 7, 9), before=less)
case("resize(%x0, _, _, %sizes, mode=cubic, antialias=true, cubic_coeff_a=-0.5, exclude_outside=true)", lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), (1, 2, 7, 9), before=less)
case("resize(%x0, _, _, %sizes, coordinate_transformation_mode=asymmetric, nearest_mode=floor)", lambda x: F.interpolate(x, (5, 7), mode="nearest"), (1, 2, 3, 4), before=sizes)
# contractions and spectra
case("det(%x0)", lambda x: torch.det(x), (2, 3, 3))
case('einsum(%x0, %x1, equation=\\"bhqd,bhkd->bhqk\\")', lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), (1, 2, 3, 2), (1, 2, 2, 2))
case('einsum(%x0, %x1, equation=\\"...ij,jk\\")', lambda a, b: torch.einsum("...ij,jk", a, b), (2, 2, 3), (3, 2))
case('einsum(%x0, equation=\\"iij->j\\")', lambda a: torch.einsum("iij->j", a), (3, 3, 2))
case("dft(%x0)", lambda x: torch.view_as_real(torch.fft.fft(x[..., 0], dim=1)), (2, 5, 1))
case("dft(%x0, onesided=true)", lambda x: torch.view_as_real(torch.fft.rfft(x[..., 0], dim=1)), (2, 6, 1))
case("dft(%x0, inverse=true)", lambda x: torch.view_as_real(torch.fft.ifft(torch.view_as_complex(x), dim=1)), (2, 5, 2))
case("dft(%x0, inverse=true, onesided=true)", lambda x: torch.fft.irfft(torch.view_as_complex(x), dim=1)[..., None], (2, 4, 2))
case("stft(%x0, %step, %x1)", lambda x, w: torch.stft(x[..., 0], 4, 2, 4, w, center=False, return_complex=False).permute(0, 2, 1, 3), (2, 9, 1), (4,), before="const %step: i64[] = 2\\n")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "windows.h"), "w") as f:
    f.write("/* Written by windows.py. */\n/* clang-format off */\nstatic const Stored stored[] = {\n")
    f.writelines(cases)
    f.write("};\n/* clang-format on */\n")
