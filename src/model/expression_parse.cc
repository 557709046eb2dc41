// SPDX-License-Identifier: Apache-2.0
// Text to tree: a tokenizer and a recursive-descent parser with Python's precedences. The text's
// length and the tree's depth are bounded, so that neither parsing nor evaluation can exhaust the
// stack whatever the text.
#include "base/text.h"
#include "model/expression_node.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace purlin {
namespace {

using Node = Expression::Node;
using Kind = Node::Kind;
using Comparison = Node::Comparison;

constexpr std::size_t kMaxLength = 16384;
constexpr int kMaxDepth = 200;

struct FunctionEntry {
  std::string_view name;
  ExpressionFunction function;
  std::size_t least, most;  // arguments
};
constexpr std::size_t kAny = 1000;
constexpr FunctionEntry kFunctions[] = {
    {"min", ExpressionFunction::kMin, 1, kAny},
    {"max", ExpressionFunction::kMax, 1, kAny},
    {"abs", ExpressionFunction::kAbs, 1, 1},
    {"int", ExpressionFunction::kInt, 1, 1},
    {"float", ExpressionFunction::kFloat, 1, 1},
    {"ceil", ExpressionFunction::kCeil, 1, 1},
    {"floor", ExpressionFunction::kFloor, 1, 1},
    {"round", ExpressionFunction::kRound, 1, 1},
    {"log2", ExpressionFunction::kLog2, 1, 1},
    {"sqrt", ExpressionFunction::kSqrt, 1, 1},
    {"ceil_div", ExpressionFunction::kCeilDiv, 2, 2},
    {"round_up", ExpressionFunction::kRoundUp, 2, 2},
    {"pow2_ceil", ExpressionFunction::kPow2Ceil, 1, 1},
};

struct Token {
  enum class Type { kEnd, kNumber, kText, kName, kSymbol } type = Type::kEnd;
  std::string_view text;  // as written; for kName also the keywords
  Value value;            // kNumber, kText
  int column = 1;
};

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

Status at(int column, std::string_view text) {
  return error(Code::kInvalid, "column {}: {}", column, text);
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> all() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      PURLIN_ASSIGN(Token token, next());
      tokens.push_back(token);
      if (token.type == Token::Type::kEnd) return tokens;
    }
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  int column() const { return static_cast<int>(at_) + 1; }

