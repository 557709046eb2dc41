// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocprof_tables.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace purlin::profile {
namespace {

using Columns = RocprofColumns;

struct Spelling {
  std::string_view text;  // lower case, without '_' and '-'
  Columns::Name name;
};

constexpr Spelling kSpellings[] = {
    {"kernelname", Columns::kKernelName},
    {"function", Columns::kFunction},
    {"name", Columns::kName},
    {"kind", Columns::kKind},
    {"domain", Columns::kDomain},
    {"direction", Columns::kDirection},
    {"beginns", Columns::kStart},
    {"starttimestamp", Columns::kStart},
    {"startns", Columns::kStart},
    {"endns", Columns::kEnd},
    {"endtimestamp", Columns::kEnd},
    {"durationns", Columns::kDuration},
    {"gpuid", Columns::kAgent},
    {"agentid", Columns::kAgent},
    {"sourceagentid", Columns::kSourceAgent},
    {"destinationagentid", Columns::kTargetAgent},
    {"queueid", Columns::kQueue},
    {"streamid", Columns::kStream},
    {"pid", Columns::kProcess},
    {"processid", Columns::kProcess},
    {"tid", Columns::kThread},
    {"threadid", Columns::kThread},
    {"correlationid", Columns::kCorrelation},
    {"dispatchid", Columns::kDispatch},
    {"grd", Columns::kGrid},
    {"gridsize", Columns::kGrid},
    {"gridsizex", Columns::kGridX},
    {"gridsizey", Columns::kGridY},
    {"gridsizez", Columns::kGridZ},
    {"wgr", Columns::kGroup},
    {"workgroupsize", Columns::kGroup},
    {"workgroupsizex", Columns::kGroupX},
    {"workgroupsizey", Columns::kGroupY},
    {"workgroupsizez", Columns::kGroupZ},
    {"lds", Columns::kShared},
    {"ldsblocksize", Columns::kShared},
    {"ldsperworkgroup", Columns::kShared},
    {"groupsegmentsize", Columns::kShared},
    {"scr", Columns::kScratch},
    {"scratchsize", Columns::kScratch},
    {"scratchperworkitem", Columns::kScratch},
    {"privatesegmentsize", Columns::kScratch},
    {"vgpr", Columns::kRegisters},
    {"archvgpr", Columns::kRegisters},
    {"vgprcount", Columns::kRegisters},
    {"archvgprcount", Columns::kRegisters},
    {"accumvgpr", Columns::kAccumulators},
    {"accumvgprcount", Columns::kAccumulators},
    {"wavesize", Columns::kWaveSize},
    {"wavefrontsize", Columns::kWaveSize},
    {"countername", Columns::kCounterName},
    {"countervalue", Columns::kCounterValue},
    {"calls", Columns::kCalls},
    {"totaldurationns", Columns::kTotal},
    {"nodeid", Columns::kNode},
    {"logicalnodeid", Columns::kLogicalNode},
    {"agenttype", Columns::kAgentType},
    {"productname", Columns::kProduct},
    {"cucount", Columns::kUnits},
    {"maxengineclkfcompute", Columns::kClock},
    {"ldssizeinkb", Columns::kSharedKb},
    {"gpuarch", Columns::kArch},
    {"gpusoc", Columns::kArch},
    {"gpumodel", Columns::kModel},
    {"cupergpu", Columns::kUnits},
    {"numcu", Columns::kUnits},
    {"maxsclk", Columns::kClock},
    {"sclk", Columns::kClock},
    {"hbmbw", Columns::kBandwidth},
};

// Columns of a launch that are neither asked for nor counters.
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
