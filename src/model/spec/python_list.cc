// SPDX-License-Identifier: Apache-2.0
#include "model/spec/python_list.h"

#include "base/text.h"
#include "model/expression/expression.h"

#include <cctype>
#include <string>

namespace purlin {
namespace {

constexpr int kMaxListDepth = 20;
constexpr std::size_t kMaxListLength = 1 << 20;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class ListParser {
 public:
  ListParser(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  Result<std::vector<Value>> parse() {
    PURLIN_ASSIGN(std::vector<Value> values, parse_sum());
    skip_space();
    if (at_ != text_.size()) return wrong("'+' or the end should be here");
    return values;
  }

 private:
  using Values = std::vector<Value>;

  Status wrong(std::string_view what) const {
    return error(Code::kInvalid, "column {}: {}", at_ + 1, what);
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char symbol) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != symbol) return false;
    ++at_;
    return true;
  }
  bool at_word(std::string_view word) const {
    const bool starts = at_ == 0 || !is_word(text_[at_ - 1]);
    return starts && starts_with(text_.substr(at_), word) &&
           (at_ + word.size() >= text_.size() || !is_word(text_[at_ + word.size()]));
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!at_word(word)) return false;
    at_ += word.size();
    return true;
  }
  Status append(Values& to, Values more) const {
    if (to.size() + more.size() > most_)
      return error(Code::kInvalid, "a list of more than {} values", most_);
    to.insert(to.end(), more.begin(), more.end());
    return Status::ok();
  }

  Result<Values> parse_sum() {
    if (depth_ >= kMaxListDepth) return wrong("nested too deeply");
    ++depth_;
    PURLIN_ASSIGN(Values values, parse_term());
    while (take('+')) {
      PURLIN_ASSIGN(Values more, parse_term());
      PURLIN_TRY(append(values, std::move(more)));
    }
    --depth_;
    return values;
  }

  Result<Values> parse_term() {
    if (take_word("range")) return parse_range();
    if (take_word("list") || take_word("tuple")) {
      if (!take('(')) return wrong("'(' should be here");
      PURLIN_ASSIGN(Values values, parse_sum());
      if (!take(')')) return wrong("')' should be here");
      return values;
    }
    if (take('[')) return parse_items(']');
    if (take('(')) return parse_items(')');
    return wrong("a list such as [1, 2], list(…) or range(…) should be here");
  }

  // The text of one item: up to a comma, a `for`, an `if` of a comprehension, or the end.
  std::string_view item(bool stop_at_if) {
    skip_space();
    const std::size_t begin = at_;
    int open = 0;
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote != '\0') {
        if (c == '\\') ++at_;
        if (c == quote) quote = '\0';
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      if (c == '(' || c == '[') ++open;
      if (open == 0 && (c == ')' || c == ']' || c == ',')) break;
      if (c == ')' || c == ']') --open;
      if (open == 0 && (at_word("for") || (stop_at_if && at_word("if")))) break;
    }
    at_ = std::min(at_, text_.size());
    return trim(text_.substr(begin, at_ - begin));
  }

  Result<Value> evaluate(std::string_view text, const Scope& scope) const {
    const Result<Expression> parsed = Expression::parse(text);
    if (!parsed.is_ok()) return error(Code::kInvalid, "'{}': {}", text, parsed.status().message());
    Result<Value> value = parsed->evaluate(scope.lookup());
    if (!value.is_ok()) return value.status().with_context(fmt::format("'{}'", text));
    return value;
  }

  Result<Values> parse_items(char close) {
    Values values;
    while (!take(close)) {
      const std::string_view text = item(false);
      if (take_word("for")) {
        if (!values.empty()) return wrong("'for' after more than one item");
        return parse_comprehension(text, close);
      }
      PURLIN_ASSIGN(Value value, evaluate(text, Scope{}));
      PURLIN_TRY(append(values, {std::move(value)}));
      if (take(close)) break;
      if (!take(',')) return wrong(fmt::format("',' or '{}' should be here", close));
    }
    return values;
  }

  Result<Values> parse_comprehension(std::string_view text, char close) {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty() || !take_word("in")) return wrong("'for NAME in …' should be here");
    PURLIN_ASSIGN(const Values from, parse_sum());
    std::string_view condition;
    if (take_word("if")) condition = item(true);
    if (!take(close)) return wrong(fmt::format("'{}' should be here", close));
    Values values;
    Scope scope;
    for (const Value& each : from) {
      scope.set(name, each);
      if (!condition.empty()) {
        PURLIN_ASSIGN(const Value kept, evaluate(condition, scope));
        if (!truthy(kept)) continue;
      }
      PURLIN_ASSIGN(Value value, evaluate(text, scope));
      values.push_back(std::move(value));
    }
    return values;
  }

  Result<Values> parse_range() {
    if (!take('(')) return wrong("'(' should be here");
    PURLIN_ASSIGN(const Values ends, parse_items(')'));
    std::int64_t numbers[3] = {0, 0, 1};
    if (ends.empty() || ends.size() > 3) return wrong("range takes 1 to 3 numbers");
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto* number = std::get_if<std::int64_t>(&ends[i]);
      if (number == nullptr) return wrong("range takes integers");
      numbers[ends.size() == 1 ? 1 : i] = *number;
    }
    const auto [begin, end, step] = numbers;
    if (step == 0) return wrong("the step of a range must not be 0");
    Values values;
    for (std::int64_t value = begin; step > 0 ? value < end : value > end;) {
      PURLIN_TRY(append(values, {Value(value)}));
      if (__builtin_add_overflow(value, step, &value)) break;
    }
    return values;
  }

  std::string_view text_;
  std::size_t most_, at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::vector<Value>> parse_python_list(std::string_view text, std::size_t most) {
  if (text.size() > kMaxListLength)
    return error(Code::kInvalid, "a list of {} characters; at most {} are read", text.size(),
                 kMaxListLength);
  return ListParser(text, most).parse();
}

}  // namespace purlin
