"""Golden values of the norms: tests/golden/norms.safetensors, in float64.

`make golden` runs this; so does, where torch and safetensors are,

    python tests/golden/make_norms.py

The committed values were made with PyTorch 2.15.0.

Where PyTorch has the norm, its values; else those of the definition written down here, with gradients by autograd. Layout
as in make_ops.py: `case/in0`, `case/out0`, `case/ct0`, `case/grad0`. tests/ops/norm_golden_test.cpp calls norma's.
"""

import math
import pathlib

import safetensors.torch
import torch
import torch.nn.functional as F

torch.manual_seed(20250604)
torch.set_default_dtype(torch.float64)
tensors = {}


def rand(*shape, low=-1.0, high=1.0):
    return low + (high - low) * torch.rand(*shape)


def case(name, function, *inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    cotangents = [torch.randn_like(out) for out in outputs]
    grads = torch.autograd.grad(outputs, leaves, cotangents)
    for i, (out, cotangent) in enumerate(zip(outputs, cotangents)):
        tensors[f"{name}/out{i}"] = out.detach().clone().contiguous()
        tensors[f"{name}/ct{i}"] = cotangent.clone().contiguous()
    for i, (x, grad) in enumerate(zip(leaves, grads)):
        tensors[f"{name}/in{i}"] = x.detach().clone().contiguous()
        tensors[f"{name}/grad{i}"] = grad.clone().contiguous()


def keep(name, tensor):
    tensors[name] = tensor.detach().clone().contiguous()


x, w, b = rand(3, 6), rand(6, low=0.5, high=1.5), rand(6)
volume = rand(2, 6, 5)
heads = rand(2, 3, 2, 6)


def ms(x):
    return (x * x).mean(-1, keepdim=True)


# rows
case("layer_norm_per_head", lambda x, w: F.layer_norm(x, (6,), None, None, 1e-5) * w, heads, rand(2, 6))
case("gemma", lambda x, w: x / torch.sqrt(ms(x) + 1e-6) * (1.0 + w), x, b)
case("rms_norm_torch", lambda x, w: F.rms_norm(x, (6,), w, 1e-5), x, w)
case("original_rms_norm", lambda x, w, b: x / (x.norm(2, -1, keepdim=True) / math.sqrt(6) + 1e-2) * w + b, x, w, b)
case("p_rms_norm", lambda x, w: x / torch.sqrt(ms(x[..., :3]) + 1e-6) * w, x, w)
case("crms_norm", lambda x, w: (torch.cat([x, -x.sum(-1, keepdim=True)], -1)
                                / torch.sqrt(ms(torch.cat([x, -x.sum(-1, keepdim=True)], -1)) + 1e-8))[..., :6] * w, x, w)
case("normalize", lambda x: F.normalize(x, dim=-1), x)
case("normalize_columns", lambda x: F.normalize(x, dim=0), x)
case("scale_norm", lambda x, g: g * F.normalize(x, dim=-1, eps=1e-5), x, rand(1, low=1.0, high=2.0))
case("simple_rms_norm", lambda x: math.sqrt(6) * F.normalize(x, dim=-1), x)
case("ada_layer_norm", lambda x, scale, shift: F.layer_norm(x, (5,)) * (1.0 + scale[:, None]) + shift[:, None],
     volume, rand(2, 5), rand(2, 5))


def ada_norm(x):
    h = F.layer_norm(x, (6,))
    return 2.0 * (1.0 - 0.1 * h).detach() * h


case("ada_norm", ada_norm, x)


def n(u):
    return u / torch.sqrt((u * u).mean(-1, keepdim=True) + 1e-6)


case("poly_norm", lambda x, w, b: w[0] * n(x**3) + w[1] * n(x**2) + w[2] * n(x) + b, x, rand(3), rand(1))
case("group_norm", lambda x, w, b: F.group_norm(x, 3, w, b), volume, w, b)
case("group_norm_plain", lambda x: F.group_norm(x, 2), volume)
case("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), volume, w, b)
case("add_layer_norm", lambda x, r, w, b: (F.layer_norm(2.5 * r + x, (6,), w, b), 2.5 * r + x), x, rand(3, 6), w, b)
case("dual_layer_norm", lambda x, w, b, v: (F.layer_norm(x, (6,), w, b), F.layer_norm(x, (6,), v)), x, w, b, rand(6))

# elements
case("dynamic_tanh", lambda x, a, w, b: torch.tanh(a * x) * w + b, x, rand(1), w, b)
case("dynamic_erf", lambda x, a, s, w, b: torch.erf(a * x + s) * w + b, x, rand(1), rand(1), w, b)
case("softcap", lambda x: 0.7 * torch.tanh(x / 0.7), x)

# channels
case("batch_norm_eval", lambda x, w, b: F.batch_norm(x, torch.full((6,), 0.3), torch.full((6,), 0.8), w, b), volume, w, b)
padding = torch.tensor([[False, False, True, False], [False, True, True, False]])


def masked(x, w, b):
    kept = x[~padding]
    mean, var = kept.mean(0), kept.var(0, unbiased=False)
    return (x - mean) / torch.sqrt(var + 1e-5) * w + b


case("masked_batch_norm", masked, rand(2, 4, 6), w, b)
running_mean, running_var = rand(6), rand(6, low=1.0, high=2.0)
keep("regularized_batch_norm/running_mean", running_mean)
keep("regularized_batch_norm/running_var", running_var)


def regularized(x, w, b):
    kept = x[~padding]
    mean, var = kept.mean(0), kept.var(0, unbiased=False)
    y = (x - mean) / torch.sqrt(torch.clamp(var, min=1e-5)) * w + b
    return y, 0.1 * ((running_mean - mean) ** 2).sum() + 0.01 * (running_var - var).abs().sum()


case("regularized_batch_norm", regularized, rand(2, 4, 6), w, b)
keep("padding_mask", padding)

# BatchNorm over three steps of training, then one of evaluation
layer = torch.nn.BatchNorm1d(6)
with torch.no_grad():
    layer.weight.copy_(w)
    layer.bias.copy_(b)
keep("batch_norm_steps/weight", w)
keep("batch_norm_steps/bias", b)
for step in range(4):
    layer.train(step < 3)
    inputs = rand(2, 6, 5).requires_grad_()
    out = layer(inputs)
    cotangent = torch.randn_like(out)
    grad = torch.autograd.grad(out, inputs, cotangent)[0]
    for name, value in {"in": inputs, "out": out, "ct": cotangent, "grad": grad, "running_mean": layer.running_mean,
                        "running_var": layer.running_var}.items():
        keep(f"batch_norm_steps/{name}{step}", value)

# weights
case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), rand(3, 5), rand(3, 1))
case("weight_norm_columns", lambda v, g: torch._weight_norm(v, g, 1), rand(3, 5), rand(1, 5))
linear = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(5, 3))
norm = linear.parametrizations.weight[0]
keep("spectral_norm/weight", linear.parametrizations.weight.original)
keep("spectral_norm/u", norm._u)
keep("spectral_norm/v", norm._v)
for step in range(3):
    linear.train(step < 2)
    weight = linear.weight
    cotangent = torch.randn_like(weight)
    grad = torch.autograd.grad(weight, linear.parametrizations.weight.original, cotangent)[0]
    for name, value in {"out": weight, "ct": cotangent, "grad": grad, "u": norm._u, "v": norm._v}.items():
        keep(f"spectral_norm/{name}{step}", value)


