# SPDX-License-Identifier: Apache-2.0
"""The package over the real libpurlin.so; Triton and PyTorch are fakes (fakes/)."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "fakes"), os.path.dirname(HERE)]

import torch  # noqa: E402  the fake
import triton  # noqa: E402

import purlin  # noqa: E402
from purlin import _library, triton_autotune  # noqa: E402

H200 = {"backend": "cuda", "arch": "sm_90", "model": "NVIDIA H200", "toolkit": "NVRTC 13.0", "driver": "580"}
KEY = {"op": "gemm", "kernel": "gemm", "backend": "cuda", "arch": "sm_90", "device": "NVIDIA H200",
       "toolkit": "NVRTC 13.0", "driver": "580", "dtype": "f32"}


class WithCache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)


class CacheTest(WithCache):
    def test_what_is_put_is_found_by_name_and_by_position(self):
        cache = purlin.Cache(self.folder)
        self.assertEqual(cache.directory, self.folder)
        gemm = cache.op("gemm", ["M", "N"], H200, dtype="f32")
        self.assertFalse(gemm.find(1000, 64))
        cache.put(KEY, {"BM": 64, "SKEW": 0.5, "LAYOUT": "row", "FAST": True}, {"M": 900, "N": 64}, 0.25,
                  bucket_rules={"M": "pow2"}, default_time_ms=0.5, verified=True)
        hit = gemm.find(M=1000, N=64)
        self.assertEqual(hit.outcome, "bucket")
        self.assertEqual(dict(hit), {"BM": 64, "SKEW": 0.5, "LAYOUT": "row", "FAST": 1})
        self.assertIn("-DBM=64", hit.options)
        self.assertEqual((hit.time_ms, hit.default_time_ms, hit.verified), (0.25, 0.5, True))
        self.assertIs(gemm.find(1000, 64), hit)
        self.assertEqual(gemm.find(900, 64).outcome, "exact")
        self.assertEqual(gemm.find(3000, 64).outcome, "miss")
        other = cache.op("gemm", ["M", "N"], dict(H200, arch="sm_80"), dtype="f32")
        self.assertFalse(other.find(900, 64))

    def work(self):
        """The work list's rows: shape -> (hits, misses)."""
        with open(os.path.join(self.folder, "worklist.json")) as file:
            return {row["shape"]: (row["hits"], row["misses"]) for row in json.load(file)["rows"]}

    def test_every_find_is_counted_once(self):
        cache = purlin.Cache(self.folder)
        cache.put(KEY, {"BM": 64}, {"M": 900, "N": 64}, 0.25)
        gemm = cache.op("gemm", ["M", "N"], H200, dtype="f32")
        first = gemm.find(900, 64)  # the library samples what it is asked itself: 1 is 0 to 127
        for _ in range(1000):
            self.assertIs(gemm.find(900, 64), first)
        gemm.find(7, 7)
        cache.flush()
        self.assertEqual(self.work()["M=7,N=7"], (0, 1))
        hits = self.work()["M=900,N=64"][0]
        self.assertIn(hits, range(1000, 1128))
        cache.flush()
        self.assertEqual(self.work()["M=900,N=64"], (hits, 0))
        gemm.find(900, 64)
        cache.reload()
        cache.flush()
        self.assertEqual(self.work()["M=900,N=64"], (hits + 1, 0))
        gemm.uses(900, 64)[0] += 5
        del gemm
        cache.flush()
        self.assertEqual(self.work()["M=900,N=64"], (hits + 6, 0))

    def test_finds_are_counted_at_exit(self):
        purlin.Cache(self.folder).put(KEY, {"BM": 64}, {"M": 900, "N": 64}, 0.25)
        subprocess.run([sys.executable, "-c", textwrap.dedent("""
            import ctypes, sys
            sys.path.insert(0, sys.argv[1])
            import purlin
            gemm = purlin.Cache(sys.argv[2]).op("gemm", ["M", "N"], %r, dtype="f32")
            for _ in range(50):
                gemm.find(900, 64)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(gemm))  # nobody deletes it
            """ % H200), os.path.dirname(HERE), self.folder], check=True)
        self.assertEqual(self.work(), {"M=900,N=64": (50, 0)})  # the process's first lookup is noted

    def test_mistakes_have_the_librarys_own_words(self):
        cache = purlin.Cache(self.folder)
        gemm = cache.op("gemm", ["M", "N"], H200)
        for call in (lambda: gemm.find(1), lambda: gemm.find(M=1), lambda: gemm.find(1, N=2),
                     lambda: cache.op("gemm", [], H200),
                     lambda: cache.op("gemm", ["M"], None),
                     lambda: cache.op("gemm", ["M"], {"backend": None, "arch": None}).find(),
                     lambda: cache.put({"op": "gemm"}, {}, {"M": 1}, 1)):
            with self.assertRaises(purlin.PurlinError) as caught:
                call()
            self.assertEqual(caught.exception.status, "invalid", caught.exception)

    def test_what_no_program_could_use_is_refused(self):
        cache = purlin.Cache(self.folder)
        for config in ({"BM": 2**70}, {"X": 2**63}, {"BM": "64 -DEVIL=1"}, {"L": "a'b;c"}, {"B M": 64},
                       {"1X": 2}, {"": 3}):
            with self.assertRaises(purlin.PurlinError, msg=config):
                cache.put(KEY, config, {"M": 900, "N": 64}, 0.25)
        with self.assertRaises(purlin.PurlinError):
            cache.put(KEY, {"BM": 2}, {"M": 900, "N": 64}, 1e-300)
        cache.put(KEY, {"BM": 1}, {"M": 900, "N": 64}, 0)  # not measured
        self.assertEqual(dict(cache.op("gemm", ["M", "N"], H200).find(900, 64)), {"BM": 1})

    def test_a_miss_says_why(self):
        cache = purlin.Cache(self.folder)
        gemm = cache.op("gemm", ["M", "N"], H200)
        self.assertIn("empty", gemm.find(64, 64).why)
        cache.put(KEY, {"BM": 64}, {"M": 64, "N": 64}, 0.25)
        cache.reload()
        self.assertEqual(gemm.find(64, 64).why, "")
        self.assertIn("M=64,N=64", gemm.find(65, 64).why)
        for op, part in ((cache.op("conv", ["M", "N"], H200), "no entry of op 'conv'; there are gemm"),
                         (cache.op("gemm", ["M", "N"], H200, kernel="fast"), "none of 'fast'"),
                         (cache.op("gemm", ["M", "K"], H200), "the dimensions M,N, not M,K"),
                         (cache.op("gemm", ["M", "N"], dict(H200, arch="sm_80")), "arch: 'sm_80' wanted"),
                         (cache.op("gemm", ["M", "N"], dict(H200, driver="590")), "driver: '590' wanted")):
            self.assertIn(part, op.find(64, 64).why)

    def test_extents_beyond_64_bits_are_not_cut(self):
        cache = purlin.Cache(self.folder)
        cache.put(KEY, {"BM": 64}, {"M": 64, "N": 64}, 0.25)
        gemm = cache.op("gemm", ["M", "N"], H200)
        self.assertTrue(gemm.find(64, 64))
        for call in (lambda: gemm.find(2**64 + 64, 64), lambda: gemm.find(M=64, N=-2**63 - 1),
                     lambda: gemm.find(64.5, 64), lambda: gemm.uses(2**64 + 64, 64)):
            with self.assertRaises(purlin.PurlinError):
                call()

    def test_layers_are_read_through(self):
        mine, fleet = os.path.join(self.folder, "mine"), os.path.join(self.folder, "fleet")
        key = {"op": "gemm", "kernel": "gemm", "backend": "cuda", "arch": "sm_90", "layout": "A=row"}
        purlin.Cache(fleet).put(key, {"BM": 8}, {"M": 4}, 1.0)
        cache = purlin.Cache(mine, below=[fleet])
        self.assertEqual(cache.layers, [mine, fleet])
        hit = cache.op("gemm", ["M"], {"backend": "cuda", "arch": "sm_90"}, layout="A=row").find(4)
        self.assertEqual((hit["BM"], hit.layer), (8, fleet))
        other = cache.op("gemm", ["M"], {"backend": "cuda", "arch": "sm_90"}, layout="A=column")
        self.assertFalse(other.find(4))

    def test_a_library_that_is_not_there_is_told_of_with_what_to_do(self):
        with mock.patch.dict(os.environ, PURLIN_LIBRARY="/nowhere/libpurlin.so"), \
                mock.patch.object(_library, "_opened", None):
            with self.assertRaisesRegex(purlin.PurlinError, "set PURLIN_LIBRARY.*nowhere"):
                purlin.Cache(self.folder)


