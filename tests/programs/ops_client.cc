// SPDX-License-Identifier: Apache-2.0
// A program on the fake CUPTI that names what it does with NVTX, as PyTorch's emit_nvtx would, and
// asks the fake cuBLAS for products.
//
//   ops_client MODE N     N rounds of
//     step       a numbered range, in it a linear layer (aten::linear, aten::addmm: 1 launch) and a
//                range of a person's (1 launch); then 1 launch outside all; a copy
//     domains    the same ops in a domain of their own, with registered and wide names
//     nccl       ranges of NCCL's domain only, 1 launch in each
//     gemm       products asked of cuBLAS and cuBLASLt, without NVTX
//     both       a product inside aten::mm
//     graph      a graph of 3 nodes inside a range
//     threads    step, on 8 threads
//     loaded     gemm, with cuBLAS opened after the first launches
//     mistaken   a product asked of cuBLASLt without descriptors, by mistake
// Prints how deep it was in ranges at the end (0).
#include "injection.h"

#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <cublas_api.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" void fake_launch(const char* name, int launches, std::uint64_t duration_ns);
extern "C" void fake_copy(std::uint64_t bytes);
extern "C" void fake_graph_launch(const char* node, int nodes, std::uint64_t duration_ns);
extern "C" int fake_enabled(CUpti_ActivityKind kind);

namespace {

constexpr std::uint64_t kDuration = 5000;

void wait_for(CUpti_ActivityKind kind) {
  for (int i = 0; i < 10'000 && fake_enabled(kind) == 0; ++i) usleep(1000);
}

void step(int i) {
  nvtxRangePushA(("step " + std::to_string(i)).c_str());
  const std::string linear = "aten::linear, seq = " + std::to_string(i) +
                             ", op_id = " + std::to_string(2 * i) +
                             ", sizes = [[8, 64], [128, 64], [128]], input_op_ids = [(" +
                             std::to_string(i) + ",0), (0,-1)]";
  nvtxRangePushA(linear.c_str());
  const std::string addmm = "aten::addmm, op_id = " + std::to_string(2 * i + 1) +
                            ", sizes = [[128], [8, 64], [64, 128], [], []]";
  nvtxRangePushA(addmm.c_str());
  fake_launch("product", 1, kDuration);
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangePushA("own softmax");
  fake_launch("softmax", 1, kDuration);
  nvtxRangePop();
  nvtxRangePop();
  fake_launch("outside", 1, kDuration);
  fake_copy(4096);
}

void domains(nvtxDomainHandle_t domain, nvtxStringHandle_t registered) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = registered;
  nvtxDomainRangePushEx(domain, &event);
  fake_launch("of_a_registered_name", 1, kDuration);
  nvtxRangePushW(L"aten::mm, op_id = 4, sizes = [[4, 2], [2, 3]]");
  fake_launch("of_a_wide_name", 1, kDuration);
  nvtxDomainRangePop(domain);  // not nested
  fake_launch("of_a_wide_name", 1, kDuration);
  nvtxRangePop();
  nvtxRangeEnd(nvtxRangeStartA("elsewhere"));
  nvtxMarkA("a mark");
}

struct Libraries {
  void *cublas = nullptr, *cublaslt = nullptr;
};

Libraries open_cublas() {
  Libraries libraries;
  libraries.cublaslt = dlopen(PURLIN_FAKE_FOLDER "/libcublasLt.so.13", RTLD_NOW | RTLD_GLOBAL);
  libraries.cublas = dlopen(PURLIN_FAKE_FOLDER "/libcublas.so.13", RTLD_NOW | RTLD_GLOBAL);
  if (libraries.cublas == nullptr) std::exit((std::fprintf(stderr, "%s\n", dlerror()), 9));
  return libraries;
}

// As the fake cuBLASLt has them.
struct Matmul {
  std::int32_t transposed_a, transposed_b, compute;
  std::uint32_t epilogue;
};
struct Layout {
  std::int64_t rows, columns, leading;
  std::int32_t type, order, batch;
};

// Looked up at each call, as by a program that was linked: so that what stands in is found.
#define CALL(library, function) reinterpret_cast<decltype(&(function))>(dlsym((library), #function))
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);

void bf16_product(const Libraries& libraries) {
  reinterpret_cast<GemmEx>(dlsym(libraries.cublas, "cublasGemmEx"))(
      nullptr, CUBLAS_OP_T, CUBLAS_OP_N, 384, 512, 256, nullptr, nullptr, CUDA_R_16BF, 256, nullptr,
      CUDA_R_16BF, 256, nullptr, nullptr, CUDA_R_16BF, 384, CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT);
}

