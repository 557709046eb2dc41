// SPDX-License-Identifier: Apache-2.0
// A rule judges each problem of a kernel by itself. A reader changes the kernel once: alike
// interventions for problems of the same kernels are one.
#include "analyze/advise/ranking/ranking.h"
#include "analyze/advise/rules/pricing.h"

#include <algorithm>
#include <functional>

namespace purlin::analyze {
namespace {

bool is_alike(const Intervention& a, const Intervention& b) {
  if (a.id != b.id || a.kernels.empty()) return false;
  return a.together || (a.kernels == b.kernels && a.kernels_left_out == b.kernels_left_out);
}

template <class T, class Same>
void add_unknown(const std::vector<T>& from, std::vector<T>& into, Same same) {
  for (const T& one : from)
    if (std::none_of(into.begin(), into.end(), [&](const T& known) { return same(known, one); }))
      into.push_back(one);
}

// Their launches are not the same, so the savings add up.
void join_into(Intervention& into, const Intervention& from) {
  into.change.edits.insert(into.change.edits.end(), from.change.edits.begin(),
                           from.change.edits.end());
  into.saved_ns = into.saved_ns + from.saved_ns;
  for (const std::string& kernel : from.kernels) name_label(kernel, into);
  into.freed_bytes += from.freed_bytes;
  into.confidence = std::max(into.confidence, from.confidence);
  add_unknown(from.evidence, into.evidence, [](const Evidence& a, const Evidence& b) {
    return a.what == b.what && a.value == b.value;
  });
  add_unknown(from.assumptions, into.assumptions, std::equal_to<>());
}

}  // namespace

void join_alike(std::vector<Intervention>& interventions) {
  std::vector<Intervention> out;
  for (Intervention& one : interventions) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const Intervention& earlier) {
      return is_alike(earlier, one);
    });
    if (known == out.end())
      out.push_back(std::move(one));
    else
      join_into(*known, one);
  }
  interventions = std::move(out);
}

}  // namespace purlin::analyze
