#include "runtime/report/html_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

// The chart of latency against batch, from top to bottom: a line of text for each crossover, the
// curves, the batches, and a strip that names the fastest device of each batch. Between two tried
// batches latency is taken as a straight line in the batch, as the crossovers are; such a line
// bends on logarithmic axes, so each is drawn in small steps.

namespace turnout {
namespace {

constexpr double kWidth = 1000;
constexpr double kLeft = 74;
constexpr double kRight = 812;  // direct labels stand to the right of it
constexpr double kInset = 22;   // from the frame to the first and last batch
constexpr double kPlotHeight = 330;
constexpr double kLane = 19;  // one crossover's text
constexpr double kStripHeight = 22;
constexpr double kLabelGap = 16;  // between direct labels
constexpr int kSteps = 12;        // of a curve between two batches
constexpr std::size_t kNameLength = 23;
constexpr double kBoldWidth = 7.9;  // of a character, at most on average
constexpr double kMostLabel = 185;  // width of a name of that length

struct Label {
  double x = 0, y = 0;    // of the point it names
  double text_y = 0;      // moved so that labels do not overlap
  const CompareRow* row;  // the last of its curve
};

struct Mark {
  const Crossover* crossover;
  std::string text;
  double x = 0, y = 0;  // of the line, and of the text's lane
  bool left = false;    // the text is to the left of the line
};

class LatencyChart {
 public:
  LatencyChart(const Comparison& comparison, const DeviceStyles& styles)
      : comparison_(comparison), styles_(styles), batches_(batches_of(comparison)) {
    for (const CompareRow& row : comparison.rows) {
      if (has_latency(row)) curves_[row.device][row.batch] = &row;
    }
  }
  std::string draw();

 private:
  using Curve = std::map<std::int64_t, const CompareRow*>;

  void find_range();
  double x(double batch) const;
  double y(double seconds) const;
  double bottom() const { return top_ + kPlotHeight; }
  double latency_at(const Curve& curve, double batch) const;

  void draw_grid();
  void draw_crossovers();
  void draw_crossover(const Mark& mark);
  void draw_curve(const std::string& device);
  void draw_line(const Curve& curve, const std::string& css);
  void draw_labels();
  void draw_strip();
  void draw_columns();
  double left_edge(std::size_t index) const;
  std::vector<Label> place_labels() const;

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  const Comparison& comparison_;
  const DeviceStyles& styles_;
  std::vector<std::int64_t> batches_;
  std::map<std::string, Curve, std::less<>> curves_;
  double low_ = 0, high_ = 0;  // log10 of the seconds at the frame
  double top_ = 0;
  std::string svg_;
};

void LatencyChart::find_range() {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const auto& [device, curve] : curves_) {
    for (const auto& [batch, row] : curve) {
      least = std::min(least, row->latency_seconds);
      most = std::max(most, row->latency_seconds);
    }
  }
  constexpr double kPadding = 0.12;
  constexpr double kLeast = 0.8;  // decades
  low_ = std::log10(least) - kPadding;
  high_ = std::log10(most) + kPadding;
  const double missing = std::max(0.0, kLeast - (high_ - low_));
  low_ -= missing / 2;
  high_ += missing / 2;
}

double LatencyChart::x(double batch) const {
  const double first = std::log(static_cast<double>(batches_.front()));
  const double last = std::log(static_cast<double>(batches_.back()));
  if (first == last) return (kLeft + kRight) / 2;
  const double t = (std::log(batch) - first) / (last - first);
  return kLeft + kInset + t * (kRight - kLeft - 2 * kInset);
}

double LatencyChart::y(double seconds) const {
  return top_ + (high_ - std::log10(seconds)) / (high_ - low_) * kPlotHeight;
}

void LatencyChart::draw_grid() {
  add("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", kLeft, top_,
      kRight - kLeft, kPlotHeight);
  const bool fine = high_ - low_ < 2.2;
  for (int exponent = static_cast<int>(std::floor(low_)); exponent <= high_; ++exponent) {
    for (const int digit : {1, 2, 5}) {
      // A little more, so that 1 ms isn't written as 1000 us.
      const double seconds = digit * std::pow(10.0, exponent) * (1 + 1e-9);
      const double at = y(seconds);
      if (at < top_ || at > bottom()) continue;
      if (digit > 1 && !fine) continue;
      add("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft, kRight,
          at, at);
      add("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 8,
          at + 4, html_seconds(seconds));
    }
  }
  double last = -std::numeric_limits<double>::infinity();
  for (const std::int64_t batch : batches_) {
    const double at = x(static_cast<double>(batch));
    const std::string text = fmt::format("{}", batch);
    add("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>", at, at, top_,
        bottom() + 4);
    const double half = 4.0 * static_cast<double>(text.size()) + 3;
    if (at - half < last) continue;
    last = at + half;
    add("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", at,
        bottom() + 18, text);
  }
  add("<text class=\"axis\" x=\"{}\" y=\"{}\">batch</text>", kRight + 10, bottom() + 18);
  add("<text class=\"axis\" transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">"
      "latency</text>",
      top_ + kPlotHeight / 2);
}

double LatencyChart::latency_at(const Curve& curve, double batch) const {
  const auto right = curve.lower_bound(static_cast<std::int64_t>(std::ceil(batch)));
  if (right == curve.end()) return curve.rbegin()->second->latency_seconds;
  if (right == curve.begin()) return right->second->latency_seconds;
  const auto left = std::prev(right);
  const double from = static_cast<double>(left->first);
  const double t = (batch - from) / (static_cast<double>(right->first) - from);
  return left->second->latency_seconds +
         t * (right->second->latency_seconds - left->second->latency_seconds);
}

// Texts stand to the right of their lines where there is room. The lanes are in such an order that
// few lines cross a text.
void LatencyChart::draw_crossovers() {
  std::vector<Mark> marks;
  for (const Crossover& crossover : comparison_.crossovers) {
    const std::string text = shorten(crossover.to, kNameLength) + " " + crossover_text(crossover);
    const double at = x(static_cast<double>(crossover.batch));
    const bool left = at + 8 + kBoldWidth * static_cast<double>(text.size()) > kWidth;
    marks.push_back({&crossover, text, at, 0, left});
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    return a.left != b.left ? a.left : a.left ? a.x > b.x : a.x < b.x;
  });
  double lane_y = 15;
  for (Mark& mark : marks) {
    mark.y = lane_y;
    lane_y += kLane;
    draw_crossover(mark);
  }
  for (const Mark& mark : marks) {
    add("<text class=\"mark-text {}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
        styles_.css(mark.crossover->to), mark.x + (mark.left ? -6 : 6), mark.y,
        mark.left ? "end" : "start", escape_html(mark.text));
  }
}

