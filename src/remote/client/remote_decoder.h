// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "outrider/engine.h"
#include "remote/client/drafting_parts.h"
#include "remote/client/lone_text.h"
#include "remote/client/server_link.h"

namespace outrider {

// Counts of one request that was decoded by a server.
struct RemoteCounts {
  int64_t verdicts = 0;        // of trees
  int64_t reconnects = 0;      // connections beyond the first
  int64_t ahead = 0;           // trees drafted before the verdict about the one before came
  int64_t ahead_used = 0;      // trees among them that the server went on with at once
  int64_t bytes_sent = 0;      // payloads
  int64_t bytes_received = 0;  // payloads
  double network_ms = 0;       // from trees to verdicts, without the server's own time
  double server_ms = 0;        // from the arrival of trees to verdicts, on the server
  int64_t lone = 0;            // tokens that were written while the server was out of reach
  int64_t lone_confirmed = 0;  // tokens among them that the server found to be its own
};

// Rules for the time in which the server is out of reach.
struct OfflineRules {
  enum class Choice : uint8_t {
    kNever,    // it waits for the server
    kCorrect,  // it goes on; when the server is back, its own text takes the place of other text
    kKeep,     // it goes on, and the server goes on after that text
  };
  Choice choice = Choice::kNever;
  double after_ms = 10'000;  // since the last message
};

// Consecutive tokens of an output.
struct TokenRun {
  bool is_offline = false;  // written offline, and not found to be the server's own
  int64_t tokens = 0;
};

// Drafts here and has a server verify the trees. The output equals the server's own plain decoding, but for
// tokens that were written offline and kept.
class RemoteDecoder {
 public:
  struct Times {
    double connect_ms = 5000;  // for one attempt to connect
    double silence_ms =
        30'000;  // without any message while one is expected; then the connection counts as broken
    double give_up_ms = 60'000;  // without a connection
  };
  // `parts` must outlive the decoder.
  RemoteDecoder(DraftingParts* parts, DraftingServer server)
      : RemoteDecoder(parts, std::move(server), Times()) {}
  RemoteDecoder(DraftingParts* parts, DraftingServer server, const Times& times)
      : parts_(parts), server_(std::move(server)), times_(times) {}

  // The type in which the server sends states, if the drafter reads any.
  void set_state_type(StateType type) { state_type_ = type; }
  // `sink` sees the text that is written offline, at once; the sink of generate() sees tokens of it that
  // stay, when the server has said so, or at the end.
  void set_offline(const OfflineRules& rules, LoneSink sink) {
    offline_ = rules;
    lone_sink_ = std::move(sink);
  }

  // `is_stopped` is asked again and again while a request is decoded. Once it says yes, the request ends with
  // what has been written: FinishReason::kCancelled.
  void stop_when(std::function<bool()> is_stopped) { is_stopped_ = std::move(is_stopped); }

  // Reconnects where the connection breaks. Errors: the server refuses the request, or cannot be reached for
  // Times::give_up_ms while the client does not write offline; a request that has a constraint, token rules
  // or log-probabilities, which the protocol does not carry.
  Result<Completion> generate(const Request& request, const ProgressSink& sink);

  // The server computes the first `safe` tokens of the prompt and hands over their states, if the drafter
  // reads any. Everything else stays here: the drafter writes the output. Errors: errors of generate(); a
  // drafter that cannot write.
  Result<Completion> generate_privately(const Request& request, size_t safe, const LoneSink& sink);

  // The last request's:
  const RemoteCounts& counts() const { return counts_; }
  const std::vector<TokenRun>& runs() const { return runs_; }

 private:
  class Run;

  bool reads_states() const;
  bool is_stopped() const { return is_stopped_ && is_stopped_(); }
  Status fetch_states(std::span<const TokenId> safe, RequestDrafter& drafter);

  DraftingParts* parts_;
  DraftingServer server_;
  Times times_;
  StateType state_type_ = StateType::kBF16;
  OfflineRules offline_;
  LoneSink lone_sink_;
  std::function<bool()> is_stopped_;
  RemoteCounts counts_;
  std::vector<TokenRun> runs_;
};

}  // namespace outrider
