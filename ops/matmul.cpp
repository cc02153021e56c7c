#include "ops/matmul.hpp"

#include <algorithm>

#include "core/graph.hpp"
#include "ops/families.hpp"
#include "ops/rules.hpp"

namespace turnout {
namespace {

// Strides of the leading dimensions of `shape` (all but its last `inner`) over `batch`.
MatmulDims::Strides batch_strides(const Shape& shape, int inner, const Shape& batch) {
  MatmulDims::Strides result{};
  const auto own = shape.strides();
  const int leading = std::max(shape.rank() - inner, 0);
  for (int i = 0; i < leading; ++i) {
    const int at = batch.rank() - leading + i;
    if (at >= 0 && shape[i] != 1) {
      result[static_cast<std::size_t>(at)] = own[static_cast<std::size_t>(i)];
    }
  }
  return result;
}

// 1-D operands become a row (a) or a column (b), as in NumPy.
Shape as_matrix(const Shape& shape, bool left) {
  if (shape.rank() != 1) return shape;
  return left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

void check_matmul(const NodeInfo& info, const MatmulDims& dims, std::int64_t b_k) {
  if (dims.k != b_k) {
    info.fail(fmt::format("inner dimensions of {} and {} differ ({} and {})",
                          to_string(info.input(0)), to_string(info.input(1)), dims.k, b_k));
  }
  const bool vectors = info.input(0).shape.rank() == 1 || info.input(1).shape.rank() == 1;
  const bool extras = dims.trans_a || dims.trans_b || info.has_input(2) || info.has_input(3);
  if (vectors && extras) info.fail("1-D operands take no transposition, bias or residual");
}

void set_bias(const NodeInfo& info, MatmulDims& dims) {
  if (!info.has_input(2)) return;
  const Shape& bias = info.input(2).shape;
  bool fits = bias.rank() <= dims.output.rank();
  for (int i = 1; fits && i <= bias.rank(); ++i) {
    fits = bias.dim(-i) == 1 || bias.dim(-i) == dims.output.dim(-i);
  }
  if (!fits) {
    info.fail(
        fmt::format("bias {} can't be broadcast to {}", to_string(bias), to_string(dims.output)));
  }
  const auto strides = bias.strides();
  const auto step = [&](int from_end) -> std::int64_t {
    if (bias.rank() < from_end || bias.dim(-from_end) == 1) return 0;
    return strides[static_cast<std::size_t>(bias.rank() - from_end)];
  };
  dims.bias_col_stride = step(1);
  dims.bias_row_stride = step(2);
  dims.bias_strides = batch_strides(bias, 2, dims.batch);
}

// One tall product instead of many that share b.
void fold_batch(const NodeInfo& info, MatmulDims& dims) {
  if (dims.batch.rank() == 0 || dims.trans_a || dims.batches() < 2) return;
  const auto all_zero = [](const MatmulDims::Strides& strides) {
    return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
  };
  const Shape a = as_matrix(info.input(0).shape, true);
  const bool full_a = a.elements() == dims.batches() * dims.m * dims.k;
  const bool plain_bias = dims.bias_row_stride == 0 && all_zero(dims.bias_strides);
  if (!full_a || !all_zero(dims.b_strides) || !plain_bias) return;
  dims.m *= dims.batches();
  dims.batch = Shape();
  dims.a_strides = {};
}

std::vector<TensorSpec> infer_matmul(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  const bool integers =
      dtype == DType::i32 || dtype == DType::u32 || dtype == DType::i64 || dtype == DType::u64;
  for (int i = 0; i < info.input_count(); ++i) {
    if (!integers) require_floating(info, i);
    if (info.has_input(i) && info.input(i).dtype != dtype) {
      info.fail(fmt::format("input {} is {}, but input 0 is {}", i, to_string(info.input(i).dtype),
                            to_string(dtype)));
    }
  }
  const FusedActivation act = fused_activation(info);
  if (integers && (act.kind != Activation::none || info.attrs->real("alpha") != 1)) {
    info.fail("products of integers take no alpha and no activation");
  }
  const MatmulDims dims = matmul_dims(info);
  require_shape(info, 3, dims.output, "a residual has the output's shape");
  return {{dtype, dims.output}};
}

double matmul_terms(const NodeInfo& info) { return static_cast<double>(matmul_dims(info).k); }

Cost matmul_cost(const NodeInfo& info) {
  const MatmulDims dims = matmul_dims(info);
  Cost cost = touch_cost(info);
  const double outputs = static_cast<double>(dims.output.elements());
  cost.gemm = {dims.batches(), dims.m, dims.n, dims.k};
  cost.flops = 2 * outputs * static_cast<double>(dims.k);
  for (int extra = 2; extra < 4; ++extra) cost.flops += info.has_input(extra) ? outputs : 0;
  if (info.attrs->text("activation") != "none") cost.flops += outputs;
  return cost;
}

// A is the type of the sum: double, or the integer type itself (wrapping).
template <typename A>
void multiply(const NodeInfo& info, std::span<const std::vector<A>> in, std::vector<A>& out) {
  const MatmulDims d = matmul_dims(info);
  const FusedActivation act = fused_activation(info);
  const auto at = [](const std::vector<A>& v, std::int64_t i) {
    return v[static_cast<std::size_t>(i)];
  };
  std::int64_t o = 0;
  for (std::int64_t batch = 0; batch < d.batches(); ++batch) {
    const std::int64_t a0 = d.offset(batch, d.a_strides);
    const std::int64_t b0 = d.offset(batch, d.b_strides);
    const std::int64_t bias0 = d.offset(batch, d.bias_strides);
    for (std::int64_t i = 0; i < d.m; ++i) {
      for (std::int64_t j = 0; j < d.n; ++j, ++o) {
        A sum = 0;
        for (std::int64_t k = 0; k < d.k; ++k) {
          sum += at(in[0], a0 + (d.trans_a ? k * d.m + i : i * d.k + k)) *
                 at(in[1], b0 + (d.trans_b ? j * d.k + k : k * d.n + j));
        }
        if constexpr (std::is_floating_point_v<A>) sum *= info.attrs->real("alpha");
        if (!in[2].empty()) {
          sum += at(in[2], bias0 + i * d.bias_row_stride + j * d.bias_col_stride);
        }
        if (!in[3].empty()) sum += at(in[3], o);
        if constexpr (std::is_floating_point_v<A>) sum = act(sum);
        out[static_cast<std::size_t>(o)] = sum;
      }
    }
  }
}

void reference_matmul(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const auto run = [&]<typename A>(std::type_identity<A>, auto load, auto store) {
    std::array<std::vector<A>, 4> in;
    for (std::size_t i = 0; i < inputs.size() && i < 4; ++i) {
      if (inputs[i] != nullptr) in[i] = load(*inputs[i]);
    }
    std::vector<A> out(static_cast<std::size_t>(outputs[0].elements()));
    multiply<A>(info, in, out);
    store(out);
  };
  dispatch(outputs[0].dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      // Unsigned arithmetic wraps as ONNX's integers do; signed overflow would be undefined.
      run(
          std::type_identity<std::uint64_t>{},
          [](const Tensor& t) {
            const auto values = t.values<const T>();
            return std::vector<std::uint64_t>(values.begin(), values.end());
          },
          [&](const auto& out) {
            std::transform(out.begin(), out.end(), outputs[0].values<T>().begin(),
                           [](std::uint64_t v) { return static_cast<T>(v); });
          });
    } else {
      run(
          std::type_identity<double>{}, [](const Tensor& t) { return to_double(t); },
          [&](const auto& out) { store_values(outputs[0], out); });
    }
  });
}

Tolerance product_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {2e-6, 1e-6, true, "float sums in any order; grows with the root of their length"};
    case DType::f64:
      return {1e-14, 1e-14, true, "double sums in any order; grows with the root of their length"};
    case DType::f16:
      return {1e-3, 1e-4, true, "one rounding of 2^-11 of a float sum"};
    case DType::bf16:
      return {8e-3, 1e-3, true, "one rounding of 2^-8 of a float sum"};
    default:
      return {0, 0, false, "integers are exact"};
  }
}

