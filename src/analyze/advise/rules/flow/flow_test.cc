// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/launches.h"
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr const char* kLayer = "M=4096,N=4096,K=4096";

FlowFact fact(FlowKind kind, const char* op, std::uint32_t ordinal, std::uint32_t count,
              double share = 0, const char* reader = "") {
  return {kind, op, ordinal, count, share, reader, 0};
}
DataFlow flow_of(std::vector<FlowFact> facts, bool same_data = false) {
  DataFlow out;
  out.steps = 3;
  out.ops = 10;
  out.same_data = same_data;
  out.facts = std::move(facts);
  return out;
}
void run_op(Program& program, const char* op, const KernelRow& row, double ns) {
  program.within(op, [&](Program& inner) { inner.kernel(row, ns); });
}
using Body = std::function<void(Program&, int step)>;
Advice advice_of(const DataFlow& flow, const Body& body) {
  Program program;
  int step = 0;
  program.steps(kSteps, [&](Program& inner) { body(inner, step++); });
  program.builder().profile.data_flow = flow;
  return program.advice();
}
// Three products of a step: 0.1, 0.2 and 0.3 ms.
void products(Program& program, int) {
  for (const double ns : {1e5, 2e5, 3e5}) run_op(program, "aten::mm", product(kLayer), ns);
}

TEST(Flow, WhatNobodyReadsGoes) {
  const Advice advice = advice_of(flow_of({fact(FlowKind::kUnread, "aten::mm", 1, 3)}), products);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(advice.interventions[0].id, "reduce_problem");
  EXPECT_EQ(one->title, "Leave out what nothing reads");
  EXPECT_NEAR(one->saved_share.mid, 1.0 / 3, 0.02);
  EXPECT_GT(one->saved_share.low, 0.25);
  EXPECT_EQ(one->confidence, "A");
  EXPECT_TRUE(says(one, "1 op, 1 launch a step, 200 us of"));
  EXPECT_TRUE(says(one, "these ops: 1 aten::mm"));
  EXPECT_FALSE(says(one, "steps that have the recorded ops"));
  // Without a data flow, the products are those of layers.
  EXPECT_EQ(find(advice_of({}, products), "reduce_problem"), nullptr);
}

TEST(Flow, StepsWithAnotherNumberOfSuchOpsAreLeftOut) {
  const DataFlow flow = flow_of({fact(FlowKind::kUnread, "aten::mm", 2, 3)});
  const Advice some = advice_of(flow, [](Program& program, int step) {
    products(program, step);
    if (step % 2 == 1) run_op(program, "aten::mm", product(kLayer), 1e5);
  });
  const Intervention* one = find(some, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "steps that have the recorded ops: 6 of 12"));
  EXPECT_NEAR(one->saved_share.mid, 0.5 * 3 / 6.5, 0.03);
  // In none of the steps: a note says so, and nothing is promised.
  const Advice none = advice_of(flow, [](Program& program, int step) {
    products(program, step);
    run_op(program, "aten::mm", product(kLayer), 1e5);
  });
  EXPECT_EQ(find(none, "reduce_problem"), nullptr);
  ASSERT_FALSE(none.notes.empty());
  EXPECT_NE(none.notes.front().find("one result of the data flow is not found"), std::string::npos);
}

// Without marks a step is where the recorded sequence of ops begins.
TEST(Flow, StepsWithoutMarksAreFoundByTheirOps) {
  const auto round = [](Program& program) {
    products(program, 0);
    run_op(program, "aten::relu", product(kLayer), 1e5);
    run_op(program, "own::op", product(kLayer), 1e5);
  };
  DataFlow flow = flow_of({fact(FlowKind::kUnread, "aten::mm", 1, 3)});
  // It begins in the middle of what the program repeats.
  const std::vector<std::string> sequence = {"aten::mm", "aten::relu", "aten::mm", "aten::mm"};
  OpSequence ops;
  for (const std::string& op : sequence) ops.add(OpSequence::hash_of(op));
  flow.sequence_ops = 4;
  flow.sequence_hash = ops.hash(0, 4);
  const auto advice_with = [&](const DataFlow& of) {
    Program program;
    run_op(program, "aten::mm", product(kLayer), 1e5);
    for (int i = 0; i < kSteps; ++i) round(program);
    program.builder().profile.data_flow = of;
    return program.advice();
  };
  const Advice advice = advice_with(flow);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "these ops: 1 aten::mm"));
  EXPECT_NEAR(one->saved_share.mid, 1e5 / 8e5, 0.03) << "the first product of the next round";
  flow.sequence_hash ^= 1;
  EXPECT_EQ(find(advice_with(flow), "reduce_problem"), nullptr);
}

