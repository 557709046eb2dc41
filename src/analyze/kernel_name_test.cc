// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name.h"

#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(KernelName, RealNamesAreReadAndClassified) {
  const auto table = read_file(join_path(PURLIN_SOURCE_DIR, "tests/golden/kernel_names.tsv"));
  ASSERT_TRUE(table.is_ok());
  int checked = 0;
  for (const std::string& line : split(*table, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> columns = split(line, '\t');
    ASSERT_EQ(columns.size(), 4u) << line;
    const KernelName name = describe_kernel(columns[3]);
    EXPECT_EQ(name.family, columns[0]) << columns[3];
    EXPECT_EQ(name.op_class, columns[1]) << columns[3];
    EXPECT_EQ(name.brief, columns[2]) << columns[3];
    ++checked;
  }
  EXPECT_GE(checked, 100);
}

TEST(KernelName, MangledNamesAreDemangled) {
  const KernelName name = describe_kernel("_Z6reduceILi4EfEvPT0_");
  EXPECT_EQ(name.full, "void reduce<4, float>(float*)");
  EXPECT_EQ(name.brief, "reduce");
  EXPECT_EQ(name.arguments, "4, float");
}

std::vector<std::string> labels(const std::vector<std::string>& recorded) {
  std::vector<KernelName> names;
  for (const std::string& each : recorded) names.push_back(describe_kernel(each));
  std::vector<const KernelName*> pointers;
  for (const KernelName& name : names) pointers.push_back(&name);
  return tell_apart(pointers);
}

TEST(KernelName, NamesakesAreToldApartByWhatDiffers) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels({"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, "
                    "float, false>(int)",
                    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<"
                    "c10::BFloat16, float, false>(int)"}),
            (Labels{"vectorized_layer_norm_kernel<float>", "vectorized_layer_norm_kernel<bf16>"}));
  EXPECT_EQ(labels({"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
                    "at::native::MeanOps<float, float>, unsigned int, float, 4> >(int)",
                    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
                    "at::native::MeanOps<float, float>, unsigned int, float, 4> >(int)"}),
            (Labels{"reduce mean<float> <512, 1>", "reduce mean<float> <128, 4>"}));
  EXPECT_EQ(labels({"void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<"
                    "float, float, float, at::native::MulFunctor<float> >, int>(int)",
                    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<"
                    "float, float, float, at::native::MulFunctor<float> >, int>(int)"}),
            (Labels{"vectorized_elementwise mul<float> <BinaryFunctor>",
                    "vectorized_elementwise mul<float> <AUnaryFunctor>"}));
  EXPECT_EQ(labels({"f<(Kind)1>(int)", "f<(Kind)2>(int)", "f(int)"}),
            (Labels{"f<1>", "f<2>", "f"}));
  EXPECT_EQ(labels({"g(int)", "g(float)"}), (Labels{"g", "g #2"}));
  EXPECT_EQ(labels({"<,>", "<", ""}).size(), 3u);
}

TEST(KernelName, StrangeNamesStayReadable) {
  for (const char* odd :
       {"", "(", "<", ">", "a<b", "a(b", "::", "void ", "f<>()", "_Z", "a->b", "operator()",
        "x<(anonymous namespace)::y>", "{lambda()#1}", "void elementwise_kernel<,>(",
        "elementwise_kernel<gpu_kernel_impl<>>", "reduce_kernel<func<{lambda(>"})
    EXPECT_EQ(describe_kernel(odd).brief.empty(), std::string_view(odd).empty()) << odd;
  // Nesting without end neither overflows the stack nor takes forever.
  std::string deep = "elementwise_kernel<";
  for (int i = 0; i < 20000; ++i) deep += "gpu_kernel_impl<";
  EXPECT_FALSE(describe_kernel(deep).brief.empty());
}

}  // namespace
}  // namespace purlin::analyze
