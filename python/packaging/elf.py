#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a system must have for the objects of a wheel to load (PEP 600, "manylinux_2_N").

  elf.py WHEEL      checks that the tag of a wheel's name holds, or exit code 2 with the objects

It reads NEEDED, RUNPATH and the symbol versions with readelf. A glibc symbol version is the lowest
glibc that has the symbol, so the highest of them over all objects is the tag's number.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# Of the libraries that PEP 600 lets a wheel expect, those that Purlin may.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux-[\w-]+|libstdc\+\+|libgcc_s)\.so\.\d+")
# Versions of these libraries that a system with the glibc of the tag has. (Ubuntu 22.04 has GCC 12's.)
CXX_LIMITS = {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}


def is_object(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _number(text):
    return tuple(int(part) for part in text.split("."))


def _readelf(path):
    return subprocess.run(["readelf", "-W", "-d", "-V", str(path)], check=True, text=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, LC_ALL="C")).stdout


def needs(path):
    """The needed libraries, the run paths, and the symbol versions as {name: highest}."""
    text = _readelf(path)
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", text)
    run_paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
    needed = text.partition("Version needs section")[2]
    versions = {}
    for name, number in re.findall(r"Name: (\w+?)_(\d+(?:\.\d+)*)\b", needed):
        versions[name] = max(versions.get(name, (0,)), _number(number))
    private = re.findall(r"Name: (GLIBC_PRIVATE|GLIBC_ABI_\w+)", needed)
    return libraries, run_paths, versions, private


def complaints(paths):
    """Why an object would not load on every system with the right glibc."""
    own = {pathlib.Path(path).name for path in paths}
    for path in paths:
        libraries, run_paths, versions, private = needs(path)
        for library in libraries:
            if library not in own and not SYSTEM.fullmatch(library):
                yield "%s needs %s, which systems may lack" % (path, library)
        for run_path in run_paths:
            if not run_path.startswith("$ORIGIN"):
                yield "%s has the run path '%s' of the machine that built it" % (path, run_path)
        for name in private:
            yield "%s needs %s, which binds it to one glibc" % (path, name)
        for name, limit in CXX_LIMITS.items():
            if "libstdc++.so.6" not in own and versions.get(name, (0,)) > limit:
                yield "%s needs %s_%s" % (path, name, ".".join(map(str, versions[name])))


def glibc(paths):
    """The lowest glibc with which all objects load."""
    return max((needs(path)[2].get("GLIBC", (2, 17)) for path in paths), default=(2, 17))[:2]


def platform_tag(paths):
    problems = list(complaints(paths))
    if problems:
        raise SystemExit("elf: " + "\nelf: ".join(problems))
    return "manylinux_%d_%d_%s" % (*glibc(paths), os.uname().machine)


def check(wheel):
    tag = re.search(r"manylinux_(\d+)_(\d+)_", os.path.basename(wheel))
    if not tag:
        return ["%s: its name has no manylinux tag" % wheel]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        objects = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and is_object(path)]
        problems = list(complaints(objects))
        allowed = (int(tag[1]), int(tag[2]))
        problems += ["%s needs glibc %d.%d" % (path, *glibc([path])) for path in objects if glibc([path]) > allowed]
        print("%d objects, glibc %d.%d" % (len(objects), *glibc(objects)))
    return problems


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: elf.py WHEEL")
    found = check(sys.argv[1])
    if found:
        print("\n".join(found), file=sys.stderr)
        sys.exit(2)
