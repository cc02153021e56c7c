#pragma once

#include "ops/activation.hpp"
#include "ops/functor_types.hpp"

// Functors of one operand. See functors.hpp.
namespace turnout {

/// Defaults of the members every functor has.
template <TypeMask Types, bool Exact = false, int Flops = 1>
struct UnaryFunctor {
  static constexpr TypeMask types = Types;
  static constexpr bool exact = Exact;
  static constexpr int flops = Flops;
  static std::vector<AttrDef> attrs() { return {}; }
};

// A functor without attributes that is one floating-point expression of x.
#define TURNOUT_UNARY(Struct, op_name, op_flops, op_doc, expression) \
  struct Struct : UnaryFunctor<kFloatingTypes, false, op_flops> {    \
    static constexpr std::string_view name = op_name;                \
    static constexpr std::string_view doc = op_doc;                  \
    static Struct make(const AttrMap&) { return {}; }                \
    template <typename T>                                            \
    TURNOUT_HD T operator()(T x) const {                             \
      return expression;                                             \
    }                                                                \
  };

TURNOUT_UNARY(Sqrt, "sqrt", 4, "Square root; NaN for negative x.", std::sqrt(x))
TURNOUT_UNARY(Reciprocal, "reciprocal", 4, "1 / x.", T(1) / x)
TURNOUT_UNARY(Exp, "exp", 10, "e to the power of x.", std::exp(x))
TURNOUT_UNARY(Log, "log", 10, "Natural logarithm.", std::log(x))
TURNOUT_UNARY(Sin, "sin", 20, "Sine.", std::sin(x))
TURNOUT_UNARY(Cos, "cos", 20, "Cosine.", std::cos(x))
TURNOUT_UNARY(Tan, "tan", 20, "Tangent.", std::tan(x))
TURNOUT_UNARY(Asin, "asin", 20, "Arc sine.", std::asin(x))
TURNOUT_UNARY(Acos, "acos", 20, "Arc cosine.", std::acos(x))
TURNOUT_UNARY(Atan, "atan", 20, "Arc tangent.", std::atan(x))
TURNOUT_UNARY(Sinh, "sinh", 20, "Hyperbolic sine.", std::sinh(x))
TURNOUT_UNARY(Cosh, "cosh", 20, "Hyperbolic cosine.", std::cosh(x))
TURNOUT_UNARY(Tanh, "tanh", 15, "Hyperbolic tangent.", std::tanh(x))
TURNOUT_UNARY(Asinh, "asinh", 20, "Inverse hyperbolic sine.", std::asinh(x))
TURNOUT_UNARY(Acosh, "acosh", 20, "Inverse hyperbolic cosine.", std::acosh(x))
TURNOUT_UNARY(Atanh, "atanh", 20, "Inverse hyperbolic tangent.", std::atanh(x))
TURNOUT_UNARY(Erf, "erf", 15, "Gauss error function.", std::erf(x))
TURNOUT_UNARY(Sigmoid, "sigmoid", 15, "1 / (1 + exp(-x)).",
              activate(Activation::sigmoid, x, T(0), T(0)))
TURNOUT_UNARY(Silu, "silu", 15, "x * sigmoid(x).", activate(Activation::silu, x, T(0), T(0)))
TURNOUT_UNARY(HardSwish, "hard_swish", 5, "x * min(1, max(0, x / 6 + 1 / 2)).",
              activate(Activation::hard_swish, x, T(0), T(0)))
TURNOUT_UNARY(Softsign, "softsign", 5, "x / (1 + |x|).", x / (T(1) + std::abs(x)))
TURNOUT_UNARY(Softplus, "softplus", 25, "log(exp(x) + 1), without overflow.",
              (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::abs(x))))
TURNOUT_UNARY(Mish, "mish", 40, "x * tanh(softplus(x)).", x* std::tanh(Softplus()(x)))
#undef TURNOUT_UNARY

struct Abs : UnaryFunctor<kNumericTypes, true> {
  static constexpr std::string_view name = "abs";
  static constexpr std::string_view doc = "|x|. The least signed integer stays as it is.";
  static Abs make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < T(0) ? static_cast<T>(detail::Wrapping<T>(0) - detail::Wrapping<T>(x)) : x;
    }
  }
};

struct Neg : UnaryFunctor<kSignedNumbers, true> {
  static constexpr std::string_view name = "neg";
  static constexpr std::string_view doc = "-x. The least signed integer stays as it is.";
  static Neg make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(detail::Wrapping<T>(0) - detail::Wrapping<T>(x));
    }
  }
};

