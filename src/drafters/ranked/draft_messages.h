// SPDX-License-Identifier: Apache-2.0
// Messages between rank 0 and the ranks that draft, as bytes (models/team/messages.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/team/messages.h"
#include "outrider/drafter.h"
#include "outrider/speculative_options.h"
#include "outrider/token_tree.h"
#include "speculation/tree/acceptance_estimates.h"
#include "tensor/dtype.h"

namespace outrider {

// How a rank opens a draft model: what DrafterContext says of the target and the engine.
struct DrafterSettings {
  std::string target = {};  // path of the target's files, which have its tokenizer; the same on every machine
  std::string kernels = {};  // name of the kernel table
  bool converts = false;
  DType weights = DType::kF32;  // where it converts
  DType kv_type = DType::kBF16;
  int64_t vocab_size = 0;
  int64_t context = 0;
  int max_batch = 1;
  int prefill_chunk = 0;
  int page_size = 0;
  int threads = 0;                      // 0: this rank's share of its machine
  std::string device = {};              // name of a BackendKind
  int first_device = 0;                 // number of the device of the machine's first rank
  SpeculativeOptions speculation = {};  // the keys that a draft model reads
};

struct DrafterAnswer {
  ErrorKind kind = ErrorKind::kInput;
  std::string error = {};  // empty: it worked
  DrafterMemory memory = {};
};

// A DraftRequest with the tokens of the sequence's last order and what follows them.
struct DraftOrder {
  uint64_t sequence = 0;
  uint64_t scope = 0;
  int64_t kept = 0;                  // tokens of the last order that still hold
  std::vector<TokenId> tokens = {};  // after them
  int prompt_length = 0;
  int max_draft_len = 0;
  int max_nodes = 0;
  int max_children = 0;
  SamplingParams sampling = {};
  uint64_t sample_index = 0;
  int source = 0;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  bool is_constrained = false;
  TokenConstraint::State constraint_state = TokenConstraint::kDead;
  bool wants_probabilities = false;
  bool may_guess = false;
  double rate = 0;
  double row_ms = 0;
  std::vector<AcceptanceEstimates> estimates = {};  // the request's own and their priors; empty: it has none
};

// The beginning of an answer of a rank that drafts.
enum class DraftAnswer : uint8_t {
  kTrees,     // error or empty, how many orders were foreseen, then a tree for each order
  kQuestion,  // ConstraintQuestion; answered by RankCommand::kReply
};

// A call of the constraint of an order, which only rank 0 can make.
struct ConstraintQuestion {
  enum class Call : uint8_t { kStart, kAdvance, kAllowed, kIsComplete };
  int order = 0;  // index among the requests of the message
  Call call = Call::kStart;
  TokenConstraint::State state = TokenConstraint::kDead;
  TokenId token = 0;
};

// One function writes and reads all fields of a message.
template <typename Archive, typename Settings>
requires std::is_same_v<std::remove_const_t<Settings>, DrafterSettings>
void each_field(Archive& archive, Settings& settings) {
  archive.field(settings.target);
  archive.field(settings.kernels);
  archive.field(settings.device);
  archive.field(settings.converts);
  archive.field(settings.weights);
  archive.field(settings.kv_type);
  archive.field(settings.vocab_size);
  archive.field(settings.context);
  for (auto* number : {&settings.max_batch, &settings.prefill_chunk, &settings.page_size, &settings.threads,
                       &settings.first_device})
    archive.field(*number);
}

template <typename Archive, typename Answer>
requires std::is_same_v<std::remove_const_t<Answer>, DrafterAnswer>
void each_field(Archive& archive, Answer& answer) {
  archive.field(answer.kind);
  archive.field(answer.error);
  archive.field(answer.memory);
}

template <typename Archive, typename Order>
requires std::is_same_v<std::remove_const_t<Order>, DraftOrder>
void each_field(Archive& archive, Order& order) {
  archive.field(order.sequence);
  archive.field(order.scope);
  archive.field(order.kept);
  archive.field(order.tokens);
  for (auto* number :
       {&order.prompt_length, &order.max_draft_len, &order.max_nodes, &order.max_children, &order.source})
    archive.field(*number);
  archive.field(order.sample_index);
  archive.field(order.acceptance);
  archive.field(order.is_constrained);
  archive.field(order.constraint_state);
  archive.field(order.wants_probabilities);
  archive.field(order.may_guess);
  archive.field(order.rate);
  archive.field(order.row_ms);
  archive.field(order.estimates);
}

void write_settings(MessageWriter& message, const DrafterSettings& settings);
DrafterSettings read_settings(MessageReader& message);

void write_order(MessageWriter& message, const DraftOrder& order);
DraftOrder read_order(MessageReader& message);

// A tree where all proposals at one node have the same distribution, as one drafter grows it.
void write_tree(MessageWriter& message, const TokenTree& tree);
// Grows the tree from `tree`, which holds the pending token.
void read_tree(MessageReader& message, TokenTree& tree);

}  // namespace outrider
