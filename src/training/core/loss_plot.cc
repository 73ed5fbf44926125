// SPDX-License-Identifier: Apache-2.0
#include "training/core/loss_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace outrider::training {
namespace {

constexpr double kWidth = 800, kHeight = 420;
constexpr double kLeft = 60, kRight = 20, kTop = 40, kBottom = 45;

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Maps (step, loss) to the drawing.
struct Axes {
  double max_step = 1.0, low = 0.0, high = 1.0;

  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / max_step; }
  double y(double loss) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (loss - low) / (high - low);
  }
};

Axes axes_for(const RunHistory& history) {
  Axes axes;
  axes.low = 1e30;
  axes.high = -1e30;
  for (const auto* points : {&history.training, &history.held_out}) {
    for (const LossPoint& point : *points) {
      axes.max_step = std::max(axes.max_step, static_cast<double>(point.step));
      axes.low = std::min(axes.low, point.loss);
      axes.high = std::max(axes.high, point.loss);
    }
  }
  if (axes.low > axes.high) return {};
  axes.low = std::floor(axes.low * 2.0) / 2.0;
  axes.high = std::max(std::ceil(axes.high * 2.0) / 2.0, axes.low + 0.5);
  return axes;
}

std::string grid(const Axes& axes) {
  constexpr int kSteps = 5;
  std::string svg;
  for (int i = 0; i <= kSteps; ++i) {
    const double loss = axes.low + (axes.high - axes.low) * i / kSteps;
    const double step = axes.max_step * i / kSteps;
    svg += format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n", kLeft, axes.y(loss),
                  kWidth - kRight, axes.y(loss));
    svg +=
        format("<text x='%.1f' y='%.1f' text-anchor='end'>%.2f</text>\n", kLeft - 6, axes.y(loss) + 4, loss);
    svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%.0f</text>\n", axes.x(step),
                  kHeight - kBottom + 18, step);
  }
  return svg;
}

}  // namespace

std::string render_loss_plot(const std::string& title, const RunHistory& history) {
  const Axes axes = axes_for(history);
  std::string svg =
      format("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' ", kWidth, kHeight) +
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n";
  svg += "<text x='60' y='24' font-size='15'>" + title + "</text>\n" + grid(axes);
  svg += "<polyline fill='none' stroke='#3366cc' stroke-width='1.2' points='";
  for (const LossPoint& point : history.training) {
    svg += format("%.1f,%.1f ", axes.x(static_cast<double>(point.step)), axes.y(point.loss));
  }
  svg += "'/>\n";
  for (const LossPoint& point : history.held_out) {
    svg += format("<circle cx='%.1f' cy='%.1f' r='3' fill='#cc3311'/>\n",
                  axes.x(static_cast<double>(point.step)), axes.y(point.loss));
  }
  svg += format("<text x='%.0f' y='%.0f' text-anchor='middle'>step</text>\n", kWidth / 2, kHeight - 8);
  svg += format(
      "<text x='%.0f' y='24' text-anchor='end'><tspan fill='#3366cc'>training loss</tspan> "
      "<tspan fill='#cc3311'>held-out loss</tspan> (nats per token)</text>\n</svg>\n",
      kWidth - kRight);
  return svg;
}

}  // namespace outrider::training
