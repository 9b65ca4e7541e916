// What a template parses to. Internal to text/jinja/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/json_reader.h"

namespace ingot::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Expr {
  enum class Kind {
    literal,    // value
    name,       // name
    list,       // args
    dict,       // args: key, value, key, value, …
    attribute,  // args[0].name
    index,      // args[0][args[1]]
    slice,      // args[0][args[1]:args[2]:args[3]], each of the three may be null
    call,       // args[0](args[1]…, named…)
    filter,     // args[0] | name(args[1]…, named…)
    test,       // args[0] is name(args[1]…)
    unary,      // name is -, + or not
    binary,     // name is the operator; `and` and `or` look at the second only if they must
    choice      // args[1] if args[0] else args[2], which may be null
  };
  Kind kind = Kind::literal;
  int line = 0;
  std::string name;
  Json value;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Node;
using Body = std::vector<Node>;

struct Parameter {
  std::string name;
  ExprPtr default_value;  // may be null
};

struct Node {
  enum class Kind {
    text,       // text
    print,      // expr
    choice,     // branches; the last may have no condition
    loop,       // for targets in expr [if condition]: body, else other
    set,        // targets = expr, or the rendered body
    set_field,  // targets[0].targets[1] = expr
    macro,      // name(parameters): body
    stop,       // break
    skip        // continue
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text, name;
  ExprPtr expr, condition;
  std::vector<std::string> targets;
  std::vector<std::pair<ExprPtr, Body>> branches;
  std::vector<Parameter> parameters;
  Body body, other;
};

}  // namespace ingot::jinja
