# SPDX-License-Identifier: Apache-2.0
"""purlin.torch over the real libpurlin.so and a fake cuBLASLt that computes on the host; PyTorch is a fake as well.

Needs FAKE_CUBLASLT, the path of tests/programs/fake_cublaslt.cc built.
"""
import ctypes
import json
import os
import shutil
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "fakes_torch"), os.path.dirname(HERE)]
LIBRARY = os.environ.get("FAKE_CUBLASLT", "")
if LIBRARY:
    ctypes.CDLL(LIBRARY)  # as PyTorch has loaded the real one

import torch  # noqa: E402  the fake

import purlin  # noqa: E402
import purlin.torch as ours  # noqa: E402

FACTS = {"backend": "cuda", "arch": "sm_90", "model": "NVIDIA H200", "toolkit": "NVRTC 13.0", "driver": "580"}
KEY = {"op": "gemm", "backend": "cuda", "arch": "sm_90", "device": "NVIDIA H200", "toolkit": "cuBLASLt 13.1.0",
       "driver": "580", "dtype": "f32"}
SPLIT = {"algo": 6, "tile": 18, "stages": 8, "split_k": 4, "reduction": 2, "swizzle": 0, "custom": 0, "inner": 0,
         "cluster": 0}
CLUSTER = dict(SPLIT, algo=66, tile=393, stages=35, split_k=1, reduction=0, custom=3, cluster=3)


def matrix(rows, columns, seed):
    return torch.tensor([[((7 * i + 3 * j + seed) % 11) / 4 - 1 for j in range(columns)] for i in range(rows)])


