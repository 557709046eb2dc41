// SPDX-License-Identifier: Apache-2.0
// KernelSpec: one tunable kernel as its TOML or T1 file describes it. docs/formats/spec.md and
// t1.md are the references of the files; kernels/ has examples. Loading checks everything that
// needs no device. Thread-safety: immutable after loading.
#pragma once

#include "base/status.h"
#include "model/device/device.h"
#include "model/device/launch.h"
#include "model/evaluation.h"
#include "model/expression/expression.h"
#include "model/expression/value.h"
#include "model/problem/dtype.h"
#include "model/spec/command.h"
#include "model/spec/library_operation.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace purlin {

// Where an expression stands in the spec, for messages.
struct SpecExpression {
  Expression expression;
  std::string where;    // "gemm.toml:31:5"
  std::string label{};  // for people, where it is not the spec's own: "threads per block: …"
  const std::string& text() const { return label.empty() ? expression.text() : label; }
};

struct Parameter {
  std::string name;
  std::vector<Value> values;    // in the spec's order, without repeats
  std::optional<Value> preset;  // the default config's value: what an untuned program would use
  // Does something only where this is true; elsewhere it keeps its default (or first) value, which
  // one of the spec's constraints sees to.
  std::optional<SpecExpression> when{};
};

struct LaunchSpec {
  std::vector<SpecExpression> grid;   // 1 to 3, in blocks
  std::vector<SpecExpression> block;  // 1 to 3
  std::optional<SpecExpression> dynamic_shared_bytes;
};

// A buffer that a CUDA kernel takes as a tensor map (CUtensorMap) in place of its address. The
// tensor is the whole buffer, row-major.
struct TensorMapSpec {
  std::vector<SpecExpression> box;  // one extent for each of the buffer's
  SpecExpression swizzle;           // width in bytes: 0, 32, 64 or 128
};

struct Argument {
  enum class Role { kInput, kOutput, kInOut, kScalar, kScratch };
  std::string name;
  Role role = Role::kInput;
  Dtype dtype = Dtype::kF32;
  std::vector<SpecExpression> shape;  // buffers: extents, row-major
  SpecExpression value;               // scalars
  std::string layout{};               // buffers: "column", "nhwc", …; "" = row-major
  // Contents of inputs, deterministic under (spec seed, argument index): uniform in [low, high],
  // normal(mean, deviation), constant, or 0,1,2,… .
  enum class Fill { kUniform, kNormal, kConstant, kIota } fill = Fill::kUniform;
  double fill_a = -1, fill_b = 1;
  std::optional<TensorMapSpec> tensor_map{};
};

// A kernel source for one backend language.
struct SourceText {
  std::string file;  // as in the spec, for messages
  std::string text;
  std::vector<std::string> options;    // compiler options, as written
  std::string compiler{};              // CUDA: "nvcc", or "" = NVRTC
  std::vector<std::string> archs{};    // CUDA: what it is for, "sm_90a"; empty = the device's own
  std::vector<std::string> include{};  // folders of its headers, relative to the spec
  std::string headers_hash;            // of the headers it includes (includes.h); "" = none
};

struct Reference {
  std::string entry;
  std::map<std::string, SourceText> sources;  // by language, like KernelSpec::sources
  LaunchSpec launch;
  std::vector<std::string> arguments;  // names from KernelSpec::arguments, in the call's order
  bool is_default_config = false;      // default_reference.h
};

struct KernelSpec {
  std::string file;                             // path of the spec
  std::string name;                             // "gemm"
  std::string op;                               // op class, part of the cache key: "gemm"
  std::string summary;                          // one line for people
  std::string entry;                            // kernel function
  std::map<std::string, SourceText> sources;    // "cuda", "opencl"
  ProblemShape problem;                         // default problem shape
  std::map<std::string, ProblemShape> presets;  // named shapes: [problem.presets] small = {...}
  std::vector<Parameter> parameters;
  std::vector<SpecExpression> constraints;  // those of conditional parameters included
  std::vector<SpecExpression> limits;       // what a compiled config must keep to
  LaunchSpec launch;
  std::vector<Argument> arguments;
  Reference reference;
  double rtol = 1e-4, atol = 0;  // |out - ref| <= atol + rtol * |ref|
  bool default_rtol = true;      // rtol is not stated: of coarse types it is that of their rounding
  bool scaled_atol = true;       // atol is not stated: rtol times the magnitude of the output
  std::optional<SpecExpression> flops, bytes;  // of one launch
  std::map<std::string, std::string> bucket;   // dimension -> "exact" | "pow2" | "multiple:N"
  bool rotate_inputs = false;                  // timed launches take copies of the inputs in turn
  std::uint64_t seed = 1;
  // A library computes it ([library]): parameters are the library's, their values and the default
  // config are asked of the device, and atol follows from the problem unless the spec states it.
  std::optional<LibraryOperation> library{};
  bool library_tolerance = true;
  // Commands build and run it ([command]): there is no source, launch, argument or reference.
  std::optional<CommandKernel> command{};

