// SPDX-License-Identifier: Apache-2.0
// `purlin doctor`: what works on this machine, the evidence, and how to fix what does not;
// with --ceilings, what its devices can do at most.
#include "cli/capabilities.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "gpu/registry.h"
#include "measure/ceilings/ceilings.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

class DoctorCommand : public Command {
 public:
  std::string_view name() const override { return "doctor"; }
  std::string_view summary() const override {
    return "Show what works on this machine and how to fix what does not";
  }
  std::string_view details() const override {
    return "Looks for drivers, devices, compilers, profiling interfaces and Purlin's own files, "
           "and "
           "changes nothing.\n"
           "Each capability is ok, degraded (works with limits) or missing. Without a GPU, Purlin "
           "needs only an\n"
           "OpenCL device; PoCL (pocl-opencl-icd) makes one of the CPU.\n\n"
           "--ceilings measures a device instead: bandwidth of its memory and L2 cache, FLOP/s by\n"
           "element type and unit. It takes about half a minute, wants the device to itself, and "
           "keeps the\n"
           "figures where reports find them.\n\n"
           "Examples:\n"
           "  purlin doctor --json | jq '.capabilities[] | select(.state != \"ok\")'\n"
           "  purlin doctor --ceilings --device cuda:0\n\n"
           "Exit code 0 whatever it finds; the document's `usable` says whether there is a "
           "device.\n";
  }
  void declare(Flags& flags) override {
    flags.flag("--json", json_, "Print one JSON document");
    flags.flag("--ceilings", ceilings_, "measure what a device can do at most, and keep it");
    flags.option("--device", device_, "which one --ceilings measures", "ID");
  }

  Result<int> run(Context& context) override {
    if (ceilings_) return measure(context);
    if (device_ != "auto")
      return error(Code::kInvalid, "--device says what --ceilings measures: give both");
    std::vector<std::string> problems;
    Environment environment = host_environment();
    environment.devices = gpu::discover(&problems);
    const std::vector<DeviceInfo>& devices = environment.devices;
    const std::vector<Capability> capabilities = examine_machine(devices, problems);
    if (json_) {
      Json document = new_document("purlin.doctor/1", environment);
      document.set("usable", !devices.empty());
      document.set("best_device", devices.empty() ? Json() : Json(devices.front().id));
      add_capabilities(document, capabilities);
      context.print(document.dump(2) + "\n");
      return kExitOk;
    }
    context.print(render_capabilities(capabilities, context.terminal));
    if (devices.empty())
      context.print(
          "\nNo device to work on; recorded search spaces still can be tuned with "
          "--device replay:FILE.\n");
    else
      context.print(fmt::format("\nReady: --device auto means {} ({}).\n",
                                context.terminal.paint(Style::kBold, devices.front().id),
                                devices.front().name));
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
    context.log.info("kept in {}; reports of this device use it", path);
    return kExitOk;
  }

  bool json_ = false, ceilings_ = false;
  std::string device_ = "auto";
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace purlin::cli
