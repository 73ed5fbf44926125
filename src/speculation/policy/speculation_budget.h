// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider {

// Limits what drafting may lose, in tokens of plain decoding. A step that drafts adds to its sequence's
// account the tokens gained over plain decoding of the same time, or subtracts the loss. The sequences of a
// batch draft only while their balances are together not negative. Where the estimates say that drafting does
// not pay, it may still be explored at the cost of a common account, to which every such plain step adds
// kExplorationIncome. A drafter that never helps therefore costs kMaxReserve once and 0.25 % of the tokens in
// the long run.
class SpeculationBudget {
 public:
  // Upper bound of the reserve and its first value: all that a drafter of unknown quality may lose. See
  // docs/explanation/policy.md.
  static constexpr double kMaxReserve = 20.0;
  static constexpr double kInitialBalance = 3.5;        // what a new sequence takes from the reserve
  static constexpr double kMaxBalance = 6.0;            // what exceeds it goes to the reserve
  static constexpr double kMaxLoss = 2.0;               // of one step, beyond the time of reading
  static constexpr double kExplorationIncome = 0.0025;  // per plain step, where drafting should not pay
  static constexpr double kRecoveryIncome = 0.06;   // per plain step of a sequence in debt that should draft
  static constexpr double kExplorationPrice = 1.0;  // per sequence that may draft in the step

  // The account of one sequence.
  struct Account {
    double balance = 0.0;
    double trial = 0.0;           // tokens of it that may be lost where drafting should not pay
    bool is_exploration = false;  // the draft of this step is paid from the common account
  };

  // Opens the account of a new sequence with what the reserve gives; close() returns the balance to the
  // reserve. `trial`: tokens of it that the sequence may lose where drafting did not pay in others.
  Account open(double trial = 0.0);
  void close(const Account& account);

  // Starts a step. `candidates`: sequences that may draft; `batch_balance`: sum of the balances of sequences
  // that should draft.
  void begin(double candidates, double batch_balance);
  // Whether this sequence may draft in this step, either for exploration or because drafting should pay. If
  // not, its plain step adds to the account that did not suffice. Exploration begins with the trial.
  bool allows(Account& account, bool is_exploration);
  // Books a draft that allows() permitted: `gain` is its tokens minus the tokens of plain decoding in the
  // same time. `drafting`: sequences that drafted in this step; `reading`: the part of the loss that reading
  // the tokens missed in a pause caused. It is lost in any case, so the reserve pays it.
  void record(Account& account, double gain, double drafting, double reading = 0.0);

  // Tokens left by sequences that ended, for new sequences and for batches in debt.
  double reserve() const { return reserve_; }

 private:
  double reserve_ = kMaxReserve;
  double exploration_balance_ = 0.0;  // the common account
  bool may_explore_ = false;          // in this step
  double batch_balance_ = 0.0;        // in this step
};

}  // namespace outrider
