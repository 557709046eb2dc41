// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/facts.h"

#include "profile/import/flow/execution_trace_for_test.h"
#include "profile/import/flow/flow.h"

#include <gtest/gtest.h>

#include <functional>

namespace purlin::profile::flow {
namespace {

using Program = std::function<void(TraceText&, int step)>;

DataFlow flow_of_steps(const Program& program, int steps = 3) {
  TraceText trace;
  for (int i = 0; i < steps; ++i) {
    trace.step();
    program(trace, i);
  }
  Result<DataFlow> found = data_flow_of(trace.text());
  EXPECT_TRUE(found.is_ok()) << found.status().message();
  return found.is_ok() ? *found : DataFlow();
}

std::vector<FlowFact> of_kind(const DataFlow& found, FlowKind kind) {
  std::vector<FlowFact> facts;
  for (const FlowFact& fact : found.facts)
    if (fact.kind == kind) facts.push_back(fact);
  return facts;
}

std::string names(const std::vector<FlowFact>& facts) {
  std::string text;
  for (const FlowFact& fact : facts)
    text += (text.empty() ? "" : " ") + fact.op.substr(6) + ":" + std::to_string(fact.ordinal);
  return text;
}

std::string unread(const Program& program, int steps = 3) {
  return names(of_kind(flow_of_steps(program, steps), FlowKind::kUnread));
}
std::string repeated(const Program& program) {
  return names(of_kind(flow_of_steps(program), FlowKind::kRepeated));
}
std::string unchanged(const Program& program) {
  return names(of_kind(flow_of_steps(program), FlowKind::kUnchanged));
}

// Data of the host, so that no step is like the one before.
void input(TraceText& trace, const TensorText& into) {
  trace.empty(into);
  trace.in_place("copy_", into, on_host(tensor(800, into.shape)));
}

const TensorText kX = tensor(1, {8, 16}), kA = tensor(2, {8, 16}), kB = tensor(3, {8, 16}),
                 kC = tensor(4, {8, 16}), kD = tensor(5, {8, 16}), kWeight = tensor(20, {16, 16});

TEST(FlowFacts, AResultThatNobodyReadsIsAFact) {
  const Program program = [](TraceText& trace, int) {
    input(trace, kX);
    trace.unary("exp", kX, kA);
    trace.unary("sin", kX, kB);
    trace.unary("cos", kB, kC);
    trace.to_host(kA);
  };
  const DataFlow found = flow_of_steps(program);
  EXPECT_EQ(names(of_kind(found, FlowKind::kUnread)), "cos:0 sin:0");
  EXPECT_EQ(found.steps, 3u);
  EXPECT_EQ(found.ops, 4u);  // and the copy of the input
  EXPECT_EQ(found.facts[0].count, 1u);
  EXPECT_FALSE(found.same_data);
}

// A loop takes two batches by turns, and each third round has one more op. So the sequence that
// comes again has three rounds, of which two have the same batch: no waste of the program.
TEST(FlowFacts, RoundsOfABenchmarkDoNotRepeatOneAnother) {
  TraceText trace;
  for (int i = 0; i < 24; ++i) {
    const TensorText& batch = i % 2 == 0 ? kX : tensor(40, {8, 16});
    trace.binary("mm", batch, kWeight, kA);
    trace.unary("tanh", kA, kB);
    trace.unary("exp", kB, kC);
    if (i % 3 == 0) trace.unary("floor", kC, kC);
    trace.to_host(kC);
  }
  const Result<DataFlow> found = data_flow_of(trace.text());
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_GT(found->sequence_ops, 12u);
  EXPECT_TRUE(found->same_data);
  EXPECT_EQ(names(of_kind(*found, FlowKind::kRepeated)), "");
}

// As a convolution does with its bias: the product and what is added in place are one result.
TEST(FlowFacts, AChainInPlaceRepeatsAsAWhole) {
  const auto twice = [](bool other_reader, bool differs) {
    return Program([=](TraceText& trace, int) {
      input(trace, kX);
      for (const TensorText& to : {kA, kB}) {
        trace.binary("mm", kX, kWeight, to);
        if (other_reader) trace.unary("sin", to, tensor(60 + to.storage, {8, 16}));
        trace.in_place("add_", to, differs && to.storage == kB.storage ? kC : tensor(21, {8, 16}));
        if (other_reader) trace.to_host(tensor(60 + to.storage, {8, 16}));
      }
      trace.to_host(kA);
      trace.to_host(kB);
    });
  };
  EXPECT_EQ(repeated(twice(false, false)), "add_:1 mm:1");
  EXPECT_EQ(repeated(twice(false, true)), "") << "the product alone cannot be shared";
  EXPECT_EQ(repeated(twice(true, false)), "sin:1") << "another op reads it before the bias";
}

TEST(FlowFacts, AnUnchangedChainIsOneResult) {
  const Program program = [](TraceText& trace, int) {
    input(trace, kX);
    trace.binary("mm", tensor(22, {8, 16}), kWeight, kA);
    trace.in_place("add_", kA, tensor(21, {8, 16}));
    trace.binary("mul", kX, kA, kB);
    trace.to_host(kB);
  };
  EXPECT_EQ(unchanged(program), "add_:0 mm:0");
}

// A product is made twice, both with gradients: one backward pass can take their sum.
TEST(FlowFacts, GradientsOfARepeatedResultGo) {
  const auto train = [](bool detached) {
    return flow_of_steps([=](TraceText& trace, int step) {
      input(trace, kX);
      for (int k = 0; k < 2; ++k) {
        trace.sequence(detached && k == 0 ? -1 : 10 * step + k);
        trace.binary("mm", kX, kWeight, k == 0 ? kA : kB);
        trace.sequence(-1);
      }
      trace.unary("sin", kA, kC);
      trace.unary("cos", kB, kD);
      trace.thread(2);
      for (int k = detached ? 1 : 0; k < 2; ++k) {
        trace.begin("autograd::engine::evaluate_function: MmBackward0");
        trace.sequence(10 * step + k);
        trace.begin("MmBackward0", kBackwardScope);
        trace.sequence(-1);
        trace.binary("mm", k == 0 ? kC : kD, kX, tensor(30 + k, {16, 16}));
        trace.end();
        trace.end();
      }
      trace.thread(1);
      for (int k = detached ? 1 : 0; k < 2; ++k)
        trace.in_place("add_", kWeight, tensor(30 + k, {16, 16}));
    });
  };
  EXPECT_EQ(names(of_kind(train(false), FlowKind::kRepeated)), "mm:1");
  EXPECT_EQ(names(of_kind(train(false), FlowKind::kGradientOfRepeated)), "mm:3");
  EXPECT_EQ(names(of_kind(train(true), FlowKind::kRepeated)), "mm:1");
  EXPECT_EQ(names(of_kind(train(true), FlowKind::kGradientOfRepeated)), "");
}

// A program that marks no steps: a loop after other ops. The steps are the shortest round.
DataFlow flow_of_rounds(int rounds, int layers, bool odd = false) {
  TraceText trace;
  trace.unary("exp", kD, kD);
  trace.unary("log", kD, kD);
  for (int i = 0; i < rounds; ++i) {
    input(trace, kX);
    if (odd && i % 2 == 0) trace.unary("floor", kX, kX);
    for (int layer = 0; layer < layers; ++layer) {
      trace.binary("mm", kX, kWeight, kA);
      trace.unary("tanh", kA, kX);
    }
    trace.unary("sin", kX, kB);
    trace.unary("cos", kB, kC);
    trace.to_host(kX);
  }
  Result<DataFlow> found = data_flow_of(trace.text());
  EXPECT_TRUE(found.is_ok() || found.status().code() == Code::kInvalid);
  return found.is_ok() ? *found : DataFlow();
}

TEST(FlowFacts, StepsWithoutMarksAreWhatComesAgain) {
  for (const int layers : {1, 3, 12}) {
    const DataFlow found = flow_of_rounds(4, layers);
    EXPECT_GE(found.steps, 3u);
    EXPECT_EQ(found.sequence_ops, static_cast<unsigned>(2 + 2 * layers + 2 + 3));
    EXPECT_NE(found.sequence_hash, 0u);
    EXPECT_EQ(names(of_kind(found, FlowKind::kUnread)), "cos:0 sin:0");
  }
  EXPECT_FALSE(flow_of_rounds(2, 3).recorded());
  EXPECT_FALSE(flow_of_rounds(6, 3, true).recorded()) << "three rounds, each of two, do not fit";
  EXPECT_EQ(flow_of_rounds(9, 3, true).sequence_ops, 2u * 13 + 1);
  const Program marked = [](TraceText& trace, int) { input(trace, kX); };
  EXPECT_EQ(flow_of_steps(marked).sequence_ops, 0u);
}

TEST(FlowFacts, AResultIsReadByALaterStep) {
  const Program program = [](TraceText& trace, int) {
    trace.unary("exp", kX, kA);
    trace.unary("sin", kB, kC);  // of the step before
    trace.unary("cos", kA, kB);
    trace.to_host(kC);
  };
  EXPECT_EQ(unread(program), "");
}

TEST(FlowFacts, NothingIsUnreadWhereNothingIsReadAtAll) {
  EXPECT_EQ(unread([](TraceText& trace, int) {
              trace.unary("exp", kX, kA);
              trace.unary("sin", kA, kB);
            }),
            "");
}

TEST(FlowFacts, AResultThatTheProgramMayHoldIsNotUnread) {
  EXPECT_EQ(unread([](TraceText& trace, int step) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.unary("sin", kX, tensor(50 + step, {8, 16}));  // into a list
              trace.to_host(kA);
            }),
            "");
}

TEST(FlowFacts, AChangeOfOlderMemoryIsRead) {
  EXPECT_EQ(unread([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.in_place("add_", kWeight, kA);
            }),
            "");
}

TEST(FlowFacts, WhatAnotherLibrarysOpReadsIsRead) {
  EXPECT_EQ(unread([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.op("mine::sum", "(Tensor self) -> Tensor", {kA}, {kB});
            }),
            "");
}

TEST(FlowFacts, WhatACompiledKernelReadsIsRead) {
  EXPECT_EQ(unread([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.empty(kB);
              trace.begin("triton_poi_fused_0", 0, {kA, kB});
              trace.end();
            }),
            "");
}

// Such a function may launch kernels that leave no node.
TEST(FlowFacts, WhatAFunctionOfPythonsAutogradGetsIsRead) {
  const auto program = [](const char* name, int scope) {
    return [=](TraceText& trace, int) {
      input(trace, kX);
      trace.unary("exp", kX, kA);
      trace.begin(name, scope, {kA});
      trace.unary("sin", kX, kB);
      trace.end();
      trace.to_host(kX);
    };
  };
  EXPECT_EQ(unread(program("MyFunction", 0)), "sin:0");
  EXPECT_EQ(unread(program("MyFunctionBackward", 1)), "sin:0");
  EXPECT_EQ(unread(program("MulBackward0", 1)), "exp:0 sin:0");
}

// A kernel that PyTorch does not launch leaves no node: what it writes is read without a value.
TEST(FlowFacts, MemoryThatNoOpWroteMakesTheDataFlowUnknown) {
  const auto program = [](bool by_hand) {
    return [by_hand](TraceText& trace, int) {
      input(trace, kX);
      trace.unary("exp", kX, kA);
      trace.empty(kB);
      if (!by_hand) trace.in_place("copy_", kB, kX);
      trace.unary("sin", kB, kC);
      trace.to_host(kC);
    };
  };
  EXPECT_EQ(unread(program(false)), "exp:0");
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    trace.step();
    program(true)(trace, i);
  }
  const Result<DataFlow> found = data_flow_of(trace.text());
  ASSERT_FALSE(found.is_ok());
  EXPECT_EQ(found.status().code(), Code::kUnavailable);
}

