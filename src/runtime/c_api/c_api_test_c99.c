/* SPDX-License-Identifier: Apache-2.0 */
/* The headers must be plain C99, and enough to look something up with. */
#include <purlin/purlin.h>
#include <purlin/tuner.h>

int64_t lookup_bm_from_c(const char* directory, int64_t m, purlin_outcome* outcome);

int64_t lookup_bm_from_c(const char* directory, int64_t m, purlin_outcome* outcome) {
  const char* dimensions[] = {"M", "N", "K"};
  const int64_t extents[] = {m, 1024, 512};
  purlin_cache* cache = NULL;
  purlin_op* op = NULL;
  const purlin_entry* entry = NULL;
  purlin_device device = PURLIN_DEVICE_INIT;
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  int64_t bm;
  device.backend = "cuda";
  device.arch = "sm_90";
  desc.op = "gemm";
  desc.dimensions = dimensions;
  desc.dimension_count = 3;
  desc.device = &device;
  purlin_cache_open(directory, &cache);
  purlin_op_open(cache, &desc, &op);
  *outcome = purlin_lookup(op, extents, 3, &entry);
  bm = purlin_entry_int(entry, "BM", 16);
  purlin_cache_close(cache);
  purlin_op_close(op);
  return bm;
}