@unittest.skipUnless(LIBRARY, "FAKE_CUBLASLT is not set")
class TorchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log")
        for variable in ("FAKE_CUBLASLT_REFUSE", "FAKE_CUBLASLT_VERSION", "PURLIN_DISABLE"):
            os.environ.pop(variable, None)
            self.addCleanup(os.environ.pop, variable, None)
        os.environ["FAKE_CUBLASLT_LOG"] = self.log
        patch = mock.patch.object(purlin.Cache, "device", lambda self, name="auto": dict(FACTS))
        patch.start()
        self.addCleanup(patch.stop)
        ours._warned.clear()
        torch.state.update(grad=True, autocast=None, device=0, tf32=False)
        ours.configure(cache=self.folder)
        torch.calls.clear()

    def without_gradients(self):
        torch.state["grad"] = False

    def put(self, kernel, config, **problem):
        purlin.Cache(self.folder).put(dict(KEY, kernel=kernel), config, problem, 0.5, verified=True)

    def launched(self):
        with open(self.log) as file:
            lines = file.read().split("\n")[:-1]
        open(self.log, "w").close()
        return lines

    def same(self, got, wanted):
        self.assertEqual(got.shape, wanted.shape)
        for g, w in zip(got.contiguous().memory, wanted.contiguous().memory):
            self.assertAlmostEqual(g, w, places=4)

    def test_a_product_with_an_entry_runs_by_its_algorithm(self):
        self.put("cublaslt-nt-f32-f32-f32-bias", CLUSTER, M=6, N=5, K=12)
        x, w = matrix(6, 12, 1), matrix(5, 12, 2)
        bias = torch.tensor([0.5, -1.0, 2.0, 0.0, 3.0])
        y = ours.linear(x.reshape(2, 3, 12), w, bias)
        self.assertEqual(torch.calls, [])
        self.assertEqual(self.launched(), ["6 x 5 x 12 algo 66 tile 393 split 1 cluster 3"])
        self.same(y, torch.nn.functional.linear(x, w, bias).reshape(2, 3, 5))
        self.assertEqual(ours.log(), ["cublaslt-nt-f32-f32-f32-bias M=6,N=5,K=12: exact"])

    def test_an_algorithm_that_no_longer_wins_is_demoted(self):
        clock, spent = [0.0], {"tuned": 1.0, "torch": 1.5}

        class Event:
            def __init__(self, enable_timing):
                self.at = None

            def record(self):
                self.at = clock[0]

            def query(self):
                return True

            def elapsed_time(self, other):
                return other.at - self.at

        def timed(name, function):
            def call(*arguments):
                clock[0] += spent[name]
                return function(*arguments)
            return call

        for where, name, value in (
                (torch.cuda, "Event", Event), (torch.cuda, "is_current_stream_capturing", lambda: False),
                (ours._Prepared, "run", timed("tuned", ours._Prepared.run)),
                (torch.nn.functional, "linear", timed("torch", torch.nn.functional.linear))):
            patch = mock.patch.object(where, name, value, create=True)
            patch.start()
            self.addCleanup(patch.stop)
        ours.configure(cache=self.folder, shadow=2)
        self.without_gradients()
        self.put("cublaslt-nt-f32-f32-f32", CLUSTER, M=6, N=5, K=12)
        x, w = matrix(6, 12, 1), matrix(5, 12, 2)
        wanted = torch.nn.functional.linear(x, w)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(200):
                self.same(ours.linear(x, w), wanted)
            self.assertEqual((ours.log(), caught), (["cublaslt-nt-f32-f32-f32 M=6,N=5,K=12: exact"], []))
            spent["tuned"] = 2.0
            for _ in range(400):
                self.same(ours.linear(x, w), wanted)
            self.assertEqual(ours.log(), ["cublaslt-nt-f32-f32-f32 M=6,N=5,K=12: demoted"])
            self.assertEqual(len(caught), 1)
        self.launched()
        ours.linear(x, w)
        self.assertEqual(self.launched(), [])

    def test_a_miss_is_torchs_and_goes_to_the_work_list_with_a_spec(self):
        x, w = matrix(4, 12, 1), matrix(8, 12, 2)
        for _ in range(3):
            ours.linear(x, w)
        self.assertEqual(torch.calls, ["linear"] * 3)
        self.assertEqual(ours.log(), ["cublaslt-nt-f32-f32-f32 M=4,N=8,K=12: miss"])
        ours.flush()
        with open(os.path.join(self.folder, "worklist.json")) as file:
            rows = json.load(file)["rows"]
        self.assertEqual([(r["key"]["kernel"], r["shape"], r["misses"]) for r in rows],
                         [("cublaslt-nt-f32-f32-f32", "M=4,N=8,K=12", 3)])
        with open(rows[0]["spec"]) as file:
            self.assertIn('name = "cublaslt"', file.read())

    def test_gradients_take_tuned_algorithms_too(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        self.put("cublaslt-nn-f32-f32-f32", CLUSTER, M=6, N=12, K=8)   # of x
        self.put("cublaslt-tn-f32-f32-f32", SPLIT, M=8, N=12, K=6)     # of the weight
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)
        x.requires_grad = w.requires_grad = True
        y = ours.linear(x, w)
        self.without_gradients()  # as in a backward pass
        gradient = matrix(6, 8, 5)
        of_x, of_w, of_bias = y.made_by(gradient)[:3]
        self.assertEqual(torch.calls, [])
        self.assertIsNone(of_bias)
        self.assertEqual(len(self.launched()), 3)
        self.same(of_x, torch.mm(gradient, w))
        self.same(of_w, torch.mm(gradient.t(), x))

    def test_gradients_of_gradients_are_not_cut_off(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)
        x.requires_grad = w.requires_grad = True
        y = ours.linear(x, w)
        of_x, of_w = y.made_by(matrix(6, 8, 5))[:2]  # with gradients enabled, as create_graph=True does
        self.assertIsNotNone(of_x.made_by)
        self.assertIsNotNone(of_w.made_by)
        self.without_gradients()
        of_x, of_w = y.made_by(matrix(6, 8, 5))[:2]
        self.assertIsNone(of_x.made_by)

    def test_with_gradients_what_is_always_missed_is_asked_for_seldom_and_counted_in_full(self):
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)
        x.requires_grad = True
        asked = [ours.linear(x, w).made_by is not None for _ in range(64 + 160)]
        self.assertEqual((sum(asked[:64]), sum(asked[64:])), (64, 10))
        ours.flush()
        with open(os.path.join(self.folder, "worklist.json")) as file:
            self.assertEqual([r["misses"] for r in json.load(file)["rows"]], [64 + 160])
        self.put("cublaslt-nn-f32-f32-f32", CLUSTER, M=6, N=12, K=8)  # of x: its product is served from now on
        ours.reload()
        served = [ours.linear(x, w) for _ in range(16)]
        self.without_gradients()
        torch.calls.clear()
        [y for y in served if y.made_by][0].made_by(matrix(6, 8, 5))
        self.assertEqual(torch.calls, [])
        torch.state["grad"] = True
        self.assertTrue(all(ours.linear(x, w).made_by for _ in range(16)))

    def test_what_only_looks_like_plain_tensors_is_torchs(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)

        class Quantized(torch.Tensor):
            pass
        ours.linear(x, torch.nn.Parameter(w))
        self.assertEqual(torch.calls, [])
        ours.linear(x, Quantized(w.memory, w.shape))
        self.assertEqual(torch.calls, ["linear"])
        torch.state["autocast"] = torch.bfloat16  # float32 operands would be cast by torch
        ours.linear(x, w)
        ours.matmul(x, w.t())
        self.assertEqual(torch.calls, ["linear", "linear", "mm"])
        torch.state["autocast"] = torch.float32
        ours.linear(x, w)
        self.assertEqual(len(torch.calls), 3)
        torch.state["tf32"] = True  # another product: it has no entry
        ours.linear(x, w)
        self.assertEqual(torch.calls[3:], ["linear"])
        self.assertIn("cublaslt-nt-f32-f32-tf32 M=6,N=8,K=12: miss", ours.log())

    def test_a_product_runs_on_its_operands_device(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        torch.state["device"] = 1
        with mock.patch.object(torch.cuda, "device", side_effect=torch.cuda.device) as entered:
            ours.linear(matrix(6, 12, 1), matrix(8, 12, 2))
        self.assertEqual(torch.calls, [])
        self.assertEqual({call.args for call in entered.call_args_list}, {(0,)})
        self.assertEqual(torch.state["device"], 1)

    def test_a_running_program_takes_up_what_was_tuned_since(self):
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)
        ours.linear(x, w)
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        ours.reload()
        self.same(ours.linear(x, w), torch.nn.functional.linear(x, w))
        self.assertEqual(torch.calls, ["linear", "linear"])
        self.assertEqual(ours.log(), ["cublaslt-nt-f32-f32-f32 M=6,N=8,K=12: exact"])

    def test_threads_share_a_shape(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        wrong = []

        def work(seed):
            x, w = matrix(6, 12, seed), matrix(8, 12, seed + 1)
            expected = torch.nn.functional.linear(x, w).values()
            for _ in range(200):
                got = ours.linear(x, w).values()
                if any(abs(a - b) > 1e-3 for g, e in zip(got, expected) for a, b in zip(g, e)):
                    wrong.append(seed)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_matmul_in_every_layout_and_in_batches(self):
        for ta in (False, True):
            for tb in (False, True):
                self.put("cublaslt-%s%s-f32-f32-f32" % ("nt"[ta], "nt"[tb]), SPLIT, M=6, N=8, K=12)
                ours.reload()
                a = matrix(12, 6, 1).t() if ta else matrix(6, 12, 1)
                b = matrix(8, 12, 2).t() if tb else matrix(12, 8, 2)
                torch.calls.clear()
                y = ours.matmul(a, b)
                self.assertEqual(torch.calls, [], (ta, tb))
                self.same(y, torch.mm(a, b))
        self.put("cublaslt-nn-f32-f32-f32-batched", CLUSTER, M=4, N=5, K=12, BATCH=3)
        ours.reload()
        a = torch.tensor([matrix(4, 12, s).values() for s in (1, 2, 3)])
        b = torch.tensor([matrix(12, 5, s).values() for s in (4, 5, 6)])
        torch.calls.clear()
        y = ours.matmul(a, b)
        self.assertEqual(torch.calls, [])
        self.same(y, torch.matmul(a, b))
        torch.calls.clear()
        ours.matmul(a, b.transpose(1, 2).contiguous().transpose(1, 2))  # no layout of ours
        self.assertEqual(torch.calls, ["bmm"])

    def test_what_the_library_refuses_is_torchs(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        os.environ["FAKE_CUBLASLT_REFUSE"] = "18"
        x, w = matrix(6, 12, 1), matrix(8, 12, 2)
        self.same(ours.linear(x, w), torch.nn.functional.linear(x, w))
        self.assertEqual(torch.calls, ["linear", "linear"])
        self.assertFalse(os.path.exists(self.log))

    def test_an_entry_of_another_version_of_the_library_is_none(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)
        os.environ["FAKE_CUBLASLT_VERSION"] = "130200"
        ours.configure(cache=self.folder, allow_stale=True)
        ours.linear(matrix(6, 12, 1), matrix(8, 12, 2))
        self.assertEqual(torch.calls, ["linear"])

    def test_disabled_it_is_torch_and_a_model_keeps_its_parameters(self):
        self.put("cublaslt-nt-f32-f32-f32", SPLIT, M=6, N=8, K=12)

        class Model(torch.nn.Module):
            def __init__(self):
                self.first = torch.nn.Linear(matrix(8, 12, 2))
        model = Model()
        self.assertEqual(ours.use_in(model), 1)
        self.assertIsInstance(model.first, ours.Linear)
        x = matrix(6, 12, 1)
        model.first.forward(x)
        self.assertEqual(torch.calls, [])
        os.environ["PURLIN_DISABLE"] = "1"
        ours.configure(cache=self.folder)
        model.first.forward(x)
        self.assertEqual(torch.calls, ["linear"])
        self.assertEqual(ours.log(), [])

    def test_without_the_library_it_says_so_once(self):
        with mock.patch.object(ours, "Product", side_effect=purlin.PurlinError("not loaded")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(3):
                    ours.linear(matrix(6, 12, 1), matrix(8, 12, 2))
        self.assertEqual(len(caught), 1)
        self.assertIn("not loaded", str(caught[0].message))
        self.assertEqual(torch.calls, ["linear"] * 3)


if __name__ == "__main__":
    unittest.main()
