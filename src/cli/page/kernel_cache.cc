// SPDX-License-Identifier: Apache-2.0
#include "cli/page/kernel_cache.h"

#include "base/text.h"
#include "cache/layers/layers.h"
#include "cache/store/entry_document.h"
#include "model/document.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace purlin::cli {
namespace {

constexpr std::size_t kMostEntries = 500;

// Names as they are compared: a spec calls "row-softmax" what its source calls row_softmax.
std::string plain_name(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

struct PageKernels {
  std::vector<std::string> names;
  std::set<std::string> ops;
};

PageKernels kernels_of(const page::Page& page) {
  PageKernels kernels;
  for (const page::Document& document : page.documents) {
    const Json head = document.head();
    if (!starts_with(head["schema"].as_string(), "purlin.report/")) continue;
    for (const Json& kernel : head["kernels"].items()) {
      kernels.names.push_back(plain_name(kernel["name"].as_string()));
      kernels.ops.insert(kernel["op_class"].as_string());
    }
  }
  return kernels;
}

// Of the same op, or with a kernel of its name.
bool may_be_of(const cache::CacheKey& key, const PageKernels& kernels) {
  if (kernels.ops.count(key.op) > 0) return true;
  const std::string wanted = plain_name(key.kernel);
  return std::any_of(kernels.names.begin(), kernels.names.end(), [&](const std::string& name) {
    return name.find(wanted) != std::string::npos;
  });
}

Json shown_entry(const cache::StoredEntry& stored) {
  const Json whole = cache::entry_document(stored, true);
  Json shown = Json::object();
  for (const Json::Member& member : whole.members())
    if (!starts_with(member.key, "samples_") && member.key != "host" && member.key != "user" &&
        member.key != "statuses" && member.key != "facts")
      shown.set(member.key, member.value);
  return shown;
}

}  // namespace

void add_kernel_cache(const Context& context, page::Page& page) {
  const PageKernels kernels = kernels_of(page);
  const auto is_cache = [](const page::Document& one) { return one.name() == "cache"; };
  if (kernels.names.empty() || std::any_of(page.documents.begin(), page.documents.end(), is_cache))
    return;
  const Result<cache::Layers> layers =
      cache::Layers::open(cache::Store::default_directory(), cache::Layers::default_below());
  if (!layers.is_ok())
    return context.log.warn("without the config cache: {}", layers.status().message());
  Json entries = Json::array();
  std::set<std::string> records;
  std::size_t left_out = 0;
  for (const cache::Store& store : layers->stores())
    for (const cache::StoredEntry& stored : store.current()) {
      if (!may_be_of(stored.entry.key, kernels) || !records.insert(stored.record).second) continue;
      if (entries.size() == kMostEntries)
        ++left_out;
      else
        entries.push(shown_entry(stored));
    }
  page.documents.emplace_back("cache",
                              Json::object({{"schema", "purlin.cache/1"},
                                            {"directory", cache::Store::default_directory()},
                                            {"entries", std::move(entries)},
                                            {"entries_left_out", left_out}}));
}

}  // namespace purlin::cli
