// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/tables.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace purlin::profile {
namespace {

using TableColumns = RocprofColumns;

struct Spelling {
  std::string_view text;  // lower case, without '_' and '-'
  TableColumns::Name name;
};

constexpr Spelling kSpellings[] = {
    {"kernelname", TableColumns::kKernelName},
    {"function", TableColumns::kFunction},
    {"name", TableColumns::kName},
    {"kind", TableColumns::kKind},
    {"domain", TableColumns::kDomain},
    {"direction", TableColumns::kDirection},
    {"beginns", TableColumns::kStart},
    {"starttimestamp", TableColumns::kStart},
    {"startns", TableColumns::kStart},
    {"endns", TableColumns::kEnd},
    {"endtimestamp", TableColumns::kEnd},
    {"durationns", TableColumns::kDuration},
    {"gpuid", TableColumns::kAgent},
    {"agentid", TableColumns::kAgent},
    {"sourceagentid", TableColumns::kSourceAgent},
    {"destinationagentid", TableColumns::kTargetAgent},
    {"queueid", TableColumns::kQueue},
    {"streamid", TableColumns::kStream},
    {"pid", TableColumns::kProcess},
    {"processid", TableColumns::kProcess},
    {"tid", TableColumns::kThread},
    {"threadid", TableColumns::kThread},
    {"correlationid", TableColumns::kCorrelation},
    {"dispatchid", TableColumns::kDispatch},
    {"grd", TableColumns::kGrid},
    {"gridsize", TableColumns::kGrid},
    {"gridsizex", TableColumns::kGridX},
    {"gridsizey", TableColumns::kGridY},
    {"gridsizez", TableColumns::kGridZ},
    {"wgr", TableColumns::kGroup},
    {"workgroupsize", TableColumns::kGroup},
    {"workgroupsizex", TableColumns::kGroupX},
    {"workgroupsizey", TableColumns::kGroupY},
    {"workgroupsizez", TableColumns::kGroupZ},
    {"lds", TableColumns::kShared},
    {"ldsblocksize", TableColumns::kShared},
    {"ldsperworkgroup", TableColumns::kShared},
    {"groupsegmentsize", TableColumns::kShared},
    {"scr", TableColumns::kScratch},
    {"scratchsize", TableColumns::kScratch},
    {"scratchperworkitem", TableColumns::kScratch},
    {"privatesegmentsize", TableColumns::kScratch},
    {"vgpr", TableColumns::kRegisters},
    {"archvgpr", TableColumns::kRegisters},
    {"vgprcount", TableColumns::kRegisters},
    {"archvgprcount", TableColumns::kRegisters},
    {"accumvgpr", TableColumns::kAccumulators},
    {"accumvgprcount", TableColumns::kAccumulators},
    {"wavesize", TableColumns::kWaveSize},
    {"wavefrontsize", TableColumns::kWaveSize},
    {"countername", TableColumns::kCounterName},
    {"countervalue", TableColumns::kCounterValue},
    {"calls", TableColumns::kCalls},
    {"totaldurationns", TableColumns::kTotal},
    {"nodeid", TableColumns::kNode},
    {"logicalnodeid", TableColumns::kLogicalNode},
    {"agenttype", TableColumns::kAgentType},
    {"productname", TableColumns::kProduct},
    {"cucount", TableColumns::kUnits},
    {"maxengineclkfcompute", TableColumns::kClock},
    {"ldssizeinkb", TableColumns::kSharedKb},
    {"gpuarch", TableColumns::kArch},
    {"gpusoc", TableColumns::kArch},
    {"gpumodel", TableColumns::kModel},
    {"cupergpu", TableColumns::kUnits},
    {"numcu", TableColumns::kUnits},
    {"maxsclk", TableColumns::kClock},
    {"sclk", TableColumns::kClock},
    {"hbmbw", TableColumns::kBandwidth},
};

// TableColumns of a launch that are neither asked for nor counters.
constexpr std::string_view kOthers[] = {
    "index",      "queueindex", "sgpr",     "sgprcount", "fbar",   "sig",       "obj",
    "dispatchns", "completens", "kernelid", "guid",      "nodeid", "averagens", "percentage",
    "minns",      "maxns",      "stddev",   "recordid",  "xccid",  "wavesize"};

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : trim(name))
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

RocprofColumns::RocprofColumns(std::span<const std::string_view> header) : size_(header.size()) {
  at_.fill(kAbsent);
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string name = plain(header[i]);
    const auto known = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                    [&](const Spelling& s) { return s.text == name; });
    if (known != std::end(kSpellings)) {
      if (at_[known->name] == kAbsent) at_[known->name] = i;
    } else if (!name.empty() &&
               std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)) {
      counters_.emplace_back(i, trim(header[i]));
    }
  }
}

RocprofTable RocprofColumns::table() const {
  const bool timed = has(kStart) && has(kEnd);
  if (has(kCounterName) && has(kCounterValue)) return RocprofTable::kCounters;
  if (has(kAgentType) && has(kNode)) return RocprofTable::kAgents;
  if (has(kFunction) && timed) return RocprofTable::kCalls;
  if (has(kDirection) && timed) return RocprofTable::kCopies;
  if (has(kKernelName) && (timed || has(kDuration) || has(kDispatch) || has(kGrid)))
    return RocprofTable::kKernels;
  if (has(kArch) && has(kUnits)) return RocprofTable::kSystem;
  if (has(kBandwidth)) return RocprofTable::kRoofline;
  if (has(kName) && has(kCalls) && has(kTotal)) return RocprofTable::kStats;
  return RocprofTable::kNone;
}

std::string_view without_clone_marks(std::string_view kernel) {
  kernel = trim(kernel);
  for (const std::string_view mark : {" [clone .kd]", " (.kd)", ".kd"})
    if (ends_with(kernel, mark)) kernel.remove_suffix(mark.size());
  return kernel;
}

}  // namespace purlin::profile
