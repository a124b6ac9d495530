// How the API answers: statuses, errors as JSON, queries, and what every answer carries. Shared by the files
// that implement Api, and by nobody else.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "admin/listener.h"
#include "ringshift/error.h"

namespace ringshift::admin {

[[nodiscard]] Answer json_answer(std::string body, int status = 200);
[[nodiscard]] Answer error_answer(int status, std::string_view code, std::string_view message,
                                  std::string_view fix = "");
// With the status and the code of its kind; an `invalid` one that begins with a field's name tells it.
[[nodiscard]] Answer error_answer(const Error& error);
[[nodiscard]] Answer answer_of(Result<std::string> json);

// "a=b&c=d", decoded. At most kQueryFields.
inline constexpr std::size_t kQueryFields = 16;
[[nodiscard]] std::map<std::string, std::string> parse_query(std::string_view query);
// A whole number of the query, within its bounds; invalid names the field.
[[nodiscard]] Result<std::uint64_t> number_of(const std::map<std::string, std::string>& query,
                                              const char* name, std::uint64_t least, std::uint64_t most,
                                              std::uint64_t usual);

}  // namespace ringshift::admin
