// SPDX-License-Identifier: Apache-2.0
#include "model/problem/problem.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace purlin {
namespace {

OpInput tensor(std::vector<std::int64_t> dimensions, std::string_view dtype = "c10::BFloat16") {
  return {std::move(dimensions), dtype, "", {}};
}
OpInput scalar(std::string_view value) { return {{}, "Scalar", value, {}}; }
OpInput list(std::string_view value) { return {{}, "ScalarList", value, {}}; }
const OpInput kAbsent = {{}, "", "", {}};

std::string read(std::string_view op, const std::vector<OpInput>& inputs) {
  const Problem problem = problem_of(op, inputs);
  return std::string(problem.op_class) + " " + problem.dtype + " " + to_text(problem.dimensions);
}

TEST(Problem, TextAndBack) {
  const std::vector<Dimension> dimensions = {{"M", 4096}, {"N", 1}, {"stride_H", 2}};
  EXPECT_EQ(to_text(dimensions), "M=4096,N=1,stride_H=2");
  const auto back = dimensions_from_text("M=4096,N=1,stride_H=2");
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back[2].name, "stride_H");
  EXPECT_EQ(back[2].value, 2);
  for (const char* other : {"", "M", "M=", "=4", "M=4,", ",M=4", "M=4 ", "[[4096, 1024], [4]]",
                            "M=99999999999999999999", "M N=4", "M=4,,N=3"})
    EXPECT_TRUE(dimensions_from_text(other).empty()) << other;
}

TEST(Problem, ElementTypesOfEveryFramework) {
  EXPECT_EQ(dtype_of("c10::BFloat16"), "bf16");
  EXPECT_EQ(dtype_of("float"), "f32");
  EXPECT_EQ(dtype_of("long int"), "i64");
  EXPECT_EQ(dtype_of("c10::Float8_e4m3fn"), "f8e4m3");
  EXPECT_EQ(dtype_of("pred"), "bool");
  for (const char* other : {"", "Scalar", "ScalarList", "TensorList", "GenericList", "Device"})
    EXPECT_EQ(dtype_of(other), "") << other;
  EXPECT_EQ(bytes_per_element("bf16"), 2);
  EXPECT_EQ(bytes_per_element("f4e2m1"), 0.5);
  EXPECT_EQ(bytes_per_element(""), 0);
}

TEST(Problem, MatrixProducts) {
  EXPECT_EQ(read("aten::mm", {tensor({4096, 1024}), tensor({1024, 4096})}),
            "gemm bf16 M=4096,N=4096,K=1024");
  EXPECT_EQ(read("aten::addmm", {tensor({1024}), tensor({4096, 1024}), tensor({1024, 1024}),
                                 scalar("1"), scalar("1")}),
            "gemm bf16 M=4096,N=1024,K=1024");
  // A matrix that is added is read; one whose factor is 0 is not.
  EXPECT_EQ(read("aten::addmm", {tensor({8, 4}), tensor({8, 2}), tensor({2, 4}), scalar("1")}),
            "gemm bf16 M=8,N=4,K=2,read=112");
  EXPECT_EQ(read("aten::addmm", {tensor({8, 4}), tensor({8, 2}), tensor({2, 4}), scalar("0")}),
            "gemm bf16 M=8,N=4,K=2");
  EXPECT_EQ(read("aten::bmm", {tensor({16, 128, 64}, "float"), tensor({16, 64, 32}, "float")}),
            "gemm f32 B=16,M=128,N=32,K=64");
  EXPECT_EQ(read("aten::baddbmm", {tensor({1}), tensor({16, 128, 64}), tensor({16, 64, 32})}),
            "gemm bf16 B=16,M=128,N=32,K=64");
  EXPECT_EQ(read("aten::linear", {tensor({512, 8, 1024}), tensor({3072, 1024}), tensor({3072})}),
            "gemm bf16 M=4096,N=3072,K=1024");
  EXPECT_EQ(read("aten::matmul", {tensor({2, 3, 8, 4}), tensor({3, 4, 5})}),
            "gemm bf16 B=6,M=8,N=5,K=4");
  EXPECT_EQ(read("aten::matmul", {tensor({7}), tensor({7})}), "gemm bf16 M=1,N=1,K=7");
  EXPECT_EQ(read("aten::_scaled_mm",
                 {tensor({64, 32}, "c10::Float8_e4m3fn"), tensor({32, 16}, "c10::Float8_e4m3fn"),
                  tensor({}, "float"), tensor({}, "float"), kAbsent, kAbsent, scalar("15")}),
            "gemm f8e4m3 M=64,N=16,K=32,write=2048");
  EXPECT_EQ(read("aten::_int_mm", {tensor({64, 32}, "signed char"), tensor({32, 16}, "char")}),
            "gemm i8 M=64,N=16,K=32,write=4096");
  EXPECT_EQ(read("aten::_grouped_mm", {tensor({100, 8}), tensor({4, 8, 16})}),
            "gemm bf16 M=100,N=16,K=8,read=2624");
}

