#include <cstring>
#include <random>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/graph.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t kAllData = 1 << 20;

void check_refused(const std::string& text, const std::string& why) {
  INFO(text);
  try {
    parse_graph(text, all_ops(), "g.txt");
    FAIL_CHECK("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_model);
    CHECK_THAT(error.what(), ContainsSubstring(why));
  }
}

void check_round_trip(const Graph& graph) {
  const std::string text = to_text(graph, kAllData);
  INFO(text);
  const Graph again = parse_graph(text, all_ops());
  const Graph& same = graph.bound() ? again.bind({}) : again;
  CHECK(to_text(same, kAllData) == text);
  REQUIRE(same.nodes().size() == graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    CHECK(same.nodes()[i].name == graph.nodes()[i].name);
    CHECK(same.nodes()[i].attrs == graph.nodes()[i].attrs);
  }
}

Graph odd_graph() {
  GraphBuilder b(all_ops(), "an \"odd\"\n\\name");
  const ValueId x = b.input("x y", DType::f32, {"N", 3, "batch size", "7up"});
  const ValueId scalar = b.constant(Tensor::scalar(0.1F), "%scale");
  const ValueId y = b.add("mul", {x, scalar}, {}, "conv/1:0");
  b.output(b.add("relu", {y}, {}, "a \"node\""), "out put");
  b.output(y, "");
  return b.build();
}

}  // namespace

TEST_CASE("the text form of a graph reads back as the same graph") {
  check_round_trip(odd_graph());
  const Graph bound = odd_graph().bind({{"N", 2}, {"batch size", 4}, {"7up", 5}});
  check_round_trip(bound);
  CHECK_THAT(to_text(bound), ContainsSubstring(": f32[2,3,4,5]"));
}

TEST_CASE("the text form holds every op with its attributes") {
  int graphs = 0;
  for (const std::string& file : cases_files()) {
    for (const Case& test : read_cases(file, all_ops())) {
      if (test.graph.nodes().empty()) continue;
      INFO(test.where << ": " << test.text);
      check_round_trip(test.graph);
      ++graphs;
    }
  }
  CHECK(graphs > 500);
}

TEST_CASE("data of constants keeps every bit") {
  GraphBuilder b(all_ops(), "data");
  std::mt19937_64 random(5);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8,
                            DType::i64, DType::u64, DType::boolean}) {
    Tensor tensor = Tensor::empty({dtype, {64}});
    dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
      for (T& value : tensor.values<T>()) {
        const std::uint64_t bits = random();
        if constexpr (std::is_same_v<T, bool>) {
          value = bits % 2 == 0;
        } else {
          std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
          if constexpr (!std::is_integral_v<T>) {
            if (static_cast<double>(value) != static_cast<double>(value)) value = T(1.0F / 3);
          }
        }
      }
    });
    b.output(b.constant(tensor), std::string(to_string(dtype)));
  }
  const Graph graph = b.build();
  const Graph again = parse_graph(to_text(graph, 64), all_ops());
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Tensor& a = graph.value(graph.outputs()[i]).known;
    const Tensor& c = again.value(again.outputs()[i]).known;
    REQUIRE(a.spec() == c.spec());
    CHECK(std::memcmp(a.address(), c.address(), a.bytes()) == 0);
  }
}

TEST_CASE("constants without data come from the caller") {
  const std::string text = "graph \"g\"\nconstant %w : f32[2]  # two\n\noutput \"y\" = %w\n";
  check_refused(text, "g.txt:2: constant 'w' has no data");
  const Tensor w = Tensor::of<float>({2}, std::vector<float>{3, 4});
  const Graph graph =
      parse_graph(text, all_ops(), "g.txt", [&](const std::string& name, const TensorSpec&) {
        CHECK(name == "w");
        return w;
      });
  CHECK(graph.value(graph.outputs()[0]).known.address() == w.address());
  CHECK_THROWS_WITH(
      parse_graph(text, all_ops(), "g.txt",
                  [](const std::string&, const TensorSpec&) { return Tensor::scalar(1.0F); }),
      ContainsSubstring("constant 'w' is f32[], not f32[2]"));
}

TEST_CASE("text that is no graph is refused with its line") {
  const std::string head = "graph \"g\"\ninput %x : f32[N,3]\n";
  check_refused("", "no line 'graph");
  check_refused("input %x : f32[1]\n", "g.txt:1: the line 'graph");
  check_refused("graph \"g\n", "no closing quote");
  check_refused("graph \"\\q\"\n", "backslash");
  check_refused(head + "graph \"h\"\n", "g.txt:3: a second graph");
  check_refused(head, "there is no output");
  check_refused(head + "input %x : f32[1]\n", "g.txt:3: 'x' is defined already");
  check_refused(head + "input %y : f99[1]\n", "no element type 'f99'");
  check_refused(head + "input %y : f32[-1]\n", "negative");
  check_refused(head + "input %y : f32[1,2\n", "expected ']' at the end of the line");
  check_refused(head + "input %y : f32[1,1,1,1,1,1,1,1,1]\n", "rank 9");
  check_refused(head + "input %y : f32[2x]\n", "nothing expected before 'x'");
  check_refused(head + "%y = nothing(%x)\n", "nothing");
  check_refused(head + "%y = relu(%z)\n", "'z' isn't defined");
  check_refused(head + "%y = relu(%y)\n", "'y' isn't defined");
  check_refused(head + "%y = relu(%x, %x)\n", "inputs");
  check_refused(head + "%y, %z = relu(%x)\n", "outputs");
  check_refused(head + "%y = softmax(%x) {axis=1.5}\n", "g.txt:3");
  check_refused(head + "%y = softmax(%x) {axes=1}\n", "no attribute 'axes'");
  check_refused(head + "%y = softmax(%x) {axis=1, axis=1}\n", "twice");
  check_refused(head + "%y = relu(%x) @\"n\"\n%z = relu(%x) @\"n\"\n", "a second node 'n'");
  check_refused(head + "%y = relu(%x) more\n", "nothing expected before 'more'");
  check_refused(head + "nonsense\n", "'nonsense' starts no line");
  check_refused(head + "constant %c : i8[2] = [1]\n", "1 values for i8[2]");
  check_refused(head + "constant %c : i8[1] = [300]\n", "expected an integer");
  check_refused(head + "constant %c : bool[1] = [2]\n", "0 or 1");
  check_refused(head + "constant %c : f32[99999999999,99999999999] = [1]\n", "g.txt:3");
  check_refused("graph \"g\"\ninput %x : f32[4]\n%y = relu(%x) : f32[5]\noutput \"y\" = %y\n",
                "g.txt:3: 'y' is f32[4], not f32[5]");
}

TEST_CASE("damaged text is an error or another graph, never a crash") {
  const std::string text = to_text(odd_graph(), kAllData);
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0 && !damaged.empty(); --edits) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 9);
          break;
        default:
          damaged.insert(at, text.substr(random() % text.size(), random() % 9));
      }
    }
    try {
      verify(parse_graph(damaged, all_ops()));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}
