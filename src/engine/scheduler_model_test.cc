// SPDX-License-Identifier: Apache-2.0
// Random arrivals, cancellations and steps on the scheduler and its pages; what must always hold is checked
// after every operation. Compiled once more, with more runs, for the slow suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "engine/scheduler.h"

namespace outrider {
namespace {

#ifdef OUTRIDER_SLOW_TEST
constexpr uint32_t kRuns = 2000;
#else
constexpr uint32_t kRuns = 60;
#endif
constexpr int kOperations = 1500;  // of a run
constexpr int kAlphabet = 3;
constexpr int64_t kContext = 64;

std::shared_ptr<const Tokenizer> tokenizer() {
  static const std::shared_ptr<const Tokenizer> made = [] {
    TokenizerSpec spec;
    spec.pieces = {"a", "b", "c", "<eos>"};
    spec.attributes.assign(3, TokenAttribute::kNormal);
    spec.attributes.push_back(TokenAttribute::kControl);
    spec.eos = kAlphabet;
    return *Tokenizer::create(std::move(spec));
  }();
  return made;
}

struct Shape {
  SchedulerOptions options;
  int page_size = 4;
  int64_t pages = 0;
  bool shares_beginnings = false;  // else no prompt begins like another
  bool long_prompts = false;
  bool has_offers = false;  // some sequences wait for offered trees
  bool restores = false;    // some sequences wait for pages from elsewhere
  bool has_background = false;
  bool slides = false;  // some texts go on where they fill the context
};

Shape shape_of(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Shape shape;
  shape.options.max_batch = 1 + below(9);
  shape.options.max_batch_rows = shape.options.max_batch + (below(3) == 0 ? below(4) : below(60));
  shape.options.prefill_chunk = 1 + below(below(2) == 0 ? 4 : 40);
  shape.options.max_nodes = below(3) == 0 ? 0 : 1 + below(12);
  shape.options.max_draft_len = std::min(shape.options.max_nodes, 5);
  shape.options.preempt_every = below(3) == 0 ? 1 + below(3) : 0;
  shape.page_size = 1 << below(5);
  const int64_t min = (kContext + shape.page_size - 1) / shape.page_size;
  shape.pages = min + (below(3) == 0 ? 0 : below(static_cast<int>(min) * 4));
  shape.shares_beginnings = below(2) == 0;
  shape.long_prompts = below(2) == 0;
  shape.has_offers = below(3) == 0;
  if (shape.has_offers) shape.options.offered_nodes = 1 + below(6);
  shape.restores = shape.shares_beginnings && below(2) == 0;
  shape.has_background = below(3) == 0;
  shape.options.background_beside = below(2) == 0 ? 0 : 1 + below(3);
  shape.slides = below(3) == 0;
  return shape;
}

// Lets some sequences wait, and meanwhile fills pages that others may need.
class RandomRestorer final : public PrefixRestorer {
 public:
  RandomRestorer(KvCache* cache, uint32_t seed) : cache_(*cache), random_(seed) {}

  bool restore(const Sequence& sequence, bool) override {
    if (current_ == 0 && random_() % 3 == 0) {
      current_ = sequence.id();
      pages_ = cache_.open_pages({}, 0);
    }
    if (current_ != sequence.id()) return false;
    const int page_size = cache_.shape().page_size;
    std::vector<TokenId> tokens(static_cast<size_t>(page_size));
    for (TokenId& token : tokens) token = static_cast<TokenId>(random_() % 1000);
    // Some pages are reserved before they are adopted, and some are never adopted.
    for (const int32_t page : cache_.reserve_pages(pages_, random_() % 3)) {
      cache_.storage().clear(page * page_size, page_size);
      ++reserved_;
    }
    if (reserved_ == 0) return false;
    --reserved_;
    cache_.adopt(pages_, tokens);
    return random_() % 2 == 0;
  }
  void release(RequestId id) override {
    if (id == current_) release();
  }
  bool release() override {
    pages_ = {};
    reserved_ = 0;
    return std::exchange(current_, 0) != 0;
  }

 private:
  int reserved_ = 0;
  KvCache& cache_;
  std::mt19937 random_;
  RequestId current_ = 0;
  KvSequence pages_;
};

class SchedulerModel {
 public:
  SchedulerModel(const Shape& shape, uint32_t seed)
      : shape_(shape),
        random_(seed),
        cache_({.layer_count = 1,
                .kv_head_count = 1,
                .head_dim = 1,
                .page_size = shape.page_size,
                .page_count = shape.pages}),
        restorer_(&cache_, seed),
        scheduler_(with_restorer(shape), &cache_) {}

