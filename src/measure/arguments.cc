// SPDX-License-Identifier: Apache-2.0
#include "measure/arguments.h"

#include "base/text.h"
#include "measure/compare.h"
#include "measure/contents.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace purlin::measure {
namespace {

using Role = Argument::Role;

// All ones first: it is a NaN in every real dtype. The others are for integers, whose right values
// may well be -1.
constexpr std::uint8_t kPoisons[] = {0xFF, 0x5A, 0xA6, 0x7D};
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 46;
// The part of each end of an input that is compared after a run. A kernel that wrongly changes an
// input, for example after a swap of arguments, changes one of its ends.
constexpr std::size_t kInputProbeBytes = std::size_t{512} << 10;
constexpr std::uint64_t kUnknownCache = std::uint64_t{64} << 20;  // if a device does not report it
constexpr double kMaxCopies = 1023;  // of small inputs: each set is a launch of a graph

Status at(const SpecExpression& expression, const Status& status) {
  return status.with_context(expression.where);
}

std::string scalar_bytes(Dtype dtype, double real, std::int64_t integer) {
  std::string bytes(size_of(dtype), '\0');
  if (is_floating(dtype)) {
    store_element(dtype, bytes.data(), real);
  } else {
    std::memcpy(bytes.data(), &integer, bytes.size());  // little-endian: the low bytes
  }
  return bytes;
}

// Whether `integer` survives being an element of `dtype`.
bool fits(Dtype dtype, std::int64_t integer) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const bool is_signed =
      dtype == Dtype::kI8 || dtype == Dtype::kI16 || dtype == Dtype::kI32 || dtype == Dtype::kI64;
  if (bits == 64) return is_signed || integer >= 0;
  const std::int64_t span = std::int64_t{1} << (is_signed ? bits - 1 : bits);
  return integer < span && integer >= (is_signed ? -span : 0);
}

}  // namespace

bool Arguments::is_result(const Slot& slot) const {
  return argument(slot).role == Role::kOutput || argument(slot).role == Role::kInOut;
}

bool Arguments::has_inout() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [this](const Slot& slot) { return argument(slot).role == Role::kInOut; });
}

// Resolves the extents of a buffer.
Status Arguments::measure(Slot& slot, const Scope& scope) const {
  const Argument& arg = argument(slot);
  slot.extents.clear();
  std::int64_t bytes = static_cast<std::int64_t>(size_of(arg.dtype));
  for (const SpecExpression& extent : arg.shape) {
    const Result<std::int64_t> value = extent.expression.evaluate_int(scope.lookup());
    if (!value.is_ok()) return at(extent, value.status());
    if (*value <= 0)
      return error(Code::kInvalid, "{}: argument '{}' has the extent {} = {}; it must be positive",
                   extent.where, arg.name, extent.expression.text(), *value);
    if (__builtin_mul_overflow(bytes, *value, &bytes) || bytes > kMaxBufferBytes)
      return error(Code::kInvalid, "{}: argument '{}' is larger than any memory", extent.where,
                   arg.name);
    slot.extents.push_back(*value);
  }
  slot.count = static_cast<std::size_t>(bytes) / size_of(arg.dtype);
  return Status::ok();
}

double Arguments::needed_bytes() const {
  double needed = 0;
  for (const Slot& slot : slots_) {
    const Argument& arg = argument(slot);
    if (arg.role == Role::kScalar) continue;
    const double bytes =
        static_cast<double>(GuardedBuffer::footprint(*device_, slot.count * size_of(arg.dtype)));
    needed += keeps_pristine(slot) ? 2 * bytes : bytes;
  }
  return needed;
}

Status Arguments::check_memory() const {
  const double memory = static_cast<double>(device_->info().memory_bytes);
  const double needed = needed_bytes();
  if (memory > 0 && needed > 0.95 * memory)
    return error(Code::kUnavailable,
                 "the arguments of '{}' take {} with the copies that restore them, and {} has {}; "
                 "use a smaller problem shape",
                 spec_->name, format_bytes(needed), device_->info().id, format_bytes(memory));
  return Status::ok();
}

bool Arguments::keeps_pristine(const Slot& slot) const {
  // A kernel changes an inout at every launch; an input only where it is wrong.
  return argument(slot).role == Role::kInOut || (argument(slot).role == Role::kInput && verify_);
}

