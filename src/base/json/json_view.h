// SPDX-License-Identifier: Apache-2.0
// JsonView: a JSON document as it stands in its text, for reading many small ones: nothing is
// copied, and numbers are converted when they are asked for.
//
// JsonScan reads the plain form that Purlin writes: strings of printable ASCII without escapes,
// integers of 64 bits, ordinary depth. Of what it takes, every value is the one that Json::parse
// reads; what it does not take may be JSON all the same, which Json::parse decides. The reading
// functions are Json's, so that a template reads either. Thread-safety: one thread; a scan is
// reused, and its views live until the next one. Failure: scan() is false, without a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace purlin {

class JsonScan;

class JsonView {
 public:
  struct Member;
  template <class T>
  class Range;

  JsonView() = default;  // null

  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_number() const { return is_int() || kind() == Kind::kReal; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }

  bool as_bool(bool fallback = false) const { return is_bool() ? text() == "true" : fallback; }
  std::int64_t as_int(std::int64_t fallback = 0) const;
  double as_double(double fallback = 0) const;
  std::string_view as_string() const { return is_string() ? text() : std::string_view(); }
  Range<JsonView> items() const;
  Range<Member> members() const;
  std::size_t size() const;  // items or members

  // Of a repeated key the last one counts.
  std::optional<JsonView> find(std::string_view key) const;
  JsonView operator[](std::string_view key) const { return find(key).value_or(JsonView()); }

  // The value's text in the document; for a string, the text between its quotes.
  std::string_view text() const;
  // Whether that text has no space between its parts. Json then writes the same text, except for
  // the digits of reals and the order of members.
  bool is_dense() const { return nodes_ == nullptr || node().dense; }
  bool holds_objects() const { return nodes_ != nullptr && node().objects; }  // or is one

 private:
  friend class JsonScan;
  enum class Kind : std::uint8_t { kNull, kBool, kInt, kReal, kString, kArray, kObject };
  struct Node {
    const char* text;
    std::uint32_t length;
    std::uint32_t end;    // past its last descendant
    std::uint32_t count;  // of items or members
    Kind kind;
    bool dense, objects;
  };
  JsonView(const std::vector<Node>* nodes, std::uint32_t at) : nodes_(nodes), at_(at) {}
  const Node& node() const { return (*nodes_)[at_]; }
  Kind kind() const { return nodes_ == nullptr ? Kind::kNull : node().kind; }

  const std::vector<Node>* nodes_ = nullptr;
  std::uint32_t at_ = 0;
};

struct JsonView::Member {
  std::string_view key;
  JsonView value;
};

// Items or members, one after the other.
template <class T>
class JsonView::Range {
 public:
  class Iterator {
   public:
    Iterator(const std::vector<Node>* nodes, std::uint32_t at) : nodes_(nodes), at_(at) {}
    T operator*() const {
      if constexpr (kMembers)
        return {{(*nodes_)[at_].text, (*nodes_)[at_].length}, {nodes_, at_ + 1}};
      else
        return {nodes_, at_};
    }
    Iterator& operator++() {
      at_ = (*nodes_)[kMembers ? at_ + 1 : at_].end;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    static constexpr bool kMembers = std::is_same_v<T, Member>;
    const std::vector<Node>* nodes_;
    std::uint32_t at_;
  };
  Range(const std::vector<Node>* nodes, std::uint32_t begin, std::uint32_t end, std::size_t count)
      : nodes_(nodes), begin_(begin), end_(end), count_(count) {}
  Iterator begin() const { return {nodes_, begin_}; }
  Iterator end() const { return {nodes_, end_}; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  const std::vector<Node>* nodes_;
  std::uint32_t begin_, end_;
  std::size_t count_;
};

class JsonScan {
 public:
  JsonScan() = default;
  JsonScan(const JsonScan&) = delete;
  JsonScan& operator=(const JsonScan&) = delete;
  // The text outlives the views.
  bool scan(std::string_view text);
  // Of the last scan() that was true.
  JsonView root() const { return {&nodes_, 0}; }

 private:
  bool value(int depth);
  bool object(int depth);
  bool array(int depth);
  bool string();
  bool number();
  bool word(std::string_view text, JsonView::Kind kind);
  void skip_space();
  void close(std::size_t self, std::uint32_t count, std::size_t spaces, std::size_t objects);
  bool take(char c);
  void add(JsonView::Kind kind, const char* text, const char* end);

  std::vector<JsonView::Node> nodes_;  // in the order of the text; of a member the key, the value
  const char *at_ = nullptr, *end_ = nullptr;
  std::size_t spaces_ = 0, objects_ = 0;  // passed
};

}  // namespace purlin
