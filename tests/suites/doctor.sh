#!/usr/bin/env bash
# doctor: text, one JSON document, and the state of a machine whose cache cannot be written.
. "$(dirname "$0")/lib.sh"

expect_exit 0 purlin doctor
expect_contains "$tmp/out" "OpenCL devices" "opencl:0" "Ready: --device auto means"

expect_exit 0 purlin doctor --json
expect_json "$tmp/out" 'd["schema"] == "purlin.doctor/1" and d["usable"] is True'
expect_json "$tmp/out" 'd["best_device"] == d["environment"]["devices"][0]["id"]'
expect_json "$tmp/out" 'all(set(c) == {"id", "title", "state", "evidence", "fix"} for c in d["capabilities"])'
expect_json "$tmp/out" '{c["id"]: c["state"] for c in d["capabilities"]}["opencl_devices"] == "ok"'
# What is not ok has a fix, and only that; a text names each fix once.
expect_json "$tmp/out" 'all((c["state"] == "ok") == (c["fix"] is None) for c in d["capabilities"])'
expect_json "$tmp/out" '{"spool", "gpu_counters", "limits"} <= {c["id"] for c in d["capabilities"]}'
expect_exit 0 purlin doctor
twice=$(grep -o 'fix: .*' "$tmp/out" | sort | uniq -d)
[ -z "$twice" ] || fail "said twice: $twice"
TMPDIR=$tmp/absent expect_exit 0 purlin doctor --json
expect_json "$tmp/out" '[c for c in d["capabilities"] if c["id"] == "spool"][0]["state"] == "missing"'
expect_json "$tmp/out" '"TMPDIR" in [c for c in d["capabilities"] if c["id"] == "spool"][0]["fix"]'
expect_json "$tmp/out" '{c["id"]: c["state"] for c in d["capabilities"]}["kernel_samples"] == "ok"'
[ ! -e "$XDG_CACHE_HOME/purlin" ] || fail "doctor created the cache directory"

# A file where a folder should be: nobody can write below it, not even root.
touch "$tmp/file"
PURLIN_CACHE=$tmp/file/cache expect_exit 0 purlin doctor --json
expect_json "$tmp/out" '[c for c in d["capabilities"] if c["id"] == "config_cache"][0]["state"] == "missing"'

# No OpenCL driver and no GPU: still an answer, with the fix.
OCL_ICD_VENDORS=$tmp/none expect_exit 0 purlin doctor --json
expect_json "$tmp/out" '[c for c in d["capabilities"] if c["id"] == "opencl_devices"][0]["state"] == "missing"'
expect_json "$tmp/out" '"pocl-opencl-icd" in [c for c in d["capabilities"] if c["id"] == "opencl_devices"][0]["fix"]'

# A driver without a device. (PoCL has none where it cannot keep its cache; a newer one may.)
POCL_CACHE_DIR=$tmp/file/pocl expect_exit 0 purlin doctor --json
expect_json "$tmp/out" 'not [c for c in d["capabilities"] if c["id"] == "opencl_devices" and c["state"] == "missing" and "POCL_CACHE_DIR" not in c["fix"]]'

expect_exit 2 purlin doctor --jsn
expect_contains "$tmp/err" "did you mean '--json'?"

expect_exit 2 purlin doctor --device opencl:0
expect_contains "$tmp/err" "give both"
