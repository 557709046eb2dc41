// SPDX-License-Identifier: Apache-2.0
// Arguments: the arguments of one kernel spec on one device for one problem shape, and the expected
// contents of its outputs.
//
// Inputs have a pristine copy on the device, so a device copy restores them after any candidate.
// Outputs are poisoned before each run that is verified. Owned by a Workbench and used from its
// thread. Failure: kInvalid for an error in the spec, kUnavailable if memory is short, else the
// device's own.
#pragma once

#include "gpu/device.h"
#include "measure/compare.h"
#include "measure/guarded_buffer.h"
#include "model/spec/spec.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::measure {

class Arguments {
 public:
  // Allocates and fills. `spec` must outlive the result. Sizes are resolved under `scope`, that of
  // the default config; those of scratch buffers again for each config by bind().
  // Without `verify` nothing is compared, and inputs have no pristine copy. Large inputs of random
  // reals then repeat their first kRepeat elements: the timing is the same, and the host needs only
  // a small part of the time.
  static Result<Arguments> create(gpu::Device& device, const KernelSpec& spec, const Scope& scope,
                                  std::uint64_t extra_seed, bool verify);
  static constexpr std::size_t kRepeat = std::size_t{1} << 22;

  // Takes the outputs' present contents as the expected ones of every config. `run` launches the
  // reference. It is called again with another poison if an element looks unwritten. kInvalid names
  // an element that was not written.
  Status take_reference(const std::function<Status()>& run);

  // The launch arguments for a config: `names` picks those of the reference, in that order; empty:
  // all. Tensor maps are for the kernel. A reference with a separate source takes addresses.
  Result<std::vector<gpu::KernelArgument>> bind(const Scope& scope,
                                                const std::vector<std::string>& names = {});

  // Further sets of arguments for launches that rotate between sets; their inputs and outputs are
  // copies. There are enough sets that the L2 cache no longer holds a set when its turn comes
  // again. Made once, at most as many as fit a quarter of the memory; empty if none fits. All sets
  // share inouts and scratch buffers.
  Result<std::vector<std::vector<gpu::KernelArgument>>> further(
      const std::vector<gpu::KernelArgument>& bound);

  // The number of runs that detect each unwritten element: 1, or 2 if a correct value looks like
  // the poison.
  int verification_runs() const { return runs_; }
  // Before a run: restores inputs and poisons outputs.
  Status prepare(int run);
  // Restores inputs and inouts, or only the inouts.
  Status restore(bool inouts_only);
  bool has_inout() const;

  // The error of a run, as text; nullopt without one. The first checks memory outside the buffers,
  // the second whether inputs are what they were.
  Result<std::optional<std::string>> find_stray_write();
  Result<std::optional<std::string>> find_changed_input();
  // Copies the outputs of a run to the host, and then compares them with the reference's. The
  // comparison leaves the device alone, so it may run on another thread while the device works.
  Status read_outputs();
  std::optional<std::string> find_wrong_output(int run) const;

 private:
  struct Slot {
    std::size_t index = 0;  // into the spec's arguments
    std::vector<std::int64_t> extents;
    std::size_t count = 0;
    std::optional<GuardedBuffer> live, pristine;
    std::unique_ptr<gpu::Buffer> copies;  // one behind the other, for further()
    std::string expected;                 // outputs: the reference's bytes
    // Outputs: what was read last. Kept, as its pages cost more than the reading.
    std::unique_ptr<gpu::HostMemory> got;
    double magnitude = 0;               // of these (compare.h)
    Tolerance tolerance{};              // that an output is compared with
    std::vector<std::uint8_t> poisons;  // outputs: one for each run, the last for those after
  };
  Arguments(gpu::Device& device, const KernelSpec& spec, bool verify)
      : device_(&device), spec_(&spec), verify_(verify) {}
  const Argument& argument(const Slot& slot) const { return spec_->arguments[slot.index]; }
  bool is_result(const Slot& slot) const;
  Result<std::shared_ptr<const gpu::TensorMap>> tensor_map(const Slot& slot,
                                                           const Scope& scope) const;
  Status measure(Slot& slot, const Scope& scope) const;
  // Whether a copy of its first contents is kept.
  bool keeps_pristine(const Slot& slot) const;
  Status allocate(Slot& slot, std::uint64_t extra_seed);
  Status check_memory() const;
  double needed_bytes() const;
  bool rotates(const Slot& slot) const;
  std::size_t stride_of(const Slot& slot) const;  // of its copies
  std::size_t count_copies() const;
  Status make_copies(Slot& slot) const;
  Status poison_results(std::uint8_t byte);
  Status choose_poisons(Slot& slot);
  static std::uint8_t poison_of(const Slot& slot, int run);
  std::string tolerance_text(const Slot& slot) const;
  std::string describe(const Slot& slot, const Difference& difference, std::uint8_t poison) const;

  gpu::Device* device_;
  const KernelSpec* spec_;
  bool verify_;
  std::vector<Slot> slots_;  // one for each argument; scalars have no buffer
  int runs_ = 1;
  std::optional<std::size_t> copies_;  // of each slot that rotates, once made
};

}  // namespace purlin::measure
