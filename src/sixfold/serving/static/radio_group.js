/** A row of pieces to choose from: one stop for the Tab key, arrows inside. */

import { h } from "./dom.js";

/**
 * @param {string} label
 * @param {string[]} texts
 * @param {number} selected
 * @param {(place: number) => void} onSelect
 * @param {(place: number, button: HTMLButtonElement) => void} [dress] what else each is given
 */
export function strip(label, texts, selected, onSelect, dress) {
  const buttons = texts.map((text, place) => {
    const button = h("button", {
      type: "button", class: "piece", role: "radio", "aria-checked": String(place === selected), tabindex: place === selected ? 0 : -1,
      dataset: { place },
      onclick: () => choose(place),
    }, text || " ");
    dress?.(place, button);
    return button;
  });
  if (buttons.length && !(selected >= 0 && selected < buttons.length)) buttons[0].tabIndex = 0;

  /** @param {number} place */
  function choose(place) {
    buttons.forEach((button, each) => {
      button.setAttribute("aria-checked", String(each === place));
      button.tabIndex = each === place ? 0 : -1;
    });
    onSelect(place);
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    const here = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    if (!step || here < 0) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(buttons.length - 1, here + step));
    buttons[place].focus();
    choose(place);
  }

  return h("div", { class: "strip", role: "radiogroup", "aria-label": label, onkeydown: walk }, buttons);
}

/**
 * Another place chosen in a strip that is shown, by something else on the page.
 * @param {HTMLElement} strip
 * @param {number} place
 */
export function mark(strip, place) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (strip.querySelectorAll(`[aria-checked="true"], [tabindex="0"], [data-place="${place}"]`))) {
    const isIt = button.dataset.place === String(place);
    button.setAttribute("aria-checked", String(isIt));
    button.tabIndex = isIt ? 0 : -1;
  }
}

/**
 * A few words to choose one of, such as the kinds of attention.
 * @template {string} Value
 * @param {string} label
 * @param {[Value, string][]} choices
 * @param {Value} selected
 * @param {(value: Value) => void} onSelect
 */
export function switcher(label, choices, selected, onSelect) {
  const place = choices.findIndex(([value]) => value === selected);
  const found = strip(label, choices.map(([, text]) => text), place, (chosen) => onSelect(choices[chosen][0]),
    (each, button) => (button.dataset.value = choices[each][0]));
  found.classList.add("switcher");
  return found;
}
