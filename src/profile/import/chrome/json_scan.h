// SPDX-License-Identifier: Apache-2.0
// Scans JSON text without building values: the inner loops of the trace reader.
//
// All work on [p, end). kScanPadding readable zero bytes follow `end`: the functions may look 16
// bytes ahead without a bound check in the common case. nullptr: the text ends before what is
// sought. Escapes are stepped over, not checked; depth is a counter, so nesting costs no stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace purlin::profile {

inline constexpr std::size_t kScanPadding = 64;

inline const char* skip_space(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
}

namespace json_scan {

// Bit i is set where byte i of the 16 at p is one of interest.
inline unsigned quotes_and_escapes(const char* p) {
#if defined(__SSE2__)
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
  return static_cast<unsigned>(_mm_movemask_epi8(hit));
#else
  unsigned mask = 0;
  for (unsigned i = 0; i < 16; ++i) mask |= unsigned{p[i] == '"' || p[i] == '\\'} << i;
  return mask;
#endif
}

inline unsigned quotes_and_brackets(const char* p) {
#if defined(__SSE2__)
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  // '[' and '{', ']' and '}' differ in one bit.
  const __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
  const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')),
                                                _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))),
                                   _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
  return static_cast<unsigned>(_mm_movemask_epi8(hit));
#else
  unsigned mask = 0;
  for (unsigned i = 0; i < 16; ++i)
    mask |= unsigned{(p[i] | 0x20) == '{' || (p[i] | 0x20) == '}' || p[i] == '"'} << i;
  return mask;
#endif
}

}  // namespace json_scan

// From inside a string to its closing quote.
inline const char* find_quote(const char* p, const char* end) {
  while (p < end) {
    const unsigned mask = json_scan::quotes_and_escapes(p);
    if (mask == 0) {
      p += 16;
      continue;
    }
    p += __builtin_ctz(mask);
    if (p >= end) return nullptr;
    if (*p == '"') return p;
    p += 2;
  }
  return nullptr;
}

// From behind an opening bracket to behind the one that closes `depth` levels.
inline const char* skip_nested(const char* p, const char* end, std::uint64_t depth = 1) {
  while (p < end) {
    unsigned mask = json_scan::quotes_and_brackets(p);
    const char* block = p;
    p += 16;
    while (mask != 0) {
      const char* at = block + __builtin_ctz(mask);
      if (at >= end) return nullptr;
      mask &= mask - 1;
      if (*at == '"') {
        p = find_quote(at + 1, end);
        if (p == nullptr) return nullptr;
        ++p;
        break;
      }
      if ((*at | 0x20) == '{') {
        ++depth;
      } else if (--depth == 0) {
        return at + 1;
      }
    }
  }
  return nullptr;
}

// Behind a number or word; what follows decides whether it was whole.
inline const char* skip_word(const char* p) {
  while (static_cast<unsigned char>(*p) > ' ' && *p != ',' && *p != '}' && *p != ']') ++p;
  return p;
}

// Behind any value, p at its first byte. A word that touches the end may go on: nullptr.
inline const char* skip_value(const char* p, const char* end) {
  if (p >= end) return nullptr;
  if (*p == '"') {
    p = find_quote(p + 1, end);
    return p == nullptr ? nullptr : p + 1;
  }
  if (*p == '{' || *p == '[') return skip_nested(p + 1, end);
  p = skip_word(p);
  return p >= end ? nullptr : p;
}

}  // namespace purlin::profile
