// SPDX-License-Identifier: Apache-2.0
// Execution traces of a size and shape that no program has. Each takes a second or less, and would
// take minutes if some part of the analysis looked at all nodes for each of them.
#include "profile/import/flow/facts.h"
#include "profile/import/flow/trace_reader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::flow {
namespace {

constexpr std::uint32_t kMany = 100'000;
constexpr std::string_view kAdd = "aten::add(Tensor self, Tensor other) -> Tensor",
                           kAddInPlace = "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                           kCat = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor";

// Ops over tensors of four elements.
class BigTrace {
 public:
  explicit BigTrace(std::initializer_list<std::string_view> schemas) {
    for (const std::string_view schema : schemas) {
      trace_.schemas.push_back(parse_schema(schema));
      trace_.names.emplace_back(schema.substr(0, schema.find('(')));
    }
    trace_.names.emplace_back("ProfilerStep#1");
  }

  // `kind`: of the schemas, from 1 on. `parent`: -1 for the step.
  int op(std::uint32_t kind, const std::vector<std::uint32_t>& inputs, std::uint32_t output,
         int parent = -1, std::uint32_t thread = 0) {
    return node(kind, kind, inputs, output, parent < 0 ? mark_ : parent, thread);
  }
  void step() {
    mark_ = node(static_cast<std::uint32_t>(trace_.names.size()) - 1, 0, {}, 0, -1, 0);
  }

  DataFlow flow() {
    trace_.storages = storages_;
    return find_data_flow(trace_).flow;
  }

 private:
  int node(std::uint32_t name, std::uint32_t schema, const std::vector<std::uint32_t>& inputs,
           std::uint32_t output, int parent, std::uint32_t thread) {
    const int self = static_cast<int>(trace_.nodes.size());
    TraceNode made;
    made.id = static_cast<std::uint64_t>(self) + 1;
    made.parent = static_cast<std::uint32_t>(parent < 0 ? self : parent);
    made.name = name;
    made.schema = schema;
    made.thread = thread;
    made.first_use = static_cast<std::uint32_t>(trace_.uses.size());
    for (const std::uint32_t storage : inputs) use(storage);
    if (output != 0) use(output);
    made.inputs = static_cast<std::uint32_t>(inputs.size());
    made.outputs = output != 0 ? 1 : 0;
    trace_.nodes.push_back(made);
    return self;
  }
  void use(std::uint32_t storage) {
    TensorUse made;
    made.storage = storage;
    made.elements = made.item_bytes = made.last = 4;
    made.first_extent = static_cast<std::uint32_t>(trace_.extents.size());
    made.rank = 1;
    made.dense_rows = true;
    trace_.extents.push_back({4, 1});
    trace_.uses.push_back(made);
    storages_ = std::max(storages_, storage + 1);
  }

  ExecutionTrace trace_;
  std::uint32_t storages_ = 1;
  int mark_ = -1;
};

TEST(FlowScale, NodesInOneAnother) {
  std::string text = R"({"schema":"1.1.1-chakra.0.0.4","nodes":[{"id":1})";
  constexpr int kNodes = 20'000;
  for (int i = 1; i < kNodes; ++i) text += fmt::format(R"(,{{"id":{},"ctrl_deps":{}}})", i + 1, i);
  text += "]}";
  Input input = Input::from_bytes(text);
  const Result<ExecutionTrace> trace = read_execution_trace(input);
  ASSERT_TRUE(trace.is_ok()) << trace.status().message();
  ASSERT_EQ(trace->nodes.size(), kNodes);
  int deepest = 0;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    int depth = 0;
    for (std::uint32_t at = i; trace->nodes[at].parent != at; at = trace->nodes[at].parent) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_EQ(deepest, kMaxNesting - 1);
}

TEST(FlowScale, AnOpOfManyOps) {
  BigTrace big({kAdd});
  for (int step = 0; step < 3; ++step) {
    big.step();
    const int outer = big.op(1, {1, 2}, 3);
    for (std::uint32_t i = 0; i < kMany / 3; ++i) big.op(1, {1, 2}, 10 + i * 7919 % kMany, outer);
  }
  EXPECT_EQ(big.flow().steps, 3u);
}

TEST(FlowScale, AThreadForEachOp) {
  BigTrace big({kAdd});
  for (std::uint32_t step = 0; step < 2; ++step) {
    big.step();
    for (std::uint32_t i = 1; i < kMany / 2; ++i) big.op(1, {1, 2}, 3, -1, 2 * i + step);
  }
  EXPECT_EQ(big.flow().steps, 2u);
}

// The second of two memories repeats what the first one holds.
TEST(FlowScale, AMemoryThatIsChangedManyTimes) {
  BigTrace big({kAdd, kAddInPlace});
  for (int step = 0; step < 2; ++step) {
    big.step();
    for (const std::uint32_t memory : {3u, 4u}) big.op(1, {1, 2}, memory);
    for (std::uint32_t i = 0; i < kMany / 2; ++i) big.op(2, {3 + i % 2, 1}, 3 + i % 2);
  }
  EXPECT_EQ(big.flow().steps, 2u);
}

TEST(FlowScale, AnOpOfManyInputs) {
  BigTrace big({kCat});
  std::vector<std::uint32_t> inputs;
  for (std::uint32_t i = 0; i < kMany; ++i) inputs.push_back(10 + i);
  for (int step = 0; step < 2; ++step) {
    big.step();
    big.op(1, inputs, 3);
  }
  EXPECT_EQ(big.flow().ops, 1u);
}

// Two steps have one op many times, and each of many steps has it once.
TEST(FlowScale, ManyStepsOfOneOp) {
  BigTrace big({kAdd});
  for (int step = 0; step < 2; ++step) {
    big.step();
    for (std::uint32_t i = 0; i < kMany / 4; ++i) big.op(1, {1, 2}, 3);
  }
  for (std::uint32_t i = 0; i < kMany / 4; ++i) {
    big.step();
    big.op(1, {1, 2}, 3);
  }
  EXPECT_GT(big.flow().steps, 2u);
}

}  // namespace
}  // namespace purlin::profile::flow
