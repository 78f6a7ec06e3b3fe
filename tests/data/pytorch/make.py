"""Exports the models of models.py in the four forms in which PyTorch writes them, with what PyTorch says of each.

usage: OMP_NUM_THREADS=1 python make.py OUT [NAME...]      (torch 2.15, onnx, onnxscript, safetensors)

NAME-FORM.onnx        dyn: the default; dynraw: training mode, optimize=False; leg, legtrain: dynamo=False, in inference form
                      with folding, and in training form without
NAME.safetensors      inputs in.*, target, parameters param.* before the first step, outputs out (inference) and out.train,
                      gradients grad.* of the first step, losses of ten steps of SGD and AdamW, loss.sgd and loss.adamw, and
                      as .moved those that PyTorch finds when its input is changed by 1e-7.  Dropout is off.
NAME.json             parameters (name, shape, and other names of the same tensor) and buffers
digits-dynraw.onnx    the network of docs/pytorch.md
state/NAME.safetensors, -x.npy, -y.npy: the state dict of the module with other weights, and what it makes of an input
Traces of the stack are cut to the lines of models.py.
"""
import contextlib
import copy
import io
import json
import os
import sys
import warnings

import numpy
import onnx
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from models import MODELS, Digits

OWN_AXES = {'gcn'}  # no batch: the first axis of an input is its own


def loss_of(kind, y, target):
    if kind == 'own':
        return y
    if kind == 'class':
        return F.cross_entropy(y, target)
    if kind == 'next':
        return F.cross_entropy(y.flatten(0, 1), target.flatten())
    return F.mse_loss(y, target)


def target_of(kind, y):
    if kind == 'own':
        return None
    if kind == 'class':
        return torch.randint(0, y.shape[1], (y.shape[0],))
    if kind == 'next':
        return torch.randint(0, y.shape[2], y.shape[:2])
    return torch.randn_like(y)


def in_training(model):
    model.train()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.eval()
    return model


def train(model, optimizer, x, target, kind, frozen):
    model = copy.deepcopy(model)
    in_training(model) if not frozen else model.eval()
    chosen = optimizer(model.parameters())
    losses = []
    for step in range(10):
        chosen.zero_grad()
        loss = loss_of(kind, model(*x), target)
        loss.backward()
        if step == 0:
            gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        losses.append(loss.detach())
        chosen.step()
    return torch.stack(losses), gradients


OPTIMIZERS = {'sgd': lambda p: torch.optim.SGD(p, lr=0.1), 'adamw': lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.01)}


def moved(x):
    return tuple(v * (1 + 1e-7) if v.is_floating_point() else v for v in x)


def answers(model, x, kind):
    model.eval()
    y = model(*x)
    target = target_of(kind, y)
    out = {'out': y.detach()}
    out.update({f'in.{i}': v for i, v in enumerate(x)})
    if target is not None:
        out['target'] = target
    out.update({f'param.{n}': p.detach().clone() for n, p in model.named_parameters()})
    out.update({f'buffer.{n}': b.clone() for n, b in model.named_buffers()})
    for mode, frozen in (('', False), ('frozen.', True)):
        if frozen and not any(isinstance(m, nn.BatchNorm2d) for m in model.modules()):
            continue
        for name, optimizer in OPTIMIZERS.items():
            out[f'{mode}loss.{name}'], gradients = train(model, optimizer, x, target, kind, frozen)
            out[f'{mode}loss.{name}.moved'], _ = train(model, optimizer, moved(x), target, kind, frozen)
        out.update({f'{mode}grad.{n}': g for n, g in gradients.items()})
    return {k: v.contiguous().clone() for k, v in out.items()}


def facts(model):
    names = {}
    for n, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(n)
    return {'parameters': [{'name': n[0], 'also': n[1:], 'shape': list(dict(model.named_parameters())[n[0]].shape)}
                           for n in names.values()],
            'buffers': [n for n, _ in model.named_buffers()]}


