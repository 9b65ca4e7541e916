#include "text/jinja/render.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "text/jinja/builtins.h"

namespace ingot::jinja {
namespace {

enum class Flow { go_on, stop, skip };  // skip: the rest of a loop's body

constexpr int64_t kLongestRange = 100'000;

class Renderer {
 public:
  Renderer(std::string_view source, const Limits& limits) : source_(source), limits_(limits) {}

  Result<std::string> run(const Body& body, const Json& variables) {
    scopes_.emplace_back();
    for (const auto& [name, value] : variables.items()) {
      INGOT_ASSIGN(scopes_[0][name], checked(Value(value)));
    }
    INGOT_TRY(execute(body));
    return std::move(output_);
  }

 private:
  using Scope = std::map<std::string, Value>;

  // --- errors and limits ---

  Error wrong(std::string_view what) const { return input_error("{}: line {}: {}", source_, line_, what); }
  template <class T>
  Result<T> placed(Result<T> result) const {
    if (result.ok()) return result;
    return Error{result.error().kind, fmt::format("{}: line {}: {}", source_, line_, result.error().message)};
  }
  Status work(int64_t amount = 1) {
    work_ += amount;
    if (work_ <= limits_.work) return {};
    return wrong("the template takes too much work: it may loop without end");
  }
  Status write(std::string_view text) {
    if (text.size() > limits_.output - output_.size())
      return wrong(fmt::format("the template writes more than {} bytes", limits_.output));
    output_ += text;
    return work(static_cast<int64_t>(text.size() / 16));
  }
  // Counts the work of copying a value; nested too deep is an error.
  Status weigh(const Json& value, int depth) {
    if (depth > limits_.nested_values)
      return wrong(fmt::format("lists nested deeper than {} levels", limits_.nested_values));
    INGOT_TRY(
        work(1 + (value.is_string() ? static_cast<int64_t>(value.get_ref<const std::string&>().size() / 16) : 0)));
    if (value.is_structured()) {
      for (const Json& item : value) INGOT_TRY(weigh(item, depth + 1));
    }
    return {};
  }
  Result<Value> checked(Value value) {
    if (value.is_json()) INGOT_TRY(weigh(value.json(), 0));
    return value;
  }
  struct Nesting {
    explicit Nesting(int& count) : depth(count) { ++depth; }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth;
  };
  Status enter(int line) {
    line_ = line;
    if (depth_ > limits_.depth) return wrong(fmt::format("nested deeper than {} levels", limits_.depth));
    return work();
  }

  // --- names ---

  Value* find(const std::string& name) {
    for (size_t i = scopes_.size(); i-- > frame_;) {
      if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) return &found->second;
    }
    const auto found = scopes_[0].find(name);
    return found == scopes_[0].end() ? nullptr : &found->second;
  }
  Status assign(const std::vector<std::string>& targets, const Value& value) {
    if (targets.size() == 1) {
      scopes_.back()[targets[0]] = value;
      return {};
    }
    const Json& items = value.json();
    if (!items.is_array() || items.size() != targets.size())
      return wrong(fmt::format("expected {} values for {}, found {}", targets.size(), fmt::join(targets, ", "),
                               describe(items)));
    for (size_t i = 0; i < targets.size(); ++i) scopes_.back()[targets[i]] = value.part(items[i]);
    return {};
  }

  // --- statements ---

  Result<Flow> execute(const Body& body) {
    for (const Node& node : body) {
      const Nesting nesting(depth_);
      INGOT_TRY(enter(node.line));
      INGOT_ASSIGN(const Flow flow, execute(node));
      if (flow != Flow::go_on) return flow;
    }
    return Flow::go_on;
  }

