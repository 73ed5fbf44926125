// SPDX-License-Identifier: Apache-2.0
#include "drafters/device_trees.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

constexpr int kMostGrownNodes = 2048, kMostWidth = 64;

// The table of a tree in which all nodes of a level have so many children.
std::vector<int> table_of_levels(const std::vector<int>& children) {
  std::vector<int> table;
  for (size_t level = 0; level < children.size(); ++level)
    table.insert(table.end(), {children[level], static_cast<int>(level) + 1, 0});
  table.insert(table.end(), {0, 0, 0});
  return table;
}

}  // namespace

DeviceGrowth::DeviceGrowth(const SpeculativeOptions& options)
    : drafts_top_(options.tree.children == ChildrenChoice::kTop),
      temperature_factor_(options.draft_temperature),
      ranking_temperature_(options.ranking_temperature > 0.0 ? options.ranking_temperature : 1.0) {
  take_shape(options);
  is_possible_ = options.stop.assistant_confidence_threshold == 0.0 &&
                 options.stop.entropy_threshold == 0.0 && first_tokens() <= simt::kWarp &&
                 width_ <= (drops_ ? simt::kWarp : kMostWidth) && grown_nodes_ <= kMostGrownNodes;
}

void DeviceGrowth::take_shape(const SpeculativeOptions& options) {
  const TreeOptions& tree = options.tree;
  grown_nodes_ = expanded_nodes_ = max_tree_nodes(options);
  switch (tree.kind) {
    case TreeKind::kChain:
      table_ = {1, 0, 0};  // the depth ends it
      break;
    case TreeKind::kStatic:
      table_ = table_of_levels(tree.expansion);
      children_ = *std::ranges::max_element(tree.expansion);
      width_ = StaticTreePolicy(tree.expansion).usual_width(grown_nodes_);
      break;
    case TreeKind::kDynamic:
      drops_ = true;
      children_ = width_ = tree.dynamic_tree_max_top_k;
      table_ = {children_, 0, 0};
      expanded_nodes_ = (options.max_draft_len - 1) * width_;
      grown_nodes_ = width_ + expanded_nodes_ * children_;
      break;
    case TreeKind::kChoices:
      take_choices(tree.choices);
      break;
  }
}

