// SPDX-License-Identifier: Apache-2.0
#include "fleet/alerts/finding.h"

#include "base/hash.h"
#include "base/time.h"
#include "fleet/percent.h"

namespace purlin::fleet {
namespace {

std::string without_slash(const std::string& url) {
  return url.substr(0, url.find_last_not_of('/') + 1);
}

Finding slower_finding(const analysis::SlowerKernel& row, const std::string& server) {
  Finding finding;
  finding.kind = "slower";
  finding.kernel = row.key.kernel, finding.gpu = row.key.gpu;
  finding.ratio = row.ratio, finding.lost_gpu_s = row.lost_gpu_s, finding.at_ns = row.at_ns;
  finding.link = history_link(server, row.key.kernel, row.key.gpu);
  finding.command = analysis::bisect_command(row);
  finding.title = fmt::format("{} is {:.1f} % slower on {}", row.key.kernel, (row.ratio - 1) * 100,
                              row.key.gpu);
  finding.text = fmt::format(
      "Since {}, with the mix of shapes held fixed: {:+.1f} % to {:+.1f} % ({:.0f} % confidence, "
      "{} "
      "nodes). Cost so far: {:.0f} GPU seconds.",
      format_rfc3339(row.at_ns), (row.low - 1) * 100, (row.high - 1) * 100, row.confidence * 100,
      row.nodes, row.lost_gpu_s);
  if (row.marks.empty())
    finding.text += " No change of build, driver or toolkit was recorded then.";
  for (const analysis::EnvironmentMark& mark : row.marks)
    finding.text +=
        fmt::format(" The {} changed from {} to {}.", mark.what, mark.before, mark.after);
  return finding;
}

Finding straggler_finding(const analysis::Straggler& row, const std::string& server,
                          std::int64_t now_ns) {
  Finding finding;
  finding.kind = "straggler";
  finding.node = row.node, finding.gpu = row.gpu, finding.at_ns = now_ns;
  finding.lost_gpu_s = row.lost_gpu_s;
  const double score =
      row.slow_to_peers ? row.relative_score.value_or(1) : row.individual_score.value_or(1);
  finding.ratio = score > 0 ? 1 / score : 0;
  finding.title = fmt::format("GPU {} of {} takes {:.2f}x as long as {}", row.device, row.node,
                              finding.ratio, row.slow_to_peers ? "its peers" : "it did");
  finding.text = fmt::format(
      "{} peers run the same kernels at the same shapes ({} of them compared). Most time is lost "
      "in "
      "{}. Cost: {:.0f} GPU seconds.",
      row.peers, row.strata, row.worst_kernel, row.lost_gpu_s);
  finding.link = without_slash(server) + "/#1/nodes?node=" + percent_encoded(row.node);
  return finding;
}

}  // namespace

std::string Finding::id() const {
  FieldHasher hasher;
  hasher.add(kind).add(kernel).add(gpu).add(node);
  return hasher.hex().substr(0, 16);
}

std::string history_link(const std::string& server, const std::string& kernel,
                         const std::string& gpu) {
  return without_slash(server) + "/#1/kernels?begin=-30d&kernel=" + percent_encoded(kernel) +
         (gpu.empty() ? "" : "&model=" + percent_encoded(gpu));
}

std::vector<Finding> findings_of(const analysis::Slower& slower,
                                 const analysis::Stragglers& stragglers,
                                 const std::vector<analysis::ThinNode>& thin,
                                 const std::string& server, std::int64_t now_ns) {
  std::vector<Finding> findings;
  for (const analysis::SlowerKernel& row : slower.kernels)
    if (row.alarm) findings.push_back(slower_finding(row, server));
  for (const analysis::Straggler& row : stragglers.devices_slow)
    findings.push_back(straggler_finding(row, server, now_ns));
  for (const analysis::ThinNode& node : thin) {
    Finding finding;
    finding.kind = "thin", finding.node = node.node, finding.at_ns = now_ns;
    finding.title = fmt::format("{} is not seen well enough for conclusions", node.node);
    finding.text = node.why + ".";
    finding.link = without_slash(server) + "/#1/nodes?node=" + percent_encoded(node.node);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace purlin::fleet