struct Floor : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "floor";
  static constexpr std::string_view doc = "Largest integer that is not above x.";
  static Floor make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return std::floor(x);
  }
};

struct Ceil : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "ceil";
  static constexpr std::string_view doc = "Smallest integer that is not below x.";
  static Ceil make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return std::ceil(x);
  }
};

struct Round : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "round";
  static constexpr std::string_view doc = "Nearest integer; halves go to the even one.";
  static Round make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return std::nearbyint(x);
  }
};

struct Sign : UnaryFunctor<kNumericTypes, true> {
  static constexpr std::string_view name = "sign";
  static constexpr std::string_view doc = "-1, 0 or 1; NaN stays NaN.";
  static Sign make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    if (x > T(0)) return T(1);
    if (x < T(0)) return static_cast<T>(-1);
    return x == T(0) ? T(0) : x;
  }
};

struct Relu : UnaryFunctor<kSignedNumbers, true> {
  static constexpr std::string_view name = "relu";
  static constexpr std::string_view doc = "max(x, 0); NaN stays NaN.";
  static Relu make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct Gelu : UnaryFunctor<kFloatingTypes, false, 20> {
  static constexpr std::string_view name = "gelu";
  static constexpr std::string_view doc =
      "x / 2 * (1 + erf(x / sqrt(2))), or its tanh approximation.";
  bool approximate = false;
  static std::vector<AttrDef> attrs() {
    return {attr("approximate", std::string("none"), "none or tanh.")};
  }
  static Gelu make(const AttrMap& attrs) {
    Gelu op;
    op.approximate = attrs.text("approximate") == "tanh";
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return approximate ? activate(Activation::gelu_tanh, x, T(0), T(0))
                       : activate(Activation::gelu, x, T(0), T(0));
  }
};

struct Swish : UnaryFunctor<kFloatingTypes, false, 15> {
  static constexpr std::string_view name = "swish";
  static constexpr std::string_view doc = "x * sigmoid(alpha * x).";
  double alpha = 0;
  static std::vector<AttrDef> attrs() { return {attr("alpha", 1.0, "Scale inside the sigmoid.")}; }
  static Swish make(const AttrMap& attrs) {
    Swish op;
    op.alpha = attrs.real("alpha");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return x / (T(1) + std::exp(-static_cast<T>(alpha) * x));
  }
};

struct HardSigmoid : UnaryFunctor<kFloatingTypes, false, 4> {
  static constexpr std::string_view name = "hard_sigmoid";
  static constexpr std::string_view doc = "min(1, max(0, alpha * x + beta)).";
  double alpha = 0, beta = 0;
  static std::vector<AttrDef> attrs() {
    return {attr("alpha", 0.2, "Slope."), attr("beta", 0.5, "Value at 0.")};
  }
  static HardSigmoid make(const AttrMap& attrs) {
    HardSigmoid op;
    op.alpha = attrs.real("alpha");
    op.beta = attrs.real("beta");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return activate(Activation::hard_sigmoid, x, static_cast<T>(alpha), static_cast<T>(beta));
  }
};

struct Elu : UnaryFunctor<kFloatingTypes, false, 12> {
  static constexpr std::string_view name = "elu";
  static constexpr std::string_view doc = "x, or alpha * (exp(x) - 1) where x < 0.";
  double alpha = 0;
  static std::vector<AttrDef> attrs() { return {attr("alpha", 1.0, "Scale below 0.")}; }
  static Elu make(const AttrMap& attrs) {
    Elu op;
    op.alpha = attrs.real("alpha");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return x < T(0) ? static_cast<T>(alpha) * std::expm1(x) : x;
  }
};

struct Selu : UnaryFunctor<kFloatingTypes, false, 14> {
  static constexpr std::string_view name = "selu";
  static constexpr std::string_view doc =
      "gamma * x, or gamma * alpha * (exp(x) - 1) where x <= 0.";
  double alpha = 0, gamma = 0;
  static std::vector<AttrDef> attrs() {
    return {attr("alpha", 1.67326319217681884765625, "Scale below 0."),
            attr("gamma", 1.05070102214813232421875, "Scale of everything.")};
  }
  static Selu make(const AttrMap& attrs) {
    Selu op;
    op.alpha = attrs.real("alpha");
    op.gamma = attrs.real("gamma");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return static_cast<T>(gamma) * (x > T(0) ? x : static_cast<T>(alpha) * std::expm1(x));
  }
};

struct Celu : UnaryFunctor<kFloatingTypes, false, 16> {
  static constexpr std::string_view name = "celu";
  static constexpr std::string_view doc = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).";
  double alpha = 0;
  static std::vector<AttrDef> attrs() { return {attr("alpha", 1.0, "Scale below 0; not 0.")}; }
  static Celu make(const AttrMap& attrs) {
    Celu op;
    op.alpha = attrs.real("alpha");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    const T low = static_cast<T>(alpha) * std::expm1(x / static_cast<T>(alpha));
    return (x < T(0) ? T(0) : x) + (low > T(0) ? T(0) : low);
  }
};

