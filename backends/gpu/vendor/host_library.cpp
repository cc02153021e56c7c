// What an emulated vendor has beside a driver: a naive library, and options for its devices.
#include "backends/gpu/library.hpp"
#include "backends/gpu/profile.hpp"
#include "backends/gpu/vendor/host.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

namespace {

// The definition of the problem, for f32 alone.
class NaiveGemm final : public Gemm {
 public:
  explicit NaiveGemm(const GemmProblem& problem) : p_(problem) {}

  void run(const void* a, const void* b, const void* bias, const void* residual, void* y,
           void* /*workspace*/, void* /*native_stream*/) const override {
    const auto* left = static_cast<const float*>(a);
    const auto* right = static_cast<const float*>(b);
    auto* out = static_cast<float*>(y);
    for (std::int64_t batch = 0; batch < p_.batches; ++batch) {
      for (std::int64_t i = 0; i < p_.m; ++i) {
        for (std::int64_t j = 0; j < p_.n; ++j) {
          const std::int64_t at = (batch * p_.m + i) * p_.n + j;
          double sum =
              p_.alpha * dot(left + batch * p_.a_stride, right + batch * p_.b_stride, i, j);
          if (bias != nullptr) sum += static_cast<const float*>(bias)[j];
          if (residual != nullptr) sum += static_cast<const float*>(residual)[at];
          out[at] = static_cast<float>(activate(p_.activation, sum, 0.0, 0.0));
        }
      }
    }
  }
  std::string implementation() const override { return "naive"; }

 private:
  double dot(const float* a, const float* b, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t k = 0; k < p_.k; ++k) {
      sum += static_cast<double>(a[p_.trans_a ? k * p_.m + i : i * p_.k + k]) *
             b[p_.trans_b ? j * p_.k + k : k * p_.n + j];
    }
    return sum;
  }

  GemmProblem p_;
};

}  // namespace

const char* blas_provider() { return "emulated_blas"; }

std::string blas_refusal(const GemmProblem& problem) {
  if (problem.dtype != DType::f32) return "f32 alone";
  const bool plain =
      problem.activation == Activation::none || problem.activation == Activation::relu;
  return plain ? "" : "this activation can't be fused";
}

std::unique_ptr<Gemm> make_gemm(const GemmProblem& problem) {
  return std::make_unique<NaiveGemm>(problem);
}

namespace vendor {

// "profiles=v100,mi210;threads=1"
DriverOptions parse_options(std::string_view text) {
  DriverOptions options;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::string_view key = entry.substr(0, entry.find('='));
    std::string_view value = entry.substr(std::min(entry.size(), key.size() + 1));
    if (key == "threads" && (value == "0" || value == "1")) {
      options.threads = value == "1";
    } else if (key == "profiles") {
      while (!value.empty()) {
        const std::string_view name = value.substr(0, value.find(','));
        value.remove_prefix(std::min(value.size(), name.size() + 1));
        options.devices.push_back(device_info(load_profile(name), name));
      }
    } else {
      fail(ErrorCode::invalid_argument, "[{}] unknown option '{}'", kName, entry);
    }
  }
  return options;
}

}  // namespace vendor
}  // namespace turnout::gpu
