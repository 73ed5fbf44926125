// SPDX-License-Identifier: Apache-2.0
#include "training/core/autograd_ops.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "training/core/tensor_ops.h"

namespace outrider::training {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Rows of logits that are in memory at a time.
constexpr int64_t kLogitRows = 2048;

struct ResidualNorm : Function<ResidualNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& delta,
                               const at::Tensor& weight, double eps) {
    const NormResult result = activation_ops(delta).residual_norm(x, delta, weight, eps);
    context->save_for_backward({result.sum, result.scale, weight});
    return {result.sum, result.y};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormGradient result =
        activation_ops(gradients[1])
            .residual_norm_gradient({saved[0], saved[1], {}}, saved[2], gradients[0], gradients[1]);
    return {result.x, result.delta, result.weight, at::Tensor()};
  }
};

struct Rotate : Function<Rotate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return activation_ops(x).rotate(x, cos, sin, /*inverse=*/false);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {activation_ops(gradients[0]).rotate(gradients[0], saved[0], saved[1], /*inverse=*/true),
            at::Tensor(), at::Tensor()};
  }
};

struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    return activation_ops(gate_up).swiglu(gate_up);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    return {activation_ops(gate_up).swiglu_gradient(gate_up, gradients[0])};
  }
};

// Queries handled at a time: a block sees only the keys up to its own end, which saves almost half of the
// scores of long windows.
constexpr int64_t kQueryBlock = 256;

// [batch, n, heads, dim] -> contiguous [batch * kv_heads, heads / kv_heads, n, dim].
at::Tensor grouped(const at::Tensor& x, int64_t kv_heads) {
  const int64_t batch = x.size(0), n = x.size(1), group = x.size(2) / kv_heads, dim = x.size(3);
  return x.reshape({batch, n, kv_heads, group, dim})
      .permute({0, 2, 3, 1, 4})
      .reshape({batch * kv_heads, group, n, dim})
      .contiguous();
}

// The inverse of grouped().
at::Tensor ungrouped(const at::Tensor& x, int64_t batch) {
  const int64_t kv_heads = x.size(0) / batch, group = x.size(1), n = x.size(2), dim = x.size(3);
  return x.view({batch, kv_heads, group, n, dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({batch, n, kv_heads * group, dim})
      .contiguous();
}

CausalShape causal_shape(int64_t first, int64_t rows, int64_t dim) {
  return {first, rows, 1.0 / std::sqrt(static_cast<double>(dim))};
}

struct CausalAttention : Function<CausalAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
    const int64_t batch = q.size(0), n = q.size(1), kv_heads = k.size(2), group = q.size(2) / kv_heads;
    const int64_t dim = q.size(3);
    const at::Tensor queries = grouped(q, kv_heads);
    const at::Tensor keys = grouped(k, kv_heads).squeeze(1), values = grouped(v, kv_heads).squeeze(1);
    at::Tensor mixed = at::empty_like(queries);
    variable_list saved = {queries, keys, values};
    for (int64_t first = 0; first < n; first += kQueryBlock) {
      const int64_t rows = std::min(kQueryBlock, n - first), seen = first + rows;
      const at::Tensor block = queries.narrow(2, first, rows).reshape({-1, group * rows, dim});
      const at::Tensor scores = at::bmm(block, keys.narrow(1, 0, seen).transpose(1, 2));
      const at::Tensor distribution =
          activation_ops(q).causal_softmax(scores, causal_shape(first, rows, dim));
      mixed.narrow(2, first, rows)
          .copy_(at::bmm(distribution, values.narrow(1, 0, seen)).reshape({-1, group, rows, dim}));
      saved.push_back(distribution);
    }
    context->save_for_backward(saved);
    return ungrouped(mixed, batch);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &queries = saved[0], &keys = saved[1], &values = saved[2];
    const int64_t batch = gradients[0].size(0), n = queries.size(2), group = queries.size(1),
                  dim = queries.size(3);
    const at::Tensor upstream = grouped(gradients[0], keys.size(0) / batch);
    at::Tensor for_queries = at::empty_like(queries);
    at::Tensor for_keys = at::zeros_like(keys), for_values = at::zeros_like(values);
    for (int64_t first = 0, index = 3; first < n; first += kQueryBlock, ++index) {
      const int64_t rows = std::min(kQueryBlock, n - first), seen = first + rows;
      const at::Tensor& distribution = saved[static_cast<size_t>(index)];
      const at::Tensor block = queries.narrow(2, first, rows).reshape({-1, group * rows, dim});
      const at::Tensor block_upstream = upstream.narrow(2, first, rows).reshape({-1, group * rows, dim});
      for_values.narrow(1, 0, seen).add_(at::bmm(distribution.transpose(1, 2), block_upstream));
      const at::Tensor for_distribution = at::bmm(block_upstream, values.narrow(1, 0, seen).transpose(1, 2));
      const at::Tensor for_scores =
          activation_ops(distribution)
              .causal_softmax_gradient(for_distribution, distribution, causal_shape(first, rows, dim));
      for_queries.narrow(2, first, rows)
          .copy_(at::bmm(for_scores, keys.narrow(1, 0, seen)).reshape({-1, group, rows, dim}));
      for_keys.narrow(1, 0, seen).add_(at::bmm(for_scores.transpose(1, 2), block));
    }
    return {ungrouped(for_queries, batch), ungrouped(for_keys.unsqueeze(1), batch),
            ungrouped(for_values.unsqueeze(1), batch)};
  }
};