TEST(FlowFacts, APartialWriteKeepsTheRest) {
  const TensorText whole = tensor(30, {2, 8, 16});
  EXPECT_EQ(unread([&](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.unary("sin", kX, kB);
              trace.empty(whole);
              trace.in_place("copy_", tensor(30, {8, 16}), kA);
              trace.in_place("copy_", tensor(30, {8, 16}, {}, 128), kB);
              trace.to_host(tensor(30, {8, 16}, {}, 128));
            }),
            "");
}

TEST(FlowFacts, AWholeOverwriteLeavesTheValueBeforeUnread) {
  EXPECT_EQ(unread([&](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.op("aten::fill_", "(Tensor(a!) self, Scalar value) -> Tensor(a!)", {kA}, {kA},
                       {0});
              trace.to_host(kA);
            }),
            "copy_:0 exp:0");
}

// Two parameters. Autograd takes a gradient without a copy, or adds it to what is there.
DataFlow train(bool second, bool steals, bool any_optimizer = true) {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    trace.step();
    input(trace, kX);
    trace.binary("mul", kX, kWeight, kA);
    trace.thread(2);
    for (int k = 0; k < 2; ++k) {
      const TensorText gradient = tensor(40 + k, {8, 16}), sum = tensor(45 + k, {8, 16});
      trace.begin("autograd::engine::evaluate_function: MulBackward0", 0);
      trace.unary(k == 0 ? "exp" : "sin", kA, gradient);
      if (k == 0) {  // autograd itself goes on with one of the gradients
        trace.unary("tan", gradient, kC);
        trace.in_place("add_", tensor(70, {8, 16}), kC);
      }
      trace.end();
      trace.begin("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 0);
      trace.begin("torch::autograd::AccumulateGrad", 1, {gradient});
      if (steals) {
        trace.op("aten::detach", "(Tensor(a) self) -> Tensor(a)", {gradient}, {gradient});
      } else {
        trace.in_place("add_", sum, gradient);
      }
    }
    trace.thread(3);  // as an op outside the mark would end the step
    if (any_optimizer)
      for (int k = 0; k < (second ? 2 : 1); ++k)
        trace.in_place("add_", tensor(60 + k, {8, 16}), tensor((steals ? 40 : 45) + k, {8, 16}));
    trace.thread(1);
  }
  Result<DataFlow> found = data_flow_of(trace.text());
  return found.is_ok() ? *found : DataFlow();
}

