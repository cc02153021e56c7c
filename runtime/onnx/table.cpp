// The conversion table: every op of ONNX's own domain, and what it becomes. A line without a
// function renames: the same inputs, attributes under their snake_case names. Lines with a reason
// are refusals. Ops that aren't here are refused without one.
#include <map>

#include "runtime/onnx/convert.hpp"

namespace turnout::onnx_import {
namespace {

constexpr std::string_view kControlFlow = "control flow that depends on data";
constexpr std::string_view kDataShape = "the output's shape depends on data";
constexpr std::string_view kSequence = "sequences and optional values";
constexpr std::string_view kString = "strings";
constexpr std::string_view kRandom = "random numbers";
constexpr std::string_view kRecurrent = "recurrent layers";
constexpr std::string_view kQuantized = "quantized integers";
constexpr std::string_view kSignal = "signal processing";

// clang-format off
constexpr Conversion kTable[] = {
    // One input, element by element.
    {"Abs", "abs"}, {"Acos", "acos"}, {"Acosh", "acosh"}, {"Asin", "asin"}, {"Asinh", "asinh"},
    {"Atan", "atan"}, {"Atanh", "atanh"}, {"BitwiseNot", "bitwise_not"}, {"Ceil", "ceil"},
    {"Celu", "celu"}, {"Cos", "cos"}, {"Cosh", "cosh"}, {"Elu", "elu"}, {"Erf", "erf"},
    {"Exp", "exp"}, {"Floor", "floor"}, {"Gelu", "gelu"},
    {"HardSigmoid", "hard_sigmoid"}, {"HardSwish", "hard_swish"}, {"Identity", "identity"},
    {"IsInf", "is_inf"}, {"IsNaN", "is_nan"}, {"LeakyRelu", "leaky_relu"}, {"Log", "log"},
    {"Mish", "mish"}, {"Neg", "neg"}, {"Not", "not"}, {"Reciprocal", "reciprocal"},
    {"Relu", "relu"}, {"Round", "round"}, {"Selu", "selu"}, {"Shrink", "shrink"},
    {"Sigmoid", "sigmoid"}, {"Sign", "sign"}, {"Sin", "sin"}, {"Sinh", "sinh"},
    {"Softplus", "softplus"}, {"Softsign", "softsign"}, {"Sqrt", "sqrt"}, {"Swish", "swish"},
    {"Tan", "tan"}, {"Tanh", "tanh"}, {"ThresholdedRelu", "thresholded_relu"},
    {"Dropout", "identity", convert_dropout},
    // Two inputs and more.
    {"Add", "add"}, {"And", "and"}, {"BitShift", "bit_shift"}, {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"}, {"BitwiseXor", "bitwise_xor"}, {"Div", "div"},
    {"Equal", "equal"}, {"Greater", "greater"}, {"GreaterOrEqual", "greater_or_equal"},
    {"Less", "less"}, {"LessOrEqual", "less_or_equal"}, {"Max", "max", convert_variadic},
    {"Mean", "", convert_mean}, {"Min", "min", convert_variadic}, {"Mod", "mod"}, {"Mul", "mul"},
    {"Or", "or"}, {"PRelu", "prelu"}, {"Pow", "pow"}, {"Sub", "sub"},
    {"Sum", "add", convert_variadic}, {"Xor", "xor"},
    // Selection and casts.
    {"Cast", "cast", convert_cast}, {"CastLike", "cast", convert_cast_like},
    {"Clip", "clip", convert_clip}, {"OneHot", "one_hot"}, {"Where", "where"},
    // Reductions.
    {"ArgMax", "arg_max"}, {"ArgMin", "arg_min"}, {"CumProd", "cum_prod"}, {"CumSum", "cum_sum"},
    {"ReduceL1", "reduce_l1", convert_reduce}, {"ReduceL2", "reduce_l2", convert_reduce},
    {"ReduceLogSum", "reduce_log_sum", convert_reduce},
    {"ReduceLogSumExp", "reduce_log_sum_exp", convert_reduce},
    {"ReduceMax", "reduce_max", convert_reduce}, {"ReduceMean", "reduce_mean", convert_reduce},
    {"ReduceMin", "reduce_min", convert_reduce}, {"ReduceProd", "reduce_prod", convert_reduce},
    {"ReduceSum", "reduce_sum", convert_reduce},
    {"ReduceSumSquare", "reduce_sum_square", convert_reduce}, {"TopK", "top_k", convert_top_k},
    // Shapes.
    {"Constant", "", convert_constant}, {"ConstantOfShape", "constant_of_shape", convert_constant_of_shape},
    {"Expand", "expand"}, {"EyeLike", "eye_like", convert_eye_like}, {"Flatten", "flatten"},
    {"Range", "range"}, {"Reshape", "reshape"}, {"Shape", "shape"}, {"Size", "size"},
    {"Squeeze", "squeeze", convert_axes}, {"Unsqueeze", "unsqueeze", convert_axes},
    // Movement.
    {"Concat", "concat"}, {"DepthToSpace", "depth_to_space"}, {"Gather", "gather"},
    {"GatherElements", "gather_elements"}, {"GatherND", "gather_nd"}, {"Pad", "pad", convert_pad},
    {"Resize", "resize", convert_resize}, {"ReverseSequence", "reverse_sequence"},
    {"Scatter", "scatter_elements"}, {"ScatterElements", "scatter_elements"},
    {"ScatterND", "scatter_nd"}, {"Slice", "slice", convert_slice},
    {"SpaceToDepth", "space_to_depth"}, {"Split", "split", convert_split}, {"Tile", "tile"},
    {"Transpose", "transpose"}, {"Trilu", "trilu"}, {"Upsample", "resize", convert_upsample},
    // Products, windows, normalization.
    {"AveragePool", "average_pool"},
    {"BatchNormalization", "batch_normalization", convert_batch_normalization}, {"Conv", "conv"},
    {"ConvTranspose", "conv_transpose"}, {"Einsum", "einsum"}, {"Gemm", "gemm"},
    {"GlobalAveragePool", "global_average_pool"}, {"GlobalLpPool", "global_lp_pool"},
    {"GlobalMaxPool", "global_max_pool"},
    {"GroupNormalization", "group_normalization", convert_group_normalization},
    {"Hardmax", "hardmax", convert_softmax}, {"InstanceNormalization", "instance_normalization"},
    {"LRN", "lrn"}, {"LayerNormalization", "layer_normalization"},
    {"LogSoftmax", "log_softmax", convert_softmax}, {"LpNormalization", "div", convert_lp_normalization},
    {"LpPool", "lp_pool"}, {"MatMul", "matmul"}, {"MaxPool", "max_pool", convert_max_pool},
    {"MeanVarianceNormalization", "mean_variance_normalization"},
    {"RMSNormalization", "rms_normalization"}, {"Softmax", "softmax", convert_softmax},
    // Losses.
    {"NegativeLogLikelihoodLoss", "", convert_negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", "", convert_softmax_cross_entropy},
    // Graphs inside.
    {"If", "", convert_if}, {"Loop", "", nullptr, kControlFlow}, {"Scan", "", nullptr, kControlFlow},
    {"SequenceMap", "", nullptr, kSequence},
    // Refused, with the reason.
    {"Compress", "", nullptr, kDataShape}, {"NonMaxSuppression", "", nullptr, kDataShape},
    {"NonZero", "", nullptr, kDataShape}, {"Unique", "", nullptr, kDataShape},
    {"ConcatFromSequence", "", nullptr, kSequence}, {"Optional", "", nullptr, kSequence},
    {"OptionalGetElement", "", nullptr, kSequence}, {"OptionalHasElement", "", nullptr, kSequence},
    {"SequenceAt", "", nullptr, kSequence}, {"SequenceConstruct", "", nullptr, kSequence},
    {"SequenceEmpty", "", nullptr, kSequence}, {"SequenceErase", "", nullptr, kSequence},
    {"SequenceInsert", "", nullptr, kSequence}, {"SequenceLength", "", nullptr, kSequence},
    {"SplitToSequence", "", nullptr, kSequence}, {"ImageDecoder", "", nullptr, "image files"},
    {"RegexFullMatch", "", nullptr, kString}, {"StringConcat", "", nullptr, kString},
    {"StringNormalizer", "", nullptr, kString}, {"StringSplit", "", nullptr, kString},
    {"TfIdfVectorizer", "", nullptr, kString}, {"Bernoulli", "", nullptr, kRandom},
    {"Multinomial", "", nullptr, kRandom}, {"RandomNormal", "", nullptr, kRandom},
    {"RandomNormalLike", "", nullptr, kRandom}, {"RandomUniform", "", nullptr, kRandom},
    {"RandomUniformLike", "", nullptr, kRandom}, {"GRU", "", nullptr, kRecurrent},
    {"LSTM", "", nullptr, kRecurrent}, {"RNN", "", nullptr, kRecurrent},
    {"ConvInteger", "", nullptr, kQuantized}, {"DequantizeLinear", "", nullptr, kQuantized},
    {"DynamicQuantizeLinear", "", nullptr, kQuantized}, {"MatMulInteger", "", nullptr, kQuantized},
    {"QLinearConv", "", nullptr, kQuantized}, {"QLinearMatMul", "", nullptr, kQuantized},
    {"QuantizeLinear", "", nullptr, kQuantized}, {"BlackmanWindow", "", nullptr, kSignal},
    {"DFT", "", nullptr, kSignal}, {"HammingWindow", "", nullptr, kSignal},
    {"HannWindow", "", nullptr, kSignal}, {"MelWeightMatrix", "", nullptr, kSignal},
    {"STFT", "", nullptr, kSignal},
};
// clang-format on

}  // namespace

const Conversion* find_conversion(std::string_view onnx_op) {
  static const auto table = [] {
    std::map<std::string_view, const Conversion*> result;
    for (const Conversion& line : kTable) result.emplace(line.onnx, &line);
    return result;
  }();
  const auto at = table.find(onnx_op);
  return at == table.end() ? nullptr : at->second;
}

}  // namespace turnout::onnx_import
