# shellcheck shell=bash
# Commands as kernels: a spec with a [command] is built by the real C compiler, run, verified and tuned.
# The programs print made-up times, so that no verdict depends on the machine.
source "$(dirname "$0")/lib.sh"
export PURLIN_CACHE=$tmp/winners
command -v cc >/dev/null || skip "no C compiler is here"

mkdir "$tmp/kernel"
cd "$tmp/kernel"
cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** arguments) {
  const char* threads = getenv("THREADS");
#ifdef CRASH
  abort();
#endif
#ifdef SILENT
  return 0;
#endif
  if (count != 2 || threads == NULL) return 3;
  FILE* file = fopen("out.txt", "w");
  fprintf(file, "%s\n", SCALE == 7 ? "wrong" : "right");
  fclose(file);
  const int distance = abs(SCALE - 4) + abs(atoi(threads) - 2) + (OPTIMISED ? 0 : 10);
  for (int i = 0; i < 3; ++i) printf("time: %d us\n", 100 + 10 * distance);
  return 0;
}
C
# spec [LINE...]: further lines of [command].
spec() {
  cat <<'T'
schema = "purlin.spec/1"
name = "made-up"
[problem]
N = 64
[parameters]
SCALE = [1, 2, 4, 7, 8]
THREADS = [1, 2, 4]
FAST = [false, true]
[command]
build = ["cc", "-DOPTIMISED={FAST}", "-DSCALE={SCALE}", "-o", "program", "{spec}/program.c"]
run = ["./program", "{N}"]
environment = { THREADS = "{THREADS}" }
files = ["program.c"]
device = "host"
format = "regex"
pattern = 'time: (\d+) us'
unit = "us"
T
  printf '%s\n' "$@"
}

# The whole space: the fastest is found, verified by the digest of the default's outputs, and stored.
spec 'outputs = ["out.txt"]' >spec.toml
expect_exit 0 purlin space spec.toml --device host --json
expect_json "$tmp/out" 'd["valid"] == 30'
expect_exit 0 purlin tune spec.toml --strategy exhaustive --budget 100 --json
expect_json "$tmp/out" 'd["best"]["config"] == {"SCALE": 4, "THREADS": 2, "FAST": True} and abs(d["best"]["time_ms"] - 0.1) < 1e-9'
expect_json "$tmp/out" 'len(d["evaluations"]) == 30 and d["failures"]["wrong"]["count"] == 6'
# Where the default, which cannot run at this shape, has a stand-in, its outputs are the expected ones.
sed '/^THREADS = /s/.*/THREADS = {values = [1, 2, 4], default = 4}/; /^\[problem\]/i constraints = ["THREADS * 32 <= N"]' spec.toml >shape.toml
sed -i 's/if (count != 2/if (atoi(threads) * 32 > atoi(arguments[1])) return 4;\n  &/' program.c
expect_exit 0 purlin tune shape.toml --strategy exhaustive --budget 100 --fresh --no-store --json
expect_contains "$tmp/err" "made-up at N=64: the default config breaks a constraint or a limit of the device; SCALE=1 THREADS=2 FAST=False takes its place"
expect_json "$tmp/out" 'd["best"]["config"] == {"SCALE": 4, "THREADS": 2, "FAST": True} and d["failures"]["wrong"]["count"] == 4'
expect_json "$tmp/out" 'd["evaluations"][0]["config"] == {"SCALE": 1, "THREADS": 2, "FAST": False} and len(d["evaluations"]) == 20'
sed -i '/return 4;/d' program.c
expect_json "$tmp/out" 'all(e["compile_s"] > 0 for e in d["evaluations"])'
expect_contains "$tmp/err" "the reference is the default config"
expect_exit 0 purlin cache get spec.toml --json
expect_json "$tmp/out" 'd["outcome"] == "exact" and d["entry"]["config"]["SCALE"] == 4'
expect_exit 0 purlin cache get spec.toml --explain
# What neither the spec nor the entry has is named without empty quotes.
expect_contains "$tmp/out" "dtype: none, as in the entry" "problem: 'N=64', as measured"
if grep -q "''" "$tmp/out"; then fail "empty quotes: $(grep "''" "$tmp/out")"; fi
grep -q '^  device .* (driver ' "$tmp/out" || fail "the processor has no arch: $(grep '^  device' "$tmp/out")"

