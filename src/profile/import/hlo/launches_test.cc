// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/launches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace purlin::profile::hlo {
namespace {

constexpr std::string_view kStep =
    R"(HloModule jit_step, is_scheduled=true, entry_computation_layout={}

FileNames
1 "a.py"

%dot_computation (p0: bf16[64,32], p1: bf16[32,16]) -> bf16[64,16] {
  %p0 = bf16[64,32]{1,0} parameter(0)
  %p1 = bf16[32,16]{1,0} parameter(1)
  ROOT %dot.1 = bf16[64,16]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%fused_add (p0.1: bf16[64,16], p1.1: f32[16]) -> f32[64,16] {
  %p0.1 = bf16[64,16]{1,0} parameter(0)
  %p1.1 = f32[16]{0} parameter(1)
  %c = f32[64,16]{1,0} convert(%p0.1)
  %b = f32[64,16]{1,0} broadcast(%p1.1), dimensions={1}
  ROOT %a = f32[64,16]{1,0} add(%c, %b)
}

%fused_pick (p0.2: f32[1000,16], p1.2: s32[4]) -> bf16[4,16] {
  %p0.2 = f32[1000,16]{1,0} parameter(0)
  %p1.2 = s32[4]{0} parameter(1)
  %n = f32[1000,16]{1,0} negate(%p0.2)
  %g = f32[4,16]{1,0} gather(%n, %p1.2), offset_dims={1}, slice_sizes={1,16}
  ROOT %h = bf16[4,16]{1,0} convert(%g)
}

%fused_store (p0.3: f32[100,16], p1.3: f32[1,16], p2.3: s32[]) -> f32[100,16] {
  %p0.3 = f32[100,16]{1,0} parameter(0)
  %p1.3 = f32[1,16]{1,0} parameter(1)
  %p2.3 = s32[] parameter(2)
  ROOT %u = f32[100,16]{1,0} dynamic-update-slice(%p0.3, %p1.3, %p2.3, %p2.3)
}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%fused_reduce (p0.4: f32[64,16]) -> f32[64] {
  %p0.4 = f32[64,16]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[64]{0} reduce(%p0.4, %zero), dimensions={1}, to_apply=%sum
}

%fused_scatter (p0.5: f32[64], p1.5: s32[4,1], p2.5: f32[4]) -> f32[64] {
  %p0.5 = f32[64]{0} parameter(0)
  %p1.5 = s32[4,1]{1,0} parameter(1)
  %p2.5 = f32[4]{0} parameter(2)
  ROOT %sc = f32[64]{0} scatter(%p0.5, %p1.5, %p2.5), to_apply=%sum
}

%body (t: (s32[], f32[64,16])) -> (s32[], f32[64,16]) {
  %t = (s32[], f32[64,16]{1,0}) parameter(0)
  %v = f32[64,16]{1,0} get-tuple-element(%t), index=1
  ROOT %input_reduce_fusion = f32[64]{0} fusion(%v), kind=kInput, calls=%fused_reduce, metadata={op_name="jit(step)/while/body/layers_12/reduce_sum"}
}

ENTRY %main (x.1: bf16[64,32], w.1: bf16[32,16], e.1: f32[1000,16]) -> f32[64] {
  %x.1 = bf16[64,32]{1,0} parameter(0), metadata={op_name="x"}
  %w.1 = bf16[32,16]{1,0} parameter(1)
  %e.1 = f32[1000,16]{1,0} parameter(2)
  %i.1 = s32[4]{0} parameter(3)
  %bias = f32[16]{0} parameter(4)
  %big = f32[100,16]{1,0} parameter(5)
  %one = f32[1,16]{1,0} parameter(6)
  %at = s32[] parameter(7)
  %image = bf16[2,8,8,3]{3,2,1,0} parameter(8)
  %made = bf16[2,8,8,4]{3,2,1,0} parameter(9)
  %filter = bf16[4,3,3,3]{3,2,1,0} parameter(10)
  %gemm_fusion_dot.12 = bf16[64,16]{1,0} fusion(%x.1, %w.1), kind=kCustom, calls=%dot_computation, metadata={op_name="jit(step)/jvp()/transpose;jit(step)/x" scheduling_name="a"}, backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion"}}
  %loop_add_fusion = f32[64,16]{1,0} fusion(%gemm_fusion_dot.12, %bias), kind=kLoop, calls=%fused_add, metadata={op_name="jit(step)/jvp(h_3)/add"}
  %custom-call.3 = (bf16[64,16]{1,0}, s8[4096]{0}) custom-call(%x.1, %w.1), custom_call_target="__cublas$lt$matmul", metadata={op_name="jit(step)/dot_general"}, backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}
  %loop_pick_fusion = bf16[4,16]{1,0} fusion(%e.1, %i.1), kind=kLoop, calls=%fused_pick
  %loop_store_fusion = f32[100,16]{1,0} fusion(%big, %one, %at), kind=kLoop, calls=%fused_store
  %input_scatter_fusion = f32[64]{0} fusion(%v, %i.1, %one), kind=kInput, calls=%fused_scatter
  %conv-fw = (bf16[2,8,8,4]{3,2,1,0}, u8[0]{0}) custom-call(%image, %filter), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
  %conv-bf = (bf16[4,3,3,3]{3,2,1,0}, u8[0]{0}) custom-call(%image, %made), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardFilter"
  %gradient = bf16[4,3,3,3]{3,2,1,0} get-tuple-element(%conv-bf), index=0
  %made.2 = bf16[2,8,8,4]{3,2,1,0} bitcast(%gradient)
  %conv-bi = (bf16[2,8,8,3]{3,2,1,0}, u8[0]{0}) custom-call(%made.2, %filter), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardInput"
  %topk = f32[4]{0} custom-call(%bias), custom_call_target="__gpu$TopK"
  ROOT %while = (s32[], f32[64,16]{1,0}) while(%at), condition=%sum, body=%body
}
)";

