// Fits the parameters of the GPU time models to the published tables and writes
// core/gpu_model/learned.inc:
//
//   gpu_model_fit tests/data/deepbench core/gpu_model/learned.inc
//
// One set from all devices, and one without each of them. Only f32 tables take part in the
// parameters. The loss is the mean absolute relative error, each device and op alike, slightly
// rounded at 0, plus a weak pull to the initial values; Nelder and Mead's method with the
// coefficients of Gao and Han for many dimensions finds its minimum. Then, for each set, the errors
// of the convolution model at all shapes are written, to be carried over (predictor.hpp): of the
// f32 tables, and of half tables of devices with matrix units. Deterministic.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "backends/gpu/profile.hpp"
#include "core/error.hpp"
#include "core/gpu_model/conv.hpp"
#include "core/gpu_model/learned.hpp"
#include "core/gpu_model/product.hpp"
#include "core/gpu_model/spec.hpp"
#include "runtime/cost/op_table.hpp"
#include "runtime/io/file.hpp"

namespace turnout::gpu_model {
namespace {

using Vector = std::vector<double>;
using Loss = std::function<double(const Vector&)>;

// Minimum of `loss` near 0; the first simplex reaches `step` along each axis.
class NelderMead {
 public:
  NelderMead(const Loss& loss, std::size_t n, double step) : loss_(loss), n_(n) {
    points_.assign(n + 1, Vector(n, 0.0));
    for (std::size_t i = 0; i < n; ++i) points_[i + 1][i] = step;
    for (const Vector& point : points_) values_.push_back(loss(point));
  }

  Vector run(int steps) {
    for (int s = 0; s < steps; ++s) {
      sort();
      if (values_[n_] - values_[0] < 1e-7) break;
      advance();
    }
    sort();
    return points_[0];
  }

 private:
  void sort() {
    std::vector<std::size_t> order(n_ + 1);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values_[a] < values_[b]; });
    std::vector<Vector> points;
    Vector values;
    for (const std::size_t i : order) {
      points.push_back(points_[i]);
      values.push_back(values_[i]);
    }
    points_ = std::move(points);
    values_ = std::move(values);
  }

  // The worst point, moved along the line through the centre of the others.
  Vector moved(double factor) const {
    Vector result(n_);
    for (std::size_t j = 0; j < n_; ++j) {
      double centre = 0;
      for (std::size_t i = 0; i < n_; ++i) centre += points_[i][j] / static_cast<double>(n_);
      result[j] = centre + factor * (points_[n_][j] - centre);
    }
    return result;
  }

  void replace_worst(Vector point, double value) {
    points_[n_] = std::move(point);
    values_[n_] = value;
  }

  void advance() {
    const double n = static_cast<double>(n_);
    const double expand = 1 + 2 / n, contract = 0.75 - 0.5 / n, shrink = 1 - 1 / n;
    Vector reflected = moved(-1);
    const double value = loss_(reflected);
    if (value < values_[0]) {
      Vector further = moved(-expand);
      const double other = loss_(further);
      other < value ? replace_worst(std::move(further), other)
                    : replace_worst(std::move(reflected), value);
      return;
    }
    if (value < values_[n_ - 1]) return replace_worst(std::move(reflected), value);
    Vector nearer = moved(value < values_[n_] ? -contract : contract);
    const double other = loss_(nearer);
    if (other < std::min(value, values_[n_])) return replace_worst(std::move(nearer), other);
    for (std::size_t i = 1; i <= n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        points_[i][j] = points_[0][j] + shrink * (points_[i][j] - points_[0][j]);
      }
      values_[i] = loss_(points_[i]);
    }
  }

  const Loss& loss_;
  std::size_t n_;
  std::vector<Vector> points_;
  Vector values_;
};

struct Table {
  int device = 0;
  bool half = false;
  GpuSpec spec;
  std::vector<OpRow> rows;
};

double seconds_of(const GpuSpec& spec, const OpShape& shape, const Learned& learned) {
  return shape.is_conv ? conv_seconds(spec, shape, learned.conv).seconds
                       : gemm_seconds(spec, shape, learned.gemm);
}

double mean_error(const Table& table, const Learned& learned, bool conv) {
  constexpr double kRound = 1e-3;
  double sum = 0, count = 0;
  for (const OpRow& row : table.rows) {
    if (row.shape.is_conv != conv) continue;
    const double error = seconds_of(table.spec, row.shape, learned) / *row.seconds - 1;
    sum += std::sqrt(error * error + kRound);
    ++count;
  }
  return sum / count;
}

template <typename Params>
Params fit(const std::vector<const Table*>& tables, Params Learned::*part, bool conv, int steps) {
  constexpr double kPull = 1e-3, kStep = 0.3;
  const auto made = [&](const Vector& logs) {
    Learned learned{};
    const auto pointers = fitted(learned.*part);
    for (std::size_t i = 0; i < pointers.size(); ++i) *pointers[i] *= std::exp(logs[i]);
    return learned;
  };
  const Loss loss = [&](const Vector& logs) {
    const Learned learned = made(logs);
    double sum = 0;
    for (const Table* table : tables) sum += mean_error(*table, learned, conv);
    sum /= static_cast<double>(tables.size());
    for (const double x : logs) sum += kPull * x * x;
    return sum;
  };
  Params initial{};
  return made(NelderMead(loss, fitted(initial).size(), kStep).run(steps)).*part;
}

