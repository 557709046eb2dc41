#!/usr/bin/env bash
# The packages of Debian and of RPM systems: built from the build tree at hand, they hold the right files, name
# what they depend on, and follow Debian's policy as lintian checks it.
# labels: install slow
# timeout: 900
. "$(dirname "${BASH_SOURCE[0]}")/../suites/lib.sh"
: "${PURLIN_BUILD:?the build directory}"
command -v dpkg-deb >/dev/null || skip "dpkg-deb is not here"

(cd "$PURLIN_BUILD" && cpack -G DEB -B "$tmp/deb") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "cpack"; }
package() { echo "$tmp"/deb/"$1"_*.deb; }
for name in purlin libpurlin0 libpurlin-dev; do
  [ -f "$(package $name)" ] || fail "no package $name"
  dpkg-deb -c "$(package $name)" >"$tmp/$name.files"
  dpkg-deb -f "$(package $name)" >"$tmp/$name.control"
  ! grep -q -e ' \./usr/local' -e "$PURLIN_SOURCE" "$tmp/$name.files" || fail "$name holds files of another prefix"
  expect_contains "$tmp/$name.files" "./usr/share/doc/$name/copyright" "./usr/share/doc/$name/changelog.Debian.gz"
done
expect_contains "$tmp/purlin.files" ./usr/bin/purlin ./usr/share/purlin/kernels/gemm/gemm.toml \
  ./usr/lib/purlin/libpurlin_opencl.so ./usr/lib/purlin/python/sitecustomize.py ./usr/libexec/purlin/purlin-sample \
  ./usr/share/purlin/python/purlin/py.typed ./usr/share/man/man1/purlin.1.gz ./usr/share/man/man1/purlin-cache-ls.1.gz \
  ./usr/share/bash-completion/completions/purlin ./usr/share/zsh/vendor-completions/_purlin \
  ./usr/share/fish/vendor_completions.d/purlin.fish
expect_contains "$tmp/libpurlin0.files" libpurlin.so.0
expect_contains "$tmp/libpurlin-dev.files" ./usr/include/purlin/purlin.h ./usr/include/purlin/purlin.hpp \
  PurlinConfig.cmake pkgconfig/purlin.pc "libpurlin.so -> libpurlin.so.0"
# No file is in two packages.
cat "$tmp"/*.files | awk '!/\/$/ {print $6}' | sort | uniq -d >"$tmp/twice"
[ ! -s "$tmp/twice" ] || { cat "$tmp/twice" >&2; fail "files in two packages"; }
expect_contains "$tmp/purlin.control" "Package: purlin" "Depends: " "libc6" "Recommends: libpurlin0" "libcurl4"
expect_contains "$tmp/libpurlin-dev.control" "Depends: libpurlin0 (= "
! grep -h '^Depends:' "$tmp"/*.control | grep -q -e cuda -e opencl || fail "a driver became a hard dependency"

# Lintian's errors and warnings. A build of the tests is not a release: its links are not those of a package.
if command -v lintian >/dev/null; then
  as=()
  [ "$(id -u)" -ne 0 ] || as=(--allow-root)
  quiet=pkg-config-unavailable-for-cross-compilation,embedded-library,hardening-no-fortify-functions,hardening-no-bindnow,unstripped-binary-or-object
  [ "$(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$PURLIN_BUILD/CMakeCache.txt")" != Release ] || quiet=
  lintian "${as[@]}" --fail-on error,warning ${quiet:+--suppress-tags "$quiet"} "$tmp"/deb/*.deb >"$tmp/out" 2>&1 ||
    { cat "$tmp/out" >&2; fail "lintian"; }
fi

# Unpacked anywhere, it runs.
dpkg-deb -x "$(package purlin)" "$tmp/root"
expect_exit 0 "$tmp/root/usr/bin/purlin" --version

if command -v rpmbuild >/dev/null; then
  (cd "$PURLIN_BUILD" && cpack -G RPM -B "$tmp/rpm") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "cpack -G RPM"; }
  for name in purlin purlin-libs purlin-devel; do
    found=$(echo "$tmp"/rpm/$name-[0-9]*.rpm)
    [ -f "$found" ] || fail "no package $name"
    rpm -qp --nosignature --list "$found" >"$tmp/$name.list"
    rpm -qp --nosignature --requires "$found" >"$tmp/$name.requires"
  done
  expect_contains "$tmp/purlin.list" /usr/bin/purlin /usr/lib/purlin/libpurlin_opencl.so /usr/share/man/man1/purlin.1.gz
  expect_contains "$tmp/purlin-libs.list" libpurlin.so.0
  expect_contains "$tmp/purlin-devel.list" /usr/include/purlin/purlin.h
  expect_contains "$tmp/purlin-devel.requires" "purlin-libs = "
  ! grep -x -e /usr/bin -e /usr/share/man/man1 -e /usr/include "$tmp"/*.list || fail "a package owns a folder of the system"
  ! cat "$tmp"/*.requires | grep -q -i -e cuda -e opencl || fail "a driver became a hard dependency"
fi
echo "$(cd "$tmp/deb" && ls *.deb | tr '\n' ' '): $(cat "$tmp"/*.files | wc -l) files"