Program step() {
  static const std::vector<Module> kModules = read_modules(kStep);
  return program_of(kModules.at(0));
}

Launch launch_of(std::string_view instruction) {
  const Program program = step();
  for (const Launch& launch : program.launches)
    if (launch.instruction == instruction) return launch;
  ADD_FAILURE() << "no launch of " << instruction;
  return {};
}

std::string text_of(std::string_view instruction) {
  const Launch launch = launch_of(instruction);
  return launch.kernel + "|" + launch.op + "|" + std::string(launch.op_class) + " " + launch.shape +
         " " + launch.dtype;
}

TEST(Hlo, ModulesAndTypes) {
  const std::vector<Module> modules = read_modules(kStep);
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].name, "jit_step");
  EXPECT_TRUE(modules[0].scheduled);
  EXPECT_EQ(modules[0].computations.size(), 9u);
  EXPECT_EQ(modules[0].computations[modules[0].entry].name, "main");
  const std::vector<ArrayType> types =
      types_of("(bf16[8,4]{1,0:T(8,128)}, /*index=1*/f32[], (s8[3]))");
  ASSERT_EQ(types.size(), 3u);
  EXPECT_EQ(types[0].bytes, 64);
  EXPECT_EQ(types[1].bytes, 4);
  EXPECT_EQ(types[2].bytes, 3);
}

TEST(Hlo, ProductsOfTritonAndCublas) {
  EXPECT_EQ(text_of("gemm_fusion_dot.12"),
            "gemm_fusion_dot_12|jit(step)/jvp()/dot_general|gemm M=64,N=16,K=32,read=5120,"
            "write=2048 bf16");
  EXPECT_EQ(text_of("custom-call.3"), "|jit(step)/dot_general|gemm M=64,N=16,K=32 bf16");
  EXPECT_EQ(launch_of("custom-call.3").flops, 2 * 64 * 16 * 32);
}

TEST(Hlo, CallsThatReadTheCallBefore) {
  EXPECT_FALSE(launch_of("conv-fw").chained);
  EXPECT_FALSE(launch_of("conv-bf").chained);
  EXPECT_TRUE(launch_of("conv-bi").chained);
}

TEST(Hlo, ConvolutionsAndTheirGradients) {
  const std::string shape = "conv N=2,C=3,H=8,W=8,K=4,R=3,S=3,P=8,Q=8";
  EXPECT_EQ(text_of("conv-fw"), "|conv_general_dilated|" + shape + " bf16");
  EXPECT_EQ(text_of("conv-bf"), "|conv_general_dilated|" + shape + ",gradients=1 bf16");
  EXPECT_EQ(text_of("conv-bi"), "|conv_general_dilated|" + shape + ",gradients=1 bf16");
}

