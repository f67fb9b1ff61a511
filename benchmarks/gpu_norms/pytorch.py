"""The cases of gpu_norms in PyTorch, on the same GPU: microseconds of each, eager and by torch.compile.

Both as gpu_norms measures: a CUDA graph of several calls, each with tensors of its own, replayed after L2 was
overwritten; the median of nine replays. cuDNN is not among them: PyTorch reaches it for none of these norms.
"""

import math
import statistics

CUDNN = ("PyTorch calls cuDNN for batch_norm alone; its layer_norm and rms_norm are PyTorch's own kernels, "
         "and the other norms here are compositions")


def norms(torch):
    """{name: (function, shapes of its inputs from rows and width, outputs)}; names and order as in kernels.cpp."""
    F = torch.nn.functional

    def add_norm(norm):
        def function(x, residual, *weights):
            total = x + residual
            return norm(total, *weights), total
        return function

    def layer_norm(x, weight, bias):
        return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)

    def rms_norm(x, weight):
        return F.rms_norm(x, x.shape[-1:], weight, 1e-6)

    def poly_norm(x, weight, bias):
        def unit(u):
            return u * torch.rsqrt(u.square().mean(-1, keepdim=True) + 1e-6)
        return (weight[0] * unit(x**3) + weight[1] * unit(x**2) + weight[2] * unit(x) + bias,)

    def single(function):
        return lambda *inputs: (function(*inputs),)

    rows = lambda m, n: (m, n)
    column = lambda m, n: (n,)
    of = lambda *size: lambda m, n: size
    return {
        "layer_norm": (single(layer_norm), [rows, column, column], 1),
        "rms_norm": (single(rms_norm), [rows, column], 1),
        "add_layer_norm": (add_norm(layer_norm), [rows, rows, column, column], 2),
        "add_rms_norm": (add_norm(rms_norm), [rows, rows, column], 2),
        "dual_rms_norm": (lambda x, w1, w2: (rms_norm(x, w1), rms_norm(x, w2)), [rows, column, column], 2),
        "poly_norm": (poly_norm, [rows, of(3), of(1)], 1),
        "dyt": (single(lambda x, a, w, b: torch.tanh(a * x) * w + b), [rows, of(1), column, column], 1),
        "derf": (single(lambda x, a, w, b: torch.erf(a * x) * w + b), [rows, of(1), column, column], 1),
        "layer_scale": (single(lambda x, w: x * w), [rows, column], 1),
        "softcap": (single(lambda x: 2.0 * torch.tanh(x / 2.0)), [rows], 1),
    }


class Timer:
    def __init__(self, torch):
        self.torch = torch
        self.stream = torch.cuda.Stream()
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(2 * max(l2, 32 << 20), dtype=torch.uint8, device="cuda")

    def microseconds(self, launches):
        """Of one of `launches`, which have run on self.stream before."""
        torch = self.torch
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            for launch in launches:
                launch()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        samples = []
        for _ in range(12):
            self.flush.zero_()
            start.record()
            graph.replay()
            stop.record()
            stop.synchronize()
            samples.append(start.elapsed_time(stop) * 1e3)
        return statistics.median(samples[3:]) / len(launches)


def launches_of(torch, norm, direction, dtype, rows, width, calls, transform, device="cuda"):
    """One function a call, with tensors of its own; `transform` is torch.compile or nothing."""
    function, shapes, outputs = norm
    function = transform(function)
    backward = direction == "backward"
    result = []
    for _ in range(calls):
        inputs = [torch.randn(s(rows, width), dtype=dtype, device=device, requires_grad=backward) for s in shapes]
        if backward:
            cotangents = [torch.randn(rows, width, dtype=dtype, device=device) for _ in range(outputs)]
            results = function(*inputs)
            result.append(lambda r=results, i=inputs, c=cotangents: torch.autograd.grad(r, i, c, retain_graph=True))
        else:
            result.append(lambda i=inputs: function(*i))
    return result


def time_case(torch, timer, name, bytes_of_call):
    """{"eager": us, "compile": us}, or {} where PyTorch has no such case; a reason stands where a time is missing."""
    norm, direction, dtype, shape = name.split("/")
    table = norms(torch)
    if norm not in table:
        return {}
    rows, width = map(int, shape.split("x"))
    calls = int(min(max(2**29 / bytes_of_call, 2), 64))
    times = {}
    for mode in ("eager", "compile"):
        torch._dynamo.reset()
        transform = (lambda f: torch.compile(f, dynamic=False)) if mode == "compile" else (lambda f: f)
        try:
            with torch.cuda.stream(timer.stream):
                launches = launches_of(torch, table[norm], direction, getattr(torch, dtype), rows, width, calls,
                                       transform)
                for launch in launches:
                    launch()
            torch.cuda.synchronize()
            times[mode] = timer.microseconds(launches)
        except RuntimeError as error:  # out of memory, mostly
            times[mode] = None
            times[f"{mode}_because"] = str(error).splitlines()[0]
        launches = None
        torch.cuda.empty_cache()
        assert times[mode] is None or math.isfinite(times[mode])
    return times
