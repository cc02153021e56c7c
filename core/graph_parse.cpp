// parse_graph(). What type an attribute has is known from its op's schema, so `1` may be an integer
// or a real.
#include <algorithm>
#include <charconv>
#include <set>

#include "core/graph.hpp"
#include "core/graph_text.hpp"

namespace turnout {
namespace {

using namespace text;

// Reads the words of one line.
class LineReader {
 public:
  LineReader(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {}

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorCode::invalid_model, "{}: {}", where_, why);
  }
  const std::string& where() const { return where_; }

  bool at_end() {
    skip_space();
    return rest_.empty() || rest_[0] == '#';
  }
  bool at(char c) {
    skip_space();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    const bool found = at(c);
    if (found) rest_.remove_prefix(1);
    return found;
  }
  void expect(char c) {
    if (!take(c)) refuse(fmt::format("expected '{}' {}", c, here()));
  }
  void expect_end() {
    if (!at_end()) refuse(fmt::format("nothing expected {}", here()));
  }

  std::string quoted_text() {
    expect('"');
    std::string result;
    while (true) {
      if (rest_.empty()) refuse("a text has no closing quote");
      const char c = next();
      if (c == '"') return result;
      result += c == '\\' ? escaped() : c;
    }
  }
  std::string bare(bool (*is_part)(char), std::string_view what) {
    skip_space();
    std::size_t end = 0;
    while (end < rest_.size() && is_part(rest_[end])) ++end;
    if (end == 0) refuse(fmt::format("expected {} {}", what, here()));
    const std::string result(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return result;
  }
  std::string value_name() {
    expect('%');
    return !rest_.empty() && rest_[0] == '"' ? quoted_text() : bare(is_name, "a value's name");
  }
  template <typename T>
  T number() {
    skip_space();
    T value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) {
      refuse(
          fmt::format("expected {} {}", std::is_integral_v<T> ? "an integer" : "a number", here()));
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  // `open item, item, ... close`, or nothing between them.
  template <typename Item>
  void list(char open, char close, const Item& item) {
    expect(open);
    if (take(close)) return;
    do {
      item();
    } while (take(','));
    expect(close);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  char next() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  char escaped() {
    const char c = rest_.empty() ? '\0' : next();
    if (c == '"' || c == '\\') return c;
    unsigned code = 0;
    const char* const digits = rest_.data();
    if (c != 'x' || rest_.size() < 2 ||
        std::from_chars(digits, digits + 2, code, 16).ptr != digits + 2) {
      refuse("a backslash stands before a quote, a backslash or x and two digits");
    }
    rest_.remove_prefix(2);
    return static_cast<char>(code);
  }
  std::string here() {
    return at_end() ? "at the end of the line" : fmt::format("before '{}'", rest_.substr(0, 24));
  }

  std::string_view rest_;
  std::string where_;
};

class Parser {
 public:
  Parser(std::string_view text, const OpRegistry& ops, std::string_view source,
         const ConstantSource& constants)
      : text_(text), ops_(ops), source_(source), constants_(constants) {}

  Graph parse() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      LineReader line(text_.substr(0, end), fmt::format("{}:{}", source_, ++line_number_));
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (!line.at_end()) parse_line(line);
    }
    LineReader end({}, fmt::format("{}:{}", source_, line_number_));
    if (!builder_) end.refuse("the graph has no line 'graph \"NAME\"'");
    return guarded(end, [&] {
      Graph graph = builder_->build();
      check_specs(graph);
      return graph;
    });
  }

 private:
  // What an error of the builder lacks is where in the text it is.
  template <typename F>
  auto guarded(const LineReader& line, const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& error) {
      const bool placed = std::string_view(error.what()).starts_with(fmt::format("{}:", source_));
      if (placed || error.code() == ErrorCode::out_of_memory) throw;
      line.refuse(error.what());
    }
  }