// Gradients of a mean loss over rows of logits, gathered slice by slice.
class HeadGradients {
 public:
  HeadGradients(const at::Tensor& hidden, const at::Tensor& head)
      : hidden_(hidden),
        head_(head),
        for_hidden_(at::empty_like(hidden)),
        for_head_(at::zeros(head.sizes(), head.options().dtype(at::kFloat))) {}

  // `logit_gradient`: bf16, d(loss of the row) / d(logits), for rows [first, first + count).
  void add(int64_t first, int64_t count, const at::Tensor& logit_gradient) {
    for_hidden_.narrow(0, first, count).copy_(at::matmul(logit_gradient, head_));
    for_head_.add_(at::matmul(logit_gradient.t(), hidden_.narrow(0, first, count)));
  }

  void save(AutogradContext* context) const { context->save_for_backward({for_hidden_, for_head_}); }

  // Turns the saved gradients of the summed loss into gradients of the mean over all rows.
  static std::pair<at::Tensor, at::Tensor> scaled(AutogradContext* context, const at::Tensor& upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor factor = upstream / static_cast<double>(saved[0].size(0));
    const at::ScalarType type = saved[0].scalar_type();
    return {saved[0] * factor.to(type), (saved[1] * factor).to(type)};
  }

 private:
  at::Tensor hidden_, head_, for_hidden_, for_head_;
};

struct CrossEntropy : Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                            const at::Tensor& targets) {
    const int64_t rows = hidden.size(0);
    HeadGradients gradients(hidden, head);
    at::Tensor total = at::zeros({}, hidden.options().dtype(at::kFloat));
    for (int64_t first = 0; first < rows; first += kLogitRows) {
      const int64_t count = std::min(kLogitRows, rows - first);
      const LossRows result = activation_ops(hidden).cross_entropy(
          at::linear(hidden.narrow(0, first, count), head), targets.narrow(0, first, count).contiguous());
      total.add_(result.loss.sum());
      gradients.add(first, count, result.gradient);
    }
    gradients.save(context);
    return total / static_cast<double>(rows);
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const auto [for_hidden, for_head] = HeadGradients::scaled(context, upstream[0]);
    return {for_hidden, for_head, at::Tensor()};
  }
};

struct SoftCrossEntropy : Function<SoftCrossEntropy> {
  // Returns {mean KL, agreeing rows}.
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                               double hard) {
    const int64_t rows = hidden.size(0);
    HeadGradients gradients(hidden, head);
    const auto options = hidden.options().dtype(at::kFloat);
    at::Tensor total = at::zeros({}, options), agreeing = at::zeros({}, options);
    for (int64_t first = 0; first < rows; first += kLogitRows) {
      const int64_t count = std::min(kLogitRows, rows - first);
      const LossRows result = activation_ops(hidden).distillation(
          at::linear(hidden.narrow(0, first, count), head),
          at::linear(teacher_hidden.narrow(0, first, count), teacher_head), hard);
      total.add_(result.loss.sum());
      agreeing.add_(result.agree.sum());
      gradients.add(first, count, result.gradient);
    }
    gradients.save(context);
    context->mark_non_differentiable({agreeing});
    return {total / static_cast<double>(rows), agreeing};
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const auto [for_hidden, for_head] = HeadGradients::scaled(context, upstream[0]);
    return {for_hidden, for_head, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

#if TORCH_VERSION_MAJOR >= 2
// libtorch's own, one kernel on a GPU: the scores are never written to memory.
at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t group = q.size(2) / k.size(2);
  const auto by_head = [&](const at::Tensor& x) { return x.repeat_interleave(group, 2).transpose(1, 2); };
  return at::scaled_dot_product_attention(q.transpose(1, 2), by_head(k), by_head(v), {}, 0.0,
                                          /*is_causal=*/true)
      .transpose(1, 2)
      .contiguous();
}
#endif

}  // namespace

NormedResidual residual_norm(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight,
                             double eps) {
  const variable_list results = ResidualNorm::apply(x, delta, weight, eps);
  return {results[0], results[1]};
}

at::Tensor swiglu(const at::Tensor& gate_up) { return SwiGlu::apply(gate_up); }

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return Rotate::apply(x, cos, sin);
}

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  if (q.is_cuda()) return fused_attention(q, k, v);
#endif
  return CausalAttention::apply(q, k, v);
}

at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets) {
  return CrossEntropy::apply(hidden, head, targets);
}

DistillationLoss distillation_loss(const at::Tensor& hidden, const at::Tensor& head,
                                   const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                                   double hard) {
  const variable_list results = SoftCrossEntropy::apply(hidden, head, teacher_hidden, teacher_head, hard);
  return {results[0], results[1].item<double>() / static_cast<double>(hidden.size(0))};
}

}  // namespace outrider::training
