"""Checks norma's safetensors files against the original library, in both directions.

    check_safetensors.py write FILE   writes the tensors below (this made tests/golden/python_written.safetensors)
    check_safetensors.py read FILE    checks that FILE holds exactly these tensors

tests/core/safetensors_test.cpp knows the same tensors. Needs the packages torch and safetensors.
"""

import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

METADATA = {"format": "pt", "note": 'quotes " and ünïcode'}


def tensors():
    count = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    return {
        "f64": count / 7,
        "f32": (count / 7).float(),
        "f16": (count / 7).half(),
        "bf16": (count / 7).bfloat16(),
        "i64": (count * 10**15).long() - 1,
        "i32": count.int() - 3,
        "bool": count % 2 == 0,
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
        "extremes": torch.tensor([float("inf"), float("-inf"), 1e-45, 3.4028234663852886e38]),
        "layer.0.weight ü": torch.ones(1, 1, 2),
    }


def read(path):
    expected = tensors()
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == METADATA, file.metadata()
        assert set(file.keys()) == set(expected), set(file.keys()) ^ set(expected)
        for name, value in expected.items():
            got = file.get_tensor(name)
            assert got.dtype == value.dtype and got.shape == value.shape, name
            assert torch.equal(got, value), name
    print(f"{path}: {len(expected)} tensors as expected")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "read"):
        sys.exit(__doc__)
    if sys.argv[1] == "write":
        save_file(tensors(), sys.argv[2], METADATA)
    else:
        read(sys.argv[2])
