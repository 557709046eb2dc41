// SPDX-License-Identifier: Apache-2.0
// Writes small execution traces as PyTorch does, for tests.
#pragma once

#include "base/json/json.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace purlin::profile::flow {

struct TensorText {
  int storage = 0;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;
  std::string device = "cuda:0";
};

// Dense, unless strides are given.
inline TensorText tensor(int storage, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> strides = {}, std::int64_t offset = 0) {
  if (strides.empty()) {
    strides.resize(shape.size());
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  }
  return {storage, std::move(shape), std::move(strides), offset, "cuda:0"};
}
inline TensorText on_host(TensorText made) {
  made.device = "cpu";
  return made;
}

class TraceText {
 public:
  // A node of another kind than an op, in which `inside` are the next ones.
  int begin(const std::string& name, int scope = 7, const std::vector<TensorText>& inputs = {}) {
    const int id = node(name, "", inputs, {}, scope);
    stack_.push_back(id);
    return id;
  }
  void end() { stack_.pop_back(); }
  void step() {
    stack_ = {root_};
    begin("ProfilerStep#" + std::to_string(++steps_));
  }
  // `schema` without the name.
  void sequence(int number) { sequence_ = number; }  // of autograd, for the next nodes
  int op(const std::string& name, const std::string& schema, const std::vector<TensorText>& inputs,
         const std::vector<TensorText>& outputs, const std::vector<Json>& literals = {}) {
    return node(name, name + schema, inputs, outputs, 0, literals);
  }
  int begin_op(const std::string& name, const std::string& schema,
               const std::vector<TensorText>& inputs, const std::vector<TensorText>& outputs) {
    stack_.push_back(op(name, schema, inputs, outputs));
    return stack_.back();
  }
  void thread(int number) {
    thread_ = number;
    stack_ = {root_};
  }

  void unary(const std::string& name, const TensorText& from, const TensorText& to) {
    op("aten::" + name, "(Tensor self) -> Tensor", {from}, {to});
  }
  void binary(const std::string& name, const TensorText& a, const TensorText& b,
              const TensorText& to) {
    op("aten::" + name, "(Tensor self, Tensor other) -> Tensor", {a, b}, {to});
  }
  void in_place(const std::string& name, const TensorText& self, const TensorText& other) {
    op("aten::" + name, "(Tensor(a!) self, Tensor other) -> Tensor(a!)", {self, other}, {self});
  }
  void empty(const TensorText& made) { op("aten::empty", "(SymInt[] size) -> Tensor", {}, {made}); }
  void view(const TensorText& from, const TensorText& to) {
    op("aten::view", "(Tensor(a) self, SymInt[] size) -> Tensor(a)", {from}, {to});
  }
  // As .cpu() does; host memory has numbers from 900.
  void to_host(const TensorText& from) {
    const TensorText made = on_host(tensor(900 + ++copies_ % 50, from.shape));
    begin_op("aten::_to_copy", "(Tensor self) -> Tensor", {from}, {made});
    op("aten::empty_strided", "(SymInt[] size, SymInt[] stride) -> Tensor", {}, {made});
    op("aten::copy_", "(Tensor(a!) self, Tensor src) -> Tensor(a!)", {made, from}, {made});
    end();
  }

  std::string text() const {
    Json document = Json::object({{"schema", "1.1.1-chakra.0.0.4"}, {"pid", 1}});
    Json nodes = Json::array();
    for (std::size_t i = nodes_.size(); i-- > 0;) nodes.push(nodes_[i]);  // children come first
    document.set("nodes", std::move(nodes));
    return document.dump();
  }

 private:
  static Json numbers(const std::vector<std::int64_t>& list) { return Json::array_of(list); }

  static Json side(const std::vector<TensorText>& tensors, const std::vector<Json>& literals) {
    Json values = Json::array(), shapes = Json::array(), types = Json::array(),
         strides = Json::array();
    for (const TensorText& each : tensors) {
      std::int64_t elements = 1;
      for (const std::int64_t size : each.shape) elements *= size;
      Json value = Json::array();
      value.push(1000 + each.storage).push(each.storage).push(each.offset);
      value.push(elements).push(4).push(each.device);
      values.push(std::move(value));
      shapes.push(numbers(each.shape));
      strides.push(numbers(each.strides));
      types.push("Tensor(float)");
    }
    for (const Json& literal : literals) {
      values.push(literal);
      shapes.push(Json::array());
      strides.push(Json::array());
      types.push("Int");
    }
    return Json::object({{"values", std::move(values)},
                         {"shapes", std::move(shapes)},
                         {"types", std::move(types)},
                         {"strides", std::move(strides)}});
  }

  int node(const std::string& name, const std::string& schema,
           const std::vector<TensorText>& inputs, const std::vector<TensorText>& outputs, int scope,
           const std::vector<Json>& literals = {}) {
    const int id = ++last_;
    const auto attribute = [](const char* key, Json value) {
      return Json::object({{"name", key}, {"value", std::move(value)}});
    };
    nodes_.push_back(
        Json::object({{"id", id},
                      {"name", name},
                      {"ctrl_deps", stack_.empty() ? root_ : stack_.back()},
                      {"inputs", side(inputs, literals)},
                      {"outputs", side(outputs, {})},
                      {"attrs", Json::array({attribute("tid", thread_), attribute("scope", scope),
                                             attribute("seq_id", sequence_), attribute("fw_tid", 1),
                                             attribute("op_schema", schema)})}}));
    return id;
  }

  std::vector<Json> nodes_;
  std::vector<int> stack_;
  int last_ = 0, steps_ = 0, thread_ = 1, copies_ = 0, sequence_ = -1;
  static constexpr int root_ = 0;
};

}  // namespace purlin::profile::flow
