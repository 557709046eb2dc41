// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/remedies.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

using enum Pillar;
using enum Level;

constexpr std::string_view kAny = "api-independent", kCuda = "cuda", kArch = "arch-specific";

constexpr Remedy kRemedies[] = {
    // The host sets the pace.
    {"feed_the_device", "Load input ahead of the device", kOverhead, kParallelism, "host", "hours",
     "low", kAny, "application",
     "PyTorch: DataLoader(num_workers=4…16, persistent_workers=True, prefetch_factor=4)|"
     "PyTorch: pin_memory=True and .to(device, non_blocking=True), one batch ahead on its own "
     "stream|"
     "CUDA: read and copy the next batch on another thread and stream, from pinned memory|"
     "OpenCL: read the next input on another thread; a second command queue for its transfer|"
     "decode once and store the result, or decode on the device",
     ""},
    {"cuda_graphs", "Launch the repeated sequence as a CUDA graph", kOverhead, kParallelism, "host",
     "days", "medium", kCuda, "framework",
     "PyTorch: torch.compile(mode=\"reduce-overhead\"), or torch.cuda.graph around the step|"
     "JAX: one jax.jit around the step; XLA_FLAGS=--xla_gpu_enable_command_buffer names the kinds "
     "of kernels and loops that XLA puts into CUDA graphs|"
     "CUDA: cudaStreamBeginCapture … cudaGraphInstantiate, then cudaGraphLaunch each round; keep "
     "inputs at fixed addresses and copy into them; no allocation, no wait and no copy to the host "
     "inside|"
     "HIP: hipStreamBeginCapture … hipGraphInstantiate, then hipGraphLaunch each round|"
     "OpenCL: a command buffer (cl_khr_command_buffer) if the driver has it: clinfo shows it",
     "measure it: where inputs are copied into the graph's buffers each round, graphs can lose"},
    {"cut_host_work", "Spend less host time per launch", kOverhead, kParallelism, "host", "days",
     "low", kAny, "framework",
     "PyTorch: torch.compile, foreach or fused optimizers, fewer and larger ops, a larger batch|"
     "PyTorch: move Python work, logging and .item() out of the step|"
     "JAX: several steps in one call, by jax.lax.scan or jax.lax.fori_loop|"
     "OpenCL: set arguments once, not before each launch; enqueue ahead and flush once|"
     "launch from one thread ahead of the device; fewer and larger launches",
     ""},
    {"slow_op", "Avoid the operator that takes milliseconds on the host", kOverhead, kParallelism,
     "host", "hours", "low", kAny, "framework",
     "see what it does on the host (py-spy, perf): compiling, planning or searching for each new "
     "shape is avoided by constant shapes|"
     "move it out of the step, or select another backend of the operator",
     ""},
    {"remove_stalls", "Take the long host stalls out of the loop", kOverhead, kParallelism, "host",
     "hours", "low", kAny, "application",
     "do it once, before the loop, or on another thread: allocating memory, compiling, logging, "
     "saving|OpenCL: clBuildProgram once, or clCreateProgramWithBinary with a stored binary|"
     "PyTorch: reuse pinned buffers instead of .pin_memory() in the loop",
     ""},
    {"remove_syncs", "Let the host run ahead instead of waiting", kOverhead, kParallelism, "host",
     "hours", "low", kAny, "application",
     "PyTorch: no .item(), .cpu(), print(tensor) or torch.cuda.synchronize() in the step; "
     "torch.cuda.set_sync_debug_mode(\"warn\") names the lines|"
     "JAX: block_until_ready() once for many steps, or jax.lax.fori_loop over several steps|"
     "CUDA: cudaMemcpyAsync with pinned memory and events instead of cudaDeviceSynchronize|"
     "HIP: hipMemcpyAsync with pinned memory and events instead of hipDeviceSynchronize|"
     "OpenCL: non-blocking reads and maps with events instead of clFinish or CL_TRUE",
     "a wait may be a real dependency: code that reads the result must still wait for it"},
    {"overlap_copies", "Overlap copies with computation", kOverhead, kParallelism, "host", "hours",
     "low", kAny, "application",
     "PyTorch: pin_memory=True, .to(device, non_blocking=True) for the next batch on a side "
     "stream|CUDA: cudaMemcpyAsync from pinned memory on a second stream, in chunks, with events|"
     "HIP: hipMemcpyAsync from pinned memory on a second stream, with events|"
     "OpenCL: a second command queue for transfers, non-blocking, with events between the queues",
     ""},
    {"remove_fills", "Fill no memory that is overwritten", kMemoryEfficiency, kMemory, "memory",
     "hours", "low", kAny, "application",
     "PyTorch: torch.empty instead of torch.zeros where each element is written; "
     "zero_grad(set_to_none=True)|"
     "CUDA: no cudaMemset before a kernel that writes all of it; fill within the kernel that needs "
     "it",
     "what relied on zeros reads what was there before: run compute-sanitizer --tool initcheck"},
    {"pin_memory", "Copy from pinned memory", kMemoryEfficiency, kMemory, "host", "hours", "low",
     kAny, "application",
     "PyTorch: DataLoader(pin_memory=True) and .to(device, non_blocking=True); results: "
     "buffer.copy_(y, non_blocking=True) into one pinned buffer instead of y.cpu()|"
     "CUDA: cudaMallocHost or cudaHostRegister for the host's buffers|"
     "HIP: hipHostMalloc for the host's buffers|"
     "OpenCL: a CL_MEM_ALLOC_HOST_PTR buffer that stays mapped is the host's side of the copies",
     "pinned memory is taken from the host: do not pin all of it"},
    {"map_buffers", "Map buffers instead of copying them", kMemoryEfficiency, kMemory, "host",
     "hours", "low", "opencl", "application",
     "OpenCL: clEnqueueMapBuffer and clEnqueueUnmapMemObject in place of reads and writes|"
     "OpenCL: CL_MEM_USE_HOST_PTR over the program's array, or CL_MEM_ALLOC_HOST_PTR; align to "
     "4096 bytes",
     "the host may touch a buffer only while it is mapped"},
    {"overlap_communication", "Overlap communication with computation", kOverhead, kParallelism,
     "host", "days", "low", kAny, "framework",
     "PyTorch: DDP with larger gradient buckets (bucket_cap_mb) and static_graph=True, FSDP with "
     "prefetch|communication on a separate stream, with a higher priority than the computation",
     ""},
    // Memory.
    {"coalesce", "Coalesce the accesses to global memory", kMemoryEfficiency, kMemory, "memory",
     "days", "low", kAny, "kernel",
     "neighbouring threads read neighbouring addresses; transpose through shared memory|"
     "structure of arrays instead of array of structures|"
     "CUDA: check with ncu --section MemoryWorkloadAnalysis_Tables, sectors per request",
     ""},
    {"reuse_data", "Move each byte once: tile and reuse", kArithmeticIntensity, kMemory, "memory",
     "weeks", "low", kAny, "kernel",
     "tile through shared memory or registers so that the L2 and DRAM see each input once|"
     "check: compare dram__bytes with the bytes the problem needs (purlin report --kernel)",
     ""},
    {"stream_wider", "Raise the memory bandwidth of the kernel", kMemoryEfficiency, kMemory,
     "memory", "days", "low", kAny, "kernel",
     "GPU: 16-byte loads and stores (float4), several in flight per thread|"
     "OpenCL: vload4 and vstore4 on contiguous elements; a work-group size for each kernel|"
     "contiguous inputs select the vectorised variant of the kernel|"
     "purlin tune on a spec of the kernel, over block size and vector width",
     ""},
    {"more_loads_in_flight", "Keep more loads in flight", kMemoryEfficiency, kMemory, "memory",
     "days", "low", kAny, "kernel",
     "unroll so that independent loads come before their use; prefetch into registers|"
     "CUDA: asynchronous copies to shared memory (cp.async, TMA), two or more stages|"
     "OpenCL: async_work_group_copy into local memory, two buffers",
     ""},
    // Computation.
    {"tensor_cores", "Use the tensor cores", kArithmeticIntensity, kCompute, "compute", "hours",
     "high", kArch, "framework",
     "PyTorch: torch.set_float32_matmul_precision(\"high\") for TF32|"
     "PyTorch: torch.autocast with bfloat16|"
     "PyTorch: with float16, FP32 master weights and loss scaling (torch.amp.GradScaler)|"
     "cuBLASLt: CUBLAS_COMPUTE_32F_FAST_TF32|"
     "cuBLASLt: extents that are multiples of 16",
     "numerics: compare loss curves or a tolerance; float16 holds 6e-8 to 65504, bfloat16 has "
     "float32's range and 8 bits of precision"},
    {"tune_kernel", "Tune the kernel or take another implementation", kOccupancy, kTuning,
     "compute", "days", "low", kAny, "kernel",
     "purlin tune SPEC over tile, stages and warps at this shape; purlin init writes the SPEC of "
     "an "
     "own kernel, purlin backlog --profile queues it with the shapes of this profile|"
     "CUDA: another backend, such as cuBLASLt, CUTLASS, Triton or a newer cuDNN|"
     "OpenCL: CLBlast, tuned for this device",
     ""},
    {"more_instruction_parallelism", "Give each warp more independent instructions", kOccupancy,
     kCompute, "compute", "days", "low", kAny, "kernel",
     "unroll and keep several accumulators; more work per thread|"
     "fewer dependent integer and conversion instructions in the loop",
     ""},
    {"unify_branches", "Let the threads of a warp take one branch", kOccupancy, kCompute, "compute",
     "days", "low", kAny, "kernel",
     "sort or bin the work so that a warp's threads agree; branch per warp, not per thread|"
     "short branches become predicated instructions, expensive ones are worth keeping",
     ""},
    {"fewer_barriers", "Wait at fewer barriers", kOccupancy, kParallelism, "compute", "days",
     "medium", kAny, "kernel",
     "one barrier per stage with double buffering|"
     "CUDA: warp shuffles instead of shared memory; __syncwarp where a warp is enough|"
     "OpenCL: sub-groups (cl_khr_subgroups): sub_group_reduce_add and shuffles instead of local "
     "memory|smaller blocks, so that fewer warps wait for the slowest",
     "races: on CUDA, run compute-sanitizer --tool racecheck"},
    {"shared_memory_conflicts", "Reduce the load on shared memory", kMemoryEfficiency, kMemory,
     "memory", "days", "low", kCuda, "kernel",
     "pad or swizzle the tile against bank conflicts; wider shared loads|"
     "keep reused values in registers|CUDA: ldmatrix for operands of tensor cores|"
     "OpenCL: sub-group shuffles instead of local memory",
     ""},
    {"smaller_code", "Fit the loop into the instruction cache", kOccupancy, kTuning, "compute",
     "days", "low", kAny, "kernel",
     "unroll less; keep rare paths out of line|launch more work per block, so that the first "
     "misses "
     "count less",
     ""},
    // Latency.
    {"raise_occupancy", "Fit more warps on an SM", kOccupancy, kParallelism, "latency", "days",
     "low", kAny, "kernel",
     "smaller tiles: fewer registers, or less shared memory per block|"
     "CUDA: __launch_bounds__ limits the registers|"
     "OpenCL: reqd_work_group_size states the work-group, so that the compiler can plan for it|"
     "purlin tune over block size and registers",
     "spills: more warps with local-memory traffic may be slower"},
};

}  // namespace

