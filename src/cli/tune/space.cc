// SPDX-License-Identifier: Apache-2.0
// `purlin space`: build the space of a spec or a recording; count it, show what pruned it, export
// it.
#include "base/csv.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/tune/target.h"
#include "gpu/registry.h"
#include "gpu/replay/replay_device.h"
#include "model/document.h"
#include "tune/session/replay_evaluator.h"
#include "tune/session/subject.h"
#include "tune/space/build.h"

#include <algorithm>

namespace purlin::cli {
namespace {

class SpaceCommand : public Command {
 public:
  std::string_view name() const override { return "space"; }
  std::string_view summary() const override {
    return "Build and count the configs of a kernel, show constraints, export";
  }
  VerbText text() const override {
    return {.description =
                "Builds the space of a spec and shows the effect of each constraint: the number of "
                "configs that it removes and that no earlier constraint removes. The numbers add "
                "up to all removed configs.",
            .more =
                "SPEC is a TOML spec or a T1 file. Spaces that are too large to list are counted, "
                "too. Where constraints make counting impossible, the number of valid configs is "
                "an estimate, and marked so.",
            .examples = {{"purlin space gemm.toml --shape M=512,N=512,K=512"},
                         {"purlin space gemm.toml --sample 5"},
                         {"purlin space gemm.toml --export csv > configs.csv"},
                         {"purlin space t1-hotspot.json --export json --limit 1000"}},
            .exit_codes = {{0, "Done"}, {2, "Error, or no config satisfies the constraints"}},
            .see = {"docs/guide/tuning.md", "docs/formats/spec.md", "docs/formats/space.md"}};
  }

  void declare(Flags& flags) override {
    flags.positional("SPEC", spec_, "Spec of the kernel (TOML or T1), not needed for a replay",
                     false);
    flags.option("--shape", shape_, "Problem shape: M=512,N=512 or the name of a preset", "SHAPE");
    flags.option("--device", device_, "Device whose limits apply, or replay:FILE", "DEVICE");
    flags.option("--sample", sample_, "Show this many configs, drawn uniformly at random");
    flags.option("--seed", seed_, "Seed of the sample");
    flags.option(
        "--export", export_,
        {"Print every config, or the sample, as csv or json", "", {{"csv", ""}, {"json", ""}}},
        "FORMAT");
    flags.option("--limit", limit_, "Maximum number of configs to export, 0 for all");
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    if (!export_.empty() && export_ != "csv" && export_ != "json")
      return error(Code::kInvalid, "--export takes csv or json, not '{}'", export_);
    if (!export_.empty() && json_)
      return error(Code::kInvalid, "--export and --json exclude each other");
    if (sample_ < 0 || seed_ < 0 || limit_ < 0)
      return error(Code::kInvalid, "--sample, --seed and --limit: 0 or more");
    const Interrupt interrupt;
    PURLIN_TRY(build(context));
    Random random(static_cast<std::uint64_t>(seed_));
    const std::vector<std::size_t> sample =
        space_.sample(static_cast<std::size_t>(sample_), random);
    if (json_) {
      print_json(context, sample);
    } else if (!export_.empty()) {
      print_configs(context, sample);
    } else {
      print_text(context, sample);
    }
    return Interrupt::requested() ? kExitInconclusive : kExitOk;
  }

 private:
  Status build(Context& context) {
    Progress progress(stderr, context.error_terminal, !context.quiet);
    if (spec_.empty() && starts_with(device_, "replay:")) {
      const std::string path = device_.substr(device_.find(':') + 1);
      PURLIN_ASSIGN(gpu::ReplaySpace recording, gpu::ReplaySpace::read(path));
      if (const std::string& note = recording.recording().note; !note.empty())
        context.log.warn("{}: {}", path, note);
      const gpu::ReplayDevice device(std::move(recording), path);
      info_ = device.info();
      name_ = device.space().kernel();
      return timed([&] { return tune::space_of(device.space()); });
    }
    if (spec_.empty())
      return error(Code::kInvalid,
                   "no spec given; use: purlin space SPEC, or --device replay:FILE without one");
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(spec_, SpecUse::kSpace));
    if (spec.library)
      return error(Code::kInvalid,
                   "{}: the space of a [library] is asked of the library on the device; `purlin "
                   "tune` says how many algorithms it has for a shape",
                   spec.file);
    PURLIN_ASSIGN(problem_, resolve_shape(spec, shape_));
    name_ = spec.name;
    const Result<DeviceInfo> device = tune::device_for_spec(spec, device_);
    if (device.is_ok()) info_ = *device;
    for (const SpecExpression& constraint : spec.constraints)
      for (const std::string& used : constraint.expression.names())
        if (!device.is_ok() && (device_ != "auto" || starts_with(used, "device_")))
          return device.status().with_context(constraint.where + ": uses '" + used + "'");
    return timed([&] {
      return tune::build_space(spec, problem_, info_, {}, [&](double share) {
        progress.update(fmt::format("building the space: {:.1f} %", 100 * share));
        return !Interrupt::requested();
      });
    });
  }