Learned fit_without(const std::vector<Table>& tables, int without) {
  std::vector<const Table*> used;
  for (const Table& table : tables) {
    if (table.device != without && !table.half) used.push_back(&table);
  }
  Learned learned;
  learned.gemm = fit(used, &Learned::gemm, false, 1500);
  learned.conv = fit(used, &Learned::conv, true, 2000);
  for (const Table& table : tables) {
    std::printf(
        "%s %s%s: gemm %.3f conv %.3f\n",
        without < 0
            ? "all"
            : std::string(published_devices()[static_cast<std::size_t>(without)].name).c_str(),
        std::string(published_devices()[static_cast<std::size_t>(table.device)].name).c_str(),
        table.half ? " half" : "", mean_error(table, learned, false),
        mean_error(table, learned, true));
  }
  return learned;
}

template <typename Params>
std::string list(Params params) {
  std::string text;
  for (const double* value : fitted(params)) text += fmt::format("{:.5g}, ", *value);
  return "    {" + text + "},\n";
}

std::vector<double> errors(const Table& table, const Learned& learned) {
  std::vector<double> logs;
  std::map<Pass, std::vector<double>> by_pass;
  for (const OpRow& row : table.rows) {
    logs.push_back(std::log(*row.seconds / seconds_of(table.spec, row.shape, learned)));
    by_pass[row.shape.pass].push_back(logs.back());
  }
  for (auto& [pass, values] : by_pass) std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const auto& sorted = by_pass[table.rows[i].shape.pass];
    if (!table.half) logs[i] -= sorted[sorted.size() / 2];  // levels are the parameters' work
    logs[i] = std::clamp(logs[i], -1.0, 1.0);
  }
  return logs;
}

std::string error_rows(Table table, const std::vector<Learned>& sets) {
  std::erase_if(table.rows, [](const OpRow& row) { return !row.shape.is_conv; });
  std::vector<std::vector<double>> logs;
  for (const Learned& learned : sets) logs.push_back(errors(table, learned));
  std::set<std::string> seen;
  std::string text;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const OpShape& s = table.rows[i].shape;
    const std::string shape = fmt::format(
        "{}, {}, {}, {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", table.device,
        table.half ? 1 : 0, static_cast<int>(s.pass), s.batch, s.in_channels, s.height, s.width,
        s.out_channels, s.filter_h, s.filter_w, s.pad_h, s.pad_w, s.stride_h, s.stride_w);
    if (!seen.insert(shape).second) continue;
    std::string values;
    for (std::size_t set = 0; set < sets.size(); ++set) {
      const bool own = static_cast<int>(set) - 1 == table.device;
      values += fmt::format("{}{:.3f}F", set > 0 ? ", " : "", own ? 0.0 : logs[set][i]);
    }
    text += fmt::format("    {{{}, {{{}}}}},\n", shape, values);
  }
  return text;
}

void run(const std::string& folder, const std::string& out) {
  std::vector<Table> tables;
  for (std::size_t d = 0; d < published_devices().size(); ++d) {
    const std::string name(published_devices()[d].name);
    for (const bool half : {false, true}) {
      const std::string file = folder + "/" + name + (half ? "_fp16.csv" : "_fp32.csv");
      if (half && name == "mi25") continue;  // not published
      Table table{static_cast<int>(d), half, gpu_spec(device_info(load_profile(name), name)), {}};
      table.rows = parse_op_table(read_file(file, 1 << 20), file);
      tables.push_back(std::move(table));
    }
  }
  std::vector<Learned> sets;
  for (int without = -1; without < static_cast<int>(published_devices().size()); ++without) {
    sets.push_back(fit_without(tables, without));
  }
  std::string gemm, conv, rows;
  for (const Learned& learned : sets) {
    gemm += list(learned.gemm);
    conv += list(learned.conv);
  }
  for (const Table& table : tables) {
    if (!table.half || table.spec.half_flops_per_s > 0) rows += error_rows(table, sets);
  }
  GemmParameters g;
  ConvParameters c;
  const std::string text = fmt::format(
      "// Written by bench/gpu_model_fit.cpp from tests/data/deepbench; not to be edited.\n"
      "// clang-format off\n"
      "constexpr double kGemm[kSets][{}] = {{\n{}}};\n"
      "constexpr double kConv[kSets][{}] = {{\n{}}};\n"
      "constexpr ErrorRow kErrors[] = {{\n{}}};\n",
      fitted(g).size(), gemm, fitted(c).size(), conv, rows);
  const std::string_view parts[] = {text};
  write_file(out, parts);
}

}  // namespace
}  // namespace turnout::gpu_model

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: gpu_model_fit FOLDER_OF_TABLES OUTPUT\n");
    return 2;
  }
  try {
    turnout::gpu_model::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_model_fit: %s\n", error.what());
    return 1;
  }
  return 0;
}
