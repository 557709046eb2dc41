#!/usr/bin/env bash
# From a profile to tuning jobs and back: a recorded PyTorch run's matrix products become tasks with its own shapes; what
# was tuned since is no job any more.
source "$(dirname "$0")/lib.sh"
trace=$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz
expect_exit 0 purlin report "$trace" --by shape --json
cp "$tmp/out" "$tmp/report.json"
expect_exit 0 purlin backlog --profile "$trace" --specs "$PURLIN_SOURCE/kernels" --top 15 --cache "$tmp/cache" --json
cp "$tmp/out" "$tmp/list.json"
expect_json "$tmp/out" 'len(d["tasks"]) >= 2 and all(t["kind"] == "tune" and t["spec"].endswith(".toml") for t in d["tasks"])'
expect_contains "$tmp/err" "no job:" "heaviest kernels queued"
# The jobs are those of the report: same shapes, heaviest first.
python3 - "$tmp/report.json" "$tmp/list.json" <<'PYTHON'
import json, sys
report, tasks = (json.load(open(path)) for path in sys.argv[1:])
shapes = {row["shape"] for row in report["kernels"][:15]}
for task in tasks["tasks"]:
    dims = dict(part.split("=") for part in task["shape"].split(","))
    assert any(dims.items() <= dict(p.split("=") for p in shape.split(",")).items() for shape in shapes if shape), task
PYTHON
# Asked again, they are the same tasks.
count=$(python3 -c "import json; print(len(json.load(open('$tmp/list.json'))['tasks']))")
expect_exit 0 purlin backlog --profile "$trace" --specs "$PURLIN_SOURCE/kernels" --top 15 --cache "$tmp/cache" --json
expect_json "$tmp/out" "len(d['tasks']) == $count"
expect_exit 2 purlin backlog --profile "$trace" --top 0 --cache "$tmp/cache"
expect_exit 2 purlin backlog --profile "$tmp/missing" --cache "$tmp/cache"
echo 'profile_backlog: all checks passed'
