// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/stalls/tier.h"

#include "profile/capture/session/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::size_t kPcs = 4096;            // fetched at a time
constexpr int kRounds = 64;                   // of fetching, at most
constexpr std::uint32_t kWorkerSleepMs = 20;  // between two looks at the hardware's buffer
constexpr std::string_view kPrefix = "smsp__pcsamp_warps_issue_stalled_";
constexpr std::string_view kCountedTwice = "_not_issued";

// CUPTI's callback for hashes carries no data of ours.
std::atomic<StallTier*> watching = nullptr;

void CUPTIAPI hash_module(const void* code, std::size_t size, std::uint64_t* hash) {
  *hash = 0;
  try {
    StallTier* tier = watching;
    if (tier != nullptr && code != nullptr)
      *hash = tier->modules().see({static_cast<const char*>(code), size});
  } catch (...) {
  }
}

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  StallTier* tier = watching;
  if (tier == nullptr || domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr) return;
  try {
    CUcontext context = static_cast<const CUpti_ResourceData*>(data)->context;
    if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) tier->context_created(context);
    if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) tier->context_ends(context);
  } catch (...) {
  }
}

// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" -> "long_scoreboard"; "" for samples that are
// counted under another reason already.
std::string_view reason_of(std::string_view name) {
  if (name.size() >= kCountedTwice.size() &&
      name.substr(name.size() - kCountedTwice.size()) == kCountedTwice)
    return "";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return name;
}

}  // namespace

struct StallTier::Sampled {
  // Room for CUPTI's data of so many instructions.
  struct Room {
    CUpti_PCSamplingData data = {};
    std::vector<CUpti_PCSamplingPCData> pcs;
    std::vector<CUpti_PCSamplingStallReason> reasons;

    explicit Room(std::size_t reasons_each) : pcs(kPcs), reasons(kPcs * reasons_each) {
      for (std::size_t i = 0; i < kPcs; ++i) {
        pcs[i].size = sizeof pcs[i];
        pcs[i].stallReason = &reasons[i * reasons_each];
      }
      data.size = sizeof data;
      data.collectNumPcs = kPcs;
      data.pPcData = pcs.data();
    }
  };

  CUcontext context = nullptr;
  std::uint32_t device = 0;
  std::vector<std::uint32_t> wanted;  // indices of the reasons that are sampled
  std::vector<std::pair<std::uint32_t, std::string>> reasons;  // (CUPTI's index, name)
  // CUPTI keeps the first for itself, until the context ends.
  std::unique_ptr<Room> last, fetched;
  std::int64_t since_ns = 0;
  // Held while data is fetched. The thread that ends the context may hold a lock that CUPTI waits
  // for, so it waits only for a moment.
  std::timed_mutex fetching;
  bool ended = false;
};

bool StallOptions::from_environment(StallOptions& options) {
  const char* asked = ::secure_getenv("PURLIN_STALLS");
  const char* spool = ::secure_getenv("PURLIN_SPOOL");
  const long period = asked != nullptr ? std::strtol(asked, nullptr, 10) : 0;
  if (period < 5 || period > 31 || spool == nullptr) return false;
  options.period_log2 = static_cast<std::uint32_t>(period);
  options.spool = spool;
  return true;
}

StallTier::StallTier(const PcSampling& cupti, Recorder& recorder, const StallOptions& options)
    : cupti_(cupti), recorder_(recorder), options_(options), modules_(options.spool) {}

StallTier::~StallTier() {
  StallTier* self = this;
  watching.compare_exchange_strong(self, nullptr);
}

void StallTier::refuse(const char* what, CUptiResult result) {
  std::string text = std::string("stalls are not sampled: ") + what + " answered " +
                     std::to_string(static_cast<int>(result));
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      text =
          "stalls are not sampled: the driver allows only administrators to read counters; run as "
          "root or with CAP_SYS_ADMIN, or load the driver with "
          "NVreg_RestrictProfilingToAdminUsers=0";
      break;
    case CUPTI_ERROR_HARDWARE_BUSY:
      text =
          "stalls are not sampled: another tool holds the GPU's performance monitor; pause DCGM "
          "with `dcgmi profile --pause`, or end that tool";
      break;
    case CUPTI_ERROR_OUT_OF_MEMORY:
      text =
          "stalls are not sampled: no room for the GPU's buffer of samples, 16 MB of pinned memory";
      break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      text = "stalls are not sampled: another CUPTI client of the program has its subscription";
      break;
    default:
      break;
  }
  recorder_.note("no_stalls", text);
}

