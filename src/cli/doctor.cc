// SPDX-License-Identifier: Apache-2.0
// `purlin doctor`: the capabilities of this machine, with evidence and fixes. With --ceilings, the
// highest measured rates of a device.
#include "base/files.h"
#include "base/text.h"
#include "cache/store/capability.h"
#include "cli/capability_table.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/machine_limits.h"
#include "cli/tune/kernels_directory.h"
#include "gpu/capabilities.h"
#include "gpu/registry.h"
#include "measure/ceilings/ceilings.h"
#include "model/document.h"
#include "profile/capability.h"
#include "profile/spool.h"

namespace purlin::cli {
namespace {

Capability kernel_samples() {
  Capability result{"kernel_samples", "Sample kernels", CapabilityState::kMissing, "", ""};
  const auto directory = kernels_directory();
  if (!directory.is_ok()) {
    result.evidence = "not found";
    result.fix = directory.status().message();
    return result;
  }
  int specs = 0;
  for (const std::string& name : list_directory(*directory).value_or({})) {
    if (ends_with(name, ".toml")) ++specs;
    for (const std::string& inner : list_directory(join_path(*directory, name)).value_or({}))
      if (ends_with(inner, ".toml")) ++specs;
  }
  result.state = specs > 0 ? CapabilityState::kOk : CapabilityState::kMissing;
  result.evidence = fmt::format("{} specs in {}", specs, *directory);
  if (specs == 0) result.fix = "reinstall Purlin, or set PURLIN_KERNELS to the folder with them";
  return result;
}

class DoctorCommand : public Command {
 public:
  std::string_view name() const override { return "doctor"; }
  std::string_view summary() const override {
    return "Show what works on this machine and how to fix what does not";
  }
  VerbText text() const override {
    return {
        .description =
            "Looks for drivers, devices, compilers, profiling interfaces and Purlin's own files. "
            "It changes nothing.\n\nEach capability is ok, degraded (works with limits) or "
            "missing. Without a GPU, Purlin needs only an OpenCL device: PoCL (pocl-opencl-icd) is "
            "one for the CPU.",
        .examples = {{"purlin doctor --json | jq '.capabilities[] | select(.state != \"ok\")'",
                      "What does not work here"},
                     {"purlin doctor --ceilings --device cuda:0"}},
        .exit_codes = {{0,
                        "Done, whether or not a device was found (`usable` in the JSON document)"},
                       {2, "Error"}},
        .see = {"docs/formats/doctor.md", "docs/formats/ceilings.md"}};
  }
  void declare(Flags& flags) override {
    flags.flag("--json", json_,
               {"Print one JSON document",
                "The schema is purlin.doctor/1, or purlin.ceilings/1 with --ceilings."});
    flags.flag("--ceilings", ceilings_,
               {"Measure the highest rates of a device and store them",
                "Purlin measures the bandwidth of memory and L2 cache, and FLOP/s by element type "
                "and unit. It takes about half a minute and needs the device without other load. "
                "Reports of this device use the result."});
    flags.option("--device", device_, "Device for --ceilings", "DEVICE");
  }

  Result<int> run(Context& context) override {
    if (ceilings_) return measure(context);
    if (device_ != "auto")
      return error(Code::kInvalid, "--device selects the device of --ceilings: give both");
    std::vector<std::string> problems;
    Environment environment = host_environment();
    environment.devices = gpu::discover(&problems);
    const std::vector<DeviceInfo>& devices = environment.devices;
    std::vector<Capability> capabilities = gpu::examine_devices(devices, problems);
    capabilities.push_back(profile::examine_capture_libraries());
    capabilities.push_back(profile::examine_spool());
    capabilities.push_back(cache::examine_directory());
    capabilities.push_back(kernel_samples());
    capabilities.push_back(examine_limits(read_limits("/")));
    if (json_) {
      Json document = new_document("purlin.doctor/1", environment);
      document.set("usable", !devices.empty());
      document.set("best_device", devices.empty() ? Json() : Json(devices.front().id));
      document.set("capabilities", to_json(capabilities));
      context.print(document.dump(2) + "\n");
      return kExitOk;
    }
    context.print(render_capabilities(capabilities, context.terminal));
    const std::string last =
        devices.empty()
            ? "No device found. Recorded search spaces can be tuned with --device replay:FILE."
            : fmt::format("Ready: --device auto means {} ({}).",
                          context.terminal.paint(Style::kBold, devices.front().id),
                          devices.front().name);
    context.print("\n" + prose_line(last, context.terminal));
    context.print(devices.empty() ? next_step({"purlin", "tune", "--device", "replay:FILE"})
                                  : next_step({"purlin", "demo"}));
    return kExitOk;
  }

 private:
  Result<int> measure(Context& context) const {
    PURLIN_ASSIGN(const std::unique_ptr<gpu::Device> device, gpu::open_device(device_));
    measure::CeilingOptions options;
    Progress progress(stderr, context.error_terminal, !context.quiet);
    options.progress = [&](std::string_view what) {
      progress.update(fmt::format("measuring {}", what));
    };
    PURLIN_ASSIGN(const measure::MeasuredCeilings measured,
                  measure::measure_ceilings(*device, options));
    progress.clear();
    const Json document = measure::ceilings_document(measured, device->info());
    if (json_) {
      context.print(document.dump(2) + "\n");
    } else {
      context.print(measure::render_ceilings(measured, device->info(), context.terminal));
    }
    PURLIN_ASSIGN(const std::string path,
                  measure::store_ceilings(document, device->info(), measure::ceilings_directory()));
    context.log.info("stored in {}; reports of this device use it", path);
    return kExitOk;
  }

  bool json_ = false, ceilings_ = false;
  std::string device_ = "auto";
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace purlin::cli
