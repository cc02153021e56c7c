#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph.hpp"

namespace turnout {

// Files of tests/cases: one node a line, the same for tests of references, kernels and benchmarks.
//
//   softmax f32[2,3,4] axis=1                        random data
//   slice f32[5,6] i64{1,0} i64{4,5}                 lists that are known when the graph is bound
//   gather f32[5,6] i64{0,-1,2,2}[2,2]               the same with a shape
//   clip f32[7] - f32(0.5)                           an input left out; a scalar
//   hard_sigmoid f32[3] alpha=0.3 range=-4:4         attribute; bounds of the random data
//   split f32[7,2] num_outputs=3 outputs=3           more than one output
//   conv f32[1,3,9,9] f32[4,3,3,3] pads=[1,1,1,1]    list attribute
//
// Random data lies in range=lo:hi, which is -1:1 without it for floating types; integers lie in
// ints=lo:hi, 0:9 without it, both bounds included. # starts a comment.

/// One line: a bound graph of one node, and what goes in.
struct Case {
  std::string text;   ///< the line, as it was written
  std::string where;  ///< "softmax.txt:3"
  std::string op;
  Graph graph;
  std::vector<Tensor> inputs;  ///< of the node, in order; undefined where one is left out
};

/// What random data is to the graph: inputs, or, all but the first, constants (known weights).
enum class RandomData { inputs, known_after_first };

/// One case; errors name `where`. Data depends on the line's text alone.
Case parse_case(const std::string& line, const std::string& where, const OpRegistry& ops,
                RandomData data = RandomData::inputs);
/// Cases of a text; errors name `file` and the line.
std::vector<Case> parse_cases(std::string_view text, const std::string& file, const OpRegistry& ops,
                              RandomData data = RandomData::inputs);
/// Cases of a file; Error io when it can't be read.
std::vector<Case> read_cases(const std::string& path, const OpRegistry& ops,
                             RandomData data = RandomData::inputs);

/// tests/cases of the source tree: the environment's TURNOUT_SOURCE, or that of the build.
std::string cases_folder();
/// Paths of all cases files, by name.
std::vector<std::string> cases_files();

/// Pointers to the node's inputs; null where one is left out. They refer to the case.
std::vector<const Tensor*> operands(const Case& test);
/// Those of the node's inputs that are inputs of the graph.
std::vector<Tensor> graph_inputs(const Case& test);
/// The node's outputs by its op's reference; ops without one by what they decompose into.
std::vector<Tensor> reference_outputs(const Case& test);

}  // namespace turnout