  void parse_line(LineReader& line) {
    guarded(line, [&] {
      if (line.at('%')) {
        node(line);
      } else {
        const std::string word = line.bare(is_letter, "graph, input, constant, output or %");
        if (word == "graph") {
          if (builder_) line.refuse("a second graph");
          builder_.emplace(ops_, line.quoted_text());
        } else if (word == "input") {
          input(line);
        } else if (word == "constant") {
          constant(line);
        } else if (word == "output") {
          std::string name = line.quoted_text();
          line.expect('=');
          builder(line).output(read_value(line), name);
        } else {
          line.refuse(fmt::format("'{}' starts no line of a graph", word));
        }
      }
      line.expect_end();
    });
  }

  GraphBuilder& builder(const LineReader& line) {
    if (!builder_) line.refuse("the line 'graph \"NAME\"' has to come first");
    return *builder_;
  }

  std::string new_name(LineReader& line) {
    std::string name = line.value_name();
    if (name.empty()) line.refuse("a value's name is empty");
    if (ids_.count(name) > 0) line.refuse(fmt::format("'{}' is defined already", name));
    ids_.emplace(name, ValueId{});
    return name;
  }

  ValueId read_value(LineReader& line) {
    const std::string name = line.value_name();
    const auto at = ids_.find(name);
    if (at == ids_.end() || !at->second.valid()) {
      line.refuse(fmt::format("'{}' isn't defined before it is read", name));
    }
    return at->second;
  }

  DType dtype(LineReader& line) {
    const std::string name = line.bare(is_word, "an element type");
    const auto found = parse_dtype(name);
    if (!found) line.refuse(fmt::format("there is no element type '{}'", name));
    return *found;
  }

  TensorSpec spec(LineReader& line) {
    const DType type = dtype(line);
    std::vector<std::int64_t> dims;
    line.list('[', ']', [&] { dims.push_back(line.number<std::int64_t>()); });
    return {type, Shape(dims)};
  }

  void input(LineReader& line) {
    const std::string name = new_name(line);
    line.expect(':');
    const DType type = dtype(line);
    std::vector<Dim> dims;
    line.list('[', ']', [&] {
      if (line.at('"')) {
        dims.emplace_back(line.quoted_text());
        if (dims.back().fixed()) line.refuse("a symbol's name is empty");
      } else if (line.at('-')) {
        line.refuse("a dimension can't be negative");
      } else {
        const std::string word = line.bare(is_word, "a dimension");
        if (is_digit(word[0])) {
          LineReader digits(word, line.where());
          dims.emplace_back(digits.number<std::int64_t>());
          digits.expect_end();
        } else {
          dims.emplace_back(word);
        }
      }
    });
    ids_[name] = builder(line).input(name, type, std::move(dims));
  }

  void constant(LineReader& line) {
    const std::string name = new_name(line);
    line.expect(':');
    const TensorSpec wanted = spec(line);
    Tensor tensor = line.take('=') ? data(line, wanted) : given(line, name, wanted);
    ids_[name] = builder(line).constant(std::move(tensor), name);
  }

  Tensor given(LineReader& line, const std::string& name, const TensorSpec& wanted) {
    if (!constants_) line.refuse(fmt::format("constant '{}' has no data", name));
    Tensor tensor = constants_(name, wanted);
    if (!tensor.defined() || tensor.spec() != wanted) {
      line.refuse(fmt::format("constant '{}' is {}, not {}", name,
                              tensor.defined() ? to_string(tensor.spec()) : "not there",
                              to_string(wanted)));
    }
    return tensor;
  }

  Tensor data(LineReader& line, const TensorSpec& wanted) {
    return dispatch(wanted.dtype, [&]<typename T>(std::type_identity<T>) {
      std::vector<T> values;
      line.list('[', ']', [&] {
        if constexpr (std::is_same_v<T, bool>) {
          const int value = line.number<int>();
          if (value != 0 && value != 1) line.refuse("a bool is 0 or 1");
          values.push_back(value != 0);
        } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          values.push_back(T(line.number<float>()));
        } else {
          values.push_back(line.number<T>());
        }
      });
      if (static_cast<std::int64_t>(values.size()) != wanted.elements()) {
        line.refuse(fmt::format("{} values for {}", values.size(), to_string(wanted)));
      }
      Tensor tensor = Tensor::empty(wanted);
      std::copy(values.begin(), values.end(), tensor.data<T>());
      return tensor;
    });
  }