std::string_view to_text(Pillar pillar) {
  switch (pillar) {
    case Pillar::kArithmeticIntensity:
      return "arithmetic_intensity";
    case Pillar::kOccupancy:
      return "occupancy";
    case Pillar::kMemoryEfficiency:
      return "memory_efficiency";
    case Pillar::kOverhead:
      return "overhead";
  }
  return "";
}

std::string_view to_text(Level level) {
  switch (level) {
    case Level::kAlgorithm:
      return "algorithm";
    case Level::kMemory:
      return "memory";
    case Level::kCompute:
      return "compute";
    case Level::kParallelism:
      return "parallelism";
    case Level::kTuning:
      return "tuning";
  }
  return "";
}

std::span<const Remedy> remedies() { return kRemedies; }

Intervention from_remedy(const Remedy& remedy) {
  Intervention out;
  out.id = remedy.id;
  out.title = remedy.title;
  out.pillar = remedy.pillar;
  out.level = remedy.level;
  out.regime = remedy.regime;
  out.effort = remedy.effort;
  out.risk = remedy.risk;
  out.portability = remedy.portability;
  out.expertise = remedy.expertise;
  out.how = split(remedy.how, '|');
  out.guard = remedy.guard;
  return out;
}

namespace {

Intervention in_words_of(Intervention out, const RemedyCase& of) {
  out.title = of.title;
  out.effort = of.effort;
  out.how = split(of.how, '|');
  out.guard = of.guard;
  return out;
}

}  // namespace

Intervention from_remedy(const Remedy& remedy, const RemedyCase& of) {
  return in_words_of(from_remedy(remedy), of);
}

Intervention from_remedy(std::string_view id) {
  for (const Remedy& remedy : kRemedies)
    if (remedy.id == id) return from_remedy(remedy);
  return {};
}

Intervention from_remedy(std::string_view id, const RemedyCase& of) {
  return in_words_of(from_remedy(id), of);
}

}  // namespace purlin::analyze
