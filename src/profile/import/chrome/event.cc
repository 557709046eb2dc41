// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/event.h"

#include "profile/import/chrome/json_scan.h"

#include <cstddef>

namespace purlin::profile {
namespace {

// A table from short texts to small values, filled at compile time; one probe or two at run time.
template <class Value, std::size_t Size>
class WordTable {
 public:
  struct Word {
    std::string_view text;
    Value value;
  };
  template <std::size_t N>
  constexpr explicit WordTable(const Word (&words)[N]) : words_{} {
    static_assert(N * 2 <= Size);
    for (const Word& word : words) {
      std::size_t at = slot(word.text);
      while (!words_[at].text.empty()) at = (at + 1) % Size;
      words_[at] = word;
    }
  }
  const Value* find(std::string_view text) const {
    if (text.empty()) return nullptr;
    for (std::size_t at = slot(text); !words_[at].text.empty(); at = (at + 1) % Size)
      if (words_[at].text == text) return &words_[at].value;
    return nullptr;
  }

 private:
  static constexpr std::size_t slot(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    return (text.size() * 37 + byte(0) * 11u + byte(text.size() - 1) * 5u + byte(text.size() / 2)) %
           Size;
  }
  std::array<Word, Size> words_;
};

constexpr WordTable<Field, 128> kMembers({{"ph", Field::kPhase},
                                          {"cat", Field::kCategory},
                                          {"name", Field::kName},
                                          {"pid", Field::kPid},
                                          {"tid", Field::kTid},
                                          {"ts", Field::kTime},
                                          {"dur", Field::kDuration},
                                          {"id", Field::kId},
                                          {"args", Field::kArgs}});

// Each in every spelling that a version of a profiler has used.
constexpr WordTable<Field, 256> kArguments({{"External id", Field::kExternalId},
                                            {"external id", Field::kExternalId},
                                            {"correlation", Field::kCorrelation},
                                            {"correlation_id", Field::kCorrelation},
                                            {"correlationId", Field::kCorrelation},
                                            {"device", Field::kDevice},
                                            {"inDevice", Field::kDevice},
                                            {"device_id", Field::kDevice},
                                            {"deviceId", Field::kDevice},
                                            {"dev-id", Field::kDevice},
                                            {"stream", Field::kStream},
                                            {"streamId", Field::kStream},
                                            {"stream-id", Field::kStream},
                                            {"queue-id", Field::kStream},
                                            {"grid", Field::kGrid},
                                            {"grid dim", Field::kGrid},
                                            {"block dim", Field::kBlock},
                                            {"shared size", Field::kSharedMemory},
                                            {"block", Field::kBlock},
                                            {"cluster", Field::kCluster},
                                            {"registers per thread", Field::kRegisters},
                                            {"registersPerThread", Field::kRegisters},
                                            {"shared memory", Field::kSharedMemory},
                                            {"staticSharedMemory", Field::kStaticShared},
                                            {"static shared memory", Field::kStaticShared},
                                            {"dynamicSharedMemory", Field::kDynamicShared},
                                            {"dynamic shared memory", Field::kDynamicShared},
                                            {"local memory per thread", Field::kLocalMemory},
                                            {"blocks per SM", Field::kBlocksPerSm},
                                            {"warps per SM", Field::kWarpsPerSm},
                                            {"est. achieved occupancy %", Field::kOccupancy},
                                            {"graph id", Field::kGraphId},
                                            {"graphId", Field::kGraphId},
                                            {"graph node id", Field::kGraphNode},
                                            {"graphNodeId", Field::kGraphNode},
                                            {"bytes", Field::kBytes},
                                            {"Bytes", Field::kBytes},
                                            {"size", Field::kSize},
                                            {"Input Dims", Field::kInputDims},
                                            {"Input dims", Field::kInputDims},
                                            {"Input type", Field::kInputTypes},
                                            {"Concrete Inputs", Field::kConcreteInputs},
                                            {"kernel_details", Field::kKernelDetails},
                                            {"memcpy_details", Field::kMemcpyDetails},
                                            {"memset_details", Field::kMemsetDetails},
                                            {"hlo_op", Field::kHloOp},
                                            {"hlo_module", Field::kHloModule},
                                            {"name", Field::kArgName},
                                            {"labels", Field::kLabels},
                                            {"step_num", Field::kStepNumber},
                                            {"Collective name", Field::kCollective},
                                            {"In msg nelems", Field::kElements},
                                            {"In msg size", Field::kElements},
                                            {"Out msg nelems", Field::kOutElements},
                                            {"Out msg size", Field::kOutElements},
                                            {"long_name", Field::kLongName},
                                            {"hlo_text", Field::kLongName},
                                            {"Group size", Field::kGroupSize},
                                            {"dtype", Field::kDtype},
                                            {"kernel", Field::kKernel},
                                            {"wait_on_stream", Field::kWaitOnStream}});

constexpr WordTable<Category, 256> kCategories({{"kernel", Category::kKernel},
                                                {"Kernel", Category::kKernel},
                                                {"concurrent_kernel", Category::kKernel},
                                                {"gpu_kernel", Category::kKernel},
                                                {"cuda", Category::kKernel},
                                                {"gpu", Category::kKernel},
                                                {"mtia_ccp_events", Category::kKernel},
                                                {"hpu_op", Category::kKernel},
                                                {"gpu_memcpy", Category::kCopy},
                                                {"Memcpy", Category::kCopy},
                                                {"gpu_memset", Category::kSet},
                                                {"Memset", Category::kSet},
                                                {"cuda_profiler_range", Category::kCounters},
                                                {"cuda_runtime", Category::kCall},
                                                {"cuda_driver", Category::kCall},
                                                {"hip_runtime", Category::kCall},
                                                {"xpu_runtime", Category::kCall},
                                                {"xpu_driver", Category::kCall},
                                                {"mtia_runtime", Category::kCall},
                                                {"privateuse1_runtime", Category::kCall},
                                                {"privateuse1_driver", Category::kCall},
                                                {"cuda_api", Category::kCall},
                                                {"Runtime", Category::kCall},
                                                {"cpu_op", Category::kOp},
                                                {"Operator", Category::kOp},
                                                {"user_annotation", Category::kAnnotation},
                                                {"nvtx", Category::kAnnotation},
                                                {"overhead", Category::kOverhead},
                                                {"Overhead", Category::kOverhead},
                                                {"Trace", Category::kSpan},
                                                {"python_function", Category::kPython},
                                                {"ac2g", Category::kSkip},
                                                {"fwdbwd", Category::kSkip},
                                                {"async", Category::kSkip},
                                                {"async_cpu_to_gpu", Category::kSkip},
                                                {"async_gpu", Category::kSkip},
                                                {"forward_backward", Category::kSkip},
                                                {"gpu_user_annotation", Category::kSkip},
                                                {"cuda_sync", Category::kWait},
                                                {"cuda_event", Category::kSkip},
                                                {"cpu_instant_event", Category::kSkip},
                                                {"external_correlation", Category::kSkip}});

bool is_flow(char phase) { return phase == 's' || phase == 'f' || phase == 't'; }

// Complete events, their begin-end form and metadata are looked at; counters, instants, async
// events and objects are not.
bool phase_is_wanted(char phase, bool flows) {
  return phase == 'X' || phase == 'M' || phase == 'B' || phase == 'E' || (flows && is_flow(phase));
}

class EventParser {
 public:
  EventParser(const char* p, const char* end, bool flows, ChromeEvent& event)
      : p_(p), end_(end), flows_(flows), event_(event) {}

