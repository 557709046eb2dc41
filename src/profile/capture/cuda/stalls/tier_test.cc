// SPDX-License-Identifier: Apache-2.0
// Against a fake of CUPTI's functions: order of calls, the file's contents, and refusals.
// tests/gpu/stalls_gpu.sh tests CUPTI itself.
#include "profile/capture/cuda/stalls/tier.h"

#include "base/files.h"
#include "profile/format/file.h"
#include "profile/stall_lines.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <elf.h>

namespace purlin::profile::capture::cuda {
namespace {

// One answer of cuptiPCSamplingGetData.
struct Answer {
  struct Pc {
    const char* function;
    std::uint64_t code, offset;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> reasons;
  };
  std::vector<Pc> pcs;
  std::size_t remaining = 0;
  std::uint64_t dropped = 0, untold = 0;
  CUptiResult result = CUPTI_SUCCESS;
};

struct FakeSampling {
  std::vector<std::string> calls;
  std::deque<Answer> answers;
  Answer at_disable;
  CUptiResult subscribed = CUPTI_SUCCESS, enabled = CUPTI_SUCCESS, configured = CUPTI_SUCCESS;
  CUpti_CallbackFunc callback = nullptr;
  CUpti_ComputeCrcCallbackFunc hash = nullptr;
  CUpti_PCSamplingData* kept = nullptr;
  std::vector<std::uint32_t> wanted;
  std::size_t hardware_bytes = 0;
  std::uint32_t period = 0, start_stop = 9;

