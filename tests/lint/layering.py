#!/usr/bin/env python3
"""Checks that the layers stay layers, in every C++ file of the repository.

    layering.py [ROOT]

1. Includes go down only: core <- ops <- {backends, runtime} <- tools. The runtime sees backends through
   core/backend.hpp; the CPU and the GPU backend share nothing but the Kokkos kernels.
2. A library's headers are included only where its use belongs (core and ops: the standard library and fmt).
3. Vendor words are in identifiers and includes of backends/gpu/vendor alone (and core/portable.hpp, the
   host/device mark). Comments and strings that a user reads may have them.

Before it looks at the repository it plants one break of each kind and makes sure that it sees them.
"""

import pathlib
import re
import sys
import tempfile

# Longest match decides what a file belongs to, and what it may include of ours.
ALLOWED = {
    "core": ["core"],
    "ops": ["core", "ops"],
    "backends/reference": ["core", "ops", "backends/reference"],
    "backends/kokkos": ["core", "ops", "backends/kokkos"],
    "backends/cpu": ["core", "ops", "generated", "backends/reference", "backends/kokkos", "backends/cpu"],
    "backends/gpu": ["core", "ops", "generated", "backends/kokkos", "backends/gpu"],
    "backends/plugin": ["core", "generated", "backends/plugin"],
    "runtime": ["core", "ops", "generated", "runtime"],
    "tools": ["core", "ops", "generated", "runtime", "tools"],
    "tests": None,  # anything
    "bench": None,
}
OURS = ["core/", "ops/", "backends/", "runtime/", "tools/", "tests/", "bench/", "generated/"]

# Headers of libraries, and the only folders that may include them (tests and bench apart).
LIBRARIES = {
    r"(oneapi/)?dnnl": ["backends/cpu/onednn"],
    r"cblas|openblas": ["backends/cpu/openblas"],
    r"Kokkos_": ["backends/kokkos", "backends/cpu", "backends/gpu"],
    r"onnx\.pb\.h|google/": ["runtime/onnx", "runtime/io"],
    r"nlohmann/": ["runtime", "backends/gpu", "tools"],
    r"CLI/": ["tools"],
    r"omp\.h": ["backends", "runtime"],
    r"catch2/": [],
}

VENDOR = re.compile(r"^(cuda|cublas|cudnn|cufft|curand|cusparse|nvrtc|nvidia|nvcc|nccl|cupti|hip$|hip\d|hipblas|hipcc|"
                    r"hiprtc|rocm|rocblas|miopen|rccl|roctx|amdgpu)")