TEST(FlowFacts, AGradientThatNoOptimizerReadsIsUnread) {
  for (const bool steals : {true, false}) {
    EXPECT_EQ(names(of_kind(train(true, steals), FlowKind::kUnread)), "") << steals;
    EXPECT_EQ(names(of_kind(train(false, steals), FlowKind::kUnread)),
              steals ? "sin:0" : "add_:2 sin:0")
        << steals;
  }
}

// A loss: autograd needs its op, for the gradient, though the step does not read its value.
TEST(FlowFacts, AnOpThatTheBackwardPassDifferentiatesIsNeeded) {
  const auto program = [](bool same_number, bool reads_gradient) {
    return [=](TraceText& trace, int step) {
      input(trace, kX);
      trace.sequence(10 * step);
      trace.unary("sin", kX, kB);  // not differentiated: the next op takes the number
      trace.unary("mean", kX, tensor(30, {}));
      trace.sequence(10 * step + (same_number ? 0 : 1));
      trace.thread(2);
      trace.begin("autograd::engine::evaluate_function: MeanBackward0", 0);
      trace.begin("MeanBackward0", 1, {kX});
      trace.sequence(-1);
      trace.unary("exp", kX, kA);
      trace.thread(3);
      if (reads_gradient) trace.to_host(kA);
      trace.unary("cos", kX, kC);
      trace.to_host(kC);
      trace.thread(1);
    };
  };
  EXPECT_EQ(unread(program(true, true)), "sin:0");
  EXPECT_EQ(unread(program(false, true)), "mean:0 sin:0");
  EXPECT_EQ(unread(program(true, false)), "exp:0 mean:0 sin:0");
}

