// SPDX-License-Identifier: Apache-2.0
// Which tool's a file is, by what is in it; and, for one that is no profile Purlin reads, what it
// seems to be and how to make one of it.
#include "base/files.h"
#include "base/text.h"
#include "profile/format/file.h"
#include "profile/format/wire.h"
#include "profile/import/chrome/trace.h"
#include "profile/import/flow/flow.h"
#include "profile/import/import.h"
#include "profile/import/input.h"
#include "profile/import/ncu/csv.h"
#include "profile/import/ncu/stall_csv.h"
#include "profile/import/nsys/sqlite_file.h"
#include "profile/import/proton/hatchet.h"
#include "profile/import/rocm/rocpd.h"
#include "profile/import/rocm/rocprof_csv.h"
#include "profile/import/rocm/rocprof_json.h"
#include "profile/ops/op_names.h"
#include "profile/spool.h"

#include <algorithm>
#include <array>
#include <sys/stat.h>

namespace purlin::profile {
namespace {

constexpr std::size_t kPrefixBytes = 256 << 10;
constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};
constexpr std::string_view kSupported =
    "supported: Purlin profiles, Chrome traces of PyTorch, JAX and others (.json, .json.gz), "
    "PyTorch's execution traces, "
    "Nsight Systems SQLite, Nsight Compute CSV, rocprof CSV and JSON, rocpd databases, Proton's "
    "hatchet files, CSV of stall samples";

// Formats that are not read: found by their first bytes or, for the hint only, by their name.
struct Foreign {
  std::string_view magic;   // at the beginning; "" = by name
  std::string_view suffix;  // "" = by magic
  std::string_view what, instead;
};
constexpr std::array<Foreign, 18> kForeign = {{
    {"", ".nsys-rep", "a report of Nsight Systems",
     "export it: nsys export --type sqlite -o report.sqlite {}"},
    {"", ".qdrep", "a report of Nsight Systems",
     "export it: nsys export --type sqlite -o report.sqlite {}"},
    {"", ".qdstrm", "an unfinished report of Nsight Systems",
     "make a report of it with QdstrmImporter, then nsys export --type sqlite"},
    {"", ".ncu-rep", "a report of Nsight Compute",
     "export it: ncu --import {} --csv --page raw > report.csv"},
    {"NVR\0", "", "a report of Nsight Compute",
     "export it: ncu --import {} --csv --page raw > report.csv"},
    {"PERFILE2", "", "a recording of Linux perf", "it has no GPU work in it"},
    {"", ".pftrace", "a Perfetto trace in its binary form",
     "write CSV instead (rocprofv3 --output-format csv), or make JSON of it: traceconv json {} "
     "trace.json"},
    {"", ".perfetto-trace", "a Perfetto trace in its binary form",
     "make JSON of it: traceconv json {} trace.json"},
    {"", ".xplane.pb", "a profile of XLA in its binary form",
     "give the trace.json.gz next to it; where there is none, make it: python -c 'from "
     "xprof.convert import raw_to_tool_data as r; open(\"trace.json\", \"wb\").write("
     "r.xspace_to_tool_data([\"{}\"], \"trace_viewer\", dict())[0])'"},
    {"", ".pb", "a protocol buffer", "give the trace's JSON form"},
    {"PK\x03\x04", "", "a zip archive", "unpack it first"},
    {"\x28\xB5\x2F\xFD", "", "compressed with zstd", "unpack it first: zstd -d {}"},
    {"\xFD"
     "7zXZ",
     "", "compressed with xz", "unpack it first: xz -d {}"},
    {"BZh", "", "compressed with bzip2", "unpack it first: bzip2 -d {}"},
    {"\x7F"
     "ELF",
     "", "a program or a library", "profile it: purlin profile -- {}"},
    {"\xFF\xFE", "", "text in UTF-16, as PowerShell writes it",
     "make UTF-8 of it: iconv -f UTF-16 -t UTF-8 {}"},
    {"\xFE\xFF", "", "text in UTF-16", "make UTF-8 of it: iconv -f UTF-16 -t UTF-8 {}"},
    {"<!DOCTYPE html", "", "a web page", "give the file it was made from"},
}};

// What other tools print, by two words that it holds.
struct Printed {
  std::string_view word, other, what, instead;
};
constexpr Printed kPrinted[] = {
    {"Total Time (ns)", "Instances", "a summary by nsys stats",
     "give the report itself: nsys export --type sqlite"},
    {"CorrId", "GrdX", "a list of launches by nsys stats",
     "give the report itself: nsys export --type sqlite"},
    {"Profiling result:", "==", "output of nvprof",
     "record with nsys, and export it: nsys export --type sqlite"},
    {"Device Timing Summary", "Total Execution Time", "a summary by Intel's unitrace or onetrace",
     "record a trace: unitrace --chrome-kernel-logging"},
    {"Self CUDA", "# of Calls", "a table of torch.profiler",
     "write the trace: prof.export_chrome_trace(\"trace.json\")"},
    {"Self XPU", "# of Calls", "a table of torch.profiler",
     "write the trace: prof.export_chrome_trace(\"trace.json\")"},
};

Status not_a_profile(const std::string& path, std::string_view what, std::string instead) {
  if (const std::size_t at = instead.find("{}"); at != std::string::npos)
    instead.replace(at, 2, path);
  return error(Code::kInvalid, "{}: {}; {}", path, what, instead);
}

Status unknown(const std::string& path, std::string_view prefix) {
  for (const Foreign& foreign : kForeign) {
    const bool same = foreign.magic.empty() ? ends_with(path, foreign.suffix)
                                            : starts_with(prefix, foreign.magic);
    if (same)
      return not_a_profile(path, fmt::format("this is {}", foreign.what),
                           std::string(foreign.instead));
  }
  for (const Printed& printed : kPrinted) {
    const bool same = prefix.find(printed.word) != std::string_view::npos &&
                      prefix.find(printed.other) != std::string_view::npos;
    if (same)
      return not_a_profile(path, fmt::format("this is {}", printed.what),
                           std::string(printed.instead));
  }
  if (starts_with(prefix, "==PROF==") || starts_with(prefix, "==WARNING==") ||
      starts_with(prefix, "==ERROR=="))
    return not_a_profile(path, "this is output of Nsight Compute without a table",
                         "run it with --csv --page raw");
  const std::size_t first = prefix.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return error(Code::kInvalid, "{}: the file is empty", path);
  if (prefix[first] == '{' || prefix[first] == '[')
    return not_a_profile(path, "this is JSON, but no trace of events", std::string(kSupported));
  return not_a_profile(path, "not a profile that Purlin knows", std::string(kSupported));
}

Result<Format> sqlite_format(const std::string& path) {
  PURLIN_ASSIGN(const SqliteFile file, SqliteFile::open(path));
  const std::vector<std::string> tables = file.tables();
  const auto any = [&](std::string_view prefix) {
    return std::any_of(tables.begin(), tables.end(),
                       [&](const std::string& table) { return starts_with(table, prefix); });
  };
  if (any("CUPTI_ACTIVITY_KIND_") || any("NVTX_EVENTS") || any("TARGET_INFO_") ||
      any("ANALYSIS_DETAILS"))
    return Format::kNsysSqlite;
  if (looks_like_rocpd(tables)) return Format::kRocpd;
  if (any("rocpd_op"))
    return not_a_profile(path, "this is a database of rpd_tracer",
                         "make a trace of it: rpd2tracing.py {} trace.json");
  return not_a_profile(path, "this is an SQLite file, but none of Nsight Systems or rocprofv3",
                       std::string(kSupported));
}

}  // namespace

