"""Golden values of layers, of two whole classifiers, and of optimizers, made with PyTorch in float64.

`make golden` runs this; so does, where torch and safetensors are,

    python tests/golden/make_models.py

The committed values were made with PyTorch 2.15.0.

Writes layers.safetensors, classifiers.safetensors and optimizers.safetensors next to this file. The modules below name
their parameters as norma's do (which follow PyTorch and Hugging Face), so that a state_dict travels by name.
tests/nn/golden_test.cpp and tests/optim/golden_test.cpp read the files.
"""

import math
import pathlib

import safetensors.torch
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
here = pathlib.Path(__file__).parent


def save(name, tensors):
    path = here / name
    tensors = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
    safetensors.torch.save_file(tensors, path, metadata={"torch": torch.__version__})
    print(f"{name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def norm(kind, width):
    return {"layer_norm": lambda: nn.LayerNorm(width), "rms_norm": lambda: nn.RMSNorm(width, eps=1e-6)}[kind]()


def rope(x, base=10000.0):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)[None, :]
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Attention(nn.Module):
    def __init__(self, d, heads, kv_heads=None, use_rope=False, qk_norm=None, softcap=0.0, causal=False):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads or heads, d // heads
        self.use_rope, self.softcap, self.causal = use_rope, softcap, causal
        self.q_proj = nn.Linear(d, heads * self.head_dim)
        self.k_proj = nn.Linear(d, self.kv_heads * self.head_dim)
        self.v_proj = nn.Linear(d, self.kv_heads * self.head_dim)
        self.o_proj = nn.Linear(heads * self.head_dim, d)
        if qk_norm:
            self.q_norm, self.k_norm = norm(qk_norm, self.head_dim), norm(qk_norm, self.head_dim)

    def forward(self, x, padding=None):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        if self.use_rope:
            q, k = rope(q), rope(k)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], -math.inf)
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        out = torch.softmax(scores, -1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, d, hidden, activation):
        super().__init__()
        self.activation = activation
        if activation == "swiglu":
            self.gate_proj, self.up_proj = nn.Linear(d, hidden), nn.Linear(d, hidden)
            self.down_proj = nn.Linear(hidden, d)
        else:
            self.fc1, self.fc2 = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x):
        if self.activation == "swiglu":
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return self.fc2({"gelu": F.gelu, "relu": F.relu}[self.activation](self.fc1(x)))


class Block(nn.Module):
    def __init__(self, d, hidden, activation, kind, placement, **attention):
        super().__init__()
        self.placement = placement
        self.self_attn = Attention(d, **attention)
        self.mlp = FeedForward(d, hidden, activation)
        if placement != "none":
            self.norm1, self.norm2 = norm(kind, d), norm(kind, d)

    def forward(self, x, padding=None):
        if self.placement == "pre":
            x = x + self.self_attn(self.norm1(x), padding)
            return x + self.mlp(self.norm2(x))
        if self.placement == "post":
            x = self.norm1(x + self.self_attn(x, padding))
            return self.norm2(x + self.mlp(x))
        x = x + self.self_attn(x, padding)
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self, layers, d, kind, placement, **block):
        super().__init__()
        self.layers = nn.ModuleList(Block(d, kind=kind, placement=placement, **block) for _ in range(layers))
        if placement == "pre":
            self.norm = norm(kind, d)

    def forward(self, x, padding=None):
        for layer in self.layers:
            x = layer(x, padding)
        return self.norm(x) if hasattr(self, "norm") else x


class Classifier(nn.Module):
    def __init__(self, vocab, d, pooling, positions=0, **encoder):
        super().__init__()
        self.pooling = pooling
        self.token_embedding = nn.Embedding(vocab, d, padding_idx=0)
        if positions:
            self.position_embedding = nn.Embedding(positions, d)
        self.encoder = Encoder(d=d, **encoder)
        self.classifier = nn.Linear(2 * d if pooling == "mean_max" else d, 2)

    def forward(self, tokens, padding):
        x = self.token_embedding(tokens)
        if hasattr(self, "position_embedding"):
            x = x + self.position_embedding.weight[: tokens.shape[1]]
        x = self.encoder(x, padding)
        mean = x.masked_fill(padding[..., None], 0.0).sum(1) / (~padding).sum(1, keepdim=True)
        if self.pooling == "mean":
            return self.classifier(mean)
        highest = x.masked_fill(padding[..., None], -math.inf).amax(1)
        return self.classifier(torch.cat([mean, highest], -1))


# -- layers ---------------------------------------------------------------------------------------
torch.manual_seed(7)
layers = {}
padding = torch.tensor([[False] * 5, [False, False, False, True, True]])


def layer_case(name, module, *inputs):
    for parameter in module.parameters():  # away from ones and zeros, which hide errors
        parameter.data = torch.randn_like(parameter) * 0.4 + (0.5 if parameter.dim() == 1 else 0.0)
    x = inputs[0].clone()
    if x.is_floating_point():
        x.requires_grad_()
    out = module(x, *inputs[1:])
    cotangent = torch.randn_like(out)
    out.backward(cotangent)
    layers.update({f"{name}/in0": inputs[0], f"{name}/out0": out, f"{name}/ct0": cotangent})
    if x.is_floating_point():
        layers[f"{name}/grad0"] = x.grad
    for key, parameter in module.named_parameters():
        layers[f"{name}/state/{key}"] = parameter
        layers[f"{name}/state_grad/{key}"] = parameter.grad


