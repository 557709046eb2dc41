# SPDX-License-Identifier: Apache-2.0
"""The config cache: lookups before a launch, and winners put into it."""
import atexit
import ctypes
import json
import operator
import threading
import weakref
from collections.abc import Mapping

from ._library import ALLOW_TRANSFERRED, OUTCOMES, Device, OpDesc, PurlinError, check, encoded, library


class Hit(Mapping):
    """What a lookup found: the config as a mapping; empty, and false, on a miss."""

    __slots__ = ("outcome", "options", "time_ms", "default_time_ms", "verified", "id", "layer", "_config", "_why")

    def __init__(self, outcome, entry, why=None):
        lib = library()
        self.outcome = outcome
        self._why = why
        self._config = {}
        self.options = ""
        self.time_ms = self.default_time_ms = 0.0
        self.verified, self.id, self.layer = False, "", ""
        if not entry:
            return
        self.options = lib.purlin_entry_options(entry).decode()
        self.time_ms = lib.purlin_entry_time_ms(entry)
        self.default_time_ms = lib.purlin_entry_default_time_ms(entry)
        self.verified = bool(lib.purlin_entry_verified(entry))
        self.id = lib.purlin_entry_id(entry).decode()
        self.layer = lib.purlin_entry_layer(entry).decode()
        for index in range(lib.purlin_entry_parameter_count(entry)):
            name = lib.purlin_entry_parameter_name(entry, index)
            self._config[name.decode()] = _value(lib, entry, name)

    def __getitem__(self, name):
        return self._config[name]

    def __iter__(self):
        return iter(self._config)

    def __len__(self):
        return len(self._config)

    @property
    def why(self):
        """Why it is a miss, in a sentence for people; "" for a hit. Reads the cache."""
        return self._why() if self._why is not None and not self._config else ""

    def __repr__(self):
        return "Hit(%s, %r)" % (self.outcome, self._config)


def _value(lib, entry, name):
    """A parameter's value in its own type: text, integer (booleans are 0 and 1) or real."""
    text = lib.purlin_entry_text(entry, name, None)
    if text is not None:
        return text.decode()
    # An integer has the same answer for every fallback; a real returns the fallback.
    low, high = (lib.purlin_entry_int(entry, name, fallback) for fallback in (0, 1))
    return low if low == high else lib.purlin_entry_double(entry, name, 0.0)


_ops = weakref.WeakSet()  # those that are open
_ops_lock = threading.Lock()


@atexit.register
def _hand_over(cache=None):
    """Flushes the counts of the ops of a cache, or of all: at exit, before the library writes the
    work list."""
    with _ops_lock:
        ops = list(_ops)
    for op in ops:
        if cache is None or op._cache is cache:
            op.hand_over()


class Op:
    """One op on one device. find() is safe to call from any thread, and queries each shape once. Later
    requests are counted here and passed to the library at flush, reload and exit."""

    def __init__(self, cache, handle, dimensions):
        self._cache = cache  # keeps it open
        self._handle = handle
        self.dimensions = tuple(dimensions)
        self._array = ctypes.c_int64 * len(self.dimensions)
        self._known = {}  # extents -> [hit, finds not yet passed on]
        self._uses = {}   # extents -> [launches by callers that keep the answer]
        with _ops_lock:
            _ops.add(self)

    def find(self, *extents, **named):
        """The entry for a problem shape: find(1024, 512, 512) or find(M=1024, N=512, K=512)."""
        if named:
            if extents or set(named) != set(self.dimensions):
                raise PurlinError("find() takes %s" % ", ".join(self.dimensions), "invalid")
            extents = tuple(named[name] for name in self.dimensions)
        known = self._known.get(extents)
        if known is not None:
            known[1] += 1
            return known[0]
        array = self._extents("find", extents)
        entry = ctypes.c_void_p()
        outcome = library().purlin_lookup(self._handle, array, len(extents), ctypes.byref(entry))
        hit = Hit(OUTCOMES[outcome], entry.value, lambda: self._why_missed(array))
        if hit:  # a miss is queried again: a reload may bring an entry
            self._known[extents] = [hit, 0]
        return hit

    def _extents(self, function, extents):
        """The extents as the library takes them. ctypes alone would cut an integer to 64 bits."""
        if len(extents) != len(self.dimensions):
            raise PurlinError("%s() takes %s" % (function, ", ".join(self.dimensions)), "invalid")
        try:
            extents = tuple(operator.index(extent) for extent in extents)
        except TypeError:
            raise PurlinError("%s(): extents are integers, not %r" % (function, extents), "invalid") from None
        for name, extent in zip(self.dimensions, extents):
            if not -(2**63) <= extent < 2**63:
                raise PurlinError("%s(): %s=%d is beyond 64 bits" % (function, name, extent), "invalid")
        return self._array(*extents)

    def _why_missed(self, array):
        ask = library().purlin_op_why_missed
        size = ask(self._handle, array, len(array), None, 0) + 1
        buffer = ctypes.create_string_buffer(size)
        ask(self._handle, array, len(array), buffer, size)
        return buffer.value.decode("utf-8", "replace")

    def uses(self, *extents):
        """A list of one integer. A caller that keeps a shape's answer adds 1 for each launch with it."""
        counter = self._uses.get(extents)
        if counter is None:
            self._extents("uses", extents)
            counter = self._uses.setdefault(extents, [0])
        return counter

    def demote(self, extents, ratio, reason):
        """Takes the entry of a shape out of service, for all programs: its config takes `ratio` times as long as
        another one."""
        array = self._extents("demote", extents)
        check(library().purlin_op_demote(self._handle, array, len(extents), ratio, reason.encode()))
        self._known.pop(tuple(extents), None)

    def hand_over(self):
        """Passes the counts since the last flush to the library, for the work list."""
        for kept in (self._known, self._uses):
            for extents, counter in list(kept.items()):
                count = counter[-1]
                if count > 0:
                    counter[-1] -= count  # a launch of another thread between the two may be lost
                    library().purlin_op_count(self._handle, self._array(*extents), len(extents), count)

    def forget(self):
        """Queries the library again, after a reload."""
        self.hand_over()
        self._known.clear()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.hand_over()
            library().purlin_op_close(self._handle)
            self._handle = None


