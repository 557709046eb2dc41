// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/passes.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <utility>

namespace purlin::profile {
namespace {

// "/run/pass_2/host/1_kernel_trace.csv" -> "/run//host", "pass_2": the folder of one pass.
std::pair<std::string, std::string> pass_of(const std::string& path) {
  std::pair<std::string, std::string> found;
  for (const std::string& part : split(parent_path(path), '/')) {
    const std::size_t digits = part.find_last_not_of("0123456789") + 1;
    const bool is_pass = digits < part.size() &&
                         (part.substr(0, digits) == "pass_" || part.substr(0, digits) == "pmc_");
    if (is_pass && found.second.empty())
      found.second = part;
    else
      found.first += "/" + part;
  }
  return found;
}

}  // namespace

void mark_pass_folders(const std::vector<RocprofFile>& files, std::vector<RocprofHeader>& headers) {
  std::map<std::string, std::pair<std::size_t, std::string>> first;  // by length, then by text
  const auto order = [](const std::string& pass) { return std::pair(pass.size(), pass); };
  for (const RocprofHeader& header : headers) {
    const auto [run, pass] = pass_of(files[header.file].name);
    if (pass.empty()) continue;
    const auto [at, added] = first.try_emplace(run, order(pass));
    if (!added) at->second = std::min(at->second, order(pass));
  }
  for (RocprofHeader& header : headers) {
    const auto [run, pass] = pass_of(files[header.file].name);
    if (!pass.empty() && order(pass) != first.at(run)) header.later_pass = true;
  }
}

void mark_pass_tables(const std::vector<RocprofFile>& files, std::vector<RocprofHeader>& headers) {
  std::map<std::string, std::vector<RocprofHeader*>> folders;
  for (RocprofHeader& header : headers)
    if (header.table == RocprofTable::kKernels && header.numbered && !header.later_pass &&
        files[header.file].name.find("kernel_trace") == std::string::npos)
      folders[parent_path(files[header.file].name)].push_back(&header);
  for (auto& [folder, tables] : folders) {
    const RocprofHeader* counted = tables.front();
    const auto rank = [&](const RocprofHeader& header) {  // which table the launches are taken from
      if (base_name(files[header.file].name) == "pmc_perf.csv") return 0;
      if (base_name(files[header.file].name) == "timestamps.csv") return 1;
      return header.timed ? 2 : 3;
    };
    for (const RocprofHeader* table : tables)
      if (rank(*table) < rank(*counted)) counted = table;
    // Tables with the same counters are those of several processes; a list of the launches without
    // times (pmc_dispatch_info.csv) repeats the launches of a table with times.
    for (RocprofHeader* table : tables)
      table->later_pass = table->counters != counted->counters || (counted->timed && !table->timed);
  }
}

}  // namespace purlin::profile