TEST(Problem, PrimitivesOfJax) {
  for (const auto& [op, op_class] : std::initializer_list<std::pair<const char*, const char*>>{
           {"jit(step)/transpose(jvp(Model))/h/dot_general", "gemm"},
           {"jit(step)/jvp()/conv_general_dilated", "conv"},
           {"jit(step)/jvp(jit(log_softmax))/reduce_max", "reduction"},
           {"jit(step)/integer_pow", "elementwise"},
           {"jit(step)/jit(relu)/max", "elementwise"},
           {"jit(step)/transpose", "layout"},
           {"jit(step)/convert_element_type", "copy"},
           {"jit(step)/pallas_call", "other"},
           {"model/dot_general", "other"}})
    EXPECT_EQ(problem_of(op, {}).op_class, op_class) << op;
}

TEST(Problem, WhatDoesNotFitIsNotGuessed) {
  EXPECT_EQ(read("aten::mm", {tensor({4096, 1024}), tensor({7, 4096})}), "gemm bf16 ");
  EXPECT_EQ(read("aten::mm", {tensor({4096, 1024})}), "gemm bf16 ");
  EXPECT_EQ(read("aten::mm", {}), "gemm  ");
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(read("aten::mm", {tensor({huge, huge}), tensor({huge, huge})}), "gemm bf16 ");
  EXPECT_EQ(read("aten::add", {tensor({huge, huge}), tensor({1})}), "elementwise  ");
  EXPECT_EQ(read("aten::add", {tensor({3}), tensor({4})}), "elementwise  ");
  EXPECT_EQ(read("aten::sum", {tensor({-3, 4})}), "reduction bf16 ");
  EXPECT_EQ(read("aten::convolution", {tensor({1, 2, 3, 4}), tensor({5, 2, 0, 0}), kAbsent,
                                       list("[0, 0]"), list("[-1]"), list("[x]")}),
            "conv bf16 ");
  EXPECT_EQ(read("my::op", {tensor({3})}), "other  ");
  EXPECT_EQ(read("", {}), "other  ");
}