// gemm: y = alpha op(a) op(b) + beta c.
std::vector<TensorSpec> infer_gemm(const NodeInfo& info) {
  for (int i = 0; i < 2; ++i) {
    if (info.input(i).shape.rank() != 2) {
      info.fail(fmt::format("input {} is {}, expected a matrix", i, to_string(info.input(i))));
    }
  }
  const DType dtype = info.input(0).dtype;
  if (info.input(1).dtype != dtype || (info.has_input(2) && info.input(2).dtype != dtype)) {
    info.fail("operands have different types");
  }
  if (!is_floating(dtype) && (info.attrs->real("alpha") != 1 || info.attrs->real("beta") != 1)) {
    info.fail("alpha and beta of integer operands have to be 1");
  }
  const MatmulDims dims = matmul_dims(info);
  return {{dtype, dims.output}};
}

std::vector<ValueId> decompose_gemm(const NodeInfo& info, std::span<const ValueId> inputs,
                                    GraphBuilder& builder) {
  const double beta = info.attrs->real("beta");
  const AttrMap attrs = {{"trans_a", info.attrs->integer("trans_a")},
                         {"trans_b", info.attrs->integer("trans_b")},
                         {"alpha", info.attrs->real("alpha")}};
  std::vector<ValueId> operands = {inputs[0], inputs[1]};
  if (info.has_input(2) && beta != 0) {
    ValueId c = inputs[2];
    if (beta != 1) {
      Tensor factor = Tensor::empty({info.input(2).dtype, {}});
      store_values(factor, std::array{beta});
      c = builder.add("mul", {c, builder.constant(factor)});
    }
    operands.push_back(c);
  }
  return {builder.add("matmul", operands, attrs, info.name)};
}

}  // namespace

