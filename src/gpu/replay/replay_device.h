// SPDX-License-Identifier: Apache-2.0
// ReplayDevice: a recorded search space in place of hardware. Compiling looks the config up, timing
// serves its recorded samples in their order, again from the first after the last.
//
// Nothing executes, so there is no memory and nothing to verify. The recorded duration of an
// evaluation is recorded(kernel).cost_s(). Thread-safety and failure as for Device; a config's
// recorded failure comes back where it happened, from compile() or from run() and time().
#pragma once

#include "gpu/device.h"
#include "gpu/replay/replay_space.h"

#include <memory>
#include <string>

namespace purlin::gpu {

class ReplayDevice : public Device {
 public:
  ReplayDevice(ReplaySpace space, const std::string& path);
  const ReplaySpace& space() const { return space_; }
  // REQUIRES: a kernel that this device loaded.
  static const RecordedRun& recorded(const Kernel& kernel);

  std::string_view language() const override { return ""; }
  bool executes() const override { return false; }
  std::optional<RecordedCost> recorded_cost(const Config& config) const override;
  Result<Binary> compile(const CompileRequest& request) override;
  Result<std::unique_ptr<Kernel>> load(const Binary& binary) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) override;
  Status read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) override;
  Status copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
              std::size_t bytes) override;
  Status fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) override;
  Status run(const Launch& launch) override;
  std::string_view how() const override { return "recorded"; }
  // A sample of several launches is the mean of as many recorded ones; the budget is in recorded
  // time.
  Result<std::vector<Sample>> time(const Launch& launch, const TimingRequest& request) override;

 private:
  ReplaySpace space_;
};

}  // namespace purlin::gpu
