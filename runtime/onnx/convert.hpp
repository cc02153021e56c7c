#pragma once

#include "runtime/onnx/node.hpp"

namespace turnout::onnx_import {

// Converters that do more than rename attributes. Each brings a form of some opset into that of the
// newest one.

// convert_inputs.cpp: attributes of old opsets that are inputs of the newest.
void convert_reduce(OnnxNode& node);
void convert_axes(OnnxNode& node);  // Squeeze, Unsqueeze
void convert_clip(OnnxNode& node);
void convert_slice(OnnxNode& node);
void convert_split(OnnxNode& node);
void convert_pad(OnnxNode& node);
void convert_top_k(OnnxNode& node);
void convert_resize(OnnxNode& node);
void convert_upsample(OnnxNode& node);

// convert_constants.cpp
void convert_constant(OnnxNode& node);
void convert_constant_of_shape(OnnxNode& node);
void convert_cast(OnnxNode& node);
void convert_cast_like(OnnxNode& node);
void convert_eye_like(OnnxNode& node);
void convert_if(OnnxNode& node);

// convert_math.cpp
void convert_variadic(OnnxNode& node);  // Max, Min, Sum
void convert_mean(OnnxNode& node);
void convert_softmax(OnnxNode& node);  // LogSoftmax, Hardmax
void convert_lp_normalization(OnnxNode& node);
void convert_batch_normalization(OnnxNode& node);
void convert_group_normalization(OnnxNode& node);
void convert_max_pool(OnnxNode& node);
void convert_dropout(OnnxNode& node);

// convert_loss.cpp
void convert_negative_log_likelihood(OnnxNode& node);
void convert_softmax_cross_entropy(OnnxNode& node);

}  // namespace turnout::onnx_import