std::string_view to_text(Format format) {
  switch (format) {
    case Format::kPurlin:
      return "purlin";
    case Format::kSpool:
      return "spool";
    case Format::kKineto:
      return "kineto";
    case Format::kXla:
      return "xla";
    case Format::kChrome:
      return "chrome";
    case Format::kNsysSqlite:
      return "nsys-sqlite";
    case Format::kNcuCsv:
      return "ncu-csv";
    case Format::kRocprofCsv:
      return "rocprof-csv";
    case Format::kRocprofJson:
      return "rocprof-json";
    case Format::kRocpd:
      return "rocpd";
    case Format::kHatchet:
      return "hatchet";
    case Format::kStallCsv:
      return "stall-csv";
    case Format::kExecutionTrace:
      return "execution-trace";
  }
  return "unknown";
}

Result<Format> detect_format(const std::string& path) {
  if (is_directory(path)) {
    if (looks_like_spool(path)) return Format::kSpool;
    PURLIN_ASSIGN(const std::vector<std::string> files, rocprof_files(path));
    if (!files.empty()) return Format::kRocprofCsv;
    return error(Code::kInvalid,
                 "{}: a folder without .plprof files of a spool or CSV files of rocprof; give .db, "
                 ".json and other files by their names; {}",
                 path, kSupported);
  }
  if (!file_exists(path)) return error(Code::kNotFound, "{}: no such file", path);
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return error(Code::kInvalid, "{}: not a regular file; a profile is read more than once", path);
  PURLIN_ASSIGN(const std::string prefix, read_prefix(path, kPrefixBytes));
  if (starts_with(prefix, wire::kMagic)) return Format::kPurlin;
  if (starts_with(prefix, kSqliteMagic)) {
    PURLIN_ASSIGN(const Input input, Input::open(path));
    if (input.compressed())
      return error(Code::kInvalid, "{}: a compressed SQLite file; unpack it first: gunzip {}", path,
                   path);
    return sqlite_format(path);
  }
  if (looks_like_rocprof_json(prefix)) return Format::kRocprofJson;
  if (looks_like_execution_trace(prefix)) return Format::kExecutionTrace;
  if (looks_like_hatchet(prefix)) return Format::kHatchet;
  if (const std::optional<Format> trace = looks_like_chrome_trace(prefix)) return *trace;
  if (looks_like_stall_csv(prefix)) return Format::kStallCsv;
  if (looks_like_rocprof_csv(prefix)) return Format::kRocprofCsv;
  if (looks_like_ncu_csv(path)) return Format::kNcuCsv;
  return unknown(path, prefix);
}

