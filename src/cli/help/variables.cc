// SPDX-License-Identifier: Apache-2.0
#include "cli/help/variables.h"

namespace purlin::cli {
namespace {

VariableGroup files_and_libraries() {
  return {"Files and libraries",
          "Each names a place that Purlin would otherwise look for.",
          {{"PURLIN_CUBLASLT", "File or folder of libcublasLt"},
           {"PURLIN_CUPTI", "File or folder of libcupti"},
           {"PURLIN_KERNELS", "Folder of the sample kernels"},
           {"PURLIN_LIBRARY", "libpurlin.so for the Python package"},
           {"PURLIN_NVCC", "nvcc for kernel specs that name it as compiler"},
           {"PURLIN_NVRTC", "File or folder of libnvrtc"},
           {"PURLIN_STATE",
            "Folder of the records of earlier runs (default: $XDG_STATE_HOME/purlin or "
            "~/.local/state/purlin)"}}};
}

VariableGroup server_and_teams() {
  return {"Servers and teams",
          "",
          {{"PURLIN_CACHE_QUOTA", "Maximum size of the file of a cache: 64M, 2GiB"},
           {"PURLIN_CLICKHOUSE_PASSWORD", "Password of the user of a ClickHouse store", true},
           {"PURLIN_SERVER_CA", "File of certificates that clients of a Purlin server trust"},
           {"PURLIN_SERVER", "The only server that may receive the token"},
           {"PURLIN_SERVER_TOKEN", "Token for a Purlin server", true},
           {"PURLIN_SERVER_TOKEN_FILE", "File that holds the token"},
           {"PURLIN_STORE", "Store of the verbs of purlin store: a folder or an address"},
           {"PURLIN_USER", "Person who approves a baseline (default: the account)"}}};
}

VariableGroup runtime() {
  return {"Programs with libpurlin.so",
          "The library reads them when a program opens the cache. It also reads PURLIN_CACHE, "
          "PURLIN_CACHE_LAYERS and, at each put, PURLIN_CACHE_QUOTA.",
          {{"PURLIN_DISABLE", "1: every lookup misses, and defaults are served"},
           {"PURLIN_LOG", "debug, info, warning, error or off; with :FILE appended to the file"},
           {"PURLIN_RECORD", "0: nothing is counted into the work list"},
           {"PURLIN_REVALIDATE", "serve or refuse: entries of another driver or toolkit"},
           {"PURLIN_SHADOW", "Shadow one launch in N of every dispatcher; 0: none"}}};
}

VariableGroup capture() {
  return {"Programs under a profile",
          "`purlin profile` sets most of them from its options. Where the libraries are injected "
          "without it, set them yourself.",
          {{"PURLIN_ANONYMOUS", "1: no host, user, job, container and pod (--anonymous)"},
           {"PURLIN_BUDGET", "Share of the program's time that recording may take (--budget)"},
           {"PURLIN_CONTEXT_WAIT_MS", "Wait for the first CUDA context before CUPTI starts"},
           {"PURLIN_COPIES", "Copies and fills: auto, on or off (--copies)"},
           {"PURLIN_COUNTERS", "Hardware counters: topics or names (--counters)"},
           {"PURLIN_COUNTERS_KERNEL", "Expression for the kernels that get counters"},
           {"PURLIN_COUNTERS_NEVER", "Expression for kernels that must never be replayed"},
           {"PURLIN_COUNTERS_REPLAYS", "Replays of a kernel for its counters, at most"},
           {"PURLIN_CUPTI_GRACE_MS", "Wait for another CUPTI client to appear"},
           {"PURLIN_FULL", "1: every launch with its times (--full)"},
           {"PURLIN_GEMM_SHAPES", "1: shapes of matrix products of the libraries"},
           {"PURLIN_IDLE", "1: nothing is recorded until requested (--idle)"},
           {"PURLIN_JAX", "on or off: reading the programs that XLA compiled; Purlin sets it"},
           {"PURLIN_JAX_SECONDS", "Seconds that reading them may take, about: 0.3"},
           {"PURLIN_LASTING_LAUNCH_NS", "Lasting overhead of a recorded launch, in nanoseconds"},
           {"PURLIN_OPS", "Operator names of launches: auto, on or off (--ops)"},
           {"PURLIN_PROGRAM", "Name of the program in the records of earlier runs"},
           {"PURLIN_RUN_ID", "Name of the run, equal on all ranks of a job"},
           {"PURLIN_SAMPLE", "Processes to record: auto, or N for one in N (--sample)"},
           {"PURLIN_SEAL_PERIOD_MS", "Period after which a part of the spool file is sealed"},
           {"PURLIN_SPOOL", "Folder of the spool files; it must exist"},
           {"PURLIN_SPOOL_FILE_BYTES", "Size at which a spool file goes on in another one"},
           {"PURLIN_STALLS", "Stall samples: the logarithm of their period in cycles (--stalls)"},
           {"PURLIN_TORCH", "hook, idle or off: traces of PyTorch programs; Purlin sets it"},
           {"PURLIN_TORCH_AFTER", "Seconds from a saved PyTorch trace to the steps after it: 1"},
           {"PURLIN_TORCH_BYTES", "Size of a PyTorch trace, at most: 1073741824"},
           {"PURLIN_TORCH_RANK", "Rank whose process takes the PyTorch trace: 0"},
           {"PURLIN_TORCH_SECONDS", "Length of a PyTorch trace by time: 1"},
           {"PURLIN_TORCH_SETTLE", "Seconds from the first step to the PyTorch trace: 3"},
           {"PURLIN_TORCH_STEPS", "Steps of a PyTorch trace: 10"},
           {"PURLIN_TORCH_WAIT", "Seconds without steps until a PyTorch trace by time begins: 10"},
           {"PURLIN_WAITS", "1: the waits of the host, too"},
           {"PURLIN_WINDOW", "Windows of a fixed length: LENGTH_MS@CELL_MS (--window)"},
           {"PURLIN_WINDOWS", "Windows after the first one: auto, on or off"}}};
}

VariableGroup given_to_commands() {
  return {"Commands that the guard runs",
          "The guard sets them in the environment of a command.",
          {{"PURLIN_COMMIT", "Commit whose state is in the folder of the command"},
           {"PURLIN_SEED", "Seed of the suite"}}};
}

}  // namespace

std::vector<VariableGroup> variable_groups() {
  return {files_and_libraries(), server_and_teams(), runtime(), capture(), given_to_commands()};
}

}  // namespace purlin::cli
