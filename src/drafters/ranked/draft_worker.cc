// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/draft_worker.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "drafters/draft_target/draft_target.h"
#include "drafters/ranked/draft_messages.h"
#include "drafters/ranked/guessed_verdicts.h"
#include "formats/model_file.h"
#include "models/team/rank_worker.h"

namespace outrider {
namespace {

using Message = std::vector<std::byte>;

// Messages of rank 0, of which a reply may come after orders that were sent before the question.
class Inbox {
 public:
  explicit Inbox(Communicator& ranks) : ranks_(ranks) {}

  bool has_command() const { return !kept_.empty() || ranks_.has_message(0); }

  Message next_command() {
    if (kept_.empty()) return receive_message(ranks_, 0);
    Message message = std::move(kept_.front());
    kept_.pop_front();
    return message;
  }

  Message ask(const ConstraintQuestion& question) {
    MessageWriter message;
    message.field(DraftAnswer::kQuestion);
    message.field(question);
    send_message(ranks_, message, 0);
    for (;;) {
      Message received = receive_message(ranks_, 0);
      MessageReader reader(received);
      auto command = RankCommand::kReply;
      reader.field(command);
      if (command == RankCommand::kReply) return received;
      kept_.push_back(std::move(received));
    }
  }

 private:
  Communicator& ranks_;
  std::deque<Message> kept_;
};

// The constraint of an order, which rank 0 has.
class DistantConstraint final : public TokenConstraint {
 public:
  DistantConstraint(Inbox& inbox, int order) : inbox_(inbox), order_(order) {}

  State start() override { return ask<State>({.call = Call::kStart}); }
  State advance(State state, TokenId token) override {
    return ask<State>({.call = Call::kAdvance, .state = state, .token = token});
  }
  std::span<const uint64_t> allowed(State state) override {
    allowed_ = ask<std::vector<uint64_t>>({.call = Call::kAllowed, .state = state});
    return allowed_;
  }
  bool is_complete(State state) override { return ask<bool>({.call = Call::kIsComplete, .state = state}); }

 private:
  using Call = ConstraintQuestion::Call;

  template <typename T>
  T ask(ConstraintQuestion question) {
    question.order = order_;
    const Message message = inbox_.ask(question);
    MessageReader reader(message);
    auto command = RankCommand::kReply;
    reader.field(command);
    T answer{};
    reader.field(answer);
    return answer;
  }

  Inbox& inbox_;
  int order_;
  std::vector<uint64_t> allowed_;
};

// A sequence and its last order, which its request points into.
struct ServedSequence {
  std::vector<TokenId> text;
  DraftOrder order = {};
  std::optional<DistantConstraint> constraint = {};
};

// A draft model of this rank and the sequences that it drafts for.
struct ServedDrafter {
  std::shared_ptr<const Tokenizer> tokenizer;  // the target's
  std::shared_ptr<Drafter> drafter;
  std::unordered_map<uint64_t, ServedSequence> sequences;
  std::optional<GuessedVerdicts> guesses;
};

class DraftWorker {
 public:
  explicit DraftWorker(Communicator& ranks) : ranks_(ranks), inbox_(ranks) {}

  void serve() {
    for (;;) {
      while (!inbox_.has_command() && guess()) {
      }
      const Message bytes = inbox_.next_command();
      MessageReader message(bytes);
      auto command = RankCommand::kQuit;
      message.field(command);
      if (command == RankCommand::kQuit) return;
      execute(command, message);
    }
  }

 private:
  // Uses the time until the next command. False: there is nothing to be done with it.
  bool guess() {
    return std::ranges::any_of(served_, [&](auto& one) {
      std::optional<GuessedVerdicts>& guesses = one.second.guesses;
      try {
        return guesses && guesses->draft_next([&] { return inbox_.has_command(); });
      } catch (const std::exception&) {  // if the drafter itself is to blame, the next order finds out
        guesses.reset();
        return false;
      }
    });
  }

  void execute(RankCommand command, MessageReader& message) {
    if (command == RankCommand::kClose) return served_.clear();
    int number = 0;
    message.field(number);
    if (command == RankCommand::kOpenDrafter) {
      answer_open(open(served_[number], read_settings(message)), number);
    } else if (command == RankCommand::kDraft) {
      draft(served_[number], message);
    } else if (command == RankCommand::kForget) {
      uint64_t sequence = 0;
      message.field(sequence);
      ServedDrafter& served = served_[number];
      if (served.guesses) served.guesses->forget(sequence);
      served.sequences.erase(sequence);
      served.drafter->end(sequence);
    }
  }

  Status open(ServedDrafter& served, const DrafterSettings& settings) {
    OUTRIDER_TRY(const ModelFile target, open_model(settings.target));
    OUTRIDER_TRY(served.tokenizer, Tokenizer::create(target.tokenizer));
    OUTRIDER_TRY(ModelFile model, open_model(settings.speculation.speculative_model));
    DraftFiles files;
    files.models.push_back(std::move(model));
    OUTRIDER_TRY(const KernelTable* kernels, select_kernels(settings.kernels));
    if (!pool_) pool_.emplace(settings.threads == 0 ? threads_of_rank(ranks_) : settings.threads);
    const DrafterContext context{
        .tokenizer = served.tokenizer.get(),
        .vocab_size = settings.vocab_size,
        .context = settings.context,
        .max_batch = settings.max_batch,
        .prefill_chunk = settings.prefill_chunk,
        .page_size = settings.page_size,
        .kv_type = settings.kv_type,
        .kernels = kernels,
        .pool = &*pool_,
        .weights = settings.converts ? std::optional(settings.weights) : std::nullopt,
        .user_drafter = {},
        .files = &files,
        .device = settings.device,
        .device_number = settings.first_device + ranks_.place()};
    OUTRIDER_TRY(served.drafter, make_draft_target_drafter(settings.speculation, context));
    served.guesses.emplace(*served.drafter, settings.vocab_size);
    return {};
  }