struct LeakyRelu : UnaryFunctor<kFloatingTypes, false, 2> {
  static constexpr std::string_view name = "leaky_relu";
  static constexpr std::string_view doc = "x, or alpha * x where x < 0.";
  double alpha = 0;
  static std::vector<AttrDef> attrs() { return {attr("alpha", 0.01, "Slope below 0.")}; }
  static LeakyRelu make(const AttrMap& attrs) {
    LeakyRelu op;
    op.alpha = attrs.real("alpha");
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return x < T(0) ? static_cast<T>(alpha) * x : x;
  }
};

struct ThresholdedRelu : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "thresholded_relu";
  static constexpr std::string_view doc = "x where x > alpha, else 0.";
  double alpha = 0;
  static std::vector<AttrDef> attrs() { return {attr("alpha", 1.0, "Threshold.")}; }
  static ThresholdedRelu make(const AttrMap& attrs) {
    ThresholdedRelu op;
    op.alpha = static_cast<float>(attrs.real("alpha"));  // ONNX attributes are floats
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return x > static_cast<T>(alpha) ? x : T(0);
  }
};

struct Shrink : UnaryFunctor<kNumericTypes, false, 3> {
  static constexpr std::string_view name = "shrink";
  static constexpr std::string_view doc =
      "x + bias where x < -lambd, x - bias where x > lambd, else 0.";
  double bias = 0, lambd = 0;
  static std::vector<AttrDef> attrs() {
    return {attr("bias", 0.0, "Moved towards 0."), attr("lambd", 0.5, "Half width of the gap.")};
  }
  static Shrink make(const AttrMap& attrs) {
    Shrink op;
    op.bias = static_cast<float>(attrs.real("bias"));
    op.lambd = static_cast<float>(attrs.real("lambd"));
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const auto value = static_cast<Real>(x);
    if (value < static_cast<Real>(-lambd)) return convert<T>(value + static_cast<Real>(bias));
    if (value > static_cast<Real>(lambd)) return convert<T>(value - static_cast<Real>(bias));
    return T(0);
  }
};

struct Not : UnaryFunctor<kBooleanType, true> {
  static constexpr std::string_view name = "not";
  static constexpr std::string_view doc = "Logical negation.";
  static Not make(const AttrMap&) { return {}; }
  TURNOUT_HD bool operator()(bool x) const { return !x; }
};

struct BitwiseNot : UnaryFunctor<kIntegerTypes, true> {
  static constexpr std::string_view name = "bitwise_not";
  static constexpr std::string_view doc = "All bits inverted.";
  static BitwiseNot make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

struct IsNan : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "is_nan";
  static constexpr std::string_view doc = "True where x is not a number.";
  static IsNan make(const AttrMap&) { return {}; }
  template <typename T>
  TURNOUT_HD bool operator()(T x) const {
    return x != x;
  }
};

struct IsInf : UnaryFunctor<kFloatingTypes, true> {
  static constexpr std::string_view name = "is_inf";
  static constexpr std::string_view doc = "True where x is infinite.";
  bool negative = true, positive = true;
  static std::vector<AttrDef> attrs() {
    return {attr("detect_negative", std::int64_t{1}, "Count -infinity."),
            attr("detect_positive", std::int64_t{1}, "Count +infinity.")};
  }
  static IsInf make(const AttrMap& attrs) {
    IsInf op;
    op.negative = attrs.integer("detect_negative") != 0;
    op.positive = attrs.integer("detect_positive") != 0;
    return op;
  }
  template <typename T>
  TURNOUT_HD bool operator()(T x) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return (positive && x == kInfinity) || (negative && x == -kInfinity);
  }
};

using UnaryOps =
    TypeList<Abs, Neg, Sqrt, Reciprocal, Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh,
             Tanh, Asinh, Acosh, Atanh, Erf, Floor, Ceil, Round, Sign, Sigmoid, Relu, Gelu, Silu,
             Swish, Softplus, Softsign, Mish, HardSigmoid, HardSwish, Elu, Selu, Celu, LeakyRelu,
             ThresholdedRelu, Shrink, Not, BitwiseNot, IsNan, IsInf>;

}  // namespace turnout