  Result<Flow> execute(const Node& node) {
    switch (node.kind) {
      case Node::Kind::text: {
        INGOT_TRY(write(node.text));
        return Flow::go_on;
      }
      case Node::Kind::print: {
        INGOT_ASSIGN(const Value value, evaluate(*node.expr));
        INGOT_TRY(checked(value));
        INGOT_TRY(write(value.text()));
        return Flow::go_on;
      }
      case Node::Kind::choice: {
        for (const auto& [condition, body] : node.branches) {
          if (condition != nullptr) {
            INGOT_ASSIGN(const Value holds, evaluate(*condition));
            if (!holds.truth()) continue;
          }
          return execute(body);
        }
        return Flow::go_on;
      }
      case Node::Kind::loop:
        return loop(node);
      case Node::Kind::set: {
        Value value;
        if (node.expr != nullptr) {
          INGOT_ASSIGN(value, evaluate(*node.expr));
        } else {
          INGOT_ASSIGN(value, captured(node.body));
        }
        INGOT_TRY(assign(node.targets, value));
        return Flow::go_on;
      }
      case Node::Kind::set_field:
        return set_field(node);
      case Node::Kind::macro:
        scopes_.back()[node.name] = Value(&node);
        return Flow::go_on;
      case Node::Kind::stop:
        return Flow::stop;
      default:
        return Flow::skip;
    }
  }

  Result<Flow> set_field(const Node& node) {
    const Value* owner = find(node.targets[0]);
    const auto fields = owner != nullptr ? owner->fields() : nullptr;
    if (fields == nullptr) return wrong(fmt::format("'{}' is no namespace", node.targets[0]));
    INGOT_ASSIGN(const Value value, evaluate(*node.expr));
    if (value.fields() != nullptr || value.method() != nullptr)
      return wrong("a namespace inside a namespace is not supported");
    (*fields)[node.targets[1]] = value;
    return Flow::go_on;
  }

  // What a body writes, as a string.
  Result<Value> captured(const Body& body) {
    std::string outer = std::exchange(output_, {});
    const auto done = execute(body);
    std::string inner = std::exchange(output_, std::move(outer));
    if (!done.ok()) return done.error();
    return Value(Json(std::move(inner)));
  }

  Result<Flow> loop(const Node& node) {
    INGOT_ASSIGN(const Value all, evaluate(*node.expr));
    INGOT_ASSIGN(const std::vector<Value> items, loop_items(node, all));
    for (size_t i = 0; i < items.size(); ++i) {
      INGOT_TRY(work(8));
      scopes_.emplace_back();
      const auto status = assign(node.targets, items[i]);
      scopes_.back()["loop"] = loop_state(items, i);
      const auto flow = status.ok() ? execute(node.body) : Result<Flow>(status.error());
      scopes_.pop_back();
      if (!flow.ok()) return flow;
      if (*flow == Flow::stop) return Flow::go_on;
    }
    return items.empty() ? execute(node.other) : Result<Flow>(Flow::go_on);
  }

  Result<std::vector<Value>> loop_items(const Node& node, const Value& all) {
    std::vector<Value> items;
    if (all.json().is_array()) {
      for (const Json& item : all.json()) items.push_back(all.part(item));
    } else {
      INGOT_TRY(checked(all));
      INGOT_ASSIGN(const Json copies, placed(items_of(all)));
      for (const Json& item : copies) items.emplace_back(item);
    }
    INGOT_TRY(work(static_cast<int64_t>(items.size())));
    if (node.condition == nullptr) return items;
    std::vector<Value> kept;
    for (const Value& item : items) {
      scopes_.emplace_back();
      const auto status = assign(node.targets, item);
      const auto holds = status.ok() ? evaluate(*node.condition) : Result<Value>(status.error());
      scopes_.pop_back();
      if (!holds.ok()) return holds.error();
      if (holds->truth()) kept.push_back(item);
    }
    return kept;
  }

  static Value loop_state(const std::vector<Value>& items, size_t i) {
    auto state = std::make_shared<Namespace>();
    const auto set = [&](const char* name, Json value) { (*state)[name] = Value(std::move(value)); };
    set("index", i + 1);
    set("index0", i);
    set("revindex", items.size() - i);
    set("revindex0", items.size() - i - 1);
    set("first", i == 0);
    set("last", i + 1 == items.size());
    set("length", items.size());
    if (i > 0) (*state)["previtem"] = items[i - 1];
    if (i + 1 < items.size()) (*state)["nextitem"] = items[i + 1];
    return Value(std::move(state));
  }