class CommandTest(WithCache):
    def test_tune_report_and_errors(self):
        os.environ["XDG_CACHE_HOME"] = self.folder
        spec = os.path.join(os.environ["PURLIN_SOURCE"], "tests/data/tune/scale.toml")
        device = os.path.join(self.folder, "fake.json")
        with open(device, "w") as file:
            file.write('{"time_ms": "1 + abs(BLOCK - 64) / 64 + 1 / ITEMS"}')
        found = purlin.tune(spec, device="fake:" + device, budget=100, cache=self.folder, extra=["--jobs", "0"])
        self.assertEqual(found["best"]["config"]["BLOCK"], 64)
        with self.assertRaisesRegex(purlin.PurlinError, "exit code 2"):
            purlin.tune("missing.toml")
        with mock.patch.dict(os.environ, PURLIN="/nowhere/purlin"):
            with self.assertRaisesRegex(purlin.PurlinError, "set PURLIN"):
                purlin.run("doctor")


class RangeTest(unittest.TestCase):
    def test_a_range_is_captured_alone_where_that_is_asked_for(self):
        from purlin import _range

        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        told, script = os.path.join(folder, "told"), os.path.join(folder, "purlin")
        with open(script, "w") as file:
            file.write('#!/bin/sh\necho "$@" >>%s\n[ ! -e %s/refuse ] || { echo "no capture" >&2; exit 2; }\n'
                       % (told, folder))
        os.chmod(script, 0o755)
        with mock.patch.dict(sys.modules, torch=None), mock.patch.object(_range, "_library", False), \
                mock.patch.dict(os.environ, PURLIN=script, PURLIN_SPOOL="/somewhere"), \
                warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with self.assertRaises(KeyError), purlin.profile("step", capture=True):
                raise KeyError
            with purlin.profile("step"):
                pass
            self.assertEqual(caught, [])
            open(folder + "/refuse", "w").close()
            with purlin.profile("step", capture=True):
                pass
            self.assertIn("capture did not start: no capture", str(caught[0].message))
            os.environ["PURLIN"] = folder + "/none"
            with purlin.profile("step", capture=True):
                pass
            self.assertIn("was not found", str(caught[1].message))
            del os.environ["PURLIN_SPOOL"]
        with open(told) as file:
            self.assertEqual(file.read().split("\n")[:-1],
                             ["capture %s %d" % (word, os.getpid()) for word in ("start", "stop", "start")])

    def test_a_range_is_marked_and_says_when_nobody_profiles(self):
        from purlin import _range

        told = []
        fake = mock.Mock()
        fake.cuda.is_available.return_value = True
        fake.cuda.nvtx.range_push.side_effect = told.append
        fake.cuda.nvtx.range_pop.side_effect = lambda: told.append("pop")
        with mock.patch.dict(sys.modules, torch=fake), mock.patch.object(_range, "_warned", False), \
                warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with self.assertRaises(KeyError), purlin.profile("step") as outer, purlin.profile("inner"):
                told.append("work")
                raise KeyError
            self.assertEqual(told, ["step", "inner", "work", "pop", "pop"])
            self.assertGreater(outer.seconds, 0)
            self.assertFalse(outer.captured)
            self.assertEqual(len(caught), 1)
            self.assertIn("purlin profile -- ", str(caught[0].message))
            with mock.patch.dict(os.environ, PURLIN_SPOOL="/somewhere"), purlin.profile("step") as p:
                self.assertTrue(p.captured)
            self.assertEqual(len(caught), 1)
        with mock.patch.dict(sys.modules, torch=None), mock.patch.object(_range, "_library", False), \
                mock.patch.object(_range, "_warned", True), purlin.profile("step") as p:
            pass
        self.assertEqual(p.marked, "")


