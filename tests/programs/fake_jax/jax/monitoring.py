# SPDX-License-Identifier: Apache-2.0
"""Whom jax tells of its events. jax 0.11 calls listeners with keywords besides."""
_of_events, _of_times = [], []


def register_event_listener(listener):
    _of_events.append(listener)


def register_event_duration_secs_listener(listener):
    _of_times.append(listener)


def compiled(cached):
    for listener in _of_events:
        listener("/jax/compilation_cache/" + ("cache_hits" if cached else "cache_misses"))
    for listener in _of_times:
        listener("/jax/core/compile/jaxpr_to_mlir_module_duration", 0.01, fun_name="step")
        listener("/jax/core/compile/backend_compile_duration", 0.01, fun_name="step")
