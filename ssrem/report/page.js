// What is folded away on a screen is printed.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((folded) => (folded.open = true));
});
addEventListener("afterprint", () => opened.forEach((folded) => (folded.open = false)));