TEST(Problem, Convolutions) {
  const std::vector<OpInput> first = {tensor({32, 3, 224, 224}, "float"),
                                      tensor({64, 3, 7, 7}, "float"),
                                      kAbsent,
                                      list("[2, 2]"),
                                      list("[3, 3]"),
                                      list("[1, 1]"),
                                      scalar("False"),
                                      list("[0, 0]"),
                                      scalar("1")};
  EXPECT_EQ(read("aten::convolution", first),
            "conv f32 N=32,C=3,H=224,W=224,K=64,R=7,S=7,P=112,Q=112,stride=2,padding=3");
  EXPECT_EQ(read("aten::cudnn_convolution",
                 {first[0], first[1], list("[3, 3]"), list("[2, 2]"), list("[1, 1]"), scalar("1")}),
            "conv f32 N=32,C=3,H=224,W=224,K=64,R=7,S=7,P=112,Q=112,stride=2,padding=3");
  // Depthwise, and of uneven settings.
  EXPECT_EQ(read("aten::conv2d", {tensor({1, 8, 10, 12}), tensor({8, 1, 3, 3}), kAbsent,
                                  list("[1, 2]"), list("[1, 1]"), list("[1, 1]"), scalar("8")}),
            "conv bf16 N=1,C=8,H=10,W=12,K=8,R=3,S=3,P=10,Q=6,groups=8,stride_H=1,stride_W=2,"
            "padding=1");
  EXPECT_EQ(read("aten::conv1d", {tensor({4, 80, 3000}), tensor({384, 80, 3}), tensor({384}),
                                  list("[1]"), list("[1]"), list("[1]"), scalar("1")}),
            "conv bf16 N=4,C=80,H=1,W=3000,K=384,R=1,S=3,P=1,Q=3000,padding=1");
  // Its values were not recorded: neither its result's extents nor its stride are known.
  EXPECT_EQ(
      read("aten::cudnn_convolution", {tensor({32, 64, 56, 56}, ""), tensor({64, 64, 3, 3}, "")}),
      "conv  N=32,C=64,H=56,W=56,K=64,R=3,S=3");
  EXPECT_EQ(
      read("aten::convolution_backward",
           {tensor({32, 64, 112, 112}), first[0], first[1], kAbsent, list("[2, 2]"), list("[3, 3]"),
            list("[1, 1]"), scalar("False"), list("[0, 0]"), scalar("1"),
            list("[False, True, False]")}),
      "conv bf16 N=32,C=3,H=224,W=224,K=64,R=7,S=7,P=112,Q=112,stride=2,padding=3,gradients=1");
  EXPECT_EQ(read("aten::cudnn_convolution_backward",
                 {tensor({32, 512, 7, 7}, ""), tensor({32, 2048, 7, 7}, ""),
                  tensor({2048, 512, 1, 1}, "")}),
            "conv  N=32,C=512,H=7,W=7,K=2048,R=1,S=1,P=7,Q=7,gradients=2");
  // A transposed convolution is the gradient of the one that goes the other way.
  EXPECT_EQ(read("aten::convolution",
                 {tensor({1, 16, 8, 8}), tensor({16, 4, 2, 2}), kAbsent, list("[2, 2]"),
                  list("[0, 0]"), list("[1, 1]"), scalar("True"), list("[0, 0]"), scalar("1")}),
            "conv bf16 N=1,C=4,H=16,W=16,K=16,R=2,S=2,P=8,Q=8,stride=2,transposed=1");
}

TEST(Problem, Attention) {
  const OpInput q = tensor({8, 16, 512, 64}), s = scalar("0.");
  EXPECT_EQ(read("aten::_scaled_dot_product_cudnn_attention",
                 {q, q, q, kAbsent, scalar("True"), s, scalar("False"), scalar("False")}),
            "attention bf16 B=8,H=16,Sq=512,Sk=512,D=64");
  EXPECT_EQ(read("aten::_scaled_dot_product_flash_attention", {q, q, q, s, scalar("True")}),
            "attention bf16 B=8,H=16,Sq=512,Sk=512,D=64,causal=1");
  EXPECT_EQ(read("aten::_scaled_dot_product_cudnn_attention_backward", {q, q, q, q}),
            "attention bf16 B=8,H=16,Sq=512,Sk=512,D=64,backward=1");
  // Masks of truth values, and what is added; the op that is called in turn may get it spread.
  for (const auto& [type, name] : {std::pair{"bool", "mask"}, std::pair{"c10::BFloat16", "bias"}})
    EXPECT_EQ(read("aten::scaled_dot_product_attention",
                   {q, q, q, tensor({512, 512}, type), s, scalar("False")}),
              "attention bf16 B=8,H=16,Sq=512,Sk=512,D=64," + std::string(name) + "=262144");
  EXPECT_EQ(read("aten::scaled_dot_product_attention", {q, q, q, kAbsent, s, scalar("True")}),
            "attention bf16 B=8,H=16,Sq=512,Sk=512,D=64,causal=1");
  // Grouped queries, decoding one token, sequence before heads.
  EXPECT_EQ(read("flash_attn::_flash_attn_forward",
                 {tensor({4, 1, 32, 128}), tensor({4, 2048, 8, 128}), tensor({4, 2048, 8, 128})}),
            "attention bf16 B=4,H=32,Hk=8,Sq=1,Sk=2048,D=128");
  const auto packed = [&](std::int64_t tokens, std::string_view longest) {
    const OpInput x = tensor({tokens, 16, 64});
    return read("flash_attn::_flash_attn_varlen_forward",
                {x, x, x, tensor({5}, "int"), tensor({5}, "int"), scalar(longest), scalar(longest),
                 s, s, scalar("True")});
  };
  EXPECT_EQ(packed(1000, "300"), "attention bf16 B=4,H=16,Tq=1000,Tk=1000,D=64,causal=1");
  EXPECT_EQ(packed(1200, "300"), "attention bf16 B=4,H=16,Sq=300,Sk=300,D=64,causal=1");
}

