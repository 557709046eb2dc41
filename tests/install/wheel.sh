#!/usr/bin/env bash
# The wheels: one of the installed tree with the command, one of the Python package alone, each in a fresh
# virtual environment without a network. The same input gives the same bytes.
# labels: install opencl
# timeout: 900
. "$(dirname "${BASH_SOURCE[0]}")/../suites/lib.sh"
: "${PURLIN_BUILD:?the build directory}"
program=$PURLIN_BUILD/tests/opencl_loop
unset PURLIN PYTHONPATH PURLIN_LIBRARY  # the wheel's own are wanted
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_NO_CACHE_DIR=1
python3 -m venv "$tmp/venv" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "no python3 -m venv: ./dev setup test installs it"; }
pip() { "$1/bin/python" -m pip "${@:2}" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "pip ${*:2}"; }; }

cmake --install "$PURLIN_BUILD" --prefix "$tmp/tree" --strip >"$tmp/log" || { cat "$tmp/log" >&2; fail "install"; }
if ldd "$tmp/tree/bin/purlin" | grep -q -e libasan -e libtsan; then
  skip "a build with sanitizers has no wheel"
fi
make_wheel() { python3 "$PURLIN_SOURCE/python/packaging/purlin_wheel.py" "$@"; }
# A build of ./dev bundle links libstdc++ and curl's header alone; another build needs more of the system.
wheel=$(make_wheel "$tmp/tree" "$tmp/first") || fail "no wheel"
again=$(make_wheel "$tmp/tree" "$tmp/second")
cmp "$wheel" "$again" || fail "the second wheel differs"
python3 "$PURLIN_SOURCE/python/packaging/elf.py" "$wheel" || fail "its tag is wrong"
lower=$tmp/$(basename "$wheel" | sed 's/manylinux_2_[0-9]*/manylinux_2_20/')
cp "$wheel" "$lower"
expect_exit 2 python3 "$PURLIN_SOURCE/python/packaging/elf.py" "$lower"
expect_contains "$tmp/err" "needs glibc"

# --- the wheel with the command
pip "$tmp/venv" install "$wheel"
bin=$tmp/venv/bin
expect_exit 0 "$bin/purlin" --version
expect_contains "$tmp/out" "purlin 0."
expect_exit 0 "$bin/purlin" doctor --json
expect_json "$tmp/out" '{c["id"]: c["state"] for c in d["capabilities"]}["kernel_samples"] == "ok"'
expect_json "$tmp/out" '{c["id"]: c["state"] for c in d["capabilities"]}["capture_libraries"] == "ok"'
expect_exit 0 "$bin/purlin" profile --quiet -o "$tmp/p.plprof" -- "$program" launches 20
expect_exit 0 "$bin/purlin" report "$tmp/p.plprof" --json
expect_json "$tmp/out" 'len(d["kernels"]) > 0'
expect_exit 0 env PURLIN_CACHE="$tmp/configs" "$bin/python" -c '
import purlin
assert "_tree" in purlin.command(), purlin.command()
print(purlin.Cache().directory, purlin.run("doctor")["schema"])'
expect_contains "$tmp/out" "$tmp/configs purlin.doctor/1"
expect_exit 2 "$bin/purlin" no-such-verb  # the exit code is the command's
# Without its folder, the command says what to do.
tree=$(echo "$tmp"/venv/lib/python3*/site-packages/purlin/_tree)
[ -f "$tree/../py.typed" ] || fail "no py.typed"
mv "$tree/bin" "$tree/gone"
expect_exit 1 "$bin/purlin" --version
expect_contains "$tmp/err" "reinstall the package"
mv "$tree/gone" "$tree/bin"
pip "$tmp/venv" uninstall -y purlin
left=$(find "$tmp/venv" -name '*purlin*')
[ -z "$left" ] || fail "left behind: $left"
# --target has no bin folder on the PATH, but the package finds its command.
pip "$tmp/venv" install --target "$tmp/target" "$wheel"
PYTHONPATH=$tmp/target expect_exit 0 python3 -c 'import purlin; print(purlin.command())'
expect_contains "$tmp/out" "$tmp/target/purlin/_tree/bin/purlin"

# --- the package of a checkout, whose build needs the standard library alone
cp -r "$PURLIN_SOURCE/python" "$tmp/checkout"
cp "$PURLIN_SOURCE/LICENSE" "$tmp"
pip "$tmp/venv" install "$tmp/checkout"
expect_exit 0 "$bin/python" -c 'import purlin; print(purlin.__version__)'
[ ! -e "$bin/purlin" ] || fail "the package without the command installs a command"
pip "$tmp/venv" uninstall -y purlin
pip "$tmp/venv" install -e "$tmp/checkout"
(cd / && expect_exit 0 "$bin/python" -c 'import purlin; print(purlin.__file__)')
expect_contains "$tmp/out" "$tmp/checkout/purlin"
pip "$tmp/venv" uninstall -y purlin
(cd "$tmp/checkout" && PYTHONPATH=packaging python3 -c 'import purlin_wheel; print(purlin_wheel.build_sdist("'"$tmp"'"))') >"$tmp/out"
pip "$tmp/venv" install "$tmp/$(cat "$tmp/out")"
if command -v twine >/dev/null; then
  expect_exit 0 twine check --strict "$wheel" "$tmp/$(cat "$tmp/out")"
fi

# --- one version everywhere
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$PURLIN_BUILD/CMakeCache.txt")
[[ $(basename "$wheel") == purlin-$version-* ]] || fail "the wheel's version is not $version"
echo "$(basename "$wheel"): installed, used, removed"
