#include "text/jinja/parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "text/jinja/lexer.h"

namespace ingot::jinja {
namespace {

constexpr int kDeepest = 100;  // expressions in expressions, tags in tags
constexpr size_t kMostTokens = 1 << 18;

using Kind = Token::Kind;

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view name) : tokens_(std::move(tokens)), name_(name) {}

  Result<Body> run() {
    if (tokens_.size() > kMostTokens) return wrong(fmt::format("a template of more than {} tokens", kMostTokens));
    INGOT_ASSIGN(Body body, parse_body({}));
    return body;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  Error wrong(std::string_view what) const { return input_error("{}: line {}: {}", name_, now().line, what); }
  Error expected(std::string_view what) const {
    static constexpr std::string_view kNames[] = {"text",     "'{{'", "'}}'", "'{%'", "'%}'",   "",
                                                  "a string", "",     "",     "",     "the end"};
    const auto& name = kNames[static_cast<size_t>(now().kind)];
    return wrong(fmt::format("expected {}, found {}", what, name.empty() ? fmt::format("'{}'", now().text) : name));
  }
  bool is_op(std::string_view op) const { return now().kind == Kind::op && now().text == op; }
  bool is_word(std::string_view word) const { return now().kind == Kind::name && now().text == word; }
  bool skip_op(std::string_view op) {
    if (!is_op(op)) return false;
    take();
    return true;
  }
  bool skip_word(std::string_view word) {
    if (!is_word(word)) return false;
    take();
    return true;
  }
  Status need_op(std::string_view op) {
    if (skip_op(op)) return {};
    return expected(fmt::format("'{}'", op));
  }
  Status need(Kind kind, std::string_view what) {
    if (now().kind != kind) return expected(what);
    take();
    return {};
  }
  Result<std::string> need_name() {
    if (now().kind != Kind::name) return expected("a name");
    return take().text;
  }

  struct Nesting {
    explicit Nesting(int& count) : depth(count) { ++depth; }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth;
  };
  Status check_depth() const {
    if (depth_ <= kDeepest) return {};
    return wrong(fmt::format("nested deeper than {} levels", kDeepest));
  }

  // --- statements ---

  // To the tag with one of these names, which is left open after its name (in end_), or to the template's end.
  Result<Body> parse_body(std::initializer_list<std::string_view> ends) {
    const Nesting nesting(depth_);
    INGOT_TRY(check_depth());
    Body body;
    for (;;) {
      Node node;
      node.line = now().line;
      if (now().kind == Kind::end) {
        if (ends.size() == 0) return body;
        return expected(fmt::format("{{% {} %}}", fmt::join(ends, " or ")));
      }
      if (now().kind == Kind::text) {
        node.text = take().text;
      } else if (now().kind == Kind::print_begin) {
        take();
        node.kind = Node::Kind::print;
        INGOT_ASSIGN(node.expr, parse_list());
        INGOT_TRY(need(Kind::print_end, "'}}'"));
      } else {
        INGOT_TRY(need(Kind::tag_begin, "a tag"));
        INGOT_ASSIGN(const std::string tag, need_name());
        if (std::ranges::find(ends, tag) != ends.end()) {
          end_ = tag;
          return body;
        }
        if (tag == "generation") {  // marks what a trainer counts; its content is plain
          INGOT_TRY(end_tag());
          INGOT_ASSIGN(Body inner, parse_body({"endgeneration"}));
          INGOT_TRY(end_tag());
          for (Node& child : inner) body.push_back(std::move(child));
          continue;
        }
        INGOT_TRY(parse_tag(tag, node));
      }
      body.push_back(std::move(node));
    }
  }

  Status end_tag() { return need(Kind::tag_end, "'%}'"); }

  Status parse_tag(const std::string& tag, Node& node) {
    if (tag == "if") return parse_if(node);
    if (tag == "for") return parse_for(node);
    if (tag == "set") return parse_set(node);
    if (tag == "macro") return parse_macro(node);
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return wrong(fmt::format("'{}' outside a loop", tag));
      node.kind = tag == "break" ? Node::Kind::stop : Node::Kind::skip;
      return end_tag();
    }
    return wrong(
        fmt::format("the tag '{}' is not supported (known: if, for, set, macro, break, continue, generation)", tag));
  }

  Status parse_if(Node& node) {
    node.kind = Node::Kind::choice;
    for (;;) {
      const bool has_condition = end_ != "else";
      ExprPtr condition;
      if (has_condition) {
        INGOT_ASSIGN(condition, parse_expression());
      }
      INGOT_TRY(end_tag());
      end_.clear();
      INGOT_ASSIGN(Body body, has_condition ? parse_body({"elif", "else", "endif"}) : parse_body({"endif"}));
      node.branches.emplace_back(std::move(condition), std::move(body));
      if (end_ == "endif") break;
    }
    end_.clear();
    return end_tag();
  }