def op_desc(op, dimensions, device, kernel=None, dtype=None, source_hash=None, policy=None,
            allow_transferred=False, layout=None):
    """purlin_op_desc of these; it keeps what it points to."""
    if not isinstance(device, Mapping):
        raise PurlinError("device: give a mapping with backend and arch, as device() returns", "invalid")
    facts = Device(size=ctypes.sizeof(Device), **{
        name: (text or "").encode() if name in ("backend", "arch") else encoded(text)
        for name, text in device.items()})
    names = (ctypes.c_char_p * len(dimensions))(*[name.encode() for name in dimensions])
    return OpDesc(
        size=ctypes.sizeof(OpDesc), op=encoded(op), kernel=encoded(kernel),
        dtype=encoded(dtype), source_hash=encoded(source_hash), policy=encoded(policy),
        dimensions=names, dimension_count=len(dimensions), device=ctypes.pointer(facts),
        flags=ALLOW_TRANSFERRED if allow_transferred else 0, layout=encoded(layout))


class Cache:
    """The cache in a directory; None: $PURLIN_CACHE, else the user's. Below it are the layers of
    $PURLIN_CACHE_LAYERS, or `below`: directories, the uppermost first."""

    def __init__(self, directory=None, below=None):
        handle = ctypes.c_void_p()
        if below is None:
            check(library().purlin_cache_open(encoded(directory), ctypes.byref(handle)))
        else:
            names = [encoded(directory)] + [encoded(name) for name in below]
            array = (ctypes.c_char_p * len(names))(*names)
            check(library().purlin_cache_open_layers(array, len(names), ctypes.byref(handle)))
        self._handle = handle.value

    @property
    def layers(self):
        """Directories of the layers that are read, the uppermost first."""
        count = library().purlin_cache_layers(self._handle, None, 0)
        names = (ctypes.c_char_p * count)()
        count = min(count, library().purlin_cache_layers(self._handle, names, count))
        return [name.decode() for name in names[:count]]

    @property
    def directory(self):
        return library().purlin_cache_directory(self._handle).decode()

    def device(self, name="auto"):
        """The facts of "cuda:0", "opencl:0" or "auto", as `purlin tune` records them."""
        facts = Device(size=ctypes.sizeof(Device))
        check(library().purlin_cache_device(self._handle, encoded(name), ctypes.byref(facts)))
        fields = ("backend", "arch", "model", "toolkit", "driver")
        return {field: (getattr(facts, field) or b"").decode() for field in fields}

    def op(self, op, dimensions, device, kernel=None, dtype=None, source_hash=None, policy=None,
           allow_transferred=False, layout=None):
        """`device` as device() returns it; backend and arch are needed, the rest may be left out.
        `layout` of the buffers, as a cache key has it: "A=row,B=column,C=row"."""
        desc = op_desc(op, dimensions, device, kernel, dtype, source_hash, policy, allow_transferred, layout)
        handle = ctypes.c_void_p()
        check(library().purlin_op_open(self._handle, ctypes.byref(desc), ctypes.byref(handle)))
        return Op(self, handle.value, dimensions)

    def put(self, key, config, problem, time_ms, **members):
        """Stores a winner; `members` are the further ones of docs/formats/cache.md."""
        entry = dict(members, key=dict(key), config=dict(config), problem=dict(problem), time_ms=time_ms)
        check(library().purlin_cache_put(self._handle, json.dumps(entry).encode()))

    def flush(self):
        """Adds the requests since the last flush to the work list."""
        _hand_over(self)
        check(library().purlin_cache_flush(self._handle))

    def reload(self):
        """Reads the entries that other processes stored."""
        _hand_over(self)
        check(library().purlin_cache_reload(self._handle))

    def __del__(self):
        if getattr(self, "_handle", None):
            library().purlin_cache_close(self._handle)
            self._handle = None
