# SPDX-License-Identifier: Apache-2.0
"""The data flow after a trace: when it is recorded, ended and saved next to the trace (flow.py records it)."""
import os
import threading
import time

from .flow import FlowTrace, Unfit, check
from .guards import is_the_programs
from .notes import text_of
from .window import compress


class FlowAfter:
    """`wake`: set where a recording by time has to end early."""

    def __init__(self, torch, settings, guard, main, notes, wake):
        self.torch, self.settings = torch, settings
        self.recording = None
        self._guard, self._main, self._notes, self._wake = guard, main, notes, wake

    def open(self, window):
        began = time.perf_counter_ns()
        recording = FlowTrace(self.torch, self.settings.path("flow"), self.settings.flow_steps, window)
        try:
            results = window.profiler.profiler.kineto_results
            check(self.torch, results, window.last_step_ns)
            self._start(recording)
        except Exception as fault:
            self._none(recording, fault)
        window.flow_ns = time.perf_counter_ns() - began

    def _start(self, recording):
        recording.start()
        self.recording = recording
        self._guard.install()

    @staticmethod
    def _none(recording, fault):
        if is_the_programs(fault):
            raise fault
        recording.drop()
        unfit = isinstance(fault, Unfit)
        recording.window.saved["no_flow"] = str(fault) if unfit else text_of(fault)

    def open_by_time(self, window, seconds):
        """After a trace by time. `seconds`: of seconds_by_time, or the fault of it."""
        recording = FlowTrace(self.torch, self.settings.path("flow"), 0, window)

        def start():
            if threading.current_thread() is not threading.main_thread():
                raise Unfit("the main thread did not come to Python's next instruction")
            recording.thread = threading.get_ident()
            self._start(recording)

        try:
            if isinstance(seconds, Exception):
                raise seconds
            length, recording.op_share = seconds
            self._main.run_outside_of_captures(start)
            self._wake.wait(length)
            self._wake.clear()
            self._main.run(lambda: self.end(True))
        except Exception as fault:
            self._none(recording, fault)
        if "no_flow" in window.saved and "trace" in window.saved:
            self._notes.write(window.mode, "", "", window, **window.saved)

    def end(self, whole):
        """`whole`: all its steps are recorded. Does nothing where none is recorded."""
        recording, self.recording = self.recording, None
        if recording is None:
            return
        window = recording.window
        self._guard.remove()
        recording.stop()
        window.flow_ns += recording.cost_ns()
        if whole:
            threading.Thread(target=self._save, args=(recording,), name="purlin-torch").start()
        else:
            recording.drop()
            window.saved["no_flow"] = "the program forked, ended or started a profiler meanwhile"

    def _save(self, recording):
        window = recording.window
        name = "torch-%d-%d.flow.json.gz" % (os.getpid(), window.number)
        try:
            if os.path.getsize(recording.path) <= self.settings.most_bytes:
                compress(recording.path, os.path.join(self.settings.folder, name))
                window.saved["flow"] = name
            else:
                window.saved["no_flow"] = "its file is larger than %d bytes" % self.settings.most_bytes
            if window.written.wait(60) and "trace" in window.saved:
                self._notes.write(window.mode, "", "", window, **window.saved)
        except Exception:
            pass  # the trace is as good without
        finally:
            recording.drop()
