#include "runtime/cost/op_table.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.hpp"

namespace turnout::gpu_model {
namespace {

constexpr std::string_view kColumns[] = {"precision", "op",      "pass",     "m",        "n",
                                         "k",         "trans_a", "trans_b",  "batch",    "in_ch",
                                         "h",         "w",       "out_ch",   "filt_h",   "filt_w",
                                         "pad_h",     "pad_w",   "stride_h", "stride_w", "time_ms"};
constexpr std::size_t kColumnCount = std::size(kColumns);

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// A cell as it may be shown in a message.
std::string shown(std::string_view cell) {
  constexpr std::size_t kMost = 40;
  std::string text;
  for (const char c : cell.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return cell.size() > kMost ? text + "..." : text;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::vector<OpRow> read() {
    read_header();
    std::vector<OpRow> rows;
    while (!text_.empty()) {
      const std::string_view line = next_line(text_);
      ++line_;
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      cells_ = split(line);
      if (cells_.size() != width_) {
        refuse(fmt::format("{} cells, the header has {}", cells_.size(), width_));
      }
      rows.push_back(read_row());
    }
    if (rows.empty()) refuse("the table has no rows");
    return rows;
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    fail(ErrorCode::invalid_argument, "{}: line {}: {}", shown(where_), line_, message);
  }

  void read_header() {
    std::string_view line = next_line(text_);
    line_ = 1;
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    const auto names = split(line);
    width_ = names.size();
    std::string missing;
    for (std::size_t c = 0; c < kColumnCount; ++c) {
      std::size_t found = names.size();
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != kColumns[c]) continue;
        if (found < names.size()) refuse(fmt::format("column '{}' is there twice", kColumns[c]));
        found = i;
      }
      columns_[c] = found;
      if (found == names.size()) missing += fmt::format(" {}", kColumns[c]);
    }
    if (!missing.empty()) refuse("missing columns:" + missing);
  }

  std::string_view cell(std::string_view column) const {
    for (std::size_t c = 0; c < kColumnCount; ++c) {
      if (kColumns[c] == column) return cells_[columns_[c]];
    }
    return {};
  }

  std::int64_t integer(std::string_view column, std::int64_t least = 1) const {
    const std::string_view text = cell(column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least ||
        value > OpShape::kMaxSize) {
      refuse(fmt::format("{} '{}' isn't a whole number from {} to {}", column, shown(text), least,
                         OpShape::kMaxSize));
    }
    return value;
  }

  bool transposed(std::string_view column) const {
    const std::string_view text = cell(column);
    if (text != "N" && text != "T") {
      refuse(fmt::format("{} '{}' is neither N nor T", column, shown(text)));
    }
    return text == "T";
  }

  std::optional<double> seconds() const {
    const std::string_view text = cell("time_ms");
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0) ||
        !std::isfinite(value)) {
      refuse(fmt::format("time_ms '{}' isn't a number above 0", shown(text)));
    }
    return value * 1e-3;
  }

  void read_product(OpRow& row) const {
    if (row.pass != "fwd") refuse(fmt::format("op gemm has no pass '{}', only fwd", row.pass));
    OpShape& s = row.shape;
    s.m = integer("m");
    s.n = integer("n");
    s.k = integer("k");
    s.transpose_a = transposed("trans_a");
    s.transpose_b = transposed("trans_b");
  }

  void read_convolution(OpRow& row) const {
    OpShape& s = row.shape;
    s.is_conv = true;
    if (row.pass == "bwd_data") {
      s.pass = Pass::backward_data;
    } else if (row.pass == "bwd_filter") {
      s.pass = Pass::backward_filter;
    } else if (row.pass != "fwd") {
      refuse(
          fmt::format("op conv has no pass '{}'; there are fwd, bwd_data, bwd_filter", row.pass));
    }
    s.batch = integer("batch");
    s.in_channels = integer("in_ch");
    s.height = integer("h");
    s.width = integer("w");
    s.out_channels = integer("out_ch");
    s.filter_h = integer("filt_h");
    s.filter_w = integer("filt_w");
    s.pad_h = integer("pad_h", 0);
    s.pad_w = integer("pad_w", 0);
    s.stride_h = integer("stride_h");
    s.stride_w = integer("stride_w");
    if (s.height + 2 * s.pad_h < s.filter_h || s.width + 2 * s.pad_w < s.filter_w) {
      refuse(fmt::format("a filter of {}x{} doesn't fit into {}x{} with padding {}x{}", s.filter_h,
                         s.filter_w, s.height, s.width, s.pad_h, s.pad_w));
    }
  }

  OpRow read_row() const {
    OpRow row;
    row.line = line_;
    row.op = shown(cell("op"));
    row.pass = shown(cell("pass"));
    row.precision = shown(cell("precision"));
    row.seconds = seconds();
    row.shape.half = row.precision == "fp16";
    if (row.op == "gemm") {
      read_product(row);
    } else if (row.op == "conv") {
      read_convolution(row);
    } else {
      row.refusal = fmt::format("there is no time model of op '{}', only of gemm and conv", row.op);
    }
    if (row.refusal.empty() && row.precision != "fp32" && row.precision != "fp16") {
      row.refusal = fmt::format("there is no time model of precision '{}', only of fp32 and fp16",
                                row.precision);
    }
    return row;
  }

  std::string_view text_, where_;
  std::size_t line_ = 0, width_ = 0;
  std::array<std::size_t, kColumnCount> columns_{};
  std::vector<std::string_view> cells_;
};

}  // namespace

std::vector<OpRow> parse_op_table(std::string_view text, std::string_view where) {
  return Reader(text, where).read();
}

}  // namespace turnout::gpu_model
