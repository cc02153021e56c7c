#!/usr/bin/env python3
"""Runs the models on their inputs by onnxruntime: what the model tests compare with.

    expected.py --models build/models [NAME...]

Writes <models>/expected/<model>/output_<i>.npy and prints each row's top score. What is newer than its model
and inputs stays.
"""

import argparse
import json
import pathlib
import sys


def top_scores(models, name, output):
    labels = models / "labels" / f"{name}.json"
    if not labels.exists():
        return f"{name}: mean {output.mean():.4f}, largest {output.max():.4f}"
    labels = json.loads(labels.read_text())
    best = output.argmax(1)
    rows = [f"{labels['names'][b]} {row[b]:.4f}" for b, row in zip(best, output)]
    right = sum(labels["names"][b] == e for b, e in zip(best, labels["expected"]))
    shown = ", ".join(rows[:8]) + (", ..." if len(rows) > 8 else "")
    return f"{name}: {shown}; {right} of {len(rows)} as labelled"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of the models")
    parser.add_argument("names", nargs="*", help="models (default: all that have inputs)")
    arguments = parser.parse_args()
    models = arguments.models
    for name in arguments.names or sorted(p.stem for p in (models / "inputs").glob("*.npy")):
        model, rows = models / f"{name}.onnx", models / "inputs" / f"{name}.npy"
        folder = models / "expected" / name
        newest = max(model.stat().st_mtime, rows.stat().st_mtime)
        made = list(folder.glob("output_*.npy"))
        if made and min(p.stat().st_mtime for p in made) > newest:
            continue
        import numpy as np
        import onnxruntime

        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        outputs = session.run(None, {session.get_inputs()[0].name: np.load(rows)})
        folder.mkdir(parents=True, exist_ok=True)
        for i, output in enumerate(outputs):
            np.save(folder / f"output_{i}.npy", output)
        print(top_scores(models, name, outputs[0]))


if __name__ == "__main__":
    sys.exit(main())
