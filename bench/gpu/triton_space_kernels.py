# SPDX-License-Identifier: Apache-2.0
"""Four Triton kernels with spaces, for triton_spaces.py: matmul, attention, layernorm and grouped GEMM, in fp16.

Each case has the kernel, arguments, grid, SPACE, CONSTRAINTS, DEFAULT (a plain choice) and LIST (configs as the
tutorials of Triton list them). check_default() compares the default's result with PyTorch's.
"""
import torch
import triton
import triton.language as tl


def random(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def agree(got, wanted, tolerance=2e-2):
    error = ((got.float() - wanted.float()).norm() / wanted.float().norm()).item()
    assert error < tolerance, error


def listed(space, *configs):
    return [dict(zip(space, config)) for config in configs]


class Case:
    def check_default(self):
        torch.manual_seed(0)
        from purlin.triton_space import Space

        config = Space(self.SPACE).config(self.DEFAULT)
        self.kernel[self.grid](*self.arguments, **config.all_kwargs())
        torch.cuda.synchronize()
        self.compare()


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tile, rows, columns = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tile // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    within = tile % (GROUP * columns)
    row = (group * GROUP + within % height) * BM + tl.arange(0, BM)
    column = (within // height) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    at_a = a + row[:, None] * K + k[None, :]
    at_b = b + k[:, None] * N + column[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(at_a, mask=k[None, :] + start < K, other=0.0)
        right = tl.load(at_b, mask=k[:, None] + start < K, other=0.0)
        sums = tl.dot(left, right, sums)
        at_a += BK
        at_b += BK * N
    tl.store(c + row[:, None] * N + column[None, :], sums.to(tl.float16),
             mask=(row[:, None] < M) & (column[None, :] < N))


class Matmul(Case):
    SHAPE, KEY = "4096 x 4096 x 4096", ["M", "N", "K"]
    SPACE = {"BM": [32, 64, 128, 256], "BN": [32, 64, 128, 256], "BK": [32, 64, 128], "GROUP": [1, 2, 4, 8, 16],
             "num_warps": [4, 8], "num_stages": [2, 3, 4, 5]}
    CONSTRAINTS = ["BM * BN <= 32768", "BM * BN >= 2048", "(BM + BN) * BK * 2 * (num_stages - 1) <= 220000"]
    DEFAULT = {"BM": 64, "BN": 64, "BK": 32, "GROUP": 1, "num_warps": 4, "num_stages": 2}
    LIST = listed(SPACE, (128, 256, 64, 8, 8, 3), (64, 256, 32, 8, 4, 4), (128, 128, 32, 8, 4, 4),
                  (128, 64, 32, 8, 4, 4), (64, 128, 32, 8, 4, 4), (128, 32, 32, 8, 4, 4), (64, 32, 32, 8, 4, 4),
                  (128, 128, 64, 8, 8, 3))

    def __init__(self, size=4096):
        self.kernel = triton.JITFunction(matmul.fn)
        self.a, self.b = random(size, size), random(size, size)
        self.c = torch.empty_like(self.a)
        self.arguments = (self.a, self.b, self.c, size, size, size)
        self.grid = lambda meta: (triton.cdiv(size, meta["BM"]) * triton.cdiv(size, meta["BN"]),)

    def compare(self):
        agree(self.c, self.a @ self.b)


@triton.jit
def attention(q, k, v, out, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              PRESCALE: tl.constexpr, TWO_PASSES: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * S * D
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    query = tl.load(q + head + row[:, None] * D + column[None, :])
    if PRESCALE:
        query = (query * scale).to(tl.float16)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, D), dtype=tl.float32)
    # Causal: tiles below the diagonal need no mask, so a second loop may take those on it.
    last = (tl.program_id(0) + 1) * BM
    free = (tl.program_id(0) * BM) // BN * BN if TWO_PASSES else 0
    if TWO_PASSES:
        for start in range(0, free, BN):
            key = start + tl.arange(0, BN)
            keys = tl.load(k + head + key[None, :] * D + column[:, None])
            score = tl.dot(query, keys)
            if not PRESCALE:
                score *= scale
            largest = tl.maximum(top, tl.max(score, 1))
            weight = tl.exp2(score - largest[:, None])
            shrink = tl.exp2(top - largest)
            total = total * shrink + tl.sum(weight, 1)
            values = tl.load(v + head + key[:, None] * D + column[None, :])
            sums = tl.dot(weight.to(tl.float16), values, sums * shrink[:, None])
            top = largest
    for start in range(free, last, BN):
        key = start + tl.arange(0, BN)
        keys = tl.load(k + head + key[None, :] * D + column[:, None])
        score = tl.dot(query, keys)
        if not PRESCALE:
            score *= scale
        score = tl.where(row[:, None] >= key[None, :], score, -float("inf"))
        largest = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - largest[:, None])
        shrink = tl.exp2(top - largest)
        total = total * shrink + tl.sum(weight, 1)
        values = tl.load(v + head + key[:, None] * D + column[None, :])
        sums = tl.dot(weight.to(tl.float16), values, sums * shrink[:, None])
        top = largest
    tl.store(out + head + row[:, None] * D + column[None, :], (sums / total[:, None]).to(tl.float16))


class Attention(Case):
    SHAPE, KEY = "causal, 32 heads x 4096 x 128", ["S"]
    SPACE = {"BM": [32, 64, 128, 256], "BN": [16, 32, 64, 128], "PRESCALE": [0, 1], "TWO_PASSES": [0, 1],
             "num_warps": [2, 4, 8, 16], "num_stages": [1, 2, 3, 4, 5]}
    CONSTRAINTS = ["BM * BN <= 32768", "BM >= 16 * num_warps // 2"]
    DEFAULT = {"BM": 64, "BN": 32, "PRESCALE": 0, "TWO_PASSES": 0, "num_warps": 4, "num_stages": 2}
    LIST = listed(SPACE, *[(bm, bn, 0, 1, warps, stages) for bm in (64, 128) for bn in (32, 64)
                           for warps in (4, 8) for stages in (2, 3, 4)])

    def __init__(self, heads=32, rows=4096, width=128):
        self.kernel = triton.JITFunction(attention.fn)
        self.q, self.k, self.v = (random(1, heads, rows, width) for _ in range(3))
        self.out = torch.empty_like(self.q)
        self.arguments = (self.q, self.k, self.v, self.out, rows, 1.4426950408889634 / width ** 0.5, width)
        self.grid = lambda meta: (triton.cdiv(rows, meta["BM"]), heads)

    def compare(self):
        agree(self.out, torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=True))