// Ops inside of one that has a node of the backward pass have no number.
TEST(FlowFacts, WhatADifferentiatedOpRunsIsNeeded) {
  const auto program = [](bool inside) {
    return [=](TraceText& trace, int step) {
      const TensorText loss = tensor(30, {});
      input(trace, kX);
      trace.sequence(10 * step);
      trace.begin_op("aten::mean", "(Tensor self) -> Tensor", {kX}, {loss});
      trace.sequence(-1);
      if (!inside) trace.end();
      trace.unary("sum", kX, loss);
      if (inside) trace.end();
      trace.thread(2);
      trace.begin("autograd::engine::evaluate_function: MeanBackward0", 0);
      trace.sequence(10 * step);
      trace.begin("MeanBackward0", kBackwardScope, {kX});
      trace.sequence(-1);
      trace.unary("exp", kX, kA);
      trace.thread(1);
      trace.to_host(kA);
    };
  };
  EXPECT_EQ(unread(program(true)), "");
  EXPECT_EQ(unread(program(false)), "sum:0");
}

// Gradients of several steps are added up before the optimizer runs.
TEST(FlowFacts, GradientsAreKeptWhereNoOptimizerRan) {
  EXPECT_EQ(names(of_kind(train(true, false, false), FlowKind::kUnread)), "");
}