  void answer_open(const Status& status, int number) {
    DrafterAnswer answer;
    if (!status.ok()) answer = {.kind = status.error().kind, .error = status.error().message};
    if (status.ok()) answer.memory = served_[number].drafter->memory();
    MessageWriter message;
    each_field(message, std::as_const(answer));
    send_message(ranks_, message, 0);
  }

  void draft(ServedDrafter& served, MessageReader& message) {
    requests_.clear();
    open_.clear();
    open_requests_.clear();
    size_t count = 0;
    message.field(count);
    trees_.resize(std::max(trees_.size(), count));
    open_trees_.resize(trees_.size());
    for (size_t i = 0; i < count; ++i) take_order(served, read_order(message));
    const auto trees = std::span(trees_).first(count);
    const double start = now_ms();
    const std::string error = run(*served.drafter);
    for (size_t i = 0; i < open_.size(); ++i) std::swap(trees[open_[i]], open_trees_[i]);
    const double draft_ms = now_ms() - start;
    MessageWriter answer;
    answer.field(DraftAnswer::kTrees);
    answer.field(error);
    answer.field(static_cast<int>(count - open_.size()));
    for (const TokenTree& tree : trees) write_tree(answer, tree);
    send_message(ranks_, answer, 0);
    if (served.guesses) {
      served.guesses->start(requests_, trees, open_.empty() ? std::nullopt : std::optional(draft_ms));
    }
  }

  // Finds the tree of an order among the guesses, or leaves the order open.
  void take_order(ServedDrafter& served, DraftOrder order) {
    const size_t i = requests_.size();
    ServedSequence& sequence = served.sequences[order.sequence];
    const bool is_continued = order.kept == std::ssize(sequence.text);
    const DraftRequest& request =
        requests_.emplace_back(request_of(sequence, std::move(order), static_cast<int>(i)));
    if (served.guesses && served.guesses->take(request, is_continued, trees_[i])) return;
    trees_[i].reset(request.tokens.back());
    open_trees_[open_.size()].reset(request.tokens.back());
    open_.push_back(i);
    open_requests_.push_back(request);
  }

  // number: of the order in its message
  DraftRequest request_of(ServedSequence& sequence, DraftOrder received, int number) {
    sequence.order = std::move(received);
    DraftOrder& order = sequence.order;
    sequence.text.resize(static_cast<size_t>(order.kept));
    sequence.text.insert(sequence.text.end(), order.tokens.begin(), order.tokens.end());
    sequence.constraint.reset();
    if (order.is_constrained) sequence.constraint.emplace(inbox_, number);
    for (size_t i = order.estimates.size(); i-- > 0;) {
      const bool has_prior = i + 1 < order.estimates.size();
      order.estimates[i] =
          AcceptanceEstimates(order.estimates[i], has_prior ? &order.estimates[i + 1] : nullptr);
    }
    return {.sequence = order.sequence,
            .scope = order.scope,
            .tokens = sequence.text,
            .prompt_length = order.prompt_length,
            .max_draft_len = order.max_draft_len,
            .max_nodes = order.max_nodes,
            .max_children = order.max_children,
            .sampling = &order.sampling,
            .sample_index = order.sample_index,
            .source = order.source,
            .acceptance = order.acceptance,
            .constraint = sequence.constraint ? &*sequence.constraint : nullptr,
            .constraint_state = order.constraint_state,
            .wants_probabilities = order.wants_probabilities,
            .may_guess = order.may_guess,
            .rate = order.rate,
            .row_ms = order.row_ms,
            .estimates = order.estimates.empty() ? nullptr : order.estimates.data()};
  }

  // Returns the error, or nothing.
  std::string run(Drafter& drafter) {
    if (open_requests_.empty()) return "";
    try {
      const Status status = drafter.draft(open_requests_, std::span(open_trees_).first(open_.size()));
      return status.ok() ? "" : status.error().message;
    } catch (const RankFailure&) {
      throw;
    } catch (const std::exception& error) {
      return std::string("the drafter threw: ") + error.what();
    }
  }

  Communicator& ranks_;
  Inbox inbox_;
  std::optional<ThreadPool> pool_;
  std::unordered_map<int, ServedDrafter> served_;  // by number
  std::vector<DraftRequest> requests_;             // of a message
  std::vector<TokenTree> trees_;                   // by request; further trees are spare
  std::vector<size_t> open_;                       // requests that nobody foresaw
  std::vector<DraftRequest> open_requests_;
  std::vector<TokenTree> open_trees_;
};

}  // namespace

void serve_drafts(Communicator& ranks) { DraftWorker(ranks).serve(); }

}  // namespace outrider
