#include "base/visible_text.h"

#include <cstdint>
#include <cstdio>

namespace pando {
namespace {

// One character of a text in UTF-8.
struct Utf8Character {
  uint32_t code_point = 0;
  size_t size = 1;  // in bytes
  bool is_valid = false;
};

// Returns the first character; a byte that is no UTF-8 is one character that is
// not valid. REQUIRES: text is not empty.
Utf8Character FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {first};
  uint32_t code_point = first & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {first};
    code_point = code_point << 6 | (byte(i) & 0x3f);
  }
  const uint32_t least = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < least || code_point > 0x10ffff || is_surrogate) {
    return {first};
  }
  return {code_point, size, true};
}

// Whether a terminal obeys the character, or it changes how others are shown:
// the control characters C0 and C1, separators of lines, marks and overrides of
// the direction of writing, and the byte order mark.
bool IsHidden(uint32_t code_point) {
  const auto in = [&](uint32_t first, uint32_t last) {
    return code_point >= first && code_point <= last;
  };
  return in(0, 0x1f) || in(0x7f, 0x9f) || code_point == 0x61c ||
         in(0x200e, 0x200f) || in(0x2028, 0x202e) || in(0x2066, 0x2069) ||
         code_point == 0xfeff;
}

}  // namespace

std::string VisibleText(std::string_view text, std::string_view kept) {
  std::string visible;
  while (!text.empty()) {
    const Utf8Character next = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, next.size);
    char escape[8];
    if (!next.is_valid) {
      std::snprintf(escape, sizeof(escape), "\\x%02x", next.code_point);
      visible += escape;
    } else if (IsHidden(next.code_point) &&
               kept.find(bytes) == std::string_view::npos) {
      std::snprintf(escape, sizeof(escape), "\\u%04x",
                    next.code_point & 0xffff);
      visible += escape;
    } else {
      visible += bytes;
    }
    text.remove_prefix(next.size);
  }
  return visible;
}

size_t FirstCharacterSize(std::string_view text) {
  return FirstCharacter(text).size;
}

}  // namespace pando
