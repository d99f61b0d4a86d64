// Refresh the content of a page whose <main> has data-every (seconds), until the user pauses it. Answer a form with
// data-live, the id of the element for its answer, whenever the user changes it.
"use strict";

const main = document.getElementById("main");
const updating = document.getElementById("updating");
const seconds = Number(main.dataset.every);

if (seconds) {
  const [button, status] = updating.children;
  let paused = false;
  updating.hidden = false;

  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    status.textContent = "";
  });

  // The element that has the focus, as a path that the next content has too.
  const place = (element) => {
    const steps = [];
    for (; element !== main; element = element.parentElement) {
      steps.unshift([...element.parentElement.children].indexOf(element));
    }
    return steps;
  };

  const show = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html").getElementById("main");
    if (!next || next.innerHTML === main.innerHTML) return;
    const focused = main.contains(document.activeElement) && document.activeElement !== main
      ? place(document.activeElement) : null;
    main.replaceChildren(...next.childNodes);
    if (focused) focused.reduce((at, step) => at && at.children[step], main)?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (!paused && !document.hidden) {
      let problem = "";
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (answer.ok) show(await answer.text());
        else problem = "The clusters cannot be read; what you see is old.";
      } catch {
        problem = "The command that serves this page has ended; what you see is old.";
      }
      if (status.textContent !== problem) status.textContent = problem;
    }
    setTimeout(refresh, seconds * 1000);
  };
  setTimeout(refresh, seconds * 1000);
}

const form = document.querySelector("form[data-live]");

if (form) {
  const settled = 400; // milliseconds without a change before the form is sent
  const answer = document.getElementById(form.dataset.live);
  const sliders = [...form.querySelectorAll("input[type=range]")];
  let newest = 0;
  sliders.forEach((slider) => { slider.hidden = false; });

  const send = async (mine) => {
    const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
    let content = [];
    answer.setAttribute("aria-busy", "true");
    try {
      const page = new DOMParser().parseFromString(await (await fetch(address, { cache: "no-store" })).text(), "text/html");
      content = (page.getElementById(answer.id) ?? page.getElementById("main")).childNodes;
    } catch {
      content = ["The command that serves this page has ended."];
    }
    if (mine !== newest) return;
    history.replaceState(null, "", address);
    answer.replaceChildren(...content);
    answer.removeAttribute("aria-busy");
  };

  form.addEventListener("input", ({ target }) => {
    const slider = sliders.find((one) => one === target || one.dataset.of === target.name);
    if (slider === target) form.elements[slider.dataset.of].value = slider.value;
    else if (slider) slider.value = target.value;
    const mine = ++newest;
    setTimeout(() => { if (mine === newest && form.checkValidity()) send(mine); }, settled);
  });
}