Status Arguments::allocate(Slot& slot, std::uint64_t extra_seed) {
  const Argument& arg = argument(slot);
  const std::size_t bytes = slot.count * size_of(arg.dtype);
  PURLIN_ASSIGN(slot.live, GuardedBuffer::create(*device_, bytes));
  if (arg.role != Role::kInput && arg.role != Role::kInOut) return Status::ok();
  // Integers may be places to read from, and then decide what caches hold.
  const bool repeats = !verify_ && is_floating(arg.dtype) && arg.fill != Argument::Fill::kIota;
  const std::size_t count = repeats ? std::min(slot.count, kRepeat) : slot.count;
  const std::size_t period = count * size_of(arg.dtype);
  const auto contents = std::make_unique_for_overwrite<char[]>(period);
  fill_contents(arg, contents_seed(spec_->seed, extra_seed, slot.index), count, contents.get());
  PURLIN_TRY(slot.live->write_repeated(contents.get(), period));
  if (!keeps_pristine(slot)) return Status::ok();
  PURLIN_ASSIGN(slot.pristine, GuardedBuffer::create(*device_, bytes));
  return slot.pristine->copy_from(*slot.live);
}

Result<Arguments> Arguments::create(gpu::Device& device, const KernelSpec& spec, const Scope& scope,
                                    std::uint64_t extra_seed, bool verify) {
  Arguments arguments(device, spec, verify);
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    Slot& slot = arguments.slots_.emplace_back();
    slot.index = i;
    const Argument& arg = spec.arguments[i];
    if (arg.role == Role::kScalar) continue;
    PURLIN_TRY(arguments.measure(slot, scope));
  }
  PURLIN_TRY(arguments.check_memory());
  for (Slot& slot : arguments.slots_) {
    if (arguments.argument(slot).role == Role::kScalar) continue;
    const Status status = arguments.allocate(slot, extra_seed);
    PURLIN_TRY(status.with_context(fmt::format("argument '{}'", arguments.argument(slot).name)));
  }
  return arguments;
}

Result<std::shared_ptr<const gpu::TensorMap>> Arguments::tensor_map(const Slot& slot,
                                                                    const Scope& scope) const {
  const Argument& arg = argument(slot);
  const auto value_of = [&](const SpecExpression& expression) -> Result<std::int64_t> {
    const Result<std::int64_t> value = expression.expression.evaluate_int(scope.lookup());
    return value.is_ok() ? value : Result<std::int64_t>(at(expression, value.status()));
  };
  auto map = std::make_shared<gpu::TensorMap>();
  map->dtype = arg.dtype;
  map->extents = slot.extents;
  for (const SpecExpression& extent : arg.tensor_map->box) {
    PURLIN_ASSIGN(const std::int64_t value, value_of(extent));
    map->box.push_back(value);
  }
  PURLIN_ASSIGN(map->swizzle, value_of(arg.tensor_map->swizzle));
  return std::shared_ptr<const gpu::TensorMap>(std::move(map));
}

Result<std::vector<gpu::KernelArgument>> Arguments::bind(const Scope& scope,
                                                         const std::vector<std::string>& names) {
  std::vector<Slot*> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(slots_.begin(), slots_.end(),
                                    [&](const Slot& slot) { return argument(slot).name == name; });
    if (found == slots_.end())
      return error(Code::kInvalid, "{}: the reference takes '{}', which is no argument of '{}'",
                   spec_->file, name, spec_->name);
    chosen.push_back(&*found);
  }
  if (names.empty())
    for (Slot& slot : slots_) chosen.push_back(&slot);

  // A reference takes addresses, unless it is the kernel itself.
  const bool as_kernel = names.empty() || spec_->reference.is_default_config;
  std::vector<gpu::KernelArgument> bound;
  for (Slot* slot : chosen) {
    const Argument& arg = argument(*slot);
    if (arg.role == Role::kScalar) {
      gpu::KernelArgument scalar;
      if (is_floating(arg.dtype)) {
        const Result<double> value = arg.value.expression.evaluate_double(scope.lookup());
        if (!value.is_ok()) return at(arg.value, value.status());
        scalar.scalar = scalar_bytes(arg.dtype, *value, 0);
      } else {
        const Result<std::int64_t> value = arg.value.expression.evaluate_int(scope.lookup());
        if (!value.is_ok()) return at(arg.value, value.status());
        if (!fits(arg.dtype, *value))
          return error(Code::kInvalid, "{}: argument '{}' = {} does not fit {}", arg.value.where,
                       arg.name, *value, name_of(arg.dtype));
        scalar.scalar = scalar_bytes(arg.dtype, 0, *value);
      }
      bound.push_back(std::move(scalar));
      continue;
    }
    if (arg.role == Role::kScratch) {
      PURLIN_TRY(measure(*slot, scope));
      const std::size_t bytes = slot->count * size_of(arg.dtype);
      if (bytes > slot->live->capacity()) {
        slot->live.reset();  // first, so that both need not fit
        PURLIN_ASSIGN(slot->live, GuardedBuffer::create(*device_, bytes));
      } else {
        PURLIN_TRY(slot->live->resize(bytes));
      }
    }
    bound.push_back(slot->live->argument());
    if (as_kernel && arg.tensor_map) {
      PURLIN_ASSIGN(bound.back().tensor_map, tensor_map(*slot, scope));
    }
  }
  return bound;
}

