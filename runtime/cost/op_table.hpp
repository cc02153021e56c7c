#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu_model/shape.hpp"

namespace turnout::gpu_model {

/// One row of a table of op times.
struct OpRow {
  std::size_t line = 0;  ///< of the file, from 1
  std::string op, pass, precision;
  OpShape shape;
  std::optional<double> seconds;  ///< given time; none: the cell is empty
  std::string refusal;            ///< why no time can be predicted; empty: one can
};

/// Reads a CSV table as DeepBench's results are given in: a header that names the columns
///   device,precision,op,pass,m,n,k,trans_a,trans_b,batch,in_ch,h,w,out_ch,filt_h,filt_w,pad_h,
///   pad_w,stride_h,stride_w,time_ms
/// in any order, others are ignored. op gemm (pass fwd) has m, n, k, trans_a and trans_b (N or T);
/// op conv (pass fwd, bwd_data or bwd_filter) the columns from batch to stride_w. precision fp32 or
/// fp16. time_ms may be empty. A row of another op or precision is kept with a refusal. No quotes.
/// Hostile input: Error invalid_argument with `where` and the line for everything else.
std::vector<OpRow> parse_op_table(std::string_view text, std::string_view where);

}  // namespace turnout::gpu_model
