// SPDX-License-Identifier: Apache-2.0
// The module outrider.lib._engine, on which the package builds. It is no separate API.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python_drafter.h"
#include "python_engine.h"
#include "python_values.h"

namespace outrider::py {
namespace {

using namespace nb::literals;

// A tokenizer is immutable, and shared by an engine and its results. Python wants another class for
// that.
struct PythonTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
};

nb::list encode(const PythonTokenizer& self, std::string_view text, bool add_special, bool parse_special) {
  return ids_of(self.tokenizer->encode(text, {.add_special = add_special, .parse_special = parse_special}));
}

nb::object decode(const PythonTokenizer& self, const std::vector<TokenId>& tokens, bool skip_special) {
  return text_of(self.tokenizer->decode(tokens, skip_special));
}

nb::bytes token_bytes(const PythonTokenizer& self, TokenId token) {
  if (token < 0 || token >= self.tokenizer->vocab_size()) return nb::bytes("", 0);
  const std::string_view bytes = self.tokenizer->is_control(token) ? self.tokenizer->token_piece(token)
                                                                   : self.tokenizer->token_bytes(token);
  return nb::bytes(bytes.data(), bytes.size());
}

bool is_control(const PythonTokenizer& self, TokenId token) {
  return token >= 0 && token < self.tokenizer->vocab_size() && self.tokenizer->is_control(token);
}

nb::object id_or_none(std::optional<TokenId> token) { return token ? nb::cast(*token) : nb::none(); }

void bind_tokenizer(nb::module_& module) {
  nb::class_<PythonTokenizer>(module, "Tokenizer")
      .def("encode", encode, "text"_a, "add_special"_a, "parse_special"_a)
      .def("decode", decode, "tokens"_a, "skip_special"_a)
      .def("token_bytes", token_bytes, "token"_a)
      .def("is_control", is_control, "token"_a)
      .def_prop_ro("vocab_size", [](const PythonTokenizer& self) { return self.tokenizer->vocab_size(); })
      .def_prop_ro("bos", [](const PythonTokenizer& self) { return id_or_none(self.tokenizer->bos()); })
      .def_prop_ro("eos", [](const PythonTokenizer& self) { return id_or_none(self.tokenizer->eos()); });
}

void bind_drafter(nb::module_& module) {
  nb::class_<PythonDrafter>(module, "Drafter")
      .def(
          "__init__",
          [](PythonDrafter* self, std::string name, double time_limit, std::vector<int64_t> layers,
             bool wants_final_norm) {
            new (self) PythonDrafter(std::move(name), time_limit,
                                     {.layers = std::move(layers), .final_norm = wants_final_norm});
          },
          "name"_a, "time_limit"_a, "feature_layers"_a, "wants_final_norm"_a)
      .def("next_job", &PythonDrafter::next_job)
      .def("answer", &PythonDrafter::answer, "answers"_a)
      .def("fail", &PythonDrafter::fail, "message"_a)
      .def("close", &PythonDrafter::close)
      .def_prop_ro("is_out", &PythonDrafter::is_out);
}

void bind_engine(nb::module_& module) {
  nb::class_<PythonEngine>(module, "Engine")
      .def_static("open", &PythonEngine::open, "options"_a, "drafter"_a.none())
      .def("submit", &PythonEngine::submit, "prompt"_a, "parameters"_a, "is_traced"_a,
           "logits_function"_a.none())
      .def("cancel", &PythonEngine::cancel, "request"_a)
      .def("step", &PythonEngine::step)
      .def("chat_prompt", &PythonEngine::chat_prompt, "body"_a, "chat_template"_a)
      .def("rerank_prompt", &PythonEngine::rerank_prompt, "body"_a)
      .def("status", &PythonEngine::status)
      .def_prop_ro("tokenizer", [](const PythonEngine& self) { return PythonTokenizer{self.tokenizer()}; })
      .def_prop_ro("warnings", &PythonEngine::warnings)
      .def_prop_ro("info", &PythonEngine::info);
}

void check_parameter(const std::string& name, const std::vector<std::string>& values) {
  Request request;
  const Status status = set_parameter(request, name, values);
  if (!status.ok()) raise(status.error());
}

void check_named_options(const PythonEngine::Options& options, bool drafts_itself) {
  std::vector<NamedOption> named;
  for (const auto& [name, value] : options) named.push_back({name, value});
  const Status status = check_options(named, drafts_itself);
  if (!status.ok()) raise(status.error());
}

void bind_functions(nb::module_& module) {
  module.def("check_parameter", check_parameter, "name"_a, "values"_a);
  module.def("check_options", check_named_options, "options"_a, "drafts_itself"_a);
  // Never destroys an object: a forked process has no threads that its destructor could join.
  module.def(
      "keep", [](nb::object object) { object.release(); }, "object"_a.none());
}

}  // namespace
}  // namespace outrider::py

NB_MODULE(_engine, module) {
  nanobind::set_leak_warnings(false);  // a drafter that hangs keeps its objects to the end
  outrider::py::bind_tokenizer(module);
  outrider::py::bind_drafter(module);
  outrider::py::bind_engine(module);
  outrider::py::bind_functions(module);
  module.attr("version") = OUTRIDER_VERSION;
}
