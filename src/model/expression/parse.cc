// SPDX-License-Identifier: Apache-2.0
// Text to tree: a tokenizer and a recursive-descent parser with Python's precedences. The text's
// length and the tree's depth are bounded, so no text can exhaust the stack in parsing or in
// evaluation.
#include "base/text.h"
#include "model/expression/node.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace purlin {
namespace {

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

  Result<ExpressionNode> parse() {
    PURLIN_ASSIGN(ExpressionNode root, parse_conditional());
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
  static Result<ExpressionNode> make(ExpressionKind kind, int column,
                                     std::vector<ExpressionNode> children) {
    ExpressionNode node;
    node.kind = kind;
    node.column = column;
    for (const ExpressionNode& child : children) node.depth = std::max(node.depth, child.depth + 1);
    if (node.depth > kMaxDepth)
      return at(column, fmt::format("nested deeper than {} levels", kMaxDepth));
    node.children = std::move(children);
    return node;
  }
  template <class... Nodes>
  static std::vector<ExpressionNode> list(Nodes... nodes) {
    std::vector<ExpressionNode> out;
    (out.push_back(std::move(nodes)), ...);
    return out;
  }

  // Counts the parser's own recursion, which parentheses and signs drive.
  Result<ExpressionNode> nested(Result<ExpressionNode> (Parser::*parse_level)()) {
    if (level_ >= kMaxDepth)
      return at(token().column, fmt::format("nested deeper than {} levels", kMaxDepth));
    ++level_;
    Result<ExpressionNode> result = (this->*parse_level)();
    --level_;
    return result;
  }

  Result<ExpressionNode> parse_conditional() {
    PURLIN_ASSIGN(ExpressionNode value, parse_or());
    if (!is("if")) return value;
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(ExpressionNode condition, parse_or());
    PURLIN_TRY(expect("else"));
    PURLIN_ASSIGN(ExpressionNode other, nested(&Parser::parse_conditional));
    return make(ExpressionKind::kConditional, column,
                list(std::move(condition), std::move(value), std::move(other)));
  }

  // One node for a whole chain of the same operator, so that long ones stay shallow.
  Result<ExpressionNode> parse_logic(ExpressionKind kind, std::string_view word,
                                     std::string_view symbol,
                                     Result<ExpressionNode> (Parser::*parse_operand)()) {
    PURLIN_ASSIGN(ExpressionNode first, (this->*parse_operand)());
    if (!is(word) && !is(symbol)) return first;
    const int column = token().column;
    std::vector<ExpressionNode> children = list(std::move(first));
    while (take(word) || take(symbol)) {
      PURLIN_ASSIGN(ExpressionNode operand, (this->*parse_operand)());
      children.push_back(std::move(operand));
    }
    return make(kind, column, std::move(children));
  }
  Result<ExpressionNode> parse_or() {
    return parse_logic(ExpressionKind::kOr, "or", "||", &Parser::parse_and);
  }
  Result<ExpressionNode> parse_and() {
    return parse_logic(ExpressionKind::kAnd, "and", "&&", &Parser::parse_not);
  }

  Result<ExpressionNode> parse_not() {
    if (!is("not")) return parse_comparison();
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(ExpressionNode operand, nested(&Parser::parse_not));
    return make(ExpressionKind::kNot, column, list(std::move(operand)));
  }

  std::optional<ExpressionComparison> take_comparison() {
    if (take("==")) return ExpressionComparison::kEqual;
    if (take("!=")) return ExpressionComparison::kNotEqual;
    if (take("<=")) return ExpressionComparison::kLessEqual;
    if (take(">=")) return ExpressionComparison::kGreaterEqual;
    if (take("<")) return ExpressionComparison::kLess;
    if (take(">")) return ExpressionComparison::kGreater;
    if (take("in")) return ExpressionComparison::kIn;
    if (is("not") && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      return ExpressionComparison::kNotIn;
    }
    return std::nullopt;
  }

  Result<ExpressionNode> parse_comparison() {
    PURLIN_ASSIGN(ExpressionNode first, parse_sum());
    const int column = token().column;
    std::vector<ExpressionNode> children = list(std::move(first));
    std::vector<ExpressionComparison> comparisons;
    while (const auto comparison = take_comparison()) {
      comparisons.push_back(*comparison);
      const bool member =
          *comparison == ExpressionComparison::kIn || *comparison == ExpressionComparison::kNotIn;
      if (member && (is("[") || is("("))) {
        // Taken whole, without going back: reading it twice would be exponential in the nesting.
        PURLIN_ASSIGN(ExpressionNode items, parse_list());
        const bool is_list = items.kind == ExpressionKind::kList;
        children.push_back(std::move(items));
        if (is_list) break;
        continue;
      }
      PURLIN_ASSIGN(ExpressionNode operand, parse_sum());
      children.push_back(std::move(operand));
    }
    if (comparisons.empty()) return std::move(children[0]);
    PURLIN_ASSIGN(ExpressionNode node, make(ExpressionKind::kCompare, column, std::move(children)));
    node.comparisons = std::move(comparisons);
    return node;
  }

  Result<ExpressionNode> parse_list() {
    const int column = token().column;
    const bool square = is("[");
    ++at_;
    const std::string_view close = square ? "]" : ")";
    std::vector<ExpressionNode> items;
    bool comma = false;
    while (!is(close)) {
      PURLIN_ASSIGN(ExpressionNode item, nested(&Parser::parse_conditional));
      items.push_back(std::move(item));
      if (!take(",")) break;
      comma = true;
    }
    PURLIN_TRY(expect(close));
    if (!square && !comma && items.size() == 1) return std::move(items[0]);
    return make(ExpressionKind::kList, column, std::move(items));
  }

  struct Operator {
    std::string_view symbol;
    ExpressionKind kind;
  };
  template <std::size_t kCount>
  Result<ExpressionNode> parse_left(const Operator (&operators)[kCount],
                                    Result<ExpressionNode> (Parser::*parse_operand)()) {
    PURLIN_ASSIGN(ExpressionNode left, (this->*parse_operand)());
    while (true) {
      const auto found = std::find_if(std::begin(operators), std::end(operators),
                                      [&](const Operator& each) { return is(each.symbol); });
      if (found == std::end(operators)) return left;
      const int column = token().column;
      ++at_;
      PURLIN_ASSIGN(ExpressionNode right, (this->*parse_operand)());
      PURLIN_ASSIGN(left, make(found->kind, column, list(std::move(left), std::move(right))));
    }
  }
  Result<ExpressionNode> parse_sum() {
    static constexpr Operator kOperators[] = {{"+", ExpressionKind::kAdd},
                                              {"-", ExpressionKind::kSubtract}};
    return parse_left(kOperators, &Parser::parse_product);
  }
  Result<ExpressionNode> parse_product() {
    static constexpr Operator kOperators[] = {{"*", ExpressionKind::kMultiply},
                                              {"//", ExpressionKind::kFloorDivide},
                                              {"/", ExpressionKind::kDivide},
                                              {"%", ExpressionKind::kModulo}};
    return parse_left(kOperators, &Parser::parse_unary);
  }

  Result<ExpressionNode> parse_unary() {
    // C's ! binds like a sign; Python's `not` is parsed above the comparisons.
    static constexpr Operator kSigns[] = {
        {"-", ExpressionKind::kNegate}, {"+", ExpressionKind::kPlus}, {"!", ExpressionKind::kNot}};
    for (const Operator& sign : kSigns) {
      if (!is(sign.symbol)) continue;
      const int column = token().column;
      ++at_;
      PURLIN_ASSIGN(ExpressionNode operand, nested(&Parser::parse_unary));
      return make(sign.kind, column, list(std::move(operand)));
    }
    return parse_power();
  }

  Result<ExpressionNode> parse_power() {
    PURLIN_ASSIGN(ExpressionNode base, parse_primary());
    if (!is("**")) return base;
    const int column = token().column;
    ++at_;
    PURLIN_ASSIGN(ExpressionNode exponent,
                  nested(&Parser::parse_unary));  // right-associative: 2**-1
    return make(ExpressionKind::kPower, column, list(std::move(base), std::move(exponent)));
  }

  Result<ExpressionNode> parse_primary() {
    const Token& here = token();
    ExpressionNode node;
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
    node.kind = ExpressionKind::kName;
    const auto found = std::find(names_.begin(), names_.end(), here.text);
    node.name = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end()) names_.emplace_back(here.text);
    return node;
  }

  static bool is_keyword(std::string_view text) {
    constexpr std::array<std::string_view, 6> kWords = {"and", "or", "not", "in", "if", "else"};
    return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
  }

  Result<ExpressionNode> parse_call(const Token& name) {
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
    std::vector<ExpressionNode> arguments;
    while (!is(")")) {
      PURLIN_ASSIGN(ExpressionNode argument, nested(&Parser::parse_conditional));
      arguments.push_back(std::move(argument));
      if (!take(",")) break;
    }
    PURLIN_TRY(expect(")"));
    if (arguments.size() < found->least || arguments.size() > found->most)
      return at(name.column, fmt::format("{} takes {} argument{}{}, not {}", name.text,
                                         found->least, found->least == 1 ? "" : "s",
                                         found->most == kAny ? " or more" : "", arguments.size()));
    PURLIN_ASSIGN(ExpressionNode node,
                  make(ExpressionKind::kCall, name.column, std::move(arguments)));
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
  PURLIN_ASSIGN(ExpressionNode root, Parser(std::move(tokens), out.names_).parse());
  out.root_ = std::make_shared<const ExpressionNode>(std::move(root));
  return out;
}

}  // namespace purlin