TEST(FlowFacts, APartThatIsReadIsAShare) {
  const TensorText logits = tensor(30, {8, 100, 50}), last = tensor(30, {8, 50}, {5000, 1}, 4950);
  const TensorText rows = tensor(31, {800, 16}), weight = tensor(32, {16, 50}, {1, 16});
  const auto program = [&](const TensorText& read) {
    return [=](TraceText& trace, int) {
      input(trace, tensor(1, {800, 16}));
      trace.unary("exp", tensor(1, {800, 16}), rows);
      trace.binary("mm", rows, weight, tensor(30, {800, 50}));
      trace.view(tensor(30, {800, 50}), logits);
      trace.to_host(read);
    };
  };
  const DataFlow found = flow_of_steps(program(last));
  const std::vector<FlowFact> facts = of_kind(found, FlowKind::kPartlyRead);
  // The product works row by row, exp by elements, the copy of the input as well.
  EXPECT_EQ(names(facts), "copy_:0 exp:0 mm:0");
  for (const FlowFact& fact : facts) EXPECT_NEAR(fact.read_share, 0.01, 1e-9) << fact.op;
  EXPECT_EQ(facts[2].reader, "aten::copy_");
  EXPECT_EQ(facts[1].reader, "aten::mm");
  EXPECT_EQ(names(of_kind(flow_of_steps(program(logits)), FlowKind::kPartlyRead)), "");
  // Columns of a product need all rows before it.
  EXPECT_EQ(
      names(of_kind(flow_of_steps(program(tensor(30, {800, 5}, {50, 1}))), FlowKind::kPartlyRead)),
      "mm:0");
}

TEST(FlowFacts, NearlyAllIsNoPart) {
  const auto partly = [](std::int64_t rows) {
    return names(of_kind(flow_of_steps([=](TraceText& trace, int) {
                           input(trace, tensor(1, {100, 16}));
                           trace.unary("exp", tensor(1, {100, 16}), tensor(30, {100, 16}));
                           trace.to_host(tensor(30, {rows, 16}));
                         }),
                         FlowKind::kPartlyRead));
  };
  EXPECT_EQ(partly(92), "");
  EXPECT_EQ(partly(88), "copy_:0 exp:0");
}

TEST(FlowFacts, DistinctPartsAddUpAndTheSamePartCountsOnce) {
  const TensorText whole = tensor(30, {4, 16}), first = tensor(30, {1, 16}),
                   second = tensor(30, {1, 16}, {}, 16);
  const auto share = [&](const std::vector<TensorText>& reads) {
    const DataFlow found = flow_of_steps([&](TraceText& trace, int) {
      trace.unary("exp", tensor(1, {4, 16}), whole);
      for (const TensorText& read : reads) trace.to_host(read);
    });
    const std::vector<FlowFact> facts = of_kind(found, FlowKind::kPartlyRead);
    return facts.empty() ? 1 : facts[0].read_share;
  };
  EXPECT_DOUBLE_EQ(share({first}), 0.25);
  EXPECT_DOUBLE_EQ(share({first, first}), 0.25);
  EXPECT_DOUBLE_EQ(share({first, second}), 0.5);
  EXPECT_DOUBLE_EQ(share({first, whole}), 1);
}

TEST(FlowFacts, AResidualAroundAProductHandsOnOneShare) {
  const TensorText h = tensor(30, {100, 16}), out = tensor(31, {100, 16}),
                   sum = tensor(32, {100, 16});
  const DataFlow found = flow_of_steps([&](TraceText& trace, int) {
    trace.unary("exp", tensor(1, {100, 16}), h);
    trace.binary("mm", h, kWeight, out);
    trace.binary("add", h, out, sum);
    trace.to_host(tensor(32, {1, 16}, {}, 99 * 16));
  });
  const std::vector<FlowFact> facts = of_kind(found, FlowKind::kPartlyRead);
  EXPECT_EQ(names(facts), "add:0 exp:0 mm:0");
  for (const FlowFact& fact : facts) EXPECT_NEAR(fact.read_share, 0.01, 1e-9) << fact.op;
}