  // The members of an object, "{" behind us.
  Parse members(bool of_args) {
    while (true) {
      p_ = skip_space(p_);
      if (*p_ == ',') {
        ++p_;
        continue;
      }
      if (*p_ == '}' && p_ < end_) {
        ++p_;
        return Parse::kDone;
      }
      if (*p_ != '"') return p_ >= end_ ? Parse::kCut : Parse::kMalformed;
      const char* const key = p_ + 1;
      const char* const quote = find_quote(key, end_);
      if (quote == nullptr) return Parse::kCut;
      const std::string_view name(key, static_cast<std::size_t>(quote - key));
      p_ = skip_space(quote + 1);
      if (*p_ != ':') return p_ >= end_ ? Parse::kCut : Parse::kMalformed;
      p_ = skip_space(p_ + 1);
      const Parse result = of_args ? argument(kArguments.find(name)) : member(kMembers.find(name));
      if (result != Parse::kDone) return result;
      if (!of_args && event_.skipped()) {
        p_ = skip_nested(p_, end_);
        return p_ == nullptr ? Parse::kCut : Parse::kDone;
      }
    }
  }
  const char* position() const { return p_; }

 private:
  Parse member(const Field* field) {
    if (field != nullptr && *field == Field::kArgs && *p_ == '{') {
      const char* const begin = p_++;
      const Parse result = members(true);
      if (result == Parse::kDone)
        event_.set(Field::kArgs, {begin, static_cast<std::size_t>(p_ - begin)});
      return result;
    }
    const Parse result = argument(field);
    if (result != Parse::kDone || field == nullptr) return result;
    if (*field == Field::kPhase && !phase_is_wanted(event_.phase(), flows_)) event_.skip();
    if (*field == Field::kCategory) {
      const Category category = category_of(event_[Field::kCategory]);
      if (category == Category::kPython ||
          (category == Category::kSkip && !(flows_ && is_flow(event_.phase()))))
        event_.skip();
    }
    return Parse::kDone;
  }

  Parse argument(const Field* field) {
    const char* const begin = p_;
    const char* const behind = skip_value(p_, end_);
    if (behind == nullptr) return Parse::kCut;
    if (behind == begin) return Parse::kMalformed;  // no value at all
    p_ = behind;
    if (field == nullptr) return Parse::kDone;
    const bool quoted = *begin == '"';
    event_.set(*field, {begin + quoted, static_cast<std::size_t>(behind - begin - 2 * quoted)});
    return Parse::kDone;
  }

  const char* p_;
  const char* const end_;
  const bool flows_;
  ChromeEvent& event_;
};

}  // namespace

Category category_of(std::string_view category) {
  const Category* const found = kCategories.find(category);
  return found == nullptr ? Category::kNone : *found;
}

Parse parse_event(const char*& p, const char* end, bool flows, ChromeEvent& event) {
  event.clear();
  EventParser parser(p, end, flows, event);
  const Parse result = parser.members(false);
  if (parser.position() != nullptr) p = parser.position();
  return result;
}

}  // namespace purlin::profile
