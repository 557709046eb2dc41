#!/usr/bin/env bash
# first_report.sh ROOT DIST: the time from nothing to a first report, for each way to install.
#
# ROOT is a clean Debian root (debootstrap) with python3-venv and an OpenCL driver (pocl-opencl-icd) and nothing of
# Purlin. DIST has what ./dev bundle, wheel and deb made. Each way gets its own layer over ROOT, without a network:
# what it writes is gone afterwards. Needs root, for mounts. Record: bench/results/first_report.md
set -euo pipefail
root=$(realpath "${1:?a clean root}") dist=$(realpath "${2:?the folder of packages}")
here=$(realpath "$0")
if [ "${3:-}" != inside ]; then
  exec unshare --mount --net "$here" "$root" "$dist" inside
fi
scratch=$(mktemp -d)
trap 'umount "$scratch" && rmdir "$scratch"' EXIT
mount -t tmpfs tmpfs "$scratch"

# measure NAME PACKAGE COMMANDS: runs the commands in a fresh layer; prints the seconds and the first row of the report.
measure() {
  local name=$1 package=$2 commands=$3 layer=$scratch/$1
  mkdir -p "$layer"/{up,work,root}
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$layer/up,workdir=$layer/work" "$layer/root"
  mount -t proc proc "$layer/root/proc"
  mount --bind /sys "$layer/root/sys"  # PoCL reads the processor there
  mount -t tmpfs tmpfs "$layer/root/tmp"
  cp $package "$layer/root/tmp/"
  local begin end code=0
  begin=$(date +%s.%N)
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$layer/root" sh -euc "cd /tmp; $commands" \
    >"$scratch/$name.log" 2>&1 || code=$?
  end=$(date +%s.%N)
  printf '%-8s exit %d  %.1f s  ' "$name" "$code" "$(awk "BEGIN {print $end - $begin}")"
  grep -m1 -E '^ *1 |[0-9]+(\.[0-9]+)? ?%' "$scratch/$name.log" || tail -3 "$scratch/$name.log"
  umount "$layer/root/tmp" "$layer/root/sys" "$layer/root/proc" "$layer/root"
}
# The sample needs a kernel: the smallest, a few steps.
profile='purlin profile -o run.plprof --'
work='share/purlin/kernels/transpose/transpose.toml --preset small --steps 10'

measure bundle "$dist/purlin-*-linux-x86_64.tar.gz" "
  tar xf purlin-*.tar.gz
  export PATH=\$PATH:\$(echo /tmp/purlin-*/bin)
  purlin doctor >doctor.txt
  $profile /tmp/purlin-*/libexec/purlin/purlin-sample /tmp/purlin-*/$work"
measure wheel "$dist/purlin-*.whl" "
  python3 -m venv v
  v/bin/pip install -q --no-index purlin-*.whl
  export PATH=\$PATH:/tmp/v/bin
  purlin doctor >doctor.txt
  tree=\$(dirname \$(dirname \$(v/bin/python -c 'import purlin; print(purlin.command())')))
  $profile \$tree/libexec/purlin/purlin-sample \$tree/$work"
if ls "$dist"/purlin_*.deb >/dev/null 2>&1; then
  measure deb "$dist/*purlin*.deb" "
    dpkg -i *.deb
    purlin doctor >doctor.txt
    $profile /usr/libexec/purlin/purlin-sample /usr/$work"
fi