  void operate() {
    const int operation = below(100);
    if (operation < 15 && requests_.size() < 40) {
      submit();
    } else if (operation < 20 && !requests_.empty()) {
      end(std::next(requests_.begin(), below(static_cast<int>(requests_.size())))->first);
    } else if (operation < 45) {
      offer(2);
    } else if (!scheduler_.idle()) {
      step();
    }
    check();
  }

  // All that was accepted comes to its end, in a bounded number of steps, if trees come.
  void drain() {
    int64_t work = 0;
    for (const auto& [id, request] : requests_)
      work +=
          request.sequence->max_length() * (shape_.options.max_preemptions + 2) + (shape_.restores ? 99 : 1);
    while (!requests_.empty()) {
      if (scheduler_.idle()) offer(1);
      ASSERT_GE(work--, 0) << "no end in sight";
      ASSERT_NO_FATAL_FAILURE(step());
      ASSERT_NO_FATAL_FAILURE(check());
    }
    ASSERT_TRUE(requests_.empty());
    ASSERT_EQ(ended_, submitted_);
    ASSERT_EQ(cache_.available_pages(), shape_.pages);
  }

  int64_t preemptions() const { return scheduler_.preemptions(); }
  int64_t parked() const { return parked_; }
  int64_t max_preempted() const { return max_preempted_; }
  int64_t yielded() const { return yielded_; }
  int64_t slid() const { return slid_; }
  int64_t cached() const { return scheduler_.cached_tokens(); }

 private:
  struct Model {
    Sequence* sequence = nullptr;
    int preemptions = 0;
    uint64_t first_run = 0;  // order; 0: has not run
    bool runs = false;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  SchedulerOptions with_restorer(const Shape& shape) {
    SchedulerOptions options = shape.options;
    if (shape.restores) options.restorer = &restorer_;
    return options;
  }

  void submit() {
    Request request;
    const int length = 1 + below(shape_.long_prompts ? static_cast<int>(kContext) - 2 : 10);
    std::mt19937 beginning(shape_.shares_beginnings ? random_() % 2 : random_());
    for (int i = 0; i < length; ++i) request.prompt.push_back(static_cast<TokenId>(beginning() % kAlphabet));
    // Its first token is its own, so that nothing is shared.
    if (!shape_.shares_beginnings) request.prompt[0] = static_cast<TokenId>(100 + submitted_);
    request.max_tokens = 1 + below(40);
    request.cache_scope = static_cast<uint64_t>(below(3));
    request.ignore_eos = true;
    request.speculation.enabled = below(4) != 0;
    request.speculation.is_offered = shape_.has_offers && below(2) == 0;
    request.is_background = shape_.has_background && below(2) == 0;
    if (shape_.slides && !request.speculation.is_offered) request.slide = below(20);
    const RequestId id = ++submitted_;
    auto sequence = std::make_unique<Sequence>(
        id, std::move(request), nullptr, tokenizer(),
        Sequence::Limits{.context = kContext,
                         .max_nodes = std::max(shape_.options.max_nodes, shape_.options.offered_nodes),
                         .model_stop_tokens = {}});
    requests_[id].sequence = sequence.get();
    scheduler_.add(std::move(sequence));
  }

  // Trees come for one in `share` of the sequences that wait for one.
  void offer(int share) {
    for (auto& [id, request] : requests_) {
      if (request.sequence->awaits_tree() && below(share) == 0)
        request.sequence->offered = TokenTree(request.sequence->tokens().back());
    }
  }

  // Finished, or cancelled by the client.
  void end(RequestId id) {
    const auto sequence = scheduler_.remove(id);
    ASSERT_NE(sequence, nullptr) << "request " << id << " was lost";
    ASSERT_EQ(scheduler_.find(id), nullptr);
    requests_.erase(id);
    ++ended_;
  }

