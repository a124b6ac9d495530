// The words of `ringshift plan`: which spec is in force, and what shall follow it.
//
//   [FROM] TO | [FROM] add ID=ADDRESS[,weight=W][,zone=Z][,host=H][,label=L]... | [FROM] remove ID... |
//   [FROM] weight ID=W...
//
// FROM that is left out is the registry's. Pure; errors are bad usage.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "plan/edit.h"

namespace ringshift::cli {

struct PlanWords {
  std::optional<std::string> from_file;  // nullopt: what is in force in the registry.
  std::optional<std::string> to_file;    // Either this or the edit.
  std::optional<plan::Edit> edit;
};

[[nodiscard]] Result<PlanWords> parse_plan_words(std::span<const std::string> words);

}  // namespace ringshift::cli
