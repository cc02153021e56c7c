#!/usr/bin/env python3
"""The table of ops in docs/support.md says what the program's registry says.

    test_support_table.py [--write]     --write brings the table up to date
"""

import os
import pathlib
import re
import subprocess
import sys

from program import PROGRAM, providers

PAGE = pathlib.Path(os.environ.get("TURNOUT_SOURCE", ".")) / "docs" / "support.md"
BEGIN, END = "<!-- ops: begin -->\n", "<!-- ops: end -->\n"
COLUMNS = ["onednn", "openblas", "kokkos", "reference"]
NEEDED = {"onednn", "openblas", "kokkos", "reference"}


def kernels():
    """{backend: {op: (providers, note)}}"""
    text = subprocess.run([PROGRAM, "devices", "--kernels"], capture_output=True, text=True, check=True).stdout
    result, current = {}, None
    for line in text.splitlines():
        if not line.startswith(" "):
            current = result.setdefault(line, {})
            continue
        op, _, rest = line.strip().partition(" ")
        note = re.search(r"\(.*\)", rest)
        current[op] = (set(re.sub(r"\(.*\)", "", rest).split()), note.group(0) if note else "")
    return result


def table():
    found = kernels()
    lines = ["| Op | oneDNN | OpenBLAS | Kokkos, CPU | Kokkos, device mode | reference | |", "|---|---|---|---|---|---|---|"]
    for op, (names, note) in found["cpu"].items():
        device = found["virtual"][op][0] if op in found["virtual"] else set()
        cells = ["x" if c in names else "" for c in COLUMNS]
        cells.insert(3, "x" if "kokkos" in device else "")
        lines.append(f"| {op} | " + " | ".join(cells) + f" | {note.strip('()')} |")
    return "\n".join(lines) + "\n"


def main():
    built, virtual = providers()
    if not (NEEDED <= set(built) and virtual):
        print(f"skipped: the table is of a build with {', '.join(sorted(NEEDED))} and virtual devices")
        return 77
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    old, after = rest.split(END)
    new = table()
    if "--write" in sys.argv:
        PAGE.write_text(before + BEGIN + new + END + after)
        return 0
    if old != new:
        stale = sorted(set(old.splitlines()) ^ set(new.splitlines()))
        print("docs/support.md is out of date (test_support_table.py --write mends it):", *stale[:10], sep="\n")
        return 1
    print(f"docs/support.md: {len(new.splitlines()) - 2} ops as built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
