#!/usr/bin/env bash
# cuBLASLt end to end on a fake library (tests/programs/fake_cublaslt.cc) and a fake device: listing,
# tuning, confirming, the key. What a real library does is for tests/gpu/cublaslt_gpu.sh.
. "$(dirname "$0")/lib.sh"
: "${PURLIN_BUILD:?the build tree}"
library=$PURLIN_BUILD/tests/fake_cublaslt/libcublasLt.so.13
[ -e "$library" ] || skip "built without cublasLt.h"
export PURLIN_CUBLASLT=$library PURLIN_CACHE=$tmp/store

spec() { # FILE, further lines of [library]
  printf 'schema = "purlin.spec/1"\n[problem]\nM = 12\nN = 8\nK = 20\n[library]\nname = "cublaslt"\ntranspose_b = true\n%s\n' "${2:-}" >"$1"
}
facts='"device": {"backend": "cuda", "arch": "sm_90", "name": "Fake H200", "driver": "580.1"}, "noise": 0.001'
spec "$tmp/gemm.toml"
printf '{%s, "time_ms": "0.8 if tile == 393 and cluster == 3 else 1 + 0.1 * (algo != 66)"}' "$facts" >"$tmp/fast.json"

# The library's first choice is the default; the winner is a config by name, confirmed in fresh processes,
# under a key with the library's version.
expect_exit 0 purlin tune "$tmp/gemm.toml" --device "fake:$tmp/fast.json" --budget 120 --json
expect_contains "$tmp/err" "cuBLASLt 13.1.0 has 261 algorithms"
expect_json "$tmp/out" 'd["kernel"] == "cublaslt-nt-bf16-bf16-f32"'
expect_json "$tmp/out" 'd["evaluations"][0]["config"]["algo"] == 66 and d["evaluations"][0]["config"]["tile"] == 20'
expect_json "$tmp/out" 'd["evaluations"][1]["config"]["split_k"] == 4'
expect_json "$tmp/out" 'd["best"]["config"]["tile"] == 393 and d["best"]["config"]["cluster"] == 3'
expect_json "$tmp/out" 'd["confirmations"][0]["holds"] and len(d["confirmations"][0]["gain_by_process"]) == 3'
expect_json "$tmp/out" 'len(d["confirmations"][0]["gain_with_other_inputs"]) == 3'
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" '[e["key"]["toolkit"] for e in d["entries"]] == ["cuBLASLt 13.1.0"]'
expect_json "$tmp/out" 'd["entries"][0]["key"]["op"] == "gemm" and "algo" in d["entries"][0]["config"]'

# Listed once: the next session reads what was found.
ls "$tmp"/cache/purlin/binaries/libraries/*.json >/dev/null || fail "the list of algorithms was not kept"

# A lead that is only there in the first process does not displace the default.
spec "$tmp/relu.toml" 'epilogue = "relu"'
printf '{%s, "time_ms": "1 + 0.1 * (algo != 66)"}' "$facts" >"$tmp/even.json"
expect_exit 0 purlin tune "$tmp/relu.toml" --device "fake:$tmp/even.json" --budget 60 --json
expect_json "$tmp/out" 'd["best"]["config"] == d["default"]["config"]'

# Wrong results and writes beside the workspace are rejected by evidence.
export FAKE_CUBLASLT_WRONG=393 FAKE_CUBLASLT_STRAY=24
spec "$tmp/bias.toml" 'epilogue = "bias"'
expect_exit 0 purlin tune "$tmp/bias.toml" --device "fake:$tmp/fast.json" --budget 300 --strategy exhaustive --json
unset FAKE_CUBLASLT_WRONG FAKE_CUBLASLT_STRAY
expect_json "$tmp/out" 'd["failures"]["wrong"]["count"] == 13 and d["failures"]["out_of_bounds"]["count"] == 13'
expect_json "$tmp/out" 'd["best"]["config"]["tile"] not in (393, 24)'

# What attributes do not give again is said; without a library, what is missing.
export FAKE_CUBLASLT_HIDDEN=1
spec "$tmp/gelu.toml" 'epilogue = "gelu"'
expect_exit 0 purlin tune "$tmp/gelu.toml" --device "fake:$tmp/fast.json" --budget 20 --no-store
expect_contains "$tmp/err" "1 of cuBLASLt 13.1.0's own proposals cannot be rebuilt from their attributes"
expect_exit 2 env PURLIN_CUBLASLT=/nonexistent CUDA_HOME=/nonexistent "$PURLIN" tune "$tmp/gemm.toml" --device "fake:$tmp/fast.json" \
  --budget 5 --no-store --fresh || true

# Another version of the library is another key.
export FAKE_CUBLASLT_VERSION=130200
expect_exit 0 purlin tune "$tmp/gemm.toml" --device "fake:$tmp/fast.json" --budget 60 --json
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" 'sorted(e["key"]["toolkit"] for e in d["entries"] if e["key"]["kernel"] == "cublaslt-nt-bf16-bf16-f32") == ["cuBLASLt 13.1.0", "cuBLASLt 13.2.0"]'
echo "cublaslt: ok"