# A winner that is there is confirmed, not searched again; --fresh searches.
expect_exit 0 purlin tune spec.toml --budget 20 --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 2 and d["best"]["config"]["SCALE"] == 4 and d["strategy_used"] == "cache"'
expect_json "$tmp/out" 'd["confirmed"] is True'
expect_contains "$tmp/err" "holds"
# Without the log, the output says so as well.
expect_exit 0 purlin tune spec.toml --budget 20 -q
expect_contains "$tmp/out" "the cached winner was confirmed against the default, nothing was searched (--fresh searches): 2 of 30 valid"
[ ! -s "$tmp/err" ] || fail "-q prints on stderr: $(cat "$tmp/err")"
expect_exit 0 purlin tune spec.toml --budget 20 --fresh --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 20 and "confirmed" not in d'
# A larger budget than that of an ended session asks for more: the session continues.
expect_exit 0 purlin tune spec.toml --budget 21 --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 21'
expect_contains "$tmp/err" "continues a session of 20 evaluations"
expect_exit 0 purlin tune spec.toml --budget 1 --fresh --no-store
expect_contains "$tmp/out" "finals: 1 config measured again in"

# Another text of the program is another kernel.
sed -i 's/abs(SCALE - 4)/abs(SCALE - 8)/' program.c
expect_exit 0 purlin tune spec.toml --strategy exhaustive --budget 100 --json
expect_json "$tmp/out" 'd["best"]["config"]["SCALE"] == 8'

# A command that verifies; each kind of failure is the config's alone.
cat >check.sh <<'S'
#!/bin/sh
grep -q right out.txt || { echo "it is wrong" >&2; exit 1; }
S
chmod +x check.sh
spec 'check = ["{spec}/check.sh"]' >checked.toml
sed -i 's/name = "made-up"/name = "checked"/; s/"-DSCALE={SCALE}"/"-DSCALE={SCALE}", "-D{KIND}"/; s/^FAST = .*/&\nKIND = ["NONE", "CRASH", "SILENT", "1BAD"]/' checked.toml
expect_exit 0 purlin tune checked.toml --strategy exhaustive --budget 200 --finals 1 --json
expect_json "$tmp/out" 'd["best"]["config"]["KIND"] == "NONE"'
expect_json "$tmp/out" '{k: v["count"] for k, v in d["failures"].items()} == {"wrong": 6, "crash": 30, "launch": 30, "compile": 30}'
expect_json "$tmp/out" '"it is wrong" in d["failures"]["wrong"]["first_message"]'
expect_json "$tmp/out" '"no time is in the output" in d["failures"]["launch"]["first_message"]'

# A command that hangs, with a child of its own, is ended as a group.
cat >hang.sh <<S
#!/bin/sh
sleep 1000 &
echo \$! >"$tmp/child"
wait
S
chmod +x hang.sh
cat >hang.toml <<'T'
schema = "purlin.spec/1"
name = "hang"
[parameters]
WAYS = ["true", "hang"]
[command]
run = ["{spec}/run.sh", "{WAYS}"]
check = ["true"]
device = "host"
format = "wall"
T
printf '#!/bin/sh\n[ "$1" = true ] || exec "%s/hang.sh"\n' "$tmp/kernel" >run.sh
chmod +x run.sh
expect_exit 0 purlin tune hang.toml --strategy exhaustive --timeout 2s --finals 1 --no-store --json
expect_json "$tmp/out" 'd["failures"]["timeout"]["count"] == 1 and d["best"]["config"]["WAYS"] == "true"'
wait_until 'the child ends' sh -c "! kill -0 $(cat "$tmp/child") 2>/dev/null"

# Mistakes of a spec name the place and the remedy.
mistake() {
  spec "$1" >wrong.toml
  expect_exit 2 purlin tune wrong.toml
  expect_contains "$tmp/err" "wrong.toml:" "$2"
}
mistake '' "nothing verifies the outputs"
mistake 'check = ["{spec}/{SCAL}"]' "did you mean 'SCALE'"
mistake 'check = ["a{"]' "single brace"
mistake 'outputs = ["../x"]' "no file of the working folder"
mistake 'outputs = ["x"]
expect = "12"' "64 hexadecimal digits"
# Before anything is built.
spec 'check = ["true"]' | sed "s/^pattern = .*/pattern = 'time: (\\\\d+'/" >wrong.toml
expect_exit 2 purlin tune wrong.toml
expect_contains "$tmp/err" "wrong.toml:" "is no regular expression"
spec 'check = ["true"]' | sed '/^pattern = /d' >wrong.toml
expect_exit 2 purlin tune wrong.toml
expect_contains "$tmp/err" "needs 'pattern'" "such as 'time:"
expect_exit 2 purlin tune spec.toml --device opencl:0
expect_contains "$tmp/err" 'run on the host'
expect_exit 2 purlin tune spec.toml --limit 'time_ms < 1'
expect_contains "$tmp/err" 'leave out --limit'

# The sample is a real one: its times are live, so only its outputs are certain.
expect_exit 0 purlin tune "$PURLIN_SOURCE/examples/command_matmul/matmul.toml" --shape N=64 --budget 6 --finals 1 --no-store --json
expect_json "$tmp/out" 'all(e["status"] == "ok" for e in d["evaluations"])'
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'purlin-command*' -newer "$tmp/kernel/spec.toml" 2>/dev/null)" ] ||
  fail "working folders are left"
