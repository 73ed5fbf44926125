// SPDX-License-Identifier: Apache-2.0
#include "remote/client/remote_decoder.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "drafters/target_access.h"
#include "engine/guarded_call.h"
#include "engine/step/statistics.h"
#include "remote/client/pacing.h"
#include "remote/protocol/codec.h"
#include "remote/session/likely_path.h"

namespace outrider {
namespace {

constexpr RequestId kRequest = 1;
constexpr double kFirstPauseMs = 20;  // before the second attempt to connect; doubles up to the last one
constexpr double kLastPauseMs = 1000;
constexpr double kCloseMs = 1000;

Status check_remote_request(const Request& request) {
  if (request.logprobs < 0 && request.prompt_logprobs < 0 && !request.constraint && request.rules.empty())
    return {};
  return usage_error(
      "log-probabilities, constraints and token rules are not for --server; ask the server's API for them");
}

SessionId random_session() {
  std::random_device device;
  SessionId id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(device());
  return id;
}

void pause(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

}  // namespace

RemoteCounts& RemoteCounts::operator+=(const RemoteCounts& other) {
  verdicts += other.verdicts;
  reconnects += other.reconnects;
  ahead += other.ahead;
  ahead_used += other.ahead_used;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  network_ms += other.network_ms;
  server_ms += other.server_ms;
  return *this;
}

// The decoding of one request.
class RemoteDecoder::Run {
 public:
  Run(RemoteDecoder* decoder, const Request& request, const ProgressSink& sink);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<Completion> finish();

 private:
  bool has_given_up() const { return now_ms() - heard_ms_ > decoder_.times_.give_up_ms; }
  Error loss(const std::string& reason) const;
  Status connect();
  Status exchange();
  Status take(const std::string& bytes);
  void start();
  void absorb();
  TokenTree propose(std::span<const TokenId> tokens);
  void draft();
  void draft_ahead();
  void send(const TokenTree& tree);
  void commit(const DraftingSession::Answer& answer);
  void commit_missed();

