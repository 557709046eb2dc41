# SPDX-License-Identifier: Apache-2.0
"""A search over a space, driven by this program: libpurlin's tuner (include/purlin/tuner.h).

Thread-safety: a tuner belongs to one thread at a time. Failure: PurlinError names the parameter or constraint.
"""
import ctypes

from ._library import PurlinError, TunerDesc, check, encoded, library

WRONG, NO_COMPILE, NO_LAUNCH, OUT_OF_TIME, UNFIT = range(5)


class Tuner:
    """Configs are mappings from parameter to one of its values."""

    def __init__(self, kernel, op, space, default, constraints=(), problem=None, buckets=None, **options):
        self._handle = ctypes.c_void_p()
        desc = TunerDesc(size=ctypes.sizeof(TunerDesc), kernel=encoded(kernel), op=encoded(op), seed=1,
                         warmups=0, finals_rounds=3)
        for name, value in options.items():
            setattr(desc, name, encoded(value) if isinstance(value, str) else value)
        check(library().purlin_tuner_open(ctypes.byref(desc), ctypes.byref(self._handle)))
        self._readers = {name: self._add(name, values, default[name]) for name, values in space.items()}
        for name, extent in (problem or {}).items():
            self._call("add_dimension", name.encode(), extent, encoded((buckets or {}).get(name)))
        for expression in constraints:
            self._call("add_constraint", expression.encode())

    def __del__(self):
        if getattr(self, "_handle", None):
            library().purlin_tuner_close(self._handle)

    def _call(self, function, *arguments):
        check(getattr(library(), "purlin_tuner_" + function)(self._handle, *arguments))

    def _add(self, name, values, preset):
        """Adds a parameter; returns the function that reads it from a config."""
        kinds = {type(value) for value in values}
        key, count = name.encode(), len(values)
        if kinds <= {int, bool}:
            self._call("add_ints", key, (ctypes.c_int64 * count)(*map(int, values)), count, int(preset))
            known = {int(value): value for value in values}
            return lambda config: known[library().purlin_config_int(config, key, 0)]
        if kinds == {str}:
            texts = (ctypes.c_char_p * count)(*[value.encode() for value in values])
            self._call("add_texts", key, texts, count, preset.encode())
            return lambda config: library().purlin_config_text(config, key, b"").decode()
        if kinds <= {int, float}:
            self._call("add_doubles", key, (ctypes.c_double * count)(*values), count, preset)
            return lambda config: library().purlin_config_double(config, key, 0.0)
        raise PurlinError("parameter %s: values are integers, booleans, reals or texts" % name, "invalid")

    def _read(self, config):
        return {name: read(config) for name, read in self._readers.items()}

    def transfer(self, directory, desc):
        """The search starts from results in the cache, and leaves its own there."""
        self._call("transfer", encoded(directory), ctypes.byref(desc))

    def start(self):
        self._call("start")

    def next(self):
        """The config of the next run; the best one once `over`."""
        config = ctypes.c_void_p()
        self._call("next", ctypes.byref(config))
        return self._read(config)

    def announced(self):
        """Configs of likely later runs, each once."""
        config, found = ctypes.c_void_p(), []
        while True:
            self._call("announced", ctypes.byref(config))
            if not config.value:
                return found
            found.append(self._read(config))

    def waited(self, seconds):
        """How long the program waited for the compilation of the config that it is to run."""
        self._call("waited", seconds)

    def report(self, time_ms):
        self._call("report", time_ms)

    def reject(self, how, why):
        self._call("reject", how, why.encode())

    @property
    def over(self):
        return bool(library().purlin_tuner_is_over(self._handle))

    @property
    def best(self):
        return self._read(library().purlin_tuner_best(self._handle))

    @property
    def best_time_ms(self):
        return library().purlin_tuner_best_time_ms(self._handle)

    @property
    def default_time_ms(self):
        return library().purlin_tuner_default_time_ms(self._handle)

    @property
    def space_size(self):
        return library().purlin_tuner_space_size(self._handle)

    @property
    def evaluations(self):
        return library().purlin_tuner_evaluations(self._handle)

    def store(self, directory, desc, verified):
        self._call("store", encoded(directory), ctypes.byref(desc), int(verified))