std::int64_t MatmulDims::offset(std::int64_t index, const Strides& strides) const {
  std::int64_t result = 0;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    result += index % batch[i] * strides[static_cast<std::size_t>(i)];
    index /= batch[i];
  }
  return result;
}

MatmulDims matmul_dims(const NodeInfo& info) {
  for (int i = 0; i < 2; ++i) {
    if (info.input(i).shape.rank() == 0) info.fail(fmt::format("input {} is a scalar", i));
  }
  const Shape a = as_matrix(info.input(0).shape, true);
  const Shape b = as_matrix(info.input(1).shape, false);
  MatmulDims dims;
  dims.trans_a = info.attrs->integer("trans_a") != 0;
  dims.trans_b = info.attrs->integer("trans_b") != 0;
  dims.m = a.dim(dims.trans_a ? -1 : -2);
  dims.k = a.dim(dims.trans_a ? -2 : -1);
  dims.n = b.dim(dims.trans_b ? -2 : -1);
  check_matmul(info, dims, b.dim(dims.trans_b ? -1 : -2));
  const auto leading = [](const Shape& shape) {
    return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
  };
  try {
    dims.batch = broadcast(leading(a), leading(b), "matmul");
    std::vector<std::int64_t> output(dims.batch.begin(), dims.batch.end());
    if (info.input(0).shape.rank() > 1) output.push_back(dims.m);
    if (info.input(1).shape.rank() > 1) output.push_back(dims.n);
    dims.output = Shape(output);
  } catch (const Error& error) {
    info.fail(error.what());
  }
  dims.a_strides = batch_strides(a, 2, dims.batch);
  dims.b_strides = batch_strides(b, 2, dims.batch);
  set_bias(info, dims);
  fold_batch(info, dims);
  return dims;
}

void register_matmul_ops(OpRegistry& ops) {
  OpDef matmul;
  matmul.name = "matmul";
  matmul.doc =
      "y = activation(alpha a b + bias + residual), matrix products over broadcast batch "
      "dimensions. Without its extras ONNX's MatMul.";
  matmul.min_inputs = 2;
  matmul.max_inputs = 4;
  matmul.attrs = {attr("trans_a", std::int64_t{0}, "1: the last two dims of a are swapped."),
                  attr("trans_b", std::int64_t{0}, "1: the last two dims of b are swapped."),
                  attr("alpha", 1.0, "Factor of the product.")};
  for (AttrDef& def : activation_attrs()) matmul.attrs.push_back(std::move(def));
  matmul.infer = infer_matmul;
  matmul.cost = matmul_cost;
  matmul.reference = reference_matmul;
  matmul.tolerance = product_tolerance;
  matmul.terms = matmul_terms;
  ops.add(std::move(matmul));

  OpDef gemm;
  gemm.name = "gemm";
  gemm.doc = "y = alpha a b + beta c for matrices; becomes matmul.";
  gemm.min_inputs = 2;
  gemm.max_inputs = 3;
  gemm.attrs = {attr("alpha", 1.0, "Factor of the product."), attr("beta", 1.0, "Factor of c."),
                attr("trans_a", std::int64_t{0}, "1: a is stored transposed."),
                attr("trans_b", std::int64_t{0}, "1: b is stored transposed.")};
  gemm.infer = infer_gemm;
  gemm.decompose = decompose_gemm;
  gemm.tolerance = product_tolerance;
  gemm.terms = matmul_terms;
  ops.add(std::move(gemm));
}

}  // namespace turnout
