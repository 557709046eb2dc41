# SPDX-License-Identifier: Apache-2.0
"""The launch that calls the compiled kernel itself: it chooses what JITFunction.run would have chosen."""
import itertools
import os
import threading
import unittest
from unittest import mock

import test_purlin  # first: it puts the fakes on the path
import torch
import triton
from triton.backends.nvidia import driver as nvidia
from triton.runtime import jit

import purlin
from purlin import _launch

CONFIGS = [triton.Config({"BLOCK": block}) for block in (16, 64)]
GRID = (1,)
SCALE = 3
_numbers = itertools.count()


class LaunchTest(test_purlin.WithCache):
    def setUp(self):
        super().setUp()
        for patch in (mock.patch.object(purlin.Cache, "device", lambda self, name: dict(test_purlin.H200)),
                      mock.patch.object(_launch, "KNOWN_SOURCES", {_launch.Modules().digest()}),
                      mock.patch.multiple(torch.cuda, current=0, stream=0, capturing=False, devices=2)):
            patch.start()
            self.addCleanup(patch.stop)
        _launch.known_triton.cache_clear()
        self.addCleanup(_launch.known_triton.cache_clear)
        self.x, self.out = torch.Tensor(range(4)), torch.Tensor([0.0] * 4)

    def kernel(self, parameters="x, out, n, k, f, flag, BLOCK: 'tl.constexpr'", configs=CONFIGS, **options):
        """A kernel out = x * k of these parameters."""
        scope = {}
        exec("def scaled(%s):\n    pass" % parameters, scope)
        made = jit.JITFunction(scope["scaled"])
        made.cache_key = "source %d" % next(_numbers)

        def work(*arguments, options):
            given = dict(zip(made.arg_names, arguments))
            given["out"].values[:] = [v * given.get("k", 2) for v in given["x"].values]
            torch.cuda.now_ms += 1 + (given["BLOCK"] != 64)

        made.work = work
        return purlin.autotune(configs, ["n"], cache=self.folder, **options)(made), made

    def ready(self, *args, **keywords):
        """A kernel that has launched these arguments often enough to know them."""
        kernel, made = self.kernel()
        for _ in range(3):
            kernel[GRID](*args, **keywords)
        made.runs = 0
        kernel[GRID](*args, **keywords)
        self.assertEqual(made.runs, 0)
        return kernel, made

    def launched(self, kernel, made, *args, grid=GRID, **keywords):
        """Launches twice; what the driver got is compared with what JITFunction.run gives it. Returns the count of
        calls of JITFunction.run, and the compiled kernel."""
        before = made.runs
        del nvidia.launched[:]
        first, second = kernel[grid](*args, **keywords), kernel[grid](*args, **keywords)
        runs = made.runs - before
        own = made.run(*args, grid=grid, warmup=False, **keywords, **kernel.best_config.all_kwargs())
        self.assertIs(first, own)
        self.assertIs(second, own)
        one, two, wanted = nvidia.launched
        self.assertEqual(one[:3], wanted[:3])
        self.assertEqual(two[:3], wanted[:3])
        for a, b in zip(two[3], wanted[3]):
            self.assertTrue(a is b, (a, b))
        return runs, own

    def test_a_known_key_does_without_jit_run(self):
        kernel, made = self.ready(self.x, self.out, 100, 2, 0.5, True)
        self.assertEqual(self.launched(kernel, made, self.x, self.out, 100, 2, 0.5, True)[0], 0)
        self.assertEqual(self.out.values, [0, 2, 4, 6])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        known = next(iter(kernel._warm.values()))
        uses = known.uses[0]
        kernel[GRID](self.x, self.out, 100, 2, 0.5, True)
        self.assertEqual(known.uses[0], uses + 1)

    def test_what_changes_the_specialisation_changes_the_kernel(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        own = self.launched(kernel, made, *base)[1]
        unaligned = torch.Tensor(range(4), offset=4)
        self.assertEqual(unaligned.data_ptr() % 16, 4)
        kinds = {own: "base"}
        for name, at, value, other in (
                ("unaligned", 0, unaligned, True), ("unaligned output", 1, torch.Tensor([0.0] * 4, offset=8), True),
                ("half", 0, torch.Tensor(range(4), torch.float16), True),
                ("both unaligned", 0, torch.Tensor(range(4), offset=12), True),
                ("one", 3, 1, True), ("sixteen", 3, 16, True), ("large", 3, 1 << 40, True),
                ("large, divisible", 3, (1 << 40) + 1, True), ("unsigned", 3, (1 << 63) + 1, True),
                ("negative", 3, -5, False), ("zero", 3, 0, False), ("another odd number", 3, 77, False),
                ("beyond 31 bits", 3, 1 << 31, False), ("not a number", 4, None, True), ("no flag", 5, None, True),
                ("flag of another value", 5, False, False), ("another float", 4, 1.0, False)):
            args = list(base)
            args[at] = value
            if name == "both unaligned":
                args[1] = torch.Tensor([0.0] * 4, offset=12)
            for _ in range(3):  # tuned, if its key is new
                kernel[GRID](*args)
            runs, kernel_of_it = self.launched(kernel, made, *args)
            self.assertEqual(runs, 0, name)
            self.assertEqual(kernel_of_it not in kinds, other, name)
            kinds.setdefault(kernel_of_it, name)
            self.assertEqual(self.launched(kernel, made, *base), (0, own), name)

    def test_every_integer_has_its_own_kernel(self):
        kernel, made = self.ready(self.x, self.out, 100, 2, 0.5, True)
        edges = [e + d for e in (0, 16, 1 << 31, 1 << 32, 1 << 63, -(1 << 31)) for d in (-16, -1, 0, 1, 16)]
        for value in edges:
            if -(1 << 63) <= value < 1 << 64:
                self.launched(kernel, made, self.x, self.out, 100, value, 0.5, True)
        self.assertLessEqual(len(memo(kernel)), 12)

    def test_a_value_that_is_not_certain_is_launched_by_triton(self):
        class Sub(torch.Tensor):
            pass

        class Number(int):
            pass

        base = [self.x, self.out, 100, 2, 0.5, True]
        kernel, made = self.ready(*base)
        cpu = torch.Tensor(range(4))
        cpu.is_cuda = False
        size = None
        for at, value in ((0, Sub(range(4))), (0, cpu), (4, 2)):
            args = list(base)
            args[at] = value
            for _ in range(3):
                kernel[GRID](*args)
            self.assertEqual(self.launched(kernel, made, *args)[0], 2, value)
            size = size or len(memo(kernel))
        # Not an integer, and an object where the key has the value: Triton raises, and nothing is kept.
        kept = len(memo(kernel))
        for at, value in ((3, Number(2)), (3, "text"), (2, Number(100))):
            args = list(base)
            args[at] = value
            with self.assertRaises(TypeError):
                for _ in range(3):
                    kernel[GRID](*args)
        self.assertEqual(len(memo(kernel)), kept)
        self.assertEqual(self.launched(kernel, made, *base)[0], 0)

    def test_a_parameter_is_a_tensor(self):
        weight = torch.nn.Parameter(range(4))
        kernel, made = self.ready(weight, self.out, 100, 2, 0.5, True)
        self.assertEqual(self.launched(kernel, made, weight, self.out, 100, 2, 0.5, True)[0], 0)

    def test_device_and_stream_are_the_current_ones(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        own = self.launched(kernel, made, *base)[1]
        torch.cuda.stream = 7
        self.assertEqual(self.launched(kernel, made, *base), (0, own))
        self.assertEqual(nvidia.launched[0][2], 7)
        torch.cuda.current = 1
        runs, other = self.launched(kernel, made, *base)
        self.assertIsNot(other, own)
        self.assertEqual((runs, nvidia.launched[0][2]), (1, 1007))
        self.assertEqual(self.launched(kernel, made, *base)[0], 0)
        torch.cuda.current = 0
        self.assertEqual(self.launched(kernel, made, *base), (0, own))

    def test_hooks_are_called(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        knobs, seen = triton.knobs.runtime, []

        def hook(metadata):
            seen.append(metadata.get()["name"])

        own = kernel[GRID](*base)
        for chain in (knobs.launch_enter_hook, knobs.launch_exit_hook):
            chain.add(hook)
            try:
                self.assertEqual(self.launched(kernel, made, *base), (2, own))
            finally:
                chain.remove(hook)
            self.assertEqual(seen, [own.name] * 3)
            del seen[:]
            self.assertEqual(self.launched(kernel, made, *base), (0, own))
        with mock.patch.object(knobs, "launch_enter_hook", hook):
            self.assertEqual(self.launched(kernel, made, *base), (2, own))
        with mock.patch.multiple(knobs, launch_enter_hook=None, launch_exit_hook=None):
            self.assertEqual(self.launched(kernel, made, *base), (0, own))
        made.pre_run_hooks.append(lambda *args, **kwargs: seen.append(kwargs["BLOCK"]))
        del seen[:]
        self.launched(kernel, made, *base)
        self.assertEqual(seen, [64] * 3)

    def test_modes_are_part_of_the_key(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        kernels = {kernel[GRID](*base)}

        def launches(runs):
            kernels.add(self.launched(kernel, made, *base)[1])
            self.assertEqual(self.launched(kernel, made, *base)[0], 0)
            return len(kernels)

        with mock.patch.object(triton.knobs.runtime, "debug", True):
            self.assertEqual(launches(1), 2)
        with mock.patch.dict(os.environ, TRITON_INSTRUMENTATION_MODE="by the environment"):
            self.assertEqual(launches(1), 3)
        triton.knobs.compilation.instrumentation_mode = "by the knob"
        try:
            self.assertEqual(launches(1), 4)
        finally:
            del triton.knobs.compilation.__dict__["instrumentation_mode"]
        made.debug = True
        self.assertEqual(launches(1), 4)  # as by the knob
        made.debug = None
        self.assertEqual(self.launched(kernel, made, *base)[0], 0)

    def test_a_mode_that_is_a_plain_attribute(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        with mock.patch.object(type(triton.knobs.compilation), "instrumentation_mode", ""):
            _launch.known_triton.cache_clear()
            kernel, made = self.ready(*base)
            own = kernel[GRID](*base)
            with mock.patch.object(triton.knobs.compilation, "instrumentation_mode", "other"):
                runs, other = self.launched(kernel, made, *base)
                self.assertEqual(runs, 1)
                self.assertIsNot(other, own)
            self.assertEqual(self.launched(kernel, made, *base), (0, own))

    def test_a_changed_global_is_reported_as_by_triton(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        made.used_global_vals = {("SCALE", id(globals())): (3, globals())}
        self.assertEqual(self.launched(kernel, made, *base)[0], 0)
        with mock.patch.dict(globals(), SCALE=4), self.assertRaisesRegex(RuntimeError, "SCALE has changed"):
            kernel[GRID](*base)
        self.assertEqual(self.launched(kernel, made, *base)[0], 0)

    def test_a_cleared_cache_and_another_driver_are_seen(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        own = kernel[GRID](*base)
        for clear in (made.device_caches.clear, lambda: made.device_caches[0][0].clear()):
            clear()
            runs, other = self.launched(kernel, made, *base)
            self.assertIsNot(other, own)
            self.assertEqual(runs, 1)
            self.assertEqual(self.launched(kernel, made, *base), (0, other))
            own = other
        driver = jit.driver.active
        jit.driver.set_active(type(driver)())
        self.addCleanup(jit.driver.set_active, driver)
        self.assertEqual(self.launched(kernel, made, *base)[0], 2)

    def test_grids(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        metas = []

        def grid(meta):
            metas.append(dict(meta))
            return meta["n"] // meta["BLOCK"], 5

        for given, wanted in (((3,), (3, 1, 1)), ((3, 4), (3, 4, 1)), ([3, 4, 5], (3, 4, 5)), (grid, (1, 5, 1))):
            self.assertEqual(self.launched(kernel, made, *base, grid=given)[0], 0)
            self.assertEqual(nvidia.launched[0][1], wanted)
        self.assertEqual(list(metas[0]), made.arg_names)
        self.assertTrue(all(meta == metas[0] for meta in metas))
        self.assertIs(metas[0]["x"], self.x)
        with self.assertRaises(AssertionError):
            kernel[None](*base)

    def test_constants_defaults_and_keywords(self):
        kernel, made = self.kernel("x, out, BLOCK: 'tl.constexpr', n, k=2, MODE: 'tl.constexpr' = None, bias=None")
        for _ in range(3):
            kernel[GRID](self.x, self.out, n=100, MODE="a", num_ctas=1)
        own = {}
        half, single = triton.language.dtype("fp16"), triton.language.dtype("fp32")
        for mode in ("a", "b", 1, True, 1.5, None, half, triton.language.dtype("fp16"), single):
            for _ in range(3):
                kernel[GRID](self.x, self.out, n=100, MODE=mode, num_ctas=1)
            runs, found = self.launched(kernel, made, self.x, self.out, n=100, MODE=mode, num_ctas=1)
            self.assertEqual(runs, 0, mode)
            own[type(mode), mode] = found
        # Triton's own key has True for 1.
        self.assertEqual(len(set(own.values())), 7)
        one = self.launched(kernel, made, self.x, self.out, n=100, MODE="a", num_ctas=1)[1]
        two = self.launched(kernel, made, self.x, self.out, n=100, MODE="a", num_ctas=2)[1]
        self.assertIsNot(one, two)
        # By name where the form has a position: the long way to the same kernel.
        self.assertEqual(self.launched(kernel, made, self.x, out=self.out, n=100, MODE="a", num_ctas=1)[0], 2)
        for mode in ([1], object()):
            kept = len(memo(kernel))
            with mock.patch.object(made, "device_caches", made.device_caches):
                try:
                    for _ in range(3):
                        kernel[GRID](self.x, self.out, n=100, MODE=mode, num_ctas=1)
                except TypeError:
                    pass
            self.assertEqual(len(memo(kernel)), kept)

    def test_an_argument_of_another_type_than_the_first(self):
        # The first call has a float where later ones have an integer: its width and divisibility count.
        kernel, made = self.kernel("x, out, n, k, BLOCK: 'tl.constexpr'")
        for k in (0.5, 0.5, 2, 2, 16, 16, 1 << 40, 2, 1, 1):
            kernel[GRID](self.x, self.out, 100, k)
            self.launched(kernel, made, self.x, self.out, 100, k)
        self.assertEqual(self.launched(kernel, made, self.x, self.out, 100, 0.5)[0], 0)

    def test_a_tensor_may_be_none(self):
        # Whichever comes first: both are known, and the dtype of the tensor is part of the key of its config.
        none, tensor, half = None, torch.Tensor(range(4)), torch.Tensor(range(4), torch.float16)
        unaligned = torch.Tensor(range(4), offset=4)
        for known in (True, False):
            with mock.patch.object(_launch, "known_triton", _launch.known_triton if known else lambda: None):
                for first, second in ((none, tensor), (tensor, none)):
                    kernel, made = self.kernel("x, out, n, k, bias, BLOCK: 'tl.constexpr'")
                    values = (first, second, half, unaligned, first)
                    for _ in range(4):
                        for value in values:
                            kernel[GRID](self.x, self.out, 100, 2, value)
                    self.assertEqual(len(kernel.purlin_log), 3)  # no tensor, and one of each dtype
                    self.assertEqual(len({id(k) for k in kernel._direct_warm.values()}), 3)
                    own = set()
                    with mock.patch.object(type(kernel), "run", side_effect=AssertionError("the long way")):
                        for value in values:
                            runs, found = self.launched(kernel, made, self.x, self.out, 100, 2, value)
                            self.assertEqual(runs, 0 if known else 2)
                            own.add(found)
                    self.assertEqual(len(own), 4)

    def test_two_tensors_may_be_none(self):
        kernel, made = self.kernel("x, out, n, a, b, BLOCK: 'tl.constexpr'")
        tensor = torch.Tensor(range(4))
        pairs = [(tensor, tensor), (None, tensor), (tensor, None), (None, None)]
        for _ in range(5):
            for a, b in pairs:
                kernel[GRID](self.x, self.out, 100, a, b)
        for a, b in pairs:
            self.assertEqual(self.launched(kernel, made, self.x, self.out, 100, a, b)[0], 0)

    def test_a_constant_may_be_none(self):
        kernel, made = self.kernel("x, out, n, MODE: 'tl.constexpr', BLOCK: 'tl.constexpr'")
        for mode in (None, "a", None, "b"):
            for _ in range(3):
                kernel[GRID](self.x, self.out, 100, mode)
            self.assertEqual(self.launched(kernel, made, self.x, self.out, 100, mode)[0], 0)

    def test_a_tensor_in_place_of_a_number_goes_the_long_way(self):
        kernel, made = self.kernel("x, out, n, k, f, BLOCK: 'tl.constexpr'")
        tensor, half = torch.Tensor(range(4)), torch.Tensor(range(4), torch.float16)
        for value in (0.5, 0.5, tensor, tensor, half, half, tensor):
            kernel[GRID](self.x, self.out, 100, 2, value)
            self.launched(kernel, made, self.x, self.out, 100, 2, value)
        self.assertEqual(len(kernel.purlin_log), 3)
        self.assertEqual(len(kernel._direct_warm), 1)

    def test_scratch_memory_is_the_launchers(self):
        kernel, made = self.kernel()
        made.metadata = {"global_scratch_size": 128}
        for _ in range(3):
            kernel[GRID](self.x, self.out, 100, 2, 0.5, True)
        self.assertEqual(self.launched(kernel, made, self.x, self.out, 100, 2, 0.5, True)[0], 0)

    def test_another_triton_or_kernel_object_is_launched_by_its_run(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        source, native = _launch.inspect.getsource, jit.native_specialize_impl

        def other(part):
            return source(part) + ("    more()" if part is jit.JITFunction.run else "")

        def wider(backend, value, *more):
            return ("i32", str(value % 32)) if type(value) is int else native(backend, value, *more)

        def stricter(backend, value, *more):
            return ("*", value.data_ptr() % 32) if hasattr(value, "data_ptr") else native(backend, value, *more)

        class Derived(jit.JITFunction):
            pass

        for patch, kind in (
                (mock.patch.object(_launch.inspect, "getsource", other), jit.JITFunction),
                (mock.patch.object(jit.JITFunction, "run", lambda self, *a, **k: run(self, *a, **k)),
                 jit.JITFunction),
                (mock.patch.object(nvidia, "_BASE_ARGS_FORMAT", "iiiKKpOOOOOO"), jit.JITFunction),
                (mock.patch.object(jit, "native_specialize_impl", wider), jit.JITFunction),
                (mock.patch.object(jit, "native_specialize_impl", stricter), jit.JITFunction),
                (mock.patch.object(_launch.inspect, "getsource", side_effect=OSError), jit.JITFunction),
                (mock.patch.object(jit, "JITFunction", jit.JITFunction), Derived)):
            run = jit.JITFunction.run
            _launch.known_triton.cache_clear()
            with patch:
                kernel, made = self.kernel()
                made.__class__ = kind
                for _ in range(3):
                    kernel[GRID](*base)
                before = made.runs
                kernel[GRID](*base)
                self.assertEqual(made.runs, before + 1)
                self.assertIsNotNone(kernel._fast)

    def test_functions_that_are_replaced_later_are_called(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        kernel, made = self.ready(*base)
        for owner, name in ((jit.JITFunction, "run"), (nvidia.CudaLauncher, "__call__")):
            with mock.patch.object(owner, name, autospec=True, side_effect=getattr(owner, name)) as replaced:
                kernel[GRID](*base)
            self.assertEqual(replaced.call_count, 1)
            self.assertEqual(self.launched(kernel, made, *base)[0], 0)

    def test_comments_and_spaces_are_no_other_triton(self):
        self.assertEqual(_launch.digest(["a(b,\n  c)  # why\n"]), _launch.digest(["a(b, c)"]))
        self.assertNotEqual(_launch.digest(["a(b, c)"]), _launch.digest(["a(c, b)"]))

    def test_a_kernel_that_a_hook_refuses_is_not_kept(self):
        kernel, made = self.ready(self.x, self.out, 100, 2, 0.5, True)
        with mock.patch.object(triton.knobs.runtime, "jit_cache_hook", lambda *_, **__: True):
            for _ in range(2):
                self.assertIsNone(kernel[GRID](self.x, self.out, 100, 1, 0.5, True))
        self.launched(kernel, made, self.x, self.out, 100, 1, 0.5, True)

    def test_hooks_of_configs_stay(self):
        calls = []
        configs = [triton.Config({"BLOCK": b}, pre_hook=lambda given: calls.append(given["BLOCK"])) for b in (16, 64)]
        kernel, made = self.kernel(configs=configs)
        for _ in range(3):
            kernel[GRID](self.x, self.out, 100, 2, 0.5, True)
        del calls[:]
        kernel[GRID](self.x, self.out, 100, 2, 0.5, True)
        self.assertEqual(calls, [64])

    def test_a_demoted_config_is_launched_no_more(self):
        base = (self.x, self.out, 100, 2, 0.5, True)
        for shadow in (0, 1 << 40):
            kernel, made = self.kernel(shadow=shadow)
            for _ in range(3):
                kernel[GRID](*base)
            self.assertEqual(self.launched(kernel, made, *base)[0], 0)
            known = next(iter(kernel._warm.values()))

            def demote():
                known.config, known.keywords = CONFIGS[0], CONFIGS[0].all_kwargs()

            if shadow:  # in the count of the launch itself
                with mock.patch.object(kernel._shadow, "count", lambda *_: demote()):
                    compiled = kernel[GRID](*base)
            else:
                demote()
                compiled = kernel[GRID](*base)
            self.assertEqual(nvidia.launched[-1][3][-1], 16)
            self.assertIs(self.launched(kernel, made, *base)[1], compiled)

    def test_two_threads_and_a_full_memo(self):
        kernel, made = self.ready(self.x, self.out, 100, 2, 0.5, True)
        failures = []

        def launch(k):
            x, out = torch.Tensor(range(4)), torch.Tensor([0.0] * 4)
            for turn in range(300):
                kernel[GRID](x, out, 100 + turn % 3, k, 0.5, True)
                if out.values != [v * k for v in range(4)]:
                    failures.append((k, turn))
                out.zero_()

        with mock.patch.object(_launch, "_MOST_ENTRIES", 4):
            threads = [threading.Thread(target=launch, args=(k,)) for k in (1, 16, 1 << 40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertLessEqual(len(memo(kernel)), 6)


def memo(kernel):
    return kernel._memo.ready


if __name__ == "__main__":
    unittest.main()
