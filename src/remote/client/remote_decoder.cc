// SPDX-License-Identifier: Apache-2.0
#include "remote/client/remote_decoder.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/step/statistics.h"
#include "remote/client/pacing.h"
#include "remote/client/request_drafter.h"
#include "remote/protocol/codec.h"
#include "remote/session/drafting_session.h"
#include "remote/session/likely_path.h"

namespace outrider {
namespace {

constexpr RequestId kRequest = 1;
constexpr double kFirstPauseMs = 20;  // before the second attempt to connect; doubles up to the last one
constexpr double kLastPauseMs = 1000;
constexpr double kLonePauseMs = 200;  // between attempts while the client writes offline
constexpr double kCloseMs = 1000;
constexpr double kStopMs = 50;  // between two questions whether the request is stopped

Status check_remote_request(const Request& request) {
  const bool has_form = request.constraint || !request.rules.empty();
  const bool wants_logprobs = request.logprobs >= 0 || request.prompt_logprobs >= 0;
  if (!wants_logprobs && !has_form && request.slide < 0 && !request.logits_function) return {};
  return usage_error(
      "log-probabilities, constraints, token rules, functions of logits and texts that slide are not for "
      "--server; ask the server's API for them");
}

SessionId random_session() {
  std::random_device device;
  SessionId id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(device());
  return id;
}

void pause(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

}  // namespace

// The decoding of one request.
class RemoteDecoder::Run {
 public:
  Run(RemoteDecoder* decoder, const Request& request, const ProgressSink& sink, RequestDrafter* drafter);

  Result<Completion> finish();

 private:
  bool has_given_up() const { return now_ms() - heard_ms_ > decoder_.times_.give_up_ms; }
  // Until the client goes on offline; negative: it does.
  double lone_in_ms() const;
  bool is_cut_off() const { return lone_in_ms() < 0; }
  Error loss(const std::string& reason) const;
  void stop();
  Status exchange();
  Result<std::optional<std::string>> receive(double timeout_ms);
  Status connect();
  double idle_ms() const;
  void greet(std::unique_ptr<ServerLink> link);
  void drop_link();
  Status take(const std::string& bytes);
  Sequence::Limits limits() const;
  void start(std::vector<TokenId> output);
  TokenTree propose(std::span<const TokenId> tokens);
  void draft();
  void draft_ahead();
  void send(const TokenTree& tree);
  void commit(const DraftingSession::Answer& answer);
  void commit_missed();
  void note(int64_t tokens, bool is_offline);

  Status go_on_alone();
  void connect_beside();
  TokenTree lone_tree() const;
  void compare();
  void keep(size_t same);
  void commit_lone(size_t same);

  RemoteDecoder& decoder_;
  const Request& request_;
  const ProgressSink& sink_;
  RemoteCounts& counts_;
  RequestDrafter& drafter_;
  DraftingSession session_;
  std::unique_ptr<ServerLink> link_;
  std::unique_ptr<Sequence> sequence_;  // null until the server has answered for the first time
  int64_t published_ = 0;               // tokens of the output that the sink has seen
  std::vector<bool> is_offline_;        // by token of the output: as in TokenRun
  std::optional<Completion> completion_;
  Pacing pacing_;
  bool is_ahead_ =
      false;  // the next tree is drafted before the verdict on the last one comes, or there was none to draft
  double started_ms_ = now_ms();
  double sent_ms_ = 0;  // when the tree with the verdict under way was sent, or the verdict before came
  double verdict_ms_ = now_ms();  // when the last verdict came
  double heard_ms_ = now_ms();    // when the server last answered in the session

