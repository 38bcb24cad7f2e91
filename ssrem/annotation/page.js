"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const sections = ["start", "rate", "end"].map(at);
  const scoreButtons = [...at("scores").querySelectorAll("button")];
  let rater = "", sheet = [], scores = {}, place = 0, unsaved = false, keeps = true;

  const key = (name) => `ssrem ${data.batch} ${name}`;
  const scored = () => sheet.filter((item) => item in scores).length;
  const say = (text) => { at("said").textContent = text; };

  function kept(name) {
    try {
      const found = JSON.parse(localStorage.getItem(key(name)) || "{}");
      const fits = ([item, score]) =>
        data.sheets[name].includes(item) && Number.isInteger(score) && score >= 1 && score <= data.scale;
      return Object.fromEntries(Object.entries(found).filter(fits));
    } catch {
      return {};
    }
  }

  function keep() {
    try {
      localStorage.setItem(key(rater), JSON.stringify(scores));
    } catch {
      keeps = false;
      say("This browser does not keep your scores: save a file before you close the page.");
    }
  }

  function show(section, heading) {
    sections.forEach((one) => { one.hidden = one !== section; });
    heading.focus();
    scrollTo(0, 0);
  }

  function turn(element, who, text) {
    const name = document.createElement("span");
    name.className = "who";
    name.textContent = `${who}: `;
    element.replaceChildren(name, text);
    return element;
  }

  function mark() {
    const score = scores[sheet[place]];
    scoreButtons.forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.score) === score)));
    at("progress").max = sheet.length;
    at("progress").value = scored();
    at("done").textContent = `${scored()} scored`;
  }

  function go(to) {
    if (to >= sheet.length) return finish();
    place = Math.max(0, to);
    const item = data.items[sheet[place]];
    at("place").textContent = `${place + 1} of ${sheet.length}`;
    at("turns").replaceChildren(...item.turns.map(([who, text]) => turn(document.createElement("li"), who, text)));
    turn(at("response"), item.responder, item.response);
    at("back").disabled = place === 0;
    mark();
    show(at("rate"), at("place"));
  }

  function firstOpen(from) {
    const after = sheet.findIndex((item, index) => index >= from && !(item in scores));
    return after >= 0 ? after : sheet.findIndex((item) => !(item in scores));
  }

  function toOpen() {
    const open = firstOpen(place + 1);
    go(open < 0 ? sheet.length : open);
  }

  function score(value) {
    scores[sheet[place]] = value;
    unsaved = true;
    say("");
    keep();
    go(place + 1);
  }

  function finish() {
    const open = sheet.length - scored();
    at("end-title").textContent = open ? "Not all scored yet" : "Thank you";
    at("left").textContent = open
      ? `${open} of ${sheet.length} responses have no score. You can go back to them, or save what there is.`
      : `All ${sheet.length} responses are scored. Save them as a file and hand it in.`;
    at("return").textContent = open ? "Go to the first without a score" : "Look again";
    show(at("end"), at("end-title"));
  }

  function save() {
    const answers = sheet.filter((item) => item in scores).map((item) => ({ item, score: scores[item] }));
    const text = JSON.stringify({ format: data.format, batch: data.batch, rater, answers }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = `answers-${data.batch}-${rater}.json`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = false;
    say(`Saved ${answers.length} of ${sheet.length} scores as ${link.download}.`);
  }

  function chosen() {
    const name = at("sheet").value;
    at("begin").disabled = !name;
    const count = name ? Object.keys(kept(name)).length : 0;
    at("begin").textContent = count ? "Go on" : "Start";
    at("kept").textContent = count ? `${count} of ${data.sheets[name].length} are scored already.` : "";
  }

  function begin() {
    rater = at("sheet").value;
    if (!rater) return;
    sheet = data.sheets[rater];
    scores = kept(rater);
    document.title = `${rater}: rating responses`;
    const open = firstOpen(0);
    go(open < 0 ? sheet.length : open);
  }

  Object.keys(data.sheets).forEach((name) => at("sheet").append(new Option(name, name)));
  const asked = decodeURIComponent(location.hash.slice(1));
  if (Object.hasOwn(data.sheets, asked)) at("sheet").value = asked;
  chosen();
  at("sheet").addEventListener("change", chosen);
  at("begin").addEventListener("click", begin);
  at("back").addEventListener("click", () => go(place - 1));
  at("next").addEventListener("click", () => go(place + 1));
  at("open").addEventListener("click", toOpen);
  at("save").addEventListener("click", save);
  at("save-end").addEventListener("click", save);
  at("return").addEventListener("click", () => go(Math.max(0, firstOpen(0))));
  scoreButtons.forEach((b) => b.addEventListener("click", () => score(Number(b.dataset.score))));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !at("start").hidden) return;
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (event.key === "ArrowLeft") go(at("rate").hidden ? sheet.length - 1 : place - 1);
    else if (event.key === "ArrowRight" && !at("rate").hidden) go(place + 1);
    else if (event.key === "s" || event.key === "S") save();
    else if (number >= 1 && number <= data.scale && !at("rate").hidden) score(number);
    else return;
    event.preventDefault();
  });
  addEventListener("beforeunload", (event) => { if (unsaved && !keeps) event.preventDefault(); });
})();