TEST(Hlo, WhatFusionsReadAndWrite) {
  EXPECT_EQ(text_of("loop_add_fusion"),
            "loop_add_fusion|jit(step)/jvp(h)/add|elementwise n=1024,out=1024,read=2112,write=4096 "
            "bf16");
  // Four rows of a thousand, through a negation; a row of a hundred; a scatter's rows are unknown.
  EXPECT_EQ(text_of("loop_pick_fusion"),
            "loop_pick_fusion|fusion|elementwise n=64,out=64,read=272,write=128 f32");
  EXPECT_EQ(text_of("loop_store_fusion"),
            "loop_store_fusion|fusion|elementwise n=16,out=16,read=68,write=64 f32");
  EXPECT_EQ(text_of("input_scatter_fusion"), "input_scatter_fusion|fusion|elementwise  ");
  EXPECT_EQ(text_of("input_reduce_fusion"),
            "input_reduce_fusion|jit(step)/while/body/layers/reduce_sum|reduction n=1024,out=64,"
            "read=4096,write=256 f32");
}

TEST(Hlo, OrderHasLoopsTwiceAndNoUnknownCalls) {
  const Program program = step();
  std::string order;
  for (const std::uint32_t at : program.order)
    order += std::string(program.launches[at].instruction) + " ";
  EXPECT_EQ(order,
            "gemm_fusion_dot.12 loop_add_fusion custom-call.3 loop_pick_fusion loop_store_fusion "
            "input_scatter_fusion conv-fw conv-bf conv-bi input_reduce_fusion "
            "input_reduce_fusion ");
}

TEST(Hlo, HostileTextsEndSoon) {
  // Computations that call the next one twice; a tuple of tuples; a fusion of itself.
  std::string text = "HloModule deep, is_scheduled=true\n";
  for (int i = 0; i < 200; ++i) {
    text += "%c" + std::to_string(i) + " (p: f32[]) -> f32[] {\n";
    for (int j = 0; j < 20; ++j)
      text += "  %x" + std::to_string(j) + " = f32[] call(), to_apply=%c" + std::to_string(i + 1) +
              "\n";
    text += "}\n";
  }
  text += "ENTRY %e () -> f32[] {\n  %a = f32[] call(), to_apply=%c0\n";
  text += "  ROOT %f = f32[] fusion(%a, %a), kind=kLoop, calls=%e\n}\n";
  std::string tuple = "f32[2]";
  text += "%t (p: f32[2]) -> f32[2] {\n  %t0 = f32[2] parameter(0)\n";
  for (int i = 1; i < 60; ++i)
    text += "  %t" + std::to_string(i) + " = (f32[2], f32[2]) tuple(%t" + std::to_string(i - 1) +
            ", %t" + std::to_string(i - 1) + ")\n";
  text += "}\n";
  for (const Module& module : read_modules(text)) (void)program_of(module);
  for (const char* odd :
       {"", "HloModule", "HloModule m\n}\n", "HloModule m\n%a -> {\n  = (\n  %x = \n  %x = (f32[\n",
        "HloModule m\nENTRY %e () -> f32[] {\n  ROOT %r = f32[99999999999999999999] "
        "fusion(%r), kind=kLoop, calls=%e\n}\n",
        "HloModule m\nENTRY %e () -> f32[] {\n  %r = f32[] custom-call(\"(((\", "
        "custom_call_target=\"__cublas$gemm\"\n"})
    for (const Module& module : read_modules(odd)) (void)program_of(module);
}

std::size_t launches_in(const std::string& text) {
  std::size_t out = 0;
  for (const Module& module : read_modules(text)) out += program_of(module).order.size();
  return out;
}

