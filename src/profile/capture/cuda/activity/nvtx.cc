// SPDX-License-Identifier: Apache-2.0
// InitializeInjectionNvtx2: called by each copy of NVTX 3 in the program on its first use, because
// NVTX_INJECTION64_PATH names this library. Ranges go to the RangeLog; marks, categories and
// payloads are not kept.
//
// It is a second entry of the same library, not a separate library: the capture reads its log
// without a protocol between two libraries. If a program uses NVTX without CUDA, only this entry
// runs. CUPTI's own NVTX support is not used, because it has problems with NVTX 3.2.0 and 3.2.1.
#include "profile/capture/ranges/range_log.h"

#include <atomic>
#include <cstring>
#include <cwchar>
#include <mutex>
#include <new>
#include <nvtx3/nvToolsExt.h>
#include <string>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::size_t kMaxStrings = 4096;  // registered, kept for good

// What handles point at. Never freed: a program may use a handle after it destroyed it.
struct Domain {
  std::uint8_t number = kDefaultDomain;
  bool counts = true;  // as a program that names its ranges
};
struct Registered {
  std::string text;
};

std::atomic<unsigned> domains = kLibraryDomain + 1u;
std::atomic<std::size_t> strings = 0;

const Domain& domain_of(nvtxDomainHandle_t handle) {
  static const Domain standard;
  return handle != nullptr ? *reinterpret_cast<const Domain*>(handle) : standard;
}

std::string_view bounded(const char* name) {
  return name == nullptr ? std::string_view()
                         : std::string_view(name, ::strnlen(name, kMaxRangeName));
}

int push_attributes(const nvtxEventAttributes_t* event, const Domain& domain) {
  RangeLog* log = RangeLog::instance();
  if (log == nullptr) return 0;
  if (domain.counts && !log->used()) log->set_used();
  if (event == nullptr) return log->enter(std::string_view(), domain.number);
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      if (event->message.ascii == nullptr) break;
      return log->enter(event->message.ascii, domain.number);
    case NVTX_MESSAGE_TYPE_UNICODE:
      if (event->message.unicode == nullptr) break;
      return log->enter(event->message.unicode, domain.number);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (event->message.registered == nullptr) break;
      return log->enter(
          std::string_view(reinterpret_cast<const Registered*>(event->message.registered)->text),
          domain.number);
    default:
      break;
  }
  return log->enter(std::string_view(), domain.number);
}

int pop(const Domain& domain) {
  RangeLog* log = RangeLog::instance();
  return log != nullptr ? log->leave(domain.number) : 0;
}

// ---- what NVTX calls ----

int NVTX_API push_a(const char* name) {
  RangeLog* log = RangeLog::instance();
  if (log == nullptr) return 0;
  if (!log->used()) log->set_used();
  return name != nullptr ? log->enter(name, kDefaultDomain)
                         : log->enter(std::string_view(), kDefaultDomain);
}

int NVTX_API push_w(const wchar_t* name) {
  RangeLog* log = RangeLog::instance();
  if (log == nullptr) return 0;
  if (!log->used()) log->set_used();
  return name != nullptr ? log->enter(name, kDefaultDomain)
                         : log->enter(std::string_view(), kDefaultDomain);
}

int NVTX_API push_ex(const nvtxEventAttributes_t* event) {
  return push_attributes(event, domain_of(nullptr));
}

int NVTX_API pop_default() { return pop(domain_of(nullptr)); }

int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push_attributes(event, domain_of(domain));
}

int NVTX_API domain_pop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }

// Ranges that may begin on one thread and end on another identify no launch and do not enable ops.
// They are kept for a timeline.
template <class Name>
nvtxRangeId_t start_span(const Name& name) {
  RangeLog* log = RangeLog::instance();
  if (log == nullptr) return 0;
  try {
    return log->spans().start(log->spans().keeping() ? name() : std::string());
  } catch (...) {
    return log->spans().start({});
  }
}

std::string wide(const wchar_t* name) {
  OpText text;
  if (name != nullptr) read_range_name(name, text);
  return std::string(text.view());
}

nvtxRangeId_t start_with(const nvtxEventAttributes_t* event) {
  return start_span([event] {
    if (event == nullptr) return std::string();
    switch (event->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII:
        return std::string(bounded(event->message.ascii));
      case NVTX_MESSAGE_TYPE_UNICODE:
        return wide(event->message.unicode);
      case NVTX_MESSAGE_TYPE_REGISTERED:
        if (event->message.registered == nullptr) break;
        return reinterpret_cast<const Registered*>(event->message.registered)->text;
      default:
        break;
    }
    return std::string();
  });
}

nvtxRangeId_t NVTX_API start_a(const char* name) {
  return start_span([name] { return std::string(bounded(name)); });
}
nvtxRangeId_t NVTX_API start_w(const wchar_t* name) {
  return start_span([name] { return wide(name); });
}
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* event) { return start_with(event); }
void NVTX_API end(nvtxRangeId_t number) {
  if (RangeLog* log = RangeLog::instance()) log->spans().end(number);
}
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  return start_with(event);
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t number) { end(number); }

Domain* make_domain(bool counts) {
  auto* domain = new (std::nothrow) Domain;
  if (domain == nullptr) return nullptr;
  const unsigned number = domains++;
  domain->number = static_cast<std::uint8_t>(number < kMaxDomains ? number : kMaxDomains - 1);
  domain->counts = counts;
  return domain;
}

// NCCL marks its calls in every program that uses it: its ranges do not enable ops.
nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(
      make_domain(name == nullptr || std::strcmp(name, "NCCL") != 0));
}

nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(
      make_domain(name == nullptr || std::wcscmp(name, L"NCCL") != 0));
}

nvtxStringHandle_t keep(std::string_view text) {
  try {
    if (strings++ >= kMaxStrings) return nullptr;
    return reinterpret_cast<nvtxStringHandle_t>(new Registered{std::string(text)});
  } catch (...) {
    return nullptr;
  }
}

nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t, const char* text) {
  return keep(bounded(text));
}

nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t, const wchar_t* text) {
  OpText name;
  if (text != nullptr) read_range_name(text, name);
  return keep(name.view());
}

struct Slot {
  NvtxCallbackModule module;
  unsigned id;
  NvtxFunctionPointer function;
};

template <class Function>
Slot slot(NvtxCallbackModule module, int id, Function* function) {
  return {module, static_cast<unsigned>(id), reinterpret_cast<NvtxFunctionPointer>(function)};
}

// False if this version of NVTX is unknown.
bool fill(NvtxGetExportTableFunc_t get_export_table) {
  const auto* tables =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (tables == nullptr || tables->struct_size < sizeof *tables) return false;
  const Slot slots[] = {
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, &push_a),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, &push_w),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, &push_ex),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, &pop_default),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, &start_a),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, &start_w),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, &start_ex),
      slot(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, &end),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, &domain_push),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, &domain_pop),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, &domain_start),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, &domain_end),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, &domain_create_a),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, &domain_create_w),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, &register_a),
      slot(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW, &register_w),
  };
  bool any = false;
  for (const Slot& each : slots) {
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (tables->GetModuleFunctionTable(each.module, &table, &size) == 0 || each.id >= size ||
        table == nullptr || table[each.id] == nullptr)
      continue;
    *table[each.id] = each.function;
    any = true;
  }
  return any;
}

}  // namespace
}  // namespace purlin::profile::capture::cuda

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  try {
    return get_export_table != nullptr && purlin::profile::capture::cuda::fill(get_export_table);
  } catch (...) {
    return 0;
  }
}