void products(const Libraries& libraries) {
  CALL(libraries.cublas, cublasSgemm_v2)
  (nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 30, 20, 10, nullptr, nullptr, 30, nullptr, 10, nullptr,
   nullptr, 30);
  bf16_product(libraries);
  CALL(libraries.cublas, cublasDgemmStridedBatched)
  (nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 96, 128, 64, nullptr, nullptr, 96, 6144, nullptr, 64, 8192,
   nullptr, nullptr, 96, 12288, 6);
  Matmul matmul = {CUBLAS_OP_T, CUBLAS_OP_N, CUBLAS_COMPUTE_32F, CUBLASLT_EPILOGUE_GELU_BIAS};
  Layout a = {256, 384, 256, CUDA_R_8F_E4M3, CUBLASLT_ORDER_COL, 1};
  Layout b = {256, 512, 256, CUDA_R_8F_E4M3, CUBLASLT_ORDER_COL, 1};
  Layout d = {384, 512, 384, CUDA_R_16BF, CUBLASLT_ORDER_COL, 1};
  const auto layout = [](Layout& of) { return reinterpret_cast<cublasLtMatrixLayout_t>(&of); };
  CALL(libraries.cublaslt, cublasLtMatmul)
  (nullptr, reinterpret_cast<cublasLtMatmulDesc_t>(&matmul), nullptr, nullptr, layout(a), nullptr,
   layout(b), nullptr, nullptr, layout(d), nullptr, layout(d), nullptr, nullptr, 0, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "step";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
  Libraries libraries;
  if (mode == "gemm" || mode == "both" || mode == "mistaken") libraries = open_cublas();
  inject();
  if (mode == "step" || mode == "nccl" || mode == "graph") {
    const nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "ncclAllReduce";
    for (int i = 0; i < rounds; ++i) {
      if (mode == "step") {
        step(i);
      } else if (mode == "graph") {
        nvtxRangePushA("aten::replay");
        fake_graph_launch("node", 3, kDuration);
        nvtxRangePop();
      } else {
        nvtxDomainRangePushEx(nccl, &event);
        fake_launch("all_reduce", 1, kDuration);
        nvtxDomainRangePop(nccl);
      }
    }
  } else if (mode == "auto") {
    nvtxRangePushA("first");
    nvtxRangePop();
    wait_for(CUPTI_ACTIVITY_KIND_RUNTIME);
    for (int i = 0; i < rounds; ++i) step(i);
  } else if (mode == "domains") {
    const nvtxDomainHandle_t domain = nvtxDomainCreateW(L"framework");
    const nvtxStringHandle_t registered =
        nvtxDomainRegisterStringA(domain, "aten::sum, sizes = [[4, 4]]");
    for (int i = 0; i < rounds; ++i) domains(domain, registered);
  } else if (mode == "gemm") {
    for (int i = 0; i < rounds; ++i) products(libraries);
  } else if (mode == "mistaken") {
    for (int i = 0; i < rounds; ++i) CALL(libraries.cublaslt, cublasLtMatmul)
    (nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr, nullptr, nullptr, nullptr, 0, nullptr);
  } else if (mode == "loaded") {
    fake_launch("before", 1, kDuration);
    libraries = open_cublas();
    // The last function that is replaced.
    const auto original = dlsym(libraries.cublaslt, "cublasLtMatmul");
    for (int i = 0; i < 10'000 && dlsym(libraries.cublaslt, "cublasLtMatmul") == original; ++i)
      usleep(1000);
    for (int i = 0; i < rounds; ++i) products(libraries);
  } else if (mode == "both") {
    for (int i = 0; i < rounds; ++i) {
      nvtxRangePushA("aten::mm, op_id = 9, sizes = [[512, 256], [256, 384]]");
      bf16_product(libraries);
      nvtxRangePop();
    }
  } else if (mode == "spans") {  // begun here, ended there
    for (int i = 0; i < rounds; ++i) {
      nvtxEventAttributes_t event = {};
      event.version = NVTX_VERSION;
      event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
      event.messageType = NVTX_MESSAGE_TYPE_ASCII;
      event.message.ascii = "upload";
      const nvtxRangeId_t step_range = nvtxRangeStartA(("step " + std::to_string(i)).c_str());
      const nvtxRangeId_t upload = nvtxRangeStartEx(&event);
      fake_launch("work", 1, kDuration);
      std::thread([=] { nvtxRangeEnd(step_range); }).join();
      nvtxRangeEnd(upload);  // they overlap and do not nest
      nvtxRangeEnd(upload);  // the program's mistake
    }
    (void)nvtxRangeStartW(L"still open");
  } else if (mode == "threads") {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) step(i);
      });
    for (std::thread& thread : threads) thread.join();
  } else {
    return std::fprintf(stderr, "ops_client: no mode '%s'\n", mode.c_str()), 2;
  }
  const int depth = nvtxRangePushA("end");
  nvtxRangePop();
  std::printf("depth %d\n", depth > 0 ? depth : 0);
  return 0;
}
