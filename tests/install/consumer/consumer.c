/* SPDX-License-Identifier: Apache-2.0 */
/* consumer M N K: prints the outcome and the options of the gemm config for an OpenCL device. */
#include <purlin/purlin.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const char* dimensions[] = {"M", "N", "K"};
  int64_t extents[3];
  purlin_cache* cache = NULL;
  purlin_op* op = NULL;
  const purlin_entry* entry = NULL;
  purlin_device device = PURLIN_DEVICE_INIT;
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  purlin_dispatcher* dispatcher = NULL;
  purlin_dispatcher_desc dispatch = PURLIN_DISPATCHER_DESC_INIT;
  purlin_launch launch = PURLIN_LAUNCH_INIT;
  purlin_outcome outcome;
  int i;
  if (argc != 4 || purlin_abi_version() < PURLIN_ABI_VERSION) return 2;
  for (i = 0; i < 3; ++i) extents[i] = strtoll(argv[i + 1], NULL, 10);
  desc.op = "gemm";
  desc.dimensions = dimensions;
  desc.dimension_count = 3;
  desc.device = &device;
  if (purlin_cache_open(NULL, &cache) != PURLIN_OK ||
      purlin_cache_device(cache, "opencl:0", &device) != PURLIN_OK ||
      purlin_op_open(cache, &desc, &op) != PURLIN_OK) {
    fprintf(stderr, "consumer: %s\n", purlin_last_error());
    return 2;
  }
  outcome = purlin_lookup(op, extents, 3, &entry);
  printf("%s %s\n", purlin_outcome_name(outcome), purlin_entry_options(entry));
  /* What is wrong is said, and nothing is launched. */
  dispatch.spec_text = "schema = 'purlin.spec/1'";
  dispatch.backend = "opencl";
  if (purlin_dispatcher_open(cache, &dispatch, &dispatcher) != PURLIN_INVALID ||
      dispatcher != NULL || purlin_dispatch(dispatcher, &launch) != PURLIN_INVALID ||
      purlin_last_error()[0] == '\0')
    return 2;
  purlin_dispatcher_close(dispatcher);
  if (purlin_cache_flush(cache) != PURLIN_OK) return 2;
  purlin_op_close(op);
  purlin_cache_close(cache);
  return 0;
}