  // --- expressions ---

  Result<Value> evaluate(const Expr& expr) {
    const Nesting nesting(depth_);
    INGOT_TRY(enter(expr.line));
    switch (expr.kind) {
      case Expr::Kind::literal:
        return Value(expr.value);
      case Expr::Kind::name: {
        const Value* found = find(expr.name);
        return found != nullptr ? *found : Value();
      }
      case Expr::Kind::list:
        return list(expr);
      case Expr::Kind::dict:
        return dict(expr);
      case Expr::Kind::attribute:
        return attribute(expr);
      case Expr::Kind::index: {
        INGOT_ASSIGN(const Value owner, evaluate(*expr.args[0]));
        INGOT_ASSIGN(const Value index, evaluate(*expr.args[1]));
        if (owner.is_undefined()) return undefined_owner(*expr.args[0]);
        if (owner.is_string()) INGOT_TRY(checked(owner));
        return item_of(owner, index.json());
      }
      case Expr::Kind::slice:
        return slice(expr);
      case Expr::Kind::call:
        return call(expr);
      case Expr::Kind::filter: {
        INGOT_ASSIGN(const Value value, evaluate(*expr.args[0]));
        INGOT_ASSIGN(const Arguments given, arguments(expr));
        INGOT_TRY(checked(value));
        line_ = expr.line;
        INGOT_ASSIGN(Value result, placed(apply_filter(expr.name, value, given)));
        return checked(std::move(result));
      }
      case Expr::Kind::test: {
        INGOT_ASSIGN(const Value value, evaluate(*expr.args[0]));
        INGOT_ASSIGN(const Arguments given, arguments(expr));
        INGOT_ASSIGN(const bool holds, placed(apply_test(expr.name, value, given)));
        return Value(Json(holds));
      }
      case Expr::Kind::unary:
        return unary(expr);
      case Expr::Kind::binary:
        return binary(expr);
      default:
        break;
    }
    INGOT_ASSIGN(const Value condition, evaluate(*expr.args[0]));
    const ExprPtr& chosen = expr.args[condition.truth() ? 1 : 2];
    return chosen != nullptr ? evaluate(*chosen) : Result<Value>(Value());
  }

  Error undefined_owner(const Expr& owner) const {
    return wrong(owner.kind == Expr::Kind::name || owner.kind == Expr::Kind::attribute
                     ? fmt::format("'{}' is undefined", owner.name)
                     : std::string("a part of something undefined"));
  }

  Result<Value> list(const Expr& expr) {
    Json items = Json::array();
    for (const ExprPtr& item : expr.args) {
      INGOT_ASSIGN(const Value value, evaluate(*item));
      INGOT_TRY(checked(value));
      items.push_back(value.json());
    }
    return checked(Value(std::move(items)));
  }

  Result<Value> dict(const Expr& expr) {
    Json items = Json::object();
    for (size_t i = 0; i < expr.args.size(); i += 2) {
      INGOT_ASSIGN(const Value key, evaluate(*expr.args[i]));
      INGOT_ASSIGN(const Value value, evaluate(*expr.args[i + 1]));
      if (!key.is_string()) return wrong("the key of a dict must be a string");
      INGOT_TRY(checked(value));
      items[key.json().get<std::string>()] = value.json();
    }
    return checked(Value(std::move(items)));
  }

  Result<Value> attribute(const Expr& expr) {
    INGOT_ASSIGN(const Value owner, evaluate(*expr.args[0]));
    if (owner.is_undefined()) return undefined_owner(*expr.args[0]);
    if (is_method(owner, expr.name)) return Value(Value::Method{std::make_shared<const Value>(owner), expr.name});
    return item_of(owner, Json(expr.name));
  }

