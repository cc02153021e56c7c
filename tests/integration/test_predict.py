#!/usr/bin/env python3
"""`turnout predict`: the JSON has its form, calibration is chosen from shapes alone, wrong use gets one clear error."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = os.environ["TURNOUT_BIN"]
TABLES = pathlib.Path(os.environ["TURNOUT_SOURCE"]) / "tests" / "data" / "deepbench"
SKIPPED = 77
failures = 0


def turnout(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAIL: {what}")


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def predict(folder, *arguments):
    out = folder / "out.json"
    code, text, error = turnout("predict", *arguments, "--json", out)
    check(code == 0, f"predict {arguments}: exit code {code}: {error}")
    return json.loads(out.read_text()), text


def check_error(what, code, needle, *arguments):
    got, _, error = turnout("predict", *arguments)
    check(got == code, f"{what}: exit code {got}, expected {code}: {error}")
    check(needle in error, f"{what}: the error names {needle!r}: {error!r}")
    check(len(error.strip().splitlines()) == 1, f"{what}: one error: {error!r}")


def check_form(folder):
    table = TABLES / "p100_fp32.csv"
    rows = read(table)
    result, text = predict(folder, "--device", "virtual:p100", "--ops", table)
    check([row["index"] for row in result["rows"]] == list(range(len(rows))), "one row a row of the table, in order")
    for given, row in zip(rows, result["rows"]):
        check((row["op"], row["pass"]) == (given["op"], given["pass"]), f"row {row['index']}: op and pass")
        check(abs(row["given_ms"] - float(given["time_ms"])) < 1e-9, f"row {row['index']}: the given time")
        check(row["predicted_ms"] > 0 and row["evidence"] == "predicted", f"row {row['index']}: predicted")
    check(result["calibration"] == [], "no calibration unless asked for")
    check("learned on v100, mi25" in text, "a device's own tables are left out, and it says so")
    check(len(text.splitlines()) > len(rows) and "error conv bwd_filter" in text, "rows and errors are printed")
    for summary in result["errors"]:
        own = [abs(r["predicted_ms"] / r["given_ms"] - 1) for r in result["rows"]
               if summary["what"] in (r["op"], f"{r['op']} {r['pass']}")]
        check(abs(sum(own) / len(own) - summary["mean"]) < 1e-9, f"mean error of {summary['what']}")


def check_calibration(folder):
    rows = read(TABLES / "mi25_fp32.csv")
    device = ("--device", "virtual:mi25", "--calibrate-with", 16, "--quiet")
    full, _ = predict(folder, *device, "--ops", TABLES / "mi25_fp32.csv")
    chosen = full["calibration"]
    check(len(chosen) == 16 and chosen == sorted(set(chosen)), "16 rows are chosen")
    few = [dict(row, time_ms=row["time_ms"] if i in chosen else "") for i, row in enumerate(rows)]
    part, _ = predict(folder, *device, "--ops", write(folder / "few.csv", few))
    check(part["calibration"] == chosen, "times play no part in the choice")
    for a, b in zip(full["rows"], part["rows"]):
        measured = a["index"] in chosen
        check(a["evidence"] == ("measured" if measured else "calibrated"), f"row {a['index']}: evidence")
        check(a["predicted_ms"] == b["predicted_ms"], f"row {a['index']}: only measurements count")
        check(measured or b["given_ms"] is None, f"row {a['index']}: an empty time stays empty")
    few[chosen[5]]["time_ms"] = ""
    check_error("a calibration row without a time", 2, f" {chosen[5]} (index from 0)", "--device", "virtual:mi25",
                "--calibrate-with", 16, "--ops", write(folder / "fewer.csv", few))


def check_two(folder):
    tables = f"{TABLES / 'v100_fp32.csv'},{TABLES / 'p100_fp32.csv'}"
    result, text = predict(folder, "--device", "virtual:v100,virtual:p100", "--ops", tables, "--quiet")
    given = {}
    for side in (result, result["other"]):
        for row, line in zip(side["rows"], read(TABLES / ("v100_fp32.csv" if side is result else "p100_fp32.csv"))):
            key = tuple(value for name, value in line.items() if name not in ("device", "time_ms"))
            given.setdefault(key, {}).setdefault(side is result, row)
    counted = right = 0
    for pair in given.values():
        if len(pair) < 2:
            continue
        ratio = pair[True]["given_ms"] / pair[False]["given_ms"]
        if not 0.8 < ratio < 1.25:
            counted += 1
            right += (ratio > 1) == (pair[True]["predicted_ms"] > pair[False]["predicted_ms"])
    check(counted > 300, "the two tables share shapes")
    check(abs(right / counted - result["decisions"]["accuracy"]) < 0.01, "decision accuracy is what it says")
    check("which of the two is faster" in text, "decision accuracy is printed")


def check_errors(folder):
    table = TABLES / "v100_fp32.csv"
    lines = table.read_text().splitlines()

    def broken(name, number, change):
        text = list(lines)
        text[number - 1] = change(text[number - 1])
        path = folder / name
        path.write_text("\n".join(text) + "\n")
        return path

    device = ("--device", "virtual:v100", "--ops")
    check_error("a short row", 2, "line 7: 20 cells", *device, broken("short.csv", 7, lambda s: s.replace(",N", "", 1)))
    check_error("a negative size", 2, "line 2: m '-1760'", *device,
                broken("negative.csv", 2, lambda s: s.replace("1760", "-1760", 1)))
    check_error("a huge size", 2, "line 2: m '1760000000000'", *device,
                broken("huge.csv", 2, lambda s: s.replace("1760", "1760000000000", 1)))
    check_error("a missing column", 2, "missing columns: k", *device, broken("columns.csv", 1, lambda s: s.replace(",k,", ",kk,")))
    check_error("an unknown device", 1, "v1000", "--device", "virtual:v1000", "--ops", table)
    check_error("the host", 2, "cpu", "--device", "cpu", "--ops", table)
    check_error("no table", 1, "nowhere.csv", *device, folder / "nowhere.csv")
    check_error("two devices, one table", 2, "--ops", "--device", "virtual:v100,virtual:t4", "--ops", table)
    check_error("tables nobody published", 2, "a100", "--device", "virtual:t4", "--leave-out", "a100", "--ops", table)
    other = broken("other.csv", 300, lambda s: s.replace("conv", "lstm", 1))
    result, text = predict(folder, *device, other)
    refused = [row for row in result["rows"] if row["predicted_ms"] is None]
    check([row["index"] for row in refused] == [298] and "lstm" in refused[0]["reason"], "an unknown op is refused by name")
    check("error lstm" in text and "mean 100.0 %" in text, "a refused row is an error of 100 %")


def main():
    if "\nvirtual\n" not in turnout("devices", "--no-probe")[1]:
        print("skipped: this build has no virtual device")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="turnout-test-") as name:
        folder = pathlib.Path(name)
        check_form(folder)
        check_calibration(folder)
        check_two(folder)
        check_errors(folder)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