bool Arguments::rotates(const Slot& slot) const {
  return argument(slot).role == Role::kInput || argument(slot).role == Role::kOutput;
}

std::size_t Arguments::stride_of(const Slot& slot) const {
  const std::size_t alignment = std::max<std::size_t>(device_->buffer_alignment(), 1);
  const std::size_t bytes = slot.count * size_of(argument(slot).dtype);
  return (bytes + alignment - 1) / alignment * alignment;
}

// Between two launches with the same set, the others are read: they must fill the cache twice, for
// its replacement is not exactly least-recently-used.
std::size_t Arguments::count_copies() const {
  double each = 0;
  for (const Slot& slot : slots_)
    if (rotates(slot)) each += static_cast<double>(stride_of(slot));
  if (each <= 0) return 0;
  const DeviceInfo& info = device_->info();
  const double cache = static_cast<double>(info.l2_bytes > 0 ? info.l2_bytes : kUnknownCache);
  double copies = std::min(std::ceil(2 * cache / each), kMaxCopies);
  if (info.memory_bytes > 0) {
    const double memory = static_cast<double>(info.memory_bytes);
    const double room = std::min(0.25 * memory, 0.95 * memory - needed_bytes());
    copies = std::min(copies, std::floor(room / each));
  }
  return copies < 1 ? 0 : static_cast<std::size_t>(copies);
}

Status Arguments::make_copies(Slot& slot) const {
  const std::size_t stride = stride_of(slot), total = stride * *copies_;
  PURLIN_ASSIGN(slot.copies, device_->allocate(total));
  const gpu::KernelArgument from = slot.live->argument();
  PURLIN_TRY(device_->copy(*slot.copies, 0, *from.buffer, from.offset, from.bytes));
  // What is there doubles with each copy, so the parts never overlap.
  for (std::size_t have = stride; have < total; have *= 2)
    PURLIN_TRY(device_->copy(*slot.copies, have, *slot.copies, 0, std::min(have, total - have)));
  return Status::ok();
}

Result<std::vector<std::vector<gpu::KernelArgument>>> Arguments::further(
    const std::vector<gpu::KernelArgument>& bound) {
  if (!copies_) {
    copies_ = count_copies();
    for (Slot& slot : slots_) {
      if (*copies_ == 0 || !rotates(slot)) continue;
      const Status status = make_copies(slot);
      PURLIN_TRY(status.with_context(
          fmt::format("{} copies of argument '{}'", *copies_, argument(slot).name)));
    }
  }
  std::vector<std::vector<gpu::KernelArgument>> sets(*copies_, bound);
  for (std::size_t copy = 0; copy < sets.size(); ++copy)
    for (const Slot& slot : slots_) {
      if (!rotates(slot)) continue;
      gpu::KernelArgument& place = sets[copy][slot.index];
      place.buffer = slot.copies.get();
      place.offset = copy * stride_of(slot);
    }
  return sets;
}

Status Arguments::restore(bool inouts_only) {
  for (Slot& slot : slots_)
    if (slot.pristine && (!inouts_only || argument(slot).role == Role::kInOut))
      PURLIN_TRY(slot.live->copy_from(*slot.pristine));
  return Status::ok();
}

