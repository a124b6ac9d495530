// `ringshift token`: who may use the embedded registry, and for what.
//
// A secret goes to standard output, or to a file for its owner alone, and nowhere else; it comes once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "cli/access_client.h"
#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/private_file.h"
#include "cli/registry_flags.h"
#include "cli/span_of_time.h"

namespace ringshift::cli {
namespace {

using Json = nlohmann::json;

struct TokenFlags {
  RegistryFlags registry;
  std::string name, role, name_space{coord::kDefaultNamespace}, expires, grace = "0s", out;
  std::vector<std::string> ids, addresses;
  bool json = false, force = false, yes = false, certificate = false;
};

// What is sent is JSON, which holds text alone.
void check_text(const TokenFlags& flags) {
  std::vector<std::string> words = {flags.name, flags.name_space};
  for (const auto* list : {&flags.ids, &flags.addresses})
    words.insert(words.end(), list->begin(), list->end());
  for (const std::string& word : words) {
    std::string text = word;  // Quotes and the like are the registry's to refuse.
    std::ranges::replace_if(
        text, [](char c) { return c == '"' || c == '\\' || (c >= 0 && c < ' '); }, '?');
    if (Json::accept('"' + text + '"')) continue;
    end_command(kBadUsage, fmt::format("'{}' is no UTF-8: write letters, digits, '.', '_' and '-'",
                                       base::printable(word, 64)));
  }
}

Json answer_of(const TokenFlags& flags, std::string_view path, const Json& request) {
  check_text(flags);
  const std::string body = or_end(ask_registry(flags.registry, path, request.dump()));
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) end_command(kFailed, "the registry's answer is not JSON");
  return json;
}

// Where the secret goes: taken before the registry makes one that then could not be kept, while the old one,
// of the last admin perhaps, has ended.
std::optional<ReservedFile> place_of(const TokenFlags& flags) {
  constexpr std::size_t kRoom = 512;
  if (flags.out.empty()) return std::nullopt;
  auto place = ReservedFile::take(flags.out, kRoom, 0600, flags.force);
  if (!place) end_command(kFailed, "--out " + place.error().message);
  return *std::move(place);
}

void hand_out(const TokenFlags& flags, std::optional<ReservedFile> place, Json answer,
              std::string_view what) {
  const auto found = answer.find("token");
  if (found == answer.end() || !found->is_string() || *found == "")
    end_command(kFailed, fmt::format("the answer of {} has no token in it: is it the embedded registry?",
                                     flags.registry.registry));
  const auto secret = found->get<std::string>();
  const auto lost = [&](std::string_view why) {
    end_command(kFailed,
                fmt::format("{}, but {}: its secret is lost, 'ringshift token rotate {}' makes another", what,
                            why, flags.name));
  };
  if (!place) {
    if (!flags.json) report(fmt::format("{}; this is shown once. As a file for --registry-auth-file:", what));
    const std::string line = flags.json ? answer.dump() : "token:" + secret;
    if (std::fputs((line + "\n").c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      lost(fmt::format("it could not be shown ({})", std::strerror(errno)));
    return;
  }
  if (const Status kept = place->fill("token:" + secret + "\n"); !kept) lost(kept.error().message);
  answer.erase("token");
  answer["file"] = flags.out;
  if (flags.json) {
    fmt::print("{}\n", answer.dump());
  } else {
    fmt::print("{}; it is in {}, for --registry-auth-file\n", what, flags.out);
  }
}

void create(const TokenFlags& flags) {
  Json request = {{"name", flags.name}, {"role", flags.role}};
  if (flags.role != "admin") request["namespace"] = flags.name_space;
  if (!flags.ids.empty()) request["ids"] = flags.ids;
  if (!flags.addresses.empty()) request["addresses"] = flags.addresses;
  if (!flags.expires.empty()) {
    const std::int64_t life = or_end(parse_span(flags.expires, "--expires"), kBadUsage);
    if (life == 0)  // Which is the registry's word for never.
      end_command(kBadUsage,
                  fmt::format("--expires {}: a token lives for a second at least; without --expires it "
                              "does not end",
                              flags.expires));
    request["expires_in_seconds"] = life;
  }
  if (flags.certificate) {
    request["certificate"] = true;
    const Json answer = answer_of(flags, "/ringshift/v1/token/create", request);
    // A registry of an earlier release does not know the word, and has made a token.
    if (!answer.value("certificate", false)) {
      end_command(kFailed,
                  fmt::format("this registry knows no entries for certificates, and has made a token that "
                              "nobody has: end it with 'ringshift token revoke {}'",
                              flags.name));
    }
    if (flags.json) {
      fmt::print("{}\n", answer.dump());
    } else {
      fmt::print(
          "'{0}' ({1}) is made, for certificates with the URI ringshift:{0}; 'ringshift cert issue {0} "
          "--identity {0}' makes one\n",
          flags.name, flags.role);
    }
    return;
  }
  std::optional<ReservedFile> place = place_of(flags);
  const Json answer = answer_of(flags, "/ringshift/v1/token/create", request);
  hand_out(flags, std::move(place), answer, fmt::format("token '{}' ({}) is made", flags.name, flags.role));
}

void rotate(const TokenFlags& flags) {
  const std::int64_t grace = or_end(parse_span(flags.grace, "--grace"), kBadUsage);
  std::optional<ReservedFile> place = place_of(flags);
  const Json answer =
      answer_of(flags, "/ringshift/v1/token/rotate", {{"name", flags.name}, {"grace_seconds", grace}});
  hand_out(flags, std::move(place), answer,
           grace == 0
               ? fmt::format("token '{}' is new; the old one has ended", flags.name)
               : fmt::format("token '{}' is new; the old one goes on for {}", flags.name, flags.grace));
}

void revoke(const TokenFlags& flags) {
  const Json answer = answer_of(flags, "/ringshift/v1/token/revoke", {{"name", flags.name}});
  if (flags.json) {
    fmt::print("{}\n", answer.dump());
  } else {
    fmt::print(
        "token '{}' has ended, and so do its watches; what it wrote under a lease goes when that runs out\n",
        flags.name);
  }
}

std::string list_text(const Json& token, const char* field) {
  if (!token.contains(field)) return "-";
  std::string text;
  for (const Json& one : token[field]) text += (text.empty() ? "" : ",") + one.get<std::string>();
  return text;
}

void list(const TokenFlags& flags) {
  const Json answer = answer_of(flags, "/ringshift/v1/token/list", Json::object());
  if (flags.json) {
    fmt::print("{}\n", answer.dump());
    return;
  }
  constexpr const char* kRow = "{:<24} {:<13} {:<16} {:<7} {:<20} {:<20} {:<20} {}\n";
  fmt::print(fmt::runtime(kRow), "NAME", "ROLE", "NAMESPACE", "SECRETS", "CREATED", "EXPIRES", "IDS",
             "ADDRESSES");
  for (const Json& token : answer.value("tokens", Json::array())) {
    const std::int64_t expires = token.value("expires", std::int64_t{0});
    fmt::print(
        fmt::runtime(kRow), token.value("name", ""), token.value("role", ""), token.value("namespace", ""),
        token.value("certificate", false) ? "cert" : std::to_string(token.value("secrets", 0)),
        time_text(token.value("created", std::int64_t{0})), expires == 0 ? "never" : time_text(expires),
        list_text(token, "ids"), list_text(token, "addresses"));
  }
}

using Flags = std::shared_ptr<TokenFlags>;

void add_out(CLI::App& command, const Flags& flags) {
  command.add_option("--out", flags->out, "Write the secret there, mode 0600, instead of to standard output")
      ->type_name("FILE");
  command.add_flag("--force", flags->force, "Replace that file")->needs("--out");
}

CLI::App* add_verb(CLI::App& token, const char* name, const char* text, const Flags& flags,
                   void (*run)(const TokenFlags&)) {
  CLI::App* command = token.add_subcommand(name, text);
  flags->registry.add_connection_to(*command);
  command->add_flag("--json", flags->json, "One JSON object");
  command->callback([flags, run] { run(*flags); });
  return command;
}

}  // namespace

void add_token(CLI::App& app) {
  CLI::App* token = app.add_subcommand("token", "Say who may use the embedded registry, and for what");
  token->require_subcommand(1);
  token->footer(
      "All of it needs an admin's token. The first start of 'ringshift registry --auth' writes one to a "
      "file\n"
      "beside the database, and says where.\n"
      "Roles: read (reads its namespace), register-own (an agent or a router: writes its own record),\n"
      "operate (a controller or an operator: all keys of its namespace), admin (everything).\n"
      "Examples:\n"
      "  export RINGSHIFT_REGISTRY_AUTH_FILE=/var/lib/ringshift/registry.db.admin-token\n"
      "  ringshift token create controller --role operate --out controller.token\n"
      "  ringshift token create cache-1 --role register-own --ids cache-1 --addresses 10.0.1.0/24 --expires "
      "90d\n"
      "  ringshift token create controller --role operate --certificate    its certificate says who it is\n"
      "  ringshift token rotate controller --grace 10m --out controller.token --force\n"
      "  ringshift token list --json");
  const auto made = std::make_shared<TokenFlags>();
  CLI::App* command = add_verb(*token, "create", "Make a token", made, create);
  command->add_option("name", made->name, "Its name, in the audit and for rotate and revoke")->required();
  command->add_option("--role", made->role, "What it may do")
      ->required()
      ->check(CLI::IsMember({"read", "register-own", "operate", "admin"}));
  command->add_option("--namespace", made->name_space, "Namespace of its clusters; an admin has all")
      ->check(check_name_flag)
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
  command
      ->add_option("--ids", made->ids,
                   "register-own: ids of its instances and routers, * and ? match [its name, and NAME.*]")
      ->delimiter(',');
  command->add_option("--addresses", made->addresses, "register-own: where its instances may be [anywhere]")
      ->type_name("RANGE")
      ->delimiter(',');
  command->add_option("--expires", made->expires, "After how long it ends: 12h, 90d [never]");
  add_out(*command, made);
  command
      ->add_flag("--certificate", made->certificate,
                 "No secret: whoever shows a certificate with the URI ringshift:NAME, and no token, is it")
      ->excludes("--out");

  add_verb(*token, "list", "Show the tokens, not their secrets", std::make_shared<TokenFlags>(), list);

  const auto rotated = std::make_shared<TokenFlags>();
  command = add_verb(*token, "rotate", "Give a token a new secret", rotated, rotate);
  command->add_option("name", rotated->name, "Which one")->required();
  command->add_option("--grace", rotated->grace, "How long the old secret goes on: 10m, 24h")
      ->capture_default_str();
  add_out(*command, rotated);

  const auto revoked = std::make_shared<TokenFlags>();
  command = add_verb(*token, "revoke", "End a token, with all its secrets", revoked, revoke);
  command->add_option("name", revoked->name, "Which one")->required();
}

}  // namespace ringshift::cli