// Each takes a second or less, and would take minutes with one look at all for each instruction.
TEST(Hlo, LargeTextsTakeNoLongerThanTheirSize) {
  const std::string head = "HloModule m, is_scheduled=true\n";
  const std::string fused =
      "%f (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
      "  ROOT %a = f32[8]{0} add(%p, %p)\n}\n";
  std::string many = head + fused + "ENTRY %e () -> f32[8] {\n  %v0 = f32[8]{0} parameter(0)\n";
  constexpr int kMany = 300'000;
  for (int i = 1; i <= kMany; ++i)
    many += fmt::format("  %v{} = f32[8]{{0}} fusion(%v{}), kind=kLoop, calls=%f\n", i, i - 1);
  EXPECT_EQ(launches_in(many + "}\n"), kMany);

  // Tuples of one value with a long type.
  std::string type = "(", members = "%p";
  for (int i = 0; i < 4000; ++i) type += "f32[2,3,5,7]{3,2,1,0}, ", members += ", %p";
  type += "f32[])";
  std::string tuples = head;
  std::string entry = "ENTRY %e () -> f32[8] {\n";
  for (int i = 0; i < 100; ++i) {
    tuples += fmt::format("%t{} (p: f32[8]) -> f32[8] {{\n  %p = {} parameter(0)\n", i, type);
    tuples += fmt::format("  ROOT %r = f32[8] tuple({})\n}}\n", members);
    entry += fmt::format("  %x{} = f32[8] fusion(), kind=kLoop, calls=%t{}\n", i, i);
  }
  EXPECT_EQ(launches_in(tuples + entry + "}\n"), 100u);

  // A loop in a loop in a loop, each with attributes of 1 MB.
  std::string loops = head + fused;
  for (int i = 0; i < 10; ++i)
    loops +=
        fmt::format("%l{} () -> f32[8] {{\n  %w = f32[8] while(), branch={{{}}}, body=%{}\n}}\n", i,
                    std::string(1 << 20, ','), i == 0 ? "g" : fmt::format("l{}", i - 1));
  loops += "%g () -> f32[8] {\n  %x = f32[8] fusion(), kind=kLoop, calls=%f\n}\n";
  loops += "ENTRY %e () -> f32[8] {\n  %w = f32[8] while(), body=%l9\n}\n";
  EXPECT_EQ(launches_in(loops), 0u) << "what comes behind 64 KB of attributes is left out";
}

// "kernel|op|class shape dtype" of each launch. `fused`: the instructions of %f; `entry`: of the
// program, after its parameters %x, f32[64,16], and %w, f32[16,32].
std::string launches_of(const std::string& fused, const std::string& entry) {
  const std::string text =
      "HloModule m, is_scheduled=true\n%f (p: f32[64,16]) -> f32[64,16] {\n"
      "  %p = f32[64,16]{1,0} parameter(0)\n  %q = f32[16,32]{1,0} parameter(1)\n" +
      fused +
      "}\nENTRY %e () -> f32[64,16] {\n  %x = f32[64,16]{1,0} parameter(0)\n"
      "  %w = f32[16,32]{1,0} parameter(1)\n" +
      entry + "}\n";
  const std::vector<Module> modules = read_modules(text);
  std::string out;
  for (const Launch& launch : program_of(modules.at(0)).launches)
    out += fmt::format("{}{}|{}|{} {} {}", out.empty() ? "" : "; ", launch.kernel, launch.op,
                       launch.op_class, launch.shape, launch.dtype);
  return out;
}

TEST(Hlo, AFusionOfSeveralResultsWritesAll) {
  EXPECT_EQ(launches_of("  %n = f32[64,16]{1,0} negate(%p)\n"
                        "  %m = f32[64,16]{1,0} exponential(%p)\n"
                        "  ROOT %t = (f32[64,16]{1,0}, f32[64,16]{1,0}) tuple(%n, %m)\n",
                        "  %two = (f32[64,16]{1,0}, f32[64,16]{1,0}) fusion(%x), kind=kLoop, "
                        "calls=%f\n"),
            "two|fusion|elementwise n=2048,out=2048,read=4096,write=8192 f32");
  // One of them is a row of a buffer that is updated in place.
  EXPECT_EQ(launches_of("  %r = f32[1,16]{1,0} slice(%p), slice={[0:1], [0:16]}\n"
                        "  %z = s32[] constant(0)\n"
                        "  %u = f32[64,16]{1,0} dynamic-update-slice(%p, %r, %z, %z)\n"
                        "  %n = f32[64,16]{1,0} negate(%p)\n"
                        "  ROOT %t = (f32[64,16]{1,0}, f32[64,16]{1,0}) tuple(%u, %n)\n",
                        "  %two = (f32[64,16]{1,0}, f32[64,16]{1,0}) fusion(%x), kind=kLoop, "
                        "calls=%f\n"),
            "two|fusion|elementwise n=1040,out=1040,read=4096,write=4160 f32");
}