  Status parse_for(Node& node) {
    node.kind = Node::Kind::loop;
    const bool brackets = skip_op("(");
    do {
      INGOT_ASSIGN(std::string name, need_name());
      node.targets.push_back(std::move(name));
    } while (skip_op(","));
    if (brackets) INGOT_TRY(need_op(")"));
    if (!skip_word("in")) return expected("'in'");
    INGOT_ASSIGN(node.expr, parse_or());  // no `if`: it filters
    if (skip_word("if")) {
      INGOT_ASSIGN(node.condition, parse_expression());
    }
    if (is_word("recursive")) return wrong("a recursive loop is not supported");
    INGOT_TRY(end_tag());
    ++loops_;
    INGOT_ASSIGN(node.body, parse_body({"else", "endfor"}));
    --loops_;
    if (end_ == "else") {
      INGOT_TRY(end_tag());
      INGOT_ASSIGN(node.other, parse_body({"endfor"}));
    }
    end_.clear();
    return end_tag();
  }

  Status parse_set(Node& node) {
    node.kind = Node::Kind::set;
    INGOT_ASSIGN(std::string first, need_name());
    node.targets.push_back(std::move(first));
    if (skip_op(".")) {
      node.kind = Node::Kind::set_field;
      INGOT_ASSIGN(std::string field, need_name());
      node.targets.push_back(std::move(field));
      INGOT_TRY(need_op("="));
      INGOT_ASSIGN(node.expr, parse_list());
      return end_tag();
    }
    while (skip_op(",")) {
      INGOT_ASSIGN(std::string next, need_name());
      node.targets.push_back(std::move(next));
    }
    if (skip_op("=")) {
      INGOT_ASSIGN(node.expr, parse_list());
      return end_tag();
    }
    if (node.targets.size() > 1 || is_op("|")) return expected("'='");
    INGOT_TRY(end_tag());
    INGOT_ASSIGN(node.body, parse_body({"endset"}));
    end_.clear();
    return end_tag();
  }

  Status parse_macro(Node& node) {
    node.kind = Node::Kind::macro;
    INGOT_ASSIGN(node.name, need_name());
    INGOT_TRY(need_op("("));
    while (!skip_op(")")) {
      if (!node.parameters.empty()) INGOT_TRY(need_op(","));
      Parameter parameter;
      INGOT_ASSIGN(parameter.name, need_name());
      if (skip_op("=")) {
        INGOT_ASSIGN(parameter.default_value, parse_expression());
      }
      node.parameters.push_back(std::move(parameter));
    }
    INGOT_TRY(end_tag());
    const int outer_loops = std::exchange(loops_, 0);
    INGOT_ASSIGN(node.body, parse_body({"endmacro"}));
    loops_ = outer_loops;
    end_.clear();
    if (now().kind == Kind::name) take();  // {% endmacro name %}
    return end_tag();
  }

  // --- expressions, loosest first ---

