#!/usr/bin/env bash
# The Python package over the built library; Triton and PyTorch are fakes here (tests/gpu/triton_gpu.sh has
# the real ones).
# timeout: 300
source "$(dirname "$0")/lib.sh"
library=${PURLIN_BUILD:-}/lib/libpurlin.so
[ -e "$library" ] || fail "no $library"
for test in test_purlin test_space test_launch; do
  PURLIN_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 PURLIN_CACHE=$tmp/cache \
    expect_exit 0 python3 "$PURLIN_SOURCE/python/tests/$test.py"
  expect_contains "$tmp/err" OK
done
expect_exit 0 python3 "$PURLIN_SOURCE/python/tests/test_types.py"
# purlin.torch, where cublasLt.h was at hand to build the fake library against.
fake=${PURLIN_BUILD:-}/tests/fake_cublaslt/libcublasLt.so.13
if [ -e "$fake" ]; then
  FAKE_CUBLASLT=$fake PURLIN_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 PURLIN_CACHE=$tmp/cache \
    expect_exit 0 python3 "$PURLIN_SOURCE/python/tests/test_torch.py"
  expect_contains "$tmp/err" OK
fi
# Installed beside its command, the library is found without being named.
mkdir -p "$tmp/root/bin" "$tmp/root/lib"
cp "$PURLIN" "$tmp/root/bin/purlin" && cp -L "$library" "$tmp/root/lib/libpurlin.so"
PURLIN=$tmp/root/bin/purlin PYTHONPATH=$PURLIN_SOURCE/python PYTHONDONTWRITEBYTECODE=1 expect_exit 0 python3 -c '
import purlin
print(purlin.Cache().directory)
print(purlin.run("doctor")["schema"])'
expect_contains "$tmp/out" "$tmp/cache" purlin.doctor
echo 'python: all checks passed'
