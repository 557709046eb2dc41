// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/process_sampler.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::size_t kMaxProgramName = 1000;  // bytes of a line of the identity

std::string environment_variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

bool is(const std::string& text, const char* one, const char* other) {
  return text == one || text == other;
}

std::string beginning_of(const char* path) {
  char buffer[2048];
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  return std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
}

// The rank as launchers of distributed programs tell it, -1 where none does.
long rank_of_process() {
  for (const char* name :
       {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    const std::string text = environment_variable(name);
    char* end = nullptr;
    const long rank = std::strtol(text.c_str(), &end, 10);
    if (!text.empty() && *end == '\0' && rank >= 0) return rank;
  }
  return -1;
}

// `purlin profile` names the run. If nothing names it, each process is a separate run.
std::string run_of_process() {
  if (std::string id = environment_variable("PURLIN_RUN_ID"); !id.empty()) return id;
  if (const std::string job = environment_variable("SLURM_JOB_ID"); !job.empty())
    return job + '.' + environment_variable("SLURM_STEP_ID");
  for (const char* name : {"TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID"})
    if (std::string id = environment_variable(name); !id.empty() && id != "none") return id;
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::to_string(::getpid()) + '-' + std::to_string(now.tv_sec) + '-' +
         std::to_string(now.tv_nsec);
}

// One line of the identity.
std::string line(const char* name, std::string text) {
  text.resize(std::min(text.size(), kMaxProgramName));
  for (char& character : text)
    if (static_cast<unsigned char>(character) < 0x20) character = '?';
  return std::string(name) + ' ' + text + '\n';
}

std::string trimmed(std::string_view text) {
  const auto space = [](char character) { return character == ' ' || character == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// What follows `name` in a line of the driver's.
std::string after(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size();
  return trimmed(std::string_view(text).substr(begin, text.find('\n', begin) - begin));
}

// The first GPU's model and the driver's version, from the kernel's module: the driver itself is
// being initialised.
std::string device() {
  constexpr const char* kGpus = "/proc/driver/nvidia/gpus";
  std::string first;
  if (DIR* folder = ::opendir(kGpus)) {
    while (const dirent* entry = ::readdir(folder))
      if (entry->d_name[0] != '.' && (first.empty() || entry->d_name < first))
        first = entry->d_name;
    ::closedir(folder);
  }
  std::string model, driver;
  if (!first.empty())
    model =
        after(beginning_of((std::string(kGpus) + '/' + first + "/information").c_str()), "Model:");
  driver = after(beginning_of("/proc/driver/nvidia/version"), "NVRM version:");
  return (model.empty() ? "unknown" : model) + ", " + (driver.empty() ? "unknown" : driver);
}

// The options that add to the usual capture. Each has a separate overhead.
std::string kind_of_capture() {
  std::string text = environment_variable("PURLIN_FULL") == "1" ? "full" : "governed";
  if (environment_variable("PURLIN_WAITS") == "1") text += " waits";
  if (environment_variable("PURLIN_COPIES") == "on") text += " copies";
  for (const char* name : {"PURLIN_WINDOW", "PURLIN_COUNTERS", "PURLIN_STALLS"})
    if (const std::string value = environment_variable(name); !value.empty() && value != "0")
      text += ' ' + std::string(name + 7) + '=' + value;
  return text;
}

std::string executable() {
  char buffer[4096];
  const ssize_t got = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  return std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
}

std::string state_folder() {
  if (std::string folder = environment_variable("PURLIN_STATE"); !folder.empty()) return folder;
  if (const std::string home = environment_variable("XDG_STATE_HOME"); !home.empty())
    return home + "/purlin";
  if (const std::string home = environment_variable("HOME"); !home.empty())
    return home + "/.local/state/purlin";
  return "";
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", share * 100);
  return text;
}

std::string why_no_copies(bool known) {
  return std::string(
             "memcpy and memset are not recorded, because recording them slows every launch "
             "to the end of a program: ") +
         (known ? "this one made too many launches for the budget when it was last recorded"
                : "how many launches this one makes is not known yet") +
         "; --copies on (PURLIN_COPIES=on) records them";
}

void decide_by_record(ProcessSampler& sampler, double budget, std::string& why) {
  std::string program = environment_variable("PURLIN_PROGRAM");
  if (program.empty()) program = program_name(executable(), beginning_of("/proc/self/cmdline"));
  const std::string kind = kind_of_capture();
  sampler.governed = kind.substr(0, 4) != "full";
  sampler.identity = line("program", program) + line("device", device()) + line("capture", kind);
  const std::string folder = state_folder();
  if (folder.empty() || folder.front() != '/') {
    sampler.notes.push_back(
        {"sample_auto",
         "--sample auto has nowhere to keep what capture costs, so every run is "
         "recorded: set PURLIN_STATE to a folder, or HOME"});
    return;
  }
  char name[32];
  std::snprintf(name, sizeof name, "/capture-cost/%016llx",
                static_cast<unsigned long long>(number_of(sampler.identity)));
  sampler.path = folder + name;
  const CostFile file = read_cost_record(sampler.path, sampler.identity);
  const bool known = file.state == CostFile::State::kRead;
  // What had no room within a larger budget has none within this one.
  if (!sampler.windows && !is(environment_variable("PURLIN_WINDOWS"), "off", "0"))
    sampler.windows = known && sampler.governed && file.record.ended && !file.record.launch_bound &&
                      budget > 0.999 * file.record.budget;
  if (const std::string copies = environment_variable("PURLIN_COPIES");
      sampler.copies && copies != "on" && copies != "off") {
    sampler.copies = known ? !file.record.ended : copies == "auto";
    if (!sampler.copies) sampler.notes.push_back({"no_copies", why_no_copies(known)});
  }
  if (!known) {
    const bool absent = file.state == CostFile::State::kAbsent;
    sampler.notes.push_back(
        {absent ? "sample_auto" : "sample_record",
         absent ? "this program has no record on this device and driver of what capture costs it: "
                  "it is recorded, and later runs go by " +
                      sampler.path + " (--sample auto)"
                : file.reason + ": taken as absent, so this run is recorded (--sample auto)"});
    return;
  }
  sampler.one_in = one_in(file.record, budget);
  if (sampler.one_in == 1) return;
  const double cost = file.record.cost(budget);
  why = "capture takes an estimated " + percent(cost) + " of this program's time, as " +
        sampler.path + " has it, and the budget is " + percent(budget);
  if (cost > kMaxRunsPerCapture * budget)
    why += ", and one run in " + std::to_string(kMaxRunsPerCapture) + " is the least";
}

}  // namespace

// FNV-1a: all ranks of a run get the same number, on every machine.
std::uint64_t number_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char character : text)
    hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211u;
  return hash ^ (hash >> 32);
}

