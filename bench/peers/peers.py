#!/usr/bin/env python3
"""Times models on Turnout and onnxruntime, one process each, taking turns. See README.md.

    peers.py [--models opennsfw,mlp] [--batches 1,8,64] [--threads 1,2] [--rounds 7] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = pathlib.Path(os.environ.get("TURNOUT_MODELS") or ROOT / "build" / "models")
SPIN_COUNT = "20000"  # as tools/main.cpp


def make_mlp(path):
    """784-512-512-10 with relu and softmax, seeded weights."""
    from onnx import TensorProto, helper, numpy_helper, save

    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    sizes = [784, 512, 512, 10]
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        scale = 1 / np.sqrt(rows)
        for name, shape in ((f"w{i}", (rows, columns)), (f"b{i}", (columns,))):
            data = rng.uniform(-scale, scale, shape).astype(np.float32)
            weights.append(numpy_helper.from_array(data, name))
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [f"g{i}"]))
        last = i == len(sizes) - 2
        value = "y" if last else f"r{i}"
        nodes.append(helper.make_node("Softmax" if last else "Relu", [f"g{i}"], [value]))
    graph = helper.make_graph(
        nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 784])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, path)


def inputs_for(model, batch):
    if model == "opennsfw":
        rows = np.load(MODELS / "inputs" / "opennsfw.npy")
    else:
        rows = np.random.default_rng(1).uniform(0, 1, (64, 784)).astype(np.float32)
    return np.ascontiguousarray(np.resize(rows, (batch, *rows.shape[1:])))


class Worker:
    """A peer in a process of its own."""

    def __init__(self, peer, model, batch, threads, feed):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        if peer == "turnout":
            environment.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), peer, str(model), str(threads), str(feed), str(batch)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.ask("ready")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"peers: a worker ended at '{command}'")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(model, path, batch, threads, rounds, folder):
    feed = folder / f"{model}-{batch}.npy"
    np.save(feed, inputs_for(model, batch))
    workers = {peer: Worker(peer, path, batch, threads, feed) for peer in ("turnout", "onnxruntime")}
    times = {peer: [] for peer in workers}
    outputs = {peer: np.array(worker.ask("output")) for peer, worker in workers.items()}
    for turn in range(rounds):
        order = list(workers) if turn % 2 == 0 else list(workers)[::-1]
        for peer in order:
            times[peer] += workers[peer].ask("run 0.25")
    for worker in workers.values():
        worker.close()
    expected = outputs["onnxruntime"]
    difference = np.abs(outputs["turnout"] - expected).max() / np.ptp(expected)
    ours, theirs = (statistics.median(times[p]) for p in ("turnout", "onnxruntime"))
    quartiles = statistics.quantiles(times["turnout"], n=4) if len(times["turnout"]) > 3 else [ours] * 3
    return {"model": model, "batch": batch, "threads": threads, "turnout_s": ours, "onnxruntime_s": theirs,
            "ratio": ours / theirs, "spread": (quartiles[2] - quartiles[0]) / ours,
            "difference": float(difference), "runs": len(times["turnout"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="opennsfw,mlp")
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print(f"{'model':<10} {'batch':>5} {'threads':>7} {'turnout':>11} {'onnxruntime':>11} {'ratio':>6} "
          f"{'spread':>7} {'difference':>10}  runs (medians, measured)")
    for model in options.models.split(","):
        path = MODELS / "opennsfw.onnx" if model == "opennsfw" else folder / "mlp.onnx"
        if model == "mlp" and not path.exists():
            make_mlp(path)
        for threads in map(int, options.threads.split(",")):
            for batch in map(int, options.batches.split(",")):
                row = measure(model, path, batch, threads, options.rounds, folder)
                rows.append(row)
                print(f"{model:<10} {batch:>5} {threads:>7} {row['turnout_s'] * 1e6:>8.1f} us "
                      f"{row['onnxruntime_s'] * 1e6:>8.1f} us {row['ratio']:>6.2f} {row['spread']:>6.0%} "
                      f"{row['difference']:>11.1e}  {row['runs']}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    unequal = [r for r in rows if not r["difference"] <= 1e-4]
    if unequal:
        raise SystemExit(f"peers: outputs differ: {unequal}")


if __name__ == "__main__":
    main()