  void fill(const Answer& answer, CUpti_PCSamplingData& data) {
    ASSERT_LE(answer.pcs.size(), data.collectNumPcs);
    data.totalNumPcs = answer.pcs.size();
    data.remainingNumPcs = answer.remaining;
    data.droppedSamples = answer.dropped;
    data.nonUsrKernelsTotalSamples = answer.untold;
    for (std::size_t i = 0; i < answer.pcs.size(); ++i) {
      CUpti_PCSamplingPCData& pc = data.pPcData[i];
      pc.functionName = const_cast<char*>(answer.pcs[i].function);
      pc.cubinCrc = answer.pcs[i].code;
      pc.pcOffset = answer.pcs[i].offset;
      pc.stallReasonCount = answer.pcs[i].reasons.size();
      for (std::size_t k = 0; k < pc.stallReasonCount; ++k)
        pc.stallReason[k] = {answer.pcs[i].reasons[k].first, answer.pcs[i].reasons[k].second};
    }
  }
};
FakeSampling* fake = nullptr;

constexpr const char* kReasons[] = {"smsp__pcsamp_warps_issue_stalled_barrier",
                                    "smsp__pcsamp_warps_issue_stalled_barrier_not_issued",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard"};

PcSampling sampling_functions() {
  PcSampling f;
  f.register_hash = [](CUpti_ComputeCrcCallbackFunc hash) {
    fake->hash = hash;
    return CUPTI_SUCCESS;
  };
  f.subscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void*) {
    fake->calls.emplace_back("subscribe");
    fake->callback = callback;
    *handle = reinterpret_cast<CUpti_SubscriberHandle>(1);
    return fake->subscribed;
  };
  f.unsubscribe = [](CUpti_SubscriberHandle) {
    fake->calls.emplace_back("unsubscribe");
    return CUPTI_SUCCESS;
  };
  f.enable_callback = [](std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                         CUpti_CallbackId) {
    EXPECT_EQ(domain, CUPTI_CB_DOMAIN_RESOURCE);
    return CUPTI_SUCCESS;
  };
  f.enable = [](CUpti_PCSamplingEnableParams*) {
    fake->calls.emplace_back("enable");
    return fake->enabled;
  };
  f.disable = [](CUpti_PCSamplingDisableParams*) {
    fake->calls.emplace_back("disable");
    if (fake->kept != nullptr) fake->fill(fake->at_disable, *fake->kept);
    return CUPTI_SUCCESS;
  };
  f.reason_count = [](CUpti_PCSamplingGetNumStallReasonsParams* params) {
    *params->numStallReasons = std::size(kReasons);
    return CUPTI_SUCCESS;
  };
  f.reasons = [](CUpti_PCSamplingGetStallReasonsParams* params) {
    for (std::uint32_t i = 0; i < std::size(kReasons); ++i) {
      params->stallReasonIndex[i] = 10 + i;
      std::strcpy(params->stallReasons[i], kReasons[i]);
    }
    return CUPTI_SUCCESS;
  };
  f.configure = [](CUpti_PCSamplingConfigurationInfoParams* params) {
    for (std::size_t i = 0; i < params->numAttributes; ++i) {
      const CUpti_PCSamplingConfigurationInfo& wish = params->pPCSamplingConfigurationInfo[i];
      switch (wish.attributeType) {
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON:
          fake->wanted.assign(wish.attributeData.stallReasonData.pStallReasonIndex,
                              wish.attributeData.stallReasonData.pStallReasonIndex +
                                  wish.attributeData.stallReasonData.stallReasonCount);
          break;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
          fake->kept = static_cast<CUpti_PCSamplingData*>(
              wish.attributeData.samplingDataBufferData.samplingDataBuffer);
          break;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE:
          fake->hardware_bytes = wish.attributeData.hardwareBufferSizeData.hardwareBufferSize;
          break;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
          fake->period = wish.attributeData.samplingPeriodData.samplingPeriod;
          break;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL:
          fake->start_stop = wish.attributeData.enableStartStopControlData.enableStartStopControl;
          break;
        default:
          break;
      }
    }
    fake->calls.emplace_back("configure");
    return fake->configured;
  };
  f.get_data = [](CUpti_PCSamplingGetDataParams* params) {
    fake->calls.emplace_back("get");
    if (fake->answers.empty()) return CUPTI_SUCCESS;
    const Answer answer = std::move(fake->answers.front());
    fake->answers.pop_front();
    fake->fill(answer, *static_cast<CUpti_PCSamplingData*>(params->pcSamplingData));
    return answer.result;
  };
  f.device_of = [](CUcontext, std::uint32_t* device) {
    *device = 2;
    return CUPTI_SUCCESS;
  };
  return f;
}

// A module: an ELF file whose one section has this name.
std::string module_with(const char* section) {
  std::string names("\0.shstrtab\0", 11);
  const auto at = static_cast<Elf64_Word>(names.size());
  names += std::string(section) + '\0';
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[2] = {};
  sections[0].sh_name = 1;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = names.size();
  sections[1].sh_name = at;
  sections[1].sh_size = 4;
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections) + names;
}

class StallTierTest : public testing::Test {
 protected:
  void SetUp() override {
    fake = &fake_;
    spool_ = make_temporary_directory("purlin-test").value_or("");
    recorder_.set_meta(R"({"pid":1})", "[]");
    options_.spool = spool_;
    tier_ = std::make_unique<StallTier>(sampling_functions(), recorder_, options_);
  }
  void TearDown() override {
    tier_.reset();
    (void)remove_tree(spool_);
  }
  void create_context() { resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED); }
  void destroy_context() { resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING); }
  void resource(CUpti_CallbackId id) {
    CUpti_ResourceData data = {};
    data.context = reinterpret_cast<CUcontext>(0x10);
    fake_.callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }
  Profile profile() { return *decode_profile(recorder_.drain(0, 1, true)); }
  std::string notes(const Profile& profile) {
    std::string text;
    for (const CoverageNote& note : profile.coverage.notes) text += note.cause + ": " + note.text;
    return text;
  }

  FakeSampling fake_;
  std::string spool_;
  Recorder recorder_{false};
  StallOptions options_;
  std::unique_ptr<StallTier> tier_;
};

TEST_F(StallTierTest, AContextIsSampledFromItsCreationUntilItGoesAndNeverSwitchedBetween) {
  tier_->prepare();
  create_context();
  EXPECT_EQ(fake_.wanted, (std::vector<std::uint32_t>{10, 12}));  // none is counted twice
  EXPECT_EQ(fake_.hardware_bytes, StallTier::kHardwareBytes);
  EXPECT_EQ(fake_.period, options_.period_log2);
  EXPECT_EQ(fake_.start_stop, 0u);
  fake_.answers = {{{{"gemm", 7, 16, {{12, 100}, {10, 5}}}}, 1, 0, 0},
                   {{{"gemm", 7, 32, {{12, 50}}}, {"copy", 8, 0, {{10, 1}}}}, 0, 3, 4}};
  tier_->collect(false);
  tier_->close();
  fake_.answers = {{{{"gemm", 7, 16, {{12, 1}}}}}};
  fake_.at_disable = {{{"gemm", 7, 16, {{12, 2}}}}};
  destroy_context();
  tier_->collect(true);
  EXPECT_EQ(fake_.calls, (std::vector<std::string>{"subscribe", "enable", "configure", "get", "get",
                                                   "get", "disable"}));
  const Profile profile = this->profile();
  ASSERT_EQ(profile.stalls.functions.size(), 2u);
  const StallFunction& gemm = profile.stalls.functions[1];
  EXPECT_EQ(gemm.name, "gemm");
  EXPECT_EQ(gemm.device, 2);
  EXPECT_EQ(gemm.sites[0].samples(), 108);
  EXPECT_EQ(gemm.sites[1].samples(), 50);
  EXPECT_EQ(profile.stalls.dropped, 3);
  EXPECT_EQ(profile.stalls.untold, 4);
  EXPECT_EQ(profile.stalls.windows, 2);
  EXPECT_EQ(profile.stalls.most_period, std::uint64_t{1} << options_.period_log2);
  EXPECT_EQ(notes(profile), "");
}

