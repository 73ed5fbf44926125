// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "outrider/drafter.h"

namespace outrider::py {

// A drafter in Python. It works on another thread, which the package starts, so that the engine need not wait
// for ever. A drafter that is not done within the time limit is never asked again.
class PythonDrafter final : public Drafter {
 public:
  // Tokens, parents and probabilities by node. Parents count the root as 0; no parents: a chain. No
  // probabilities: 1.
  using Answer = std::tuple<std::vector<TokenId>, std::vector<int>, std::vector<double>>;

  PythonDrafter(std::string name, double time_limit_s, FeatureTaps features);

  // For the thread of the drafter, which asks for a job, and then answers it or says why it cannot. A job is
  // (items, ended). An item is (sequence, is new, new tokens, prompt length, accepted tokens of the last
  // draft, levels, nodes, first token with new features, features [tokens, taps, hidden size] or None);
  // `ended` are sequences. None: the engine is closed.
  nanobind::object next_job();
  void answer(std::vector<Answer> answers);
  void fail(std::string message);

  // Ends next_job().
  void close();
  // Whether the time limit passed.
  bool is_out() const;

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  void end(uint64_t sequence) override;

 private:
  // Features of tokens that follow one another.
  struct Features {
    int first = 0;               // token
    std::vector<float> numbers;  // [tokens, size]
    int64_t size = 0;
  };
  struct Item {
    uint64_t sequence = 0;
    bool is_new = false;
    std::vector<TokenId> tokens;  // since the last job
    int prompt_length = 0;
    int64_t accepted = 0;
    int max_draft_len = 0;
    int max_nodes = 0;
    Features features;  // since the last job
  };
  struct Job {
    std::vector<Item> items;
    std::vector<uint64_t> ended;
  };
  // A sequence as far as the Python side knows it.
  struct Known {
    size_t tokens = 0;
    int64_t accepted = 0;
    Features features;  // that it does not know yet
  };

  nanobind::tuple tuple_of(Item& item) const;
  Job job_for(std::span<const DraftRequest> requests);
  Status stop_waiting();
  void reply(std::vector<Answer> answers, std::string error);

  DrafterTraits traits_;
  double time_limit_s_;
  std::map<uint64_t, Known> known_;  // used only by the engine's thread
  std::vector<uint64_t> ended_;      // likewise

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable job_came_, answer_came_;
  Job job_;
  std::vector<Answer> answers_;
  std::string error_;  // of the answer; empty: none
  bool has_job_ = false;
  bool is_answered_ = false;
  bool is_closed_ = false;
  bool is_out_ = false;
  unsigned long worker_ = 0;  // thread that asks for jobs, as Python counts it
};

}  // namespace outrider::py
