# SPDX-License-Identifier: Apache-2.0
"""libpurlin.so by ctypes: found, opened once, its functions typed.

PurlinError has the text of the library, with the error and a remedy.
"""
import ctypes
import ctypes.util
import os
import shutil
import threading

ABI_VERSION = 9
STATUS = {0: "ok", 1: "invalid", 2: "not found", 3: "unavailable", 4: "io", 5: "corrupt", 6: "failed"}
OUTCOMES = {0: "miss", 1: "exact", 2: "bucket", 3: "transferred"}
ALLOW_TRANSFERRED = 1


class PurlinError(RuntimeError):
    """An error of the library. `status` is its name: "invalid", "not found", ..."""

    def __init__(self, message, status="failed"):
        super().__init__(message)
        self.status = status


class Device(ctypes.Structure):
    """purlin_device: the device of an entry's measurement."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("backend", ctypes.c_char_p),
        ("arch", ctypes.c_char_p),
        ("model", ctypes.c_char_p),
        ("toolkit", ctypes.c_char_p),
        ("driver", ctypes.c_char_p),
    ]


class OpDesc(ctypes.Structure):
    """purlin_op_desc."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("op", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("source_hash", ctypes.c_char_p),
        ("policy", ctypes.c_char_p),
        ("dimensions", ctypes.POINTER(ctypes.c_char_p)),
        ("dimension_count", ctypes.c_size_t),
        ("device", ctypes.POINTER(Device)),
        ("flags", ctypes.c_uint),
        ("layout", ctypes.c_char_p),
    ]


class CublasLtDesc(ctypes.Structure):
    """purlin_cublaslt_desc."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("a", ctypes.c_char_p),
        ("b", ctypes.c_char_p),
        ("d", ctypes.c_char_p),
        ("transpose_a", ctypes.c_int),
        ("transpose_b", ctypes.c_int),
        ("batched", ctypes.c_int),
        ("compute", ctypes.c_char_p),
        ("epilogue", ctypes.c_char_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("device", ctypes.POINTER(Device)),
        ("handle", ctypes.c_void_p),
        ("policy", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
    ]


class CublasLtLaunch(ctypes.Structure):
    """purlin_cublaslt_launch."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("extent_count", ctypes.c_size_t),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("d", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("fallback", ctypes.c_int),
    ]