std::uint8_t Arguments::poison_of(const Slot& slot, int run) {
  if (slot.poisons.empty()) return kPoisons[0];  // before there is a reference
  return slot.poisons[std::min(static_cast<std::size_t>(run), slot.poisons.size() - 1)];
}

Status Arguments::prepare(int run) {
  PURLIN_TRY(restore(false));
  for (Slot& slot : slots_) {
    if (argument(slot).role == Role::kScratch) PURLIN_TRY(slot.live->fill(kPoisons[0]));
    if (argument(slot).role != Role::kOutput) continue;
    PURLIN_TRY(slot.live->fill(poison_of(slot, run)));
  }
  return Status::ok();
}

Status Arguments::poison_results(std::uint8_t byte) {
  PURLIN_TRY(restore(false));
  for (Slot& slot : slots_)
    if (argument(slot).role == Role::kOutput || argument(slot).role == Role::kScratch)
      PURLIN_TRY(slot.live->fill(byte));
  return Status::ok();
}

Status Arguments::choose_poisons(Slot& slot) {
  const Argument& arg = argument(slot);
  for (const std::uint8_t poison : kPoisons) {
    if (hides_poison(arg.dtype, slot.expected.data(), slot.count, poison, slot.tolerance)) continue;
    slot.poisons = {poison};
    return Status::ok();
  }
  // Every poison is somewhere right, but no element is right under two that lie apart.
  slot.poisons = {kPoisons[0], kPoisons[1]};
  runs_ = 2;
  return Status::ok();
}

Status Arguments::take_reference(const std::function<Status()>& run) {
  PURLIN_TRY(poison_results(kPoisons[0]));
  PURLIN_TRY(run());
  bool suspicious = false;
  for (Slot& slot : slots_) {
    if (!is_result(slot)) continue;
    slot.expected.resize(slot.live->bytes());
    PURLIN_TRY(slot.live->read(slot.expected.data()));
    slot.magnitude = magnitude_of(argument(slot).dtype, slot.expected.data(), slot.count);
    const double rtol =
        std::max(spec_->rtol, spec_->default_rtol ? rounding_rtol(argument(slot).dtype) : 0);
    slot.tolerance = {rtol, spec_->scaled_atol ? rtol * slot.magnitude : spec_->atol};
    suspicious = suspicious ||
                 (argument(slot).role == Role::kOutput &&
                  find_poison(argument(slot).dtype, slot.expected.data(), slot.count, kPoisons[0]));
  }
  PURLIN_ASSIGN(const std::optional<std::string> stray, find_stray_write());
  if (stray) return error(Code::kInvalid, "the reference {}", *stray);
  if (suspicious) {
    PURLIN_TRY(poison_results(kPoisons[1]));
    PURLIN_TRY(run());
    std::string again;
    for (Slot& slot : slots_) {
      if (argument(slot).role != Role::kOutput) continue;
      const Dtype dtype = argument(slot).dtype;
      const std::size_t size = size_of(dtype);
      again.resize(slot.live->bytes());
      PURLIN_TRY(slot.live->read(again.data()));
      for (std::size_t i = 0; i < slot.count; ++i) {
        const auto first = find_poison(dtype, slot.expected.data() + i * size, 1, kPoisons[0]);
        const auto second = find_poison(dtype, again.data() + i * size, 1, kPoisons[1]);
        if (first && second)
          return error(Code::kInvalid,
                       "the reference does not write element {}{} of output '{}'; it must write "
                       "every element, or the argument must be inout",
                       i, multi_index_text(i, slot.extents), argument(slot).name);
      }
    }
  }
  for (Slot& slot : slots_) {
    if (argument(slot).role != Role::kOutput) continue;
    if (is_all_nan(argument(slot).dtype, slot.expected.data(), slot.count))
      return error(
          Code::kInvalid,
          "the reference writes NaN to every element of output '{}', so no config could be "
          "found wrong; give the inputs a fill with which it has a result",
          argument(slot).name);
    PURLIN_TRY(choose_poisons(slot));
  }
  return Status::ok();
}

Result<std::optional<std::string>> Arguments::find_stray_write() {
  for (Slot& slot : slots_) {
    if (!slot.live) continue;
    PURLIN_ASSIGN(const std::optional<std::string> where, slot.live->check());
    if (where)
      return std::optional(
          fmt::format("wrote outside its buffers: argument '{}', {}", argument(slot).name, *where));
  }
  return std::optional<std::string>();
}

