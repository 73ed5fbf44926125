// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/module_chain.h"

#include <utility>

namespace outrider {

void ModuleChain::reserve(int64_t rows, int64_t wanted) {
  for (BackendRows* scratch : {&embedded_, &hidden_, &states_, &inputs_, &normed_})
    scratch->reserve(rows, hidden_size_);
  joined_.reserve(rows, 2 * hidden_size_);
  if (is_chained()) kept_.reserve(wanted, state_size());
  vocabulary_.reserve(wanted);
}

void ModuleChain::join_inputs(const Norm& embedding_norm, const Norm& hidden_norm, FloatAddress inputs,
                              int64_t rows) {
  backend_.normalize(embedded_.data(), embedding_norm, normed_.data(), rows);
  backend_.normalize(inputs, hidden_norm, hidden_.data(), rows);
  join(normed_.data(), hidden_.data(), joined_.data(), rows, hidden_size_);
}

FloatAddress ModuleChain::normalise(size_t module, FloatAddress states, int64_t rows) {
  backend_.normalize(states, output_norm(module), normed_.data(), rows);
  return normed_.data();
}

RecurrentHead::Output ModuleChain::forward(const Pass& pass) {
  reserve(pass.batch->rows(), std::ssize(pass.batch->logits_rows));
  vocabulary_.embed(pass.batch->tokens, embedded_.data());
  return is_chained() ? forward_chained(pass) : run_single(pass);
}

// A row of level j takes modules j.. one entry further: module k reads the state of module k - 1 at the entry
// before, whose token came one place earlier.
RecurrentHead::Output ModuleChain::forward_chained(const Pass& pass) {
  const ForwardBatch& batch = *pass.batch;
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  const auto level = static_cast<size_t>(pass.level);
  backend_.clear(kept_.data(), wanted * state_size());
  for (size_t k = level; std::cmp_less(k, count_); ++k) {
    const bool reads_features = k == 0;
    const int64_t offset = static_cast<int64_t>(k) * hidden_size_;
    if (!reads_features) gather_inputs(pass, k, states_.data());
    if (pass.recorded) pass.recorded->see_from(static_cast<int>(k));
    run(pass, k, reads_features ? pass.inputs : inputs_.data(), states_.data());
    if (pass.entry_states) {
      backend_.copy_strided({states_.data(), hidden_size_, pass.entry_states + offset, state_size(),
                             batch.rows(), hidden_size_});
    }
    if (pass.recorded && level == 0) pass.recorded->keep(states_.data(), hidden_size_, offset);
    backend_.copy(
        {states_.data(), hidden_size_, batch.logits_rows, kept_.data() + offset, state_size(), hidden_size_});
  }
  if (!pass.wants_logits || wanted == 0) return {.logits = {}, .states = kept_.data()};
  backend_.copy_strided({kept_.data() + static_cast<int64_t>(level) * hidden_size_, state_size(),
                         inputs_.data(), hidden_size_, wanted, hidden_size_});
  const FloatAddress normed = normalise(level, inputs_.data(), wanted);
  return output(normed, kept_.data(), wanted);
}

// inputs_: the states of module k - 1 at the entry before each row; `previous`: at the rows of this pass.
void ModuleChain::gather_inputs(const Pass& pass, size_t module, FloatAddress previous) {
  const ForwardBatch& batch = *pass.batch;
  const int64_t dim = hidden_size_, offset = static_cast<int64_t>(module - 1) * dim;
  if (pass.level > 0)
    return backend_.copy_strided(
        {pass.inputs + offset, state_size(), inputs_.data(), dim, batch.rows(), dim});
  if (pass.recorded) return pass.recorded->bring(inputs_.data(), dim, offset);
  for (int64_t begin = 0, end = 0; begin < batch.rows(); begin = end) {
    const int32_t sequence = batch.sequences[static_cast<size_t>(begin)];
    while (end < batch.rows() && batch.sequences[static_cast<size_t>(end)] == sequence) ++end;
    const FloatAddress inputs = inputs_.data() + begin * dim;
    backend_.copy_strided({pass.carried + sequence * state_size() + offset, 0, inputs, 0, 1, dim});
    backend_.copy_strided({previous + begin * dim, dim, inputs + dim, dim, end - begin - 1, dim});
  }
}

}  // namespace outrider
