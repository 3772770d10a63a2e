/** Radio groups of tokens or options: one stop for the Tab key, arrow keys move inside. */

import { h } from "./dom.js";

/**
 * @param {string} label
 * @param {string[]} texts
 * @param {number} selected
 * @param {(index: number) => void} onSelect
 * @param {(index: number, button: HTMLButtonElement) => void} [decorate] called for each button, to add classes or data
 */
export function tokenRadioGroup(label, texts, selected, onSelect, decorate) {
  const buttons = texts.map((text, index) => {
    const button = h("button", {
      type: "button", class: "token-button", role: "radio", "aria-checked": String(index === selected), tabindex: index === selected ? 0 : -1,
      dataset: { index },
      onclick: () => select(index),
    }, text || " ");
    decorate?.(index, button);
    return button;
  });
  if (buttons.length && !(selected >= 0 && selected < buttons.length)) buttons[0].tabIndex = 0;

  /** @param {number} index */
  function select(index) {
    buttons.forEach((button, buttonIndex) => {
      button.setAttribute("aria-checked", String(buttonIndex === index));
      button.tabIndex = buttonIndex === index ? 0 : -1;
    });
    onSelect(index);
  }

  /** @param {KeyboardEvent} event */
  function moveFocus(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    const current = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    if (!step || current < 0) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(buttons.length - 1, current + step));
    buttons[index].focus();
    select(index);
  }

  return h("div", { class: "token-row", role: "radiogroup", "aria-label": label, onkeydown: moveFocus }, buttons);
}

/**
 * Check another button of a group, after a selection made elsewhere on the page.
 * @param {HTMLElement} group
 * @param {number} index
 */
export function checkRadio(group, index) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (group.querySelectorAll(`[aria-checked="true"], [tabindex="0"], [data-index="${index}"]`))) {
    const isSelected = button.dataset.index === String(index);
    button.setAttribute("aria-checked", String(isSelected));
    button.tabIndex = isSelected ? 0 : -1;
  }
}

/**
 * Create a group of a few options, such as the kinds of attention.
 * @template {string} Value
 * @param {string} label
 * @param {[Value, string][]} choices
 * @param {Value} selected
 * @param {(value: Value) => void} onSelect
 */
export function optionRadioGroup(label, choices, selected, onSelect) {
  const index = choices.findIndex(([value]) => value === selected);
  const group = tokenRadioGroup(label, choices.map(([, text]) => text), index, (index) => onSelect(choices[index][0]),
    (index, button) => (button.dataset.value = choices[index][0]));
  group.classList.add("option-row");
  return group;
}