bool is_drawn(std::uint64_t run, long rank, int one_in) {
  const auto n = static_cast<std::uint64_t>(one_in);
  return (run % n + (rank < 0 ? 0 : static_cast<std::uint64_t>(rank))) % n == 0;
}

std::string program_name(std::string_view executable, std::string_view arguments) {
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  const std::string_view tool = base(executable);
  constexpr std::array<std::string_view, 8> kInterpreters = {"python", "pypy", "julia", "node",
                                                             "perl",   "ruby", "java",  "lua"};
  const bool interprets =
      std::any_of(kInterpreters.begin(), kInterpreters.end(), [&](std::string_view name) {
        return tool.substr(0, name.size()) == name &&
               std::none_of(tool.begin() + static_cast<std::ptrdiff_t>(name.size()), tool.end(),
                            [](unsigned char letter) { return std::isalpha(letter) != 0; });
      });
  std::string name(executable);
  if (!interprets) return name;
  bool first = true;
  std::string_view named_by;  // -m MODULE, -c CODE, -jar FILE
  while (!arguments.empty()) {
    const std::string_view word = arguments.substr(0, arguments.find('\0'));
    arguments.remove_prefix(std::min(word.size() + 1, arguments.size()));
    if (std::exchange(first, false)) continue;
    if (!named_by.empty()) {
      name += ' ' + std::string(named_by) + ' ';
      if (named_by != "-c" && named_by != "-e") return name += base(word);
      char text[24];
      std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number_of(word)));
      return name += text;
    }
    if (word == "-m" || word == "-c" || word == "-e" || word == "-jar") {
      named_by = word;
    } else if (word == "-W" || word == "-X") {  // Python's, of which the next word is a part
      first = true;
    } else if (!word.empty() && word.front() != '-') {
      return name += ' ' + std::string(base(word));
    }
  }
  return name;
}

ProcessSampler ProcessSampler::from_environment(double budget, bool may_be_automatic) {
  ProcessSampler sampler;
  const std::string sample = environment_variable("PURLIN_SAMPLE");
  std::string why;
  const bool automatic = sample.empty() || sample == "auto";
  sampler.copies = environment_variable("PURLIN_COPIES") != "off";
  sampler.copies_asked_for = environment_variable("PURLIN_COPIES") == "on";
  sampler.windows = is(environment_variable("PURLIN_WINDOWS"), "on", "1");
  if (sampler.windows) sampler.copies = sampler.copies_asked_for;
  if (automatic) {
    // A capture that idles costs nothing until it is asked.
    if (may_be_automatic && environment_variable("PURLIN_IDLE") != "1")
      decide_by_record(sampler, budget, why);
  } else {
    sampler.one_in =
        static_cast<int>(std::clamp(std::strtol(sample.c_str(), nullptr, 10), 1l, 1'000'000l));
  }
  if (sampler.one_in == 1) return sampler;
  const long rank = rank_of_process();
  const std::string of = std::string(rank < 0 ? "one run" : "one rank") + " in " +
                         std::to_string(sampler.one_in) + " is recorded (--sample" +
                         (automatic ? " auto): " : "): ");
  if (is_drawn(number_of(run_of_process()), rank, sampler.one_in)) {
    if (automatic)
      sampler.notes.push_back({"sample_auto", of + "this one represents as many, since " + why});
    return sampler;
  }
  // The same of all ranks, so that their notes become one.
  sampler.left_out = of + "not this one";
  if (automatic) sampler.left_out += ", since " + why + ". Without --sample every run is recorded";
  sampler.one_in = 0;
  return sampler;
}

}  // namespace purlin::profile::capture
