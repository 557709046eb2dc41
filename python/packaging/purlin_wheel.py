#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels of Purlin, written with the standard library alone.

As the build backend of pyproject.toml (PEP 517 and 660) it packs the Python package of a checkout.
As a program it packs an installed Purlin as well, so that a user needs no compiler:

  purlin_wheel.py TREE-OR-BUNDLE OUT    prints the path of the wheel

TREE is a prefix of `cmake --install`, BUNDLE the archive of `./dev bundle`. The platform tag follows from the
symbol versions of the objects (see elf.py). The same input gives the same bytes.
"""
import base64
import contextlib
import hashlib
import io
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent
# What a wheel takes of an installed tree. Tests, benchmarks and CMake files stay behind.
TREE = ("bin/purlin", "lib/purlin", "libexec/purlin/purlin-sample", "share/purlin/kernels", "share/man", "include/purlin")
TREE_OUT = "purlin/_tree/"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can name


def version():
    text = (PYTHON / "purlin" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"', text, re.M)[1]


def metadata():
    head = [
        "Metadata-Version: 2.1",
        "Name: purlin",
        "Version: " + version(),
        "Summary: Finds slow GPU kernels, tunes them, stores the winners and guards them",
        "Author: The Purlin authors",
        "License: Apache-2.0",
        "Keywords: gpu,cuda,opencl,profiler,autotuning,triton,pytorch",
        "Classifier: Development Status :: 4 - Beta",
        "Classifier: Environment :: GPU",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Topic :: Software Development :: Debuggers",
        "Classifier: Topic :: System :: Benchmark",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + (PYTHON / "README.md").read_text(encoding="utf-8")


def license_text():
    """The licence of the checkout; a source distribution has a copy in this folder."""
    for folder in (PYTHON, PYTHON.parent):
        if (folder / "LICENSE").is_file():
            return (folder / "LICENSE").read_bytes()
    raise SystemExit("purlin_wheel: no LICENSE next to %s: use a whole checkout" % PYTHON)


def package_files():
    """The Python package: (name in the wheel, path)."""
    for path in sorted((PYTHON / "purlin").rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield path.relative_to(PYTHON).as_posix(), path


def tree_files(tree):
    """The command and what it needs at run time: (name in the wheel, path)."""
    for wanted in TREE:
        start = tree / wanted
        found = sorted(start.rglob("*")) if start.is_dir() else [start]
        if not start.exists():
            raise SystemExit("purlin_wheel: %s is missing: give a prefix of `cmake --install` or a bundle" % start)
        for path in found:
            if path.is_file() and "__pycache__" not in path.parts:
                yield TREE_OUT + path.relative_to(tree).as_posix(), path
    # A wheel has no links: the library goes in once, by the name that programs load.
    for name, path in libraries(tree):
        yield TREE_OUT + "lib/" + name, path


def libraries(tree):
    """libpurlin.so.0 and libraries that a bundle brings along, by the names that programs ask for."""
    found = {}
    for folder in ("lib", "lib64", "lib/%s-linux-gnu" % os.uname().machine):
        for path in sorted((tree / folder).glob("*.so.*")):
            if path.name.count(".") == 2:  # libNAME.so.N, without the longer names of the same file
                found.setdefault(path.name, path.resolve())
    if "libpurlin.so.0" not in found:
        raise SystemExit("purlin_wheel: no libpurlin.so.0 below %s" % tree)
    return sorted(found.items())


class Wheel:
    """A zip file with the records that pip checks. Entries have one fixed time and order."""

    def __init__(self, folder, tag, pure):
        self.dist_info = "purlin-%s.dist-info/" % version()
        self.name = "purlin-%s-%s.whl" % (version(), tag)
        self.path = pathlib.Path(folder) / self.name
        self.records = []
        self.zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.about = "Wheel-Version: 1.0\nGenerator: purlin_wheel\nRoot-Is-Purelib: %s\nTag: %s\n" % (
            "true" if pure else "false", tag)

    def add(self, name, data, executable=False):
        if isinstance(data, str):
            data = data.encode("utf-8")
        entry = zipfile.ZipInfo(name, EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def add_path(self, name, path):
        self.add(name, path.read_bytes(), os.access(path, os.X_OK))

    def finish(self, entry_points=""):
        if entry_points:
            self.add(self.dist_info + "entry_points.txt", entry_points)
        self.add(self.dist_info + "LICENSE", license_text())
        self.add(self.dist_info + "METADATA", metadata())
        self.add(self.dist_info + "WHEEL", self.about)
        self.records.append(self.dist_info + "RECORD,,")
        self.zip.writestr(zipfile.ZipInfo(self.dist_info + "RECORD", EARLIEST), "\n".join(self.records) + "\n")
        self.zip.close()
        return self.name


# --- the hooks of a build backend ------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel = Wheel(wheel_directory, "py3-none-any", pure=True)
    for name, path in package_files():
        wheel.add_path(name, path)
    return wheel.finish()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    wheel = Wheel(wheel_directory, "py3-none-any", pure=True)
    wheel.add("purlin_editable.pth", str(PYTHON) + "\n")
    return wheel.finish()


def build_sdist(sdist_directory, config_settings=None):
    base = "purlin-" + version()
    name = base + ".tar.gz"
    files = {str(path.relative_to(PYTHON)): path.read_bytes()
             for path in [PYTHON / "pyproject.toml", PYTHON / "README.md", *sorted(HERE.glob("*.py"))]}
    files.update({name_: path.read_bytes() for name_, path in package_files()})
    files["LICENSE"] = license_text()
    files["PKG-INFO"] = metadata().encode("utf-8")
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for inner, data in sorted(files.items()):
            entry = tarfile.TarInfo(base + "/" + inner)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return name


# --- the wheel with the command --------------------------------------------------------------------


def build_platform_wheel(tree, out):
    import elf

    files = list(tree_files(tree))
    objects = [path for _, path in files if elf.is_object(path)]
    wheel = Wheel(out, "py3-none-" + elf.platform_tag(objects), pure=False)
    for name, path in [*package_files(), *files]:
        wheel.add_path(name, path)
    wheel.add_path("purlin_command.py", HERE / "purlin_command.py")
    return wheel.path, wheel.finish("[console_scripts]\npurlin = purlin_command:main\n")


@contextlib.contextmanager
def unpacked(source):
    """The tree at `source`, unpacked if it is a bundle."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(folder, **safe)
        yield next(pathlib.Path(folder).iterdir())


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: purlin_wheel.py TREE-OR-BUNDLE OUT")
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with unpacked(pathlib.Path(sys.argv[1])) as tree:
        print(build_platform_wheel(tree, out)[0])


if __name__ == "__main__":
    main()