def cut_traces(path):
    m = onnx.load(path)
    for node in [n for n in m.graph.node]:
        for p in node.metadata_props:
            if p.key.endswith('stack_trace'):
                lines = [s.strip() for s in p.value.split('\n')]
                own = [i for i, s in enumerate(lines) if 'models.py' in s]
                p.value = '\n'.join(f'File "models.py", {lines[i].split(", ", 1)[1]}\n    {lines[i + 1]}' for i in own[-1:])
    onnx.save(m, path)


def export(name, model, x, out):
    inputs = [f'x{i}' for i in range(len(x))]
    batch = torch.export.Dim.DYNAMIC
    dynamic = None if name in OWN_AXES else tuple({0: batch} for _ in x)
    axes = None if name in OWN_AXES else {n: {0: 'batch'} for n in inputs}
    words = dict(input_names=inputs, output_names=['y'])
    forms = {
        'dyn': dict(dynamo=True, dynamic_shapes=dynamic, external_data=False),
        'dynraw': dict(dynamo=True, optimize=False, dynamic_shapes=dynamic, external_data=False),
        'leg': dict(dynamo=False, dynamic_axes=axes),
        'legtrain': dict(dynamo=False, dynamic_axes=axes, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False),
    }
    for form, options in forms.items():
        path = os.path.join(out, f'{name}-{form}.onnx')
        m = copy.deepcopy(model)
        m.train() if form in ('dynraw', 'legtrain') else m.eval()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                torch.onnx.export(m, x, path, **words, **options)
            cut_traces(path)
        except Exception as e:  # a form that the exporter refuses is said, and is not there
            print(f'{name}-{form}: {type(e).__name__}: {str(e).splitlines()[0][:150] if str(e) else ""}')


def other_weights(name, out):
    make, inputs, _ = MODELS[name]
    torch.manual_seed(2)
    model, x = make().eval(), inputs()
    os.makedirs(os.path.join(out, 'state'), exist_ok=True)
    stem = os.path.join(out, 'state', name)
    save_file({k: v.contiguous().clone() for k, v in model.state_dict().items()}, f'{stem}.safetensors')
    numpy.save(f'{stem}-x.npy', x[0].numpy())
    numpy.save(f'{stem}-y.npy', model(*x).detach().numpy())


def some_names(out):
    """State dicts of `tied` with one name of its table, and with all but different values under one of them."""
    stem = os.path.join(out, 'state', 'tied')
    state = load_file(f'{stem}.safetensors')
    table = state['shared.weight']
    others = {k: v for k, v in state.items() if not torch.equal(v.flatten()[:1], table.flatten()[:1])}
    for module in ('encoder.embed_tokens', 'lm_head'):
        save_file({**others, f'{module}.weight': table.clone()}, f'{stem}-{module}.safetensors')
    save_file({**state, 'lm_head.weight': table + 1}, f'{stem}-differ.safetensors')


def digits(out):
    torch.manual_seed(1)
    path = os.path.join(out, 'digits-dynraw.onnx')
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(Digits().train(), (torch.randn(2, 1, 16, 16),), path, optimize=False, external_data=False,
                          input_names=['x'], output_names=['logits'], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    cut_traces(path)


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or list(MODELS)
    warnings.filterwarnings('ignore')
    torch.set_num_threads(1)
    os.makedirs(out, exist_ok=True)
    if not sys.argv[2:]:
        digits(out)
    for name in wanted:
        make, inputs, kind = MODELS[name]
        torch.manual_seed(1)
        model, x = make(), inputs()
        save_file(answers(model, x, kind), os.path.join(out, f'{name}.safetensors'))
        with open(os.path.join(out, f'{name}.json'), 'w') as f:
            json.dump({'loss': kind, **facts(model)}, f, indent=1)
            f.write('\n')
        export(name, model, x, out)
        if name in ('gpt', 'lstm', 'gru', 'tied', 'both'):
            other_weights(name, out)
        if name == 'tied':
            some_names(out)


main()
