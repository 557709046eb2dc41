// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/command_arm.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/os/process.h"
#include "base/text.h"
#include "measure/output/last_output.h"

#include <algorithm>
#include <atomic>
#include <set>

namespace purlin::guard {
namespace {

constexpr std::string_view kOutput = "{output}";
constexpr std::size_t kMaxBinary = std::size_t{2} << 30;
constexpr std::size_t kMaxOutput = std::size_t{64} << 20;

Item item_of(const CommandSpec& command, const std::string& benchmark) {
  Item item;
  item.kernel = command.name;
  if (!benchmark.empty()) item.kernel += (command.name.empty() ? "" : "/") + benchmark;
  if (item.kernel.empty()) item.kernel = base_name(command.argv.front());
  return item;
}

class CommandArm : public Arm {
 public:
  CommandArm(CommandArmOptions options, std::vector<CommandSpec> commands)
      : options_(std::move(options)), commands_(std::move(commands)) {}

  std::string label() const override { return options_.label; }
  const std::vector<Item>& items() const override { return items_; }
  const std::vector<SkippedItem>& skipped() const override { return skipped_; }

  Status prepare() override {
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      PURLIN_ASSIGN(Readings readings, run(commands_[i], nullptr));
      for (ItemReading& reading : readings) {
        if (!owner_.emplace(reading.item, i).second)
          return error(Code::kInvalid,
                       "{}: '{}' is measured by two commands; give one of them a 'name'", where(i),
                       reading.item.text());
        if (reading.skipped) {
          skipped_.push_back({std::move(reading.item), reading.status.message()});
          continue;
        }
        items_.push_back(reading.item);
        rehearsed_.push_back(std::move(reading));
      }
    }
    return Status::ok();
  }

  std::string fingerprint() const override {
    FieldHasher hasher;
    hasher.add(options_.identity);
    for (const CommandSpec& command : commands_) {
      // With an identity, such as a commit, the folder may differ.
      if (options_.identity.empty()) hasher.add(options_.directory).add(binary_id(command));
      hasher.add(command.name).add(command.directory);
      for (const std::string& word : command.argv) hasher.add(word);
      for (const auto& [name, value] : environment_of(command)) hasher.add(name).add(value);
    }
    return hasher.hex();
  }

  Json record() const override {
    Json list = Json::array();
    for (const CommandSpec& command : commands_)
      list.push(Json::object({{"name", command.name},
                              {"argv", Json::array_of(command.argv)},
                              {"format", to_text(command.rules.format)}}));
    Json environment = Json::object();
    for (const auto& [name, value] : options_.environment) environment.set(name, value);
    Json record = Json::object({{"label", options_.label},
                                {"directory", options_.directory},
                                {"commands", std::move(list)},
                                {"environment", std::move(environment)}});
    if (!options_.identity.empty()) record.set("code", options_.identity);
    return record;
  }

  Result<Readings> launch(const std::vector<Item>& wanted) override {
    // In the order of the wanted items. A command with several of them runs once.
    Readings readings;
    std::set<std::size_t> done;
    for (const Item& item : wanted) {
      const auto owner = owner_.find(item);
      if (owner == owner_.end() || !done.insert(owner->second).second) continue;
      PURLIN_ASSIGN(Readings some, run(commands_[owner->second], &wanted));
      std::move(some.begin(), some.end(), std::back_inserter(readings));
    }
    return readings;
  }

  Result<Readings> rehearse(const std::vector<Item>& wanted) override {
    Readings readings;
    for (const ItemReading& reading : rehearsed_)
      if (std::find(wanted.begin(), wanted.end(), reading.item) != wanted.end())
        readings.push_back(reading);
    return readings;
  }

 private:
  std::string where(std::size_t command) const {
    return commands_[command].where.empty() ? options_.label : commands_[command].where;
  }
  std::map<std::string, std::string> environment_of(const CommandSpec& command) const {
    std::map<std::string, std::string> environment = command.environment;
    for (const auto& [name, value] : options_.environment) environment[name] = value;
    environment["PURLIN_SEED"] = std::to_string(options_.seed);
    return environment;
  }

  Result<std::string> times_folder() const {
    if (options_.scratch.empty()) return make_temporary_directory("purlin-times");
    static std::atomic<unsigned> next{0};  // of all arms
    std::string folder = join_path(options_.scratch, fmt::format("times-{}", next++));
    PURLIN_TRY(make_directories(folder));
    return folder;
  }

  // Every reported item. If the command fails, all its known items fail. In prepare() none are
  // known yet (`wanted` is null), and the arm fails.
  Result<Readings> run(const CommandSpec& command, const std::vector<Item>* wanted) {
    PURLIN_ASSIGN(const std::string scratch, times_folder());
    Result<std::vector<measure::BenchmarkTimes>> times =
        measure(command, join_path(scratch, "times"));
    (void)remove_tree(scratch);
    Readings readings;
    if (!times.is_ok()) {
      const Status why = error(Code::kFailed, "{}", times.status().message());
      if (wanted == nullptr)
        return why.with_context(command.name.empty() ? join(command.argv, " ") : command.name);
      for (const Item& item : *wanted)
        if (&commands_[owner_.at(item)] == &command) readings.push_back({item, why, {}});
      return readings;
    }
    for (measure::BenchmarkTimes& benchmark : *times) {
      ItemReading reading;
      reading.item = item_of(command, benchmark.name);
      if (!benchmark.failure.empty()) {
        reading.status = error(Code::kFailed, "{}", benchmark.failure);
      } else if (!benchmark.skipped.empty()) {
        reading.status = error(Code::kFailed, "it skips itself: {}", benchmark.skipped);
        reading.skipped = true;
      } else {
        Result<ProcessReading> process = summarise(
            std::move(benchmark.times_ns), std::move(benchmark.clocks_mhz), options_.nominal_mhz);
        if (process.is_ok())
          reading.process = std::move(process).value();
        else
          reading.status = process.status();
      }
      readings.push_back(std::move(reading));
    }
    return readings;
  }

