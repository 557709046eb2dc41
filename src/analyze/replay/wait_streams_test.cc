// SPDX-License-Identifier: Apache-2.0
// Waits whose streams the recorder names hold up that stream, and nothing else.
#include "analyze/replay/graph.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

struct Streams3 {  // kernels on three streams, and a wait of the third for the first
  Profile profile;
  std::uint32_t first = 0, other = 1, held = 2;
};
Streams3 three_streams(bool named) {
  TimelineBuilder builder;
  const std::uint32_t a = builder.launch(0, 1'000);
  builder.call(CallKind::kOther, "cudaEventRecord", 1'500, 500);
  const std::uint32_t wait = builder.call(CallKind::kOther, "cudaStreamWaitEvent", 2'500, 500);
  const std::uint32_t b = builder.launch(4'000, 1'000), c = builder.launch(6'000, 1'000);
  builder.kernel("a", 2'000, 8'000, a, 7);
  builder.kernel("b", 11'000, 5'000, b, 8);
  builder.kernel("c", 12'000, 5'000, c, 9);
  if (named) {
    builder.profile.timeline.calls[wait].holds = 9;
    builder.profile.timeline.calls[wait].awaits = 7;
  }
  Streams3 out;
  out.profile = builder.sorted();
  return out;
}

bool follows(const Graph& graph, std::uint32_t from, std::uint32_t to) {
  const auto edges = graph.into(graph.activities[to].begin);
  return std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
    return edge.kind == EdgeKind::kEvent && edge.from == graph.activities[from].end;
  });
}

TEST(WaitStreams, ANamedStreamIsHeldAndNotTheNextLaunch) {
  ReplayWindow window;
  window.time = {0, 100'000};
  const Streams3 named = three_streams(true), unnamed = three_streams(false);
  const Graph exact = build_graph(named.profile, window);
  EXPECT_TRUE(follows(exact, named.first, named.held));
  const Graph guessed = build_graph(unnamed.profile, window);
  EXPECT_TRUE(follows(guessed, unnamed.first, unnamed.other));
}

// The host waits for the short stream, though the long one ended last before it went on.
TEST(WaitStreams, ANamedStreamIsWhatTheHostWaitsFor) {
  for (const bool named : {true, false}) {
    TimelineBuilder builder;
    const std::uint32_t a = builder.launch(0, 1'000), b = builder.launch(2'000, 1'000);
    const std::uint32_t sync =
        builder.call(CallKind::kSync, "cudaStreamSynchronize", 4'000, 46'000);
    builder.kernel("long", 3'000, 46'000, a, 7);
    builder.kernel("short", 5'000, 43'000, b, 9);
    if (named) builder.profile.timeline.calls[sync].awaits = 9;
    const Profile profile = builder.sorted();
    ReplayWindow window;
    window.time = {0, 100'000};
    const Graph graph = build_graph(profile, window);
    const auto edges = graph.into(graph.calls[sync].end);
    const auto wait = std::find_if(edges.begin(), edges.end(),
                                   [](const Edge& edge) { return edge.kind == EdgeKind::kWait; });
    ASSERT_NE(wait, edges.end());
    EXPECT_EQ(wait->from, graph.activities[named ? 1 : 0].end);
  }
}

}  // namespace
}  // namespace purlin::analyze
