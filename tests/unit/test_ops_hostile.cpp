// Nodes as a broken or malicious model may hold them: lines of tests/cases with their words changed
// at random. Whatever comes in, an op works or throws Error; run under sanitizers this finds
// overflows and reads beyond the end. TURNOUT_MUTATIONS sets how many changes each line gets.
#include <cstdlib>
#include <random>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"

using namespace turnout;

namespace {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(const std::string& line) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      if (end > at) words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    for (std::uint64_t changes = 1 + below(2); changes > 0 && words.size() > 1; --changes) {
      change(words, 1 + below(words.size() - 1));
    }
    std::string result = words[0];
    for (std::size_t i = 1; i < words.size(); ++i) result += ' ' + words[i];
    return result;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  template <std::size_t N>
  std::string one_of(const char* const (&choices)[N]) {
    return choices[below(N)];
  }

  std::string small() { return one_of({"0", "1", "2", "3", "5", "-1"}); }
  std::string large() {
    return one_of({"0", "1", "-1", "2", "-2", "3", "7", "8", "-9", "100", "65536", "2147483647",
                   "-2147483648", "4611686018427387904", "9223372036854775807",
                   "-9223372036854775808"});
  }
  std::string dtype() {
    return one_of({"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "u64", "bool"});
  }

  // The numbers of a list get other values, or the list another length. Dimensions of random data
  // stay small.
  void change_list(std::string& word, std::size_t first, bool is_data) {
    const std::size_t last = word.find_first_of("]})", first);
    if (last == std::string::npos) return;
    std::string list = word.substr(first + 1, last - first - 1);
    const std::string number = is_data ? small() : large();
    const std::size_t comma = list.rfind(',');
    switch (below(4)) {
      case 0:
        list = list.empty() ? number : list + ',' + number;
        break;
      case 1:
        list = comma == std::string::npos ? "" : list.substr(0, comma);
        break;
      case 2:
        list = number + (list.find(',') == std::string::npos ? "" : list.substr(list.find(',')));
        break;
      default:
        list = (comma == std::string::npos ? "" : list.substr(0, comma + 1)) + number;
    }
    word = word.substr(0, first + 1) + list + word.substr(last);
  }

  void change(std::vector<std::string>& words, std::size_t i) {
    std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::size_t list = word.find_first_of("[{(");
    if (below(12) == 0) {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (word.starts_with("outputs=")) {
      word = "outputs=" + one_of({"1", "2", "3"});
    } else if (equals != std::string::npos && list != std::string::npos) {
      change_list(word, list, false);
    } else if (equals != std::string::npos) {
      word =
          word.substr(0, equals + 1) + (word.find(':') == std::string::npos ? large() : "-99:99");
    } else if (list == std::string::npos) {
      word = "i64{" + large() + "}";
    } else if (below(5) == 0) {
      word = dtype() + word.substr(list);
    } else {
      change_list(word, list, word[list] == '[');
    }
  }

  std::mt19937_64 random_;
};

constexpr std::int64_t kMostElements = 1 << 16;  // so that a run of the test stays short

bool is_small(const Case& test) {
  std::int64_t elements = 0;
  const NodeInfo info = test.graph.info(NodeId{0});
  for (const TensorSpec* spec : info.outputs) {
    if (spec->elements() > kMostElements) return false;
    elements += spec->elements();
  }
  return elements <= kMostElements;
}

}  // namespace

TEST_CASE("changed nodes work or throw Error") {
  const char* given = std::getenv("TURNOUT_MUTATIONS");
  const int mutations = given != nullptr ? std::atoi(given) : 10;
  const char* only = std::getenv("TURNOUT_CASE");
  int worked = 0, refused = 0;
  for (const std::string& file : cases_files()) {
    for (const Case& original : read_cases(file, all_ops())) {
      Mutator mutator(std::hash<std::string>()(original.text));
      for (int i = 0; i < mutations; ++i) {
        const std::string line = only != nullptr ? only : mutator.mutate(original.text);
        INFO("TURNOUT_CASE='" << line << "' repeats it");
        try {
          const Case test = parse_case(line, "changed", all_ops());
          if (is_small(test)) reference_outputs(test);
          cost_of(test.graph.info(NodeId{0}));
          ++worked;
        } catch (const Error&) {
          ++refused;
        } catch (const std::exception& error) {
          FAIL("another exception: " << error.what());
        }
        if (only != nullptr) return;
      }
    }
  }
  CHECK(worked > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("dimensions beside an empty one may be huge") {
  for (const char* line : {
           "top_k f32[0,1000000000000] i64{5} outputs=2",
           "top_k f32[1000000000000,0] i64{0} outputs=2",
           "cum_sum f32[1000000000000,0] i64{1}",
           "cum_sum f32[0,1000000000000] i64{1}",
           "resize f32[0,4] - - i64{0,1000000000000} mode=linear",
           "pad f32[0,4] i64{0,1000000000000,0,0} mode=edge",
           "one_hot i64[0] i64(1000000000000) f32{0,1}",
           "arg_max f32[0,1000000000000] axis=1",
           "reduce_sum f32[0,1000000000000] i64{1}",
           "gather f32[1000000000000,0] i64{5}",
           "scatter_nd f32[1000000000000,0] i64{5}[1,1] f32[1,0]",
           "transpose f32[0,1000000000000]",
           "reverse_sequence f32[0,4] i64{0,0,0,0}",
           "expand f32[1,0] i64{1000000000000,0}",
       }) {
    INFO(line);
    const Case test = parse_case(line, "huge", all_ops());
    CHECK(reference_outputs(test)[0].elements() == 0);
  }
}
