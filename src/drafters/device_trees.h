// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "drafters/carried_states.h"
#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/backend/device/device_draft.h"
#include "models/backend/device/entry_moves.h"
#include "models/backend/device/pass_rows.h"
#include "outrider/speculative_options.h"

namespace outrider {

// The rules of TreeGrowth and TreePolicy, as far as a device has the same.
class DeviceGrowth {
 public:
  explicit DeviceGrowth(const SpeculativeOptions& options);
  // Whether the options ask for nothing else.
  bool is_possible() const { return is_possible_; }
  bool takes(const DraftRequest& request) const;
  SamplingParams sampling_of(const DraftRequest& request) const;

  bool drafts_top() const { return drafts_top_; }  // children are the likeliest tokens
  // The shape of the trees:
  const std::vector<int>& table() const { return table_; }  // [any, simt::kShapeWords]
  int width() const { return width_; }                      // nodes of the largest frontier
  int children() const { return children_; }                // of a node, at most
  bool drops() const { return drops_; }                     // see DynamicTreePolicy
  // Tokens of a row of logits that are looked at.
  int first_tokens() const { return children_ + rivals(); }
  int rivals() const { return drops_ ? kRivals : 0; }
  int grown_nodes() const { return grown_nodes_; }        // below the root, before the tree is cut
  int expanded_nodes() const { return expanded_nodes_; }  // below the root
  bool has_branches() const { return children_ > 1; }
  double ranking_temperature() const { return ranking_temperature_; }

 private:
  static constexpr int kRivals = 8;  // as TreeGrowth has it
  void take_shape(const SpeculativeOptions& options);
  void take_choices(const std::vector<std::vector<int>>& choices);

  bool drafts_top_;
  double temperature_factor_;  // of drafts
  double ranking_temperature_;
  std::vector<int> table_;
  int width_ = 1, children_ = 1;
  bool drops_ = false;
  int grown_nodes_ = 0, expanded_nodes_ = 0;
  bool is_possible_;
};

// After a run: commits what was staged for the tokens [first, end) of a text, and gives the rest back.
void commit_run(std::optional<KvTransaction>& staged, int64_t first, int64_t end,
                std::span<const TokenId> tokens);

// Trees that a network on a device drafts for a DeviceLoop: the rows of its passes, and the growth after
// them, for the lists that a DeviceDraft records.
class DeviceTrees {
 public:
  struct Network {
    int64_t vocab_size = 0;  // ids that may be drafted
    int64_t row_size = 0;    // logits from row to row
    int page_size = 1;       // of its cache
    // The page size of the cache with the target's features; 0: it reads none. A network that reads them has
    // the entry of a token one place before the token, and computes the entries of accepted drafts anew.
    int feature_page_size = 0;
    // It drafts all levels after the state of one token, and no node has an entry. A level has the same
    // logits whatever the path, or the token before changes them.
    bool predicts_levels = false;
    bool follows_tokens = false;
    // A pass over a block drafts all levels: the pending token and masks after it.
    struct Block {
      int size = 0;
      TokenId mask = 0;
    };
    std::optional<Block> block = std::nullopt;
    // Where each level has a module, whose rows go on from the states of the entries before: numbers of such
    // a state. 0: one network drafts all levels.
    int64_t carried = 0;
    DeviceBackend* second = nullptr;  // of the same device, which also computes its passes
  };
  // Throws std::bad_alloc.
  DeviceTrees(DeviceBackend& backend, const Network& network, const DeviceGrowth& growth,
              const DeviceDraft::Shape& shape);

  // A sequence of a run, with its pages and with the pages of its features; without pages it drafts nothing.
  struct Row {
    DevicePassRows::Pages pages = {};
    DevicePassRows::Pages features = {};
    ChoiceRow choice = {};
    int pending = 0;  // the position of the pending token
  };
  void start(std::span<const Row> rows);

