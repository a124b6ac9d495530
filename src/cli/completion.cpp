// ringshift completion: the shell's half, printed from the tree of commands itself, so that it never lags.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace ringshift::cli {
namespace {

// One command of the tree and what may follow it.
struct Node {
  std::string path;  // " resize start"; "" is the program.
  std::vector<std::string> commands, flags, valued;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Node>& out) {
  Node node;
  node.path = path;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      (option->get_items_expected_max() > 0 ? node.valued : node.flags).push_back("--" + name);
    }
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) node.commands.push_back(command->get_name());
  out.push_back(std::move(node));
  for (const CLI::App* command : commands) collect(*command, path + " " + command->get_name(), out);
}

std::string words(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, " ")); }

// Words complete to commands, then options; the value of an option, and what nothing fits, to file names.
std::string bash(const std::vector<Node>& nodes) {
  std::string paths, cases;
  for (const Node& node : nodes) {
    if (!node.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", node.path);
    cases += fmt::format("    '{}') commands='{}' flags='{}' valued='{}' ;;\n", node.path,
                         words(node.commands), words(node.flags), words(node.valued));
  }
  return "_ringshift() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local path='' commands='' flags='' valued='' i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"$path ${COMP_WORDS[i]}\" in\n"
         "      " +
         paths +
         ") path=\"$path ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  case \" $valued \" in *\" $previous \"*) return ;; esac\n"
         "  [ \"${current#-}\" = \"$current\" ] || commands=\"$flags $valued\"\n"
         "  COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _ringshift ringshift\n";
}

std::string fish(const std::vector<Node>& nodes) {
  std::string out =
      "function __ringshift_at\n"
      "  set -l path ''\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    if contains -- \"$path $word\" $__ringshift_paths\n"
      "      set path \"$path $word\"\n"
      "    end\n"
      "  end\n"
      "  test \"$path\" = \"$argv[1]\"\n"
      "end\n"
      "set -g __ringshift_paths";
  for (const Node& node : nodes) out += fmt::format(" '{}'", node.path);
  out += '\n';
  for (const Node& node : nodes) {
    const std::string head = fmt::format("complete -c ringshift -n '__ringshift_at \"{}\"'", node.path);
    if (!node.commands.empty()) out += fmt::format("{} -f -a '{}'\n", head, words(node.commands));
    for (const std::string& flag : node.flags) out += fmt::format("{} -l {}\n", head, flag.substr(2));
    for (const std::string& option : node.valued) out += fmt::format("{} -r -l {}\n", head, option.substr(2));
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print what makes a shell complete our commands");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  source <(ringshift completion bash)                                    in ~/.bashrc\n"
      "  autoload -U +X bashcompinit compinit && compinit && bashcompinit; source <(ringshift completion "
      "zsh)\n"
      "  ringshift completion fish > ~/.config/fish/completions/ringshift.fish");
  const auto add = [&](const char* shell, std::string (*script)(const std::vector<Node>&)) {
    command->add_subcommand(shell, fmt::format("For {}", shell))->callback([&app, script] {
      std::vector<Node> nodes;
      collect(app, "", nodes);
      std::fputs(script(nodes).c_str(), stdout);
    });
  };
  add("bash", bash);
  add("zsh", bash);  // By bashcompinit.
  add("fish", fish);
}

}  // namespace ringshift::cli