  Result<Value> slice(const Expr& expr) {
    INGOT_ASSIGN(const Value owner, evaluate(*expr.args[0]));
    INGOT_TRY(checked(owner));
    std::optional<int64_t> parts[3];
    for (size_t i = 0; i < 3; ++i) {
      if (expr.args[i + 1] == nullptr) continue;
      INGOT_ASSIGN(const Value part, evaluate(*expr.args[i + 1]));
      if (part.json().is_null()) continue;
      if (!part.json().is_number_integer()) return wrong("the edge of a slice must be an integer");
      parts[i] = std::clamp<int64_t>(part.json().get<int64_t>(), -(int64_t{1} << 40), int64_t{1} << 40);
    }
    if (!owner.is_string() && !owner.json().is_array()) return wrong("only a string or a list can be sliced");
    INGOT_ASSIGN(const Json items, placed(items_of(owner)));
    const auto size = static_cast<int64_t>(items.size());
    const int64_t step = parts[2].value_or(1);
    if (step == 0) return wrong("a slice with a step of 0");
    const auto edge = [&](std::optional<int64_t> part, int64_t absent) {
      if (!part) return absent;
      const int64_t place = *part < 0 ? *part + size : *part;
      return step > 0 ? std::clamp<int64_t>(place, 0, size) : std::clamp<int64_t>(place, -1, size - 1);
    };
    const int64_t begin = edge(parts[0], step > 0 ? 0 : size - 1), end = edge(parts[1], step > 0 ? size : -1);
    Json taken = Json::array();
    std::string text;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      const Json& item = items[static_cast<size_t>(i)];
      if (owner.is_string()) {
        text += item.get_ref<const std::string&>();
      } else {
        taken.push_back(item);
      }
    }
    return owner.is_string() ? Value(Json(std::move(text))) : Value(std::move(taken));
  }

  Result<Arguments> arguments(const Expr& expr) {
    Arguments given;
    for (size_t i = 1; i < expr.args.size(); ++i) {
      INGOT_ASSIGN(Value value, evaluate(*expr.args[i]));
      given.values.push_back(std::move(value));
    }
    for (const auto& [name, argument] : expr.named) {
      INGOT_ASSIGN(Value value, evaluate(*argument));
      given.named.emplace_back(name, std::move(value));
    }
    return given;
  }

  Result<Value> call(const Expr& expr) {
    const Expr& callee = *expr.args[0];
    INGOT_ASSIGN(const Value function, evaluate(callee));
    INGOT_ASSIGN(const Arguments given, arguments(expr));
    line_ = expr.line;
    if (function.macro() != nullptr) return call_macro(*function.macro(), given);
    if (const Value::Method* method = function.method()) {
      INGOT_TRY(checked(*method->owner));
      INGOT_ASSIGN(Value result, placed(call_method(*method->owner, method->name, given)));
      return checked(std::move(result));
    }
    if (callee.kind == Expr::Kind::name && function.is_undefined()) return call_function(callee.name, given);
    return wrong(callee.name.empty() ? std::string("this is no function")
                                     : fmt::format("the method '{}' is not supported here", callee.name));
  }

