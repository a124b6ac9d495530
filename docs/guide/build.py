#!/usr/bin/python3
"""Builds the user guide: static HTML of the documents in this repository and of every command's --help.

    docs/guide/build.py --ringshift build/release/bin/ringshift --out build/docs
    docs/guide/build.py --ringshift ... --out ... --source DIR      documents of another tree

Reads the Markdown named in CONTENTS (a page of docs/ that is not named there comes under "More"), asks the program for its
commands and theirs, and writes one page each, a search index, a style and a script. The result needs no server and no
network: it makes no request but to its own files. Ends with 1, and says file and link, when a link between documents leads
nowhere, a picture is missing or comes from elsewhere, or a table of contents names what is not there.
"""
import argparse
import html
import json
import posixpath
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from string import Template
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE = Path(__file__).resolve().parent
COMMANDS_PAGE = "cli.md"  # Made here, as are the pages of the commands: cli-NAME.md.

# Groups of pages: the path in the repository, and the words of the menu; "?" before a path: only when it is there.
CONTENTS = [
    ("Begin", [("README.md", "Ringshift"), ("docs/install.md", "Install"), ("docs/concepts.md", "Concepts"),
               ("README.zh-CN.md", "简体中文")]),
    ("Run it", [("docs/spec.md", "The spec"), ("docs/proxy.md", "The proxy's file"),
                ("docs/operations.md", "Operations"), ("docs/registries.md", "Registries"),
                ("docs/registry-access.md", "Access to the registry"),
                ("?docs/discovery.md", "Discovery"), ("docs/agent.md", "Agents"),
                ("docs/membership.md", "Membership"), ("docs/tls.md", "TLS, passwords, sockets"),
                ("?docs/metrics.md", "Metrics"), ("?docs/dashboard.md", "Dashboard"), ("?docs/drill.md", "The drill"),
                ("docs/limits.md", "Limits")]),
    ("Placements and changes", [("docs/placements.md", "Placements"), ("docs/plan.md", "Plan a change"),
                                ("docs/compare.md", "Compare"), ("docs/import.md", "Import a fleet")]),
    ("Commands of ringshift", [(COMMANDS_PAGE, "All commands")]),
    ("Reference", [("docs/commands.md", "Redis commands"), ("docs/protocol.md", "Resize protocol"),
                   ("docs/architecture.md", "Architecture"), ("docs/registry-api.md", "Registry API"),
                   ("?docs/admin-api.md", "Admin API"), ("?packaging/README.md", "Packaging"),
                   ("models/README.md", "The model"),
                   ("bench/README.md", "Benchmarks")]),
    ("The project", [("docs/roadmap.md", "Roadmap"), ("CHANGELOG.md", "Changelog"), ("SECURITY.md", "Security"),
                     ("CONTRIBUTING.md", "Contributing"), ("docs/guide/README.md", "The guide")]),
]
HELP_SECONDS = 20
HELP_COLUMN, HELP_WIDTH = 30, 96  # Where the program begins its descriptions; what a page shows.
COMMAND_DEPTH_MAX = 4


def fail(problems):
    for problem in problems:
        print(f"guide: {problem}", file=sys.stderr)
    sys.exit(1)


# --- the program's commands ---------------------------------------------------------------------------------------

