#!/usr/bin/env bash
# The Debian package: builds from the build tree at hand, holds the right files, and names what it
# depends on.
# labels: install slow
# timeout: 900
. "$(dirname "${BASH_SOURCE[0]}")/../suites/lib.sh"
: "${PURLIN_BUILD:?the build directory}"
command -v dpkg-deb >/dev/null || { echo "not a Debian system: nothing to check"; exit 0; }

(cd "$PURLIN_BUILD" && cpack -G DEB -B "$tmp/deb") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "cpack"; }
package=$(echo "$tmp"/deb/*.deb)
dpkg-deb -c "$package" >"$tmp/files"
expect_contains "$tmp/files" ./usr/bin/purlin ./usr/include/purlin/purlin.h ./usr/include/purlin/purlin.hpp \
  libpurlin.so.0 PurlinConfig.cmake pkgconfig/purlin.pc ./usr/share/purlin/kernels/gemm/gemm.toml \
  ./usr/lib/purlin/ ./usr/libexec/purlin/purlin-sample \
  ./usr/share/man/man1/purlin.1.gz ./usr/share/man/man1/purlin-cache-ls.1.gz \
  ./usr/share/bash-completion/completions/purlin ./usr/share/zsh/vendor-completions/_purlin \
  ./usr/share/fish/vendor_completions.d/purlin.fish
! grep -q -e ' \./usr/local' -e "$PURLIN_SOURCE" "$tmp/files" || fail "the package holds files of another prefix"
dpkg-deb -f "$package" >"$tmp/control"
expect_contains "$tmp/control" "Package: purlin" "Depends: " "libc6"
! grep '^Depends:' "$tmp/control" | grep -q -e cuda -e opencl || fail "a driver became a hard dependency"

# Unpacked anywhere, it runs.
dpkg-deb -x "$package" "$tmp/root"
expect_exit 0 "$tmp/root/usr/bin/purlin" --version
echo "$(basename "$package"): $(wc -l <"$tmp/files") files"