TOKENS = re.compile(r'R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
                    r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*")


def under(path, folder):
    return path == folder or path.startswith(folder + "/")


def unit_of(path):
    return max((unit for unit in ALLOWED if under(path, unit)), key=len, default=None)


def without_comments_and_strings(text):
    """Same lines, with comments and the contents of literals blanked."""
    text = DIGIT_SEPARATOR.sub("", text)
    return TOKENS.sub(lambda match: "\n" * match.group().count("\n"), text)


def include_faults(path, header):
    unit = unit_of(path)
    allowed = ALLOWED.get(unit)
    if any(header.startswith(ours) for ours in OURS):
        if allowed is not None and not any(under(header, folder) for folder in allowed):
            yield f"{unit} may not include {header}"
        return
    if unit in ("tests", "bench"):
        return
    for library, folders in LIBRARIES.items():
        if re.match(library, header) and not any(under(path, folder) for folder in folders):
            yield f"{header} belongs in {' or '.join(folders) or 'tests'} only"
    if unit in ("core", "ops") and re.search(r"[/.]", header) and not header.startswith("fmt/"):
        yield f"{unit} depends on the standard library and fmt alone, not on {header}"


def vendor_word(text):
    for identifier in re.findall(r"[A-Za-z_]\w*", text):
        for word in WORDS.findall(identifier):
            if VENDOR.match(word.lower()):
                return identifier
    return None


def file_faults(path, text):
    vendor_allowed = under(path, "backends/gpu/vendor") or path == "core/portable.hpp"
    code = without_comments_and_strings(text).splitlines()
    for number, (line, original) in enumerate(zip(code, text.splitlines()), 1):
        include = INCLUDE.match(original) if line.lstrip().startswith("#") else None
        if include:
            for fault in include_faults(path, include.group(2)):
                yield f"{path}:{number}: {fault}"
        word = None if vendor_allowed else vendor_word(include.group(2) if include else line)
        if word:
            yield f"{path}:{number}: vendor word '{word}' outside backends/gpu/vendor"


def faults(root):
    found, count = [], 0
    tops = sorted({unit.split("/")[0] for unit in ALLOWED})
    for path in sorted(p for top in tops for p in (root / top).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".cpp", ".hpp", ".h", ".inc") or unit_of(name) is None or not path.is_file():
            continue
        count += 1
        found += file_faults(name, path.read_text())
    return found, count


BREAKS = {
    "core/a.hpp": '#include "ops/all_ops.hpp"\n',
    "core/b.cpp": "#include <nlohmann/json.hpp>\n",
    "ops/a.cpp": '#include "runtime/session.hpp"\n',
    "backends/cpu/a.cpp": '#include "runtime/plan/planner.hpp"\n',
    "backends/gpu/a.cpp": '#include "backends/cpu/threads.hpp"\n',
    "backends/kokkos/a.cpp": '  #  include "backends/gpu/device.hpp"\n',
    "backends/cpu/b.cpp": "#include <dnnl.hpp>\n",
    "runtime/a.cpp": '#include "backends/cpu/cpu_device.hpp"\n',
    "runtime/b.cpp": "#include <onnx.pb.h>\n",
    "runtime/c.cpp": "int cudaStream = 0;\n",
    "tools/a.cpp": '#include "backends/gpu/profile.hpp"\n',
    "backends/gpu/b.cpp": "void make_hip_stream();\n",
    "backends/gpu/c.cpp": "#include <cuda_runtime.h>\n",
    "core/c.hpp": "const char* s = \"a\\\"b\"; struct HipDevice {};\n",
    "core/d.hpp": "#ifdef __CUDACC__\n#endif\n",
    "core/e.hpp": "int million = 1'000'000; int use_cublas; char c = 'x';\n",
}
SOUND = {
    "core/portable.hpp": "#ifdef __CUDACC__\n#endif\n",
    "core/f.hpp": "#include <vector>\n#include <fmt/format.h>\n// a cuda comment\nint ship, chip, membership;\n",
    "runtime/d.cpp": '#include "core/backend.hpp"\nconst char* s = "cuda: driver not found";\n',
    "runtime/onnx/a.cpp": '#include <onnx.pb.h>\n/* hip\n hip */ auto s = R"(cublas "x" )";\n',
    "backends/gpu/vendor/host.hpp": "#include <cuda_runtime.h>\nint cuda;\n",
    "backends/cpu/onednn/a.cpp": '#include <oneapi/dnnl/dnnl.hpp>\n#include "backends/kokkos/unary.hpp"\n',
    "tests/unit/test_a.cpp": '#include "backends/cpu/cpu_device.hpp"\n',
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**BREAKS, **SOUND}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found, _ = faults(root)
    seen = {fault.split(":")[0] for fault in found}
    missed, false_alarms = set(BREAKS) - seen, seen & set(SOUND)
    if missed or false_alarms:
        sys.exit(f"layering self-test failed: missed {sorted(missed)}, false alarms {sorted(false_alarms)}")


def main():
    self_test()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    found, count = faults(root)
    print("\n".join(found + [f"layering: {count} files, {len(found)} faults ({len(BREAKS)} planted ones seen)"]))
    if count == 0:
        sys.exit(f"no C++ files under {root}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
