// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/draft_team.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "drafters/ranked/draft_messages.h"
#include "drafters/ranked/draft_worker.h"
#include "ranks/thread_ranks.h"

namespace outrider {

struct DraftTeam::Threads {
  explicit Threads(int count) : job(1 + count, /*spare=*/count) {
    for (int rank = 1; rank <= count; ++rank) {
      threads.emplace_back([this, rank] {
        try {
          serve_drafts(job.of(rank));
        } catch (const std::exception&) {  // rank 0 gets a RankFailure
          job.of(rank).fail();
        }
      });
    }
  }

  // The others have been told to quit, or have ended.
  ~Threads() {
    for (std::thread& thread : threads) thread.join();
  }

  ThreadRanks job;
  std::vector<std::thread> threads;
};

DraftTeam::DraftTeam(std::shared_ptr<Communicator> ranks, int threads)
    : ranks_(std::move(ranks)),
      threads_(threads),
      works_(static_cast<size_t>(ranks_->size()), true),
      under_way_(static_cast<size_t>(ranks_->size())) {}

std::shared_ptr<DraftTeam> DraftTeam::of_threads(int count, int threads, int target_ranks) {
  auto own = std::make_unique<Threads>(count);
  std::shared_ptr<Communicator> root(&own->job.of(0), [](Communicator*) {});
  auto team = std::make_shared<DraftTeam>(std::move(root), threads);
  team->own_threads_ = std::move(own);
  team->first_device_ = target_ranks - 1;
  return team;
}

DraftTeam::~DraftTeam() {
  const MessageWriter last(own_threads_ ? RankCommand::kQuit : RankCommand::kClose);
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    try {
      send_message(*ranks_, last, rank);
    } catch (const RankFailure&) {  // it has ended
    }
  }
}

Result<DrafterMemory> DraftTeam::open(int rank, const MessageWriter& settings) {
  try {
    send_message(*ranks_, settings, rank);
    const std::vector<std::byte> bytes = receive_message(*ranks_, rank);
    MessageReader message(bytes);
    DrafterAnswer answer;
    each_field(message, answer);
    if (answer.error.empty()) return answer.memory;
    return Error{answer.kind, "draft rank " + std::to_string(rank) + ": " + answer.error};
  } catch (const RankFailure& failure) {
    return io_error(failure.what());
  }
}

void DraftTeam::tell(int rank, const MessageWriter& message) {
  if (!works(rank)) return;
  try {
    send_message(*ranks_, message, rank);
  } catch (const RankFailure& failure) {
    dismiss(rank, failure.what());
  }
}

void DraftTeam::order(int rank, const MessageWriter& message, Orders orders) {
  tell(rank, message);
  if (works(rank)) under_way_[static_cast<size_t>(rank)].push_back(std::move(orders));
}

bool DraftTeam::collect(int rank) {
  std::deque<Orders>& orders = under_way_[static_cast<size_t>(rank)];
  if (orders.empty()) return false;
  try {
    for (;;) {
      const std::vector<std::byte> bytes = receive_message(*ranks_, rank);
      MessageReader message(bytes);
      auto kind = DraftAnswer::kTrees;
      message.field(kind);
      if (kind == DraftAnswer::kQuestion) {
        reply(rank, orders.front(), message);
        continue;
      }
      const Orders answered = std::move(orders.front());
      orders.pop_front();
      std::string error;
      int foreseen = 0;
      message.field(error);
      message.field(foreseen);
      foreseen_ += foreseen;
      error.empty() ? answered.take(message) : dismiss(rank, error);
      return true;
    }
  } catch (const RankFailure& failure) {
    dismiss(rank, failure.what());
    return false;
  }
}

void DraftTeam::dismiss(int rank, const std::string& reason) {
  works_[static_cast<size_t>(rank)] = false;
  under_way_[static_cast<size_t>(rank)].clear();
  log_warning("draft rank " + std::to_string(rank) + " is left out: " + reason);
}

void DraftTeam::reply(int rank, const Orders& orders, MessageReader& message) {
  ConstraintQuestion question;
  message.field(question);
  MessageWriter answer(RankCommand::kReply);
  TokenConstraint* constraint = orders.constraint(question.order);
  using Call = ConstraintQuestion::Call;
  if (question.call == Call::kAllowed) {
    const auto allowed =
        constraint == nullptr ? std::span<const uint64_t>() : constraint->allowed(question.state);
    answer.field(std::vector<uint64_t>(allowed.begin(), allowed.end()));
  } else if (question.call == Call::kIsComplete) {
    answer.field(constraint == nullptr || constraint->is_complete(question.state));
  } else if (constraint == nullptr) {
    answer.field(TokenConstraint::kDead);
  } else {
    answer.field(question.call == Call::kStart ? constraint->start()
                                               : constraint->advance(question.state, question.token));
  }
  send_message(*ranks_, answer, rank);
}

}  // namespace outrider
