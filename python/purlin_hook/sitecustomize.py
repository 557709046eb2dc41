# SPDX-License-Identifier: Apache-2.0
"""Waits for `import torch` and `import jax` under `purlin profile`, nothing else.

docs/design/torch-hook.md and docs/design/jax-programs.md say what happens then.

`purlin profile` puts this folder first in PYTHONPATH. The folder leaves sys.path at once, and the
sitecustomize that would run without it runs as usual. Nothing here raises into the program.
"""
import os
import stat
import sys


def _is_own(folder):
    """Only this user can put files or links there: `sudo -E` keeps the variables of another one."""
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


class _Finder(object):
    """Finds a module as the other finders do, and has its hook called around its first import."""

    def __init__(self, folder, watched):
        self.folder = folder
        self.watched = watched

    def find_spec(self, name, path=None, target=None):
        if name != self.watched:
            return None
        spec = None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                break
        try:
            self._watch(spec)
        except Exception:
            pass
        return spec

    def _watch(self, spec):
        loader = None if spec is None else spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        load = loader.exec_module

        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            hook = self._hook()
            if hook is not None:
                hook.before_import()
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            if hook is not None:
                hook.after_import(module)

        loader.exec_module = exec_module

    def _hook(self):
        try:
            import importlib.util as util

            place = os.path.join(self.folder, "purlin_" + self.watched)
            spec = util.spec_from_file_location(
                "_purlin_" + self.watched,
                os.path.join(place, "__init__.py"),
                submodule_search_locations=[place],
            )
            module = util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            return module
        except Exception:
            return None


def _begin():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != folder]
    spool = os.environ.get("PURLIN_SPOOL")
    if not spool or sys.version_info < (3, 8) or not _is_own(spool):
        return
    if os.environ.get("PURLIN_TORCH") in ("hook", "idle"):
        sys.meta_path.insert(0, _Finder(folder, "torch"))
    if os.environ.get("PURLIN_JAX") == "on":
        sys.meta_path.insert(0, _Finder(folder, "jax"))


try:
    _begin()
except Exception:
    pass

_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # the next on sys.path; its errors are those of a start without Purlin
except ImportError as _fault:
    if getattr(_fault, "name", None) != "sitecustomize":
        raise
finally:
    if _ours is not None:
        sys.modules.setdefault("sitecustomize", _ours)
