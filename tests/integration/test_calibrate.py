#!/usr/bin/env python3
"""`turnout calibrate`: keeps what it measured, goes on where it stopped, and the figures are used."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from program import PROGRAM, providers

failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAIL: {what}")


def calibrate(cache, *arguments, command="calibrate"):
    done = subprocess.run([PROGRAM, command, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TURNOUT_CACHE": cache})
    return done.returncode, done.stdout, done.stderr


def counts(text):
    found = re.search(r"(\d+) of (\d+) points, (\d+) of them from before", text)
    check(found, f"the points are counted: {text}")
    return [int(n) for n in found.groups()] if found else [0, 0, 0]


def check_host(cache):
    if providers()[0] == ["reference"]:
        print("not checked: the reference alone is never calibrated")
        return
    code, out, error = calibrate(cache, "--devices", "cpu", "--threads", "1", "--budget", "0.1")
    done, all_points, before = counts(out)
    check(code == 0 and before == 0 and 0 < done < all_points, f"a small budget is used up: {out}{error}")
    check("the budget is used up" in out and "goes on" in out, f"which is said: {out}")
    code, out, error = calibrate(cache, "--devices", "cpu", "--threads", "1", "--quick", "--budget", "60")
    quick, all_quick, before = counts(out)
    check(code == 0 and 0 < before < quick == all_quick, f"goes on with what was kept: {out}")
    check("next:" in error, f"progress: {error}")
    files = os.listdir(cache)
    check(len(files) == 1, f"one file, nothing half written: {files}")
    code, out, _ = calibrate(cache, "--devices", "cpu", "--threads", "1", "--quick", "--again", "--budget", "0.1")
    check(counts(out)[2] == 0, f"--again forgets: {out}")


def check_interrupt(cache):
    if providers()[0] == ["reference"]:
        return
    process = subprocess.Popen([PROGRAM, "calibrate", "--devices", "cpu", "--threads", "1", "--budget", "100"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, "TURNOUT_CACHE": cache})
    for _ in range(600):
        if os.listdir(cache):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    check(process.returncode == 0 and "interrupted" in out, f"Ctrl-C ends in order: {process.returncode} {out}")
    check(counts(out)[0] > 0, f"what was measured is kept: {out}")


def check_virtual(cache):
    if not providers()[1]:
        print("not checked: this build has no virtual devices")
        return
    code, out, error = calibrate(cache, "--devices", "virtual:v100", "--budget", "2")
    check(code == 0 and "predicted" in out, f"a virtual device's times are called predicted: {out}{error}")
    check(re.search(r"h2d +8 us \+ bytes / 12\.\d GB/s", out), f"its link is found: {out}")


def main():
    with tempfile.TemporaryDirectory() as cache:
        check_host(cache)
    with tempfile.TemporaryDirectory() as cache:
        check_interrupt(cache)
    with tempfile.TemporaryDirectory() as cache:
        check_virtual(cache)
        code, out, error = calibrate(cache, "--devices", "nosuch:0")
        check(code == 1 and "there is no device 'nosuch:0'" in error, f"unknown device: {error}")
        code, out, error = calibrate(cache, "--devices", "cuda:0")
        check(code == 1 and "cuda" in error and len(error.strip().splitlines()) == 1, f"absent device: {error}")
        code, out, error = calibrate(cache, "--budget", "-1")
        check(code == 2, f"a budget is positive: {code} {error}")
        code, out, error = calibrate("/proc/nowhere", "--devices", "cpu", "--quick", "--budget", "0.1")
        check(code == 0 and "can't be kept" in out, f"a cache that can't be written is said: {out}{error}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
