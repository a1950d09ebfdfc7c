// One entity in the panel at the right: it opens beside the grid, is staged without a reload, and Escape closes it. Without this script,
// the same form is a page of its own.

const page = (html) => new DOMParser().parseFromString(html, 'text/html');
const grid = document.getElementById('grid');
let opener = null;

const panel = () => {
  const known = document.getElementById('panel');
  if (known) return known;
  const made = document.createElement('aside');
  made.id = 'panel';
  made.className = 'panel';
  made.setAttribute('aria-label', 'Entity');
  document.querySelector('main').after(made);
  return made;
};

const close = () => {
  const open = document.getElementById('panel');
  if (!open || !grid) return;
  open.remove();
  for (const row of grid.querySelectorAll('tr.open')) row.classList.remove('open');
  // The grid focuses the cell that is pressed.
  opener?.closest('td')?.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }));
};

// The bar below the content, as the answer has it.
const takeBar = (answer) => {
  const [known, next] = [document.getElementById('bar'), answer.getElementById('bar')];
  if (known && next) known.replaceWith(next);
  else if (next) document.querySelector('main').after(next);
  else known?.remove();
};

// Whether a row of the grid is that of a form. A new entity has none.
const isOf = (row, form) =>
  JSON.parse(row.querySelector('input').value)
    .slice(0, 2)
    .every((key, at) => form.querySelector(`[type=hidden][name=${['pk', 'rk'][at]}]`)?.value === key);

// Shows the entity of an answer; its staged values also in the row of the grid.
const take = (answer) => {
  const content = answer.getElementById('entity') ?? answer.querySelector('main .notice');
  if (!content) return false;
  panel().replaceChildren(content);
  takeBar(answer);
  const row = opener?.closest('tr');
  if (row && content.matches('#entity') && isOf(row, content)) {
    const columns = [...grid.tHead.rows[0].cells];
    for (const cell of row.querySelectorAll('td.staged')) cell.classList.remove('staged');
    row.classList.toggle('deleted', content.dataset.staged === 'delete');
    for (const property of content.querySelectorAll('.property[data-shown]')) {
      const cell = row.cells[columns.findIndex((th) => th.dataset.name === property.dataset.name)];
      if (!cell) continue;
      const isStaged = property.classList.contains('staged');
      cell.textContent = property.dataset.shown;
      cell.classList.toggle('staged', isStaged);
      cell.classList.toggle('absent', !property.dataset.shown);
    }
  }
  return true;
};

let last = 0;
const load = async (url, options) => {
  last += 1;
  const own = last;
  try {
    const response = await fetch(url, { redirect: 'follow', ...options });
    const answer = page(await response.text());
    // Another entity was opened meanwhile.
    return own !== last || take(answer);
  } catch {
    return false;
  }
};

grid?.addEventListener('click', async (event) => {
  const link = event.target.closest('td.key a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  for (const row of grid.querySelectorAll('tr.open')) row.classList.remove('open');
  opener = link;
  link.closest('tr').classList.add('open');
  if (!(await load(link.href))) location.href = link.href;
  else document.querySelector('#panel h2')?.focus();
});

// The forms and the links of the panel stay in it. A page of one entity works as it is.
document.addEventListener('submit', async (event) => {
  const form = event.target.closest('#panel form');
  if (!form || form.closest('.details') || 'plain' in form.dataset) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  // A button has the name `action`, which hides the property.
  const action = form.getAttribute('action');
  const url = event.submitter?.getAttribute('formaction') ?? action;
  const isDiscard = url !== action;
  const shown = await load(url, { method: 'POST', body: fields });
  if (isDiscard && opener) await load(opener.href);
  else if (!shown) {
    // As without this script, with the button that was pressed.
    form.dataset.plain = '';
    form.requestSubmit(event.submitter);
  }
  // What was focused is no longer there.
  document.querySelector('#panel h2')?.focus();
  document.querySelector('#panel .problem, #panel .note.bad')?.scrollIntoView({ block: 'nearest' });
});
document.addEventListener('click', (event) => {
  const link = event.target.closest('#panel .title a.button');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  load(link.href);
});
document.addEventListener('keydown', (event) => {
  const inPanel = event.target.closest('#panel, #entity');
  if (event.key === 'Escape' && !event.target.closest('.query')) close();
  if (inPanel && event.ctrlKey && event.key === 'Enter') {
    event.preventDefault();
    event.stopImmediatePropagation();
    inPanel.querySelector('button.primary')?.click();
  }
}, true);

// What was typed and not staged yet.
document.addEventListener('input', (event) => {
  const field = event.target;
  if (field.closest('#entity') && field.matches('[name=value]')) field.classList.toggle('changed', field.value !== field.defaultValue);
});

// The button for the selected rows is there while some are.
const picked = document.getElementById('picked');
if (picked) {
  const button = picked.querySelector('button');
  const count = () => {
    const rows = document.querySelectorAll('#grid tbody .pick input:checked').length;
    button.textContent = `Stage ${rows} ${rows === 1 ? 'delete' : 'deletes'}`;
    picked.hidden = !rows;
  };
  for (const name of ['change', 'picked']) document.addEventListener(name, count);
  count();
}
