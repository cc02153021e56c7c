#include "tests/support/cases.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ops/convert.hpp"
#include "tests/support/interpret.hpp"

namespace turnout {
namespace {

namespace fs = std::filesystem;

// Bounds of random data, and outputs: the words of a line that are no attributes.
struct Settings {
  double low = -1, high = 1;
  std::int64_t int_low = 0, int_high = 9;
  std::size_t outputs = 1;
};

// std::hash may differ between libraries; data should not.
std::uint64_t seed_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

class LineParser {
 public:
  LineParser(std::string text, std::string where, const OpRegistry& ops, RandomData data)
      : text_(std::move(text)),
        where_(std::move(where)),
        ops_(ops),
        data_(data),
        random_(seed_of(text_)) {}

  Case parse() {
    std::istringstream stream(text_);
    std::string op, word;
    stream >> op;
    std::vector<std::string> operands, settings;
    while (stream >> word) {
      const bool is_setting = word.find('=') != std::string::npos;
      (is_setting ? settings : operands).push_back(word);
    }
    const OpDef* def = ops_.find(op);
    if (def == nullptr) refuse("there is no op '" + op + "'");
    for (const std::string& setting : settings) add_setting(*def, setting);
    GraphBuilder builder(ops_, op);
    std::vector<ValueId> ids;
    for (const std::string& operand : operands) ids.push_back(add_operand(builder, operand));
    Case test{text_, where_, op, {}, {}};
    try {
      const std::vector<std::string> names(settings_.outputs);
      for (ValueId id : builder.add_node(*def, ids, attrs_, op, names)) builder.output(id);
      test.graph = builder.build().bind({});
    } catch (const Error& error) {
      refuse(error.what());
    }
    test.inputs = std::move(inputs_);
    return test;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::invalid_argument, "{}: '{}': {}", where_, text_, why);
  }

  double number(std::string_view text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse(fmt::format("'{}' is not a number", text));
    }
    return value;
  }

  std::int64_t integer(std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse(fmt::format("'{}' is not an integer", text));
    }
    return value;
  }

  std::vector<std::string> parts(std::string_view list, char separator) const {
    std::vector<std::string> result;
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(separator), list.size());
      result.emplace_back(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    return result;
  }

  // What lies between brackets at the end of `word`.
  std::string_view inside(std::string_view word, char open, char close) const {
    if (word.size() < 2 || word.front() != open || word.back() != close) {
      refuse(fmt::format("'{}' is not {}...{}", word, open, close));
    }
    return word.substr(1, word.size() - 2);
  }

  Shape shape(std::string_view brackets) const {
    std::vector<std::int64_t> dims;
    for (const std::string& dim : parts(inside(brackets, '[', ']'), ',')) {
      dims.push_back(integer(dim));
    }
    return Shape(dims);
  }

  AttrValue value(AttrType type, std::string_view text) const {
    switch (type) {
      case AttrType::integer:
        return integer(text);
      case AttrType::real:
        return number(text);
      case AttrType::text:
        return std::string(text);
      case AttrType::integers: {
        std::vector<std::int64_t> values;
        for (const auto& part : parts(inside(text, '[', ']'), ',')) values.push_back(integer(part));
        return values;
      }
      case AttrType::reals: {
        std::vector<double> values;
        for (const auto& part : parts(inside(text, '[', ']'), ',')) values.push_back(number(part));
        return values;
      }
      case AttrType::texts:
        return parts(inside(text, '[', ']'), ',');
    }
    refuse("unknown type of attribute");
  }

  void add_setting(const OpDef& def, const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    const std::string text = word.substr(name.size() + 1);
    const auto bounds = [&] {
      const auto both = parts(text, ':');
      if (both.size() != 2) refuse("'" + word + "' is not low:high");
      return both;
    };
    if (name == "range") {
      settings_.low = number(bounds()[0]);
      settings_.high = number(bounds()[1]);
      return;
    }
    if (name == "ints") {
      settings_.int_low = integer(bounds()[0]);
      settings_.int_high = integer(bounds()[1]);
      return;
    }
    if (name == "outputs") {
      settings_.outputs = static_cast<std::size_t>(integer(text));
      return;
    }
    const auto at = std::find_if(def.attrs.begin(), def.attrs.end(),
                                 [&](const AttrDef& attr) { return attr.name == name; });
    if (at == def.attrs.end()) refuse("there is no attribute '" + name + "'");
    attrs_.set(name, value(at->type, text));
  }

  ValueId add_operand(GraphBuilder& builder, const std::string& word) {
    if (word == "-") {
      inputs_.emplace_back();
      return {};
    }
    const std::size_t end = word.find_first_of("[{(");
    const auto dtype = parse_dtype(word.substr(0, end));
    if (end == std::string::npos || !dtype) refuse("'" + word + "' is no operand");
    const std::string_view rest = std::string_view(word).substr(end);
    if (rest[0] == '[') {
      inputs_.push_back(random_tensor({*dtype, shape(rest)}));
      if (data_ == RandomData::known_after_first && inputs_.size() > 1) {
        return builder.constant(inputs_.back());
      }
      const auto dims = inputs_.back().shape().dims();
      return builder.input(fmt::format("input{}", inputs_.size()), *dtype,
                           {dims.begin(), dims.end()});
    }
    if (rest[0] == '(') {
      inputs_.push_back(literal(*dtype, {}, inside(rest, '(', ')')));
      return builder.constant(inputs_.back());
    }
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos) refuse("'" + word + "' has no }");
    const std::string_view list = rest.substr(1, close - 1);
    const std::string_view dims = rest.substr(close + 1);
    const Shape given =
        dims.empty() ? Shape{static_cast<std::int64_t>(parts(list, ',').size())} : shape(dims);
    inputs_.push_back(literal(*dtype, given, list));
    return builder.constant(inputs_.back());
  }

  Tensor literal(DType dtype, const Shape& shape, std::string_view list) const {
    const std::vector<std::string> words = parts(list, ',');
    Tensor tensor = Tensor::empty({dtype, shape});
    if (static_cast<std::int64_t>(words.size()) != tensor.elements()) {
      refuse(fmt::format("{} values for {}", words.size(), to_string(tensor.spec())));
    }
    dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
      T* out = tensor.data<T>();
      for (const std::string& word : words) {
        if constexpr (std::is_integral_v<T>) {
          *out++ = static_cast<T>(integer(word));
        } else {
          *out++ = convert<T>(number(word));
        }
      }
    });
    return tensor;
  }

  // Own arithmetic on the generator's bits: distributions differ between libraries.
  Tensor random_tensor(const TensorSpec& spec) {
    Tensor tensor = Tensor::empty(spec);
    const auto span = static_cast<std::uint64_t>(settings_.int_high) -
                      static_cast<std::uint64_t>(settings_.int_low) + 1;
    dispatch(spec.dtype, [&]<typename T>(std::type_identity<T>) {
      for (T& value : tensor.values<T>()) {
        const std::uint64_t bits = random_() >> 11;
        if constexpr (std::is_same_v<T, bool>) {
          value = bits % 2 != 0;
        } else if constexpr (std::is_integral_v<T>) {
          value = static_cast<T>(static_cast<std::uint64_t>(settings_.int_low) +
                                 (span == 0 ? bits : bits % span));
        } else {
          const double unit = static_cast<double>(bits) * 0x1p-53;
          value = convert<T>(settings_.low + (settings_.high - settings_.low) * unit);
        }
      }
    });
    return tensor;
  }

  std::string text_, where_;
  const OpRegistry& ops_;
  RandomData data_;
  std::mt19937_64 random_;
  Settings settings_;
  AttrMap attrs_;
  std::vector<Tensor> inputs_;
};