  // Hash of everything that decides what is compiled and run: sources, options, entry, arguments,
  // geometry, whether inputs rotate. Part of the cache key; whitespace of the TOML does not matter.
  std::string source_hash(std::string_view language) const;
  // dtypes of the outputs and inputs as the cache key has them: "f32" or "f16,f32".
  std::string dtype_text() const;
  // Layouts of the buffers as the cache key has them: "A=row,B=column"; "flat" where none has more
  // than one extent.
  std::string layout_text() const;
};

// What a spec is loaded for: to compile and run its kernel, or for its space alone, which needs no
// source where the format lets it be missing (T1).
enum class SpecUse { kRun, kSpace };
// A TOML spec, or a T1 file (t1.h). kInvalid with "file:line:column: …" for each kind of mistake;
// kNotFound where a file is missing.
Result<KernelSpec> load_spec(const std::string& path, SpecUse use = SpecUse::kRun);
// The same from text; `read` yields the contents of a source file, given its path.
using SourceReader = std::function<Result<std::string>(const std::string& path)>;
Result<KernelSpec> parse_spec(std::string_view text, const std::string& path,
                              const SourceReader& read);

// The default config: each parameter's preset, else its first value.
Config default_config(const KernelSpec& spec);
// The same at a problem. Where it breaks a constraint or a limit of the device there, a config that
// breaks none takes its place. It differs in one parameter, or else in two: the first in the spec's
// order, with the nearest values first. None among 10,000: the default config.
Config default_config(const KernelSpec& spec, const ProblemShape& problem,
                      const DeviceInfo& device);

// Resolves --shape text ("M=512,N=512", or a preset's name, or "" for the default) against a spec;
// dimensions left out keep their default.
Result<ProblemShape> resolve_shape(const KernelSpec& spec, std::string_view text);

// Scope of a config: parameters, problem dimensions and device facts. A limit the device does not
// tell reads as 2^31 - 1, a count (units, warp size) as 1.
Scope config_scope(const KernelSpec& spec, const ProblemShape& problem, const Config& config,
                   const DeviceInfo& device);

// Whether a config satisfies every constraint: ok, or kInvalid naming the first that fails.
Status check_constraints(const KernelSpec& spec, const Scope& scope);
// Geometry, checked against the device's limits; kInvalid names the limit.
Result<LaunchShape> resolve_launch(const LaunchSpec& launch, const Scope& scope,
                                   const DeviceInfo& device);

// The limits of the device that a launch must keep to, as constraints: threads per block, each side
// of block and grid, dynamic shared memory. Those that the device does not tell are left out.
std::vector<SpecExpression> launch_limits(const LaunchSpec& launch, const DeviceInfo& device);

// Whether the known facts of a config keep to the limits: ok, or kInvalid naming the first limit it
// breaks; the config's evaluation is then kInvalid. A limit on an unknown fact restricts nothing:
// OpenCL reports no registers, and time, energy and power are unknown before a measurement.
Status check_limits(const std::vector<SpecExpression>& limits, const KernelSpec& spec,
                    const ProblemShape& problem, const Evaluation& evaluation,
                    const DeviceInfo& device);
// Names that limits can use, in addition to the names of constraints: "registers", "power_w", …
std::vector<std::string> limit_facts();
// A limit that is not in the spec, such as "power_w < 500"; kInvalid names what it does not know.
Result<SpecExpression> parse_limit(const KernelSpec& spec, std::string_view text);
// Whether limits take measuring the energy.
bool needs_energy(const std::vector<SpecExpression>& limits);
// The spec's own limits.
Status check_compiled(const KernelSpec& spec, const ProblemShape& problem,
                      const Evaluation& evaluation, const DeviceInfo& device);
// The same for the spec's default problem shape.
Status check_compiled(const KernelSpec& spec, const Evaluation& evaluation,
                      const DeviceInfo& device);

}  // namespace purlin