TEST(Flow, AnOpHasTheLaunchesOfItsChildren) {
  const auto body = [](Program& program, int) {
    run_op(program, "aten::add", functor("Add", "n=67108864,inputs=2"), 2e5);
    program.within("aten::var", [](Program& inner) {
      run_op(inner, "aten::sub", functor("Sub", "n=67108864,inputs=2"), 1e5);
      run_op(inner, "aten::mul", functor("Mul", "n=67108864,inputs=2"), 1e5);
    });
  };
  const Advice advice = advice_of(flow_of({fact(FlowKind::kUnread, "aten::var", 0, 1)}), body);
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 0.5, 0.03);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "1 op, 2 launches a step"));
}

TEST(Flow, TheProgramsRangeSaysWhere) {
  Program program;
  program.steps(kSteps, [](Program& inner) {
    const std::int64_t begin = inner.host_now();
    products(inner, 0);
    inner.builder().range(RangeKind::kUser, "auxiliary head", begin, inner.host_now() - begin);
    products(inner, 0);
  });
  program.builder().profile.data_flow = flow_of(
      {fact(FlowKind::kUnread, "aten::mm", 2, 6), fact(FlowKind::kUnread, "aten::mm", 5, 6)});
  const Advice advice = program.advice();
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "where they run: 1 aten::mm, 1 auxiliary head"));
}

TEST(Flow, GradientsHaveTheirOwnWords) {
  const auto advice_with = [](const char* update) {
    const DataFlow flow = flow_of({fact(FlowKind::kUnread, "aten::mm", 1, 2)});
    return advice_of(flow, [=](Program& program, int) {
      run_op(program, "aten::mm", product(kLayer), 1e5);
      program.within("autograd::engine::evaluate_function: MmBackward0",
                     [](Program& inner) { run_op(inner, "aten::mm", product(kLayer), 1e5); });
      program.op(update);
    });
  };
  const Advice advice = advice_with("aten::_fused_adamw_");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Leave out the gradients that nothing reads");
  EXPECT_TRUE(says(one, "where they run: 1 MmBackward0"));
  EXPECT_NEAR(one->saved_share.mid, 0.5, 0.03);
  // A program that measures a backward pass, or steps without the update.
  const Advice without = advice_with("aten::view");
  EXPECT_EQ(find(without, "reduce_problem"), nullptr);
  ASSERT_FALSE(without.notes.empty());
  EXPECT_NE(without.notes.front().find("record steps with the optimizer"), std::string::npos);
}

// Powers of a step: the loss, with a node of the backward pass, and `others`. Nothing reads them.
Advice powers(std::uint32_t others) {
  std::vector<FlowFact> facts;
  for (std::uint32_t i = 0; i <= others; ++i)
    facts.push_back(fact(FlowKind::kUnread, "aten::pow", i, others + 2));
  return advice_of(flow_of(facts), [=](Program& program, int) {
    for (std::uint32_t i = 0; i <= others; ++i)
      run_op(program, "aten::pow", functor("Pow", "n=67108864,inputs=1"), 1e5);
    program.within("autograd::engine::evaluate_function: PowBackward0", [](Program& inner) {
      run_op(inner, "aten::pow", functor("Pow", "n=67108864,inputs=1"), 1e5);
    });
    run_op(program, "aten::_fused_adamw_", functor("Adam", "n=67108864,inputs=1"), 1e5);
  });
}

TEST(Flow, WhatTheBackwardPassNeedsStays) {
  EXPECT_EQ(find(powers(0), "reduce_problem"), nullptr);
  EXPECT_EQ(find(powers(1), "reduce_problem"), nullptr);  // one of the two, but which?
}

// One op inside another of its kind has one node for both.
TEST(Flow, ALossInsideOfALossIsOne) {
  const DataFlow flow = flow_of({fact(FlowKind::kUnread, "aten::nll_loss_forward", 0, 1)});
  const Advice advice = advice_of(flow, [](Program& program, int) {
    program.within("aten::nll_loss", [](Program& inner) {
      run_op(inner, "aten::nll_loss_forward", functor("Loss", "n=67108864,inputs=1"), 1e5);
    });
    program.within("autograd::engine::evaluate_function: NllLossBackward0", [](Program& inner) {
      run_op(inner, "aten::nll_loss_backward", functor("Back", "n=67108864,inputs=1"), 1e5);
    });
    program.op("aten::_fused_adamw_");
  });
  EXPECT_EQ(find(advice, "reduce_problem"), nullptr);
}

