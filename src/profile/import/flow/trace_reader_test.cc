// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/trace_reader.h"

#include "base/files.h"
#include "base/gzip.h"
#include "profile/import/flow/execution_trace_for_test.h"
#include "profile/import/flow/flow.h"

#include <gtest/gtest.h>

namespace purlin::profile::flow {
namespace {

Result<ExecutionTrace> read(std::string_view text) {
  Input input = Input::from_bytes(text);
  return read_execution_trace(input);
}

std::string message(std::string_view text) {
  const Result<ExecutionTrace> trace = read(text);
  return trace.is_ok() ? "" : trace.status().message();
}

std::string three_steps() {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    trace.step();
    trace.unary("exp", tensor(1, {4}), tensor(2, {4}));
    trace.to_host(tensor(2, {4}));
  }
  return trace.text();
}

TEST(ExecutionTraceReader, NodesComeInTheOrderOfTheirStart) {
  TraceText text;
  text.begin("outer");
  text.op("aten::add", "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
          {tensor(7, {2, 3}, {0, 1}), tensor(8, {3}, {}, 5)}, {tensor(9, {2, 3})}, {1});
  text.end();
  const Result<ExecutionTrace> trace = read(text.text());
  ASSERT_TRUE(trace.is_ok()) << trace.status().message();
  ASSERT_EQ(trace->nodes.size(), 2u);
  const TraceNode &outer = trace->nodes[0], &add = trace->nodes[1];
  EXPECT_EQ(trace->name(outer), "outer");
  EXPECT_FALSE(outer.is_op());
  EXPECT_EQ(add.parent, 0u);
  ASSERT_TRUE(add.is_op());
  ASSERT_EQ(trace->inputs(add).size(), 2u);
  const TensorUse &expanded = trace->inputs(add)[0], &part = trace->inputs(add)[1];
  EXPECT_EQ(expanded.elements, 3);  // of six
  EXPECT_EQ(part.offset, 5);
  EXPECT_EQ(part.argument, 1);
  EXPECT_EQ(part.bytes(), 12);
  EXPECT_EQ(trace->outputs(add)[0].elements, 6);
  EXPECT_FALSE(expanded.host);
}

TEST(ExecutionTraceReader, ListsOfTensorsAndMissingOnes) {
  const std::string text =
      R"json({"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 5, "ctrl_deps": 5,
    "name": "aten::cat", "inputs": {"values": [[[1,2,0,4,4,"cuda:0"],[3,4,0,2,4,"cuda:0"]], 0,
      [9,0,0,0,0,""], "<None>"],
     "shapes": [[[4],[2]],[],[],[]], "types": ["GenericList[Tensor(float),Tensor(float)]","Int",
      "Tensor(nullptr (uninitialized))","None"], "strides": [[[1],[1]],[],[],[]]},
    "outputs": {"values": [[5,6,0,6,4,"cpu"]], "shapes": [[6]], "types": ["Tensor(float)"],
     "strides": [[1]]}, "attrs": [{"name": "op_schema", "type": "string",
      "value": "aten::cat(Tensor[] tensors, int dim=0) -> Tensor"}]}]})json";
  const Result<ExecutionTrace> trace = read(text);
  ASSERT_TRUE(trace.is_ok()) << trace.status().message();
  const TraceNode& cat = trace->nodes[0];
  ASSERT_EQ(trace->inputs(cat).size(), 3u);
  EXPECT_EQ(trace->inputs(cat)[1].elements, 2);
  EXPECT_EQ(trace->inputs(cat)[1].argument, 0);
  EXPECT_EQ(trace->inputs(cat)[2].storage, 0u);
  EXPECT_TRUE(trace->outputs(cat)[0].host);
  EXPECT_EQ(cat.parent, 0u);
}

TEST(ExecutionTraceReader, WhatIsNoExecutionTraceSaysSo) {
  for (const char* text : {"", "[]", "{}", "text", R"({"traceEvents": []})", R"({"nodes": []})"})
    EXPECT_NE(message(text).find("no execution trace of PyTorch"), std::string::npos) << text;
  EXPECT_NE(message(R"({"schema": "1.0.3-chakra.0.0.4", "nodes": []})").find("newer PyTorch"),
            std::string::npos);
}

