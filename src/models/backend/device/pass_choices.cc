// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/pass_choices.h"

#include <algorithm>
#include <bit>
#include <new>

namespace outrider {

PassChoices::PassChoices(DeviceBackend& backend, Model& model, const Shape& shape)
    : backend_(backend),
      model_(model),
      shape_(shape),
      chooser_(
          backend.launcher().device(),
          {.rows = shape.max_rows, .vocab_size = shape.vocab_size, .row_size = model.config().vocab_size},
          shape.unused),
      places_(backend.launcher().device(), shape.max_rows) {}

std::unique_ptr<PassChoices> PassChoices::make(Model& model, const Shape& shape) {
  auto* backend = dynamic_cast<DeviceBackend*>(&model.backend());
  if (backend == nullptr || !backend->has_all()) return nullptr;
  // Lists name rows of logits beyond the rows of a pass.
  if (!model.reserve(shape.max_rows, shape.max_rows).ok()) return nullptr;
  try {
    return std::unique_ptr<PassChoices>(new PassChoices(*backend, model, shape));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool PassChoices::run_list(int64_t rows) {
  Recorded& recorded = lists_[rows];
  const FloatAddress logits = model_.logit_rows();
  if (recorded.list == nullptr || recorded.logits.address() != logits.address()) {
    DeviceList list;
    Launcher recorder(backend_.launcher().device());
    recorder.record_into(&list);
    chooser_.choose(recorder, {.numbers = logits,
                               .places = rows_at<const int>(places_.address(), rows),
                               .rows = rows,
                               .period = rows});
    auto loaded = backend_.launcher().device().load(std::move(list));
    if (!loaded.ok()) return false;
    recorded = {std::move(*loaded), logits};
  }
  recorded.list->run();
  return true;
}

std::span<const TokenId> PassChoices::choose(std::span<const ChoiceRow> rows, std::span<const int> places) {
  OUTRIDER_CHECK(rows.size() == places.size() && std::ssize(rows) <= shape_.max_rows);
  const int64_t bucket = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(rows.size())), shape_.max_rows);
  placed_.assign(places.begin(), places.end());
  placed_.resize(static_cast<size_t>(bucket));
  chooser_.set_rows(rows);
  places_.write(placed_);
  if (!run_list(bucket)) return {};
  chosen_.resize(rows.size());
  backend_.launcher().device().download(chooser_.chosen().address(),
                                        std::as_writable_bytes(std::span(chosen_)));
  return chosen_;
}

}  // namespace outrider