  void step() {
    std::vector<Sequence*> preempted;
    const int others = wanting();
    const std::span<const SequencePlan> plans = scheduler_.plan(preempted);
    ASSERT_NO_FATAL_FAILURE(check_rows(plans));
    ASSERT_NO_FATAL_FAILURE(check_background(plans, others));
    if (!shape_.shares_beginnings && !shape_.has_offers && !shape_.has_background && preempted.empty()) {
      ASSERT_NO_FATAL_FAILURE(check_order(plans));
    }
    for (auto& [id, request] : requests_) request.runs = false;
    for (const SequencePlan& plan : plans) {
      Model& model = requests_.at(plan.sequence->id());
      model.runs = true;
      if (model.first_run == 0) model.first_run = ++last_run_;
    }
    // Sequences that lost their pages in the step they started in were the most junior, the last one first.
    for (size_t i = preempted.size(); i-- > 0;) {
      Model& model = requests_.at(preempted[i]->id());
      if (model.first_run == 0) model.first_run = ++last_run_;
    }
    ASSERT_NO_FATAL_FAILURE(check_preempted(plans, preempted));
    std::vector<RequestId> finished;
    for (const SequencePlan& plan : plans) {
      ASSERT_NO_FATAL_FAILURE(compute(plan));
      if (plan.sequence->finished()) finished.push_back(plan.sequence->id());
    }
    for (const RequestId id : finished) ASSERT_NO_FATAL_FAILURE(end(id));
    scheduler_.park();
    parked_ += scheduler_.parked();
  }

  // Sequences that want to run and are not in the background.
  int wanting() const {
    return static_cast<int>(std::ranges::count_if(requests_, [](const auto& entry) {
      const Sequence& sequence = *entry.second.sequence;
      const bool is_computed = std::ssize(sequence.tokens()) - 1 == sequence.kv.length();
      const bool may_be_parked = is_computed || entry.second.first_run > 0;
      return !sequence.is_background() && !(sequence.awaits_tree() && may_be_parked);
    }));
  }

  // The background has only the places that others leave, and nobody waits because of it.
  void check_background(std::span<const SequencePlan> plans, int others) {
    const auto background = static_cast<int>(std::ranges::count_if(
        plans, [](const SequencePlan& plan) { return plan.sequence->is_background(); }));
    const int batch = shape_.options.max_batch;
    ASSERT_LE(background,
              others == 0 ? batch : std::clamp(batch - others, 0, shape_.options.background_beside));
    // A preemption without need, or a slide, may take the only other sequence, and one holds a place while
    // its beginning comes from elsewhere.
    const bool some_rest =
        shape_.has_offers || shape_.options.preempt_every > 0 || shape_.restores || shape_.slides;
    ASSERT_TRUE(others == 0 || some_rest || background < std::ssize(plans));
    if (background > 0) return;
    yielded_ += std::ranges::count_if(requests_, [](const auto& entry) {
      return entry.second.runs && entry.second.sequence->is_background();
    });
  }

  // Everyone who runs advances in every step: B = 1.
  void check_rows(std::span<const SequencePlan> plans) {
    ASSERT_EQ(static_cast<int>(plans.size()), scheduler_.running());
    ASSERT_LE(scheduler_.running(), shape_.options.max_batch);
    int rows = 0, prompt_rows = 0, prompts = 0;
    for (const SequencePlan& plan : plans) {
      ASSERT_GE(plan.rows(), 1) << "request " << plan.sequence->id() << " stands still";
      rows += plan.rows();
      prompt_rows += plan.prefill_tokens;
      prompts += plan.prefill_tokens > 0 ? 1 : 0;
      ASSERT_TRUE(plan.decodes || plan.max_nodes == 0);
      ASSERT_FALSE(plan.decodes && plan.sequence->awaits_tree()) << "decodes without its tree";
      ASSERT_LE(plan.max_nodes, std::max(0, scheduler_.draft_rows()));
      ASSERT_LE(plan.max_draft_len, plan.max_nodes);
      ASSERT_LT(plan.max_draft_len, std::max<int64_t>(plan.sequence->remaining(), 1));
    }
    ASSERT_LE(rows + std::max(0, scheduler_.draft_rows()), shape_.options.max_batch_rows);
    ASSERT_LE(prompt_rows, std::max(shape_.options.prefill_chunk, prompts));
  }

  void check_preempted(std::span<const SequencePlan> plans, const std::vector<Sequence*>& preempted) {
    for (const Sequence* sequence : preempted) {
      Model& model = requests_.at(sequence->id());
      slid_ += sequence->is_full() ? 1 : 0;
      // Parked ones lose their pages at any time, and full ones when they slide.
      if (sequence->is_background() || sequence->is_full()) {
        ASSERT_EQ(sequence->kv.length(), 0);
        continue;
      }
      ASSERT_LE(++model.preemptions, shape_.options.max_preemptions);
      max_preempted_ = std::max<int64_t>(max_preempted_, model.preemptions);
      ASSERT_EQ(sequence->kv.length(), 0);
      ASSERT_FALSE(plans.empty());
      if (shape_.has_offers) continue;  // some sequences start and are parked before they run
      ASSERT_TRUE(std::ranges::any_of(plans, [&](const SequencePlan& plan) {
        return requests_.at(plan.sequence->id()).first_run < model.first_run;
      })) << "the oldest was preempted";
    }
  }