# PowerNorm, after sIncerass/powernorm: its approximate backward, warm-up of two steps, then running statistics
class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, phi, nu, step, warmup):
        batch = (x[~padding] ** 2).mean(0)
        z = x / torch.sqrt((batch if step <= warmup else phi) + 1e-5)
        ctx.save_for_backward(z, batch, weight)
        ctx.nu = nu
        if step < warmup:
            phi.copy_(phi * (step - 1) / step + batch / step)
        phi.copy_(0.9 * phi + 0.1 * batch)
        return weight * z + bias

    @staticmethod
    def backward(ctx, dy):
        z, batch, weight = ctx.saved_tensors
        g = dy * weight - (1.0 - 0.9) * ctx.nu * z
        ctx.nu.add_((g * z).mean((0, 1)))
        return g / torch.sqrt(batch + 1e-5), (dy * z).sum((0, 1)), dy.sum((0, 1)), None, None, None, None


phi, nu = torch.ones(6), torch.zeros(6)
weight, bias = w.clone().requires_grad_(), b.clone().requires_grad_()
for step in range(1, 5):
    inputs = rand(2, 4, 6).requires_grad_()
    out = Power.apply(inputs, weight, bias, phi, nu, step, 2)
    cotangent = torch.randn_like(out)
    grads = torch.autograd.grad(out, (inputs, weight, bias), cotangent)
    for name, value in {"in": inputs, "out": out, "ct": cotangent, "grad": grads[0], "dweight": grads[1],
                        "dbias": grads[2], "phi": phi, "nu": nu}.items():
        keep(f"power_norm/{name}{step}", value)
keep("power_norm/weight", w)
keep("power_norm/bias", b)

# At the end, for the random numbers of what stands above to stay: more forms of the rows
def llama(x, w):
    return w * (x / torch.sqrt(ms(x) + 1e-6))


def modulated(x, w, scale, shift):
    return n(x) * w * (1.0 + scale[:, None]) + shift[:, None]


case("llama", llama, x, w)
case("modulated_rms_norm", modulated, rand(2, 3, 6), rand(6, low=0.01, high=0.1), rand(2, 6), rand(2, 6))
case("normalize_inside", lambda x: x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-2), x)
case("add_rms_norm", lambda x, r, w: (n(0.5 * r + x) * w, 0.5 * r + x), x, rand(3, 6), w)
case("dual_rms_norm", lambda x, v, w: (n(x) * v, n(x) * w), x, rand(6), w)

# elements
case("layer_scale", lambda x, g: x * g, x, rand(6))
case("head_scale", lambda x, g: (x.view(3, 2, 3) * g[:, None]).flatten(1), x, rand(2))

# channels
running_mean, running_var = rand(6), rand(6, low=0.5, high=1.5)
keep("instance_norm_running/mean_before", running_mean)
keep("instance_norm_running/var_before", running_var)
case("instance_norm_eval", lambda x, w, b: F.instance_norm(x, running_mean, running_var, w, b, use_input_stats=False),
     volume, w, b)
F.instance_norm(volume, running_mean, running_var, momentum=0.3)
keep("instance_norm_running/mean", running_mean)
keep("instance_norm_running/var", running_var)
case("power_norm_eval", lambda x, w, b: x / torch.sqrt(torch.full((6,), 0.8) + 1e-5) * w + b, rand(2, 4, 6), w, b)

# weights: nGPT's step is F.normalize off the tape; its gradient is that of normalize
case("weight_norm_all", lambda v, g: v * (g / v.norm()), rand(3, 5), rand(1)[0])
steps = rand(3, 5)
keep("unit_norm/before", steps)
keep("unit_norm/rows", steps / steps.norm(2, -1, keepdim=True))
keep("unit_norm/columns", steps / steps.norm(2, 0, keepdim=True))

path = pathlib.Path(__file__).with_name("norms.safetensors")
safetensors.torch.save_file(tensors, path, metadata={"torch": torch.__version__})
print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes, torch {torch.__version__}")
