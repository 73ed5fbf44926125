// SPDX-License-Identifier: Apache-2.0
#include "python_drafter.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "python_values.h"

namespace outrider::py {
namespace {

// Adds the nodes of an answer to the tree. Nodes beyond the request's limits are left to the engine, which
// cuts them.
Status grow(const PythonDrafter::Answer& answer, TokenTree& tree) {
  const auto& [tokens, parents, probabilities] = answer;
  const bool is_chain = parents.empty();
  if ((!is_chain && parents.size() != tokens.size()) ||
      (!probabilities.empty() && probabilities.size() != tokens.size())) {
    return input_error("expected a parent and a probability for each of " + std::to_string(tokens.size()) +
                       " drafted tokens, found " + std::to_string(parents.size()) + " and " +
                       std::to_string(probabilities.size()));
  }
  std::vector<int> nodes = {0};  // of the tree, by number in the answer; a repeated child is one node
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int parent = is_chain ? static_cast<int>(i) : parents[i];
    const double probability = probabilities.empty() ? 1.0 : probabilities[i];
    if (parent < 0 || parent > static_cast<int>(i) || tokens[i] < 0 ||
        !(probability > 0 && probability <= 1)) {
      return input_error(
          "expected tokens of at least 0, parents before their children and probabilities "
          "above 0 and at most 1, found token " +
          std::to_string(tokens[i]) + ", parent " + std::to_string(parent) + ", probability " +
          std::to_string(probability));
    }
    nodes.push_back(tree.add(nodes[static_cast<size_t>(parent)], tokens[i], probability));
  }
  return {};
}

}  // namespace

PythonDrafter::PythonDrafter(std::string name, double time_limit_s, FeatureTaps features)
    : traits_{.name = std::move(name), .features = std::move(features)}, time_limit_s_(time_limit_s) {}

nb::tuple PythonDrafter::tuple_of(Item& item) const {
  nb::object features = nb::none();
  const auto taps = static_cast<size_t>(traits_.features.count());
  if (taps > 0) {
    const size_t hidden = static_cast<size_t>(item.features.size) / taps;
    const size_t tokens = hidden == 0 ? 0 : item.features.numbers.size() / (taps * hidden);
    features = array_of(std::move(item.features.numbers), {tokens, taps, hidden});
  }
  return nb::make_tuple(item.sequence, item.is_new, ids_of(item.tokens), item.prompt_length, item.accepted,
                        item.max_draft_len, item.max_nodes, item.features.first, features);
}

nb::object PythonDrafter::next_job() {
  Job job;
  {
    const unsigned long worker = PyThread_get_thread_ident();
    const nb::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    worker_ = worker;
    job_came_.wait(lock, [&] { return has_job_ || is_closed_; });
    if (is_closed_) job_.items.clear();
    has_job_ = false;
    job = std::move(job_);
  }
  if (job.items.empty()) return nb::none();
  nb::list items, ended;
  for (Item& item : job.items) items.append(tuple_of(item));
  for (const uint64_t sequence : job.ended) ended.append(sequence);
  return nb::make_tuple(items, ended);
}

void PythonDrafter::answer(std::vector<Answer> answers) { reply(std::move(answers), {}); }

void PythonDrafter::fail(std::string message) { reply({}, std::move(message)); }

void PythonDrafter::reply(std::vector<Answer> answers, std::string error) {
  const std::lock_guard lock(mutex_);
  answers_ = std::move(answers);
  error_ = std::move(error);
  is_answered_ = true;
  answer_came_.notify_one();
}

void PythonDrafter::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  job_came_.notify_all();
}

bool PythonDrafter::is_out() const {
  const std::lock_guard lock(mutex_);
  return is_out_;
}

void PythonDrafter::begin(uint64_t sequence, std::span<const TokenId>, uint64_t) { known_[sequence] = {}; }

void PythonDrafter::observe(uint64_t sequence, const TokenTree&, const Verdict& verdict) {
  known_[sequence].accepted = static_cast<int64_t>(verdict.path.size()) - 1;
}

void PythonDrafter::absorb(std::span<const CommittedFeatures> committed) {
  if (is_out()) return;
  for (const CommittedFeatures& one : committed) {
    Features& features = known_[one.sequence].features;
    if (features.numbers.empty()) features.first = one.first;
    features.size = one.size;
    for (size_t i = 0; i < one.rows.size(); ++i)
      features.numbers.insert(features.numbers.end(), one.at(i).begin(), one.at(i).end());
  }
}

void PythonDrafter::end(uint64_t sequence) {
  known_.erase(sequence);
  ended_.push_back(sequence);
}

PythonDrafter::Job PythonDrafter::job_for(std::span<const DraftRequest> requests) {
  Job job;
  job.ended = std::exchange(ended_, {});
  for (const DraftRequest& request : requests) {
    Known& known = known_[request.sequence];
    const auto fresh = request.tokens.subspan(known.tokens);
    job.items.push_back({.sequence = request.sequence,
                         .is_new = known.tokens == 0,
                         .tokens = {fresh.begin(), fresh.end()},
                         .prompt_length = request.prompt_length,
                         .accepted = std::exchange(known.accepted, 0),
                         .max_draft_len = request.max_draft_len,
                         .max_nodes = request.max_nodes,
                         .features = std::exchange(known.features, {})});
    known.tokens = request.tokens.size();
  }
  return job;
}

Status PythonDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  std::unique_lock lock(mutex_);
  if (is_out_) return {};
  job_ = job_for(requests);
  has_job_ = true;
  is_answered_ = false;
  job_came_.notify_one();
  const std::chrono::duration<double> limit(time_limit_s_);
  if (!answer_came_.wait_for(lock, limit, [&] { return is_answered_; })) {
    is_out_ = true;
    lock.unlock();
    return stop_waiting();
  }
  if (!error_.empty()) return input_error(error_);
  if (answers_.size() != requests.size()) {
    return input_error("expected " + std::to_string(requests.size()) + " drafts, found " +
                       std::to_string(answers_.size()));
  }
  for (size_t i = 0; i < answers_.size(); ++i) OUTRIDER_RETURN_IF_ERROR(grow(answers_[i], trees[i]));
  return {};
}

// Interrupts the drafter where it runs Python code; a call into a library that never returns goes on.
Status PythonDrafter::stop_waiting() {
  {
    const nb::gil_scoped_acquire acquire;
    PyThreadState_SetAsyncExc(worker_, PyExc_TimeoutError);
  }
  return input_error("expected a draft within " + std::to_string(std::lround(time_limit_s_ * 1000)) +
                     " ms, found none; it is not asked again");
}

}  // namespace outrider::py
