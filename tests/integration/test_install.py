#!/usr/bin/env python3
"""Installs the build, builds the programs of tests/consumers against it, and runs them."""

import os
import pathlib
import subprocess
import sys
import tempfile

from program import every_op

SOURCE = pathlib.Path(os.environ["TURNOUT_SOURCE"])
BUILD = pathlib.Path(os.environ["TURNOUT_BUILD"])
MODEL = pathlib.Path(os.environ["TURNOUT_MODELS"]) / "digits-mlp.onnx"


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(condition, what):
    if not condition:
        sys.exit(f"not true: {what}")


def cache_value(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def check_symbols(library):
    """The shared library shows the C interface and nothing else."""
    names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
    foreign = [n for n in names if not n.startswith("turnout_") and n not in ("_init", "_fini")]
    check(not foreign, f"only turnout_* is exported, but there is {foreign[:5]}")
    check("turnout_session_run" in names, "turnout_session_run is exported")


def main():
    if cache_value("TURNOUT_SANITIZE"):
        print("skipped: a sanitized build isn't installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="turnout-install-") as folder:
        prefix = pathlib.Path(folder) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        top = sorted(p.name for p in (prefix / "include").iterdir())
        check(top == ["turnout"], f"include/ holds turnout alone, not {top}")
        [library] = prefix.glob("lib*/libturnout.so")
        check_symbols(library)
        deps = sorted(p for p in (SOURCE / "build" / "deps").glob("*") if p.is_dir())
        paths = ";".join(map(str, [prefix, *deps]))
        out = pathlib.Path(folder) / "build"
        run("cmake", "-G", "Ninja", "-S", SOURCE / "tests" / "consumers", "-B", out,
            f"-DCMAKE_PREFIX_PATH={paths}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", out)
        environment = dict(os.environ, XDG_CACHE_HOME=folder)
        allowed = every_op()[-1:]
        text = run(out / "consumer_model", MODEL, 3, *(allowed[0].split(",") if allowed else []), env=environment)
        check("output f32[3,10]" in text and "nodes on cpu" in text, "consumer_model prints output and plan")
        text = run(out / "consumer_graph", env=environment)
        check("batch 64" in text and "0 wrong" in text, "consumer_graph prints two plans and right results")
        text = run(out / "consumer_c", MODEL, "N", 2, *allowed, env=environment)
        check("error 4" in text and "nodes on cpu" in text, "consumer_c prints plan and error")
        if (out / "consumer_kokkos").exists():
            text = run(out / "consumer_kokkos", env=environment)
            check("Kokkos is alive" in text, "Turnout leaves Kokkos to its owner")
        else:
            print("consumer_kokkos skipped: this build has no Kokkos")
    print("install and consumers: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