x = torch.randn(2, 5, 8)
layers["padding"] = padding
layer_case("linear", nn.Linear(8, 3), x)
layer_case("embedding", nn.Embedding(6, 8, padding_idx=0), torch.tensor([[1, 5, 0], [5, 2, 0]]))
layer_case("layer_norm", nn.LayerNorm(8), x)
layer_case("rms_norm", nn.RMSNorm(8, eps=1e-6), x)
layer_case("attention", Attention(8, 2), x, padding)
layer_case("attention_causal_gqa_rope", Attention(8, 4, 2, use_rope=True, causal=True), x)
layer_case("attention_qk_norm_softcap", Attention(8, 2, qk_norm="rms_norm", softcap=1.5, use_rope=True), x, padding)
for activation in ["gelu", "relu", "swiglu"]:
    layer_case(f"feed_forward_{activation}", FeedForward(8, 12, activation), x)
for placement in ["pre", "post", "none"]:
    for kind in ["layer_norm", "rms_norm"]:
        if placement == "none" and kind == "rms_norm":
            continue
        layer_case(f"block_{placement}_{kind}", Block(8, 12, "gelu", kind, placement, heads=2), x, padding)
save("layers.safetensors", layers)

# -- classifiers: one step in detail, then the loss curve of 50 ----------------------------------------
configs = {
    "pre_rms": dict(vocab=30, d=8, pooling="mean", layers=2, kind="rms_norm", placement="pre", hidden=12,
                    activation="gelu", heads=2, kv_heads=1, use_rope=True),
    "post_layer": dict(vocab=30, d=8, pooling="mean_max", positions=12, layers=2, kind="layer_norm",
                       placement="post", hidden=12, activation="relu", heads=2),
}
classifiers = {}
for name, config in configs.items():
    torch.manual_seed(11)
    model = Classifier(**config)
    batches = []
    for index in range(5):
        tokens = torch.randint(1, 30, (6, 12))
        lengths = torch.randint(4, 13, (6,))
        pad = torch.arange(12)[None, :] >= lengths[:, None]
        labels = (tokens * ~pad % 7 == 3).any(1).long()
        tokens = tokens.masked_fill(pad, 0)
        batches.append((tokens, pad, labels))
        classifiers.update({f"{name}/tokens{index}": tokens, f"{name}/padding{index}": pad,
                            f"{name}/labels{index}": labels})
    for key, parameter in model.named_parameters():
        classifiers[f"{name}/state/{key}"] = parameter.clone()

    def loss_of(batch):
        return F.cross_entropy(model(batch[0], batch[1]), batch[2], label_smoothing=0.05)

    loss = loss_of(batches[0])
    loss.backward()
    classifiers[f"{name}/logits"] = model(*batches[0][:2])
    classifiers[f"{name}/loss"] = loss
    for key, parameter in model.named_parameters():
        classifiers[f"{name}/grad/{key}"] = parameter.grad.clone()
    is_embedding = lambda key: "embedding" in key
    decay = [p for key, p in model.named_parameters() if p.dim() == 2 and not is_embedding(key)]
    rest = [p for key, p in model.named_parameters() if p.dim() != 2 or is_embedding(key)]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=1e-2, betas=(0.9, 0.98), eps=1e-8)
    curve = []
    for step in range(50):
        optimizer.zero_grad()
        loss = loss_of(batches[step % 5])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        curve.append(loss.detach())
    classifiers[f"{name}/curve"] = torch.stack(curve)
    print(name, "loss", curve[0].item(), "->", curve[-1].item())
save("classifiers.safetensors", classifiers)

# -- optimizers -----------------------------------------------------------------------------------
torch.manual_seed(13)
shapes = [(4, 3), (5,), (2, 2, 2)]
start = [torch.randn(shape) for shape in shapes]
gradients = [[3.0 * torch.randn(shape) for shape in shapes] for _ in range(20)]
optimizers = {f"start{i}": p for i, p in enumerate(start)}
for step, grads in enumerate(gradients):
    optimizers.update({f"grad{step}_{i}": g for i, g in enumerate(grads)})


def run(name, make):
    parameters = [p.clone().requires_grad_() for p in start]
    optimizer = make(parameters)
    for step, grads in enumerate(gradients):
        for p, g in zip(parameters, grads):
            p.grad = g.clone()
        total = torch.nn.utils.clip_grad_norm_(parameters, 4.0)
        optimizers[f"{name}/norm{step}"] = total
        optimizer.step()
        if step in (0, 19):
            optimizers.update({f"{name}/step{step}_{i}": p.clone() for i, p in enumerate(parameters)})


run("adamw", lambda p: torch.optim.AdamW(
    [{"params": p[:1], "weight_decay": 0.1}, {"params": p[1:], "weight_decay": 0.0, "lr": 3e-3}],
    lr=1e-2, betas=(0.9, 0.98), eps=1e-8))
run("adamw_maximize", lambda p: torch.optim.AdamW(p, lr=1e-2, maximize=True))
run("sgd", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01))
run("sgd_nesterov", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))
run("sgd_plain", lambda p: torch.optim.SGD(p, lr=0.1))
save("optimizers.safetensors", optimizers)