def help_of(program, path):
    try:
        done = subprocess.run([str(program), *path, "--help"], text=True, capture_output=True, timeout=HELP_SECONDS,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        fail([f"{program} {' '.join(path)} --help: {error}; --ringshift names the program"])
    if done.returncode != 0 or not done.stdout.strip():
        fail([f"{program} {' '.join(path)} --help: status {done.returncode}, {done.stderr.strip() or 'no text'}"])
    # Defaults that tell the machine the guide was built on.
    return re.sub(rf"\b{re.escape(socket.gethostname())}-\d+\b", "HOST-PID", done.stdout).strip()


def wrapped(text):
    """Long descriptions broken within their column: a page should not have to be scrolled sideways."""
    lines = []
    for line in text.splitlines():
        head, words = line[:HELP_COLUMN], line[HELP_COLUMN:]
        if len(line) > HELP_WIDTH and (not head.strip() or re.match(r"  \S.*\s$", head)):
            first, *rest = textwrap.wrap(words, HELP_WIDTH - HELP_COLUMN, break_long_words=False, break_on_hyphens=False)
            lines += [head + first] + [" " * HELP_COLUMN + more for more in rest]
        else:
            lines.append(line)
    return "\n".join(lines)


def commands_in(text):
    """The names and descriptions under `Subcommands:`. A description may be broken over lines that are indented more."""
    found, inside = [], False
    for line in text.splitlines():
        if re.fullmatch(r"Subcommands:\s*", line):
            inside = True
        elif inside and (match := re.match(r"  (\S+)(?:\s+(\S.*))?$", line)):
            found.append([match[1], match[2] or ""])
        elif inside and found and re.match(r"\s{3,}\S", line):
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        elif inside and found:
            break
    return found


def describe(program, path, text):
    """Markdown of a command and all below it: a heading and the help each."""
    level = "#" * min(len(path), 6)
    parts = [f"{level} ringshift {' '.join(path)}\n\n```text\n{wrapped(text)}\n```\n"]
    if len(path) < COMMAND_DEPTH_MAX:
        for name, _ in commands_in(text):
            parts.append(describe(program, [*path, name], help_of(program, [*path, name])))
    return "\n".join(parts)


def command_pages(program):
    """Path of the page -> Markdown; and the menu's entries in the program's order."""
    root = help_of(program, [])
    commands = commands_in(root)
    if not commands:
        fail([f"{program} --help names no subcommands under 'Subcommands:'"])
    pages, entries, rows = {}, [], []
    for name, description in commands:
        page = f"cli-{name}.md"
        pages[page] = describe(program, [name], help_of(program, [name]))
        entries.append((page, name))
        rows.append(f"| [`ringshift {name}`]({page}) | {description.replace('|', chr(92) + '|')} |")
    pages[COMMANDS_PAGE] = (
        "# Commands of ringshift\n\nWhat each program says for `--help`. Every one ends with 0 when it is done, 1 when it "
        "failed and 2 when it was asked wrongly, and has `--json` where it prints something. A flag beats its "
        "`RINGSHIFT_*` variable.\n\n| command | |\n|---|---|\n" + "\n".join(rows) + f"\n\n```text\n{wrapped(root)}\n```\n")
    return pages, entries


# --- Markdown to HTML ---------------------------------------------------------------------------------------------

def slug(title):
    """As GitHub makes them, so that a link works in both places."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def colour(code, language, _attributes=None):
    try:
        lexer = get_lexer_by_name({"sh": "bash", "console": "console"}.get(language, language or "text"))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return f"<pre><code>{highlight(code, lexer, HtmlFormatter(nowrap=True))}</code></pre>\n"


def parser():
    markdown = MarkdownIt("commonmark", {"highlight": colour}).enable(["table", "strikethrough"])
    return markdown.use(anchors_plugin, min_level=1, max_level=6, slug_func=slug, permalink=False)


def text_of(inline):
    words = {"text": lambda child: child.content, "code_inline": lambda child: child.content, "softbreak": lambda _: " "}
    return "".join(words[child.type](child) for child in inline.children or [] if child.type in words)


class Page:
    """One document: parsed once; `anchors` and `sections` are known before links are looked at."""

    def __init__(self, path, text, markdown):
        self.path, self.out = path, output_name(path)
        self.tokens = markdown.parse(text)
        self.anchors, self.headings, self.sections = set(), [], []
        title, anchor, words = "", "", []
        for number, token in enumerate(self.tokens):
            if token.type == "heading_open":
                self.note_section(title, anchor, words)
                title, anchor, words = text_of(self.tokens[number + 1]), token.attrGet("id"), []
                self.anchors.add(anchor)
                self.headings.append((int(token.tag[1]), title, anchor))
            elif token.type == "inline" and self.tokens[number - 1].type != "heading_open":
                words.append(text_of(token))
            elif token.type in ("fence", "code_block"):
                words.append(token.content)
        self.note_section(title, anchor, words)
        self.title = self.headings[0][1] if self.headings else path

    def note_section(self, title, anchor, words):
        if title:
            self.sections.append((title, anchor, re.sub(r"\s+", " ", " ".join(words))))

    def every_token(self):
        for token in self.tokens:
            yield token
            yield from token.children or []


def output_name(path):
    if path == "README.md":
        return "index.html"
    name = path.removeprefix("docs/").removesuffix(".md")
    return name.replace("/", "-").lower() + ".html"


class Links:
    """Turns links between documents into links between pages, and knows each that leads nowhere."""

    def __init__(self, source, pages):
        self.source, self.pages = source, pages
        self.problems, self.files, self.directories = [], {}, {}

    def blame(self, page, link, why):
        self.problems.append(f"{page.path}: '{link}': {why}")

    def file(self, page, link, path):
        """A file of the repository that is no page is copied; a directory becomes a list of its files."""
        if path.startswith("..") or not (self.source / path).exists():
            self.blame(page, link, f"there is no {path} in the repository")
            return link
        if (self.source / path).is_dir():
            inside = sorted(entry for entry in (self.source / path).iterdir() if entry.is_file())
            self.directories[path] = [(entry.name, self.file(page, link, f"{path}/{entry.name}")) for entry in inside]
            return f"files/{path}/index.html"
        shown = path if Path(path).suffix in (".svg", ".png", ".jpg", ".yaml", ".yml", ".json", ".txt") else path + ".txt"
        self.files[path] = "files/" + shown
        return self.files[path]

    def resolve(self, page, link):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return link  # Elsewhere: followed only when somebody clicks it.
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), unquote(parts.path))) if parts.path else page.path
        if (self.source / path).is_dir() and posixpath.join(path, "README.md") in self.pages:
            path = posixpath.join(path, "README.md")
        if path not in self.pages:
            return self.file(page, link, path)
        target, anchor = self.pages[path], unquote(parts.fragment)
        if anchor and anchor not in target.anchors:
            self.blame(page, link, f"{path} has no heading '#{anchor}'")
        return target.out + (f"#{parts.fragment}" if anchor else "")

    def mend(self, page):
        for token in page.every_token():
            if token.type == "link_open":
                token.attrSet("href", self.resolve(page, token.attrGet("href")))
            elif token.type == "image":
                source = token.attrGet("src")
                if urlsplit(source).scheme or urlsplit(source).netloc:
                    self.blame(page, source, "a picture from elsewhere: the guide is read offline")
                else:
                    token.attrSet("src", self.file(page, source, posixpath.normpath(
                        posixpath.join(posixpath.dirname(page.path), unquote(source)))))
            elif token.type in ("html_inline", "html_block") and re.search(r"\s(src|href|srcset)\s*=", token.content):
                self.blame(page, token.content.strip(), "write links and pictures in Markdown")


# --- the pages ----------------------------------------------------------------------------------------------------

def contents(source, command_entries):
    """The menu: groups of (path, words); what CONTENTS does not name comes last."""
    groups, named, problems = [], set(), []
    for group, entries in CONTENTS:
        kept = []
        for path, words in entries:
            optional, path = path.startswith("?"), path.removeprefix("?")
            named.add(path)
            if path == COMMANDS_PAGE or (source / path).is_file():
                kept.append((path, words))
            elif not optional:
                problems.append(f"CONTENTS names {path}, which is not there")
        if (COMMANDS_PAGE, "All commands") in kept:
            kept += command_entries
        groups.append((group, kept))
    if problems:
        fail(problems)
    rest = sorted(path.relative_to(source).as_posix() for path in (source / "docs").glob("*.md"))
    more = [(path, None) for path in rest if path not in named]
    return groups + ([("More", more)] if more else [])


def menu(groups, pages, current):
    lines = []
    for group, entries in groups:
        lines.append(f"<h2>{html.escape(group)}</h2><ul>")
        for path, words in entries:
            page = pages[path]
            here = ' aria-current="page"' if page is current else ""
            lines.append(f'<li><a href="{page.out}"{here}>{html.escape(words or page.title)}</a>')
            parts = [(title, anchor) for level, title, anchor in page.headings if level == 2]
            if here and parts:
                lines.append("<ul>" + "".join(f'<li><a href="#{html.escape(anchor)}">{html.escape(title.removeprefix(page.title + " "))}</a></li>'
                                              for title, anchor in parts) + "</ul>")
            lines.append("</li>")
        lines.append("</ul>")
    return "\n".join(lines)


def render(markdown, page):
    body = markdown.renderer.render(page.tokens, markdown.options, {})
    # Wide tables scroll by themselves, so that a narrow screen does not.
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return re.sub(r'<(h[1-6]) id="([^"]*)">(.*?)</\1>',
                  r'<\1 id="\2">\3 <a class="anchor" href="#\2" aria-label="Link to this section">#</a></\1>', body, flags=re.S)


def check_out(out):
    """An earlier guide may be replaced, and nothing else."""
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "search-index.js").exists())):
        fail([f"--out {out}: is there and is no guide; name another directory"])


def write(out, source, groups, pages, markdown):
    links = Links(source, pages)
    for page in pages.values():
        links.mend(page)
    if links.problems:
        fail(links.problems)
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    template = Template((HERE / "page.html").read_text())
    for page in pages.values():
        chinese = page.path.endswith(".zh-CN.md")
        (out / page.out).write_text(template.substitute(
            language="zh-CN" if chinese else "en", title=html.escape(page.title), menu=menu(groups, pages, page),
            body=render(markdown, page)))
    for path, name in links.files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, out / name)
    for path, listed in links.directories.items():
        items = "".join(f'<li><a href="{html.escape(Path(name).name)}">{html.escape(entry)}</a></li>' for entry, name in listed)
        (out / "files" / path).mkdir(parents=True, exist_ok=True)
        (out / "files" / path / "index.html").write_text(
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f'<meta name="color-scheme" content="light dark"><title>{html.escape(path)}</title>'
            f"<h1>{html.escape(path)}</h1><ul>{items}</ul></html>\n")
    light, dark = (HtmlFormatter(style=style).get_style_defs("pre") for style in ("default", "github-dark"))
    (out / "guide.css").write_text((HERE / "guide.css").read_text() + light +
                                   "\n@media (prefers-color-scheme: dark) {\n" + dark + "\n}\n"
                                   "pre { background: var(--code); line-height: 1.45; }\n")
    shutil.copyfile(HERE / "guide.js", out / "guide.js")
    # A script and not JSON: a page that was opened from a file may not fetch.
    index = [[page.title, page.out + (f"#{anchor}" if anchor else ""), title, words]
             for page in pages.values() for title, anchor, words in page.sections]
    (out / "search-index.js").write_text("window.guideIndex = " + json.dumps(index, ensure_ascii=False) + ";\n")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ringshift", type=Path, required=True, help="the program whose commands are described")
    options.add_argument("--out", type=Path, required=True, help="a new directory, or that of an earlier guide")
    options.add_argument("--source", type=Path, default=HERE.parents[1], help="the repository")
    given = options.parse_args()
    check_out(given.out)
    markdown = parser()
    generated, entries = command_pages(given.ringshift.absolute())
    groups = contents(given.source, entries)
    pages = {}
    for _, listed in groups:
        for path, _ in listed:
            text = generated.get(path) or (given.source / path).read_text()
            pages[path] = Page(path, text, markdown)
    write(given.out, given.source, groups, pages, markdown)
    print(f"{given.out / 'index.html'}: {len(pages)} pages")


if __name__ == "__main__":
    main()