TEST(Flow, ForwardOpsWithoutANodeGo) {
  const DataFlow flow = flow_of({fact(FlowKind::kUnread, "aten::exp", 1, 3)});
  const Advice advice = advice_of(flow, [](Program& program, int) {
    for (int i = 0; i < 3; ++i)
      run_op(program, "aten::exp", functor("Exp", "n=67108864,inputs=1"), 1e5);
    for (int i = 0; i < 2; ++i)
      program.within("autograd::engine::evaluate_function: ExpBackward0", [](Program& inner) {
        run_op(inner, "aten::mul", functor("Mul", "n=67108864,inputs=2"), 1e5);
      });
  });
  ASSERT_NE(find(advice, "reduce_problem"), nullptr);
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 0.2, 0.02);
}

// The launch of a scalar is no reason to part a chain of other rules.
TEST(Flow, SmallOnesStayWithTheOtherRules) {
  const auto chain = [](Program& program, int) {
    run_op(program, "aten::mul", functor("Mul", "n=67108864,inputs=2"), 3e5);
    run_op(program, "aten::fill_", functor("Fill", "n=1,inputs=0"), 2'000);
    run_op(program, "aten::add", functor("Add", "n=67108864,inputs=2"), 3e5);
  };
  const Advice advice =
      advice_of(flow_of({fact(FlowKind::kUnchanged, "aten::fill_", 0, 1)}), chain);
  EXPECT_EQ(find(advice, "reuse_result"), nullptr);
}

TEST(Flow, ARepeatedResultIsMadeOnce) {
  DataFlow flow = flow_of(
      {fact(FlowKind::kRepeated, "aten::mm", 1, 3), fact(FlowKind::kRepeated, "aten::mm", 2, 3)});
  flow.facts[1].earlier = 1;
  const Advice advice = advice_of(flow, products);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Compute the repeated result once");
  EXPECT_NEAR(one->saved_share.mid, 5.0 / 6, 0.03);
  EXPECT_EQ(one->confidence, "A");
  EXPECT_TRUE(says(one, "the longest one: number 3 of 3 aten::mm of a step: nvjet"));
  EXPECT_TRUE(says(one, "its result was made before: by number 2, in aten::mm"));
}

// The host sets the pace: a node of the backward pass goes as a whole where nothing else of it is
// read.
TEST(Flow, TheHostsTimeGoesToo) {
  const auto advice = [](bool both) {
    std::vector<FlowFact> facts = {fact(FlowKind::kUnread, "aten::mm", 1, 3)};
    if (both) facts.push_back(fact(FlowKind::kUnread, "aten::mm", 2, 3));
    return advice_of(flow_of(facts), [](Program& program, int) {
      const auto small = [](Program& inner) {
        run_op(inner.work(20'000), "aten::mm", product("M=64,N=64,K=64"), 3'000);
      };
      small(program.work(60'000));
      program.within("autograd::engine::evaluate_function: MmBackward0", [&](Program& inner) {
        small(inner);
        small(inner);
        inner.work(40'000);
      });
      program.op("aten::_fused_adamw_");
    });
  };
  const Interval3 one = share_of(advice(false), "reduce_problem"),
                  both = share_of(advice(true), "reduce_problem");
  EXPECT_GT(one.mid, 0.08);
  EXPECT_LT(one.mid, 0.2);
  EXPECT_GT(both.mid, 0.4);  // with the 40 us of the node
}

TEST(Flow, WhatNoStepChangesIsMadeBeforeTheLoop) {
  const auto body = [](Program& program, int) {
    program.within("aten::_to_copy", [](Program& inner) {
      run_op(inner, "aten::copy_", conversion("n=67108864,inputs=1,write=134217728"), 1e5);
    });
    run_op(program, "aten::mm", product(kLayer), 3e5);
  };
  const Advice advice = advice_of(flow_of({fact(FlowKind::kUnchanged, "aten::copy_", 0, 1)}), body);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Make once before the loop what no step changes");
  EXPECT_NEAR(one->saved_share.mid, 0.25, 0.03);
  EXPECT_NE(one->how.front().find("model.to(torch.bfloat16)"), std::string::npos);
  EXPECT_EQ(one->freed_bytes, -134217728.0);
  EXPECT_EQ(find(advice, "cast_weights_once"), nullptr);  // of the same launches
}

// What is unread, in part or not, need not be made once: one intervention for a launch.
TEST(Flow, OneLaunchCountsOnce) {
  const DataFlow flow = flow_of({fact(FlowKind::kPartlyRead, "aten::mm", 1, 3, 0.1),
                                 fact(FlowKind::kRepeated, "aten::mm", 1, 3),
                                 fact(FlowKind::kUnread, "aten::mm", 1, 3)});
  const Advice advice = advice_of(flow, products);
  EXPECT_EQ(find(advice, "reduce_problem")->title, "Leave out what nothing reads");
  EXPECT_EQ(find(advice, "reuse_result"), nullptr);
}

TEST(Flow, AProductShrinksToThePartThatIsRead) {
  const auto body = [](Program& program, int) {
    run_op(program, "aten::mm", product("M=8192,N=32000,K=4096"), 3e6);
    run_op(program, "aten::add", functor("Add", "n=67108864,inputs=2"), 1e6);
  };
  const auto advice = [&](double share) {
    return advice_of(
        flow_of({fact(FlowKind::kPartlyRead, "aten::mm", 0, 1, share, "aten::argmax")}), body);
  };
  const Advice few = advice(1.0 / 8192);
  const Intervention* one = find(few, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Compute only the part of the result that is read");
  // One operand is still read, 67 or 262 MB: at 0.7 of the bandwidth 49 us in the mean.
  EXPECT_NEAR(one->saved_share.mid, (3.0 - 0.049) / 4, 0.005);
  EXPECT_GT(one->saved_share.low, 0.6);
  EXPECT_EQ(one->confidence, "B");
  EXPECT_TRUE(says(one, "most by aten::argmax"));
  EXPECT_EQ(find(advice(0.9), "reduce_problem"), nullptr);
}

TEST(Flow, APartIsPricedByTheOp) {
  const auto share = [](const char* op, double read, const KernelRow& row) {
    return share_of(advice_of(flow_of({fact(FlowKind::kPartlyRead, op, 0, 1, read)}),
                              [&](Program& program, int) {
                                run_op(program, op, row, 1e6);
                                run_op(program, "aten::mm", product(kLayer), 1e6);
                              }),
                    "reduce_problem");
  };
  const KernelRow pointwise = functor("Exp", "n=67108864,inputs=1");
  EXPECT_NEAR(share("aten::exp", 0.25, pointwise).mid, 0.5 * 0.95 * 0.75, 0.01);
  EXPECT_GT(share("aten::exp", 0.25, pointwise).low, 0.15);
  const KernelRow sort = advised_row("radix_sort", "aten::sort", "", "f32");
  EXPECT_NEAR(share("aten::sort", 0.01, sort).mid, 0.5 * 0.7, 0.01);
  EXPECT_EQ(share("aten::sort", 0.5, sort).high, 0);  // the places alone, or the values
  const KernelRow scan = advised_row("scan", "aten::cumsum", "", "f32");
  EXPECT_NEAR(share("aten::cumsum", 0.01, scan).mid, 0.5 * 0.55, 0.01);
  const KernelRow values = advised_row("syevd", "aten::_linalg_eigh", "", "f32");
  EXPECT_GT(share("aten::_linalg_eigh", 0.01, values).low, 0);
  EXPECT_GT(share("aten::_linalg_eigh", 0.01, values).high, 0.4);
  // The last state of a recurrence needs all before it.
  const KernelRow states = advised_row("lstm", "aten::_cudnn_rnn", "", "f32");
  EXPECT_EQ(share("aten::_cudnn_rnn", 0.01, states).high, 0);
}

// Equal products, each read at once: they may read the same arrays.
Advice alike_products(const DataFlow& flow) {
  return advice_of(flow, [](Program& program, int) {
    for (int i = 0; i < 4; ++i) {
      run_op(program, "aten::mm", product("M=65536,N=512,K=1024"), 60'000);
      run_op(program, "aten::exp", functor("Exp", "n=33554432,inputs=1", "bf16"), 20'000);
    }
  });
}

TEST(Flow, WhatWasRecordedIsNotGuessed) {
  ASSERT_NE(find(alike_products({}), "reuse_result"), nullptr);
  // The products were seen, and none repeats another.
  EXPECT_EQ(find(alike_products(flow_of({})), "reuse_result"), nullptr);
  EXPECT_EQ(find(alike_products(flow_of({}, true)), "reuse_result"), nullptr);
  // A kernel that no op launches reads and writes unseen.
  Program compiled;
  compiled.steps(kSteps, [](Program& program) {
    for (int i = 0; i < 4; ++i) {
      program.kernel(product("M=65536,N=512,K=1024"), 60'000);
      run_op(program, "aten::exp", functor("Exp", "n=33554432,inputs=1", "bf16"), 20'000);
    }
  });
  compiled.builder().profile.data_flow = flow_of({});
  EXPECT_NE(find(compiled.advice(), "reuse_result"), nullptr);
  // A data flow of another program says nothing of this one.
  EXPECT_NE(
      find(alike_products(flow_of({fact(FlowKind::kUnread, "aten::mm", 1, 3)})), "reuse_result"),
      nullptr);
}

// A sort whose first elements the next kernel takes, by its size.
Advice sorted_with(const DataFlow& flow) {
  return advice_of(flow, [](Program& program, int) {
    run_op(program, "aten::exp", functor("Exp", "n=1048576,inputs=1"), 100'000);
    run_op(program, "aten::sort", advised_row("radix", "aten::sort", "", "f32"), 200'000);
    program.op("aten::slice");
    run_op(program, "aten::div", functor("Div", "n=128,inputs=1"), 100'000);
  });
}

TEST(Flow, WhatIsReadIsKnownWhereReadersWereSeen) {
  const std::string top = "Find the greatest few instead of sorting all";
  ASSERT_NE(find(sorted_with({}), "reduce_problem"), nullptr);
  EXPECT_EQ(find(sorted_with({}), "reduce_problem")->title, top);
  // No facts of reading: perhaps a compiled kernel reads, and its reads were not seen.
  EXPECT_NE(find(sorted_with(flow_of({})), "reduce_problem"), nullptr);
  // Another op is read in part, and the sort is not.
  const DataFlow other = flow_of({fact(FlowKind::kPartlyRead, "aten::exp", 0, 1, 0.1)});
  ASSERT_NE(find(sorted_with(other), "reduce_problem"), nullptr);
  EXPECT_NE(find(sorted_with(other), "reduce_problem")->title, top);
  const DataFlow sort = flow_of({fact(FlowKind::kPartlyRead, "aten::sort", 0, 1, 0.001)});
  EXPECT_EQ(find(sorted_with(sort), "reduce_problem")->title, top);
}

TEST(Flow, WithTheSameDataItIsNotKnownWhatNoStepChanges) {
  const auto body = [](Program& program, int) {
    run_op(program, "aten::_weight_norm", functor("Mul", "n=67108864,inputs=2"), 1e5);
    run_op(program, "aten::mm", product(kLayer), 3e5);
  };
  const auto advice = [&](bool same) { return advice_of(flow_of({}, same), body); };
  EXPECT_EQ(find(advice(false), "reuse_result"), nullptr);  // some step changes them
  const Advice same = advice(true);
  EXPECT_NE(find(same, "reuse_result"), nullptr);
  ASSERT_FALSE(same.notes.empty());
  EXPECT_NE(same.notes.front().find("from the same data"), std::string::npos);
}

// Files are foreign: ops that go in circles, ordinals beyond the count, calls without an op.
TEST(Flow, AnyTimelineGivesSavingsWithinTheStep) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Profile profile = random_timeline(random, 1'000);
    Timeline& timeline = profile.timeline;
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random.below(n)); };
    if (!timeline.ops.empty()) {
      for (Call& call : timeline.calls)
        if (below(4) > 0) call.op = below(timeline.ops.size());
      for (Op& op : timeline.ops)
        if (below(2) > 0) op.parent = below(timeline.ops.size());
    }
    profile.data_flow = flow_of({});
    for (int i = 0; i < 8; ++i)
      profile.data_flow.facts.push_back(fact(static_cast<FlowKind>(below(5)), "aten::x", below(5),
                                             1 + below(4), 0.01 * (1 + below(98)), "aten::y"));
    const Advice advice = advise(profile, analyze_timeline(profile));
    for (const Intervention& one : advice.interventions) {
      EXPECT_LE(one.saved_share.high, 1) << seed;
      EXPECT_LE(one.saved_share.low, one.saved_share.high) << seed;
      EXPECT_FALSE(one.evidence.empty()) << seed;
    }
  }
}

TEST(Flow, StepsThatNoRangeMarksHaveNoPlaces) {
  Program program;
  for (int i = 0; i < kSteps; ++i) {
    products(program, i);
    program.wait();
  }
  program.builder().profile.data_flow = flow_of({fact(FlowKind::kUnread, "aten::mm", 1, 3)});
  EXPECT_EQ(find(program.advice(), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