  Result<Value> call_macro(const Node& macro, const Arguments& given) {
    if (given.values.size() > macro.parameters.size())
      return wrong(fmt::format("the macro '{}' takes {} values, found {}", macro.name, macro.parameters.size(),
                               given.values.size()));
    Scope scope;
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const Parameter& parameter = macro.parameters[i];
      Value value = given.get(i, parameter.name);
      if (value.is_undefined() && parameter.default_value != nullptr) {
        INGOT_ASSIGN(value, evaluate(*parameter.default_value));
      }
      scope[parameter.name] = std::move(value);
    }
    const size_t outer = std::exchange(frame_, scopes_.size());
    scopes_.push_back(std::move(scope));
    auto text = captured(macro.body);
    scopes_.pop_back();
    frame_ = outer;
    return text;
  }

  Result<Value> call_function(const std::string& name, const Arguments& given) {
    if (name == "raise_exception")
      return wrong(fmt::format("the template refuses these messages: {}", given.get(0, "message").text()));
    if (name == "namespace") {
      auto fields = std::make_shared<Namespace>();
      for (const auto& [key, value] : given.named) {
        if (value.fields() != nullptr || value.method() != nullptr)
          return wrong("a namespace inside a namespace is not supported");
        (*fields)[key] = value;
      }
      return Value(std::move(fields));
    }
    if (name == "dict") {
      Json items = Json::object();
      for (const auto& [key, value] : given.named) items[key] = value.json();
      return checked(Value(std::move(items)));
    }
    if (name == "range") return range(given);
    if (name == "strftime_now") return time_now(given);
    return wrong(fmt::format(
        "the function '{}' is not supported (known: raise_exception, namespace, dict, range, strftime_now)", name));
  }

  Result<Value> range(const Arguments& given) {
    int64_t numbers[3] = {0, 0, 1};
    if (given.values.empty() || given.values.size() > 3) return wrong("'range' takes one to three integers");
    for (size_t i = 0; i < given.values.size(); ++i) {
      if (!given.values[i].json().is_number_integer()) return wrong("'range' takes integers");
      numbers[i] = given.values[i].json().get<int64_t>();
    }
    if (given.values.size() == 1) std::swap(numbers[0], numbers[1]);
    const auto [begin, end, step] = std::tuple(numbers[0], numbers[1], numbers[2]);
    if (step == 0) return wrong("'range' with a step of 0");
    Json items = Json::array();
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
      if (static_cast<int64_t>(items.size()) == kLongestRange)
        return wrong(fmt::format("'range' of more than {} numbers", kLongestRange));
      items.push_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return checked(Value(std::move(items)));
  }

  Result<Value> time_now(const Arguments& given) {
    const std::string format = given.get(0, "format").text();
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    char text[256] = {};
    if (format.size() > 64 || (std::strftime(text, sizeof(text), format.c_str(), &parts) == 0 && !format.empty()))
      return wrong("'strftime_now' with too long a format");
    return Value(Json(std::string(text)));
  }

  Result<Value> unary(const Expr& expr) {
    INGOT_ASSIGN(const Value value, evaluate(*expr.args[0]));
    if (expr.name == "not") return Value(Json(!value.truth()));
    const Json& json = value.json();
    if (!json.is_number()) return wrong(fmt::format("'{}' needs a number", expr.name));
    if (expr.name == "+") return value;
    if (json.is_number_float()) return Value(Json(-json.get<double>()));
    int64_t negative = 0;
    if (__builtin_sub_overflow(int64_t{0}, json.get<int64_t>(), &negative)) return wrong("a number that is too large");
    return Value(Json(negative));
  }

  Result<Value> binary(const Expr& expr) {
    INGOT_ASSIGN(const Value left, evaluate(*expr.args[0]));
    const std::string& op = expr.name;
    if (op == "and" || op == "or") return left.truth() == (op == "or") ? Result<Value>(left) : evaluate(*expr.args[1]);
    INGOT_ASSIGN(const Value right, evaluate(*expr.args[1]));
    line_ = expr.line;
    INGOT_TRY(checked(left));
    INGOT_TRY(checked(right));
    if (op == "==" || op == "!=") {
      const bool same = left.is_json() && right.is_json() ? equal(left.json(), right.json())
                                                          : left.is_undefined() && right.is_undefined();
      return Value(Json(same == (op == "==")));
    }
    if (op == "in" || op == "not in") {
      INGOT_ASSIGN(const bool is_in, contains(right, left));
      return Value(Json(is_in == (op == "in")));
    }
    if (op == "~") return checked(Value(Json(left.text() + right.text())));
    if (op == "<" || op == ">" || op == "<=" || op == ">=") return compare(op, left.json(), right.json());
    return arithmetic(op, left, right);
  }

  Result<bool> contains(const Value& owner, const Value& item) {
    const Json& all = owner.json();
    if (all.is_string()) {
      if (!item.is_string()) return wrong("'in' a string needs a string");
      return all.get_ref<const std::string&>().find(item.json().get_ref<const std::string&>()) != std::string::npos;
    }
    if (all.is_object()) return item.is_string() && all.contains(item.json().get_ref<const std::string&>());
    if (const auto fields = owner.fields())
      return item.is_string() && fields->count(item.json().get_ref<const std::string&>()) > 0;
    INGOT_ASSIGN(const Json items, placed(items_of(owner)));
    return std::ranges::any_of(items, [&](const Json& candidate) { return equal(candidate, item.json()); });
  }

  Result<Value> compare(const std::string& op, const Json& left, const Json& right) const {
    int order = 0;
    if (left.is_string() && right.is_string()) {
      order = left.get_ref<const std::string&>().compare(right.get_ref<const std::string&>());
    } else if (left.is_number() && right.is_number()) {
      const double a = left.get<double>(), b = right.get<double>();
      order = a < b ? -1 : a > b ? 1 : 0;
    } else {
      return wrong(
          fmt::format("'{}' needs two numbers or two strings, found {} and {}", op, describe(left), describe(right)));
    }
    return Value(Json(op == "<" ? order < 0 : op == ">" ? order > 0 : op == "<=" ? order <= 0 : order >= 0));
  }

  Result<Value> arithmetic(const std::string& op, const Value& left, const Value& right) {
    const Json &a = left.json(), &b = right.json();
    if (op == "+" && a.is_string() && b.is_string()) return checked(Value(Json(left.text() + right.text())));
    if (op == "+" && a.is_array() && b.is_array()) {
      Json all = a;
      for (const Json& item : b) all.push_back(item);
      return checked(Value(std::move(all)));
    }
    if (op == "*" && a.is_string() && b.is_number_integer()) return repeated(left.text(), b.get<int64_t>());
    if (!a.is_number() || !b.is_number()) {
      return wrong(fmt::format("'{}' needs two numbers (or, for '+', two strings or lists), found {} and {}", op,
                               left.is_undefined() ? "something undefined" : describe(a),
                               right.is_undefined() ? "something undefined" : describe(b)));
    }
    if (op == "/" || a.is_number_float() || b.is_number_float())
      return real_result(op, a.get<double>(), b.get<double>());
    return whole_result(op, a.get<int64_t>(), b.get<int64_t>());
  }

  Result<Value> repeated(const std::string& text, int64_t times) {
    times = std::max<int64_t>(times, 0);
    if (!text.empty() && times > static_cast<int64_t>(limits_.output / text.size()))
      return wrong("a string repeated too often");
    INGOT_TRY(work(times * static_cast<int64_t>(text.size()) / 16));
    std::string out;
    for (int64_t i = 0; i < times && !text.empty(); ++i) out += text;
    return Value(Json(std::move(out)));
  }

  Result<Value> real_result(const std::string& op, double a, double b) const {
    if (b == 0 && op != "+" && op != "-" && op != "*") return wrong("a division by 0");
    if (op == "+") return Value(Json(a + b));
    if (op == "-") return Value(Json(a - b));
    if (op == "*") return Value(Json(a * b));
    if (op == "/") return Value(Json(a / b));
    return Value(Json(op == "//" ? std::floor(a / b) : a - b * std::floor(a / b)));
  }

  Result<Value> whole_result(const std::string& op, int64_t a, int64_t b) const {
    int64_t result = 0;
    bool overflows = false;
    if (op == "+") overflows = __builtin_add_overflow(a, b, &result);
    if (op == "-") overflows = __builtin_sub_overflow(a, b, &result);
    if (op == "*") overflows = __builtin_mul_overflow(a, b, &result);
    if (op == "//" || op == "%") {
      if (b == 0) return wrong("a division by 0");
      if (b == -1) {
        overflows = __builtin_sub_overflow(int64_t{0}, op == "%" ? 0 : a, &result);
      } else {  // Python rounds down
        const int64_t rest = a % b, below = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;
        result = op == "//" ? a / b - below : rest + below * b;
      }
    }
    if (overflows) return wrong("a number that is too large");
    return Value(Json(result));
  }

  std::string_view source_;
  Limits limits_;
  std::string output_;
  std::vector<Scope> scopes_;
  size_t frame_ = 0;  // the scopes from here on belong to the macro that runs
  int line_ = 1, depth_ = 0;
  int64_t work_ = 0;
};

}  // namespace

Result<std::string> render(const Body& body, const Json& variables, std::string_view source_name,
                           const Limits& limits) {
  return Renderer(source_name, limits).run(body, variables);
}

}  // namespace ingot::jinja
