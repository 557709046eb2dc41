// SPDX-License-Identifier: Apache-2.0
// Programs for tests of the advice, launch by launch, with an exactly known timeline. Tests only.
#pragma once

#include "analyze/advise/advice.h"
#include "analyze/timeline/testing.h"

#include <algorithm>
#include <string>

namespace purlin::analyze {

inline constexpr double kBandwidth = 4.8e12;  // H200
inline constexpr const char* kGemm =
    "void cutlass::Kernel<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(Params)";

inline DeviceInfo h200() {
  DeviceInfo device;
  device.id = "cuda:0";
  device.kind = "gpu";
  device.name = "NVIDIA H200";
  device.arch = "sm_90";
  device.compute_units = 132;
  device.memory_bytes = 150'000'000'000;
  return device;
}

// A program of rounds: one stream, one host thread, launches as given.
class Program {
 public:
  Program() {
    builder_.profile.environment.devices = {h200()};
    builder_.profile.source = "purlin";
  }
  // The host launches at once and runs ahead.
  Program& kernel(const KernelRow& row, double ns) {
    const auto length = static_cast<std::int64_t>(ns);
    return run(row, std::max(device_, host_ + 4'000), length, host_, 1'000);
  }
  // The host comes after the last kernel has ended, `late` ns.
  Program& late_kernel(const KernelRow& row, double ns, std::int64_t late) {
    const std::int64_t at = device_ + late;
    host_ = at - 4'000;
    return run(row, at, static_cast<std::int64_t>(ns), host_, 1'000);
  }
  Program& copy(const char* kind, std::int64_t ns, std::uint64_t bytes, bool overlapped = false) {
    const std::uint32_t call = builder_.call(CallKind::kCopy, "cudaMemcpyAsync", host_, 1'000);
    host_ += 1'000;
    const std::int64_t at = overlapped ? device_ - ns : std::max(device_, host_);
    Activity& activity = builder_.copy(kind, at, ns, call, overlapped ? 9 : 7);
    activity.bytes = bytes;
    CopyRow& copies = builder_.profile.copies[activity.row];
    copies.bytes += static_cast<double>(bytes);
    copies.duration.add(static_cast<double>(ns));
    device_ = std::max(device_, at + ns);
    return *this;
  }
  Program& wait() {  // until the device is done
    builder_.call(CallKind::kSync, "cudaDeviceSynchronize", host_, device_ - host_ + 500);
    host_ = std::max(host_, device_) + 500;
    return *this;
  }
  Program& step(std::int64_t begin, const std::string& name) {
    builder_.range(RangeKind::kStep, name, begin, std::max(host_, device_) - begin);
    return *this;
  }
  // `count` steps of one body, each waited for.
  template <class Body>
  Program& steps(int count, Body body) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t begin = now();
      body(*this);
      wait();
      step(begin, "ProfilerStep#" + std::to_string(i));
    }
    return *this;
  }
  Program& work(std::int64_t ns) {  // of the host, outside of calls
    host_ += ns;
    return *this;
  }
  // A framework's op on the host, now.
  Program& op(const char* name) {
    builder_.op(name, host_, 500);
    host_ += 600;
    return *this;
  }
  // An op around the calls of the body.
  template <class Body>
  Program& within(const char* name, Body body) {
    Timeline& timeline = builder_.profile.timeline;
    const std::size_t first = timeline.calls.size(), first_op = timeline.ops.size();
    const std::int64_t begin = host_;
    host_ += 100;
    body(*this);
    host_ += 100;
    builder_.op(name, begin, host_ - begin);
    for (std::size_t i = first_op; i + 1 < timeline.ops.size(); ++i)
      if (timeline.ops[i].parent == kNone)
        timeline.ops[i].parent = static_cast<std::uint32_t>(timeline.ops.size() - 1);
    for (std::size_t i = first; i < timeline.calls.size(); ++i)
      if (timeline.calls[i].op == kNone)
        timeline.calls[i].op = static_cast<std::uint32_t>(timeline.ops.size() - 1);
    host_ += 100;
    return *this;
  }
  Program& waiting_op(const char* name) {  // such as .item() on a tensor of the device
    op(name);
    Timeline& timeline = builder_.profile.timeline;
    const std::uint32_t call =
        builder_.call(CallKind::kSync, "cudaStreamSynchronize", host_ - 300, 200);
    timeline.calls[call].op = static_cast<std::uint32_t>(timeline.ops.size() - 1);
    return *this;
  }
  std::int64_t now() const { return std::max(host_, device_); }
  std::int64_t host_now() const { return host_; }
  TimelineBuilder& builder() { return builder_; }
  const Profile& profile() { return builder_.sorted(); }
  Advice advice(const AdviceOptions& options = {}) {
    const Profile& profile = builder_.sorted();
    return advise(profile, analyze_timeline(profile), {}, options);
  }

 private:
  Program& run(const KernelRow& row, std::int64_t at, std::int64_t length, std::int64_t call_at,
               std::int64_t call_length) {
    const std::uint32_t call = builder_.launch(call_at, call_length);
    builder_.kernel("", at, length, call).row = place(row);
    builder_.profile.kernels[place(row)].duration.add(static_cast<double>(length));
    host_ = std::max(host_, call_at) + call_length;
    device_ = at + length;
    return *this;
  }
  std::uint32_t place(const KernelRow& row) {
    auto& rows = builder_.profile.kernels;
    std::erase_if(rows, [](const KernelRow& one) { return one.name.empty(); });
    for (std::uint32_t i = 0; i < rows.size(); ++i)
      if (rows[i].name == row.name && rows[i].shape == row.shape) return i;
    rows.push_back(row);
    return static_cast<std::uint32_t>(rows.size() - 1);
  }
  TimelineBuilder builder_;
  std::int64_t host_ = 0, device_ = 0;
};

inline KernelRow advised_row(const char* name, const char* op, std::string shape,
                             const char* dtype) {
  KernelRow out;
  out.name = name;
  out.op = op;
  out.shape = std::move(shape);
  out.dtype = dtype;
  out.launch.grid = {4096, 1, 1};
  out.launch.block = {256, 1, 1};
  out.registers = 32;
  return out;
}

inline const Intervention* find(const Advice& advice, std::string_view id) {
  for (const Intervention& one : advice.interventions)
    if (one.id == id) return &one;
  return nullptr;
}

}  // namespace purlin::analyze
