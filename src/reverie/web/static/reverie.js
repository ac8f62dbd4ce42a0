// Keys for the whole view. Pages work without this file.
"use strict";

(() => {
  const typing = (element) => element.matches("input, textarea, select, [contenteditable]");
  const go = (selector) => {
    const link = document.querySelector(selector);
    if (link) link.click();
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "/") {
      const field = document.querySelector("input[type=search]");
      if (field) { field.focus(); event.preventDefault(); }
    } else if (event.key === "?") {
      const help = document.querySelector("#keys");
      if (help) help.showModal();
    } else if (event.key === "n" || event.key === "]") go("a[rel=next]");
    else if (event.key === "p" || event.key === "[") go("a[rel=prev]");
    else if (/^[1-9]$/.test(event.key)) go(`header nav li:nth-child(${event.key}) a`);
    else if (event.key === "j" || event.key === "k") {
      const rows = [...document.querySelectorAll("[data-row]")].map((row) => (row.matches("a") ? row : row.querySelector("a"))).filter(Boolean);
      const row = document.activeElement.closest("[data-row]");
      const at = rows.findIndex((link) => row && row.contains(link));
      const next = rows[event.key === "j" ? at + 1 : Math.max(0, at - 1)];
      if (next) next.focus();
    }
  });
  document.querySelectorAll(".keys").forEach((element) => { element.hidden = false; });
})();
