"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const sections = ["start", "rate", "end"].map(at);
  const questions = [...document.querySelectorAll("fieldset")];
  const buttons = questions.map((one) => [...one.querySelectorAll("button")]);
  // scores: item to a score for each question, null where there is none yet; question: the one that keys answer.
  let rater = "", sheet = [], scores = {}, place = 0, question = 0, unsaved = false, keeps = true;

  const key = (name) => `ssrem ${data.batch} ${name}`;
  const isScore = (score) => Number.isInteger(score) && score >= 1 && score <= data.scale;
  const isComplete = (item) => item in scores && scores[item].every(isScore);
  const scored = () => sheet.filter(isComplete).length;
  const say = (text) => { at("said").textContent = text; };

  function kept(name) {
    try {
      const found = JSON.parse(localStorage.getItem(key(name)) || "{}");
      const fits = ([item, own]) => data.sheets[name].includes(item) && Array.isArray(own) &&
        own.length === questions.length && own.every((score) => score === null || isScore(score));
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
    const own = scores[sheet[place]] || [];
    buttons.forEach((some, nth) => some.forEach((b) =>
      b.setAttribute("aria-pressed", String(Number(b.dataset.score) === own[nth]))));
    questions.forEach((one, nth) => one.classList.toggle("now", questions.length > 1 && nth === question));
    at("progress").max = sheet.length;
    at("progress").value = scored();
    at("done").textContent = `${scored()} scored`;
  }

  function go(to) {
    if (to >= sheet.length) return finish();
    place = Math.max(0, to);
    question = isComplete(sheet[place]) ? 0 : openQuestion();
    const item = data.items[sheet[place]];
    at("place").textContent = `${place + 1} of ${sheet.length}`;
    at("turns").replaceChildren(...item.turns.map(([who, text]) => turn(document.createElement("li"), who, text)));
    turn(at("response"), item.responder, item.response);
    at("back").disabled = place === 0;
    mark();
    show(at("rate"), at("place"));
  }

  function openQuestion() {
    const own = scores[sheet[place]] || [];
    return Math.max(0, questions.findIndex((_, nth) => !isScore(own[nth])));
  }

  function firstOpen(from) {
    const after = sheet.findIndex((item, index) => index >= from && !isComplete(item));
    return after >= 0 ? after : sheet.findIndex((item) => !isComplete(item));
  }

  function toOpen() {
    const open = firstOpen(place + 1);
    go(open < 0 ? sheet.length : open);
  }

  function score(value, nth) {
    const item = sheet[place];
    scores[item] ||= questions.map(() => null);
    scores[item][nth] = value;
    unsaved = true;
    say("");
    keep();
    if (nth + 1 === questions.length && isComplete(item)) return go(place + 1);
    question = nth + 1 < questions.length ? nth + 1 : openQuestion();
    mark();
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
    const answers = sheet.filter(isComplete).map((item) => ({
      item,
      score: scores[item][0],
      ...Object.fromEntries(data.criteria.slice(1).map((name, nth) => [name, scores[item][nth + 1]])),
    }));
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
    const count = name ? Object.values(kept(name)).filter((own) => own.every(isScore)).length : 0;
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
  buttons.forEach((some, nth) => some.forEach((b) =>
    b.addEventListener("click", () => score(Number(b.dataset.score), nth))));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !at("start").hidden) return;
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (event.key === "ArrowLeft") go(at("rate").hidden ? sheet.length - 1 : place - 1);
    else if (event.key === "ArrowRight" && !at("rate").hidden) go(place + 1);
    else if (event.key === "s" || event.key === "S") save();
    else if (number >= 1 && number <= data.scale && !at("rate").hidden) score(number, question);
    else return;
    event.preventDefault();
  });
  addEventListener("beforeunload", (event) => { if (unsaved && !keeps) event.preventDefault(); });
})();
