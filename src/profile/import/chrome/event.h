// SPDX-License-Identifier: Apache-2.0
// ChromeEvent: one event of a Chrome trace as views into the text it was parsed from: the members
// that any importer of GPU traces asks for, each in its place, the rest stepped over.
//
// Values are raw: text between the quotes with its escapes, a number's digits, an array with its
// brackets; "7" and 7 look alike. Valid as long as the text. Nothing is copied, nothing allocates.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace purlin::profile {

enum class Field : std::uint8_t {
  kPhase,
  kCategory,
  kName,
  kPid,
  kTid,
  kTime,
  kDuration,
  kId,
  kArgs,
  // members of "args"
  kExternalId,
  kCorrelation,
  kDevice,
  kStream,
  kGrid,
  kBlock,
  kCluster,
  kRegisters,
  kSharedMemory,
  kStaticShared,
  kDynamicShared,
  kLocalMemory,
  kBlocksPerSm,
  kWarpsPerSm,
  kOccupancy,
  kGraphId,
  kGraphNode,
  kBytes,
  kSize,
  kInputDims,
  kInputTypes,
  kConcreteInputs,
  kKernelDetails,
  kMemcpyDetails,
  kMemsetDetails,
  kHloOp,
  kHloModule,
  kArgName,
  kLabels,
  kStepNumber,
  kCollective,
  kElements,
  kOutElements,
  kLongName,
  kGroupSize,
  kDtype,
  kKernel,
  kWaitOnStream,
  kCount
};

class ChromeEvent {
 public:
  bool has(Field field) const { return (present_ >> static_cast<unsigned>(field) & 1) != 0; }
  // "" where absent.
  std::string_view operator[](Field field) const {
    return has(field) ? values_[static_cast<unsigned>(field)] : std::string_view{};
  }
  char phase() const {
    return has(Field::kPhase) && !(*this)[Field::kPhase].empty() ? (*this)[Field::kPhase][0] : '\0';
  }
  bool skipped() const { return skipped_; }  // of an unused kind; not parsed

  void clear() {
    present_ = 0;
    skipped_ = false;
  }
  void set(Field field, std::string_view value) {
    values_[static_cast<unsigned>(field)] = value;
    present_ |= std::uint64_t{1} << static_cast<unsigned>(field);
  }
  void skip() { skipped_ = true; }

 private:
  std::uint64_t present_ = 0;
  bool skipped_ = false;
  std::array<std::string_view, static_cast<unsigned>(Field::kCount)> values_;
};

// The kind of an event by its category.
enum class Category : std::uint8_t {
  kNone,    // absent or unknown: its track decides
  kSkip,    // of no use here: flows, projections onto the device, Python frames
  kPython,  // the same, counted apart: there are millions
  kKernel,
  kCopy,
  kSet,
  kCounters,
  kCall,
  kOp,
  kAnnotation,
  kOverhead,
  kSpan,
  kWait,  // what a call waits for
};
Category category_of(std::string_view category);

enum class Parse { kDone, kCut, kMalformed };
// Parses the event whose text starts behind its "{" at `p`; on kDone `p` is behind its "}", on
// kMalformed at the byte that makes no sense. The text is as json_scan.h wants it. With `flows`,
// flow events are not skipped.
Parse parse_event(const char*& p, const char* end, bool flows, ChromeEvent& event);

}  // namespace purlin::profile
