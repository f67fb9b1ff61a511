"""Golden values of every operation, made with PyTorch in float64: tests/golden/ops.safetensors.

`make golden` runs this; so does, where torch and safetensors are,

    python tests/golden/make_ops.py

The committed values were made with PyTorch 2.15.0.

Each case holds inputs, outputs, a random cotangent for each output, and the gradient of each floating-point input:
`case/in0`, `case/out0`, `case/ct0`, `case/grad0`. tests/ops/golden_test.cpp calls norma's operation of the same name.
"""

import math
import pathlib

import safetensors.torch
import torch
import torch.nn.functional as F

torch.manual_seed(20110101)
torch.set_default_dtype(torch.float64)
tensors = {}


def rand(*shape, low=-1.0, high=1.0):
    return low + (high - low) * torch.rand(*shape)


def case(name, function, *inputs):
    leaves = [x.clone().requires_grad_() if x.is_floating_point() else x.clone() for x in inputs]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    roots, cotangents = [], []
    for i, out in enumerate(outputs):
        tensors[f"{name}/out{i}"] = out.detach().clone().contiguous()
        if out.requires_grad:
            cotangent = torch.randn_like(out)
            tensors[f"{name}/ct{i}"] = cotangent.clone().contiguous()
            roots.append(out)
            cotangents.append(cotangent)
    targets = [x for x in leaves if x.is_floating_point()]
    grads = torch.autograd.grad(roots, targets, cotangents, allow_unused=True) if roots else []
    grads = iter(grads)
    for i, x in enumerate(leaves):
        tensors[f"{name}/in{i}"] = x.detach().clone().contiguous()
        if x.is_floating_point() and roots:
            grad = next(grads)
            if grad is not None:
                tensors[f"{name}/grad{i}"] = grad.clone().contiguous()


a, b, row, column = rand(3, 4), rand(3, 4), rand(4), rand(3, 1)
positive = rand(3, 4, low=0.2, high=2.0)

# elementwise, with broadcasting
for name, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul}.items():
    case(name, function, a, b)
    case(f"{name}_row", function, a, row)
    case(f"{name}_column", function, column, row)
case("div", torch.div, a, positive)
case("arithmetic", lambda x: (x + 2.5, 2.5 + x, x - 1.5, 1.5 - x, x * 3.0, 3.0 * x, x / 4.0, 2.0 / x), positive)
case("pow_scalar", lambda x: torch.pow(x, 3.0), a)
case("pow_of_scalar", lambda x: torch.pow(2.5, x), a)
case("pow", torch.pow, positive, b)
case("maximum", torch.maximum, a, b)
case("minimum", torch.minimum, a, b)
for name in ["neg", "abs", "sign", "exp", "square", "sin", "cos", "tanh", "sigmoid", "erf"]:
    case(name, getattr(torch, name), 2.0 * a)
for name in ["log", "log1p", "sqrt", "rsqrt", "reciprocal"]:
    case(name, getattr(torch, name), positive)
case("clamp", lambda x: torch.clamp(x, -0.5, 0.5), a)
mask = torch.rand(3, 4) > 0.5
case("where", lambda m, x, y: torch.where(m, x, y), mask, a, b)
case("masked_fill", lambda x, m: x.masked_fill(m, -2.5), a, mask)

# comparisons and logic, of few values: equal ones are there
few, others = torch.randint(-1, 2, (3, 4)).double(), torch.randint(-1, 2, (3, 4)).double()
for name in ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]:
    case(name, getattr(torch, name), few, others)
special = torch.tensor([0.0, 1.0, math.nan, math.inf, -math.inf])
for name in ["logical_not", "isnan", "isfinite"]:
    case(name, getattr(torch, name), special)
case("any", lambda x: x.any(1), few)
case("all", lambda x: x.all(0), few)

# activations
wide = 4.0 * rand(3, 5)
case("relu", F.relu, wide)
case("gelu", F.gelu, wide)
case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), wide)
case("silu", F.silu, wide)
case("softplus", F.softplus, wide)
case("softplus_beta", lambda x: F.softplus(x, beta=2.5), wide)
case("swiglu", lambda g, u: F.silu(g) * u, wide, rand(3, 5))