// Says so where the tolerance may be what is wrong: another order of the same operations rounds
// differently, and an error in a kernel rarely stays this small.
std::string Arguments::tolerance_text(const Slot& slot) const {
  constexpr double kOfRounding = 0.01, kOfIntegers = 1;
  const Dtype dtype = argument(slot).dtype;
  const double largest =
      largest_difference(dtype, slot.got->data(), slot.expected.data(), slot.count);
  if (!is_floating(dtype) && slot.tolerance.atol <= 0 && largest <= kOfIntegers)
    return fmt::format(
        "; integers have to be equal without a stated tolerance, and none is off by more than "
        "{:g}: "
        "[tolerance] atol = {:g} would accept it",
        largest, largest);
  if (is_floating(dtype) && slot.magnitude <= 0 && slot.tolerance.atol <= 0)
    return fmt::format(
        "; the output is 0 everywhere, so without a stated tolerance it has to be 0; the largest "
        "difference is {:.2g}",
        largest);
  if (slot.magnitude <= 0) return "";
  if (!(largest < kOfRounding * slot.magnitude)) return "";
  return fmt::format(
      "; the largest difference is {:.2g} of the output's magnitude of {:.3g}, so the tolerance "
      "may be too tight: [tolerance] atol = {:.1g} would accept it",
      largest / slot.magnitude, slot.magnitude, 2 * largest);
}

std::string Arguments::describe(const Slot& slot, const Difference& difference,
                                std::uint8_t poison) const {
  const Argument& arg = argument(slot);
  const char* const got = static_cast<const char*>(slot.got->data());
  const std::size_t first = difference.first;
  const std::string place = fmt::format("output '{}' element {}{}", arg.name, first,
                                        multi_index_text(first, slot.extents));
  const std::string expected = element_text(arg.dtype, slot.expected.data(), first);
  const std::string others = fmt::format("{} of {} elements differ", difference.count, slot.count);
  if (arg.role == Role::kOutput &&
      find_poison(arg.dtype, got + first * size_of(arg.dtype), 1, poison))
    return fmt::format("{} was not written, expected {}; {}", place, expected, others);
  return fmt::format("{} is {}, expected {} (atol {:g}, rtol {:g}); {}{}", place,
                     element_text(arg.dtype, got, first), expected, slot.tolerance.atol,
                     slot.tolerance.rtol, others, tolerance_text(slot));
}

Status Arguments::read_outputs() {
  for (Slot& slot : slots_) {
    if (!is_result(slot)) continue;
    const std::size_t bytes = slot.live->bytes();
    if (slot.got == nullptr || slot.got->bytes() < bytes) slot.got = device_->host_memory(bytes);
    PURLIN_TRY(slot.live->read(slot.got->data()));
  }
  return Status::ok();
}

std::optional<std::string> Arguments::find_wrong_output(int run) const {
  for (const Slot& slot : slots_) {
    if (!is_result(slot)) continue;
    const std::optional<Difference> difference = compare(
        argument(slot).dtype, slot.got->data(), slot.expected.data(), slot.count, slot.tolerance);
    if (difference) return describe(slot, *difference, poison_of(slot, run));
  }
  return std::nullopt;
}

Result<std::optional<std::string>> Arguments::find_changed_input() {
  std::string now, before;
  for (Slot& slot : slots_) {
    if (argument(slot).role != Role::kInput) continue;
    const std::size_t bytes = slot.live->bytes();
    const std::size_t probe = std::min(bytes, kInputProbeBytes);
    for (const std::size_t offset : {std::size_t{0}, bytes - probe}) {
      now.resize(probe);
      before.resize(probe);
      PURLIN_TRY(slot.live->read(now.data(), offset, probe));
      PURLIN_TRY(slot.pristine->read(before.data(), offset, probe));
      if (now == before) continue;
      const std::size_t byte = static_cast<std::size_t>(
          std::mismatch(now.begin(), now.end(), before.begin()).first - now.begin());
      const std::size_t element = (offset + byte) / size_of(argument(slot).dtype);
      return std::optional(fmt::format(
          "input '{}' was changed at element {}{}; a kernel that writes an argument needs it to be "
          "output or inout",
          argument(slot).name, element, multi_index_text(element, slot.extents)));
    }
  }
  return std::optional<std::string>();
}

}  // namespace purlin::measure
