/** Which word comes from which, shown both ways: looking at one lights the other. */

/** @typedef {import("./translate_words.js").Shown} Shown */
/** @typedef {import("../api.js").Span} Span */

/**
 * @param {{mark: (spans: Span[]) => void, light: (place: number | null) => void}} source
 * @param {{light: (these: Shown[]) => void}} words
 */
export function linked(source, words) {
  /** @type {Shown[]} */
  let shown = [];
  /** @type {Map<number, number>} where a source word begins, and which of the marked it is */
  let marks = new Map();
  /** @type {Shown | null} */
  let held = null;

  /** @param {Shown} its */
  function markOf(its) {
    return marks.get(its.sentence.at + its.word.source[0]) ?? null;
  }

  /** @param {Shown | null} its a word that the pointer or the focus is at */
  function look(its) {
    const one = its ?? held;
    source.light(one && markOf(one));
    words.light(one ? [one] : []);
  }

  return {
    look,
    /** @param {number | null} place of a marked word of the source */
    lookBack: (place) => {
      if (place === null) return look(null);
      source.light(place);
      words.light(shown.filter((each) => markOf(each) === place));
    },
    /** @param {Shown | null} its stays lit while nothing else is looked at */
    hold: (its) => look((held = its)),
    /** @param {Shown[]} now */
    connect: (now) => {
      shown = now;
      held = null;
      const spans = new Map(shown.map(({ sentence, word }) => [sentence.at + word.source[0], sentence.at + word.source[1]]));
      const sorted = [...spans].filter(([start, end]) => start < end).sort(([one], [other]) => one - other);
      const apart = sorted.filter(([start], place) => place === 0 || sorted[place - 1][1] <= start);
      marks = new Map(apart.map(([start], place) => [start, place]));
      source.mark(apart);
    },
  };
}