TEST(Problem, NormsAndSoftmax) {
  const OpInput x = tensor({8, 512, 1024}, "float"), w = tensor({1024}, "float");
  EXPECT_EQ(read("aten::native_layer_norm", {x, list("[1024]"), w, w, scalar("1e-05")}),
            "norm f32 rows=4096,cols=1024,params=2048");
  EXPECT_EQ(read("aten::native_layer_norm_backward",
                 {x, x, list("[1024]"), tensor({8, 512, 1}), tensor({8, 512, 1}), w, w}),
            "norm f32 rows=4096,cols=1024,params=2048,backward=1");
  EXPECT_EQ(read("aten::cudnn_batch_norm",
                 {tensor({32, 64, 112, 112}, ""), tensor({64}, ""), tensor({64}, "")}),
            "norm  rows=64,cols=401408,params=128");
  EXPECT_EQ(
      read("aten::group_norm", {tensor({2, 32, 4, 4}), scalar("8"), tensor({32}), tensor({32})}),
      "norm bf16 rows=16,cols=64,params=64");
  EXPECT_EQ(read("_C::fused_add_rms_norm", {tensor({4, 8}), tensor({4, 8}), tensor({8})}),
            "norm bf16 rows=4,cols=8,params=8,rms=1,read=128,write=128");
  EXPECT_EQ(read("aten::_softmax", {x, scalar("-1"), scalar("False")}),
            "softmax f32 rows=4096,cols=1024");
  EXPECT_EQ(read("aten::_log_softmax_backward_data", {x, x, scalar("1")}),
            "softmax f32 rows=8192,cols=512,backward=1");
  EXPECT_EQ(read("aten::_log_softmax", {tensor({32, 1000}, "")}), "softmax  n=32000");
}

TEST(Problem, ElementwiseReadsAndWritesWhatItMust) {
  const OpInput x = tensor({64, 1024, 4096}), f = tensor({8, 512, 1024}, "float");
  EXPECT_EQ(read("aten::tanh", {x}), "elementwise bf16 n=268435456,inputs=1");
  // A broadcast input is read once.
  EXPECT_EQ(read("aten::add", {x, tensor({4096}), scalar("1")}),
            "elementwise bf16 n=268435456,inputs=2,in=268439552");
  // A number, wrapped, is no input.
  EXPECT_EQ(read("aten::mul", {x, {{}, "double", "", {}}}),
            "elementwise bf16 n=268435456,inputs=1");
  EXPECT_EQ(read("aten::add", {f, tensor({8, 512, 1024}), scalar("1")}),
            "elementwise f32 n=4194304,inputs=2,read=25165824");
  EXPECT_EQ(read("aten::eq", {f, f}), "elementwise f32 n=4194304,inputs=2,write=4194304");
  EXPECT_EQ(read("aten::fill_", {f, scalar("0")}), "elementwise f32 n=4194304,inputs=0");
  EXPECT_EQ(read("aten::copy_", {tensor({8, 512, 1024}), f, scalar("False")}),
            "copy f32 n=4194304,inputs=1,write=8388608");
  EXPECT_EQ(read("aten::native_dropout", {x, scalar("0.1"), scalar("True")}),
            "elementwise bf16 n=268435456,inputs=1,write=805306368");
  // An old trace without types.
  EXPECT_EQ(read("aten::add_", {tensor({32, 256, 56, 56}, ""), tensor({32, 256, 56, 56}, "")}),
            "elementwise  n=25690112,inputs=2");
}

