"""What the integration tests share: the program of this build and what it can do."""

import functools
import os
import re
import subprocess

PROGRAM = os.environ.get("TURNOUT_BIN", "build/release/bin/turnout")


@functools.cache
def providers():
    """Providers of the CPU, and whether there are virtual devices."""
    text = subprocess.run([PROGRAM, "devices", "--no-probe"], capture_output=True, text=True, check=True).stdout
    host, _, rest = text.partition("\nvirtual\n")
    return re.findall(r"provider (\w+)", host), bool(rest)


def every_op():
    """Options with which the CPU takes every op: without Kokkos that needs the reference, which has to be named."""
    built, _ = providers()
    if "kokkos" in built:
        return []
    return ["--providers", ",".join([name for name in built if name != "reference"] + ["reference"])]
