# SPDX-License-Identifier: Apache-2.0
"""The hook of one process: when it traces, and what becomes of a trace (docs/design/torch-hook.md)."""
import atexit
import os
import threading
import time

from . import flow, teardown
from .flow_after import FlowAfter
from .guards import Captures, Guard, WithoutKinetosLine, is_the_programs, wait_for_devices
from .main_thread import MainThread
from .notes import Notes, text_of
from .profiler import WORK, all_threads, has_work, new_profiler, uses_cuda
from .selection import Selection
from .window import CaptureAnswer, Own, Steps, StepsAfter, Window, compress


class Hook:
    TRIES = 5  # of a trace by time, at growing intervals

    def __init__(self, torch, settings):
        self.torch = torch
        self.settings = settings
        self.steps = Steps(settings.settle_s)
        self.window = None
        self.finished = False  # nothing more is traced without a request
        self._timed = False  # has a trace by time
        self._other_rank = False  # than the traced one
        self._computed = 0  # launches that compute, when a trace by time was thought of before
        self.forked = False
        self._importer = threading.get_ident()
        self._made = 0
        self._requested = False
        self._wake = threading.Event()
        self._guard = Guard(torch, self._give_way)
        self._captures = Captures()
        self._thread = self._exporting = self._answer = self._after = None
        self._main = MainThread(self._captures)
        self._notes = Notes(torch, settings, self.steps)
        self._selection = Selection(torch, settings)
        self._flow = FlowAfter(torch, settings, self._guard, self._main, self._notes, self._wake)
        self._ending = False

    # --- life

    def arm(self):
        os.register_at_fork(before=self._before_fork, after_in_child=self._in_child)
        atexit.register(self._at_exit)
        if self.torch.version.cuda is None:
            self._finish("no_cuda")
            return
        self._notes.write("none", "not_steady")
        self._captures.watch(self.torch)
        self._register()
        lazily = getattr(self.torch.cuda, "_lazy_call", None)
        if lazily is not None:
            lazily(self._on_cuda)

    def _register(self):
        """For good: to remove a hook is to change what torch may be iterating over."""
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook
        except ImportError:  # before 2.0: traces by time
            return
        register_optimizer_step_post_hook(self._on_step)

    def _before_fork(self):
        """Both processes would write to one file."""
        try:
            self._flow.end(False)
        except Exception:
            pass

    def _in_child(self):
        self.forked = self.finished = True
        self._captures.forget()
        if self.window is not None:  # the child inherits the parent's open profiler: it records nothing
            try:
                self._guard.remove()
                self.torch.autograd._enable_record_function(False)
            except Exception:
                pass
        self.window = None
        teardown.restore()

    def _at_exit(self):
        if self.forked:
            return
        self._ending = True
        try:
            self._flow.end(False)
            window = self.window
            if window is None:
                if not self.finished:
                    self._notes.write("none", "not_steady")
            elif window.mode == "time":
                self._end_early(window, 10)
            elif window.steps > 0 and not window.unwanted:
                teardown.choose(keeps_cupti=True)
                self._close(window)
                self._export(window)
            else:
                self._drop(window, "ended")
            if self._exporting is not None:
                self._exporting.written.wait(30)
            self._note_after()
            teardown.finish(self.torch)
        except Exception as fault:
            self.fail(fault)

    def _finish(self, reason, detail="", window=None):
        self.finished = True
        teardown.restore()
        if window is None and self._requested:  # the answer to a request has a number
            self._made += 1
            window = Window("none", self._made)
        self._requested = False
        self._notes.write("none", reason, detail, window)

    def fail(self, fault):
        if is_the_programs(fault):
            raise fault
        window, self.window = self.window, None
        try:
            self._flow.end(False)
            self.finished = True
            if window is not None and window.profiler is not None and not window.closed:
                self._stop_after_fault(window)
            self._guard.remove()
            if window is not None:
                window.over.set()
            self._finish("fault", text_of(fault), window)
        except Exception:
            pass

    def _stop_after_fault(self, window):
        try:
            teardown.choose(keeps_cupti=True)
            self._stop(window)
        except Exception:
            pass

    # --- traces by steps

    def _on_step(self, optimizer, arguments, named):
        idle = self.finished and not self._requested and self.window is None
        if self.forked or (idle and self._after is None and self._flow.recording is None):
            return
        try:
            self._step(optimizer)
        except Exception as fault:
            self.fail(fault)

    _on_step._torchdynamo_disable = True  # of a compiled step: called, not compiled

    def _step(self, optimizer):
        if self._captures.open > 0:  # a step that becomes a CUDA graph
            return
        now = time.perf_counter_ns()
        window = self.window
        if window is None:
            if not self.steps.is_round(optimizer):
                return
            flow_trace = self._flow.recording
            if flow_trace is not None:
                if flow_trace.thread == threading.get_ident() and flow_trace.step():
                    self._flow.end(True)
                return
            if self._after is not None and self._after.mark(now):
                self._note_after()
            if self.finished and not self._requested:
                return
            self.steps.mark(now)
            asked = self._requested and self.steps.count > 2
            if not asked and (self.settings.on_request or not self.steps.steady()):
                return
            if self.steps.too_long(self.settings.longest_s):
                return
            if self._answer is None:  # the steps go on until the answer is there
                if not self._may_trace():
                    return
                self._answer = CaptureAnswer(self.settings.folder)
                threading.Thread(target=self._answer.ask, daemon=True).start()
            elif self._answer.is_over(now):
                answer, self._answer = self._answer, None
                self._open_steps(answer)
        elif window.mode == "steps" and window.thread == threading.get_ident():
            if self.steps.is_round(optimizer):
                self._step_window(window, now)

    def _may_trace(self):
        """False where no trace begins now. Where none ever will, the note has the reason."""
        if not uses_cuda(self.torch):
            if self.steps.count > 4 * Steps.MANY:
                self._finish("no_cuda")
            return False
        reason = self._selection.obstacle(self._requested)
        self._other_rank = reason == "other_rank"
        if reason and not self._other_rank:
            self._finish(reason)
        return not reason or self._other_rank

    def _open_steps(self, answer):
        """Another rank than the traced one records a step and drops it: CUPTI, with which each of its
        launches takes longer, is then shut down as in the traced one. The slowest rank sets the pace."""
        if not self._may_trace():
            return
        if self._other_rank and (answer.keeps_cupti or self.finished):  # or it is shut down already
            self._finish("other_rank")
            return
        settings = self.settings
        window = self._new_window("steps", answer)
        window.unwanted = self._other_rank
        window.usual_ns = self.steps.typical()
        window.wanted = 1 if window.unwanted else answer.steps(settings.steps, window.usual_ns)
        schedule = self.torch.profiler.schedule(
            wait=0, warmup=settings.warm_up, active=window.wanted, repeat=1
        )
        with WithoutKinetosLine(self._importer), Own(self._guard, window):
            window.profiler = new_profiler(self.torch, schedule=schedule)
            wait_for_devices(self.torch)
            window.profiler.start()
        self.steps.last = None

    def _step_window(self, window, now):
        if window.given_up:
            self._drop(window, window.given_up)
            return
        window.rounds += 1
        warm = window.rounds - self.settings.warm_up
        last = warm >= window.wanted
        if warm == 0:
            window.start_ns, window.recording_since = time.time_ns(), now
        if warm > 0:
            window.steps = warm
            last = last or now - window.recording_since > self.settings.longest_s * 1e9
        if last:
            window.end_ns = time.time_ns()
            window.keep_raw()
            teardown.choose(window.keeps_cupti)
        else:
            window.last_step_ns = time.time_ns()
        if not last or warm >= window.wanted:
            with Own(self._guard, window):
                window.profiler.step()
        if last and window.unwanted:
            self._drop(window, "other_rank")
        elif last:
            self._close(window)
            self._flow.open(window)
            threading.Thread(target=self._export, args=(window,), name="purlin-torch").start()

    def _note_after(self):
        """The steps after the trace, in its note. Written by os.replace: a reader sees either."""
        after, self._after = self._after, None
        if after is None or "trace" not in after.window.saved or not after.typical():
            return
        window = after.window
        window.saved.update(step_after_ns=after.typical(), steps_after=len(after.durations))
        self._notes.write(window.mode, "", "", window, **window.saved)

    # --- traces by time

    def _on_cuda(self):
        """In torch's lazy initialisation of CUDA."""
        if self.forked or self._thread is not None:
            return
        try:
            self._thread = threading.Thread(target=self._watch, daemon=True, name="purlin-torch")
            self._thread.start()
        except Exception as fault:
            self.fail(fault)

    def _watch(self):
        """Traces by time where no steps come, and what `purlin capture window --torch` requests."""
        since = time.perf_counter_ns()
        tries = 0
        request = self.settings.path("request")
        try:
            while not self.forked and os.path.isdir(self.settings.folder):
                self._wake.wait(0.25 if not self.finished else 0.5)
                if self.forked:
                    return
                if self.window is not None:
                    continue
                if os.path.exists(request):
                    os.unlink(request)
                    self._requested = True
                    since = time.perf_counter_ns() - int(1e9 * (self.settings.wait_s - 2))
                done = self.finished or self._timed or self.settings.on_request
                if (done and not self._requested) or not self._without_steps(since, tries):
                    continue
                last = self._requested or tries + 1 >= self.TRIES
                tries = 0 if self._trace_time(anything=last) else tries + 1
                since = time.perf_counter_ns()
                if last and tries > 0 and not self.finished:
                    self._finish("no_kernels")
                self._requested = False
        except Exception as fault:
            self.fail(fault)

    def _without_steps(self, since, tries):
        """A program that loads a model, or has an optimizer, has more time to its first step."""
        now, wait = time.perf_counter_ns(), self.settings.wait_s * 1e9
        too_long = self.steps.too_long(self.settings.longest_s)
        if not self._requested:
            wait *= 2 ** tries
            if self.steps.count > 0:
                wait *= 1 if too_long else 6
            elif self._has_optimizer():
                wait *= 60
        last = max(since, self.steps.last or 0)
        return now - (since if too_long else last) > wait

    def _has_optimizer(self):
        """PyTorch marks the step of a class when its first instance is made."""
        classes = list(self.torch.optim.Optimizer.__subclasses__())
        for each in classes:
            if getattr(each.__dict__.get("step"), "hooked", False):
                return True
            classes.extend(each.__subclasses__())
        return False

    def _trace_time(self, anything):
        """True where nothing more is to be tried. `anything`: whichever kernels there are.

        CUPTI is shut down once in a process, at the end of a trace. So a trace that would be dropped
        is better not begun: Purlin's capture knows whether the program computes. Another rank than
        the traced one records a moment and drops it (_open_steps).
        """
        reason = self._selection.obstacle(self._requested)
        self._other_rank = reason == "other_rank" and not self._requested
        if reason and not self._other_rank:
            self._finish(reason)
            return True
        everywhere = all_threads()
        if everywhere is None:
            self._finish("no_all_threads")
            return True
        answer = CaptureAnswer(self.settings.folder)
        answer.ask()
        if self._other_rank and (answer.keeps_cupti or self.finished):
            self._finish(reason)
            return True
        computed, self._computed = self._computed, answer.computing or 0
        if not anything and answer.computing is not None and answer.computing <= computed:
            self._selection.claim(False)
            return False
        window = self._new_window("time", answer)
        window.unwanted = self._other_rank
        longest = answer.SHORTEST_S if window.unwanted else self.settings.window_s
        self._on_its_thread(window, lambda: self._start(window, everywhere))
        window.start_ns = time.time_ns()
        self._wake.wait(answer.length_s(longest))
        self._wake.clear()
        window.end_ns = time.time_ns()
        if window.given_up:
            self._drop(window, window.given_up)
            return True
        if window.unwanted:
            self._drop(window, reason, keeps_cupti=self._ending)
            return True
        teardown.choose(window.keeps_cupti or self._ending)
        if not self._close(window, wanted=() if anything else WORK):
            return False
        began = time.perf_counter_ns()
        try:
            results = window.profiler.profiler.kineto_results
            seconds = flow.seconds_by_time(self.torch, results, window.start_ns, window.end_ns)
        except Exception as fault:
            seconds = fault
        window.flow_ns = time.perf_counter_ns() - began
        self._export(window)
        if not self._ending and "trace" in window.saved:
            self._flow.open_by_time(window, seconds)
        return True

    def _start(self, window, everywhere):
        with WithoutKinetosLine(self._importer), Own(self._guard, window):
            window.profiler = new_profiler(self.torch, experimental_config=everywhere)
            wait_for_devices(self.torch)
            window.profiler.start()

    def _on_its_thread(self, window, work):
        """Starts or stops a profiler. Neither may meet a capture, nor be in the middle of one."""
        if window.mode == "steps":
            work()
        else:
            self._main.run_outside_of_captures(work)

    # --- both

    def _new_window(self, mode, answer):
        self._made += 1
        self._after = None
        self.window = Window(mode, self._made)
        self.window.keeps_cupti = answer.keeps_cupti
        self._notes.write(mode, "unfinished", window=self.window)
        self._guard.install()
        return self.window

    def _give_way(self, reason="own_profiler"):
        """The program starts a profiler, or ends."""
        window = self.window
        if window is None:
            self._flow.end(False)
            return
        window.given_up = reason
        if window.mode == "steps" and window.thread == threading.get_ident():
            self._drop(window, reason)
        elif window.mode == "time":
            self._end_early(window, 5)

    def _end_early(self, window, patience_s):
        """On the main thread, or where it waits: what is to run there runs between two waits."""
        self._wake.set()
        end = time.monotonic() + patience_s
        while not window.over.wait(0.02) and time.monotonic() < end:
            pass

    def _stop(self, window):
        with Own(self._guard, window):
            try:
                window.stop()
            finally:
                teardown.finish(self.torch)

    def _drop(self, window, reason, keeps_cupti=True):
        teardown.choose(keeps_cupti)  # True: a profiler of the program may start right after
        self._on_its_thread(window, lambda: self._stop(window))
        self._guard.remove()
        self.window = None
        window.over.set()
        self._finish(reason, "", window)

    def _close(self, window, wanted=None):
        """Ends the recording. False where it has no kernels of `wanted` kinds: it is dropped."""
        self._on_its_thread(window, lambda: self._stop(window))
        window.closed = time.perf_counter_ns()
        window.end_ns = window.end_ns or time.time_ns()
        self._guard.remove()
        self._requested = False
        found = wanted is None or has_work(self.torch, window.profiler, wanted)
        window.own_ns += time.perf_counter_ns() - window.closed
        if found and window.mode == "time" and window.keeps_cupti:
            self._timed = True  # steps may come later, and have a trace too
        elif found:  # another trace would leave CUPTI attached
            self.finished = True
        if found:
            self._exporting = window
            self._after = StepsAfter(window, self.settings.after_s)
        self.window = None
        window.over.set()
        if not found:
            self._notes.write("none", "no_kernels", "", window)
            self._selection.claim(False)
        return found

    def _export(self, window):
        """Not on the thread that works, except at exit. gzip compresses without Python's lock."""
        name = "torch-%d-%d.json" % (os.getpid(), window.number)
        raw = os.path.join(self.settings.folder, name)
        try:
            began = time.perf_counter_ns()
            window.profiler.export_chrome_trace(raw)
            window.export_ns = time.perf_counter_ns() - began
            window.profiler = None
            size = os.path.getsize(raw)
            if size > self.settings.most_bytes:
                self._notes.write("none", "too_large", "%d bytes" % size, window)
                return
            self._notes.write(window.mode, "unfinished", window=window)
            began = time.perf_counter_ns()
            compress(raw, os.path.join(self.settings.folder, name + ".gz"))
            behind = time.perf_counter_ns() - began
            teardown.restore()  # before the note, with which the trace is complete
            window.saved.update(trace=name + ".gz", background_ns=behind)
            self._notes.write(window.mode, "", "", window, **window.saved)
        except Exception as fault:
            self._notes.write("none", "fault", text_of(fault), window)
        finally:
            try:
                os.unlink(raw)
            except OSError:
                pass
            teardown.restore()
            window.written.set()
