# SPDX-License-Identifier: Apache-2.0
"""@purlin.autotune(space=...) and shadow timing over the real libpurlin.so; Triton and PyTorch are fakes."""
import concurrent.futures
import glob
import json
import os
import threading
import time
import unittest
import warnings
from unittest import mock

import test_purlin  # first: it puts the fakes on the path
import torch
import triton

import purlin
from purlin import _shadow, _tuner, triton_space


class Facts:
    """As much of a compiled kernel as limits read."""

    def __init__(self, shared, registers, spills=0):
        self.metadata, self.n_regs, self.n_spills = mock.Mock(shared=shared), registers, spills


class Kernel(triton.Kernel):
    facts = None

    def warmup(self, *args, grid, **kwargs):
        super().warmup(*args, grid=grid, **kwargs)
        return self.facts and self.facts(kwargs)


class SpaceTest(test_purlin.WithCache):
    """out = x * 2; the time is 1 ms at BLOCK=64, SPLIT=2, num_warps=8, and grows with each step away from it."""

    SPACE = {"BLOCK": [16, 32, 64, 128, 256], "SPLIT": [1, 2, 4, 8], "FAST": [False, True],
             "num_warps": [2, 4, 8, 16], "num_stages": [2, 3, 4, 5]}

    def setUp(self):
        super().setUp()
        torch.cuda.capturing, torch.cuda.devices = False, 1
        facts = mock.patch.object(purlin.Cache, "device", lambda self, name: dict(test_purlin.H200))
        facts.start()
        self.addCleanup(facts.stop)
        caught = warnings.catch_warnings(record=True)
        self.warned = caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("always")

    def kernel(self, work=None, facts=None, space=None, source="source1", **options):
        def double(x, out, n, options):
            out.values[:] = [2 * v for v in x.values]
            if work is not None:
                work(out, options)
            steps = abs(options["BLOCK"].bit_length() - 7) + abs(options["SPLIT"].bit_length() - 2)
            steps += abs(options["num_warps"].bit_length() - 4) + abs(options["num_stages"] - 4)
            return 1 + steps / 4 + (0 if options["FAST"] else 0.5)

        made = Kernel(double, ["x", "out", "n"], source)
        made.facts = facts
        options.setdefault("cache", self.folder)
        return purlin.autotune(key=["n"], space=space or self.SPACE, **options)(made), made

    def call(self, kernel, n=4, dtype=torch.float32):
        x, out = torch.Tensor(range(n), dtype), torch.Tensor([7.0] * n, dtype)
        kernel[(1,)](x, out, n)
        self.assertEqual(out.values, [2 * v for v in range(n)])
        return kernel.best_config

    def wait_for_compilers(self):
        """A search does not wait for what is still compiling when it ends. Here it does, so that all can be counted."""
        shutdown = concurrent.futures.ThreadPoolExecutor.shutdown
        waits = mock.patch.object(concurrent.futures.ThreadPoolExecutor, "shutdown",
                                  lambda pool, wait=True, cancel_futures=False: shutdown(
                                      pool, wait=True, cancel_futures=cancel_futures))
        waits.start()
        self.addCleanup(waits.stop)

    def test_configs_that_still_wait_for_a_compiler_at_the_end_are_not_counted(self):
        self.wait_for_compilers()

        def slow_ahead(options):
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.05)

        kernel, made = self.kernel(facts=slow_ahead, jobs=1)
        self.call(kernel)
        self.assertEqual(kernel.purlin_search["compiled"], len({repr(one) for one in made.compiled}))

    def test_a_space_is_searched_within_its_budget_and_the_winner_is_kept(self):
        self.wait_for_compilers()
        kernel, made = self.kernel()
        best = self.call(kernel)
        search = kernel.purlin_search
        self.assertEqual(search["space"], 640)
        self.assertEqual(search["evaluations"], 60)
        self.assertTrue(search["verified"])
        self.assertLessEqual(search["best_ms"], 1.25)
        self.assertTrue(best.kwargs["FAST"])
        self.assertEqual(set(best.kwargs), {"BLOCK", "SPLIT", "FAST"})
        # Each config is compiled once, and few are compiled that are not run.
        self.assertLess(len(made.compiled), 120)
        self.assertEqual(search["compiled"], len({repr(one) for one in made.compiled}))
        fresh, made = self.kernel()
        self.assertEqual(self.call(fresh).all_kwargs(), best.all_kwargs())
        self.assertEqual(len(made.launches), 1)
        self.assertIs(fresh.best_config.kwargs["FAST"], True)  # a boolean again
        self.assertFalse(self.warned)

    def test_a_slow_first_launch_of_each_set_decides_no_race(self):
        timed = triton_space.timed_out_of_cache
        with mock.patch.object(triton_space, "timed_out_of_cache", lambda launch, count: [
                time_ms * (1.5 if place == 0 else 1) for place, time_ms in enumerate(timed(launch, count))]):
            kernel, _ = self.kernel()
            self.call(kernel)
        # Each config is measured at its own speed, and the fastest is found.
        self.assertLessEqual(kernel.purlin_search["best_ms"], 1.25)
        journal, = glob.glob(os.path.join(self.folder, "sessions", "triton", "*", "journal.jsonl"))
        with open(journal) as file:
            rows = [json.loads(line) for line in file]
        times = [row["evaluation"]["time_ms"] for row in rows if "evaluation" in row]
        self.assertGreater(len(times), 50)
        self.assertEqual({4 * time_ms % 1 for time_ms in times}, {0})

    def test_constraints_hold_for_the_search_and_for_what_is_stored(self):
        kernel, made = self.kernel(constraints=["BLOCK * SPLIT <= 64", "BLOCK <= 8 * n"], budget=40)
        best = self.call(kernel, 8)
        self.assertTrue(all(one["BLOCK"] * one["SPLIT"] <= 64 and one["BLOCK"] <= 64 for one in made.launches))
        self.assertLessEqual(best.kwargs["BLOCK"], 64)
        # The source's constraints changed: what was stored is not used where it breaks them.
        stricter, made = self.kernel(constraints=["BLOCK * SPLIT <= 32"], budget=20)
        self.call(stricter, 8)
        self.assertGreater(len(made.launches), 1)

    def test_what_does_not_compile_fit_or_agree_is_out(self):
        def facts(config):
            if config["BLOCK"] == 256:
                raise RuntimeError("PassManager::run failed")
            return Facts(shared=300000 if config["num_stages"] == 5 else 1000, registers=32 * config["SPLIT"])

        def work(out, config):
            if config["SPLIT"] == 2:
                out.values[0] += 1  # the fastest is wrong

        with mock.patch("purlin.triton_space._shared_memory", return_value=232448):
            kernel, made = self.kernel(work, facts, limits=["registers <= 128"])
            best = self.call(kernel)
        self.assertTrue(all(one["BLOCK"] != 256 and one["num_stages"] != 5 and one["SPLIT"] != 8
                            for one in made.launches))
        self.assertIn(best.kwargs["SPLIT"], (1, 4))
        self.assertTrue(kernel.purlin_search["rejected"])

        def broken(out, config):
            raise ZeroDivisionError("a bug")

        with self.assertRaises(ZeroDivisionError):
            self.call(self.kernel(broken, source="broken")[0])

    def test_what_spills_heavily_is_out_and_costs_no_evaluation(self):
        def spills(usual):
            return lambda config: Facts(1000, 255, usual + (80 if config["BLOCK"] > 16 * config["num_warps"] else 0))

        def heavy(made):
            return [one for one in made.launches if one["BLOCK"] > 16 * one["num_warps"]]

        for usual in (0, 100):
            kernel, made = self.kernel(facts=spills(usual), source="spills %d" % usual)
            self.call(kernel)
            search = kernel.purlin_search
            self.assertFalse(heavy(made))
            self.assertGreater(search["rejected"][_tuner.UNFIT], 0)
            self.assertEqual(search["evaluations"], 60 + search["rejected"][_tuner.UNFIT])
        # A limit replaces the rule.
        kernel, made = self.kernel(facts=spills(0), source="limited", limits=["spills <= 100"])
        self.call(kernel)
        self.assertTrue(heavy(made))
        self.assertFalse(kernel.purlin_search["rejected"])
        # So does a default that is as bad: nothing is known against others.
        kernel, made = self.kernel(facts=spills(0), source="as bad", default={"BLOCK": 256})
        self.call(kernel)
        self.assertTrue(heavy(made))

    def test_another_shape_and_dtype_start_from_what_is_known(self):
        self.call(self.kernel(budget=150)[0], 4)
        kernel, made = self.kernel(budget=12)
        self.call(kernel, 8, torch.float16)
        self.assertLessEqual(kernel.purlin_search["best_ms"], 1.25)

    def test_an_ended_process_goes_on_where_it_was(self):
        launched = []

        def work(out, config):
            launched.append(dict(config))
            if len(launched) == 120:
                raise KeyboardInterrupt

        kernel, _ = self.kernel(work)
        with self.assertRaises(KeyboardInterrupt):
            self.call(kernel)
        before = {str(config) for config in launched}
        launched.clear()
        again, made = self.kernel(lambda out, config: launched.append(dict(config)))
        self.call(again)
        self.assertEqual(again.purlin_search["evaluations"], 60)
        repeated = before & {str(config) for config in launched}
        # What was measured is launched again in the finals alone.
        self.assertLess(len(repeated), len(before) // 2)

    def test_capture_pruned_arguments_and_disabling(self):
        kernel, made = self.kernel(default={"BLOCK": 128})
        torch.cuda.capturing = True
        self.call(kernel)
        self.assertEqual([one["BLOCK"] for one in made.launches], [128])
        torch.cuda.capturing = False
        with mock.patch.dict(os.environ, PURLIN_DISABLE="1"):
            plain, made = self.kernel(default={"BLOCK": 32})
            self.call(plain)
            self.assertEqual(made.compiled, [])
        for wrong in ({"configs": [triton.Config({})], "space": self.SPACE}, {}):
            self.assertRaises(ValueError, purlin.autotune, key=["n"], **wrong)
        self.assertRaises(ValueError, lambda: self.kernel(default={"BLOCK": 5}))
        self.assertRaises(ValueError, lambda: self.kernel(space={"BLOCK": []}))


class ShadowTest(test_purlin.AutotuneTest):
    """The tests of lists hold with shadow timing too."""

    def kernel(self, *arguments, **options):
        return super().kernel(*arguments, **dict({"shadow": 1000}, **options))

    def test_a_winner_that_no_longer_wins_is_demoted(self):
        slow = []

        def work(x, out, options):
            out.values[:] = [2 * v for v in x.values]
            torch.cuda.now_ms += 5 if slow and options["BLOCK"] == 64 else 0

        kernel, made = self.kernel(work, shadow=2)
        self.call(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        for _ in range(200):
            self.call(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})  # it still wins
        self.assertFalse(self.warned)
        slow.append(True)
        for _ in range(400):
            self.assertEqual(self.call(kernel), [0, 2, 4, 6])
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 16})
        self.assertTrue(kernel.purlin_log[-1].startswith("demoted: "))
        self.assertEqual(len(self.warned), 1)
        fresh, made = self.kernel(work)  # no other process is served from it
        self.call(fresh)
        self.assertGreater(len(made.launches), 10)

    def test_a_kernel_that_works_in_place_is_left_alone(self):
        def work(x, out, options):
            out.values[:] = [o + 2 * v for o, v in zip(out.values, x.values)]

        kernel, made = self.kernel(work, shadow=2)
        self.call(kernel)
        for _ in range(50):
            self.assertEqual(self.call(kernel), [7, 9, 11, 13])
        before = len(made.launches)
        for _ in range(20):
            self.call(kernel)
        self.assertEqual(len(made.launches), before + 20)

    def test_the_interval_comes_from_the_option_then_the_environment(self):
        self.assertEqual(_shadow.every_of(None), 0)
        with mock.patch.dict(os.environ, PURLIN_SHADOW="500"):
            self.assertEqual(_shadow.every_of(None), 500)
            self.assertEqual(_shadow.every_of(0), 0)


if __name__ == "__main__":
    unittest.main()