  std::optional<LoneText>
      lone_;               // the text with an end that was written offline, until the server has settled it
  size_t lone_begin_ = 0;  // tokens before that end
  bool is_mute_ = false;   // the drafter does not know how to go on
  std::future<Result<std::unique_ptr<ServerLink>>> attempt_;  // to connect, while the client goes on offline
  double next_attempt_ms_ = 0;
};

RemoteDecoder::Run::Run(RemoteDecoder* decoder, const Request& request, const ProgressSink& sink,
                        RequestDrafter* drafter)
    : decoder_(*decoder),
      request_(request),
      sink_(sink),
      counts_(decoder->counts_),
      drafter_(*drafter),
      session_({.session = random_session(),
                .vocabulary = decoder->parts_->vocabulary,
                .sampling = request.sampling,
                .sample_index = request.sample_index,
                .max_tokens = request.max_tokens,
                .ignore_eos = request.ignore_eos,
                .stop_tokens = request.stop_tokens,
                .prompt = request.prompt,
                .states = decoder->reads_states() ? decoder->state_type_ : StateType::kNone,
                .head = decoder->parts_->drafter->traits().states.head},
               {.vocab_size = decoder->parts_->info.vocab_size,
                .state_size = decoder->parts_->drafter->traits().states.size}) {}

Result<Completion> RemoteDecoder::Run::finish() {
  while (!completion_) {
    if (decoder_.is_stopped()) {
      stop();
    } else {
      OUTRIDER_RETURN_IF_ERROR(is_cut_off() ? go_on_alone() : exchange());
    }
  }
  if (link_ && link_->send(encode(ClientMessage(CloseMessage()))).ok()) link_->close(kCloseMs);
  for (const bool is_offline : is_offline_) {
    std::vector<TokenRun>& runs = decoder_.runs_;
    if (runs.empty() || runs.back().is_offline != is_offline) runs.push_back({.is_offline = is_offline});
    ++runs.back().tokens;
  }
  return *std::move(completion_);
}

// Ends the output with what was shown, even if it was written offline.
void RemoteDecoder::Run::stop() {
  if (!sequence_) {
    completion_.emplace().finish_reason = FinishReason::kCancelled;
    return;
  }
  if (lone_) commit_lone(sequence_->tokens().size());
  sequence_->finish(FinishReason::kCancelled);
  sequence_->publish();
}

double RemoteDecoder::Run::lone_in_ms() const {
  const bool is_waiting = decoder_.offline_.choice == OfflineRules::Choice::kNever || sequence_ == nullptr ||
                          session_.is_open() || is_mute_;
  return is_waiting ? decoder_.times_.silence_ms : heard_ms_ + decoder_.offline_.after_ms - now_ms();
}

// The error after the last attempt.
Error RemoteDecoder::Run::loss(const std::string& reason) const {
  const std::string& refusal = session_.refusal();
  return io_error(decoder_.server_.url() + " was lost: " + (refusal.empty() ? reason : refusal));
}

// Sends a tree if the server has nothing to do, another one if there is time, and takes one message.
Status RemoteDecoder::Run::exchange() {
  if (!link_) OUTRIDER_RETURN_IF_ERROR(connect());
  if (!link_) return {};
  if (session_.is_open() && !session_.finish()) {
    if (session_.awaited() == 0) draft();
    if (session_.awaited() == 1) draft_ahead();
  }
  auto message = receive(std::min(decoder_.times_.silence_ms, lone_in_ms()));
  if (message.ok() && *message) return take(**message);
  if (message.ok() && (is_cut_off() || decoder_.is_stopped())) return {};
  drop_link();
  if (has_given_up()) return loss(message.ok() ? "no message came" : message.error().message);
  pause(kFirstPauseMs);
  return {};
}

// The next message; nullopt: none came in this time, or the request is stopped.
Result<std::optional<std::string>> RemoteDecoder::Run::receive(double timeout_ms) {
  const double end_ms = now_ms() + timeout_ms;
  for (;;) {
    const double left_ms = end_ms - now_ms();
    auto message = link_->receive(std::min(left_ms, kStopMs));
    if (!message.ok() || *message || left_ms <= kStopMs || decoder_.is_stopped()) return message;
  }
}

void RemoteDecoder::Run::drop_link() {
  link_ = nullptr;
  session_.on_disconnect();
}

// Without an error there is a link, or the client is cut off, or the request is stopped.
Status RemoteDecoder::Run::connect() {
  for (double pause_ms = kFirstPauseMs; !is_cut_off() && !decoder_.is_stopped();
       pause_ms = std::min(2 * pause_ms, kLastPauseMs)) {
    const double connect_ms = std::min(decoder_.times_.connect_ms, std::max(lone_in_ms(), kFirstPauseMs));
    auto link = ServerLink::connect(decoder_.server_, connect_ms, idle_ms());
    if (link.ok()) return greet(std::move(link).value()), Status();
    if (link.error().kind != ErrorKind::kIo || has_given_up()) return link.error();
    pause(std::min(pause_ms, std::max(lone_in_ms(), 0.0)));
  }
  return {};
}

// A connection that is dead without a sign is noticed before the client goes on offline.
double RemoteDecoder::Run::idle_ms() const {
  const OfflineRules& offline = decoder_.offline_;
  return offline.choice == OfflineRules::Choice::kNever ? 0 : offline.after_ms;
}

void RemoteDecoder::Run::greet(std::unique_ptr<ServerLink> link) {
  link_ = std::move(link);
  counts_.reconnects += sequence_ ? 1 : 0;
  const std::string greeting = encode(session_.greeting());
  counts_.bytes_sent += std::ssize(greeting);
  (void)link_->send(greeting);  // receive() tells whether the connection broke
}

Status RemoteDecoder::Run::take(const std::string& bytes) {
  counts_.bytes_received += std::ssize(bytes);
  OUTRIDER_TRY(const ServerMessage message, decode_server_message(bytes));
  OUTRIDER_TRY(const std::optional<DraftingSession::Answer> answer, session_.on_message(message));
  if (!session_.is_open()) return {};
  heard_ms_ = now_ms();
  is_mute_ = false;
  if (!sequence_) {
    start({});
    drafter_.begin(sequence_->tokens());
  }
  if (answer) commit(*answer);
  commit_missed();
  if (lone_) compare();
  drafter_.absorb(sequence_->tokens(), session_);
  if (session_.finish()) sequence_->finish(*session_.finish());
  sequence_->publish();
  return {};
}

Sequence::Limits RemoteDecoder::Run::limits() const {
  const OpenedMessage& server = session_.limits();
  return {.context = server.context,
          .max_nodes = decoder_.parts_->limits.max_nodes,
          .vocab_size = decoder_.parts_->info.vocab_size,
          .model_stop_tokens = server.stop_tokens};
}

// The sequence with this output, which the sink has seen.
void RemoteDecoder::Run::start(std::vector<TokenId> output) {
  const auto sink = [this](RequestId id, const Progress& progress) {
    published_ += std::ssize(progress.tokens);
    if (sink_) sink_(id, progress);
    if (progress.completion != nullptr) completion_ = *progress.completion;
  };
  Request request = request_;
  request.output = std::move(output);
  const SpeculationStats stats = sequence_ ? sequence_->completion().speculation : SpeculationStats();
  sequence_ =
      std::make_unique<Sequence>(kRequest, std::move(request), sink, decoder_.parts_->tokenizer, limits());
  sequence_->completion().speculation = stats;
  sequence_->completion().speculation.method = decoder_.parts_->drafter->traits().name;
}

// A tree after these tokens, which are the sequence's and perhaps more.
TokenTree RemoteDecoder::Run::propose(std::span<const TokenId> tokens) {
  const int64_t ahead = std::ssize(tokens) - std::ssize(sequence_->tokens());
  const bool is_auto = decoder_.parts_->is_auto;
  const auto limit = static_cast<int64_t>(session_.limits().tree_nodes);
  TokenTree tree =
      drafter_.propose({.tokens = tokens,
                        .max_draft_len = sequence_->remaining() - 1 - ahead,
                        .max_nodes = is_auto ? std::min<int64_t>(limit, pacing_.max_nodes()) : limit,
                        .rate = is_auto ? pacing_.rate() : 0.0,
                        .row_ms = is_auto ? pacing_.row_ms() : 0.0,
                        .estimates = is_auto ? &pacing_.estimates() : nullptr},
                       sequence_->completion().speculation);
  pacing_.on_draft(drafter_.last_ms());
  if (is_auto) pacing_.prune(tree);
  return tree;
}

// Sends the next tree. Without one the server decodes plainly.
void RemoteDecoder::Run::draft() {
  send(lone_ ? lone_tree() : propose(sequence_->tokens()));
  is_ahead_ = lone_.has_value();
  sent_ms_ = now_ms();
}

// While the verdict about a tree travels: drafts after the path in it that is most likely, and sends both,
// so that the server goes on at once if this path is accepted. If not, the server drops them.
void RemoteDecoder::Run::draft_ahead() {
  if (!drafter_.drafts_ahead() || !pacing_.has_time_ahead() || std::exchange(is_ahead_, true)) return;
  const std::vector<TokenId> believed = likeliest_path(session_.first_awaited());
  std::vector<TokenId> tokens(sequence_->tokens().begin(), sequence_->tokens().end());
  tokens.insert(tokens.end(), believed.begin(), believed.end());
  const TokenTree next = propose(tokens);
  if (next.drafted() == 0) return;
  ++counts_.ahead;
  send(tree_after(sequence_->tokens().back(), believed, next));
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
  pacing_.on_verdict(
      answer.tree, answer.verdict.tokens,
      {.server_ms = answer.server_ms, .waited_ms = waited_ms, .round_ms = now_ms() - verdict_ms_});
  verdict_ms_ = sent_ms_ = now_ms();
  if (session_.awaited() > 0) {
    ++counts_.ahead_used;
    is_ahead_ = false;
  }
  note(sequence_->commit(answer.verdict.tokens, answer.verdict.origins), false);
  drafter_.observe(answer.tree, answer.verdict);
}

// Tokens that the server committed before the last connection broke.
void RemoteDecoder::Run::commit_missed() {
  const auto known = static_cast<size_t>(sequence_->output_length());
  if (session_.output().size() <= known) return;
  const auto missed = std::span(session_.output()).subspan(known);
  note(sequence_->commit(missed, std::vector<TokenOrigin>(missed.size(), TokenOrigin::kPlain)), false);
}

void RemoteDecoder::Run::note(int64_t tokens, bool is_offline) {
  is_offline_.resize(is_offline_.size() + static_cast<size_t>(tokens), is_offline);
}

// Writes some tokens offline, and listens for the server.
Status RemoteDecoder::Run::go_on_alone() {
  if (!lone_) {
    Request request = request_;
    request.output = session_.output();
    lone_.emplace(std::move(request), *decoder_.parts_, limits(), decoder_.lone_sink_);
    lone_begin_ = lone_->tokens().size();
  }
  if (!link_) connect_beside();
  if (link_) {
    auto message = link_->receive(0);
    if (message.ok() && *message) return take(**message);
    if (!message.ok()) drop_link();
  }
  if (lone_->finished()) {
    commit_lone(sequence_->tokens().size());
    sequence_->publish();
    return {};
  }
  const size_t before = lone_->tokens().size();
  is_mute_ = !lone_->write(drafter_);
  counts_.lone += static_cast<int64_t>(lone_->tokens().size() - before);
  return {};
}

void RemoteDecoder::Run::connect_beside() {
  if (!attempt_.valid()) {
    if (now_ms() < next_attempt_ms_) return;
    attempt_ = std::async(std::launch::async, ServerLink::connect, decoder_.server_,
                          decoder_.times_.connect_ms, idle_ms());
  }
  if (attempt_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  next_attempt_ms_ = now_ms() + kLonePauseMs;
  auto link = attempt_.get();
  if (link.ok()) greet(std::move(link).value());
}

// The text that was written offline, as a chain that the server verifies.
TokenTree RemoteDecoder::Run::lone_tree() const {
  const std::span<const TokenId> known = sequence_->tokens();
  const auto beyond = lone_->tokens().subspan(known.size());
  const auto most = std::min<int64_t>(session_.limits().tree_nodes, sequence_->remaining() - 1);
  TokenTree tree(known.back());
  for (int64_t i = 0; i < std::min(most, std::ssize(beyond)); ++i)
    tree.add(static_cast<int>(i), beyond[static_cast<size_t>(i)]);
  return tree;
}

// Compares what was written offline with what the server makes of it, as far as it is known.
void RemoteDecoder::Run::compare() {
  const std::span<const TokenId> own = sequence_->tokens(), lone = lone_->tokens();
  const auto same = static_cast<size_t>(std::ranges::mismatch(own, lone).in1 - own.begin());
  if (same == own.size() && same < lone.size()) return;
  counts_.lone_confirmed += static_cast<int64_t>(same - std::min(same, lone_begin_));
  const bool is_other = same < lone.size();
  if (is_other && decoder_.offline_.choice == OfflineRules::Choice::kKeep) keep(same);
  lone_.reset();
}

// Goes on after the text that was written offline, with first `same` tokens that are the server's own, in a
// new session.
void RemoteDecoder::Run::keep(size_t same) {
  if (link_) (void)link_->send(encode(ClientMessage(CloseMessage())));
  const auto prompt = static_cast<size_t>(sequence_->prompt_length());
  const auto output = lone_->tokens().subspan(prompt);
  start({output.begin(), output.begin() + published_});
  is_offline_.resize(static_cast<size_t>(published_));
  commit_lone(same);
  session_.restart(random_session(), {output.begin(), output.end()}, same - prompt);
  link_ = nullptr;
}

// Commits what was written offline; its tokens before `same` are the server's own.
void RemoteDecoder::Run::commit_lone(size_t same) {
  const std::span<const TokenId> known = sequence_->tokens();
  const auto own = static_cast<int64_t>(std::max(same, known.size()) - known.size());
  const auto beyond = lone_->tokens().subspan(known.size());
  const int64_t committed =
      sequence_->commit(beyond, std::vector<TokenOrigin>(beyond.size(), TokenOrigin::kPlain));
  note(std::min(own, committed), false);
  note(committed - std::min(own, committed), true);
}

bool RemoteDecoder::reads_states() const { return parts_->drafter->traits().states.size > 0; }

Result<Completion> RemoteDecoder::generate(const Request& request, const ProgressSink& sink) {
  OUTRIDER_RETURN_IF_ERROR(check_remote_request(request));
  counts_ = {};
  runs_.clear();
  RequestDrafter drafter(parts_, &request);
  return Run(this, request, sink, &drafter).finish();
}

// The server decodes one token after the safe text, because the states of that text come with it.
Status RemoteDecoder::fetch_states(std::span<const TokenId> safe, RequestDrafter& drafter) {
  if (safe.empty()) {
    return usage_error(
        "expected safe text before the private text, whose states the drafter reads, found none; use "
        "draft_target, which reads none");
  }
  const Request request{.prompt = {safe.begin(), safe.end()}, .max_tokens = 1, .ignore_eos = true};
  const OfflineRules rules = std::exchange(offline_, OfflineRules());
  const Result<Completion> ignored = Run(this, request, {}, &drafter).finish();
  offline_ = rules;
  return ignored.ok() ? Status() : ignored.error();
}

Result<Completion> RemoteDecoder::generate_privately(const Request& request, size_t safe,
                                                     const LoneSink& sink) {
  OUTRIDER_RETURN_IF_ERROR(check_remote_request(request));
  counts_ = {};
  RequestDrafter drafter(parts_, &request);
  if (reads_states()) {
    // The drafter goes on after the last token, so it reads the states of the tokens before it.
    const auto known = std::span(request.prompt).first(std::min(safe, request.prompt.size() - 1));
    OUTRIDER_RETURN_IF_ERROR(fetch_states(known, drafter));
  } else {
    drafter.begin(request.prompt);
  }
  LoneText text(request, *parts_,
                {.context = parts_->context,
                 .max_nodes = parts_->limits.max_nodes,
                 .vocab_size = parts_->info.vocab_size,
                 .model_stop_tokens = parts_->stop_tokens},
                sink);
  const double start_ms = now_ms();
  while (!text.finished()) {
    if (is_stopped()) {
      text.stop();
      break;
    }
    if (text.write(drafter)) continue;
    return usage_error("expected a drafter that can write alone, found " + parts_->info.drafter +
                       "; use draft_target or moa for private text");
  }
  counts_.lone = std::ssize(text.completion().tokens);
  runs_ = {{.is_offline = true, .tokens = counts_.lone}};
  text.completion().decode_ms = now_ms() - start_ms;
  return text.completion();
}

}  // namespace outrider