  // Results of a pass for its rows with logits.
  struct Output {
    FloatAddress logits;
    FloatAddress states = {};  // [rows, state_size]
  };
  struct Passes {
    // forward(batch, level): a pass over a batch, of which the first rows have logits. Level 1 stands for all
    // later ones where one network drafts them by passes.
    std::function<Output(const ForwardBatch&, int)> forward;
    // gather(rows): brings the features for the first pass; the recorded rows have their slots.
    std::function<void(int64_t)> gather = {};
    FloatAddress inputs = {};  // of a later pass: [rows, state_size], the states of the rows' parents
    int64_t state_size = 0;    // 0: it has no inputs
  };
  void record(const simt::Trees& trees, DeviceList& list, const Passes& passes);
  // Within the first pass of record(): run(batch) is a pass over the blocks of all sequences, of which all
  // pending tokens are the first rows, the first masks the next ones, and so on. Places see all of their
  // block.
  void record_block(const simt::Trees& trees, const std::function<void(const ForwardBatch&)>& run);
  // Within run(): from here on places see none after them, or all again.
  void see_block(bool is_causal);
  // Within forward(): from here on the first rows see no entry before `first`, but always their own.
  void see_from(int first, int64_t rows);
  // The states that are carried; null: there are none.
  CarriedStates* carried() { return carried_ ? &*carried_ : nullptr; }
  // Rows of the largest pass over so many sequences.
  int64_t rows_of(int64_t sequences) const { return std::max(blocks_, growth_.width()) * sequences; }
  // The slots of recorded rows: where features are read, and where they are kept.
  simt::List<int> feature_slots() const { return features_.recorded().slots; }
  simt::List<int> kept_slots() const { return kept_.recorded().slots; }
  // After the walk: moves the entries of expanded nodes that were accepted.
  void record_moves(const simt::Trees& trees, DeviceList& list, const EntryMoves& moves);
  // After the walk: keep(rows) stores the features of the target's pass in the slots of the recorded rows.
  void record_features(const simt::Trees& trees, DeviceList& list, const std::function<void(int64_t)>& keep);

 private:
  // The nodes of trees that grow, and of the trees that the target gets where these are cut.
  struct Nodes {
    Nodes(Device& device, const DeviceGrowth& growth, const DeviceDraft::Shape& shape);
    DeviceNumbers<int> tokens, parents, shapes, entries, sources, words, frontier, cut_entries, next_sources;
    DeviceNumbers<double> scores;
  };
  // The first tokens of rows of logits.
  struct Lists {
    Lists(Device& device, const DeviceGrowth& growth, int64_t rows, int64_t parts);
    DeviceNumbers<double> keys, sums;
    DeviceNumbers<int> tokens;
  };

  // Lists of rows that do not see the first entries of their sequences.
  struct HiddenEntries {
    HiddenEntries(Device& device, const DevicePassRows::Shape& rows);
    int64_t most;  // entries of a row
    DeviceNumbers<int> rows, seen;
    RecordedRows recorded = {};
  };

  bool reads_features() const { return network_.feature_page_size != 0; }
  DevicePassRows::Shape shape_of_rows(const DeviceDraft::Shape& shape, int page_size) const;
  simt::DraftTreesArgs args(const simt::Trees& trees);
  simt::ListFirstArgs first_args(const simt::ChoiceArgs& choice);
  // Nodes of a frontier that have rows of logits.
  int rows_of_frontier() const { return is_shared() ? 1 : growth_.width(); }
  // Whether the passes of levels differ.
  bool has_many_passes() const { return network_.predicts_levels || network_.carried > 0; }
  bool is_shared() const { return network_.predicts_levels && !network_.follows_tokens; }
  // From here on operations of the network go to the list, for these rows; null: they run at once.
  void record_network(const RecordedRows* rows, DeviceList* list);
  void record_for(const DevicePassRows& rows, DeviceList& list);
  void record_later_levels(const simt::Trees& trees, DeviceList& list, const Passes& passes);
  void record_pass(const simt::Trees& trees, int64_t rows, const Passes& passes, int level);
  void record_inputs(const simt::Trees& trees, const Passes& passes, FloatAddress states, int64_t rows);

  DeviceBackend& backend_;
  Network network_;
  const DeviceGrowth& growth_;
  int blocks_;  // rows of a sequence in the first pass
  DevicePassRows rows_;
  DevicePassRows features_, kept_;  // read for the first pass, and written after the target's
  std::optional<DevicePassRows> block_, causal_block_;
  std::optional<CarriedStates> carried_;
  std::optional<HiddenEntries> hidden_;  // as carried_
  DeviceChooser chooser_;
  Nodes nodes_;
  Lists lists_;
  DeviceNumbers<int> table_;    // of shapes
  DeviceNumbers<int> going_;    // whether another level is drafted
  DeviceList* list_ = nullptr;  // that is recorded
};

}  // namespace outrider
