"""Checks norma's safetensors files against the original library, in both directions.

    check_safetensors.py TESTS        runs `TESTS "[.python]"` (core_tests), checks the file that it wrote
    check_safetensors.py write FILE   writes the tensors below (this made tests/golden/python_written.safetensors)

tests/core/safetensors_test.cpp knows the same tensors. Needs the packages numpy and safetensors; `write` needs torch,
too: numpy has no bfloat16, which stands here as the upper half of float32.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors

METADATA = {"format": "pt", "note": 'quotes " and ünïcode'}


def tensors():
    count = np.arange(6, dtype=np.float64).reshape(2, 3)
    bits = (count / 7).astype(np.float32).view(np.uint32)
    nearest_even = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return {
        "f64": ("F64", count / 7),
        "f32": ("F32", (count / 7).astype(np.float32)),
        "f16": ("F16", (count / 7).astype(np.float16)),
        "bf16": ("BF16", nearest_even.astype(np.uint16)),
        "i64": ("I64", (count * 10**15).astype(np.int64) - 1),
        "i32": ("I32", count.astype(np.int32) - 3),
        "bool": ("BOOL", count % 2 == 0),
        "scalar": ("F32", np.array(2.5, np.float32)),
        "empty": ("F32", np.zeros((0, 4), np.float32)),
        "extremes": ("F32", np.array([np.inf, -np.inf, 1e-45, 3.4028234663852886e38], np.float32)),
        "layer.0.weight ü": ("F32", np.ones((1, 1, 2), np.float32)),
    }


def read(path):
    expected = tensors()
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == METADATA, file.metadata()
    got = dict(safetensors.deserialize(path.read_bytes()))
    assert set(got) == set(expected), set(got) ^ set(expected)
    for name, (dtype, value) in expected.items():
        assert got[name]["dtype"] == dtype, (name, got[name]["dtype"])
        assert tuple(got[name]["shape"]) == value.shape, (name, got[name]["shape"])
        assert bytes(got[name]["data"]) == value.tobytes(), name
    print(f"ok: Python's safetensors {safetensors.__version__} reads {len(expected)} tensors as expected")


def check_written_by(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "norma_written.safetensors"
        subprocess.run([program, "[.python]"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, NORMA_SAFETENSORS=str(path)))
        read(path)


def write(path):
    import torch
    from safetensors.torch import save_file

    def to_torch(dtype, value):
        tensor = torch.from_numpy(value)
        return tensor.view(torch.bfloat16) if dtype == "BF16" else tensor

    save_file({name: to_torch(*pair) for name, pair in tensors().items()}, path, METADATA)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        check_written_by(sys.argv[1])
    elif len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        sys.exit(__doc__)