  Result<Token> next() {
    Token token;
    token.column = column();
    if (at_ == text_.size()) return token;
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number(token);
    if (c == '"' || c == '\'') return quoted(token);
    const std::size_t begin = at_;
    if (is_name_start(c)) {
      token.type = Token::Type::kName;
      while (is_name_part(peek())) ++at_;
    } else {
      PURLIN_ASSIGN(const std::size_t length, symbol_length());
      token.type = Token::Type::kSymbol;
      at_ += length;
    }
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

  Result<std::size_t> symbol_length() const {
    constexpr std::array<std::string_view, 8> kPairs = {
        "**", "//", "==", "!=", "<=", ">=", "&&", "||"};
    const std::string_view rest = text_.substr(at_);
    for (std::string_view pair : kPairs)
      if (starts_with(rest, pair)) return std::size_t{2};
    if (std::string_view("+-*/%<>()[],!").find(rest[0]) != std::string_view::npos)
      return std::size_t{1};
    const unsigned char byte = static_cast<unsigned char>(rest[0]);
    if (byte < 0x20 || byte >= 0x7F)
      return at(column(), fmt::format("unexpected character (byte 0x{:02x})", byte));
    std::string hint;
    if (rest[0] == '=') hint = "; equality is '=='";
    if (rest[0] == '&' || rest[0] == '|' || rest[0] == '^')
      hint = "; there are no bit operations, and logic is 'and', 'or'";
    if (rest[0] == '?') hint = "; write 'a if condition else b'";
    return at(column(), fmt::format("unexpected '{}'{}", rest[0], hint));
  }

  Result<Token> number(Token token) {
    const std::size_t begin = at_;
    bool real = false;
    while (is_digit(peek())) ++at_;
    if (peek() == '.') {
      real = true;
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    const bool sign = peek(1) == '+' || peek(1) == '-';
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign ? 2 : 1))) {
      real = true;
      at_ += sign ? 2 : 1;
      while (is_digit(peek())) ++at_;
    }
    token.type = Token::Type::kNumber;
    token.text = text_.substr(begin, at_ - begin);
    if (is_name_part(peek()))
      return at(column(), fmt::format("'{}' right after the number {}", peek(), token.text));
    if (real) {
      const auto value = parse_double(token.text);
      if (!value) return at(token.column, fmt::format("number {} is out of range", token.text));
      token.value = *value;
      return token;
    }
    if (token.text.size() > 1 && token.text[0] == '0' &&
        token.text.find_first_not_of('0') != std::string_view::npos)
      return at(token.column, fmt::format("number {} has leading zeros", token.text));
    const auto value = parse_int(token.text);
    if (!value)
      return at(token.column, fmt::format("{} does not fit a 64-bit integer", token.text));
    token.value = *value;
    return token;
  }

  Result<Token> quoted(Token token) {
    const std::size_t begin = at_;
    const char quote = peek();
    std::string value;
    for (++at_; peek() != quote; ++at_) {
      if (at_ >= text_.size()) return at(token.column, "text without a closing quote");
      if (peek() == '\\') {
        ++at_;
        if (peek() != '\\' && peek() != '\'' && peek() != '"')
          return at(column(), "only \\\\, \\' and \\\" are known in a text");
      }
      value += peek();
    }
    ++at_;
    token.type = Token::Type::kText;
    token.text = text_.substr(begin, at_ - begin);
    token.value = std::move(value);
    return token;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Each parse_* function is one precedence level, lowest first.
class Parser {
 public:
  Parser(std::vector<Token> tokens, std::vector<std::string>& names)
      : tokens_(std::move(tokens)), names_(names) {}

  Result<Node> parse() {
    PURLIN_ASSIGN(Node root, parse_conditional());
    if (!at_end()) return unexpected("an operator or the end");
    return root;
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  bool at_end() const { return token().type == Token::Type::kEnd; }
  bool is(std::string_view text) const {
    return (token().type == Token::Type::kSymbol || token().type == Token::Type::kName) &&
           token().text == text;
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  Status unexpected(std::string_view wanted) const {
    if (at_end()) return at(token().column, fmt::format("ends where {} should be", wanted));
    return at(token().column, fmt::format("'{}' where {} should be", token().text, wanted));
  }
  Status expect(std::string_view symbol) {
    return take(symbol) ? Status::ok() : unexpected(fmt::format("'{}'", symbol));
  }

  // The node with these children, its depth checked.
  static Result<Node> make(Kind kind, int column, std::vector<Node> children) {
    Node node;
    node.kind = kind;
    node.column = column;
    for (const Node& child : children) node.depth = std::max(node.depth, child.depth + 1);
    if (node.depth > kMaxDepth)
      return at(column, fmt::format("nested deeper than {} levels", kMaxDepth));
    node.children = std::move(children);
    return node;
  }
  template <class... Nodes>
  static std::vector<Node> list(Nodes... nodes) {
    std::vector<Node> out;
    (out.push_back(std::move(nodes)), ...);
    return out;
  }

  // Counts the parser's own recursion, which parentheses and signs drive.
  Result<Node> nested(Result<Node> (Parser::*parse_level)()) {
    if (level_ >= kMaxDepth)
      return at(token().column, fmt::format("nested deeper than {} levels", kMaxDepth));
    ++level_;
    Result<Node> result = (this->*parse_level)();
    --level_;
    return result;
  }

  Result<Node> parse_conditional() {
    PURLIN_ASSIGN(Node value, parse_or());
    if (!is("if")) return value;
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(Node condition, parse_or());
    PURLIN_TRY(expect("else"));
    PURLIN_ASSIGN(Node other, nested(&Parser::parse_conditional));
    return make(Kind::kConditional, column,
                list(std::move(condition), std::move(value), std::move(other)));
  }

  // One node for a whole chain of the same operator, so that long ones stay shallow.
  Result<Node> parse_logic(Kind kind, std::string_view word, std::string_view symbol,
                           Result<Node> (Parser::*parse_operand)()) {
    PURLIN_ASSIGN(Node first, (this->*parse_operand)());
    if (!is(word) && !is(symbol)) return first;
    const int column = token().column;
    std::vector<Node> children = list(std::move(first));
    while (take(word) || take(symbol)) {
      PURLIN_ASSIGN(Node operand, (this->*parse_operand)());
      children.push_back(std::move(operand));
    }
    return make(kind, column, std::move(children));
  }
  Result<Node> parse_or() { return parse_logic(Kind::kOr, "or", "||", &Parser::parse_and); }
  Result<Node> parse_and() { return parse_logic(Kind::kAnd, "and", "&&", &Parser::parse_not); }

  Result<Node> parse_not() {
    if (!is("not")) return parse_comparison();
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(Node operand, nested(&Parser::parse_not));
    return make(Kind::kNot, column, list(std::move(operand)));
  }

  std::optional<Comparison> take_comparison() {
    if (take("==")) return Comparison::kEqual;
    if (take("!=")) return Comparison::kNotEqual;
    if (take("<=")) return Comparison::kLessEqual;
    if (take(">=")) return Comparison::kGreaterEqual;
    if (take("<")) return Comparison::kLess;
    if (take(">")) return Comparison::kGreater;
    if (take("in")) return Comparison::kIn;
    if (is("not") && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      return Comparison::kNotIn;
    }
    return std::nullopt;
  }

  Result<Node> parse_comparison() {
    PURLIN_ASSIGN(Node first, parse_sum());
    const int column = token().column;
    std::vector<Node> children = list(std::move(first));
    std::vector<Comparison> comparisons;
    while (const auto comparison = take_comparison()) {
      comparisons.push_back(*comparison);
      const bool member = *comparison == Comparison::kIn || *comparison == Comparison::kNotIn;
      if (member && (is("[") || is("("))) {
        // Taken whole, without going back: reading it twice would be exponential in the nesting.
        PURLIN_ASSIGN(Node items, parse_list());
        const bool is_list = items.kind == Kind::kList;
        children.push_back(std::move(items));
        if (is_list) break;
        continue;
      }
      PURLIN_ASSIGN(Node operand, parse_sum());
      children.push_back(std::move(operand));
    }
    if (comparisons.empty()) return std::move(children[0]);
    PURLIN_ASSIGN(Node node, make(Kind::kCompare, column, std::move(children)));
    node.comparisons = std::move(comparisons);
    return node;
  }

  Result<Node> parse_list() {
    const int column = token().column;
    const bool square = is("[");
    ++at_;
    const std::string_view close = square ? "]" : ")";
    std::vector<Node> items;
    bool comma = false;
    while (!is(close)) {
      PURLIN_ASSIGN(Node item, nested(&Parser::parse_conditional));
      items.push_back(std::move(item));
      if (!take(",")) break;
      comma = true;
    }
    PURLIN_TRY(expect(close));
    if (!square && !comma && items.size() == 1) return std::move(items[0]);
    return make(Kind::kList, column, std::move(items));
  }

  struct Operator {
    std::string_view symbol;
    Kind kind;
  };
  template <std::size_t kCount>
  Result<Node> parse_left(const Operator (&operators)[kCount],
                          Result<Node> (Parser::*parse_operand)()) {
    PURLIN_ASSIGN(Node left, (this->*parse_operand)());
    while (true) {
      const auto found = std::find_if(std::begin(operators), std::end(operators),
                                      [&](const Operator& each) { return is(each.symbol); });
      if (found == std::end(operators)) return left;
      const int column = token().column;
      ++at_;
      PURLIN_ASSIGN(Node right, (this->*parse_operand)());
      PURLIN_ASSIGN(left, make(found->kind, column, list(std::move(left), std::move(right))));
    }
  }
  Result<Node> parse_sum() {
    static constexpr Operator kOperators[] = {{"+", Kind::kAdd}, {"-", Kind::kSubtract}};
    return parse_left(kOperators, &Parser::parse_product);
  }
  Result<Node> parse_product() {
    static constexpr Operator kOperators[] = {{"*", Kind::kMultiply},
                                              {"//", Kind::kFloorDivide},
                                              {"/", Kind::kDivide},
                                              {"%", Kind::kModulo}};
    return parse_left(kOperators, &Parser::parse_unary);
  }

  Result<Node> parse_unary() {
    // C's ! binds like a sign; Python's `not` is parsed above the comparisons.
    static constexpr Operator kSigns[] = {
        {"-", Kind::kNegate}, {"+", Kind::kPlus}, {"!", Kind::kNot}};
    for (const Operator& sign : kSigns) {
      if (!is(sign.symbol)) continue;
      const int column = token().column;
      ++at_;
      PURLIN_ASSIGN(Node operand, nested(&Parser::parse_unary));
      return make(sign.kind, column, list(std::move(operand)));
    }
    return parse_power();
  }

  Result<Node> parse_power() {
    PURLIN_ASSIGN(Node base, parse_primary());
    if (!is("**")) return base;
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(Node exponent, nested(&Parser::parse_unary));  // right-associative: 2**-1
    return make(Kind::kPower, column, list(std::move(base), std::move(exponent)));
  }

  Result<Node> parse_primary() {
    const Token& here = token();
    Node node;
    node.column = here.column;
    if (here.type == Token::Type::kNumber || here.type == Token::Type::kText) {
      node.literal = here.value;
      ++at_;
      return node;
    }
    if (take("(")) {
      PURLIN_ASSIGN(node, nested(&Parser::parse_conditional));
      PURLIN_TRY(expect(")"));
      return node;
    }
    if (is("[")) return at(here.column, "a list can only stand right of 'in'");
    if (here.type != Token::Type::kName || is_keyword(here.text))
      return unexpected("a number, a name or '('");
    ++at_;
    if (is("(")) return parse_call(here);
    if (here.text == "True" || here.text == "true" || here.text == "False" ||
        here.text == "false") {
      node.literal = here.text == "True" || here.text == "true";
      return node;
    }
    node.kind = Kind::kName;
    const auto found = std::find(names_.begin(), names_.end(), here.text);
    node.name = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end()) names_.emplace_back(here.text);
    return node;
  }

  static bool is_keyword(std::string_view text) {
    constexpr std::array<std::string_view, 6> kWords = {"and", "or", "not", "in", "if", "else"};
    return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
  }

  Result<Node> parse_call(const Token& name) {
    const auto* found =
        std::find_if(std::begin(kFunctions), std::end(kFunctions),
                     [&](const FunctionEntry& entry) { return entry.name == name.text; });
    if (found == std::end(kFunctions)) {
      std::vector<std::string> known;
      for (const FunctionEntry& entry : kFunctions) known.emplace_back(entry.name);
      const std::string near = nearest(name.text, known);
      return at(name.column, near.empty() ? fmt::format("unknown function '{}'; there are {}",
                                                        name.text, join(known, ", "))
                                          : fmt::format("unknown function '{}'; did you mean '{}'?",
                                                        name.text, near));
    }
    PURLIN_TRY(expect("("));
    std::vector<Node> arguments;
    while (!is(")")) {
      PURLIN_ASSIGN(Node argument, nested(&Parser::parse_conditional));
      arguments.push_back(std::move(argument));
      if (!take(",")) break;
    }
    PURLIN_TRY(expect(")"));
    if (arguments.size() < found->least || arguments.size() > found->most)
      return at(name.column, fmt::format("{} takes {} argument{}{}, not {}", name.text,
                                         found->least, found->least == 1 ? "" : "s",
                                         found->most == kAny ? " or more" : "", arguments.size()));
    PURLIN_ASSIGN(Node node, make(Kind::kCall, name.column, std::move(arguments)));
    node.function = found->function;
    return node;
  }

  std::vector<Token> tokens_;
  std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int level_ = 0;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  if (text.size() > kMaxLength)
    return error(Code::kInvalid, "an expression of {} characters; at most {} are read", text.size(),
                 kMaxLength);
  Expression out;
  out.text_ = std::string(trim(text));
  if (out.text_.empty()) return error(Code::kInvalid, "column 1: the expression is empty");
  PURLIN_ASSIGN(std::vector<Token> tokens, Tokenizer(text).all());
  PURLIN_ASSIGN(Node root, Parser(std::move(tokens), out.names_).parse());
  out.root_ = std::make_shared<const Node>(std::move(root));
  return out;
}

}  // namespace purlin
