# SPDX-License-Identifier: Apache-2.0
"""The `purlin` command from Python: its JSON documents as dictionaries."""
import json
import os
import shutil
import subprocess
import tempfile

from ._library import PurlinError, own_command
from ._range import Range


def command():
    """The path of the purlin command: $PURLIN, else this package's, else the one in $PATH."""
    named = os.environ.get("PURLIN")
    if named:
        found = named if os.access(named, os.X_OK) else None
    else:
        found = own_command() or shutil.which("purlin")
    if not found:
        raise PurlinError(
            "the purlin command was not found%s; install Purlin or set PURLIN to its path"
            % (" at PURLIN=" + named if named else " in $PATH"), "unavailable")
    return found


def run(verb, *arguments, accept=(0,)):
    """Runs a verb with --json and returns its document. Errors have its output on stderr."""
    line = [command(), verb, *map(str, arguments), "--json"]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in accept:
        raise PurlinError("%s: exit code %d: %s" % (" ".join(line), done.returncode, done.stderr.strip()))
    return json.loads(done.stdout)


def tune(spec, shape=None, device=None, budget=None, strategy=None, cache=None, bucket_regret=None,
         extra=()):
    """Tunes a spec and stores the winner; the document of `purlin tune --json`.

    `shape` is a mapping (M=512, ...) or a preset's name; `bucket_regret`: the number of
    other shapes of the bucket at which the winner is checked.
    """
    arguments = [spec]
    if shape is not None:
        text = shape if isinstance(shape, str) else ",".join("%s=%d" % item for item in shape.items())
        arguments += ["--shape", text]
    for flag, value in (("--device", device), ("--budget", budget), ("--strategy", strategy),
                        ("--cache", cache), ("--bucket-regret", bucket_regret)):
        if value is not None:
            arguments += [flag, value]
    return run("tune", *arguments, *extra)


def profile(arguments, output=None, full=False, build=None, capture=False):
    """Runs a program under capture. Returns its exit code and the path of the profile.

    With a name instead of a program, it returns a context that marks a range of this program:
    `with purlin.profile("step") as p:`. With capture=True, under `purlin profile --idle`, only the
    range is captured.
    """
    if isinstance(arguments, str):
        return Range(arguments, command if capture else None)
    path = output or os.path.join(tempfile.mkdtemp(prefix="purlin-"), "profile.plprof")
    line = [command(), "profile", "-o", path, "-q"]
    line += ["--full"] if full else []
    line += ["--build", build] if build else []
    done = subprocess.run(line + ["--", *map(str, arguments)])
    if not os.path.exists(path):
        raise PurlinError("purlin profile wrote no '%s' (exit code %d)" % (path, done.returncode))
    return done.returncode, path


def report(path, *extra):
    """The document of `purlin report FILE --json`."""
    return run("report", path, *extra)