  RemoteDecoder& decoder_;
  const Request& request_;
  const ProgressSink& sink_;
  RemoteCounts& counts_;
  Drafter& drafter_;
  TargetAccess target_;  // its ends alone
  DraftingSession session_;
  std::unique_ptr<ServerLink> link_;
  std::vector<int> state_rows_;         // 0, 1, ...
  std::unique_ptr<Sequence> sequence_;  // null until the server has answered for the first time
  std::optional<Completion> completion_;
  Pacing pacing_;
  bool is_ahead_ =
      false;  // a tree was drafted behind the one whose verdict travels, or there was none to draft
  double started_ms_ = now_ms();
  double sent_ms_ = 0;            // when the tree whose verdict travels was sent, or the verdict before came
  double verdict_ms_ = now_ms();  // when the last verdict came
  double heard_ms_ = now_ms();    // when the server last answered in the session
};

RemoteDecoder::Run::Run(RemoteDecoder* decoder, const Request& request, const ProgressSink& sink)
    : decoder_(*decoder),
      request_(request),
      sink_(sink),
      counts_(decoder->counts_),
      drafter_(*decoder->parts_->drafter),
      target_{.model = decoder->parts_->ends.get()},
      session_({.session = random_session(),
                .vocabulary = decoder->parts_->vocabulary,
                .sampling = request.sampling,
                .sample_index = request.sample_index,
                .max_tokens = request.max_tokens,
                .ignore_eos = request.ignore_eos,
                .stop_tokens = request.stop_tokens,
                .prompt = request.prompt,
                .states = drafter_.traits().states.size > 0 ? decoder->state_type_ : StateType::kNone,
                .head = drafter_.traits().states.head}) {}

RemoteDecoder::Run::~Run() {
  if (sequence_) (void)guarded([this] { return drafter_.end(kRequest), Status(); });
}

Result<Completion> RemoteDecoder::Run::finish() {
  while (!completion_) OUTRIDER_RETURN_IF_ERROR(exchange());
  if (link_ && link_->send(encode(ClientMessage(CloseMessage()))).ok()) link_->close(kCloseMs);
  return *std::move(completion_);
}

// The error after the last attempt.
Error RemoteDecoder::Run::loss(const std::string& reason) const {
  const std::string& refusal = session_.refusal();
  return io_error(decoder_.server_.url() + " was lost: " + (refusal.empty() ? reason : refusal));
}

// Sends a tree if the server has nothing to do, another one if there is time, and takes one message.
Status RemoteDecoder::Run::exchange() {
  if (!link_) OUTRIDER_RETURN_IF_ERROR(connect());
  if (session_.is_open() && !session_.finish()) {
    if (session_.awaited() == 0) draft();
    if (session_.awaited() == 1) draft_ahead();
  }
  auto message = link_->receive(decoder_.times_.silence_ms);
  if (message.ok() && *message) return take(**message);
  link_ = nullptr;
  session_.on_disconnect();
  if (has_given_up()) return loss(message.ok() ? "no message came" : message.error().message);
  pause(kFirstPauseMs);
  return {};
}

Status RemoteDecoder::Run::connect() {
  for (double pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLastPauseMs)) {
    auto link = ServerLink::connect(decoder_.server_, decoder_.times_.connect_ms);
    if (link.ok()) {
      link_ = std::move(link).value();
      break;
    }
    if (link.error().kind != ErrorKind::kIo || has_given_up()) return link.error();
    pause(pause_ms);
  }
  counts_.reconnects += sequence_ ? 1 : 0;
  const std::string greeting = encode(session_.greeting());
  counts_.bytes_sent += std::ssize(greeting);
  (void)link_->send(greeting);  // receive() tells whether the connection broke
  return {};
}

Status RemoteDecoder::Run::take(const std::string& bytes) {
  counts_.bytes_received += std::ssize(bytes);
  OUTRIDER_TRY(const ServerMessage message, decode_server_message(bytes));
  OUTRIDER_TRY(const std::optional<DraftingSession::Answer> answer, session_.on_message(message));
  if (!session_.is_open()) return {};
  heard_ms_ = now_ms();
  if (!sequence_) start();
  if (answer) commit(*answer);
  commit_missed();
  absorb();
  if (session_.finish()) sequence_->finish(*session_.finish());
  sequence_->publish();
  return {};
}

void RemoteDecoder::Run::start() {
  const OpenedMessage& server = session_.limits();
  const DraftingParts& parts = *decoder_.parts_;
  const auto sink = [this](RequestId id, const Progress& progress) {
    if (sink_) sink_(id, progress);
    if (progress.completion != nullptr) completion_ = *progress.completion;
  };
  sequence_ = std::make_unique<Sequence>(kRequest, request_, sink, parts.tokenizer,
                                         Sequence::Limits{.context = server.context,
                                                          .max_nodes = parts.limits.nodes,
                                                          .vocab_size = parts.info.vocab_size,
                                                          .model_stop_tokens = server.stop_tokens});
  sequence_->completion().speculation.method = drafter_.traits().name;
  (void)guarded([this] { return drafter_.begin(kRequest, sequence_->tokens()), Status(); });
}

// Hands the states of committed tokens to the drafter, as many at a time as an engine would.
void RemoteDecoder::Run::absorb() {
  const std::span<const TokenId> tokens = sequence_->tokens();
  const auto size = static_cast<int64_t>(session_.limits().state_size);
  if (size == 0) return;
  for (;;) {
    const int64_t count =
        std::min({std::ssize(session_.states()) / size, std::ssize(tokens) - 1 - session_.first_state(),
                  int64_t{decoder_.parts_->prefill_chunk}});
    if (count <= 0) return;
    state_rows_.resize(static_cast<size_t>(count));
    std::iota(state_rows_.begin(), state_rows_.end(), 0);
    const CommittedFeatures states{.sequence = kRequest,
                                   .tokens = tokens,
                                   .first = static_cast<int>(session_.first_state()),
                                   .rows = state_rows_,
                                   .features = session_.states().data(),
                                   .size = size};
    (void)guarded([&] { return drafter_.absorb({&states, 1}), Status(); });
    session_.drop_states(count);
  }
}

// A tree behind these tokens, which are those of the sequence and perhaps more.
TokenTree RemoteDecoder::Run::propose(std::span<const TokenId> tokens) {
  const DraftingParts& parts = *decoder_.parts_;
  const int64_t ahead = std::ssize(tokens) - std::ssize(sequence_->tokens());
  DraftRequest request{
      .sequence = kRequest,
      .tokens = tokens,
      .prompt_length = static_cast<int>(sequence_->prompt_length()),
      .max_depth =
          static_cast<int>(std::min<int64_t>(parts.limits.depth, sequence_->remaining() - 1 - ahead)),
      .max_nodes = std::min(parts.limits.nodes, static_cast<int>(session_.limits().tree_nodes)),
      .sampling = &sequence_->request().sampling,
      .sample_index = sequence_->request().sample_index,
      .rate = parts.is_auto ? pacing_.rate() : 0.0,
      .estimates = parts.is_auto ? &pacing_.estimates() : nullptr,
      .target = drafter_.traits().uses_target ? &target_ : nullptr};
  TokenTree tree(tokens.back());
  if (request.max_depth <= 0 || request.max_nodes <= 0) return tree;
  const double start_ms = now_ms();
  const Status status = guarded([&] { return drafter_.draft({&request, 1}, {&tree, 1}); });
  SpeculationStats& stats = sequence_->completion().speculation;
  stats.draft_ms += now_ms() - start_ms;
  pacing_.on_draft(now_ms() - start_ms);
  if (status.ok()) return tree;
  tree.reset(tokens.back());
  ++stats.draft_failures;
  return tree;
}

// Sends the next tree. Without one the server decodes plainly.
void RemoteDecoder::Run::draft() {
  send(propose(sequence_->tokens()));
  is_ahead_ = false;
  sent_ms_ = now_ms();
}

// While the verdict about a tree travels: drafts behind the path in it that is most likely, and sends both,
// so that the server goes on at once if this path is accepted. If not, the server drops them.
void RemoteDecoder::Run::draft_ahead() {
  if (!drafter_.traits().drafts_ahead || !pacing_.has_time_ahead() || std::exchange(is_ahead_, true)) return;
  const std::vector<TokenId> believed = likeliest_path(session_.first_awaited());
  std::vector<TokenId> tokens(sequence_->tokens().begin(), sequence_->tokens().end());
  tokens.insert(tokens.end(), believed.begin(), believed.end());
  const TokenTree next = propose(tokens);
  if (next.drafted() == 0) return;
  ++counts_.ahead;
  send(behind(sequence_->tokens().back(), believed, next));
}

void RemoteDecoder::Run::send(const TokenTree& tree) {
  const std::string message = encode(ClientMessage(session_.send(tree)));
  counts_.bytes_sent += std::ssize(message);
  (void)link_->send(message);  // receive() tells whether the connection broke
}

void RemoteDecoder::Run::commit(const DraftingSession::Answer& answer) {
  Completion& completion = sequence_->completion();
  const double waited_ms = now_ms() - sent_ms_;
  counts_.server_ms += answer.server_ms;
  counts_.network_ms += waited_ms - answer.server_ms;
  ++counts_.verdicts;
  add_tree(answer.tree, answer.verdict, completion.speculation);
  completion.speculation.verify_ms += waited_ms;
  (completion.tokens.empty() ? completion.prompt_ms : completion.decode_ms) += now_ms() - started_ms_;
  started_ms_ = now_ms();
  pacing_.on_verdict(answer.tree, answer.verdict.tokens, waited_ms, now_ms() - verdict_ms_);
  verdict_ms_ = sent_ms_ = now_ms();
  if (session_.awaited() > 0) {
    ++counts_.ahead_used;
    is_ahead_ = false;
  }
  sequence_->commit(answer.verdict.tokens, answer.verdict.origins);
  (void)guarded([&] { return drafter_.observe(kRequest, answer.tree, answer.verdict), Status(); });
}

// Tokens that the server committed before the last connection broke.
void RemoteDecoder::Run::commit_missed() {
  const auto known = static_cast<size_t>(sequence_->output_length());
  if (session_.output().size() <= known) return;
  const auto missed = std::span(session_.output()).subspan(known);
  sequence_->commit(missed, std::vector<TokenOrigin>(missed.size(), TokenOrigin::kPlain));
}

Result<Completion> RemoteDecoder::generate(const Request& request, const ProgressSink& sink) {
  OUTRIDER_RETURN_IF_ERROR(check_remote_request(request));
  counts_ = {};
  return Run(this, request, sink).finish();
}

}  // namespace outrider
