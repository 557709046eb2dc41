// SPDX-License-Identifier: Apache-2.0
// Execution traces of PyTorch: bytes as they come, and the same as ops over few tensors, so that
// the analysis is reached. What it gives has its bounds.
#include "profile/import/flow/flow.h"
#include "require.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

void try_flow(std::string_view text) {
  const auto flow = purlin::profile::data_flow_of(text);
  if (!flow.is_ok()) return;
  require(flow->steps >= 2 && flow->facts.size() <= 40'000);
  for (const purlin::FlowFact& fact : flow->facts) {
    require(fact.ordinal < fact.count);
    if (fact.kind == purlin::FlowKind::kPartlyRead)
      require(fact.read_share > 0 && fact.read_share < 1);
    if (fact.kind == purlin::FlowKind::kRepeated) require(fact.earlier < fact.count);
  }
}

// Each four bytes are a node: its kind and parent, what it reads, how, what it writes.
std::string as_nodes(std::string_view input) {
  constexpr std::string_view kOps[] = {
      "aten::add(Tensor self, Tensor other) -> Tensor",
      "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
      "aten::copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)",
      "aten::mm(Tensor self, Tensor mat2) -> Tensor",
      "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
      "aten::empty(SymInt[] size) -> Tensor",
      "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
      "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
      "mine::op(Tensor x) -> Tensor",
      "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)"};
  constexpr std::string_view kOthers[] = {"ProfilerStep#1", "torch::autograd::AccumulateGrad",
                                          "autograd::engine::evaluate_function: X", "MyBackward"};
  const auto tensor = [](int storage, int part) {
    return R"([1,)" + std::to_string(storage % 9) + "," + std::to_string(part % 3) + ",16,4,\"" +
           (storage % 7 == 6 ? "cpu" : "cuda:0") + "\"]";
  };
  std::string out = R"({"schema":"1.1.1-chakra.0.0.4","nodes":[)";
  for (int id = 1; input.size() >= 4; ++id) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    const int kind = byte(0), from = byte(1), how = byte(2), to = byte(3);
    input.remove_prefix(4);
    const bool op = kind % 16 < 10;
    const std::string_view schema = op ? kOps[kind % 16] : std::string_view();
    const std::string_view name = op ? schema.substr(0, schema.find('(')) : kOthers[kind % 16 % 4];
    const std::string shape = how % 2 == 0 ? "[4,4]" : "[4,2]";
    const std::string stride = how % 5 == 0 ? "[0,1]" : how % 3 == 0 ? "[1,4]" : "[4,1]";
    if (id > 1) out += ",";
    out += R"({"id":)" + std::to_string(id) + R"(,"ctrl_deps":)" +
           std::to_string(kind < 128 ? 0 : id - 1 - kind % 4) + R"(,"name":")" + std::string(name) +
           R"(","inputs":{"values":[)" + tensor(from, how) + "," + tensor(from / 9, how / 3) +
           R"(],"shapes":[)" + shape + "," + shape + R"(],"strides":[)" + stride + "," + stride +
           R"(],"types":["Tensor","Tensor"]
  },"outputs":{"values":[)" +
           tensor(to, how / 9) + R"(],"shapes":[[4,4]],"strides":[[4,1]],"types":["Tensor"]},)" +
           R"("attrs":[{"name":"op_schema","value":")" + std::string(schema) +
           R"("},{"name":"tid","value":)" + std::to_string(to % 11 == 0 ? 2 : 1) +
           R"(},{"name":"scope","value":)" + std::to_string(op ? 0 : how % 8) +
           R"(},{"name":"seq_id","value":)" + std::to_string(how % 6 - 1) + "}]}";
  }
  return out + "]}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_flow(input);
  try_flow(as_nodes(input.substr(0, 800)));
  return 0;
}
