#!/usr/bin/env bash
# make_bundle.sh BUILD_DIR OUT_DIR: a relocatable tar of an installed Purlin.
#
# The binary and the libraries carry libstdc++ and zlib inside (PURLIN_STATIC_RUNTIME), so that a bare
# Debian 12 or Ubuntu 22.04 has all the rest; anything else a file still needs is copied into lib/.
set -euo pipefail
build=$1 out=$2
arch=$(uname -m)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=purlin-$version-linux-$arch
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/$name
DESTDIR= cmake --install "$build" --prefix "$tree" --strip >/dev/null

# The GPU tests travel along: scripts, and the test programs of the rooms that touch a device.
mkdir -p "$tree/libexec/purlin/tests"
cp -r tests/gpu/. "$tree/libexec/purlin/tests/" 2>/dev/null || true
for program in gpu_test measure_test; do
  [ -x "$build/src/${program%_test}/$program" ] && cp "$build/src/${program%_test}/$program" "$tree/libexec/purlin/tests/"
done
mkdir -p "$tree/share/purlin/bench"
cp -r bench/gpu "$tree/share/purlin/bench/" 2>/dev/null || true

# What every supported system has. Whatever else is needed comes along.
base='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt)\.so'
elf_files() { find "$tree" -type f -print0 | xargs -0 file -h | awk -F: '/ELF 64-bit/ {print $1}'; }
for file in $(elf_files); do
  for needed in $(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    [[ $needed =~ $base ]] && continue
    [ -e "$tree/lib/$needed" ] && continue
    path=$(ldd "$file" | awk -v n="$needed" '$1 == n {print $3}')
    [ -n "$path" ] || { echo "bundle: $file needs $needed, which is not on this machine" >&2; exit 2; }
    mkdir -p "$tree/lib"
    cp -L "$path" "$tree/lib/$needed"
  done
done

# glibc 2.35 is Ubuntu 22.04's. A file that wants a newer one would fail there, so it fails here.
for file in $(elf_files); do
  newest=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
  if [ -n "$newest" ] && [ "$(printf '%s\nGLIBC_2.35\n' "$newest" | sort -V | tail -1)" != GLIBC_2.35 ]; then
    echo "bundle: ${file#"$tree"/} needs $newest, newer than Ubuntu 22.04's glibc 2.35" >&2
    exit 2
  fi
done

mkdir -p "$out"
tar -C "$stage" --sort=name --owner=0 --group=0 -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz"