TEST(FlowFacts, ASelectionReadsAsManyElementsAsItReturns) {
  const DataFlow found = flow_of_steps([&](TraceText& trace, int) {
    trace.unary("exp", tensor(1, {100, 16}), tensor(30, {100, 16}));
    trace.op("aten::index_select", "(Tensor self, int dim, Tensor index) -> Tensor",
             {tensor(30, {100, 16}), tensor(33, {5})}, {tensor(31, {5, 16})});
    trace.to_host(tensor(31, {5, 16}));
  });
  const std::vector<FlowFact> facts = of_kind(found, FlowKind::kPartlyRead);
  ASSERT_EQ(names(facts), "exp:0");
  EXPECT_NEAR(facts[0].read_share, 0.05, 1e-9);
  EXPECT_EQ(facts[0].reader, "aten::index_select");
}

// An expansion has more elements than there are; reading it reads all of them.
TEST(FlowFacts, AnExpandedTensorIsReadWhole) {
  const DataFlow found = flow_of_steps([&](TraceText& trace, int) {
    trace.unary("exp", tensor(1, {16}), tensor(30, {16}));
    trace.op("aten::expand", "(Tensor(a) self, SymInt[] size) -> Tensor(a)", {tensor(30, {16})},
             {tensor(30, {8, 16}, {0, 1})});
    trace.to_host(tensor(30, {8, 16}, {0, 1}));
    trace.unary("sin", tensor(1, {16}), tensor(31, {16}));
    trace.to_host(tensor(31, {8, 4}, {0, 1}));
  });
  const std::vector<FlowFact> facts = of_kind(found, FlowKind::kPartlyRead);
  ASSERT_EQ(names(facts), "sin:0");
  EXPECT_DOUBLE_EQ(facts[0].read_share, 0.25);
}

TEST(FlowFacts, TheSameResultTwiceIsRepeated) {
  const DataFlow found = flow_of_steps([](TraceText& trace, int) {
    input(trace, kX);
    trace.binary("mm", kX, kWeight, kA);
    trace.binary("mm", kX, kWeight, kB);
    trace.unary("exp", kA, kC);
    trace.unary("exp", kB, kD);
    for (const TensorText& each : {kC, kD}) trace.to_host(each);
  });
  const std::vector<FlowFact> facts = of_kind(found, FlowKind::kRepeated);
  ASSERT_EQ(names(facts), "exp:1 mm:1");
  EXPECT_EQ(facts[1].earlier, 0u);
  EXPECT_EQ(facts[1].count, 2u);
}

TEST(FlowFacts, OtherArgumentsValuesOrRandomNumbersAreNotRepeated) {
  EXPECT_EQ(repeated([](TraceText& trace, int) {
              input(trace, kX);
              const char* schema = "(Tensor self, Scalar exponent) -> Tensor";
              trace.op("aten::pow", schema, {kX}, {kA}, {2});
              trace.op("aten::pow", schema, {kX}, {kB}, {3});
              trace.unary("native_dropout", kX, kC);
              trace.unary("native_dropout", kX, kD);
              for (const TensorText& each : {kA, kB, kC, kD}) trace.to_host(each);
            }),
            "");
  EXPECT_EQ(repeated([](TraceText& trace, int) {  // x changes between
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.in_place("add_", kX, kWeight);
              trace.unary("exp", kX, kB);
              for (const TensorText& each : {kA, kB}) trace.to_host(each);
            }),
            "");
  // Another place of the same memory.
  EXPECT_EQ(repeated([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", tensor(1, {16}), tensor(30, {16}));
              trace.unary("exp", tensor(1, {16}, {}, 16), tensor(31, {16}));
              trace.to_host(tensor(30, {16}));
              trace.to_host(tensor(31, {16}));
            }),
            "");
}

// Scalars of Python have any address, and their values are not in the trace.
TEST(FlowFacts, ScalarsOfTheHostDifferEachTime) {
  const TensorText scalar = on_host(tensor(700, {}));
  const Program program = [&](TraceText& trace, int) {
    trace.binary("mul", kX, scalar, kA);
    trace.binary("mul", kX, scalar, kB);
    for (const TensorText& each : {kA, kB}) trace.to_host(each);
  };
  EXPECT_EQ(repeated(program), "");
  EXPECT_EQ(unchanged(program), "");
  EXPECT_TRUE(flow_of_steps(program).same_data);
  EXPECT_TRUE(flow_of_steps(program).host_numbers);
}

