// Folded sections are unfolded for printing, except cases: of these only the ones that the reader opened are printed.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open]):not(.case)")];
  opened.forEach((folded) => (folded.open = true));
});
addEventListener("afterprint", () => opened.forEach((folded) => (folded.open = false)));

// Without this script all cases are shown; it hides those that the filters exclude.
const form = document.getElementById("filters");
if (form) {
  const cases = [...document.querySelectorAll(".case")].map((element) => ({
    element,
    set: element.dataset.set,
    picks: element.dataset.picks,
    text: [...element.querySelectorAll(".talk, .true")].map((part) => part.textContent).join(" ").toLowerCase(),
  }));
  const value = (id) => document.getElementById(id).value;
  const filter = () => {
    const [set, evaluator, kind] = ["of-set", "of-evaluator", "of-kind"].map(value);
    const words = value("words").toLowerCase().split(/\s+/).filter(Boolean);
    // A pick is written as " 0:high ": an evaluator's number and a kind; a filter on both must match one pick.
    const wanted = evaluator && kind ? ` ${evaluator}:${kind} ` : evaluator ? ` ${evaluator}:` : kind ? `:${kind} ` : "";
    let shown = 0;
    for (const { element, set: own, picks, text } of cases) {
      element.hidden = Boolean(
        (set && set !== own) || !picks.includes(wanted) || words.some((word) => !text.includes(word)),
      );
      shown += !element.hidden;
    }
    const all = cases.length;
    const some = shown === all ? `${all} cases` : `${shown} of ${all} cases`;
    document.getElementById("shown").textContent = shown ? some : `${some}; show all, or ask for less`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  form.hidden = false;
  filter(); // a browser may keep what was chosen before a reload
}