  template <typename T, typename Read>
  static std::vector<T> values_of(LineReader& line, const Read& read) {
    std::vector<T> values;
    line.list('[', ']', [&] { values.push_back(read()); });
    return values;
  }

  AttrValue attr_value(LineReader& line, AttrType type) {
    const auto integer = [&] { return line.number<std::int64_t>(); };
    const auto real = [&] { return line.number<double>(); };
    const auto text = [&] { return line.quoted_text(); };
    switch (type) {
      case AttrType::integer:
        return integer();
      case AttrType::real:
        return real();
      case AttrType::text:
        return text();
      case AttrType::integers:
        return values_of<std::int64_t>(line, integer);
      case AttrType::reals:
        return values_of<double>(line, real);
      case AttrType::texts:
        return values_of<std::string>(line, text);
    }
    line.refuse("an attribute of no known type");
  }

  AttrMap attrs(LineReader& line, const OpDef& op) {
    AttrMap result;
    if (!line.at('{')) return result;
    line.list('{', '}', [&] {
      const std::string name = line.bare(is_word, "an attribute's name");
      const auto def = std::find_if(op.attrs.begin(), op.attrs.end(),
                                    [&](const AttrDef& a) { return a.name == name; });
      if (def == op.attrs.end()) {
        line.refuse(fmt::format("op '{}' has no attribute '{}'", op.name, name));
      }
      if (result.has(name)) line.refuse(fmt::format("attribute '{}' stands twice", name));
      line.expect('=');
      result.set(name, attr_value(line, def->type));
    });
    return result;
  }

  void node(LineReader& line) {
    std::vector<std::string> outputs;
    do {
      outputs.push_back(new_name(line));
    } while (line.take(','));
    line.expect('=');
    const OpDef& op = ops_.get(line.bare(is_word, "an op's name"));
    std::vector<ValueId> inputs;
    line.list('(', ')', [&] { inputs.push_back(line.take('-') ? ValueId{} : read_value(line)); });
    AttrMap given = attrs(line, op);
    const std::string name = line.take('@') ? line.quoted_text() : outputs[0];
    if (!node_names_.insert(name).second) line.refuse(fmt::format("a second node '{}'", name));
    const auto ids = builder(line).add_node(op, std::move(inputs), std::move(given), name, outputs);
    for (std::size_t i = 0; i < ids.size(); ++i) ids_[outputs[i]] = ids[i];
    if (!line.take(':')) return;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) line.expect(',');
      specs_.push_back({ids[i], spec(line), line.where()});
    }
  }

  // A bound graph's text says the specs of its values: they have to be what follows from the
  // inputs.
  void check_specs(const Graph& graph) const {
    if (specs_.empty()) return;
    const Graph bound = graph.bind({});
    for (const auto& [id, spec, where] : specs_) {
      const TensorSpec& inferred = bound.value(id).spec;
      if (inferred == spec) continue;
      fail(ErrorCode::invalid_model, "{}: '{}' is {}, not {}", where, bound.value(id).name,
           to_string(inferred), to_string(spec));
    }
  }

  struct StatedSpec {
    ValueId id;
    TensorSpec spec;
    std::string where;
  };

  std::string_view text_;
  const OpRegistry& ops_;
  std::string source_;
  const ConstantSource& constants_;
  int line_number_ = 0;
  std::optional<GraphBuilder> builder_;
  std::map<std::string, ValueId, std::less<>> ids_;
  std::set<std::string, std::less<>> node_names_;
  std::vector<StatedSpec> specs_;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpRegistry& ops, std::string_view source,
                  const ConstantSource& constants) {
  return Parser(text, ops, source, constants).parse();
}

}  // namespace turnout