# reductions
cube = rand(2, 3, 4)
case("sum", lambda x: x.sum(), cube)
case("sum_dims", lambda x: x.sum((0, 2), keepdim=True), cube)
case("mean", lambda x: x.mean(), cube)
case("mean_dim", lambda x: x.mean(1), cube)
case("var", lambda x: x.var(-1), cube)
case("var_biased", lambda x: x.var(1, correction=0), cube)
case("std", lambda x: x.std(-1), cube)
case("prod", lambda x: x.prod(1), cube)
case("amax", lambda x: x.amax(-1), cube)
case("amin", lambda x: x.amin(0), cube)
case("max", torch.max, cube)
case("max_dim", lambda x: tuple(torch.max(x, 1)), cube)
case("min", torch.min, cube)
case("min_dim", lambda x: tuple(torch.min(x, 2, keepdim=True)), cube)
case("argmax", lambda x: x.argmax(-1), cube)
case("argmin", lambda x: x.argmin(1), cube)
case("cumsum", lambda x: x.cumsum(1), cube)
case("logsumexp", lambda x: torch.logsumexp(x, -1), 5.0 * cube)
case("vector_norm", lambda x: torch.linalg.vector_norm(x, dim=-1), cube)
case("sum_to_size", lambda x: x.sum_to_size(3, 1), cube)

# views and indices
case("transpose", lambda x: x.transpose(0, 2), cube)
case("permute", lambda x: x.permute(2, 0, 1), cube)
case("t", torch.t, a)
case("view", lambda x: x.view(4, -1), cube)
case("flatten", lambda x: torch.flatten(x, 1, 2), cube)
case("squeeze", lambda x: x.squeeze(1), rand(2, 1, 3, 1))
case("squeeze_all", lambda x: x.squeeze(), rand(2, 1, 3, 1))
case("unsqueeze", lambda x: x.unsqueeze(-2), a)
case("contiguous", lambda x: x.t().contiguous(), a)
case("clone", torch.clone, a)
case("reshape", lambda x: x.transpose(0, 1).reshape(6, 4), cube)
case("narrow", lambda x: x.narrow(1, 1, 2), cube)
case("select", lambda x: x.select(2, 1), cube)
case("expand", lambda x: x.expand(5, 3, 4), rand(1, 3, 1))
case("cat", lambda x, y: torch.cat([x, y], 1), rand(2, 3), rand(2, 2))
case("stack", lambda x, y: torch.stack([x, y], 1), rand(2, 3), rand(2, 3))
case("split", lambda x: torch.split(x, 2, 1), rand(2, 5))
case("split_sizes", lambda x: torch.split(x, [1, 0, 4], 1), rand(2, 5))
case("chunk", lambda x: torch.chunk(x, 3), rand(7, 2))
case("unbind", lambda x: torch.unbind(x, 1), cube)
case("gather", lambda x, i: torch.gather(x, 1, i), rand(3, 4), torch.randint(0, 4, (3, 6)))
case("scatter", lambda x, i, s: x.scatter(1, i, s), rand(3, 4), torch.tensor([[3, 0], [1, 2], [0, 3]]), rand(3, 2))
case("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), rand(3, 4), torch.randint(0, 4, (3, 6)), rand(3, 6))
case("index_select", lambda x, i: torch.index_select(x, 1, i), rand(3, 4), torch.tensor([3, 0, 0, 1]))
case("one_hot", lambda i: F.one_hot(i, 5), torch.randint(0, 5, (3, 2)))
case("embedding", lambda i, w: F.embedding(i, w, padding_idx=2), torch.randint(0, 5, (3, 6)), rand(5, 4))

# matrix products
case("matmul", torch.matmul, rand(3, 4), rand(4, 5))
case("matmul_batched", torch.matmul, rand(2, 1, 3, 4), rand(5, 4, 2))
case("matmul_vector", torch.matmul, rand(2, 3, 4), rand(4))
case("mm", torch.mm, rand(3, 4), rand(4, 2))
case("bmm", torch.bmm, rand(2, 3, 4), rand(2, 4, 5))
case("addmm", torch.addmm, rand(3, 5), rand(3, 4), rand(4, 5))
case("addmm_scaled", lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=-2.0), rand(5), rand(3, 4), rand(4, 5))
case("linear", F.linear, rand(2, 3, 4), rand(5, 4), rand(5))
case("linear_gelu", lambda x, w, c: F.gelu(F.linear(x, w, c)), rand(2, 3, 4), rand(5, 4), rand(5))
case("linear_relu", lambda x, w, c: F.relu(F.linear(x, w, c)), rand(2, 3, 4), rand(5, 4), rand(5))

