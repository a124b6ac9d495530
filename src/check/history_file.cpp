#include "check/history_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace ringshift::check {
namespace {

using nlohmann::json;

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json to_line(const Operation& op) {
  json line = {{"kind", to_string(op.kind)},
               {"key", op.key},
               {"client", op.client},
               {"proxy", op.proxy},
               {"sequence", op.sequence},
               {"verb", to_string(op.verb)},
               {"invoked_ns", op.invoked},
               {"returned_ns", op.returned},
               {"outcome", to_string(op.outcome)}};
  if (!op.field.empty()) line["field"] = op.field;
  if (!op.value.empty()) line["value"] = op.value;
  if (op.ttl_ms != 0) line["ttl_ms"] = op.ttl_ms;
  if (op.text) line["text"] = *op.text;
  if (op.number != 0) line["number"] = op.number;
  for (const auto& [field, value] : op.fields) line["fields"].push_back({field, value});
  return line;
}

template <class T>
T field_or(const json& line, const char* name, T otherwise) {
  const auto found = line.find(name);
  return found == line.end() ? otherwise : found->get<T>();
}

// Throws json::exception where a field has another type; `problem` says what else is wrong.
Operation from_line(const json& line, std::string& problem) {
  Operation op;
  const auto named = [&](const char* name, auto parse, auto& into) {
    const auto text = line.at(name).get<std::string>();
    if (const auto parsed = parse(text)) {
      into = *parsed;
    } else if (problem.empty()) {
      problem = fmt::format("'{}' is no {}", text, name);
    }
  };
  named("kind", parse_kind, op.kind);
  named("verb", parse_verb, op.verb);
  named("outcome", parse_outcome, op.outcome);
  op.key = line.at("key").get<std::string>();
  op.client = line.at("client").get<std::uint32_t>();
  op.proxy = field_or<std::uint32_t>(line, "proxy", 0);
  op.sequence = field_or<std::uint64_t>(line, "sequence", 0);
  op.invoked = line.at("invoked_ns").get<std::int64_t>();
  op.returned = field_or<std::int64_t>(line, "returned_ns", op.invoked);
  op.field = field_or<std::string>(line, "field", "");
  op.value = field_or<std::string>(line, "value", "");
  op.ttl_ms = field_or<std::int64_t>(line, "ttl_ms", 0);
  op.number = field_or<std::int64_t>(line, "number", 0);
  if (const auto text = line.find("text"); text != line.end()) op.text = text->get<std::string>();
  if (const auto fields = line.find("fields"); fields != line.end()) {
    op.fields = fields->get<std::vector<std::pair<std::string, std::string>>>();
  }
  if (problem.empty() && op.returned < op.invoked) problem = "it returned before it was invoked";
  return op;
}

class Reader {
 public:
  Reader(std::string path, const std::function<void(const HistoryHeader&)>& begin,
         const std::function<void(std::vector<Operation>)>& key)
      : path_(std::move(path)), begin_(begin), key_(key) {}

  Result<HistoryHeader> run() {
    std::ifstream in(path_);
    if (!in) return fail(ErrorKind::not_found, fmt::format("{}: {}", path_, std::strerror(errno)));
    for (std::string line; std::getline(in, line);) {
      ++number_;
      if (line.empty()) continue;
      std::string problem =
          line.size() > kMaxLine ? fmt::format("longer than {} bytes", kMaxLine) : take(line);
      if (!problem.empty())
        return fail(ErrorKind::invalid, fmt::format("{}:{}: {}", path_, number_, problem));
    }
    if (in.bad()) return fail(ErrorKind::internal, fmt::format("{}: cannot be read to its end", path_));
    if (!begun_) return fail(ErrorKind::invalid, fmt::format("{}: empty; is it a history?", path_));
    if (!operations_.empty()) key_(std::move(operations_));
    return header_;
  }

 private:
  std::string take(const std::string& text) {
    try {
      const json line = json::parse(text);
      if (!begun_) return take_header(line);
      std::string problem;
      Operation op = from_line(line, problem);
      if (!problem.empty()) return problem;
      return take_operation(std::move(op));
    } catch (const json::exception& error) {
      return error.what();
    }
  }

  std::string take_header(const json& line) {
    if (!line.is_object() || line.value("ringshift_history", 0) != 1) {
      return "no history of version 1: the first line must be {\"ringshift_history\": 1, ...}, as 'ringshift "
             "check "
             "--history' writes it";
    }
    header_.seed = line.value("seed", std::uint64_t{0});
    header_.proxies = line.value("proxies", std::vector<std::string>{});
    header_.ttl_slack = std::chrono::milliseconds(line.value("ttl_slack_ms", std::int64_t{250}));
    begun_ = true;
    begin_(header_);
    return {};
  }

  std::string take_operation(Operation op) {
    if (!operations_.empty() && operations_.front().key != op.key) {
      key_(std::move(operations_));
      operations_.clear();
    }
    if (operations_.empty() && !seen_.insert(op.key).second) {
      return fmt::format("key {} again: a key's operations must be adjacent (sort the lines by their keys)",
                         op.key);
    }
    if (!operations_.empty() && operations_.front().kind != op.kind) {
      return fmt::format("key {} is a {} here and was a {} before", op.key, to_string(op.kind),
                         to_string(operations_.front().kind));
    }
    if (operations_.size() >= kMaxOperationsOfAKey) {
      return fmt::format("more than {} operations on key {}", kMaxOperationsOfAKey, op.key);
    }
    operations_.push_back(std::move(op));
    return {};
  }

  const std::string path_;
  const std::function<void(const HistoryHeader&)>& begin_;
  const std::function<void(std::vector<Operation>)>& key_;
  HistoryHeader header_;
  bool begun_ = false;
  std::size_t number_ = 0;
  std::vector<Operation> operations_;     // Of the key that is being read.
  std::unordered_set<std::string> seen_;  // Names only.
};

}  // namespace

Result<std::unique_ptr<HistoryWriter>> HistoryWriter::create(const std::string& path,
                                                             const HistoryHeader& header) {
  std::unique_ptr<HistoryWriter> writer(new HistoryWriter(path));
  writer->out_.open(path, std::ios::trunc);
  if (!writer->out_) {
    return fail(ErrorKind::invalid, fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
  writer->out_ << dump({{"ringshift_history", 1},
                        {"seed", header.seed},
                        {"proxies", header.proxies},
                        {"ttl_slack_ms", header.ttl_slack.count()}})
               << '\n';
  return writer;
}

void HistoryWriter::write(const std::vector<Operation>& operations) {
  for (const Operation& op : operations) out_ << dump(to_line(op)) << '\n';
}

Status HistoryWriter::close() {
  out_.close();
  if (out_) return {};
  return fail(ErrorKind::internal, fmt::format("{}: could not be written whole; is the disk full?", path_));
}

Result<HistoryHeader> read_history(const std::string& path,
                                   const std::function<void(const HistoryHeader&)>& begin,
                                   const std::function<void(std::vector<Operation>)>& key) {
  return Reader(path, begin, key).run();
}

}  // namespace ringshift::check