// The rows of the table are in the order of levels, so that siblings lie together.
void DeviceGrowth::take_choices(const std::vector<std::vector<int>>& choices) {
  std::vector<std::vector<int>> ordered = {{}};
  ordered.insert(ordered.end(), choices.begin(), choices.end());
  std::ranges::sort(ordered, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::map<std::vector<int>, std::vector<int>> children;  // by node: rows of the table
  for (size_t row = 1; row < ordered.size(); ++row)
    children[{ordered[row].begin(), ordered[row].end() - 1}].push_back(static_cast<int>(row));
  std::map<size_t, int> expanded;  // by level
  for (const std::vector<int>& node : ordered) {
    const std::vector<int>& of_node = children[node];
    const auto count = static_cast<int>(of_node.size());
    table_.insert(table_.end(), {count, of_node.empty() ? 0 : of_node.front(), 1});
    children_ = std::max(children_, count);
    if (count > 0) width_ = std::max(width_, ++expanded[node.size()]);
  }
}

bool DeviceGrowth::takes(const DraftRequest& request) const {
  return DeviceChooser::can_choose(*request.sampling) && request.constraint == nullptr &&
         request.acceptance == AcceptanceRule::kCoupled && request.estimates == nullptr;
}

SamplingParams DeviceGrowth::sampling_of(const DraftRequest& request) const {
  SamplingParams sampling = *request.sampling;
  sampling.temperature *= temperature_factor_;
  return sampling;
}

void commit_run(std::optional<KvTransaction>& staged, int64_t first, int64_t end,
                std::span<const TokenId> tokens) {
  if (!staged) return;
  std::vector<int> path(static_cast<size_t>(std::max<int64_t>(0, end - first)));
  std::iota(path.begin(), path.end(), 0);
  staged->commit(path,
                 path.empty() ? tokens.first(0) : tokens.subspan(static_cast<size_t>(first), path.size()));
  staged.reset();
}

DeviceTrees::Nodes::Nodes(Device& device, const DeviceGrowth& growth, const DeviceDraft::Shape& shape)
    : tokens(device, (growth.grown_nodes() + 1) * shape.max_sequences),
      parents(device, tokens.count()),
      shapes(device, tokens.count()),
      entries(device, tokens.count()),
      sources(device, tokens.count()),
      words(device, simt::kGrowthWords * shape.max_sequences),
      frontier(device, growth.width() * shape.max_sequences),
      cut_entries(device, (shape.max_nodes + 1) * shape.max_sequences),
      next_sources(device, growth.width() * shape.max_sequences),
      scores(device, tokens.count()) {}

DeviceTrees::Lists::Lists(Device& device, const DeviceGrowth& growth, int64_t rows, int64_t parts)
    : keys(device, rows * parts * simt::kWarp),
      sums(device, growth.drops() || growth.has_branches() ? rows * parts : 0),
      tokens(device, keys.count()) {}

// A row sees at most all entries of its sequence.
DeviceTrees::HiddenEntries::HiddenEntries(Device& device, const DevicePassRows::Shape& rows)
    : most(rows.max_length + rows.tail_size),
      rows(device, rows.rows * simt::RowEntries::kNumbers),
      seen(device, rows.rows * most) {}

DevicePassRows::Shape DeviceTrees::shape_of_rows(const DeviceDraft::Shape& shape, int page_size) const {
  // A run stages entries for nodes, or for the places of a block, also beyond the longest text.
  const int64_t of_block = network_.block ? network_.block->size : 0;
  const int64_t staged = std::max<int64_t>({growth_.expanded_nodes() + 1, blocks_, of_block});
  return {.rows = rows_of(shape.max_sequences),
          .sequences = shape.max_sequences,
          .max_length = shape.max_length + staged,
          .page_size = std::max(1, page_size),
          .tail_size = shape.max_levels,
          .lag = reads_features() ? 1 : 0};
}

namespace {

DevicePassRows::Shape kept_rows(DevicePassRows::Shape rows, const DeviceDraft::Shape& shape) {
  rows.rows = (shape.max_nodes + 1) * shape.max_sequences;
  rows.lag = 0;
  return rows;
}

}  // namespace

DeviceTrees::DeviceTrees(DeviceBackend& backend, const Network& network, const DeviceGrowth& growth,
                         const DeviceDraft::Shape& shape)
    : backend_(backend),
      network_(network),
      growth_(growth),
      blocks_(network.predicts_levels && !network.block ? 1
              : network.feature_page_size != 0          ? shape.max_levels + 1
                                                        : 2),
      rows_(backend.launcher().device(), shape_of_rows(shape, network.page_size)),
      features_(backend.launcher().device(), shape_of_rows(shape, network.feature_page_size)),
      kept_(backend.launcher().device(), kept_rows(shape_of_rows(shape, network.feature_page_size), shape)),
      chooser_(backend.launcher().device(),
               {.rows = rows_of_frontier() * shape.max_sequences,
                .vocab_size = network.vocab_size,
                .row_size = network.row_size},
               {}),
      nodes_(backend.launcher().device(), growth, shape),
      lists_(backend.launcher().device(), growth, rows_of_frontier() * shape.max_sequences,
             (network.vocab_size + simt::kPartTokens - 1) / simt::kPartTokens),
      table_(backend.launcher().device(), std::ssize(growth.table())),
      going_(backend.launcher().device(), 1) {
  table_.write(growth.table());
  if (network.carried > 0) {
    const DevicePassRows::Shape rows = shape_of_rows(shape, network.page_size);
    carried_.emplace(backend.launcher(), network.carried, int64_t{blocks_} * shape.max_sequences, shape);
    hidden_.emplace(backend.launcher().device(), rows);
  }
  if (!network.block) return;
  DevicePassRows::Shape of_block = shape_of_rows(shape, network.page_size);
  of_block.rows = int64_t{network.block->size} * shape.max_sequences;
  of_block.lag = 0;
  block_.emplace(backend.launcher().device(), of_block);
  causal_block_.emplace(backend.launcher().device(), of_block);
}

void DeviceTrees::start(std::span<const Row> rows) {
  std::vector<DevicePassRows::Pages> pages, features;
  std::vector<ChoiceRow> choices;
  std::vector<int> pending;
  for (const Row& row : rows) {
    pages.push_back(row.pages);
    features.push_back(row.features);
    choices.push_back(row.choice);
    choices.back().lists_likeliest = growth_.drafts_top();
    pending.push_back(row.pending);
  }
  rows_.set_pages(pages);
  for (std::optional<DevicePassRows>* block : {&block_, &causal_block_})
    if (*block) (*block)->set_pages(pages);
  features_.set_pages(features);
  kept_.set_pages(features);
  chooser_.set_rows(choices);
  if (carried_) carried_->start(pending);
}

simt::ListFirstArgs DeviceTrees::first_args(const simt::ChoiceArgs& choice) {
  return {.choice = choice,
          .slots = network_.predicts_levels
                       ? simt::Rows<const int>{nullptr, 0}
                       : simt::Rows<const int>{rows_.view().slots.data, rows_.view().slots.count},
          .keys = lists_.keys.rows(),
          .tokens = lists_.tokens.rows(),
          .sums = lists_.sums.count() > 0 ? lists_.sums.rows() : simt::Rows<double>{nullptr, 0},
          .ranking = growth_.ranking_temperature(),
          .count = growth_.first_tokens()};
}

// Trees that are not cut grow where the target reads them.
simt::DraftTreesArgs DeviceTrees::args(const simt::Trees& trees) {
  const bool drops = growth_.drops();
  const simt::Rows<int> cut_entries = nodes_.cut_entries.rows();
  const Network::Block block = network_.block.value_or(Network::Block());
  return {.of = trees,
          .grown = {.tokens = drops ? nodes_.tokens.rows() : trees.tokens,
                    .parents = drops ? nodes_.parents.rows() : trees.parents,
                    .shapes = nodes_.shapes.rows(),
                    .entries = drops ? nodes_.entries.rows() : cut_entries,
                    .sources = nodes_.sources.rows(),
                    .scores = nodes_.scores.rows(),
                    .words = nodes_.words.rows(),
                    .frontier = nodes_.frontier.rows()},
          .entries = cut_entries,
          .rows = rows_.view(),
          .features = features_.view(),
          .sources = nodes_.next_sources.rows(),
          .first = {},
          .shapes = table_.list(),
          .going = going_.rows(),
          .blocks = blocks_,
          .width = growth_.width(),
          .reads_features = reads_features() ? 1 : 0,
          .drops = drops ? 1 : 0,
          .rivals = growth_.rivals(),
          .is_shared = is_shared() ? 1 : 0,
          .block = block_ ? block_->view() : simt::PassRows(),
          .causal_block = causal_block_ ? causal_block_->view() : simt::PassRows(),
          .block_size = block.size,
          .mask = block.mask,
          .carried = carried_ ? carried_->view() : simt::CarriedRows()};
}

// A pass over the first rows, the first tokens after each row with logits, and the next level with the rows
// of the next pass.
void DeviceTrees::record_pass(const simt::Trees& trees, int64_t rows, const Passes& passes, int level) {
  const int64_t wanted = level == 0 ? trees.sequences : rows;
  Launcher& launcher = backend_.launcher();
  const Output output = passes.forward(batch_of_rows(rows, wanted), level);
  record_for(rows_, *list_);
  simt::DraftTreesArgs args = this->args(trees);
  args.first = first_args(chooser_.prepare(
      launcher,
      {.numbers = output.logits, .places = rows_.places(), .rows = wanted, .period = trees.sequences}));
  launcher.launch_items(KernelName::kListFirst, args.first, wanted * args.first.choice.parts);
  constexpr int64_t kMostWarps = 8;
  launcher.launch(KernelName::kGrowTrees, args, {.warps = static_cast<int>(std::min(wanted, kMostWarps))});
  if (passes.state_size > 0 && trees.levels > 1) record_inputs(trees, passes, output.states, wanted);
}

// The states of a pass's rows become inputs of the rows that continue them.
void DeviceTrees::record_inputs(const simt::Trees& trees, const Passes& passes, FloatAddress states,
                                int64_t rows) {
  const int64_t next = int64_t{growth_.width()} * trees.sequences, dim = passes.state_size;
  backend_.launcher().launch_items(
      KernelName::kCopyListedRows,
      simt::ListedCopyArgs{.x = rows_at<const float>(states.address(), rows * dim),
                           .y = rows_at<float>(passes.inputs.address(), next * dim),
                           .from = rows_at<const int>(nodes_.next_sources.address(), next),
                           .to = {},
                           .factors = {},
                           .rows = static_cast<int>(next),
                           .dim = static_cast<int>(dim),
                           .x_stride = static_cast<int>(dim),
                           .y_stride = static_cast<int>(dim)},
      next * ((dim + simt::kWarp - 1) / simt::kWarp));
}

void DeviceTrees::record(const simt::Trees& trees, DeviceList& list, const Passes& passes) {
  const int64_t rows = int64_t{blocks_} * trees.sequences;
  record_for(features_, list);
  backend_.launcher().launch(KernelName::kStartTrees, args(trees), {});
  if (reads_features()) passes.gather(rows);
  record_for(rows_, list);
  record_pass(trees, rows, passes, /*level=*/0);
  if (trees.levels > 1) record_later_levels(trees, list, passes);
  record_for(rows_, list);
  constexpr int kWarps = 4;
  if (growth_.drops())
    backend_.launcher().launch(KernelName::kCutTrees, args(trees),
                               {.blocks = trees.sequences, .warps = kWarps});
  record_network(nullptr, nullptr);
}

void DeviceTrees::record_network(const RecordedRows* rows, DeviceList* list) {
  backend_.record(rows, list);
  if (network_.second != nullptr) network_.second->record(rows, list);
}

void DeviceTrees::record_for(const DevicePassRows& rows, DeviceList& list) {
  list_ = &list;
  record_network(&rows.recorded(), &list);
}

void DeviceTrees::record_block(const simt::Trees& trees,
                               const std::function<void(const ForwardBatch&)>& run) {
  see_block(/*is_causal=*/false);
  run(batch_of_rows(int64_t{network_.block->size} * trees.sequences, 0));
  record_for(rows_, *list_);
}

void DeviceTrees::see_block(bool is_causal) { record_for(is_causal ? *causal_block_ : *block_, *list_); }

void DeviceTrees::see_from(int first, int64_t rows) {
  if (first == 0) return record_for(rows_, *list_);
  const RecordedRows& all = rows_.recorded();
  backend_.launcher().launch_items(KernelName::kHideEntries,
                                   simt::HideEntriesArgs{.entries = all.entries,
                                                         .tails = all.tails,
                                                         .seen_entries = hidden_->rows.rows(),
                                                         .seen = hidden_->seen.rows(),
                                                         .rows = static_cast<int>(rows),
                                                         .most = static_cast<int>(hidden_->most),
                                                         .first = first},
                                   rows);
  hidden_->recorded = all;
  hidden_->recorded.entries = hidden_->rows.list();
  hidden_->recorded.tails = hidden_->seen.list();
  record_network(&hidden_->recorded, list_);
}

// One loop has all levels of a network that repeats its pass. Where the passes of levels differ, each is a
// loop of one round.
void DeviceTrees::record_later_levels(const simt::Trees& trees, DeviceList& list, const Passes& passes) {
  const int lists = has_many_passes() ? trees.levels - 1 : 1;
  for (int level = 1; level <= lists; ++level) {
    DeviceList pass;
    record_for(rows_, pass);
    record_pass(trees, int64_t{rows_of_frontier()} * trees.sequences, passes, level);
    list.repeat(going_.address(), (trees.levels - 1) / lists, std::move(pass));
  }
}

void DeviceTrees::record_moves(const simt::Trees& trees, DeviceList& list, const EntryMoves& moves) {
  backend_.record(&rows_.recorded(), &list);
  const simt::TreeNodes nodes{{nullptr, 0},
                              rows_at<const int>(nodes_.cut_entries.address(), nodes_.cut_entries.count()),
                              trees.sequences,
                              trees.levels};
  moves.record(backend_.launcher(), trees, nodes, rows_.view());
  backend_.record(nullptr, nullptr);
}

void DeviceTrees::record_features(const simt::Trees& trees, DeviceList& list,
                                  const std::function<void(int64_t)>& keep) {
  const int64_t rows = int64_t{trees.nodes + 1} * trees.sequences;
  backend_.record(&kept_.recorded(), &list);
  backend_.launcher().launch_items(KernelName::kPlaceAccepted, simt::PlaceTreesArgs{trees, kept_.view()},
                                   (rows + simt::kWarp - 1) / simt::kWarp);
  keep(rows);
  backend_.record(nullptr, nullptr);
}

}  // namespace outrider
