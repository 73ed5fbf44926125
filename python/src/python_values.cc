// SPDX-License-Identifier: Apache-2.0
#include "python_values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

namespace outrider::py {
namespace {

template <typename T>
nb::object new_array(std::vector<T> values, std::vector<size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

// Adds `prefix`logprobs [tokens], and `prefix`top_token_ids and `prefix`top_logprobs [tokens, k]; tokens with
// fewer than k likeliest ones are filled up with id -1 and NaN.
void add_logprobs(nb::dict& dict, const std::string& prefix, std::span<const TokenLogprobs> tokens) {
  size_t k = 0;
  for (const TokenLogprobs& token : tokens) k = std::max(k, token.top.size());
  std::vector<float> logprobs, top(tokens.size() * k, std::numeric_limits<float>::quiet_NaN());
  std::vector<TokenId> ids(tokens.size() * k, -1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    logprobs.push_back(tokens[i].logprob);
    for (size_t j = 0; j < tokens[i].top.size(); ++j)
      std::tie(ids[i * k + j], top[i * k + j]) = tokens[i].top[j];
  }
  dict[(prefix + "logprobs").c_str()] = new_array(std::move(logprobs), {tokens.size()});
  dict[(prefix + "top_token_ids").c_str()] = new_array(std::move(ids), {tokens.size(), k});
  dict[(prefix + "top_logprobs").c_str()] = new_array(std::move(top), {tokens.size(), k});
}

nb::dict statistics_of(const SpeculationStats& stats) {
  nb::dict dict;
  dict["method"] = stats.method;
  dict["lossless"] = stats.lossless;
  dict["steps"] = stats.steps;
  dict["drafts"] = stats.drafts;
  dict["drafted"] = stats.drafted;
  dict["accepted"] = stats.accepted;
  dict["committed"] = stats.committed;
  dict["drafted_per_position"] = stats.drafted_per_position;
  dict["accepted_per_position"] = stats.accepted_per_position;
  dict["draft_failures"] = stats.draft_failures;
  dict["draft_ms"] = stats.draft_ms;
  dict["verify_ms"] = stats.verify_ms;
  return dict;
}

// Positional, in the order of the fields of outrider.Node.
nb::tuple node_of(const TraceNode& node) {
  const bool is_known = node.target_probability != TraceNode::kUnknown;
  return nb::make_tuple(node.token, node.parent, node.draft_probability,
                        is_known ? nb::cast(node.target_probability) : nb::none(), node.sources,
                        fate_name(node.fate), cause_name(node.cause));
}

nb::dict step_of(const StepTrace& trace) {
  nb::list nodes;
  for (const TraceNode& node : trace.nodes) nodes.append(node_of(node));
  nb::dict dict;
  dict["step"] = trace.step;
  dict["context"] = trace.context;
  dict["rows"] = trace.rows;
  dict["draft_ms"] = trace.draft_ms;
  dict["verify_ms"] = trace.verify_ms;
  dict["other_ms"] = trace.other_ms;
  dict["draft_failed"] = trace.draft_failed;
  dict["is_predicted"] = trace.is_predicted;
  dict["nodes"] = nodes;
  dict["token_ids"] = ids_of(trace.tokens);
  dict["origins"] = origins_of(trace.origins);
  dict["probabilities"] = trace.probabilities;
  return dict;
}

PyObject* exception_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kIo:
      return PyExc_OSError;
    case ErrorKind::kResource:
      return PyExc_MemoryError;
    case ErrorKind::kUsage:
    case ErrorKind::kInput:
      break;
  }
  return PyExc_ValueError;
}

}  // namespace

nb::object array_of(std::vector<float> values, std::vector<size_t> shape) {
  return new_array(std::move(values), std::move(shape));
}

nb::object array_of(std::vector<TokenId> values, std::vector<size_t> shape) {
  return new_array(std::move(values), std::move(shape));
}