@triton.jit
def layernorm(x, weight, bias, out, R, C, eps, BLOCK: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr,
              PASSES: tl.constexpr):
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        if row < R:
            line = x + row.to(tl.int64) * C
            if WHOLE:
                at = tl.arange(0, WHOLE)
                value = tl.load(line + at, mask=at < C, other=0.0).to(tl.float32)
                mean = tl.sum(value) / C
                off = tl.where(at < C, value - mean, 0.0)
                spread = 1 / tl.sqrt(tl.sum(off * off) / C + eps)
                w, b = tl.load(weight + at, mask=at < C), tl.load(bias + at, mask=at < C)
                tl.store(out + row.to(tl.int64) * C + at, (off * spread * w + b).to(tl.float16), mask=at < C)
            else:
                some = tl.zeros((BLOCK,), dtype=tl.float32)
                squares = tl.zeros((BLOCK,), dtype=tl.float32)
                for start in range(0, C, BLOCK):
                    at = start + tl.arange(0, BLOCK)
                    value = tl.load(line + at, mask=at < C, other=0.0).to(tl.float32)
                    some += value
                    squares += value * value
                mean = tl.sum(some) / C
                variance = tl.sum(squares) / C - mean * mean
                if PASSES == 3:
                    squares = tl.zeros((BLOCK,), dtype=tl.float32)
                    for start in range(0, C, BLOCK):
                        at = start + tl.arange(0, BLOCK)
                        value = tl.load(line + at, mask=at < C, other=0.0).to(tl.float32)
                        off = tl.where(at < C, value - mean, 0.0)
                        squares += off * off
                    variance = tl.sum(squares) / C
                spread = 1 / tl.sqrt(variance + eps)
                for start in range(0, C, BLOCK):
                    at = start + tl.arange(0, BLOCK)
                    value = tl.load(line + at, mask=at < C, other=0.0).to(tl.float32)
                    w, b = tl.load(weight + at, mask=at < C), tl.load(bias + at, mask=at < C)
                    tl.store(out + row.to(tl.int64) * C + at, ((value - mean) * spread * w + b).to(tl.float16),
                             mask=at < C)


