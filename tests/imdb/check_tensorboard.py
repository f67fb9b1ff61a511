#!/usr/bin/env python3
"""Reads event files with TensorBoard's own reader (pip install tensorboard).

    check_tensorboard.py TESTS   runs `TESTS "[.tensorboard]"` (imdb_tests), checks what it wrote
    check_tensorboard.py FOLDER  prints tags, steps and last values of a run's events folder
"""
import os
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def load(folder):
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def written_by(program, folder, **environment):
    subprocess.run([program, "[.tensorboard]"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, IMDB_EVENTS=folder, **environment))
    return load(folder)


def check_resumed(program):
    with tempfile.TemporaryDirectory() as folder:
        losses = written_by(program, folder, IMDB_EVENTS_RESUME="1").Scalars("train/loss")
        assert [e.step for e in losses] == list(range(1, 81)), losses
        assert all((e.value > 0) == (e.step <= 60) for e in losses)
    print("ok: of a run that was killed and resumed, TensorBoard keeps each step once")


def check_written_by(program):
    with tempfile.TemporaryDirectory() as folder:
        events = written_by(program, folder)
        losses = events.Scalars("train/loss")
        assert [e.step for e in losses] == list(range(1, 101)), losses
        assert all(abs(e.value - 1 / e.step) < 1e-7 for e in losses)
        assert all(a.wall_time <= b.wall_time for a, b in zip(losses, losses[1:]))
        text = events.Tensors("config")
        assert len(text) == 1 and text[0].step == 3
        assert text[0].tensor_proto.string_val[0].decode() == "**bold** `text` é"
        assert events.SummaryMetadata("config").plugin_data.plugin_name == "text"
    print("ok: TensorBoard reads 100 scalars and 1 text")


def show(folder):
    events = load(folder)
    for tag in sorted(events.Tags()["scalars"]):
        values = events.Scalars(tag)
        print(f"{tag:24} {len(values):6} points, steps {values[0].step} to {values[-1].step}, "
              f"last {values[-1].value:.6g}")
    for tag in events.Tags()["tensors"]:
        print(f"{tag:24} text of {len(events.Tensors(tag)[0].tensor_proto.string_val[0])} bytes")


if len(sys.argv) != 2:
    sys.exit(__doc__)
if os.path.isdir(sys.argv[1]):
    show(sys.argv[1])
else:
    check_written_by(sys.argv[1])
    check_resumed(sys.argv[1])