// While it samples, CUPTI 13.0 cannot record launches again once recording was switched off.
Requirements StallTier::requirements() const {
  Requirements requirements;
  requirements.windows = false;
  requirements.pins_launches = true;
  return requirements;
}

void StallTier::prepare() {
  watching = this;
  const CUptiResult hashes = cupti_.register_hash(&hash_module);
  if (hashes != CUPTI_SUCCESS)
    recorder_.note(
        "no_stall_lines",
        "sampled stalls have no source lines: CUPTI does not show the program's modules");
  CUptiResult result = cupti_.subscribe(&subscriber_, &called, nullptr);
  if (result != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    return refuse("cuptiSubscribe", result);
  }
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING}) {
    result = cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
    if (result != CUPTI_SUCCESS) return refuse("cuptiEnableCallback", result);
  }
}

void StallTier::yield() {
  if (subscriber_ == nullptr) return;
  cupti_.unsubscribe(std::exchange(subscriber_, nullptr));
  recorder_.note("stalls_unwatched",
                 "another CUPTI client of the program took CUPTI's subscription or its counters: "
                 "contexts made later were not sampled for stalls; if it samples or counts itself, "
                 "run it without --stalls");
}

// ---- contexts ----

void StallTier::context_created(CUcontext context) {
  auto sampled = std::make_shared<Sampled>();
  sampled->context = context;
  if (!begin(*sampled)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  contexts_.push_back(std::move(sampled));
}

bool StallTier::begin(Sampled& sampled) {
  CUpti_PCSamplingEnableParams enable = {CUpti_PCSamplingEnableParamsSize, nullptr,
                                         sampled.context};
  CUptiResult result = cupti_.enable(&enable);
  if (result != CUPTI_SUCCESS) return refuse("cuptiPCSamplingEnable", result), false;
  std::size_t count = 0;
  CUpti_PCSamplingGetNumStallReasonsParams counted = {CUpti_PCSamplingGetNumStallReasonsParamsSize,
                                                      nullptr, sampled.context, &count};
  result = cupti_.reason_count(&counted);
  std::vector<std::uint32_t> indices(count);
  std::vector<char> texts(count * CUPTI_STALL_REASON_STRING_SIZE);
  std::vector<char*> names(count);
  for (std::size_t i = 0; i < count; ++i) names[i] = &texts[i * CUPTI_STALL_REASON_STRING_SIZE];
  CUpti_PCSamplingGetStallReasonsParams listed = {CUpti_PCSamplingGetStallReasonsParamsSize,
                                                  nullptr,
                                                  sampled.context,
                                                  count,
                                                  indices.data(),
                                                  names.data()};
  if (result == CUPTI_SUCCESS) result = cupti_.reasons(&listed);
  for (std::size_t i = 0; result == CUPTI_SUCCESS && i < count; ++i) {
    const std::string_view name = reason_of(names[i]);
    if (name.empty()) continue;
    sampled.wanted.push_back(indices[i]);
    sampled.reasons.emplace_back(indices[i], name);
  }
  if (result == CUPTI_SUCCESS && sampled.wanted.empty()) result = CUPTI_ERROR_NOT_SUPPORTED;
  sampled.last = std::make_unique<Sampled::Room>(std::max<std::size_t>(1, count));
  sampled.fetched = std::make_unique<Sampled::Room>(std::max<std::size_t>(1, count));

  CUpti_PCSamplingConfigurationInfo requirements[7] = {};
  requirements[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
  requirements[0].attributeData.stallReasonData.stallReasonCount = sampled.wanted.size();
  requirements[0].attributeData.stallReasonData.pStallReasonIndex = sampled.wanted.data();
  requirements[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
  requirements[1].attributeData.collectionModeData.collectionMode =
      CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  requirements[2].attributeType =
      CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
  requirements[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
  requirements[3].attributeData.samplingDataBufferData.samplingDataBuffer = &sampled.last->data;
  requirements[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
  requirements[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = kHardwareBytes;
  requirements[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
  requirements[5].attributeData.samplingPeriodData.samplingPeriod = options_.period_log2;
  requirements[6].attributeType =
      CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN;
  requirements[6].attributeData.workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan =
      kWorkerSleepMs;
  CUpti_PCSamplingConfigurationInfoParams configure = {CUpti_PCSamplingConfigurationInfoParamsSize,
                                                       nullptr, sampled.context,
                                                       std::size(requirements), requirements};
  if (result == CUPTI_SUCCESS) result = cupti_.configure(&configure);
  if (result != CUPTI_SUCCESS) {
    CUpti_PCSamplingDisableParams disable = {CUpti_PCSamplingDisableParamsSize, nullptr,
                                             sampled.context};
    cupti_.disable(&disable);
    return refuse("CUPTI's PC sampling", result), false;
  }
  cupti_.device_of(sampled.context, &sampled.device);
  sampled.since_ns = monotonic_ns();
  return true;
}

// On the thread that destroys it, which no other may use then.
void StallTier::context_ends(CUcontext context) {
  std::shared_ptr<Sampled> sampled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto position = std::find_if(contexts_.begin(), contexts_.end(),
                                       [&](const auto& each) { return each->context == context; });
    if (position == contexts_.end()) return;
    sampled = *position;
    contexts_.erase(position);
  }
  const std::unique_lock<std::timed_mutex> lock(sampled->fetching, std::chrono::seconds(1));
  if (!lock) return;
  fetch(*sampled);
  sampled->ended = true;
  CUpti_PCSamplingDisableParams disable = {CUpti_PCSamplingDisableParamsSize, nullptr, context};
  if (cupti_.disable(&disable) == CUPTI_SUCCESS) add_samples(*sampled, sampled->last->data);
}

// ---- samples ----

void StallTier::collect(bool) {
  std::vector<std::shared_ptr<Sampled>> contexts;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts = contexts_;
  }
  for (const auto& sampled : contexts) {
    const std::lock_guard<std::timed_mutex> lock(sampled->fetching);
    fetch(*sampled);
  }
}

void StallTier::fetch(Sampled& sampled) {
  if (sampled.ended) return;
  CUpti_PCSamplingData& data = sampled.fetched->data;
  for (int round = 0; round < kRounds; ++round) {
    data.totalNumPcs = data.remainingNumPcs = 0;
    data.totalSamples = data.droppedSamples = data.nonUsrKernelsTotalSamples = 0;
    data.hardwareBufferFull = 0;
    CUpti_PCSamplingGetDataParams params = {CUpti_PCSamplingGetDataParamsSize, nullptr,
                                            sampled.context, &data};
    const CUptiResult result = cupti_.get_data(&params);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY || data.hardwareBufferFull != 0)
      recorder_.note("stalls_full",
                     "the GPU's buffer of samples was full when it was read: samples of such "
                     "moments are missing; give --stalls a longer period",
                     1);
    if (result != CUPTI_SUCCESS) return;
    const bool more = data.remainingNumPcs > 0;
    if (!add_samples(sampled, data) || !more) break;
  }
  const std::int64_t now = monotonic_ns();
  wire::StallWindows window;
  window.windows = 1;
  window.sampled_ns = static_cast<std::uint64_t>(now - std::exchange(sampled.since_ns, now));
  window.least_period = window.most_period = std::uint64_t{1} << options_.period_log2;
  Recorder::StallBatch(recorder_)->add_windows(window);
}

// False without data. CUPTI owns the function names: one string serves many records. Its header
// asks to free them, but that is a double free on CUDA 13.0.
bool StallTier::add_samples(Sampled& sampled, CUpti_PCSamplingData& data) {
  const std::size_t count = std::min<std::size_t>(data.totalNumPcs, kPcs);
  data.totalNumPcs = 0;
  std::vector<std::uint64_t> used;
  {
    Recorder::StallBatch batch(recorder_);
    wire::StallWindows window;
    window.dropped = data.droppedSamples;
    window.untold = data.nonUsrKernelsTotalSamples;
    batch->add_windows(window);
    for (std::size_t i = 0; i < count; ++i) {
      const CUpti_PCSamplingPCData& pc = data.pPcData[i];
      const std::string_view name = pc.functionName != nullptr ? pc.functionName : "(unnamed)";
      const std::uint32_t function = batch->function(name, sampled.device, pc.cubinCrc);
      if (used.empty() || used.back() != pc.cubinCrc) used.push_back(pc.cubinCrc);
      for (std::size_t k = 0; k < pc.stallReasonCount; ++k) {
        const std::uint32_t index = pc.stallReason[k].pcSamplingStallReasonIndex;
        const auto known = std::find_if(sampled.reasons.begin(), sampled.reasons.end(),
                                        [&](const auto& reason) { return reason.first == index; });
        if (known == sampled.reasons.end()) continue;
        batch->add(function, pc.pcOffset, batch->reason(known->second), pc.stallReason[k].samples);
      }
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const std::uint64_t code : used) modules_.use(code);
  return count > 0;
}

}  // namespace purlin::profile::capture::cuda