std::string trimmed(std::string line) {
  line.erase(std::min(line.find('#'), line.size()));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Case parse_case(const std::string& line, const std::string& where, const OpRegistry& ops,
                RandomData data) {
  return LineParser(trimmed(line), where, ops, data).parse();
}

std::vector<Case> parse_cases(std::string_view text, const std::string& file, const OpRegistry& ops,
                              RandomData data) {
  std::vector<Case> cases;
  std::istringstream stream{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (trimmed(line).empty()) continue;
    cases.push_back(parse_case(line, fmt::format("{}:{}", file, number), ops, data));
  }
  return cases;
}

std::vector<Case> read_cases(const std::string& path, const OpRegistry& ops, RandomData data) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) fail(ErrorCode::io, "can't read '{}'", path);
  return parse_cases(text.str(), fs::path(path).filename().string(), ops, data);
}

std::string cases_folder() {
  if (const char* source = std::getenv("TURNOUT_SOURCE")) {
    return (fs::path(source) / "tests/cases").string();
  }
  const fs::path beside = fs::path(__FILE__).parent_path() / "../cases";
  return (fs::exists(beside) ? beside.lexically_normal() : fs::path("tests/cases")).string();
}

std::vector<std::string> cases_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(cases_folder())) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<const Tensor*> operands(const Case& test) {
  std::vector<const Tensor*> result;
  for (const Tensor& tensor : test.inputs) result.push_back(tensor.defined() ? &tensor : nullptr);
  result.resize(test.graph.nodes()[0].inputs.size());  // without those left out at the end
  return result;
}

std::vector<Tensor> graph_inputs(const Case& test) {
  std::vector<Tensor> result;
  const auto ids = test.graph.nodes()[0].inputs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool given = ids[i].valid() && test.graph.value(ids[i]).kind == ValueKind::input;
    if (given) result.push_back(test.inputs[i]);
  }
  return result;
}

std::vector<Tensor> reference_outputs(const Case& test) {
  if (test.graph.nodes()[0].op->reference == nullptr)
    return interpret(test.graph, graph_inputs(test));
  return evaluate(test.graph.info(NodeId{0}), operands(test));
}

}  // namespace turnout