# softmax and losses
case("softmax", lambda x: F.softmax(x, -1), wide)
case("softmax_dim0", lambda x: F.softmax(x, 0), wide)
case("log_softmax", lambda x: F.log_softmax(x, -1), wide)
logits, target = 3.0 * rand(6, 5), torch.tensor([0, 4, -100, 2, 1, 4])
case("cross_entropy", F.cross_entropy, logits, target)
case("cross_entropy_sum", lambda x, t: F.cross_entropy(x, t, reduction="sum"), logits, target)
case("cross_entropy_none", lambda x, t: F.cross_entropy(x, t, reduction="none"), logits, target)
case("cross_entropy_smooth", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), logits, target)
weights = rand(5, low=0.5, high=2.0)
tensors["cross_entropy_weight/weight"] = weights.clone()
case("cross_entropy_weight", lambda x, t: F.cross_entropy(x, t, weight=weights, label_smoothing=0.1), logits, target)
case("cross_entropy_dims", F.cross_entropy, 3.0 * rand(2, 5, 3), torch.tensor([[0, 4, -100], [2, 2, 1]]))
case("cross_entropy_unbatched", F.cross_entropy, 3.0 * rand(5), torch.tensor(3))
log_probabilities = F.log_softmax(logits, -1)
case("nll_loss", F.nll_loss, log_probabilities, target)
case("nll_loss_dims", F.nll_loss, -2.0 - rand(2, 5, 3), torch.tensor([[0, 4, -100], [2, 2, 1]]))
tensors["nll_loss_weight/weight"] = weights.clone()
case("nll_loss_weight", lambda x, t: F.nll_loss(x, t, weight=weights, reduction="sum"), log_probabilities, target)
case("bce_with_logits", F.binary_cross_entropy_with_logits, 3.0 * rand(6), torch.rand(6))
pos_weight, element_weight = rand(3, low=0.5, high=3.0), rand(4, 1, low=0.5, high=3.0)
tensors["bce_with_logits_pos_weight/pos_weight"] = pos_weight.clone()
case("bce_with_logits_pos_weight",
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=pos_weight), 3.0 * rand(4, 3), torch.rand(4, 3))
tensors["bce_with_logits_weight/weight"] = element_weight.clone()
case("bce_with_logits_weight",
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, weight=element_weight, reduction="sum"),
     3.0 * rand(4, 3), torch.rand(4, 3))
case("mse_loss", F.mse_loss, rand(3, 4), rand(3, 4))

# norms
x = 2.0 * rand(5, 3, 4) + 1.0
case("layer_norm", lambda x, w, c: F.layer_norm(x, (4,), w, c), x, rand(4), rand(4))
case("layer_norm_2d", lambda x, w, c: F.layer_norm(x, (3, 4), w, c), x, rand(3, 4), rand(3, 4))
case("layer_norm_plain", lambda x: F.layer_norm(x, (4,)), x)
case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w, 1e-6), x, rand(4))
case("rms_norm_default_eps", lambda x: F.rms_norm(x, (4,)), x)

# attention and rotary positions
q, k, v = rand(2, 4, 5, 6), rand(2, 4, 5, 6), rand(2, 4, 5, 6)
case("attention", F.scaled_dot_product_attention, q, k, v)
case("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
keep = torch.tensor([[True] * 5, [True, True, True, False, False]])
tensors["attention_padding/ignore"] = ~keep
case("attention_padding",
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :]), q, k, v)
additive = rand(4, 5, 5)
tensors["attention_additive/mask"] = additive.clone()
case("attention_additive", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=additive), q, k, v)
case("attention_gqa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
     q, rand(2, 2, 7, 6), rand(2, 2, 7, 6))
for name, keys in {"more": 7, "fewer": 3}.items():  # than queries: where the diagonal starts
    case(f"attention_gqa_causal_{name}_keys",
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
         q, rand(2, 2, keys, 6), rand(2, 2, keys, 6))


def softcap_attention(q, k, v, cap=2.0):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(cap * torch.tanh(scores / cap), -1) @ v


case("attention_softcap", softcap_attention, 4.0 * q, k, v)


def rope(x, base=10000.0):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)[None, :]
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    rotated = torch.cat([-x[..., half:], x[..., :half]], -1)  # as Hugging Face's rotate_half
    return x * cos + rotated * sin


def rope_interleaved(x, base=100.0):  # as Llama's own code: pairs as complex numbers
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)[None, :]
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


case("rope", rope, rand(2, 3, 5, 8))
case("rope_interleaved", rope_interleaved, rand(2, 3, 5, 8))
case("rope_partial", lambda x: torch.cat([rope(x[..., :4]), x[..., 4:]], -1), rand(2, 3, 5, 7))
case("rope_partial_interleaved", lambda x: torch.cat([rope_interleaved(x[..., :4]), x[..., 4:]], -1), rand(3, 5, 7))

path = pathlib.Path(__file__).with_name("ops.safetensors")
safetensors.torch.save_file(tensors, path, metadata={"torch": torch.__version__})
print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes, torch {torch.__version__}")
