# torch_install.py - install PyPI's PyTorch, ONNX Runtime and MONAI into a virtual environment:
# `dnn-bench torch --install` runs it.  If it is interrupted, the same command continues:
# wheels that are complete are not downloaded again, nor packages that are installed.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

WANTED = ["torch", "numpy", "pillow", "setuptools", "h5py", "onnx", "onnxscript",
          "onnxruntime", "monai"]
NEEDED = 9e9  # bytes of the wheels and their content


def fail(text):
    print(f"dnn-bench: {text}", file=sys.stderr)
    sys.exit(5)


def make_environment(target):
    existing = target
    while not existing.exists():
        existing = existing.parent
    print(f"PyTorch from PyPI: about 3 GB to download, 5.5 GB in {target}", flush=True)
    free = shutil.disk_usage(existing).free
    if free < NEEDED:
        fail(f"{existing}: {free / 1e9:.1f} GB are free; {NEEDED / 1e9:.0f} GB are needed during "
             "the installation; set XDG_DATA_HOME to another file system")
    if (target / "bin/pip").exists():
        return
    if subprocess.run([sys.executable, "-m", "venv", "--clear", target]).returncode:
        fail(f"{sys.executable} -m venv {target} failed; on Debian install python3-venv")


def pip(*args):
    if subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check",
                       *args]).returncode:
        fail("pip failed; the same command continues where it stopped. Behind a proxy with "
             "its own certificate set PIP_CERT to the CA bundle")


def installed(req):
    try:
        return importlib.metadata.version(req.name) in req.specifier
    except importlib.metadata.PackageNotFoundError:
        return False


def download(target):
    """Download all wheels with their dependencies, one after the other."""
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name, parse_wheel_filename
    wheels, part = target / "wheels", target / "part"
    wheels.mkdir(exist_ok=True)
    queue, seen = [Requirement(w) for w in WANTED], set()
    while queue:
        req = queue.pop(0)
        name, extras = canonicalize_name(req.name), frozenset(req.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if installed(req):
            continue
        found = [w for w in wheels.glob("*.whl")
                 for n, version, *_ in [parse_wheel_filename(w.name)]
                 if n == name and version in req.specifier]
        if not found:
            shutil.rmtree(part, ignore_errors=True)
            plain = f"{req.name}{req.specifier}"
            pip("download", "--no-deps", "--only-binary", ":all:", "--dest", part, plain)
            found = [wheels / w.name for w in part.glob("*.whl")]
            os.rename(part / found[0].name, found[0])
        with zipfile.ZipFile(found[0]) as z:
            meta = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
            lines = z.read(meta).decode().split("\n\n")[0].splitlines()
        for line in lines:
            if not line.startswith("Requires-Dist: "):
                continue
            need = Requirement(line.split(": ", 1)[1])
            if need.marker is None or any(need.marker.evaluate({"extra": e})
                                          for e in extras or {""}):
                queue.append(need)
    return wheels


def main():
    target = pathlib.Path(sys.argv[1])
    if pathlib.Path(sys.prefix) != target:  # not yet run by the Python of the environment
        make_environment(target)
        python = str(target / "bin/python")
        os.execv(python, [python, *sys.argv])
    wheels = download(target)
    pip("install", "--no-index", "--find-links", wheels, *WANTED)
    (target / "ready").touch()
    shutil.rmtree(wheels)
    shutil.rmtree(target / "part", ignore_errors=True)


if __name__ == "__main__":
    main()
