// SPDX-License-Identifier: Apache-2.0
// A name of another system, and the rows of foreign_options() for servers that have many options. The names
// that they share with others are in foreign_names.cc.
#pragma once

#include <span>
#include <string_view>

namespace outrider {

struct ForeignName {
  std::string_view systems;      // separated by '|'
  std::string_view names;        // as written there, separated by '|': "--ctx-size|-c", "cuda_graph_config"
  std::string_view here = {};    // the option or key that it stands for; empty: it has no effect here
  std::string_view values = {};  // all that are taken, separated by '|': "bfloat16=bf16" is written "bf16"
                                 // here, and "false=" leaves the default; empty: all, as they are
  // Why nothing is lost: where `here` is empty, or the command has no such option, or a value leaves the
  // default. Where it is refused: why.
  std::string_view remark = {};
  bool is_flag = false;     // it takes no value on a command line
  bool is_refused = false;  // it would change the output, or promises what is not here
};

namespace foreign_remarks {
inline constexpr std::string_view kTrt = "TensorRT-LLM";
inline constexpr std::string_view kVllm = "vLLM";
inline constexpr std::string_view kLlama = "llama.cpp";

inline constexpr std::string_view kNoGpu = "devices have no such setting here";
inline constexpr std::string_view kOwnMemory = "--kv-pages and --max-batch decide about memory";
inline constexpr std::string_view kOwnKernels =
    "the fastest kernels of this machine are chosen; --kernels names others";
inline constexpr std::string_view kOwnLog = "messages go to standard error";
inline constexpr std::string_view kOwnDraftMemory =
    "the drafter shares the memory and the threads of the engine";
inline constexpr std::string_view kLocalFiles = "the files are read as they are";
inline constexpr std::string_view kOneProcess =
    "--tensor-parallel and --pipeline-parallel divide a model among ranks";
inline constexpr std::string_view kNoAdapterSizes = "any number of adapters of any rank is taken, in f32";
inline constexpr std::string_view kNoImages = "images are left out of every request";
inline constexpr std::string_view kAlwaysOn = "it is always on";
inline constexpr std::string_view kOwnPasses = "--prefill-chunk and --max-batch-rows set the size of a pass";
inline constexpr std::string_view kNoPlugins = "code of others is never loaded";
}  // namespace foreign_remarks

std::span<const ForeignName> llama_server_names();
std::span<const ForeignName> vllm_serve_names();
std::span<const ForeignName> trt_bench_names();

}  // namespace outrider