// The kernel of a complex abs writes memory that resize_ has given, which a copy then reads.
TEST(FlowFacts, AnOpWhoseChildReadsMemoryOfItsOwnReadsItsInput) {
  const TensorText own = tensor(60, {4, 8}), empty = tensor(61, {0});
  const Program program = [&](TraceText& trace, int) {
    trace.unary("_fft_r2c", kX, kA);
    trace.begin_op("aten::abs", "(Tensor self) -> Tensor", {kA}, {kB});
    trace.empty(kB);
    trace.empty(empty);
    trace.op("aten::resize_", "(Tensor(a!) self, SymInt[] size) -> Tensor(a!)", {empty}, {own});
    trace.op("aten::copy_", "(Tensor(a!) self, Tensor src) -> Tensor(a!)", {kB, own}, {kB});
    trace.end();
    trace.to_host(kB);
  };
  const DataFlow found = flow_of_steps(program);
  EXPECT_TRUE(found.recorded());
  EXPECT_FALSE(found.host_numbers);
  for (const FlowFact& fact : found.facts) EXPECT_NE(fact.kind, FlowKind::kUnread) << fact.op;
}

// An address that was given back and handed out again is another value.
TEST(FlowFacts, AnAddressThatComesAgainIsAnotherValue) {
  EXPECT_EQ(repeated([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.unary("sin", kA, kB);
              trace.unary("cos", kX, kA);
              trace.unary("sin", kA, kC);
              for (const TensorText& each : {kB, kC}) trace.to_host(each);
            }),
            "");
}

TEST(FlowFacts, ARepeatedResultThatIsChangedLaterIsNeeded) {
  EXPECT_EQ(repeated([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.unary("exp", kX, kB);
              trace.in_place("add_", kB, kX);
              for (const TensorText& each : {kA, kB}) trace.to_host(each);
            }),
            "");
}

// The second result could not be the first one: an op changed it, after another had read it.
TEST(FlowFacts, AnEarlierResultThatIsReadAndThenChangedIsNotShared) {
  EXPECT_EQ(repeated([](TraceText& trace, int) {
              input(trace, kX);
              trace.unary("exp", kX, kA);
              trace.unary("sin", kA, kC);
              trace.in_place("add_", kA, kX);
              trace.unary("exp", kX, kB);
              for (const TensorText& each : {kA, kB, kC}) trace.to_host(each);
            }),
            "");
}

TEST(FlowFacts, ARecomputationInTheBackwardPassIsNoRepetition) {
  const auto program = [](bool backward) {
    return [backward](TraceText& trace, int) {
      input(trace, kX);
      trace.unary("exp", kX, kA);
      trace.to_host(kA);
      trace.begin(backward ? "autograd::engine::evaluate_function: CheckpointFunctionBackward"
                           : "my range");
      trace.unary("exp", kX, kB);
      trace.to_host(kB);
      trace.end();
    };
  };
  EXPECT_EQ(repeated(program(true)), "");
  EXPECT_EQ(repeated(program(false)), "exp:1");
}

TEST(FlowFacts, AnOpOverItsChildrenIsNotCountedTwice) {
  const DataFlow found = flow_of_steps([](TraceText& trace, int) {
    input(trace, kX);
    for (const TensorText& each : {kA, kB}) {
      trace.begin_op("aten::linear", "(Tensor input, Tensor weight) -> Tensor", {kX, kWeight},
                     {each});
      trace.view(kWeight, tensor(20, {16, 16}, {1, 16}));
      trace.binary("mm", kX, tensor(20, {16, 16}, {1, 16}), each);
      trace.end();
      trace.to_host(each);
    }
  });
  EXPECT_EQ(names(found.facts), "mm:1");
  EXPECT_EQ(found.ops, 3u);
}

// aten::sum over aten::as_strided: the child is a view, the op itself works.
TEST(FlowFacts, AnOpOverViewsWorksItself) {
  const DataFlow found = flow_of_steps([](TraceText& trace, int) {
    input(trace, kX);
    trace.begin_op("aten::sum", "(Tensor self) -> Tensor", {kX}, {tensor(30, {})});
    trace.view(tensor(30, {}), tensor(30, {1}));
    trace.end();
    trace.unary("exp", kX, kA);
    trace.to_host(kA);
  });
  EXPECT_EQ(names(found.facts), "sum:0");
}

