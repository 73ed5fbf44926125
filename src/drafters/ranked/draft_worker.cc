// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/draft_worker.h"

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drafters/draft_target/draft_target.h"
#include "drafters/ranked/draft_messages.h"
#include "formats/model_file.h"
#include "models/team/rank_worker.h"

namespace outrider {
namespace {

using Message = std::vector<std::byte>;

// Messages of rank 0, of which a reply may come after orders that were sent before the question.
class Inbox {
 public:
  explicit Inbox(Communicator& ranks) : ranks_(ranks) {}

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

// A draft model of this rank and the texts that it drafts for.
struct ServedDrafter {
  std::shared_ptr<const Tokenizer> tokenizer;  // the target's
  std::shared_ptr<Drafter> drafter;
  std::unordered_map<uint64_t, std::vector<TokenId>> texts;
};

class DraftWorker {
 public:
  explicit DraftWorker(Communicator& ranks) : ranks_(ranks), inbox_(ranks) {}

  void serve() {
    for (;;) {
      const Message bytes = inbox_.next_command();
      MessageReader message(bytes);
      auto command = RankCommand::kQuit;
      message.field(command);
      if (command == RankCommand::kQuit) return;
      execute(command, message);
    }
  }

 private:
  // The sequence's part of a draft, which its request points into.
  struct Part {
    DraftOrder order;
    std::optional<DistantConstraint> constraint = {};
  };

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
      served_[number].texts.erase(sequence);
      served_[number].drafter->end(sequence);
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
    parts_.clear();
    requests_.clear();
    size_t count = 0;
    message.field(count);
    for (size_t i = 0; i < count; ++i) add_request(served, read_order(message));
    trees_.resize(std::max(trees_.size(), count));
    for (size_t i = 0; i < count; ++i) trees_[i].reset(requests_[i].tokens.back());
    const std::string error = run(*served.drafter, std::span(trees_).first(count));
    MessageWriter answer;
    answer.field(DraftAnswer::kTrees);
    answer.field(error);
    for (size_t i = 0; i < count; ++i) write_tree(answer, trees_[i]);
    send_message(ranks_, answer, 0);
  }

  void add_request(ServedDrafter& served, DraftOrder received) {
    Part& part = parts_.emplace_back(Part{.order = std::move(received)});
    DraftOrder& order = part.order;
    std::vector<TokenId>& text = served.texts[order.sequence];
    text.resize(static_cast<size_t>(order.kept));
    text.insert(text.end(), order.tokens.begin(), order.tokens.end());
    if (order.is_constrained) part.constraint.emplace(inbox_, static_cast<int>(parts_.size()) - 1);
    for (size_t i = order.estimates.size(); i-- > 0;) {
      const bool has_prior = i + 1 < order.estimates.size();
      order.estimates[i] =
          AcceptanceEstimates(order.estimates[i], has_prior ? &order.estimates[i + 1] : nullptr);
    }
    requests_.push_back({.sequence = order.sequence,
                         .scope = order.scope,
                         .tokens = text,
                         .prompt_length = order.prompt_length,
                         .max_draft_len = order.max_draft_len,
                         .max_nodes = order.max_nodes,
                         .sampling = &order.sampling,
                         .sample_index = order.sample_index,
                         .source = order.source,
                         .acceptance = order.acceptance,
                         .constraint = part.constraint ? &*part.constraint : nullptr,
                         .constraint_state = order.constraint_state,
                         .wants_probabilities = order.wants_probabilities,
                         .rate = order.rate,
                         .estimates = order.estimates.empty() ? nullptr : order.estimates.data()});
  }

  // Returns the error, or nothing.
  std::string run(Drafter& drafter, std::span<TokenTree> trees) {
    try {
      const Status status = drafter.draft(requests_, trees);
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
  std::deque<Part> parts_;
  std::vector<DraftRequest> requests_;
  std::vector<TokenTree> trees_;  // by request; further trees are spare
};

}  // namespace

void serve_drafts(Communicator& ranks) { DraftWorker(ranks).serve(); }

}  // namespace outrider