LogitsFunction logits_function_of(nb::object function) {
  // The engine's thread, which has no GIL, may be the last one that has it.
  const std::shared_ptr<nb::object> kept(new nb::object(std::move(function)), [](nb::object* object) {
    const nb::gil_scoped_acquire acquire;
    delete object;
  });
  return [kept](std::span<const TokenId> tokens, std::span<float> logits) -> Status {
    const nb::gil_scoped_acquire acquire;
    try {
      const nb::object changed = array_of(std::vector<float>(logits.begin(), logits.end()), {logits.size()});
      (*kept)(array_of(std::vector<TokenId>(tokens.begin(), tokens.end()), {tokens.size()}), changed);
      std::copy_n(nb::cast<nb::ndarray<const float>>(changed).data(), logits.size(), logits.begin());
      return {};
    } catch (const std::exception& error) {
      return input_error(error.what());
    }
  };
}

nb::object text_of(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::list ids_of(std::span<const TokenId> tokens) {
  nb::list list;
  for (const TokenId token : tokens) list.append(token);
  return list;
}

nb::list origins_of(std::span<const TokenOrigin> origins) {
  nb::list list;
  for (const TokenOrigin origin : origins) list.append(origin_name(origin));
  return list;
}

nb::dict completion_of(const Completion& completion, std::span<const StepTrace> steps) {
  nb::dict dict;
  dict["text"] = text_of(completion.text);
  dict["finish_reason"] = finish_reason_name(completion.finish_reason);
  if (!completion.logprobs.empty()) add_logprobs(dict, "", completion.logprobs);
  if (!completion.prompt_logprobs.empty()) add_logprobs(dict, "prompt_", completion.prompt_logprobs);
  nb::dict timing;
  timing["prompt_tokens"] = completion.prompt_tokens;
  timing["cached_tokens"] = completion.cached_tokens;
  timing["accepted_prediction_tokens"] = completion.accepted_prediction_tokens;
  timing["rejected_prediction_tokens"] = completion.rejected_prediction_tokens;
  timing["queue_ms"] = completion.queue_ms;
  timing["first_token_ms"] = completion.first_token_ms;
  timing["prompt_ms"] = completion.prompt_ms;
  timing["decode_ms"] = completion.decode_ms;
  dict["metrics"] = timing;
  if (!completion.embedding.empty())
    dict["embedding"] = new_array(completion.embedding, {completion.embedding.size()});
  dict["speculation"] = statistics_of(completion.speculation);
  nb::list traced;
  for (const StepTrace& step : steps) traced.append(step_of(step));
  dict["steps"] = traced;
  return dict;
}

nb::dict info_of(const EngineInfo& info) {
  nb::dict dict;
  dict["model"] = info.model_path;
  dict["family"] = info.family;
  dict["device"] = info.device;
  dict["kernels"] = info.kernels;
  dict["weights"] = info.weights;
  dict["kv_cache_type"] = info.kv_cache_type;
  dict["drafter"] = info.drafter;
  dict["sources"] = info.sources;
  dict["threads"] = info.threads;
  dict["parameters"] = info.parameters;
  dict["weight_bytes"] = info.weight_bytes;
  dict["context"] = info.context;
  dict["vocab_size"] = info.vocab_size;
  dict["load_ms"] = info.load_ms;
  return dict;
}

nb::dict status_of_engine(const EngineStatus& status) {
  nb::dict dict;
  dict["running"] = status.running;
  dict["waiting"] = status.waiting;
  dict["pages"] = status.pages;
  dict["used_pages"] = status.used_pages;
  dict["steps"] = status.steps;
  dict["rows"] = status.rows;
  dict["prompt_tokens"] = status.prompt_tokens;
  dict["cached_tokens"] = status.cached_tokens;
  dict["output_tokens"] = status.output_tokens;
  dict["preemptions"] = status.preemptions;
  dict["speculation"] = statistics_of(status.speculation);
  dict["speedup"] = status.speedup;
  return dict;
}

void raise(const Error& error) {
  PyErr_SetString(exception_for(error.kind), error.message.c_str());
  throw nb::python_error();
}

}  // namespace outrider::py