  std::unique_ptr<Expr> make(Expr::Kind kind, std::string name = {}) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = now().line;
    expr->name = std::move(name);
    return expr;
  }
  ExprPtr make(Expr::Kind kind, std::string name, ExprPtr first, ExprPtr second = nullptr) const {
    auto expr = make(kind, std::move(name));
    expr->args.push_back(std::move(first));
    if (second != nullptr) expr->args.push_back(std::move(second));
    return expr;
  }

  // An expression, or several with commas between them, which are a list.
  Result<ExprPtr> parse_list() {
    INGOT_ASSIGN(ExprPtr first, parse_expression());
    if (!is_op(",")) return first;
    auto list = make(Expr::Kind::list);
    list->args.push_back(std::move(first));
    while (skip_op(",")) {
      if (now().kind == Kind::tag_end || now().kind == Kind::print_end || is_op(")")) break;
      INGOT_ASSIGN(ExprPtr next, parse_expression());
      list->args.push_back(std::move(next));
    }
    return ExprPtr(std::move(list));
  }

  Result<ExprPtr> parse_expression() {
    const Nesting nesting(depth_);
    INGOT_TRY(check_depth());
    INGOT_ASSIGN(ExprPtr value, parse_or());
    while (is_word("if")) {
      take();
      auto choice = make(Expr::Kind::choice);
      INGOT_ASSIGN(ExprPtr condition, parse_or());
      ExprPtr other;
      if (skip_word("else")) {
        INGOT_ASSIGN(other, parse_expression());
      }
      choice->args.push_back(std::move(condition));
      choice->args.push_back(std::move(value));
      choice->args.push_back(std::move(other));
      value = std::move(choice);
    }
    return value;
  }

  Result<ExprPtr> parse_or() {
    INGOT_ASSIGN(ExprPtr left, parse_and());
    while (skip_word("or")) {
      INGOT_ASSIGN(ExprPtr right, parse_and());
      left = make(Expr::Kind::binary, "or", std::move(left), std::move(right));
    }
    return left;
  }

  Result<ExprPtr> parse_and() {
    INGOT_ASSIGN(ExprPtr left, parse_not());
    while (skip_word("and")) {
      INGOT_ASSIGN(ExprPtr right, parse_not());
      left = make(Expr::Kind::binary, "and", std::move(left), std::move(right));
    }
    return left;
  }

  Result<ExprPtr> parse_not() {
    const Nesting nesting(depth_);
    INGOT_TRY(check_depth());
    if (!skip_word("not")) return parse_comparison();
    INGOT_ASSIGN(ExprPtr value, parse_not());
    return make(Expr::Kind::unary, "not", std::move(value));
  }

  Result<ExprPtr> parse_comparison() {
    INGOT_ASSIGN(ExprPtr left, parse_sum());
    for (bool chained = false;; chained = true) {
      std::string op;
      if (now().kind == Kind::op) {
        for (const std::string_view known : {"==", "!=", "<=", ">=", "<", ">"}) {
          if (is_op(known)) op = known;
        }
      } else if (is_word("in")) {
        op = "in";
      } else if (is_word("not") && tokens_[at_ + 1].kind == Kind::name && tokens_[at_ + 1].text == "in") {
        take();
        op = "not in";
      }
      if (op.empty()) return left;
      if (chained) return wrong("comparisons in a row are not supported: write them with 'and'");
      take();
      INGOT_ASSIGN(ExprPtr right, parse_sum());
      left = make(Expr::Kind::binary, op, std::move(left), std::move(right));
    }
  }

  Result<ExprPtr> parse_sum() {
    INGOT_ASSIGN(ExprPtr left, parse_join());
    while (is_op("+") || is_op("-")) {
      const std::string op = take().text;
      INGOT_ASSIGN(ExprPtr right, parse_join());
      left = make(Expr::Kind::binary, op, std::move(left), std::move(right));
    }
    return left;
  }

  Result<ExprPtr> parse_join() {
    INGOT_ASSIGN(ExprPtr left, parse_product());
    while (skip_op("~")) {
      INGOT_ASSIGN(ExprPtr right, parse_product());
      left = make(Expr::Kind::binary, "~", std::move(left), std::move(right));
    }
    return left;
  }

  Result<ExprPtr> parse_product() {
    INGOT_ASSIGN(ExprPtr left, parse_unary());
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      const std::string op = take().text;
      INGOT_ASSIGN(ExprPtr right, parse_unary());
      left = make(Expr::Kind::binary, op, std::move(left), std::move(right));
    }
    if (is_op("**")) return wrong("the operator '**' is not supported");
    return left;
  }

  Result<ExprPtr> parse_unary() {
    const Nesting nesting(depth_);
    INGOT_TRY(check_depth());
    if (!is_op("-") && !is_op("+")) return parse_postfix();
    const std::string op = take().text;
    INGOT_ASSIGN(ExprPtr value, parse_unary());
    return make(Expr::Kind::unary, op, std::move(value));
  }

  Result<ExprPtr> parse_postfix() {
    INGOT_ASSIGN(ExprPtr value, parse_primary());
    for (;;) {
      if (skip_op(".")) {
        INGOT_ASSIGN(std::string name, need_name());
        value = make(Expr::Kind::attribute, std::move(name), std::move(value));
      } else if (skip_op("[")) {
        INGOT_ASSIGN(value, parse_subscript(std::move(value)));
      } else if (skip_op("(")) {
        auto call = make(Expr::Kind::call);
        call->args.push_back(std::move(value));
        INGOT_TRY(parse_arguments(*call));
        value = std::move(call);
      } else if (skip_op("|")) {
        INGOT_ASSIGN(std::string name, need_name());
        auto filter = make(Expr::Kind::filter, std::move(name));
        filter->args.push_back(std::move(value));
        if (skip_op("(")) INGOT_TRY(parse_arguments(*filter));
        value = std::move(filter);
      } else if (is_word("is")) {
        INGOT_ASSIGN(value, parse_test(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Result<ExprPtr> parse_test(ExprPtr value) {
    take();
    const bool negated = skip_word("not");
    INGOT_ASSIGN(std::string name, need_name());
    auto test = make(Expr::Kind::test, std::move(name));
    test->args.push_back(std::move(value));
    if (skip_op("(")) {
      INGOT_TRY(parse_arguments(*test));
    } else if (now().kind == Kind::string || now().kind == Kind::integer) {  // `is divisibleby 2`
      INGOT_ASSIGN(ExprPtr argument, parse_primary());
      test->args.push_back(std::move(argument));
    }
    ExprPtr result(std::move(test));
    return negated ? make(Expr::Kind::unary, "not", std::move(result)) : std::move(result);
  }

  Result<ExprPtr> parse_subscript(ExprPtr value) {
    ExprPtr parts[3];
    int colons = 0;
    for (;;) {
      if (skip_op(":")) {
        if (++colons > 2) return expected("']'");
      } else if (skip_op("]")) {
        break;
      } else {
        if (parts[colons] != nullptr) return expected("']'");
        INGOT_ASSIGN(parts[colons], parse_expression());
      }
    }
    if (colons == 0) {
      if (parts[0] == nullptr) return wrong("expected an index in '[]'");
      return make(Expr::Kind::index, "", std::move(value), std::move(parts[0]));
    }
    auto slice = make(Expr::Kind::slice);
    slice->args.push_back(std::move(value));
    for (ExprPtr& part : parts) slice->args.push_back(std::move(part));
    return ExprPtr(std::move(slice));
  }

  // After the '('.
  Status parse_arguments(Expr& call) {
    bool first = true;
    while (!skip_op(")")) {
      if (!std::exchange(first, false)) {
        INGOT_TRY(need_op(","));
        if (skip_op(")")) return {};
      }
      if (now().kind == Kind::name && tokens_[at_ + 1].kind == Kind::op && tokens_[at_ + 1].text == "=") {
        std::string name = take().text;
        take();
        INGOT_ASSIGN(ExprPtr value, parse_expression());
        call.named.emplace_back(std::move(name), std::move(value));
        continue;
      }
      if (is_op("*") || is_op("**")) return wrong("arguments of a list or dict ('*', '**') are not supported");
      INGOT_ASSIGN(ExprPtr value, parse_expression());
      call.args.push_back(std::move(value));
    }
    return {};
  }

  Result<ExprPtr> parse_primary() {
    auto literal = make(Expr::Kind::literal);
    switch (now().kind) {
      case Kind::string:
        literal->value = take().text;
        while (now().kind == Kind::string) literal->value = literal->value.get<std::string>() + take().text;
        return ExprPtr(std::move(literal));
      case Kind::integer: {
        int64_t number = 0;
        const std::string& text = now().text;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc()) return wrong(fmt::format("the number {} is too large", text));
        take();
        literal->value = number;
        return ExprPtr(std::move(literal));
      }
      case Kind::real:
        literal->value = std::strtod(take().text.c_str(), nullptr);
        return ExprPtr(std::move(literal));
      case Kind::name:
        return parse_name(std::move(literal));
      default:
        break;
    }
    if (skip_op("(")) {
      if (skip_op(")")) return ExprPtr(make(Expr::Kind::list));
      INGOT_ASSIGN(ExprPtr value, parse_list());
      INGOT_TRY(need_op(")"));
      return value;
    }
    if (skip_op("[")) return parse_items(Expr::Kind::list, "]");
    if (skip_op("{")) return parse_items(Expr::Kind::dict, "}");
    return expected("a value");
  }

  Result<ExprPtr> parse_name(std::unique_ptr<Expr> literal) {
    std::string name = take().text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      literal->value = name[0] == 't' || name[0] == 'T';
    } else if (name != "none" && name != "None") {
      literal->kind = Expr::Kind::name;
      literal->name = std::move(name);
    }
    return ExprPtr(std::move(literal));
  }

  Result<ExprPtr> parse_items(Expr::Kind kind, std::string_view close) {
    auto items = make(kind);
    while (!skip_op(close)) {
      if (!items->args.empty()) {
        INGOT_TRY(need_op(","));
        if (skip_op(close)) break;
      }
      INGOT_ASSIGN(ExprPtr item, parse_expression());
      items->args.push_back(std::move(item));
      if (kind == Expr::Kind::list) continue;
      INGOT_TRY(need_op(":"));
      INGOT_ASSIGN(ExprPtr value, parse_expression());
      items->args.push_back(std::move(value));
    }
    return ExprPtr(std::move(items));
  }

  std::vector<Token> tokens_;
  std::string_view name_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::string end_;  // the name of the tag that ended the last body
};

}  // namespace

Result<Body> parse(std::string_view source, std::string_view source_name) {
  INGOT_ASSIGN(std::vector<Token> tokens, tokenize(source, source_name));
  return Parser(std::move(tokens), source_name).run();
}

}  // namespace ingot::jinja
