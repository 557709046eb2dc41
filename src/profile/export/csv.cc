// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include "base/text.h"
#include "profile/export/events.h"

namespace purlin::profile {
namespace {

class CsvWriter {
 public:
  CsvWriter(const Profile& profile, const ExportSink& sink)
      : profile_(profile), timeline_(profile.timeline), buffer_(sink) {}

  Result<ExportCounts> write() {
    buffer_.text() =
        "kind,name,device,process,stream,start_ns,duration_ns,grid,block,dynamic_shared_bytes,"
        "registers,bytes,graph,call,call_thread,call_start_ns,call_duration_ns,op,shape,dtype\n";
    for (const KernelRow& row : profile_.kernels) names_.push_back(demangle(row.name));
    for (const Activity& activity : timeline_.activities) {
      add(activity);
      if (!buffer_.flush_if_full()) break;
    }
    if (!buffer_.flush()) return buffer_.status();
    return counts_;
  }

 private:
  void add(const Activity& activity) {
    std::string& out = buffer_.text();
    const bool is_kernel = activity.kind == ActivityKind::kKernel;
    const KernelRow* row = is_kernel && activity.row < profile_.kernels.size()
                               ? &profile_.kernels[activity.row]
                               : nullptr;
    out += is_kernel ? "kernel," : activity.kind == ActivityKind::kSet ? "set," : "copy,";
    if (row != nullptr) {
      out += csv_text(names_[activity.row]);
    } else if (!is_kernel && activity.row < profile_.copies.size()) {
      out += csv_text(profile_.copies[activity.row].kind);
    }
    fmt::format_to(std::back_inserter(out), ",{},{},{},{},{},", activity.device, activity.process,
                   activity.stream, activity.start_ns, activity.duration_ns);
    if (row != nullptr) {
      // What is not known is empty.
      const auto extents = [](const Dim3& all) {
        return is_known(all) ? purlin::to_text(all) : std::string();
      };
      fmt::format_to(std::back_inserter(out), "{},{},{},{},,", extents(row->launch.grid),
                     extents(row->launch.block), row->launch.dynamic_shared_bytes,
                     row->registers > 0 ? std::to_string(row->registers) : "");
    } else {
      fmt::format_to(std::back_inserter(out), ",,,,{},", activity.bytes);
    }
    fmt::format_to(std::back_inserter(out), "{},", activity.graph);
    if (activity.call < timeline_.calls.size()) {
      const Call& call = timeline_.calls[activity.call];
      out += csv_text(call.name < timeline_.names.size() ? timeline_.names[call.name] : "");
      fmt::format_to(std::back_inserter(out), ",{},{},{},", call.thread, call.start_ns,
                     call.duration_ns);
      ++counts_.links;
    } else {
      out += ",,,,";
    }
    if (row != nullptr) {
      out += csv_text(row->op);
      out += ',';
      out += csv_text(row->shape);
      out += ',';
      out += csv_text(row->dtype);
    } else {
      out += ",,";
    }
    out += '\n';
    ++counts_.events;
  }

  const Profile& profile_;
  const Timeline& timeline_;
  ExportBuffer buffer_;
  ExportCounts counts_;
  std::vector<std::string> names_;
};

}  // namespace

Result<ExportCounts> export_csv(const Profile& profile, const ExportSink& sink) {
  PURLIN_TRY(require_timeline(profile));
  return CsvWriter(profile, sink).write();
}

}  // namespace purlin::profile
