// An importer on any bytes: no crash; an error has line and column; what comes out passes our own validation,
// and its YAML is read back to the same spec.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "import/import.h"

namespace ringshift::importing {

inline bool has_place(std::string_view message) {
  if (!message.starts_with("fuzz:")) return false;
  const auto second = message.find(':', 5), third = message.find(':', second + 1);
  return second != 5 && third != second + 1 && second != std::string_view::npos &&
         third != std::string_view::npos &&
         message.substr(5, second - 5).find_first_not_of("0123456789") == std::string_view::npos &&
         message.substr(second + 1, third - second - 1).find_first_not_of("0123456789") ==
             std::string_view::npos;
}

inline int fuzz_import(Format format, const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)guess(text);
  const auto imported = import_text(text, {format, "fuzz", "", ""});
  if (!imported) {
    if (!has_place(imported.error().message)) std::abort();
    return 0;
  }
  if (imported->empty()) std::abort();
  for (const Imported& one : *imported) {
    const auto again = topology::parse_spec(to_yaml(one, format, "fuzz"), "yaml");
    if (!again || !(*again == one.spec)) std::abort();
    (void)topology::to_json(one.spec);
  }
  return 0;
}

}  // namespace ringshift::importing