class LayerNorm(Case):
    SHAPE, KEY = "16384 rows x 4096", ["R", "C"]
    SPACE = {"BLOCK": [128, 256, 512, 1024, 2048, 4096], "ROWS": [1, 2, 4, 8, 16], "WHOLE": [0, 4096], "PASSES": [2, 3],
             "num_warps": [1, 2, 4, 8, 16], "num_stages": [1, 2, 3, 4]}
    CONSTRAINTS = ["WHOLE == 0 or BLOCK == 128", "WHOLE == 0 or num_stages == 1", "WHOLE == 0 or PASSES == 2"]
    DEFAULT = {"BLOCK": 256, "ROWS": 1, "WHOLE": 0, "PASSES": 3, "num_warps": 4, "num_stages": 1}
    LIST = listed(SPACE, *[(block, 1, 0, 3, warps, 1) for block in (1024, 2048, 4096) for warps in (4, 8, 16)])

    def __init__(self, rows=16384, columns=4096):
        self.kernel = triton.JITFunction(layernorm.fn)
        self.x, self.weight, self.bias = random(rows, columns), random(columns), random(columns)
        self.out = torch.empty_like(self.x)
        self.arguments = (self.x, self.weight, self.bias, self.out, rows, columns, 1e-5)
        self.grid = lambda meta: (triton.cdiv(rows, meta["ROWS"]),)

    def compare(self):
        agree(self.out, torch.nn.functional.layer_norm(self.x, self.x.shape[1:], self.weight, self.bias))


@triton.jit
def grouped(a_places, b_places, c_places, sizes, COUNT, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            PROGRAMS: tl.constexpr):
    tile, before = tl.program_id(0), 0
    for one in range(COUNT):
        M, N, K = tl.load(sizes + one * 3), tl.load(sizes + one * 3 + 1), tl.load(sizes + one * 3 + 2)
        columns = tl.cdiv(N, BN)
        count = tl.cdiv(M, BM) * columns
        a = tl.load(a_places + one).to(tl.pointer_type(tl.float16))
        b = tl.load(b_places + one).to(tl.pointer_type(tl.float16))
        c = tl.load(c_places + one).to(tl.pointer_type(tl.float16))
        while tile >= before and tile < before + count:
            row = (tile - before) // columns * BM + tl.arange(0, BM)
            column = (tile - before) % columns * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            at_a = a + row[:, None] * K + k[None, :]
            at_b = b + k[:, None] * N + column[None, :]
            sums = tl.zeros((BM, BN), dtype=tl.float32)
            for start in range(0, tl.cdiv(K, BK)):
                tl.multiple_of(at_a, [16, 16])
                tl.multiple_of(at_b, [16, 16])
                sums = tl.dot(tl.load(at_a), tl.load(at_b), sums)
                at_a += BK
                at_b += BK * N
            tl.store(c + row[:, None] * N + column[None, :], sums.to(tl.float16))
            tile += PROGRAMS
        before += count


class Grouped(Case):
    SIZES = [(2048, 2048, 2048), (1024, 1024, 4096), (512, 2048, 1024), (256, 4096, 2048)]
    SHAPE, KEY = "4 products, 256 to 4096", ["COUNT"]
    SPACE = {"BM": [32, 64, 128, 256], "BN": [32, 64, 128, 256], "BK": [32, 64, 128], "PROGRAMS": [66, 132, 264, 528],
             "num_warps": [4, 8], "num_stages": [2, 3, 4, 5]}
    CONSTRAINTS = ["BM * BN <= 32768", "(BM + BN) * BK * 2 * (num_stages - 1) <= 220000"]
    DEFAULT = {"BM": 64, "BN": 64, "BK": 32, "PROGRAMS": 132, "num_warps": 4, "num_stages": 2}
    LIST = listed(SPACE, (128, 128, 32, 132, 4, 3), (128, 128, 32, 264, 4, 3), (64, 64, 32, 132, 4, 3),
                  (64, 64, 32, 264, 4, 3), (128, 128, 64, 132, 4, 3), (64, 128, 64, 132, 4, 3))

    def __init__(self):
        self.kernel = triton.JITFunction(grouped.fn)
        self.a = [random(m, k) for m, n, k in self.SIZES]
        self.b = [random(k, n) for m, n, k in self.SIZES]
        self.c = [torch.empty((m, n), device="cuda", dtype=torch.float16) for m, n, k in self.SIZES]
        places = [torch.tensor([one.data_ptr() for one in some], device="cuda") for some in (self.a, self.b, self.c)]
        sizes = torch.tensor([extent for size in self.SIZES for extent in size], device="cuda", dtype=torch.int32)
        self.arguments = (*places, sizes, len(self.SIZES))
        self.grid = lambda meta: (meta["PROGRAMS"],)

    def compare(self):
        for a, b, c in zip(self.a, self.b, self.c):
            agree(c, a @ b)


CASES = {"matmul": Matmul, "attention": Attention, "layernorm": LayerNorm, "grouped": Grouped}