class AutotuneTest(WithCache):
    """A kernel out = x * 2 whose time is 1 ms at BLOCK=64."""

    CONFIGS = [triton.Config({"BLOCK": block}) for block in (16, 32, 64, 128)]

    def setUp(self):
        super().setUp()
        torch.cuda.capturing = False
        facts = mock.patch.object(purlin.Cache, "device", lambda self, name: dict(H200))
        facts.start()
        self.addCleanup(facts.stop)
        caught = warnings.catch_warnings(record=True)
        self.warned = caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("always")

    def kernel(self, work=None, configs=None, source="source1", **options):
        def double(x, out, n, options):
            if work is not None:
                work(x, out, options)
            else:
                out.values[:] = [2 * v for v in x.values]
            return 1 + abs(options["BLOCK"] - 64) / 16

        made = triton.Kernel(double, ["x", "out", "n"], source)
        options.setdefault("cache", self.folder)
        return purlin.autotune(configs or self.CONFIGS, ["n"], **options)(made), made

    def call(self, kernel, n=4, on=0):
        x, out = torch.Tensor(range(n), on=on), torch.Tensor([7.0] * n, on=on)
        kernel[(1,)](x, out, n)
        return out.values

    def test_the_winner_is_kept_for_a_fresh_process(self):
        kernel, made = self.kernel()
        self.assertEqual(self.call(kernel), [0, 2, 4, 6])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        self.assertEqual(len(made.compiled), 4)
        before = len(made.launches)
        self.call(kernel)
        self.assertEqual(len(made.launches), before + 1)  # the hot path
        fresh, made = self.kernel()
        self.assertEqual(self.call(fresh), [0, 2, 4, 6])
        self.assertEqual(made.launches, [{"BLOCK": 64, "num_warps": 4, "num_stages": 3}])
        self.assertEqual(fresh.purlin_log, ["exact: Config({'BLOCK': 64, 'num_warps': 4, 'num_stages': 3})"])
        self.assertFalse(self.warned)

    def test_the_warning_names_the_tolerance_where_it_may_be_the_cause(self):
        def off(by):
            def work(x, out, options):
                out.values[:] = [2 * v + (by if options["BLOCK"] == 32 else 0) for v in x.values]
            return work

        for by, named in ((0.01, True), (5, False)):
            del self.warned[:]
            self.call(self.kernel(work=off(by), source="off by %g" % by)[0], n=4)
            self.assertEqual(sum("would accept it" in str(w.message) for w in self.warned), named, by)
            self.assertEqual(sum("differs from the first" in str(w.message) for w in self.warned), 1, by)

    def test_outputs_of_nan_alone_are_not_verified(self):
        def work(x, out, options):
            out.values[:] = [float("nan")] * len(x.values)

        kernel, _ = self.kernel(work=work, source="nan")
        with mock.patch.object(type(kernel), "_store") as store:
            self.call(kernel)
        self.assertIs(store.call_args.args[-1], False)

    def test_noise_never_takes_the_place_of_the_first_config(self):
        for noise in (0.01, 0.03, 0.1):
            for seed in range(8):
                chance = random.Random(seed)
                equal = [triton.Config({"BLOCK": 64}, num_stages=stages) for stages in range(1, 9)]
                kernel, made = self.kernel(configs=equal, source="%s-%s" % (noise, seed))
                body = made.fn
                made.fn = lambda **all: body(**all) * max(chance.gauss(1, noise), 0.1)
                self.call(kernel)
                self.assertEqual(kernel.best_config.num_stages, 1, (noise, seed))

    def test_a_lead_that_noise_hides_takes_more_turns(self):
        from purlin.triton_autotune import MOST_TURNS, hold_finals

        won = 0
        for seed in range(20):
            chance = random.Random(seed)
            winner, times = hold_finals([1], 0, lambda i: (1.0 if i else 1.2) * chance.gauss(1, 0.03))
            won += winner
            self.assertLessEqual(len(times[0]), MOST_TURNS)
        self.assertGreaterEqual(won, 18)

    def test_every_launch_reaches_the_work_list(self):
        kernel, _ = self.kernel()
        for _ in range(30):
            self.call(kernel)
        for op, _, cache in kernel._ops.values():
            cache.flush()
        with open(os.path.join(self.folder, "worklist.json")) as file:
            rows = json.load(file)["rows"]
        # The first found nothing and was tuned.
        self.assertEqual(sum(row["misses"] for row in rows), 1)
        self.assertEqual(sum(row["hits"] for row in rows), 29)

    def test_another_source_dtype_or_shape_is_tuned_anew_and_a_bucket_is_shared(self):
        self.call(self.kernel(buckets={"n": "pow2"})[0], 4)
        self.assertTrue(self.kernel()[0].configs)
        for kernel, made, n, launches in (
                (*self.kernel(source="source2"), 4, "many"), (*self.kernel(), 5, "many"),
                (*self.kernel(buckets={"n": "pow2"}), 3, 1)):
            self.call(kernel, n)
            self.assertEqual(len(made.launches) if launches == 1 else "many", launches)
            self.assertEqual(len(made.launches) == 1, launches == 1)

    def test_another_layout_of_the_tensors_is_another_key(self):
        kernel, made = self.kernel()
        self.call(kernel)
        x, out = torch.Tensor(range(4)), torch.Tensor([7.0] * 4)
        kernel[(1,)](x.transpose(0, 1), out, 4)
        self.assertEqual(len(kernel.purlin_log), 2)
        self.assertTrue(all(line.startswith("tuned") for line in kernel.purlin_log))
        kernel[(1,)](x.transpose(0, 1), out, 4)
        self.assertEqual(len(kernel.purlin_log), 2)  # the hot path tells them apart
        fresh, made = self.kernel()
        fresh[(1,)](x.transpose(0, 1), out, 4)
        self.assertEqual(len(made.launches), 1)

    def test_the_direct_key_tells_apart_what_the_long_one_does(self):
        kernel, made = self.kernel()
        self.call(kernel)
        x, out = torch.Tensor(range(4)), torch.Tensor([7.0] * 4)
        half, elsewhere = torch.Tensor(range(4), torch.float16), torch.Tensor(range(4), on=1)
        for turn in range(2):
            for args in ((half, out, 4), (x, out, 5), (x, out, True), (elsewhere, out, 4), (x, out, 4)):
                kernel[(1,)](*args)
            self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
            # By name, by keyword, and with another kind of argument: the long way, to the same winner.
            before = len(kernel.purlin_log)
            kernel.run(x, out=out, n=4, grid=(1,), warmup=False)
            with self.assertRaises(Exception):
                kernel[(1,)](None, out, 4)
        self.assertEqual(len(kernel.purlin_log), before)
        self.assertGreaterEqual(len(kernel._direct_warm), 4)
        keys = set(kernel._direct_warm)
        self.assertEqual(len(keys), len(kernel._direct_warm))

    def test_what_wraps_a_tensor_goes_the_long_way(self):
        class Wrapper:  # as triton.reinterpret's
            def __init__(self, dtype):
                self.values, self.dtype = [0.0], dtype

        kernel, _ = self.kernel()
        kernel._make_direct((Wrapper(torch.float32), torch.Tensor([1.0]), 4), {})
        self.assertIsNone(kernel._fast)

    def test_a_known_key_is_launched_in_one_call_whatever_its_form(self):
        kernel, made = self.kernel()
        self.call(kernel)
        x, out = torch.Tensor(range(4)), torch.Tensor([7.0] * 4)
        with mock.patch.object(type(kernel), "run", side_effect=AssertionError("the long way")):
            self.call(kernel)
            self.assertRaises(AssertionError, kernel[(1,)], x, out, n=4)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        launches = len(made.launches)
        kernel[(1,)](x, out, n=4)  # by name: the same winner by the long way
        kernel[(1,)](x, out=out, n=4)
        self.assertEqual([one["BLOCK"] for one in made.launches[launches:]], [64, 64])
        named, made = self.kernel(source="by name")
        for _ in range(2):
            named[(1,)](x, out, n=4)
        with mock.patch.object(type(named), "run", side_effect=AssertionError("the long way")):
            named[(1,)](x, out, n=4)
        self.assertEqual(made.launches[-1], {"BLOCK": 64, "num_warps": 4, "num_stages": 3})

    def test_a_wrong_config_is_out_although_it_is_the_fastest(self):
        def work(x, out, options):
            if options["BLOCK"] == 32:
                out.values[:2] = [2 * v for v in x.values[:2]]  # writes half: what it finds is right
            elif options["BLOCK"] == 64:
                out.values[:] = [3 * v for v in x.values]
            else:
                out.values[:] = [2 * v for v in x.values]

        kernel, _ = self.kernel(work)
        self.assertEqual(self.call(kernel), [0, 2, 4, 6])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 16})
        self.assertEqual(sum("differs from the first" in str(w.message) for w in self.warned), 2)

    def test_an_output_that_had_its_contents_before_is_compared_too(self):
        def work(x, out, options):
            out.values[:] = [(2 if options["BLOCK"] != 64 else 3) * v for v in x.values]

        kernel, _ = self.kernel(work)
        x, out = torch.Tensor(range(4)), torch.Tensor([0.0, 2.0, 4.0, 6.0])
        kernel[(1,)](x, out, 4)
        self.assertNotEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        self.assertEqual((x.values, out.values), ([0, 1, 2, 3], [0, 2, 4, 6]))

    def test_a_kernel_that_works_in_place_is_run_as_often_as_the_program_asks(self):
        def work(x, out, options):
            out.values[:] = [o + 2 * v for o, v in zip(out.values, x.values)]

        kernel, _ = self.kernel(work)
        self.assertEqual(self.call(kernel), [7, 9, 11, 13])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        self.assertFalse(self.warned)
        for options in ({"restore_value": ["out"]}, {"reset_to_zero": ["out"]}):
            self.setUp()
            kernel, _ = self.kernel(work, **options)
            self.call(kernel)
            self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
            self.assertFalse(self.warned)

    def test_a_stored_config_that_is_no_longer_in_the_list_is_not_used(self):
        self.call(self.kernel()[0])
        kernel, _ = self.kernel(configs=self.CONFIGS[:2])
        self.call(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 32})
        more, made = self.kernel(configs=self.CONFIGS + [triton.Config({"BLOCK": 256})])
        self.call(more)
        self.assertEqual(len(made.launches), 1)  # one more config throws nothing away

    def test_near_equals_are_decided_by_the_order_of_the_list(self):
        twins = [triton.Config({"BLOCK": 64}, num_stages=s) for s in (4, 3, 2)]
        kernel, _ = self.kernel(configs=twins)
        self.call(kernel)
        self.assertEqual(kernel.best_config.num_stages, 4)

    def test_under_graph_capture_nothing_is_tuned_and_nothing_remembered(self):
        kernel, made = self.kernel()
        torch.cuda.capturing = True
        self.assertEqual(self.call(kernel), [0, 2, 4, 6])
        self.assertEqual([l["BLOCK"] for l in made.launches], [16])
        torch.cuda.capturing = False
        self.call(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})

    def test_configs_that_do_not_fit_are_passed_over_and_bugs_are_not_hidden(self):
        from triton.runtime.errors import OutOfResources

        def work(x, out, options):
            if options["BLOCK"] == 64:
                raise OutOfResources("shared memory")
            out.values[:] = [2 * v for v in x.values]

        kernel, _ = self.kernel(work)
        self.call(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 32})

        def broken(x, out, options):
            raise ZeroDivisionError("a bug")

        with self.assertRaises(ZeroDivisionError):
            self.call(self.kernel(broken, source="broken")[0])

    def test_hooks_pruning_and_disabling_are_tritons(self):
        seen = []
        hooked = [triton.Config({"BLOCK": b}, pre_hook=lambda full: seen.append(full["BLOCK"])) for b in (16, 64)]
        kernel, made = self.kernel(configs=hooked)
        self.call(kernel)
        before = len(seen)
        self.call(kernel)
        self.assertEqual((seen[-1], len(seen)), (64, before + 1))
        pruned, made = self.kernel(
            source="pruned", prune_configs_by={"early_config_prune": lambda configs, nargs, **kw: configs[:2]})
        self.call(pruned)
        self.assertEqual(pruned.best_config.kwargs, {"BLOCK": 32})
        with mock.patch.dict(os.environ, PURLIN_DISABLE="1"):
            plain, made = self.kernel()
            self.call(plain)
            self.assertEqual(made.compiled, [])

    def test_a_cache_that_cannot_be_had_costs_a_warning_and_no_launch(self):
        path = os.path.join(self.folder, "file")
        with open(path, "w"):
            pass
        kernel, _ = self.kernel(cache=path)
        self.assertEqual(self.call(kernel), [0, 2, 4, 6])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        self.assertTrue(self.warned)


if __name__ == "__main__":
    unittest.main()