TEST(Hlo, AProductNextToWhatIsNotKnownHasAClassAndNoShape) {
  const std::string product =
      "  %d = f32[64,32]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  const std::string call =
      "  %g = f32[64,32]{1,0} fusion(%x, %w), kind=kCustom, calls=%f, "
      "metadata={op_name=\"jit(f)/layers_10/block_2/dot_general\"}, "
      "backend_config={\"kind\":\"__triton_gemm\"}\n";
  EXPECT_EQ(launches_of(product + "  ROOT %s = f32[64,32]{1,0} sort(%d), dimensions={1}\n", call),
            "g|jit(f)/layers/block/dot_general|gemm  ");
  // Two products have no common shape.
  EXPECT_EQ(launches_of(product + "  ROOT %e = f32[64,32]{1,0} dot(%p, %q), "
                                  "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
                        call),
            "g|jit(f)/layers/block/dot_general|gemm  ");
  EXPECT_EQ(launches_of("  ROOT" + product.substr(1), call),
            "g|jit(f)/layers/block/dot_general|gemm M=64,N=32,K=16,read=6144,write=8192 f32");
}

TEST(Hlo, WorkThatIsStartedAndAwaitedIsWalkedOnce) {
  const std::string start =
      "  %s = ((f32[64,16]), f32[64,16]) fusion-start(%x), calls=%i\n"
      "  %d = f32[64,16] fusion-done(%s)\n}\n"
      "%i (p: f32[64,16]) -> f32[64,16] {\n"
      "  %inner = f32[64,16]{1,0} fusion(%p), kind=kLoop, calls=%f\n";
  EXPECT_EQ(launches_of("  ROOT %n = f32[64,16]{1,0} negate(%p)\n", start),
            "inner|fusion|elementwise n=1024,out=1024,read=4096,write=4096 f32");
}

TEST(Hlo, AFusionOfAnUnknownComputationIsNoLaunch) {
  EXPECT_EQ(launches_of("", "  %a = f32[64,16]{1,0} fusion(%x), kind=kLoop, calls=%gone\n"), "");
  EXPECT_EQ(launches_of("", "  %a = f32[64,16]{1,0} fusion(%x), kind=kLoop, calls=%f\n"), "")
      << "without a root";
}

TEST(Hlo, AttributesEndWhereTheirBracketsDo) {
  Instruction each;
  each.attributes =
      R"(, kind=kLoop, calls=%f.1, frontend={note="a}\"b{(", x={1}}, target="c,d", y=2)";
  EXPECT_EQ(attribute(each, "kind"), "kLoop");
  EXPECT_EQ(attribute(each, "calls"), "f.1");
  EXPECT_EQ(attribute(each, "frontend"), R"({note="a}\"b{(", x={1}})");
  EXPECT_EQ(attribute(each, "target"), "c,d");
  EXPECT_EQ(attribute(each, "y"), "2");
  EXPECT_EQ(attribute(each, "ind"), "");
  EXPECT_EQ(op_name(each), "");
}

TEST(Hlo, BranchesOfAConditionalAreWalked) {
  const auto order = [](const std::string& attributes) {
    std::string text = "HloModule m, is_scheduled=true\n";
    for (const char* name : {"f", "g"})
      text += fmt::format(
          "%{} (p: f32[8]) -> f32[8] {{\n  ROOT %a = f32[8]{{0}} parameter(0)\n}}\n", name);
    for (const char* name : {"f", "g"})
      text += fmt::format(
          "%b{0} () -> f32[8] {{\n  %x{0} = f32[8] fusion(), kind=kLoop, calls=%{0}\n}}\n", name);
    text += "ENTRY %e () -> f32[8] {\n  %c = f32[8] conditional(), " + attributes + "\n}\n";
    const std::vector<Module> modules = read_modules(text);
    const Program program = program_of(modules.at(0));
    std::string out;
    for (const std::uint32_t at : program.order) out += program.launches[at].kernel;
    return out;
  };
  EXPECT_EQ(order("branch_computations={%bf, %bg}"), "xfxg");
  EXPECT_EQ(order("branch_computations={bg}"), "xg");
  EXPECT_EQ(order("true_computation=%bg, false_computation=%bf"), "xgxf");
  EXPECT_EQ(order("branch_computations={"), "");
}

}  // namespace
}  // namespace purlin::profile::hlo
