"""Golden values of two small language models in the shape of MiniMind, made with PyTorch in float64.

`make golden` runs this; so does, where torch and safetensors are,

    python tests/golden/make_lm.py

The committed values were made with PyTorch 2.15.0.

Writes lm.safetensors next to this file, and lm_checkpoint.safetensors: the float32 state_dict of the second model as
PyTorch programs save it, with the tied weight under one name. tests/nn/causal_lm_test.cpp reads both. The model below
is written from the formulas (Touvron et al. 2023, RoPE in complex numbers); its parameters have MiniMind's names.
"""

import pathlib

import safetensors.torch
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
here = pathlib.Path(__file__).parent


def rotate(x, theta):
    """x [batch, length, heads, width]; the pair (i, i + width / 2) is one complex number."""
    half = x.shape[-1] // 2
    position = torch.arange(x.shape[1], dtype=torch.float64)
    angle = position[:, None] * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)[:, None, :]
    return torch.cat([turned.real, turned.imag], -1)


class Attention(nn.Module):
    def __init__(self, d, heads, kv_heads, theta, eps, qk_norm):
        super().__init__()
        self.heads, self.kv_heads, self.width, self.theta = heads, kv_heads, d // heads, theta
        self.q_proj = nn.Linear(d, heads * self.width, bias=False)
        self.k_proj = nn.Linear(d, kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(d, kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(heads * self.width, d, bias=False)
        self.q_norm = nn.RMSNorm(self.width, eps=eps) if qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(self.width, eps=eps) if qk_norm else nn.Identity()

    def forward(self, x):
        split = lambda t, n: t.view(*x.shape[:2], n, self.width)
        q = rotate(self.q_norm(split(self.q_proj(x), self.heads)), self.theta)
        k = rotate(self.k_norm(split(self.k_proj(x), self.kv_heads)), self.theta)
        v = split(self.v_proj(x), self.kv_heads)
        of_query = torch.arange(self.heads) // (self.heads // self.kv_heads)
        scores = torch.einsum("bqhw,bkhw->bhqk", q, k[:, :, of_query]) * self.width**-0.5
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.o_proj(torch.einsum("bhqk,bkhw->bqhw", weights, v[:, :, of_query]).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(d, hidden, bias=False)
        self.up_proj = nn.Linear(d, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, d, hidden, eps, **attention):
        super().__init__()
        self.self_attn = Attention(d, eps=eps, **attention)
        self.input_layernorm = nn.RMSNorm(d, eps=eps)
        self.post_attention_layernorm = nn.RMSNorm(d, eps=eps)
        self.mlp = FeedForward(d, hidden)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, vocab, d, layers, eps, **block):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Block(d, eps=eps, **block) for _ in range(layers))
        self.norm = nn.RMSNorm(d, eps=eps)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class LanguageModel(nn.Module):
    def __init__(self, vocab, d, **model):
        super().__init__()
        self.model = Model(vocab, d, **model)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


shape = dict(vocab=29, d=16, layers=2, hidden=24, heads=4, kv_heads=2, theta=1e6)
tensors = {}
for name, config in {"v2": dict(eps=1e-5, qk_norm=False), "v3": dict(eps=1e-6, qk_norm=True)}.items():
    torch.manual_seed(17)
    model = LanguageModel(**shape, **config)
    for parameter in model.parameters():  # away from ones; exact in float32, so that a checkpoint holds the same
        parameter.data = (torch.randn_like(parameter) * 0.3 + (0.8 if parameter.dim() == 1 else 0)).float().double()
    tokens = torch.randint(0, shape["vocab"], (2, 11))
    logits = model(tokens)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    tensors.update({f"{name}/tokens": tokens, f"{name}/logits": logits, f"{name}/loss": loss})
    for key, parameter in model.named_parameters():  # the tied weight once
        tensors[f"{name}/state/{key}"] = parameter
        tensors[f"{name}/grad/{key}"] = parameter.grad
    print(name, "loss", loss.item(), "parameters", sum(p.numel() for p in model.parameters()))

tensors = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
safetensors.torch.save_file(tensors, here / "lm.safetensors", metadata={"torch": torch.__version__})
safetensors.torch.save_model(model.float(), str(here / "lm_checkpoint.safetensors"))
for name in ["lm.safetensors", "lm_checkpoint.safetensors"]:
    print(name, (here / name).stat().st_size, "bytes")
