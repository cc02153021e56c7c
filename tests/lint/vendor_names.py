#!/usr/bin/env python3
"""The headers of the vendors export the same names, and each is short.

host.hpp is the list; cuda.hpp and hip.hpp share runtime.hpp for what differs in a prefix alone. Names that only one
side needs are given here, so that a new one has to be put on purpose.
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "backends" / "gpu" / "vendor"
MOST_LINES = 300
EMULATION = {"EmulatedDevice", "StreamState", "EventState", "GraphState", "kChunkBytes", "kPoisonBytes", "kPoison"}
HARDWARE = {"Status", "check", "describe", "allocate_pinned_status", "kUncorrectable"}
OWN = {"hip.hpp": {"hipErrorMemoryAllocation"}, "cuda.hpp": set()}

NAMES = [
    re.compile(r"^using (\w+) =", re.M),
    re.compile(r"^struct (\w+)\b", re.M),
    re.compile(r"^inline constexpr .*?\b(\w+) ?(?:=|\{)", re.M),
    # A function begins in the first column, with its type.
    re.compile(r"^(?!using|struct|namespace|return|#|//|\})\w[\w:<>,*& ]*?[ *&](\w+)\((?!\()", re.M),
]


def exported(*files):
    text = "".join((FOLDER / name).read_text() for name in files)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"TURNOUT_VENDOR\((\w+)\)", r"\1", text)
    text = re.sub(r"#define.*", "", text)
    return {name for pattern in NAMES for name in pattern.findall(text)}


def main():
    faults = []
    host = exported("host.hpp") - EMULATION
    if len(host) < 30:
        faults.append(f"only {len(host)} names were found in host.hpp: this check doesn't see them any more")
    for header, own in OWN.items():
        names = exported(header, "runtime.hpp") - HARDWARE - own
        for name in sorted(host - names):
            faults.append(f"{header}: {name} of host.hpp is missing")
        for name in sorted(names - host):
            faults.append(f"{header}: {name} isn't in host.hpp")
    for file in ("cuda.hpp", "hip.hpp", "host.hpp", "runtime.hpp"):
        lines = len((FOLDER / file).read_text().splitlines())
        if lines > MOST_LINES:
            faults.append(f"{file} has {lines} lines, {MOST_LINES} are allowed")
    for fault in faults:
        print(fault)
    print(f"vendor names: {len(host)} compared, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