void LatencyChart::draw_crossover(const Mark& mark) {
  const Crossover& crossover = *mark.crossover;
  const double low = x(static_cast<double>(crossover.low));
  const double high = x(static_cast<double>(crossover.high));
  add("<g class=\"crossover {}\" data-batch=\"{}\">", styles_.css(crossover.to), crossover.batch);
  add("<title>{} is faster than {} {}</title>", escape_html(crossover.to),
      escape_html(crossover.from), crossover_text(crossover));
  if (high > low) {
    add("<rect class=\"band\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>", low, top_,
        high - low, kPlotHeight);
  }
  add("<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", mark.x,
      mark.y - 11, bottom());
  const auto curve = curves_.find(crossover.to);
  if (curve != curves_.end()) {
    const double seconds = latency_at(curve->second, static_cast<double>(crossover.batch));
    add("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/>", mark.x, y(seconds));
  }
  svg_ += "</g>\n";
}

// A stretch between a measured and a predicted point is drawn as what is known less well.
void LatencyChart::draw_line(const Curve& curve, const std::string& css) {
  const auto weaker = [](const CompareRow* a, const CompareRow* b) {
    for (const std::string_view style : {"predicted", "mixed", "calibrated"}) {
      if (style_of(a->evidence) == style || style_of(b->evidence) == style) return style;
    }
    return std::string_view("measured");
  };
  std::string path;
  std::string_view style;
  const auto flush = [&] {
    if (!path.empty()) add("<path class=\"curve {} {}\" d=\"{}\"/>", css, style, path);
    path.clear();
  };
  for (auto right = std::next(curve.begin()); right != curve.end(); ++right) {
    const auto left = std::prev(right);
    if (const auto next = weaker(left->second, right->second); next != style) {
      flush();
      style = next;
    }
    const double first = static_cast<double>(left->first);
    const double last = static_cast<double>(right->first);
    for (int step = path.empty() ? 0 : 1; step <= kSteps; ++step) {
      const double batch = first * std::pow(last / first, static_cast<double>(step) / kSteps);
      const double seconds = step == kSteps ? right->second->latency_seconds
                             : step == 0    ? left->second->latency_seconds
                                            : latency_at(curve, batch);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x(batch), y(seconds));
    }
  }
  flush();
}

void LatencyChart::draw_curve(const std::string& device) {
  const auto found = curves_.find(device);
  if (found == curves_.end()) return;
  const std::string& css = styles_.css(device);
  add("<g class=\"series\" data-device=\"{}\">", escape_html(device));
  draw_line(found->second, css);
  for (const auto& [batch, row] : found->second) {
    add("<circle class=\"point {} {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", css,
        style_of(row->evidence), x(static_cast<double>(batch)), y(row->latency_seconds),
        css == "auto" ? 6.5 : 4);
  }
  svg_ += "</g>\n";
}

// Labels of curves that end at the same batch are pushed apart.
std::vector<Label> LatencyChart::place_labels() const {
  std::map<std::int64_t, std::vector<Label>> by_batch;
  for (const auto& [device, curve] : curves_) {
    const auto& [batch, row] = *curve.rbegin();
    const double at = y(row->latency_seconds);
    by_batch[batch].push_back({x(static_cast<double>(batch)), at, at, row});
  }
  std::vector<Label> placed;
  for (auto& [batch, labels] : by_batch) {
    std::stable_sort(labels.begin(), labels.end(),
                     [](const Label& a, const Label& b) { return a.y < b.y; });
    double free = top_ - kLane;
    for (Label& label : labels) {
      label.text_y = std::max(label.y, free);
      free = label.text_y + kLabelGap;
    }
    double limit = bottom();
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      label->text_y = std::min(label->text_y, limit);
      limit = label->text_y - kLabelGap;
    }
    placed.insert(placed.end(), labels.begin(), labels.end());
  }
  return placed;
}

