// The store's answers as etcd 3.4 writes them in JSON: int64 as strings, bytes in base64, zero values left
// out. Written by hand: no value in them needs escaping but an error's message.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"
#include "store/types.h"

namespace ringshift::registry {

struct Header {
  std::uint64_t cluster_id = 0;
  store::Revision revision = 0;
};

[[nodiscard]] std::string to_json(const Header& header, const store::RangeResult& result);
[[nodiscard]] std::string to_json(const Header& header, const store::PutResult& result);
[[nodiscard]] std::string to_json(const Header& header, const store::DeleteResult& result);
[[nodiscard]] std::string to_json(const Header& header, const store::TxnResult& result);
// {"header":{...}} and whatever fields are added, each as `,"name":value`.
[[nodiscard]] std::string to_json(const Header& header, std::string_view fields);
[[nodiscard]] std::string number_field(std::string_view name, std::int64_t value);  // "" when 0.
[[nodiscard]] std::string key_list(const std::vector<std::string>& keys);
[[nodiscard]] std::string to_json(const store::Event& event, const store::KeyValue* previous);

// An error with the status etcd's gateway gives it.
struct ErrorAnswer {
  int status = 500;
  std::string body;
};
[[nodiscard]] ErrorAnswer to_answer(const Error& error);
[[nodiscard]] ErrorAnswer error_answer(int status, int code, std::string_view message);

}  // namespace ringshift::registry