TEST(FlowFacts, WhatEachStepComputesIsUnchanged) {
  const Program program = [](TraceText& trace, int) {
    input(trace, kX);
    trace.unary("exp", kWeight, tensor(30, {16, 16}));
    trace.binary("mm", kX, tensor(30, {16, 16}), kA);
    trace.to_host(kA);
  };
  EXPECT_EQ(unchanged(program), "exp:0");
  // A weight that an optimizer changes is another one.
  EXPECT_EQ(unchanged([&](TraceText& trace, int step) {
              program(trace, step);
              trace.in_place("add_", kWeight, kA);
            }),
            "");
}

TEST(FlowFacts, StepsThatGetTheSameDataTellNothingOfIt) {
  const Program program = [](TraceText& trace, int) {
    trace.binary("mm", kX, kWeight, kA);
    trace.unary("native_dropout", kA, kB);
    trace.op("aten::arange", "(Scalar end) -> Tensor", {}, {tensor(30, {16})}, {16});
    trace.binary("add", kB, tensor(30, {16}), kC);
    trace.to_host(kC);
  };
  const DataFlow found = flow_of_steps(program);
  EXPECT_TRUE(found.same_data);
  // What depends on no data is unchanged for any data.
  EXPECT_EQ(names(of_kind(found, FlowKind::kUnchanged)), "arange:0");
}

TEST(FlowFacts, NineInTenOpsMakeTheSameData) {
  const auto same_data = [](int ops) {
    return flow_of_steps([=](TraceText& trace, int) {
             input(trace, kX);  // other data
             for (int i = 0; i < ops; ++i) trace.unary("exp", kWeight, tensor(30 + i, {16, 16}));
             trace.to_host(kX);
             for (int i = 0; i < ops; ++i) trace.to_host(tensor(30 + i, {16, 16}));
           })
        .same_data;
  };
  EXPECT_TRUE(same_data(9));
  EXPECT_FALSE(same_data(8));
}

// A training step over the same batch again: the weights differ, the data does not.
TEST(FlowFacts, StateIsNoData) {
  EXPECT_TRUE(flow_of_steps([](TraceText& trace, int) {
                trace.binary("mm", kX, kWeight, kA);
                trace.in_place("add_", kWeight, kA);
              }).same_data);
  EXPECT_FALSE(flow_of_steps([](TraceText& trace, int step) {  // another part of a large tensor
                 trace.binary("mm", tensor(1, {8, 16}, {}, 128 * step), kWeight, kA);
                 trace.in_place("add_", kWeight, kA);
               })
                   .same_data);
}

TEST(FlowFacts, OpsBetweenTheMarksAreNotOfTheStep) {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    trace.step();
    trace.unary("exp", kX, kA);
    trace.to_host(kA);
    trace.end();
    trace.unary("exp", kX, kB);  // after the range
    trace.to_host(kB);
  }
  const Result<DataFlow> found = data_flow_of(trace.text());
  ASSERT_TRUE(found.is_ok());
  EXPECT_EQ(found->ops, 1u);
  EXPECT_EQ(names(of_kind(*found, FlowKind::kRepeated)), "");
}

TEST(FlowFacts, TheEndsOfTheOptimizersStepsAreMarksToo) {
  TraceText trace;
  for (int i = 0; i < 4; ++i) {
    trace.unary("exp", kX, kA);
    trace.unary("exp", kX, kB);
    trace.begin("Optimizer.step#SGD.step");
    trace.in_place("add_", kWeight, kA);
    trace.in_place("add_", kWeight, kB);
    trace.end();
  }
  trace.unary("exp", kX, kA);
  const Result<DataFlow> found = data_flow_of(trace.text());
  ASSERT_TRUE(found.is_ok());
  EXPECT_EQ(found->steps, 3u);
  EXPECT_EQ(names(of_kind(*found, FlowKind::kRepeated)), "exp:1");
}

TEST(FlowFacts, AStepThatTheTraceEndsInDoesNotCount) {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    trace.step();
    trace.unary("exp", kX, kA);
    if (i < 2) trace.to_host(kA);
  }
  const Result<DataFlow> found = data_flow_of(trace.text());
  ASSERT_TRUE(found.is_ok());
  EXPECT_EQ(found->steps, 2u);
}

}  // namespace
}  // namespace purlin::profile::flow