Result<Profile> open_profile(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(const Format format, detect_format(path));
  switch (format) {
    case Format::kPurlin: {
      ReadOptions read;
      read.max_timeline_events = options.max_timeline_events;
      PURLIN_ASSIGN(Profile profile, read_profile(path, read));
      // A file of a spool: only the launcher writes a source.
      if (profile.source.empty()) {
        name_ops(profile);
        profile.source = "purlin";
      }
      return profile;
    }
    case Format::kSpool: {
      ReadOptions read;
      read.max_timeline_events = options.max_timeline_events;
      return open_spool(path, read);
    }
    case Format::kKineto:
    case Format::kXla:
    case Format::kChrome:
      return import_chrome_trace(path, options);
    case Format::kNsysSqlite:
      return import_nsys_sqlite(path, options);
    case Format::kNcuCsv:
      return import_ncu_csv(path, options);
    case Format::kRocprofCsv:
      return import_rocprof_csv(path, options);
    case Format::kRocprofJson:
      return import_rocprof_json(path, options);
    case Format::kRocpd:
      return import_rocpd(path, options);
    case Format::kHatchet:
      return import_hatchet(path, options);
    case Format::kStallCsv:
      return import_stall_csv(path, options);
    case Format::kExecutionTrace:
      return import_execution_trace(path);
  }
  return error(Code::kFailed, "{}: no importer", path);
}

}  // namespace purlin::profile