void LatencyChart::draw_labels() {
  for (const Label& label : place_labels()) {
    const std::string& css = styles_.css(label.row->device);
    // A curve that ends early was slow: the room is above and to the left of its end.
    const bool early =
        label.row->batch != batches_.back() && curves_.at(label.row->device).size() > 1;
    const bool moved = !early && std::abs(label.text_y - label.y) > 3;
    if (moved) {
      add("<line class=\"leader {}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
          css, label.x + 8, label.x + 24, label.y, label.text_y);
    }
    add("<text class=\"label {}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", css,
        label.x + (early   ? 4
                   : moved ? 27
                           : 13),
        label.text_y + (early ? -10 : 4), early && label.x > kLeft + kMostLabel ? "end" : "start",
        escape_html(shorten(label.row->device, kNameLength)));
  }
}

// Where the column of a batch begins: half-way to the batch before it.
double LatencyChart::left_edge(std::size_t index) const {
  if (index == 0) return kLeft;
  if (index == batches_.size()) return kRight;
  return (x(static_cast<double>(batches_[index - 1])) + x(static_cast<double>(batches_[index]))) /
         2;
}

void LatencyChart::draw_strip() {
  const double at = bottom() + 30;
  add("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">fastest</text>", kLeft - 8,
      at + 15);
  std::size_t begin = 0;
  while (begin < batches_.size()) {
    const CompareRow* winner = comparison_.winner(batches_[begin]);
    std::size_t end = begin + 1;
    const auto same = [&](const CompareRow* other) {
      if (winner == nullptr || other == nullptr) return winner == other;
      return winner->device == other->device &&
             style_of(winner->evidence) == style_of(other->evidence);
    };
    while (end < batches_.size() && same(comparison_.winner(batches_[end]))) ++end;
    const double width = left_edge(end) - left_edge(begin);
    const std::string device = winner == nullptr ? "none" : winner->device;
    const std::string_view style = winner == nullptr ? "" : style_of(winner->evidence);
    add("<g class=\"winner {} {}\"><title>{}: fastest at batch {} to {}</title>",
        styles_.css(device), style, escape_html(device), batches_[begin], batches_[end - 1]);
    add("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"3\"/>",
        left_edge(begin) + 1.5, at, std::max(1.0, width - 3), kStripHeight);
    const auto room = static_cast<std::size_t>(std::max(0.0, (width - 12) / 7.2));
    if (room >= std::min<std::size_t>(device.size(), 6)) {
      add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
          left_edge(begin) + width / 2, at + 15.5, escape_html(shorten(device, room)));
    }
    svg_ += "</g>";
    begin = end;
  }
  svg_ += "\n";
}

// What the pointer and the keyboard reach: one column a batch. Its title is all figures as text;
// the script shows them as a table instead.
void LatencyChart::draw_columns() {
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    std::string text = fmt::format("batch {}", batches_[i]);
    for (const CompareRow& row : comparison_.rows) {
      if (row.batch != batches_[i]) continue;
      text += fmt::format("; {}: {}", row.device,
                          has_latency(row) ? fmt::format("{} {}", html_seconds(row.latency_seconds),
                                                         to_string(row.evidence))
                                           : "skipped: " + row.skipped);
    }
    const double at = x(static_cast<double>(batches_[i]));
    add("<g class=\"column\" tabindex=\"0\" role=\"img\" data-batch=\"{}\" aria-label=\"{}\">",
        batches_[i], escape_html(text));
    add("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}</title></rect>",
        left_edge(i), top_, left_edge(i + 1) - left_edge(i), kPlotHeight, escape_html(text));
    add("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/></g>", at, at, top_, bottom());
  }
}

std::string LatencyChart::draw() {
  if (curves_.empty()) return "";
  top_ = 14 + kLane * static_cast<double>(comparison_.crossovers.size());
  find_range();
  add("<svg id=\"latency\" viewBox=\"0 0 {} {}\" role=\"group\" "
      "aria-label=\"Latency against batch, both axes logarithmic\">\n",
      kWidth, bottom() + 30 + kStripHeight + 6);
  draw_grid();
  draw_crossovers();
  // auto is a halo below the curves, since it lies on one of them wherever it uses one device.
  draw_curve("auto");
  for (const std::string& device : styles_.devices()) {
    if (device != "auto") draw_curve(device);
  }
  draw_labels();
  draw_strip();
  draw_columns();
  svg_ += "</svg>\n";
  return std::move(svg_);
}

}  // namespace

std::string latency_chart(const Comparison& comparison, const DeviceStyles& styles) {
  return LatencyChart(comparison, styles).draw();
}

}  // namespace turnout
