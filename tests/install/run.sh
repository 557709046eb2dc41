#!/usr/bin/env bash
# Installs into a folder, moves it to prove that it is relocatable, and builds a consumer against it
# with find_package and with pkg-config. The built library's symbols and dependencies are checked too.
# labels: install
. "$(dirname "${BASH_SOURCE[0]}")/../suites/lib.sh"
: "${PURLIN_BUILD:?the build directory}"

cmake --install "$PURLIN_BUILD" --prefix "$tmp/first" >"$tmp/install.log" || { cat "$tmp/install.log"; fail "install"; }
mkdir "$tmp/elsewhere"
mv "$tmp/first" "$tmp/elsewhere/purlin tree"  # a blank in the path, too
prefix="$tmp/elsewhere/purlin tree"
library=$(find "$prefix" -name libpurlin.so)
[ -n "$library" ] || fail "no libpurlin.so below the prefix"
libdir=$(dirname "$library")

# Only purlin_* is exported, and nothing is needed that a bare system lacks.
nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | grep -v -e '^purlin_' -e '^PURLIN_1$' >"$tmp/foreign" || true
[ ! -s "$tmp/foreign" ] || { cat "$tmp/foreign" >&2; fail "libpurlin.so exports more than purlin_*"; }
if ! ldd "$library" | grep -q -e libasan -e libtsan; then
  readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so' -e '^libm\.so' -e '^ld-linux' >"$tmp/needed" || true
  [ ! -s "$tmp/needed" ] || { cat "$tmp/needed" >&2; fail "libpurlin.so needs more than libc"; }
fi

installed="$prefix/bin/purlin"
"$installed" --version | grep -q '^purlin ' || fail "the installed purlin does not run"
for file in include/purlin/purlin.h include/purlin/purlin.hpp share/purlin/kernels/gemm/gemm.toml \
    share/man/man1/purlin.1.gz share/bash-completion/completions/purlin \
    share/zsh/vendor-completions/_purlin share/fish/vendor_completions.d/purlin.fish; do
  [ -f "$prefix/$file" ] || fail "$file is not installed"
done
! grep -rIl -e "$PURLIN_SOURCE" -e "$tmp/first" "$libdir/cmake" "$libdir/pkgconfig" || fail "an absolute path was installed"

# The consumer, by find_package.
flags=$(sed -n 's/^CMAKE_CXX_FLAGS:STRING=//p' "$PURLIN_BUILD/CMakeCache.txt")
sanitize=$(sed -n 's/^PURLIN_SANITIZE:STRING=//p' "$PURLIN_BUILD/CMakeCache.txt")
[ -z "$sanitize" ] || flags="$flags -fsanitize=$sanitize"
cmake -S "$PURLIN_SOURCE/tests/install/consumer" -B "$tmp/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" >"$tmp/log" 2>&1 &&
  cmake --build "$tmp/consumer" >>"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "the consumer does not build"; }

# The consumer, by pkg-config (which quotes the blank).
export PKG_CONFIG_PATH="$libdir/pkgconfig"
[ "$(pkg-config --modversion purlin)" = "$("$installed" --version | cut -d' ' -f2)" ] || fail "pkg-config's version"
eval "cc -std=c99 $flags -o '$tmp/consumer_pc' '$PURLIN_SOURCE/tests/install/consumer/consumer.c' $(pkg-config --cflags --libs purlin)"

# What purlin stores, the programs find.
export PURLIN_CACHE="$tmp/configs" LD_LIBRARY_PATH="$libdir"
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
expect_exit 0 "$installed" cache put "$prefix/share/purlin/kernels/gemm/gemm.toml" --device opencl:0 \
  --shape M=256,N=256,K=256 --config "$config"
for program in "$tmp/consumer/consumer_c" "$tmp/consumer/consumer_cpp" "$tmp/consumer_pc"; do
  expect_exit 0 "$program" 256 256 256
  expect_contains "$tmp/out" "exact -DBM=32 -DBN=32" "-DUNROLL=1"
  expect_exit 0 "$program" 200 256 256
  expect_contains "$tmp/out" "bucket -DBM=32"
  expect_exit 0 "$program" 200 250 256  # 250 is no multiple of VECTOR
  expect_contains "$tmp/out" "miss "
  PURLIN_DISABLE=1 expect_exit 0 "$program" 256 256 256
  expect_contains "$tmp/out" "miss "
done
echo "installed, moved, found by cmake and pkg-config, and looked up"
