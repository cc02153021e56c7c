#!/usr/bin/env python3
"""The program's commands: wrong use gets one clear error, plans with given costs are optimal, JSON has its form."""

import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, save

from program import PROGRAM, every_op, providers

MODELS = pathlib.Path(os.environ["TURNOUT_MODELS"])
DIGITS = MODELS / "digits-mlp.onnx"
failures = 0
PLANS = {"run", "plan", "compare", "crossover", "advise", "atlas"}


def turnout(*arguments, **variables):
    # What other programs measured here, perhaps while the machine was busy, must not decide a test.
    if arguments and arguments[0] in PLANS and "TURNOUT_CACHE" not in variables:
        arguments = [*arguments, "--no-history"]
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAIL: {what}")


def has_virtual():
    return providers()[1]


def check_error(what, code, needle, *arguments):
    got, out, error = turnout(*arguments)
    lines = error.strip().splitlines()
    check(got == code, f"{what}: exit code {got}, expected {code}: {error}")
    check(lines and needle in error, f"{what}: the error names {needle!r}: {error!r}")
    check(sum(line.startswith("turnout:") for line in lines) <= 1, f"{what}: one error: {error!r}")


def small_model(folder, nodes, inputs=("x",), outputs=("y",), name="small.onnx"):
    def info(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 4]) for n in names]

    graph = helper.make_graph(nodes, "small", info(inputs), info(outputs))
    path = folder / name
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def check_errors(folder):
    whole = DIGITS.read_bytes()
    cut = folder / "cut.onnx"
    cut.write_bytes(whole[: len(whole) // 2])
    check_error("a cut model", 1, "cut.onnx", "run", cut, "--batch", 1)
    cycle = small_model(folder, [helper.make_node("Add", ["x", "b"], ["a"], "first"),
                                 helper.make_node("Relu", ["a"], ["b"], "second"),
                                 helper.make_node("Relu", ["b"], ["y"], "third")], name="cycle.onnx")
    check_error("a cycle", 1, "cycle", "run", cycle, "--batch", 1)
    unknown = small_model(folder, [helper.make_node("Frobnicate", ["x"], ["y"], "odd one")], name="unknown.onnx")
    code, _, error = turnout("run", unknown, "--batch", 1)
    check(code == 1 and "odd one" in error and "Frobnicate" in error and "17" in error,
          f"an unknown op names node, op and opset: {error!r}")
    wrong = folder / "wrong.npy"
    np.save(wrong, np.zeros((2, 63), np.float32))
    check_error("a wrong shape", 2, "pixels", "run", DIGITS, "--input", f"pixels={wrong}", *every_op())
    np.save(wrong, np.zeros((2, 8, 8), np.float32))
    check_error("a wrong rank", 2, "pixels", "run", DIGITS, "--input", f"pixels={wrong}", *every_op())
    check_error("a missing model", 1, "nothing.onnx", "run", folder / "nothing.onnx")
    check_error("a missing input file", 1, "nothing.npy", "run", DIGITS, "--input", f"pixels={folder}/nothing.npy")
    check_error("an unknown input", 2, "pixles", "run", DIGITS, "--input", f"pixles={wrong}")
    check_error("an unknown device", 1, "tpu", "run", DIGITS, "--batch", 1, "--device", "tpu")
    check_error("an unknown provider", 1, "abacus", "run", DIGITS, "--batch", 1, "--providers", "abacus")
    check_error("a missing batch", 2, "N", "run", DIGITS)
    check_error("an unknown option", 2, "--frob", "run", DIGITS, "--frob")
    check_error("no command", 2, "subcommand", )
    check_error("a bad batch", 2, "seven", "compare", DIGITS, "--batch", "seven")
    if has_virtual():
        check_error("an unknown profile", 1, "h9000", "run", DIGITS, "--batch", 1, "--device", "virtual:h9000")
        check_error("a device too small for the weights", 1, "fit", "run", MODELS / "opennsfw.onnx", "--batch", 1,
                    "--device", f"virtual:{tiny_profile(folder)}")


def check_shape_inputs(folder):
    """A model whose shapes depend on an input's value: the value has to be given, and counts."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Relu", ["r"], ["y"])], "reshapes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6]),
         helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = folder / "reshapes.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    check_error("a missing shape", 2, "shape", "run", model)
    x = np.arange(12, dtype=np.float32).reshape(2, 6) - 5
    np.save(folder / "x.npy", x)
    for shape in ([3, 4], [12, -1]):
        np.save(folder / "shape.npy", np.array(shape, np.int64))
        given = ["--input", f"x={folder}/x.npy", "--input", f"shape={folder}/shape.npy"]
        code, _, error = turnout("run", model, *given, *every_op(), "--output-dir", folder)
        check(code == 0, f"a given shape {shape}: {error!r}")
        check(np.array_equal(np.load(folder / "y.npy"), np.maximum(x, 0).reshape(shape)), f"reshaped to {shape}")
        check(turnout("plan", model, *given, *every_op())[0] == 0, f"plan with a given shape {shape}")


def tiny_profile(folder):
    """The T4's profile with a megabyte of memory."""
    source = pathlib.Path(os.environ["TURNOUT_SOURCE"]) / "backends" / "gpu" / "profiles" / "t4.json"
    profile = json.loads(source.read_text())

    def shrink(node):
        for key, value in node.items():
            if key == "memory_bytes":
                value["value"] = 1 << 20
            elif isinstance(value, dict):
                shrink(value)

    shrink(profile)
    path = folder / "tiny.json"
    path.write_text(json.dumps(profile))
    return path


def random_graph(rng, folder):
    """A model of up to 9 ops with several outputs, fan-out, and a value that is input and output."""
    nodes, values = [], ["x"]
    for i in range(rng.randint(2, 9)):
        kind = rng.choice(["Relu", "Add", "Split"])
        if kind == "Split":
            nodes.append(helper.make_node("Split", [rng.choice(values)], [f"v{i}a", f"v{i}b"], f"n{i}", axis=0))
            values += [f"v{i}a", f"v{i}b"]
        else:
            inputs = [rng.choice(values) for _ in range(2 if kind == "Add" else 1)]
            nodes.append(helper.make_node(kind, inputs, [f"v{i}"], f"n{i}"))
            values.append(f"v{i}")
    used = {name for node in nodes for name in node.input}
    outputs = [v for v in values if v not in used] or [values[-1]]
    if rng.random() < 0.5:
        outputs.append(rng.choice(values))
    return nodes, sorted(set(outputs)), small_model(folder, nodes, ["x"], sorted(set(outputs)), "random.onnx")


def serial_sum(nodes, outputs, costs, transfers, devices):
    where = {"x": 0}
    wanted = {output: {0} for output in outputs}
    total = 0
    for node, device in zip(nodes, devices):
        total += costs[node.name][device]
        for name in node.input:
            wanted.setdefault(name, set()).add(device)
        for name in node.output:
            where[name] = device
    for name, targets in wanted.items():
        h2d, d2h = transfers.get(name, (0, 0))
        if where[name] == 0 and 1 in targets:
            total += h2d
        if where[name] == 1 and 0 in targets:
            total += d2h
    return total


def check_costs(folder):
    rng = random.Random(7)
    table, out = folder / "costs.json", folder / "plan.json"
    for case in range(40):
        nodes, outputs, model = random_graph(rng, folder)
        costs = {n.name: [rng.choice([0, 1, rng.random()]), rng.choice([0, 1, rng.random()])] for n in nodes}
        values = ["x"] + [name for n in nodes for name in n.output]
        transfers = {v: [rng.random(), rng.random() * 0.5] for v in values if rng.random() < 0.8}
        table.write_text(json.dumps({"devices": ["cpu", "virtual:v100"], "nodes": costs, "transfers": transfers}))
        code, _, error = turnout("plan", model, "--devices", "cpu,virtual:v100", "--costs", table, "--objective",
                                 "serial", "--json", out)
        check(code == 0, f"plan with costs, case {case}: {error}")
        plan = json.loads(out.read_text())
        best = min(serial_sum(nodes, outputs, costs, transfers, devices)
                   for devices in itertools.product((0, 1), repeat=len(nodes)))
        chosen = [["cpu", "virtual:v100"].index(plan["placement"][n.name]) for n in nodes]
        check(abs(plan["predicted_s"] - best) <= 1e-9, f"case {case}: {plan['predicted_s']} but {best} is possible")
        check(abs(serial_sum(nodes, outputs, costs, transfers, chosen) - best) <= 1e-9,
              f"case {case}: the placement costs what is said")
    del costs[nodes[0].name]
    table.write_text(json.dumps({"devices": ["cpu", "virtual:v100"], "nodes": costs, "transfers": {}}))
    check_error("a node without costs", 2, nodes[0].name, "plan", model, "--devices", "cpu,virtual:v100", "--costs", table)


def check_compare(folder):
    out = folder / "compare.json"
    devices = "cpu,virtual:v100,auto" if has_virtual() else "cpu,auto"
    code, text, error = turnout("compare", DIGITS, "--input", f"pixels={MODELS}/inputs/digits-mlp.npy", "--batch",
                                "1..64", "--devices", devices, "--budget", 0.05, "--json", out, *every_op())
    check(code == 0, f"compare: {error}")
    table = json.loads(out.read_text())
    check(len(table["rows"]) == 7 * len(devices.split(",")), "compare: a row for each device and batch")
    for row in table["rows"]:
        keys = {"device", "batch", "latency_s", "throughput_per_s", "transfer_s", "memory_bytes", "evidence"}
        check("skipped" in row or keys <= row.keys(), f"compare: keys of {row}")
        virtual = row["device"].startswith("virtual:")
        check("skipped" in row or (row["evidence"] == "predicted") == virtual or row["device"] == "auto",
              f"compare: evidence of {row['device']}")
    check(table["outputs_agree"], "compare: outputs agree")
    check("crossover" in text and "evidence" in text, "compare: the table is printed")
    check(table["machine"]["cpu"] and os.uname().nodename not in json.dumps(table["machine"]), "compare: the machine, unnamed")
    check_report(folder, out)


def check_report(folder, table):
    other, html, merged = folder / "other.json", folder / "merged.html", folder / "merged.json"
    figures = json.loads(table.read_text())
    figures["machine"]["cpu"] = "another CPU"
    other.write_text(json.dumps(figures))
    code, text, error = turnout("report", table, other, "--html", html, "--json", merged)
    check(code == 0 and "cpu [B]" in text and "another CPU" in text, f"report: {error}")
    rows = json.loads(merged.read_text())["rows"]
    check(len(rows) == 2 * len(figures["rows"]), "report: the rows of both")
    check({(row["host"], row["host_device"]) for row in rows} >= {("A", "cpu"), ("B", "cpu")}, "report: keyed by host and device")
    check("another CPU" in html.read_text(), "report: the machines are in the page")
    check_error("one file twice", 2, "another file", "report", table, table)
    check_error("a merged file again", 2, "merged.json", "report", table, merged)
    figures["model_digest"] = "0" * 16
    other.write_text(json.dumps(figures))
    check_error("another model", 2, "different models", "report", table, other)
    other.write_bytes(table.read_bytes()[:1000])
    check_error("a cut file", 2, "other.json", "report", table, other)
    other.write_bytes(bytes(range(256)) * 8)
    check_error("noise", 2, "other.json", "report", other)
    check_error("a missing file", 1, "nowhere.json", "report", folder / "nowhere.json")


def check_plan_diff(folder):
    plans = []
    for batch in (1, 1024):
        plans.append(folder / f"plan{batch}.json")
        code, _, error = turnout("plan", DIGITS, "--batch", batch, "--devices", "cpu,virtual:v100", "--json", plans[-1],
                                 "--dot", folder / "plan.dot")
        check(code == 0, f"plan --json --dot: {error}")
    dot = (folder / "plan.dot").read_text()
    check(dot.startswith("digraph") and "layer1" in dot and "predicted" in dot, f"plan --dot: {dot[:200]}")
    out = folder / "diff.json"
    code, text, error = turnout("plan-diff", *plans, "--json", out)
    check(code == 0 and "nodes moved" in text, f"plan-diff: {error}")
    diff = json.loads(out.read_text())
    places = [json.loads(plan.read_text())["placement"] for plan in plans]
    moved = {name for name in places[0] if places[0][name] != places[1].get(name)}
    check(moved and {node["node"] for node in diff["moved"]} == moved, f"plan-diff: {moved} moved: {diff['moved']}")
    check(all(node["why"] for node in diff["moved"]), "plan-diff: every move has its reason")
    check_error("plan-diff of no plan", 2, "diff.json", "plan-diff", plans[0], out)


def check_crossover(folder):
    out = folder / "crossover.json"
    code, text, error = turnout("crossover", DIGITS, "--batch", "1..512", "--devices", "cpu,virtual:v100,auto", "--per-op",
                                "--json", out)
    check(code == 0 and "fastest single device" in text, f"crossover: {error}")
    report = json.loads(out.read_text())
    for curve in (report["single"], report["plan"]):
        intervals = curve["intervals"]
        check(intervals[0]["first"] == 1 and intervals[-1]["last"] == 512, f"crossover: the whole axis: {intervals}")
        check(all(a["last"] + 1 == b["first"] for a, b in zip(intervals, intervals[1:])), f"crossover: no gaps: {intervals}")
        check(len(curve["crossings"]) == len(intervals) - 1, "crossover: a crossing between every two intervals")
        for crossing, after in zip(curve["crossings"], intervals[1:]):
            check(crossing["batch"] == after["first"] and 1 <= crossing["low"] <= crossing["batch"] <= crossing["high"],
                  f"crossover: the range holds the crossing: {crossing}")
    check([point["batch"] for point in report["curves"]] == [2**i for i in range(10)], "crossover: the curves")
    check(all(len(point["alone"]) == 2 for point in report["curves"]), "crossover: both devices at each point")
    check({op["node"] for op in report["ops"]} >= {"layer1", "softmax"}, "crossover: every op")
    for bad in ("8..1", "0..4", "7", "a..b", "1..99999999"):
        check_error(f"a bad range {bad}", 2, bad.split(".")[0], "crossover", DIGITS, "--batch", bad)
    check_error("one device", 2, "two devices", "crossover", DIGITS, "--devices", "cpu,auto")


def check_atlas(folder):
    out = folder / "atlas.json"
    code, text, error = turnout("atlas", DIGITS, "--batch", "1..64", "--cpu-threads", 1, "--links", "1,2", "--json", out)
    check(code == 0 and "dtype is not varied" in text, f"atlas: {error}")
    cells = json.loads(out.read_text())["cells"]
    check(len(cells) == 4 and {cell["weights"] for cell in cells} == {"resident", "streamed"}, f"atlas: {cells}")
    check_error("atlas: a bad link", 2, "fast", "atlas", DIGITS, "--links", "fast")
    check_error("atlas: the CPU against itself", 2, "cpu", "atlas", DIGITS, "--devices", "cpu")
    check_error("atlas: no threads", 2, "--cpu-threads", "atlas", DIGITS, "--cpu-threads", 0)


def check_plan_options():
    """Weights that are copied at every run or once in so many, and a device that is required."""
    seconds = {}
    for name, options in {"free": [], "shared": ["--expected-runs", 10], "streamed": ["--weights", "streamed"]}.items():
        code, text, error = turnout("plan", DIGITS, "--batch", 64, "--devices", "virtual:v100", *options)
        check(code == 0, f"plan {name}: {error}")
        seconds[name] = text
    check("copied once in 10 runs" in seconds["shared"] and "(predicted)" in seconds["shared"], "plan: shared uploads are told")
    check("copied at every run" in seconds["streamed"], "plan: streamed weights are told")
    check_error("both", 2, "--expected-runs", "plan", DIGITS, "--batch", 1, "--weights", "streamed", "--expected-runs", 3)
    check_error("no runs", 2, "--expected-runs", "plan", DIGITS, "--batch", 1, "--expected-runs", 0)
    for command, option in (("plan", "--devices"), ("run", "--device")):
        both = [command, DIGITS, "--batch", 1, option, "cpu,virtual:v100", "--require-device"]
        check_error(f"{command}: a required device", 1, "layer1", *both, "virtual:v100")
        check_error(f"{command}: a required device that isn't there", 2, "virtual:t4", *both, "virtual:t4")
        code, _, error = turnout(command, DIGITS, "--batch", 1, option, "virtual:v100", "--require-device", "virtual:v100")
        check(code == 0, f"{command}: everything on the required device: {error}")


def check_history(folder):
    """What one program measured prices the next one's plan, unless that isn't wanted."""
    cache, out = str(folder / "cache"), folder / "plan.json"

    def plan(batch, *options):
        code, _, error = turnout("plan", DIGITS, "--batch", batch, "--json", out, *every_op(), *options, TURNOUT_CACHE=cache)
        check(code == 0, f"history: plan: {error}")
        told = json.loads(out.read_text())
        return told["evidence"], told["predicted_s"]

    def evidence(batch, *options):
        return plan(batch, *options)[0]

    def run(batch, *options):
        for _ in range(10):
            code, text, error = turnout("run", DIGITS, "--batch", batch, "--repeat", 20, *every_op(), *options, TURNOUT_CACHE=cache)
            check(code == 0, f"history: run: {error}")
            other_work = re.search(r"other work during (\d+) of", text)
            if not other_work or int(other_work[1]) <= 10:
                return True
        print("not checked: how history is used: this machine has other work all the time")
        return False

    unknown = evidence(8)
    check(unknown != "measured", "history: nothing is known at first")
    run(8, "--no-history")
    check(evidence(8) == unknown and not list(pathlib.Path(cache).glob("history-*")), "history: --no-history keeps nothing")
    if not run(8):
        return
    check(evidence(8) == "measured", "history: the next program plans with it")
    check(evidence(8, "--no-history") == unknown, "history: --no-history plans without it")
    alone = plan(12)
    check(alone[0] == unknown, "history: one batch says nothing of another")
    if not run(16):
        return
    low, between, high = plan(8), plan(12), plan(16)
    check(between[0] == "calibrated" and low[0] == high[0] == "measured", f"history: two say something of those between: {between}")
    ends = sorted([low[1], high[1]])
    check(ends[0] <= between[1] <= ends[1], f"history: a straight line between two batches: {low} {between} {high}, before {alone}")
    for file in pathlib.Path(cache).glob("history-*"):
        file.write_text(file.read_text()[:100])
    check(evidence(8) == unknown, "history: a damaged file counts for nothing")


def check_gate():
    code, text, error = turnout("run", DIGITS, "--batch", 8, "--device", "cpu,virtual:v100", "--gate", 1)
    check(code == 0 and "kept unmeasured: virtual:v100 is emulated" in text, f"gate: {text}{error}")
    check_error("gate: a negative time", 2, "--gate", "run", DIGITS, "--batch", 8, "--gate", -1)


def check_advise(folder):
    out, tiny = folder / "advice.json", tiny_profile(folder)
    code, text, error = turnout("advise", MODELS / "opennsfw.onnx", "--batch", "1..16", "--devices",
                                f"virtual:{tiny},cpu,virtual:v100,virtual:h100", "--objective", "energy", "--json", out)
    check(code == 0, f"advise: {error}")
    ranked = json.loads(out.read_text())["ranked"]
    check([entry["rank"] for entry in ranked] == [1, 2, 3, 4], f"advise: ranks {ranked}")
    names = [entry["device"] for entry in ranked]
    check({names[0], names[1]} == {"virtual:v100", "virtual:h100"}, f"advise: boards with a TDP first: {names}")
    reasons = {entry["device"]: entry.get("refusal", "") for entry in ranked}
    check("fit" in reasons[f"virtual:{tiny}"] and "TDP" in reasons["cpu"], f"advise: reasons {reasons}")
    check("upper bound" in text and "predicted" in text, "advise: labels")
    code, text, error = turnout("advise", DIGITS, "--batch", "1,64")
    check(code == 0 and "virtual:mi300x" in text and "virtual:t4" in text, f"advise: every shipped profile: {error}")
    code, _, error = turnout("advise", DIGITS, "--batch", "1,64", "--devices", "virtual:t4,virtual:l4", "--objective", "price",
                             "--price", "t4=2.5", "--json", out)
    check(code == 0 and json.loads(out.read_text())["ranked"][0]["device"] == "virtual:t4", f"advise: price: {error}")
    check_error("a price of nothing", 2, "t5", "advise", DIGITS, "--price", "t5=1")
    check_error("a price that is none", 2, "cheap", "advise", DIGITS, "--price", "t4=cheap")
    check_error("no price", 2, "--price", "advise", DIGITS, "--objective", "price")
    check_error("an unknown profile", 1, "h9000", "advise", DIGITS, "--devices", "virtual:h9000")


def main():
    with tempfile.TemporaryDirectory(prefix="turnout-test-") as name:
        folder = pathlib.Path(name)
        for command in ("run", "plan", "compare", "devices", "verify", "crossover", "report", "plan-diff", "advise", "atlas"):
            code, text, _ = turnout(command, "--help")
            check(code == 0 and "--" in text, f"{command} --help")
        check_errors(folder)
        check_shape_inputs(folder)
        if has_virtual():
            check_costs(folder)
            check_crossover(folder)
            check_plan_diff(folder)
            check_advise(folder)
            check_atlas(folder)
            check_plan_options()
            check_gate()
        else:
            print("plans with given costs skipped: this build has no virtual device")
        check_compare(folder)
        check_history(folder)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
