// The menu's button on narrow screens, and the search: every word must occur in a section; titles count most.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const menu = document.getElementById("guide-menu");
  const button = document.getElementById("guide-menu-button");
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", String(menu.classList.toggle("open")));
    window.scrollTo(0, 0);
  });
  menu.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"});
  window.scrollTo(window.scrollX, location.hash ? window.scrollY : 0);

  const shownMax = 20;
  const input = document.getElementById("guide-search");
  const results = document.getElementById("guide-results");

  const rank = (words, [page, , title, text]) => {
    let points = 0;
    for (const word of words) {
      const inTitle = title.toLowerCase().includes(word);
      const inPage = page.toLowerCase().includes(word);
      const inText = text.toLowerCase().includes(word);
      if (!inTitle && !inText && !inPage) return 0;
      points += (inTitle ? 10 : 0) + (inPage ? 3 : 0) + (inText ? 1 : 0);
    }
    return points;
  };
  const excerpt = (words, text) => {
    const at = Math.max(0, text.toLowerCase().indexOf(words.find((word) => text.toLowerCase().includes(word)) ?? ""));
    const from = Math.max(0, at - 50);
    return (from ? "… " : "") + text.slice(from, at + 110);
  };
  const entry = (words, [page, link, title, text]) => {
    const item = document.createElement("li");
    const anchor = document.createElement("a");
    anchor.href = link;
    const name = document.createElement("b");
    name.textContent = title;
    const where = document.createElement("small");
    where.textContent = (page === title ? "" : page + ": ") + excerpt(words, text);
    anchor.append(name, where);
    item.append(anchor);
    return item;
  };
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length === 0 ? [] : window.guideIndex.map((section) => [rank(words, section), section])
        .filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]).slice(0, shownMax);
    results.replaceChildren(...found.map(([, section]) => entry(words, section)));
    if (words.length > 0 && found.length === 0) {
      const none = document.createElement("li");
      none.textContent = "Nothing found.";
      results.append(none);
    }
    results.hidden = words.length === 0;
  });
  const close = () => { results.hidden = true; };
  results.addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(); }
    if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
    if (event.key === "ArrowDown" && !results.hidden) {
      const links = [...results.querySelectorAll("a")];
      const next = links[links.indexOf(document.activeElement) + 1];
      if (next) { event.preventDefault(); next.focus(); }
    }
  });
})();