  template <class Build>
  Status timed(const Build& build) {
    const std::int64_t start_ns = system_clock().monotonic_ns();
    PURLIN_ASSIGN(space_, build());
    build_s_ = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    return Status::ok();
  }

  void print_json(const Context& context, const std::vector<std::size_t>& sample) const {
    Json document = new_document("purlin.space/1", environment_of(info_));
    Json pruned = Json::array(), parameters = Json::array(), configs = Json::array();
    for (const tune::Pruned& by : space_.pruned())
      pruned.push(Json::object(
          {{"constraint", by.constraint}, {"where", by.where}, {"configs", by.configs}}));
    for (const Parameter& parameter : space_.parameters()) {
      Json values = Json::array();
      for (const Value& value : parameter.values) values.push(to_json(value));
      parameters.push(Json::object({{"name", parameter.name}, {"values", std::move(values)}}));
    }
    for (const std::size_t index : sample) configs.push(to_json(space_.config(index)));
    document.set("kernel", name_)
        .set("problem", to_json(problem_))
        .set("cartesian", space_.cartesian())
        .set("valid", space_.size())
        .set("valid_is_estimate", !space_.is_exact());
    if (!space_.is_exact()) document.set("valid_relative_error", space_.size_error());
    document.set("pruned", std::move(pruned))
        .set("build_s", build_s_)
        .set("parameters", std::move(parameters));
    if (sample_ > 0) document.set("sample", std::move(configs));
    context.print(document.dump(1) + "\n");
  }

  // Streamed: a space may be larger than memory.
  void print_configs(const Context& context, const std::vector<std::size_t>& sample) const {
    const bool csv = export_ == "csv";
    std::vector<std::string> names;
    for (const Parameter& parameter : space_.parameters())
      names.push_back(csv_text(parameter.name));
    std::string text = csv ? join(names, ",") + "\n" : "[";
    const std::size_t count = sample_ > 0 ? sample.size() : space_.index_count();
    const std::size_t most = limit_ > 0 ? static_cast<std::size_t>(limit_) : count;
    std::size_t printed = 0;
    for (std::size_t i = 0; i < count && printed < most && !Interrupt::requested(); ++i) {
      const std::size_t index = sample_ > 0 ? sample[i] : i;
      if (!space_.valid(index)) continue;
      const Config config = space_.config(index);
      if (csv) {
        std::vector<std::string> values;
        for (const auto& item : config.items()) values.push_back(csv_text(to_text(item.second)));
        text += join(values, ",") + "\n";
      } else {
        text += (printed == 0 ? "\n " : ",\n ") + to_json(config).dump();
      }
      ++printed;
      if (text.size() < kPiece) continue;
      context.print(text);
      text.clear();
    }
    context.print(text + (csv ? "" : "\n]\n"));
  }

  void print_text(const Context& context, const std::vector<std::size_t>& sample) const {
    std::string text = context.terminal.paint(Style::kBold, name_);
    if (!problem_.empty()) text += "  " + problem_.text();
    text += fmt::format(
        "\n{} valid configs of {} in the Cartesian product ({:.3g} %), built in {}\n",
        space_.is_exact() ? std::to_string(space_.size())
                          : fmt::format("about {:.3g}", static_cast<double>(space_.size())),
        space_.cartesian() < 1e15 ? fmt::format("{:.0f}", space_.cartesian())
                                  : fmt::format("{:.3g}", space_.cartesian()),
        100 * static_cast<double>(space_.size()) / space_.cartesian(), format_ns(build_s_ * 1e9));
    if (!space_.is_exact())
      text += fmt::format(
          "an estimate, give or take {:.1f} %: the constraints defeat counting; drawn and listed "
          "configs are valid\n",
          200 * space_.size_error());
    text += "\n";
    Table table;
    table.column("removed", Table::Align::kRight);
    table.column("share", Table::Align::kRight);
    table.column("constraint");
    for (const tune::Pruned& by : space_.pruned())
      table.row({by.configs < 1e15 ? fmt::format("{:.0f}", by.configs)
                                   : fmt::format("{:.3g}", by.configs),
                 fmt::format("{:.1f} %", 100 * by.configs / space_.cartesian()), by.constraint});
    if (!table.empty()) text += table.render(context.terminal);
    for (const std::size_t index : sample) text += space_.config(index).text() + "\n";
    context.print(text);
  }

  static constexpr std::size_t kPiece = 1 << 16;  // of an export, in bytes

  std::string spec_, shape_, device_ = "auto", export_;
  int sample_ = 0, seed_ = 1, limit_ = 0;
  bool json_ = false;
  tune::Space space_;
  DeviceInfo info_;
  ProblemShape problem_;
  std::string name_;
  double build_s_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_space_command() { return std::make_unique<SpaceCommand>(); }

}  // namespace purlin::cli