TEST(ExecutionTraceReader, ACutFileSaysWhere) {
  const std::string text = three_steps();
  const std::string cut = text.substr(0, text.size() / 2);
  EXPECT_NE(message(cut).find(std::to_string(cut.size())), std::string::npos) << message(cut);
  const Result<std::string> packed = gzip(text);
  ASSERT_TRUE(packed.is_ok());
  EXPECT_EQ(message(*packed), "");
  EXPECT_NE(message(std::string_view(*packed).substr(0, packed->size() / 2)), "");
}

TEST(ExecutionTraceReader, AnyPrefixAndAnyDamageIsAnErrorOrATrace) {
  const std::string text = three_steps();
  for (std::size_t length = 0; length < text.size(); length += 37)
    EXPECT_FALSE(read(std::string_view(text).substr(0, length)).is_ok()) << length;
  for (std::size_t at = 0; at < text.size(); at += 11) {
    std::string damaged = text;
    damaged[at] = '\x01';
    (void)data_flow_of(damaged);
    damaged[at] = '9';
    (void)data_flow_of(damaged);
  }
}

TEST(ExecutionTraceReader, DepthAndOddValuesAreBounded) {
  const std::string deep(100'000, '[');
  EXPECT_NE(message(R"({"schema": "1.1.1", "nodes": [{"id": 1, "inputs": {"values": [)" + deep),
            "");
  const auto node = [](const std::string& members) {
    return R"({"schema": "1.1.1", "nodes": [{)" + members + "}]}";
  };
  EXPECT_NE(message(node(R"("name": "x")")).find("node 1"), std::string::npos);
  EXPECT_NE(message(node(R"("id": -4)")), "");
  // A parent that is no node, a child of itself, sizes and strides below zero.
  EXPECT_EQ(message(node(R"("id": 4, "ctrl_deps": 99)")), "");
  EXPECT_EQ(message(node(R"("id": 9223372036854775807, "name": 5, "inputs": 7, "attrs": "x")")),
            "");
  const Result<ExecutionTrace> odd = read(node(
      R"("id": 1, "inputs": {"values": [[1, 2, -5, -6, -7, "cuda:0"], [1, 2], 3],)"
      R"( "shapes": [[-1, 9223372036854775807], 4], "types": ["Tensor", "Tensor", "Tensor"]})"));
  ASSERT_TRUE(odd.is_ok()) << odd.status().message();
  ASSERT_EQ(odd->uses.size(), 1u);
  EXPECT_EQ(odd->uses[0].elements, 0);
  EXPECT_EQ(odd->uses[0].storage, 0u);
}

TEST(ExecutionTraceReader, TooFewStepsAreAnErrorThatNamesTheFile) {
  TraceText one;
  one.step();
  one.unary("exp", tensor(1, {4}), tensor(2, {4}));
  const std::string path = ::testing::TempDir() + "/one_step.et.json";
  ASSERT_TRUE(write_atomic(path, one.text()).is_ok());
  const Result<DataFlow> found = read_data_flow(path);
  ASSERT_FALSE(found.is_ok());
  EXPECT_EQ(found.status().message().find(path), 0u);
  EXPECT_NE(found.status().message().find("two whole steps"), std::string::npos);
  EXPECT_EQ(read_data_flow(path + ".none").status().code(), Code::kNotFound);
}

TEST(OpSchema, ArgumentsThatAreWritten) {
  const OpSchema schema = parse_schema(
      "aten::addmm.out(Tensor self, Tensor mat1, *, Scalar beta=1, Tensor(a!) out) -> Tensor(a!)");
  ASSERT_EQ(schema.arguments.size(), 4u);
  EXPECT_FALSE(schema.writes(0));
  EXPECT_TRUE(schema.writes(3));
  EXPECT_TRUE(schema.is_result(3));
  EXPECT_FALSE(schema.generator);
  const OpSchema list = parse_schema(
      "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()");
  EXPECT_TRUE(list.writes(0));
  EXPECT_FALSE(list.is_result(0));
  EXPECT_TRUE(parse_schema("aten::normal_(Tensor(a!) self, float mean=0., *, Generator? generator="
                           "None) -> Tensor(a!)")
                  .generator);
  // A default value with a comma and brackets is one argument.
  EXPECT_EQ(parse_schema("a::b(int[2] pad=[0, 0], (Tensor, Tensor) hx, str s=\"ab\") -> ()")
                .arguments.size(),
            3u);
  EXPECT_TRUE(parse_schema("no schema").arguments.empty());
  EXPECT_TRUE(parse_schema("a::b(").arguments.empty());
}

}  // namespace
}  // namespace purlin::profile::flow
