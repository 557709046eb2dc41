#!/usr/bin/env bash
# doctor sees the GPU, NVRTC and CUPTI.
set -euo pipefail
purlin doctor
purlin doctor --json | python3 -c '
import json, sys
document = json.load(sys.stdin)
states = {c["id"]: c["state"] for c in document["capabilities"]}
print(states)
devices = [d for d in document["environment"]["devices"] if d["backend"] == "cuda"]
assert devices and devices[0]["compute_units"] > 0 and devices[0]["arch"].startswith("sm_"), devices
for key in ("cuda", "nvrtc", "cupti"):
    match = [s for i, s in states.items() if key in i]
    assert match and "missing" not in match, (key, states)
'