TEST(Problem, ReductionsAndPools) {
  const OpInput x = tensor({4096, 1024});
  EXPECT_EQ(read("aten::sum", {x, list("[0]"), scalar("True"), kAbsent}),
            "reduction bf16 n=4194304,out=1024");
  EXPECT_EQ(read("aten::mean", {x, kAbsent}), "reduction bf16 n=4194304,out=1");
  EXPECT_EQ(read("aten::max", {x}), "reduction bf16 n=4194304,out=1");
  EXPECT_EQ(read("aten::argmax", {x, scalar("-1"), scalar("False")}),
            "reduction bf16 n=4194304,out=4096");
  EXPECT_EQ(read("aten::sum", {x, list("[5]")}), "reduction bf16 n=4194304");
  EXPECT_EQ(read("aten::cumsum", {x, scalar("0")}), "reduction bf16 n=4194304,out=4194304");
  EXPECT_EQ(read("aten::max_pool2d_with_indices",
                 {tensor({32, 64, 112, 112}), list("[3, 3]"), list("[2, 2]"), list("[1, 1]")}),
            "reduction bf16 n=25690112,out=6422528");
}

TEST(Problem, Transforms) {
  const OpInput real = tensor({128, 2, 100003}, "float");
  EXPECT_EQ(read("aten::_fft_r2c", {real, list("[2]"), scalar("0"), scalar("True")}),
            "fft f32 B=256,n=100003,real=1");
  EXPECT_EQ(read("aten::_fft_r2c", {real, list("[1, -1]"), scalar("0"), scalar("True")}),
            "fft f32 B=128,n=200006,real=1");
  const OpInput spectrum = tensor({128, 50002}, "c10::complex<float>");
  EXPECT_EQ(read("aten::_fft_c2r", {spectrum, list("[1]"), scalar("2"), scalar("100003")}),
            "fft c64 B=128,n=100003,real=1");
  EXPECT_EQ(read("aten::_fft_c2c", {spectrum, list("[0, 1]"), scalar("0"), scalar("True")}),
            "fft c64 n=6400256");
  // What was not recorded, or cannot be.
  for (const char* axes : {"[3]", "[1, 1]", "[]", ""})
    EXPECT_EQ(read("aten::_fft_c2c", {spectrum, list(axes), scalar("0"), scalar("True")}),
              "fft c64 ")
        << axes;
  for (const char* last : {"", "0", "-4", "200000"})
    EXPECT_EQ(read("aten::_fft_c2r", {spectrum, list("[1]"), scalar("2"), scalar(last)}),
              "fft c64 ")
        << last;
}

TEST(Problem, DataMovement) {
  EXPECT_EQ(read("aten::embedding", {tensor({50257, 768}), tensor({8, 1024}, "long int")}),
            "embedding bf16 indices=8192,cols=768,rows=50257");
  EXPECT_EQ(read("aten::embedding_dense_backward",
                 {tensor({8, 1024, 768}), tensor({8, 1024}, "int"), scalar("50257")}),
            "embedding bf16 indices=8192,cols=768,rows=50257,index_bytes=4,backward=1");
  EXPECT_EQ(read("aten::index_select", {tensor({100, 16}), scalar("0"), tensor({7}, "long int")}),
            "embedding bf16 indices=7,cols=16,rows=100");
  // Only all members tell what a list of tensors holds.
  OpInput parameters = {{1024, 1024}, "TensorList", "", {{1024, 1024}, {1024}}};
  EXPECT_EQ(read("aten::_fused_adamw_",
                 {parameters, parameters, parameters, parameters, {{}, "TensorList", "", {}}}),
            "optimizer  n=1049600,inputs=4,outputs=3,tensors=2");
  EXPECT_EQ(read("aten::_foreach_add_", {parameters, scalar("1")}),
            "optimizer  n=1049600,inputs=1,outputs=1,tensors=2");
  parameters.members.clear();
  EXPECT_EQ(read("aten::_fused_adamw_", {parameters, parameters}), "optimizer  ");
  EXPECT_EQ(read("aten::cat", {{{2, 3}, "TensorList", "", {{2, 3}, {4, 3}}}, scalar("0")}),
            "layout  n=18,inputs=1");
  EXPECT_EQ(read("c10d::_allgather_base_", {tensor({800}), tensor({100})}),
            "communication bf16 in=100,out=800");
  EXPECT_EQ(to_text(communication_problem(1 << 20, 1 << 20, 8, "Float").dimensions),
            "in=1048576,out=1048576,ranks=8");
}