  // Checks which sequences started: preempted ones first, then by scope and arrival.
  void check_order(std::span<const SequencePlan> plans) {
    std::map<uint64_t, int> scopes;
    std::vector<Sequence*> started;
    std::set<RequestId> waiting;
    for (const auto& [id, request] : requests_) {
      if (request.first_run == 0) waiting.insert(id);
    }
    bool all_preempted_run = true;
    std::set<RequestId> running;
    for (const SequencePlan& plan : plans) {
      running.insert(plan.sequence->id());
      if (requests_.at(plan.sequence->id()).first_run == 0) {
        started.push_back(plan.sequence);
      } else {
        ++scopes[plan.sequence->request().cache_scope];
      }
    }
    for (const auto& [id, request] : requests_)
      all_preempted_run = all_preempted_run && (request.first_run == 0 || running.contains(id));
    ASSERT_TRUE(started.empty() || all_preempted_run) << "a preempted request was overtaken";
    for (const Sequence* sequence : started) {
      const auto scope_of = [&](RequestId id) { return requests_.at(id).sequence->request().cache_scope; };
      const RequestId expected = *std::ranges::min_element(
          waiting, {}, [&](RequestId id) { return std::pair(scopes[scope_of(id)], id); });
      ASSERT_EQ(sequence->id(), expected) << "another was next";
      ++scopes[scope_of(expected)];
      waiting.erase(expected);
    }
  }

  // Acts as the engine's step: stages entries, keeps a path, commits it.
  void compute(const SequencePlan& plan) {
    Sequence& sequence = *plan.sequence;
    auto transaction = cache_.stage(sequence.kv, plan.entries());
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    std::vector<int> path;
    for (int i = 0; i < plan.prefill_tokens; ++i) path.push_back(i);
    const auto length = static_cast<size_t>(sequence.kv.length());
    if (plan.decodes) {
      const int accepted = plan.max_draft_len == 0 ? 0 : below(plan.max_draft_len + 1);
      std::vector<TokenId> tokens;
      sequence.offered.reset();
      for (int i = 0; i <= accepted; ++i) tokens.push_back(below(kAlphabet));
      const std::vector<TokenOrigin> origins(tokens.size(), TokenOrigin::kAccepted);
      const int committed = sequence.commit(tokens, origins);
      for (int i = 0; i < committed; ++i) path.push_back(plan.prefill_tokens + i);
    }
    transaction->commit(path, sequence.tokens().subspan(length, path.size()));
  }

  void check() {
    const Status status = cache_.check_invariants();
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(scheduler_.running() + scheduler_.waiting() + scheduler_.parked(),
              static_cast<int>(requests_.size()));
    for (const auto& [id, request] : requests_) {
      ASSERT_EQ(scheduler_.find(id), request.sequence);
      const auto cached = request.sequence->kv.tokens();
      ASSERT_TRUE(std::ranges::equal(cached, request.sequence->tokens().first(cached.size())));
    }
  }

  Shape shape_;
  std::mt19937 random_;
  KvCache cache_;
  RandomRestorer restorer_;
  Scheduler scheduler_;
  std::map<RequestId, Model> requests_;
  RequestId submitted_ = 0;
  uint64_t ended_ = 0;
  uint64_t last_run_ = 0;
  int64_t max_preempted_ = 0;
  int64_t slid_ = 0;
  int64_t parked_ = 0;   // sequences that were parked after a step, all steps together
  int64_t yielded_ = 0;  // sequences in the background that were parked because of others
};

TEST(SchedulerModel, RandomOperationsKeepEveryPromise) {
  int64_t preemptions = 0, max = 0, cached = 0, parked = 0, yielded = 0, slid = 0;
  for (uint32_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SchedulerModel model(shape_of(seed), seed);
    for (int i = 0; i < kOperations && !testing::Test::HasFatalFailure(); ++i) model.operate();
    if (testing::Test::HasFatalFailure()) return;
    model.drain();
    if (testing::Test::HasFatalFailure()) return;
    preemptions += model.preemptions();
    parked += model.parked();
    yielded += model.yielded();
    slid += model.slid();
    max = std::max(max, model.max_preempted());
    cached += model.cached();
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(slid, 100);
  EXPECT_EQ(max, SchedulerOptions().max_preemptions);  // the limit was reached
  EXPECT_GT(cached, 100);
  EXPECT_GT(parked, 100);
  EXPECT_GT(yielded, 100);
}

}  // namespace
}  // namespace outrider
