// SPDX-License-Identifier: Apache-2.0
#include "profile/run_facts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr std::size_t kIdDigits = 64;  // of a container, in the names that engines give it
constexpr std::size_t kMaxFactBytes = 256;
constexpr std::size_t kMaxProcBytes = std::size_t{256} << 10;

// Each with the variable of a part of the job: a step, or a task of an array.
struct Scheduler {
  const char *name, *job, *part;
};
constexpr Scheduler kSchedulers[] = {{"slurm", "SLURM_JOB_ID", "SLURM_STEP_ID"},
                                     {"pbs", "PBS_JOBID", nullptr},
                                     {"lsf", "LSB_JOBID", "LSB_JOBINDEX"},
                                     {"flux", "FLUX_JOB_ID", nullptr},
                                     {"grid-engine", "JOB_ID", "SGE_TASK_ID"},
                                     {"htcondor", "_CONDOR_JOB_ID", nullptr},
                                     {"cobalt", "COBALT_JOBID", nullptr},
                                     {"aws-batch", "AWS_BATCH_JOB_ID", nullptr},
                                     {"ray", "RAY_JOB_ID", nullptr}};

class FactReader {
 public:
  explicit FactReader(const RunSources& sources) : sources_(sources) {}

  RunFacts read() {
    add("host", sources_.host);
    add("user", first_of({"USER", "LOGNAME"}, sources_.user));
    job();
    add("container", container());
    pod();
    return std::move(facts_);
  }

 private:
  std::string variable(const char* name) const {
    const char* value = name != nullptr ? sources_.variable(name) : nullptr;
    return value != nullptr ? value : "";
  }
  std::string first_of(std::initializer_list<const char*> names, std::string otherwise) const {
    for (const char* name : names)
      if (std::string value = variable(name); !value.empty()) return value;
    return otherwise;
  }
  void add(const char* key, std::string value) {
    if (value.size() > kMaxFactBytes) value.resize(kMaxFactBytes);
    if (!value.empty()) facts_.emplace_back(key, std::move(value));
  }

  void job() {
    for (const Scheduler& scheduler : kSchedulers) {
      const std::string id = variable(scheduler.job);
      if (id.empty()) continue;
      // Without a task, Grid Engine says "undefined" and LSF 0.
      const std::string part = variable(scheduler.part);
      const bool whole = part.empty() || part == "undefined" ||
                         (part == "0" && std::strcmp(scheduler.name, "lsf") == 0);
      add("scheduler", scheduler.name);
      add("job", whole ? id : id + '.' + part);
      return;
    }
  }

  // The last run of 64 hexadecimal digits: engines name a container so in its cgroup and mounts.
  static std::string id_in(std::string_view text) {
    std::string found;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const char digit = i < text.size() ? text[i] : '\n';
      if ((digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f')) continue;
      if (i - begin == kIdDigits) found = text.substr(begin, kIdDigits);
      begin = i + 1;
    }
    return found;
  }

  // A cgroup namespace hides the path of the cgroup. The mounts of a container's own files still
  // have it; those of others are an engine's, whose host this is.
  std::string container() const {
    if (std::string id = id_in(sources_.cgroup); !id.empty()) return id;
    std::string_view rest = sources_.mountinfo;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line.find(" /etc/hostname ") == line.npos && line.find(" /etc/resolv.conf ") == line.npos)
        continue;
      if (std::string id = id_in(line); !id.empty()) return id;
    }
    return first_of({"APPTAINER_NAME", "SINGULARITY_NAME"}, "");
  }

  // A pod's host name is its name, unless its manifest gives another.
  void pod() {
    if (variable("KUBERNETES_SERVICE_HOST").empty()) return;
    const std::string name = first_of({"POD_NAME", "MY_POD_NAME", "HOSTNAME"}, sources_.host);
    const std::string space = first_of({"POD_NAMESPACE", "MY_POD_NAMESPACE"}, "");
    add("pod", space.empty() ? name : space + '/' + name);
  }

  const RunSources& sources_;
  RunFacts facts_;
};

std::string contents_of(const char* path) {
  std::string text;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char buffer[4096];
  for (ssize_t got; text.size() < kMaxProcBytes && (got = ::read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(file);
  return text;
}

}  // namespace

RunFacts read_run_facts(const RunSources& sources) { return FactReader(sources).read(); }

RunFacts facts_of_this_run() {
  RunSources sources;
  sources.variable = [](const char* name) -> const char* { return std::getenv(name); };
  const char* anonymous = sources.variable("PURLIN_ANONYMOUS");
  if (anonymous != nullptr && std::strcmp(anonymous, "1") == 0) return {};
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) sources.host = host;
  sources.user = "uid " + std::to_string(::geteuid());
  sources.cgroup = contents_of("/proc/self/cgroup");
  sources.mountinfo = contents_of("/proc/self/mountinfo");
  return read_run_facts(sources);
}

}  // namespace purlin::profile