TEST(Problem, TritonKernelsWithTheirArguments) {
  EXPECT_EQ(read("triton_poi_fused_add_mul_tanh_0",
                 {tensor({1024, 4096}), tensor({4096}), tensor({1024, 4096}), scalar("4194304")}),
            "elementwise bf16 n=4194304,inputs=2,read=8396800,write=8388608");
}

TEST(Problem, RangesOfEmitNvtx) {
  const NvtxOp mm = op_from_nvtx("aten::mm, seq = 7, op_id = 12, sizes = [[8, 2], [2, 4]]");
  EXPECT_EQ(mm.op, "aten::mm");
  EXPECT_EQ(to_text(problem_of(mm.op, mm.inputs).dimensions), "M=8,N=4,K=2");
  const NvtxOp add = op_from_nvtx("aten::addmm, sizes = [[4], [8, 2], [2, 4], [], []]");
  EXPECT_EQ(to_text(problem_of(add.op, add.inputs).dimensions), "M=8,N=4,K=2");
  EXPECT_EQ(op_from_nvtx("forward pass").op, "forward pass");
  EXPECT_TRUE(op_from_nvtx("forward pass").inputs.empty());
  for (const char* odd : {"", ", sizes = [", "a, sizes = [[", "a, sizes = [[1, 2", "x, sizes = []"})
    EXPECT_TRUE(op_from_nvtx(odd).inputs.empty()) << odd;
}

TEST(Problem, InstructionsOfXla) {
  const auto hlo = [](std::string_view text) {
    const Problem problem = problem_of_hlo(text);
    return std::string(problem.op_class) + " " + problem.dtype + " " + to_text(problem.dimensions);
  };
  EXPECT_EQ(hlo("%dot.4 = f32[8,4]{1,0} dot(bf16[8,2]{1,0} %a, bf16[2,4]{1,0} %b), "
                "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "gemm bf16 M=8,N=4,K=2,write=128");
  EXPECT_EQ(hlo("ROOT %custom-call.1 = (bf16[6,8,5]{2,1,0}, s8[4194304]{0}) custom-call(bf16[6,8,4]"
                "{2,1,0} %x, bf16[6,4,5]{2,1,0} %y), custom_call_target=\"__cublas$gemm\", "
                "backend_config={\"gemm_backend_config\":{\"dot_dimension_numbers\":{"
                "\"lhs_contracting_dimensions\":[\"2\"],\"rhs_contracting_dimensions\":[\"1\"],"
                "\"lhs_batch_dimensions\":[\"0\"],\"rhs_batch_dimensions\":[\"0\"]}}}"),
            "gemm bf16 B=6,M=8,N=5,K=4");
  EXPECT_EQ(
      hlo("%conv = f32[32,112,112,64]{3,2,1,0} convolution(f32[32,224,224,3] %i, f32[7,7,3,64] "
          "%w), window={size=7x7 stride=2x2 pad=3_3x3_3}, dim_labels=b01f_01io->b01f"),
      "conv f32 N=32,C=3,H=224,W=224,K=64,R=7,S=7,P=112,Q=112");
  EXPECT_EQ(hlo("%loop = bf16[64,32]{1,0} fusion(bf16[64,32]{1,0} %a, f32[32]{0} %b), kind=kLoop, "
                "calls=%fused"),
            "elementwise bf16 n=2048,inputs=2,in=2080,read=4224");
  EXPECT_EQ(hlo("%r = f32[64]{0} reduce(f32[64,32]{1,0} %a, f32[] %c), dimensions={1}"),
            "reduction f32 n=2048,out=64");
  EXPECT_EQ(hlo("%ar = f32[1024]{0} all-reduce(f32[1024]{0} %g), replica_groups={{0,1,2,3}}"),
            "communication f32 in=1024,out=1024,ranks=4");
  EXPECT_EQ(hlo("%ag = f32[4096] all-gather(f32[1024] %g), replica_groups=[2,4]<=[8]"),
            "communication f32 in=1024,out=4096,ranks=4");
  for (const char* odd : {"", "=", "a = b", "%a = f32[ dot(", "%a = (f32[2], (", "a = f32[2] add",
                          "%a = f32[99999999999999999999] dot(f32[1]) lhs_contracting_dims={7}"})
    EXPECT_EQ(problem_of_hlo(odd).dimensions.size(), 0u) << odd;
}

}  // namespace
}  // namespace purlin