  // The contents of the program, where a path names it.
  std::string binary_id(const CommandSpec& command) const {
    const std::string& program = command.argv.front();
    if (program.find('/') == std::string::npos) return "";
    const Result<std::string> contents =
        read_file(join_path(join_path(options_.directory, command.directory), program), kMaxBinary);
    return contents.is_ok() ? hash128_hex(*contents) : "";
  }

  Result<std::vector<measure::BenchmarkTimes>> measure(const CommandSpec& command,
                                                       const std::string& output) const {
    Process::Options process;
    bool to_file = false;
    for (std::string word : command.argv) {
      for (std::size_t at = word.find(kOutput); at != std::string::npos;
           at = word.find(kOutput, at + output.size())) {
        word.replace(at, kOutput.size(), output);
        to_file = true;
      }
      process.argv.push_back(std::move(word));
    }
    // A name with a slash is relative to the working folder of the command, as in a shell there.
    process.directory = join_path(options_.directory, command.directory);
    if (process.argv[0].find('/') != std::string::npos)
      process.argv[0] = join_path(process.directory, process.argv[0]);
    process.environment = environment_of(command);
    PURLIN_ASSIGN(const Captured captured, run_captured(process, command.timeout_s, kMaxOutput));
    if (captured.timed_out)
      return error(Code::kFailed, "it did not end within {} s", command.timeout_s);
    if (!captured.exit.ok())
      return error(Code::kFailed, "it ended with {}: {}", captured.exit.text(),
                   measure::last_output(captured));
    if (!to_file) {
      if (captured.truncated)
        return error(Code::kFailed, "it wrote more than {} MB", kMaxOutput >> 20);
      return measure::parse_benchmark_output(captured.out, command.rules, process.directory);
    }
    if (!file_exists(output))
      return error(Code::kFailed, "it did not write the file given to it as {{output}}");
    PURLIN_ASSIGN(const std::string text, read_file(output, kMaxOutput));
    return measure::parse_benchmark_output(text, command.rules, parent_path(output));
  }

  CommandArmOptions options_;
  std::vector<CommandSpec> commands_;
  std::vector<Item> items_;
  std::vector<SkippedItem> skipped_;
  std::map<Item, std::size_t> owner_;  // index into commands_
  Readings rehearsed_;
};

class JoinedArm : public Arm {
 public:
  JoinedArm(std::string label, std::vector<std::unique_ptr<Arm>> arms)
      : label_(std::move(label)), arms_(std::move(arms)) {}

  std::string label() const override { return label_; }
  const std::vector<Item>& items() const override { return items_; }
  const std::vector<SkippedItem>& skipped() const override { return skipped_; }
  std::size_t most_per_launch() const override {
    std::size_t most = SIZE_MAX;
    for (const auto& arm : arms_) most = std::min(most, arm->most_per_launch());
    return most;
  }

  Status prepare() override {
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      PURLIN_TRY(arms_[i]->prepare());
      for (const Item& item : arms_[i]->items()) {
        if (!owner_.emplace(item, i).second)
          return error(Code::kInvalid, "'{}' is in the suite twice", item.text());
        items_.push_back(item);
      }
      const std::vector<SkippedItem>& skipped = arms_[i]->skipped();
      skipped_.insert(skipped_.end(), skipped.begin(), skipped.end());
    }
    return Status::ok();
  }
  std::string fingerprint() const override {
    FieldHasher hasher;
    for (const auto& arm : arms_) hasher.add(arm->fingerprint());
    return hasher.hex();
  }
  Json record() const override {
    Json parts = Json::array();
    for (const auto& arm : arms_) parts.push(arm->record());
    return Json::object({{"label", label_}, {"parts", std::move(parts)}});
  }
  Result<Readings> launch(const std::vector<Item>& wanted) override {
    return each(wanted, [](Arm& arm, const std::vector<Item>& items) { return arm.launch(items); });
  }
  Result<Readings> rehearse(const std::vector<Item>& wanted) override {
    return each(wanted,
                [](Arm& arm, const std::vector<Item>& items) { return arm.rehearse(items); });
  }

 private:
  // Launches each arm with its items, in the order of the first wanted item of each.
  template <typename Do>
  Result<Readings> each(const std::vector<Item>& wanted, Do act) {
    std::vector<std::size_t> order;
    std::map<std::size_t, std::vector<Item>> shares;
    for (const Item& item : wanted) {
      const std::size_t arm = owner_.at(item);
      if (shares[arm].empty()) order.push_back(arm);
      shares[arm].push_back(item);
    }
    Readings readings;
    for (const std::size_t arm : order) {
      PURLIN_ASSIGN(Readings some, act(*arms_[arm], shares[arm]));
      std::move(some.begin(), some.end(), std::back_inserter(readings));
    }
    return readings;
  }

  std::string label_;
  std::vector<std::unique_ptr<Arm>> arms_;
  std::vector<Item> items_;
  std::vector<SkippedItem> skipped_;
  std::map<Item, std::size_t> owner_;
};

}  // namespace

std::unique_ptr<Arm> make_command_arm(CommandArmOptions options,
                                      std::vector<CommandSpec> commands) {
  return std::make_unique<CommandArm>(std::move(options), std::move(commands));
}

std::unique_ptr<Arm> join_arms(std::string label, std::vector<std::unique_ptr<Arm>> arms) {
  if (arms.size() == 1) return std::move(arms.front());
  return std::make_unique<JoinedArm>(std::move(label), std::move(arms));
}

}  // namespace purlin::guard