TEST_F(StallTierTest, OnlySampledModulesWithLinesGoToTheSpool) {
  tier_->prepare();
  create_context();
  std::uint64_t lines = 0, none = 0, unused = 0;
  const std::string with = module_with(".debug_line"), without = module_with(".text");
  const std::string other = module_with(".nv_debug_line_sass");
  fake_.hash(with.data(), with.size(), &lines);
  fake_.hash(without.data(), without.size(), &none);
  fake_.hash(other.data(), other.size(), &unused);
  EXPECT_NE(lines, none);
  fake_.answers = {{{{"gemm", lines, 16, {{12, 9}}}, {"copy", none, 16, {{12, 9}}}}}};
  tier_->collect(false);
  EXPECT_EQ(read_file(join_path(spool_, module_file(lines))).value_or(""), with);
  EXPECT_FALSE(file_exists(join_path(spool_, module_file(none))));
  EXPECT_FALSE(file_exists(join_path(spool_, module_file(unused))));
}

TEST_F(StallTierTest, WhatIsRefusedSaysWhatToDo) {
  fake_.enabled = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  tier_->prepare();
  create_context();
  create_context();
  tier_->collect(false);
  destroy_context();
  EXPECT_EQ(fake_.calls, (std::vector<std::string>{"subscribe", "enable", "enable"}));
  const Profile profile = this->profile();
  ASSERT_EQ(profile.coverage.notes.size(), 1u);
  EXPECT_NE(notes(profile).find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
}

TEST_F(StallTierTest, AContextThatCannotBeConfiguredIsLeftAsItWas) {
  fake_.configured = CUPTI_ERROR_HARDWARE_BUSY;
  tier_->prepare();
  create_context();
  EXPECT_EQ(fake_.calls.back(), "disable");
  tier_->collect(false);
  EXPECT_EQ(fake_.calls.back(), "disable");
  EXPECT_NE(notes(profile()).find("dcgmi profile --pause"), std::string::npos);
}

TEST_F(StallTierTest, AFullBufferIsNotedAndSamplingGoesOn) {
  tier_->prepare();
  create_context();
  fake_.answers = {{{}, 0, 0, 0, CUPTI_ERROR_OUT_OF_MEMORY}};
  tier_->collect(false);
  tier_->collect(false);
  EXPECT_EQ(std::count(fake_.calls.begin(), fake_.calls.end(), "get"), 2);
  EXPECT_NE(notes(profile()).find("stalls_full"), std::string::npos);
}

TEST_F(StallTierTest, AnotherClientGetsTheSubscriptionAndSamplingGoesOn) {
  tier_->prepare();
  create_context();
  tier_->yield();
  tier_->yield();
  fake_.answers = {{{{"gemm", 7, 16, {{12, 9}}}}}};
  tier_->collect(false);
  EXPECT_EQ(fake_.calls,
            (std::vector<std::string>{"subscribe", "enable", "configure", "unsubscribe", "get"}));
  const Profile profile = this->profile();
  EXPECT_EQ(profile.stalls.samples(), 9);
  EXPECT_NE(notes(profile).find("stalls_unwatched"), std::string::npos);
}

TEST_F(StallTierTest, ASubscriptionThatAnotherHasIsItsOwn) {
  fake_.subscribed = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  tier_->prepare();
  tier_->yield();
  tier_->collect(true);
  EXPECT_EQ(fake_.calls, (std::vector<std::string>{"subscribe"}));
  EXPECT_NE(notes(profile()).find("no_stalls"), std::string::npos);
}

TEST(LineTables, DamagedModulesHaveNone) {
  const std::string whole = module_with(".debug_line");
  EXPECT_TRUE(has_line_tables(whole));
  for (std::size_t size = 0; size < whole.size() - 13; ++size)
    EXPECT_FALSE(has_line_tables(std::string_view(whole).substr(0, size))) << size;
  std::string odd = whole;
  for (std::size_t i = 0; i < sizeof(Elf64_Ehdr); ++i) {
    odd = whole;
    odd[i] = '\xff';
    (void)has_line_tables(odd);
  }
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