class TunerDesc(ctypes.Structure):
    """purlin_tuner_desc."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("op", ctypes.c_char_p),
        ("strategy", ctypes.c_char_p),
        ("budget", ctypes.c_char_p),
        ("session", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("seed", ctypes.c_uint64),
        ("warmups", ctypes.c_int),
        ("finals_rounds", ctypes.c_int),
        ("lookahead", ctypes.c_int),
    ]


# A wheel has the command and its libraries here; other installations have no such folder.
TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_tree")


def own_command():
    """The command that this package brought along, "" for none."""
    path = os.path.join(TREE, "bin", "purlin")
    return path if os.access(path, os.X_OK) else ""


def _candidates():
    named = os.environ.get("PURLIN_LIBRARY")
    if named:
        yield named
        return  # what the user named, or an error
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "libpurlin.so")
    command = os.environ.get("PURLIN") or own_command() or shutil.which("purlin")
    if command:
        root = os.path.dirname(os.path.dirname(os.path.realpath(command)))
        for folder in ("lib", "lib64", os.path.join("lib", os.uname().machine + "-linux-gnu")):
            yield os.path.join(root, folder, "libpurlin.so")
            yield os.path.join(root, folder, "libpurlin.so.0")
    yield "libpurlin.so.0"
    found = ctypes.util.find_library("purlin")
    if found:
        yield found


_TEXT, _INT, _REAL, _HANDLE = ctypes.c_char_p, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
_INTS = ctypes.POINTER(ctypes.c_int64)
_SIGNATURES = {
    "purlin_version": (_TEXT, []),
    "purlin_abi_version": (ctypes.c_int, []),
    "purlin_last_error": (_TEXT, []),
    "purlin_cache_open": (ctypes.c_int, [_TEXT, ctypes.POINTER(_HANDLE)]),
    "purlin_cache_open_layers": (ctypes.c_int, [ctypes.POINTER(_TEXT), ctypes.c_size_t, ctypes.POINTER(_HANDLE)]),
    "purlin_cache_layers": (ctypes.c_size_t, [_HANDLE, ctypes.POINTER(_TEXT), ctypes.c_size_t]),
    "purlin_cache_close": (None, [_HANDLE]),
    "purlin_cache_reload": (ctypes.c_int, [_HANDLE]),
    "purlin_cache_directory": (_TEXT, [_HANDLE]),
    "purlin_cache_put": (ctypes.c_int, [_HANDLE, _TEXT]),
    "purlin_cache_device": (ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(Device)]),
    "purlin_op_open": (ctypes.c_int, [_HANDLE, ctypes.POINTER(OpDesc), ctypes.POINTER(_HANDLE)]),
    "purlin_op_close": (None, [_HANDLE]),
    "purlin_lookup": (ctypes.c_int, [_HANDLE, _INTS, ctypes.c_size_t, ctypes.POINTER(_HANDLE)]),
    "purlin_op_why_missed": (ctypes.c_size_t, [_HANDLE, _INTS, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]),
    "purlin_op_count": (None, [_HANDLE, _INTS, ctypes.c_size_t, ctypes.c_uint64]),
    "purlin_entry_int": (_INT, [_HANDLE, _TEXT, _INT]),
    "purlin_entry_double": (_REAL, [_HANDLE, _TEXT, _REAL]),
    "purlin_entry_text": (_TEXT, [_HANDLE, _TEXT, _TEXT]),
    "purlin_entry_options": (_TEXT, [_HANDLE]),
    "purlin_entry_parameter_count": (ctypes.c_size_t, [_HANDLE]),
    "purlin_entry_parameter_name": (_TEXT, [_HANDLE, ctypes.c_size_t]),
    "purlin_entry_time_ms": (_REAL, [_HANDLE]),
    "purlin_entry_default_time_ms": (_REAL, [_HANDLE]),
    "purlin_entry_verified": (ctypes.c_int, [_HANDLE]),
    "purlin_entry_id": (_TEXT, [_HANDLE]),
    "purlin_entry_layer": (_TEXT, [_HANDLE]),
    "purlin_cache_flush": (ctypes.c_int, [_HANDLE]),
    "purlin_op_demote": (ctypes.c_int, [_HANDLE, _INTS, ctypes.c_size_t, _REAL, _TEXT]),
    "purlin_duel_open": (ctypes.c_int, [ctypes.POINTER(_HANDLE)]),
    "purlin_duel_close": (None, [_HANDLE]),
    "purlin_duel_add": (ctypes.c_int, [_HANDLE, _REAL, _REAL]),
    "purlin_duel_ratio": (_REAL, [_HANDLE]),
    "purlin_duel_samples": (ctypes.c_uint64, [_HANDLE]),
    "purlin_tuner_open": (ctypes.c_int, [ctypes.POINTER(TunerDesc), ctypes.POINTER(_HANDLE)]),
    "purlin_tuner_close": (None, [_HANDLE]),
    "purlin_tuner_add_ints": (ctypes.c_int, [_HANDLE, _TEXT, _INTS, ctypes.c_size_t, _INT]),
    "purlin_tuner_add_doubles": (
        ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(_REAL), ctypes.c_size_t, _REAL]),
    "purlin_tuner_add_texts": (
        ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(_TEXT), ctypes.c_size_t, _TEXT]),
    "purlin_tuner_add_constraint": (ctypes.c_int, [_HANDLE, _TEXT]),
    "purlin_tuner_add_dimension": (ctypes.c_int, [_HANDLE, _TEXT, _INT, _TEXT]),
    "purlin_tuner_transfer": (ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(OpDesc)]),
    "purlin_tuner_start": (ctypes.c_int, [_HANDLE]),
    "purlin_tuner_next": (ctypes.c_int, [_HANDLE, ctypes.POINTER(_HANDLE)]),
    "purlin_tuner_waited": (ctypes.c_int, [_HANDLE, ctypes.c_double]),
    "purlin_tuner_announced": (ctypes.c_int, [_HANDLE, ctypes.POINTER(_HANDLE)]),
    "purlin_tuner_report": (ctypes.c_int, [_HANDLE, _REAL]),
    "purlin_tuner_reject": (ctypes.c_int, [_HANDLE, ctypes.c_int, _TEXT]),
    "purlin_tuner_is_over": (ctypes.c_int, [_HANDLE]),
    "purlin_tuner_best": (_HANDLE, [_HANDLE]),
    "purlin_tuner_best_time_ms": (_REAL, [_HANDLE]),
    "purlin_tuner_default_time_ms": (_REAL, [_HANDLE]),
    "purlin_tuner_space_size": (ctypes.c_uint64, [_HANDLE]),
    "purlin_tuner_evaluations": (ctypes.c_uint64, [_HANDLE]),
    "purlin_tuner_store": (ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(OpDesc), ctypes.c_int]),
    "purlin_config_int": (_INT, [_HANDLE, _TEXT, _INT]),
    "purlin_config_double": (_REAL, [_HANDLE, _TEXT, _REAL]),
    "purlin_config_text": (_TEXT, [_HANDLE, _TEXT, _TEXT]),
    "purlin_cublaslt_open": (
        ctypes.c_int, [_HANDLE, ctypes.POINTER(CublasLtDesc), ctypes.POINTER(_HANDLE)]),
    "purlin_cublaslt_close": (None, [_HANDLE]),
    "purlin_cublaslt_matmul": (
        ctypes.c_int, [_HANDLE, ctypes.POINTER(CublasLtLaunch), ctypes.POINTER(ctypes.c_int)]),
}

_lock = threading.Lock()
_opened = None


def library():
    """The library, opened by the first call. PurlinError names the searched places."""
    global _opened
    with _lock:
        if _opened is not None:
            return _opened
        tried = []
        for path in _candidates():
            try:
                opened = ctypes.CDLL(path)
                for name, (result, arguments) in _SIGNATURES.items():
                    function = getattr(opened, name)
                    function.restype, function.argtypes = result, arguments
            except (OSError, AttributeError) as problem:
                tried.append("%s (%s)" % (path, problem))
                continue
            if opened.purlin_abi_version() < ABI_VERSION:
                tried.append("%s (too old)" % path)
                continue
            _opened = opened
            return opened
        raise PurlinError(
            "libpurlin.so was not found; install Purlin or set PURLIN_LIBRARY to its path. Tried: "
            + "; ".join(tried),
            "unavailable",
        )


def check(status):
    if status != 0:
        text = library().purlin_last_error()
        raise PurlinError(text.decode("utf-8", "replace"), STATUS.get(status, "failed"))


def encoded(text):
    """None and "" are not stated."""
    return text.encode("utf-8") if text else None
