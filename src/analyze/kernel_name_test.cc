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
