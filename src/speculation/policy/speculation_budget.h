// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider {

// What pays for drafts, in tokens of plain decoding. A step that drafts pays in what it brought beyond plain
// decoding of the same time, or takes out what it lost. Where drafting does not pay by all that is known,
// plain steps pay a hundredth each into a common account that tries are paid from. Nothing is drafted on
// credit, so that a drafter that never helps costs little more than that hundredth, however long it fails.
// A new sequence begins with what those that ended have left.
class SpeculationBudget {
 public:
  // All that is ever ventured on a drafter of which nothing is known. See docs/policy.md.
  static constexpr double kMaxReserve = 20.0;
  static constexpr double kFirstBalance = 3.5;
  static constexpr double kLargestBalance = 6.0;
  static constexpr double kMaxLost = 2.0;          // by one step beyond what was expected of it
  static constexpr double kIncome = 0.01;          // of the tries, per plain step
  static constexpr double kPromisedIncome = 0.06;  // of a sequence that should draft by all that is known
  static constexpr double kPriceOfTry = 1.0;       // of each sequence that may draft

  // Of one sequence.
  struct Account {
    double balance = 0.0;
    bool is_try = false;  // this step's draft is paid from the common account
  };

  Account open();
  void close(const Account& account);

  // A step begins in which so many sequences may draft; those that should have `pool` together, and stand in
  // for one another.
  void begin(double may_draft, double pool);
  // Whether a draft of this sequence is paid for, as a try or not; if not, it earns something for later.
  bool pays(Account& account, bool is_try);
  // A draft that pays() allowed brought so many tokens more than plain decoding, or less. drafting: sequences
  // that drafted in this step; expected_loss: what it had to cost at first, to catch up after a pause.
  void settle(Account& account, double won, double drafting, double expected_loss = 0.0);

  double reserve() const { return reserve_; }

 private:
  double reserve_ = kMaxReserve;  // left by sequences that ended, for those that begin
  double try_balance_ = 0.0;      // the common account
  bool may_try_ = false;          // in this step
  double pool_ = 0.0;
};

}  // namespace outrider
